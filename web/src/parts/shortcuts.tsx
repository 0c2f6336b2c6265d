// Keys that work on every page, and the list of all keys. Letters do nothing while somebody types.
import { useEffect, useRef } from 'preact/hooks';
import { live, seek } from '../live';
import { href, PAGES } from '../model/router';
import { Dialog } from './dialog';

const GO: Record<string, string> = { m: 'map', g: 'groups', h: 'history', p: 'plan', l: 'lab', s: 'simulate' };

const LIST: [string, string][] = [
  ['g m', 'Machine'],
  ['g g', 'Groups'],
  ['g h', 'History'],
  ['g p', 'Plan'],
  ['g l', 'Lab'],
  ['g s', 'Simulate'],
  ['/', 'Filter, on pages that have one'],
  ['[ and ]', 'A moment back or on in the log'],
  ['n', 'Now: live figures again'],
  ['Arrows', 'From CPU to CPU, from group to group'],
  ['Left and right', 'Close and open a group of the tree'],
  ['Enter', 'Open what is marked'],
  ['Ctrl+Enter', 'Plan the layout that is edited'],
  ['Esc', 'Close, or end marking'],
  ['?', 'This list'],
];

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !(target instanceof HTMLInputElement && /^(range|checkbox|radio|button)$/.test(target.type));

/** What pages do for keys of their own: called with -1 for [ and 1 for ]. */
export const steps = new Set<(direction: -1 | 1) => void>();

export function useShortcuts(onHelp: () => void): void {
  const help = useRef(onHelp);
  help.current = onHelp;
  useEffect(() => {
    let gone = 0;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      const chosen = GO[event.key];
      if (event.timeStamp - gone < 1500 && chosen && PAGES.some(p => p === chosen)) {
        location.hash = href(chosen as (typeof PAGES)[number]);
        gone = 0;
      } else if (event.key === 'g') gone = event.timeStamp;
      else if (event.key === '?') help.current();
      else if (event.key === 'n' && live.value.at != null) void seek(null);
      else if (event.key === '[' || event.key === ']') steps.forEach(step => step(event.key === '[' ? -1 : 1));
      else if (event.key === '/') {
        const filter = document.querySelector<HTMLElement>('[data-filter]');
        if (!filter) return;
        filter.focus();
      } else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <table class="keys-table">
        <tbody>
          {LIST.map(([keys, does]) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
