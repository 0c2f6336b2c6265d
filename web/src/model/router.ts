// Which page the address names. Pages are in the fragment, so that a reload asks the server for one path only.

export const PAGES = ['map', 'groups', 'history', 'plan', 'lab', 'simulate'] as const;
export type PageName = (typeof PAGES)[number];

export interface Route {
  page: PageName;
  /** what the page shows: a group's name, a result's; empty for the page itself */
  rest: string;
}

export function parse(hash: string): Route {
  const [first = '', ...rest] = hash.replace(/^#\/?/, '').split('/');
  const page = PAGES.find(p => p === first) ?? 'map';
  return { page, rest: rest.map(decode).join('/') };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function href(page: PageName, rest = ''): string {
  const path = rest.split('/').map(encodeURIComponent).join('/');
  return rest ? `#/${page}/${path}` : `#/${page}`;
}
