// The layout that is edited: the same on the pages Plan and Simulate, and there again after a reload of the page.
import { Store } from './store';

const KEY = 'ringfence.draft';
/** What the server takes; the browser's storage takes about as much. */
export const LARGEST = 4 * 2 ** 20;
const STORED = 1_000_000;

export interface Draft {
  /** null: nothing was edited, the machine's layout is shown */
  text: string | null;
}

function stored(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const draft = new Store<Draft>({ text: stored() });

export function edit(text: string | null): void {
  draft.set({ text });
  try {
    if (text === null || text.length > STORED) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, text);
  } catch {
    // a full storage loses the draft at a reload, and nothing else
  }
}
