// A value that components follow: they are drawn again only when what they select of it changes.
import { useEffect, useReducer, useRef } from 'preact/hooks';

export class Store<T extends object> {
  private readonly followers = new Set<() => void>();
  constructor(public value: T) {}

  set(change: Partial<T>): void {
    this.value = { ...this.value, ...change };
    for (const follower of this.followers) follower();
  }

  follow(follower: () => void): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }
}

export function useStore<T extends object, R>(store: Store<T>, select: (value: T) => R): R {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const selected = select(store.value);
  const latest = useRef({ select, selected });
  latest.current = { select, selected };
  useEffect(() => {
    const look = () => {
      const next = latest.current.select(store.value);
      if (!Object.is(next, latest.current.selected)) redraw(0);
    };
    look();
    return store.follow(look);
  }, [store]);
  return selected;
}
