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
}

export function useLayout(): Edited {
  const own = useStore(draft, d => d.text);
  const file = useAsk(() => api.layout(), 'layout');
  const text = own ?? file.value?.text ?? '';
  const [state, setState] = useState<{ checked: Schema['Checked'] | null; problem: Refusal | null; of: string | null }>({ checked: null, problem: null, of: null });
  useEffect(() => {
    if (own === null && !file.value) return;
    if (text.length > LARGEST) {
      const size = (text.length / 2 ** 20).toFixed(1);
      setState({ checked: null, of: text, problem: new Refusal('invalid', `this text has ${size} MiB, and a layout may have 4: it is not sent`, 'on the command line: ringfence check FILE') });
      return;
    }
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
    set: edit,
    revert: () => edit(null),
    checked: state.checked,
    checking: state.of !== text,
    problem: state.problem,
  };
}
