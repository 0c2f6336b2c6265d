// The text of the layout to work with, and what the server's checker says of it while somebody types.
import { useEffect, useState } from 'preact/hooks';
import { api, Refusal, type Schema } from '../client';
import { draft, edit, LARGEST } from '../model/draft';
import { useStore } from '../model/store';
import { useAsk } from './use-ask';

const QUIET = 300;

export interface Edited {
  text: string;
  file: Schema['LayoutFile'] | null;
  fileProblem: Refusal | null;
  edited: boolean;
  set: (text: string) => void;
  revert: () => void;
  checked: Schema['Checked'] | null;
  checking: boolean;
  problem: Refusal | null;
  /** why what was put in last was not taken */
  refused: Refusal | null;
}

function tooLarge(length: number): Refusal {
  const size = (length / 2 ** 20).toFixed(1);
  return new Refusal('invalid', `this text has ${size} MiB, and a layout may have 4: it was not taken, and the text before stays`, 'ringfence check FILE');
}

export function useLayout(): Edited {
  const own = useStore(draft, d => d.text);
  const file = useAsk(() => api.layout(), 'layout');
  const text = own ?? file.value?.text ?? '';
  const [state, setState] = useState<{ checked: Schema['Checked'] | null; problem: Refusal | null; of: string | null }>({ checked: null, problem: null, of: null });
  const [refused, setRefused] = useState<Refusal | null>(null);
  useEffect(() => {
    if (own === null && !file.value) return;
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const checked = await api.check(text, controller.signal);
        setState({ checked, problem: null, of: text });
      } catch (error) {
        if (!controller.signal.aborted && error instanceof Refusal) setState({ checked: null, problem: error, of: text });
      }
    }, QUIET);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, file.value !== null]);
  return {
    text,
    file: file.value,
    fileProblem: file.refusal,
    edited: own !== null && own !== file.value?.text,
    set: next => {
      setRefused(next.length > LARGEST ? tooLarge(next.length) : null);
      // the field goes back to what it had, before the browser lays out megabytes
      if (next.length <= LARGEST) edit(next);
    },
    revert: () => (setRefused(null), edit(null)),
    checked: state.checked,
    checking: state.of !== text,
    problem: state.problem,
    refused,
  };
}
