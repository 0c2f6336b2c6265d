// Which groups of the tree are shown: pure.
import type { Schema } from '../client';

type Info = Schema['GroupInfo'];

/** The groups without those below closed ones; the list is in the order of the tree. */
export function visible(groups: readonly Info[], closed: ReadonlySet<string>): Info[] {
  const hidden = new Set<string>();
  return groups.filter(g => {
    const under = g.parent !== null && (closed.has(g.parent) || hidden.has(g.parent));
    if (under) hidden.add(g.group);
    return !under;
  });
}

/** Groups with all of the words in their name or unit. */
export function matching(groups: readonly Info[], filter: string): Info[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return groups.filter(g => {
    const text = `${g.group} ${g.unit ?? ''}`.toLowerCase();
    return words.every(w => text.includes(w));
  });
}
