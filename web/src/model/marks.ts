// The mark of each owner on maps and charts: a letter and one of eight colours. A group keeps its mark while the page is open, so that
// nothing changes its colour because another group came. Letters differ where colours repeat.

export const COLOURS = 8;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

export interface Mark {
  letter: string;
  /** 1 to COLOURS */
  colour: number;
}

const given = new Map<string, Mark>();

export function mark(group: string): Mark {
  let found = given.get(group);
  if (!found) {
    const n = given.size;
    found = { letter: letter(n), colour: (n % COLOURS) + 1 };
    given.set(group, found);
  }
  return found;
}

function letter(n: number): string {
  const last = LETTERS[n % LETTERS.length]!;
  return n < LETTERS.length ? last : letter(Math.floor(n / LETTERS.length) - 1) + last;
}
