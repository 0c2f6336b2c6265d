// A question to the server whose answer a component shows: asked again when its key changes, given up when the component goes.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Refusal } from '../client';

export interface Asked<T> {
  value: T | null;
  refusal: Refusal | null;
  busy: boolean;
  again: () => void;
}

export function useAsk<T>(ask: ((signal: AbortSignal) => Promise<T>) | null, key: string, every = 0): Asked<T> {
  const [state, setState] = useState<{ value: T | null; refusal: Refusal | null; busy: boolean }>({ value: null, refusal: null, busy: true });
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (!latest.current) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const go = async () => {
      if (!document.hidden) {
        setState(s => ({ ...s, busy: true }));
        try {
          const value = await latest.current!(controller.signal);
          if (controller.signal.aborted) return;
          setState({ value, refusal: null, busy: false });
        } catch (error) {
          if (controller.signal.aborted) return;
          const refusal = error instanceof Refusal ? error : new Refusal('failed', String(error));
          // what was there stays on show while nothing answers: the banner says so
          setState(s => ({ value: refusal.kind === 'gone' ? s.value : null, refusal, busy: false }));
        }
      }
      if (every) timer = setTimeout(() => void go(), every);
    };
    void go();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key, round, every]);
  return { ...state, again: useCallback(() => setRound(r => r + 1), []) };
}

/** An action that changes something: one at a time, with the refusal on show until the next. */
export function useAct(): { busy: boolean; refusal: Refusal | null; act: (what: () => Promise<unknown>) => Promise<boolean>; clear: () => void } {
  const [state, setState] = useState<{ busy: boolean; refusal: Refusal | null }>({ busy: false, refusal: null });
  const act = async (what: () => Promise<unknown>) => {
    setState({ busy: true, refusal: null });
    try {
      await what();
      setState({ busy: false, refusal: null });
      return true;
    } catch (error) {
      setState({ busy: false, refusal: error instanceof Refusal ? error : new Refusal('failed', String(error)) });
      return false;
    }
  };
  return { ...state, act, clear: () => setState({ busy: false, refusal: null }) };
}
