// What all pages show: the newest sample, or one of the log, with machine, groups and owners that belong to it. It asks the server
// once per interval, goes on asking while nothing answers, and stops while the page is hidden.
import { api, PATIENCE, Refusal, type Schema } from './client';
import { Store } from './model/store';

export type Link = 'starting' | 'up' | 'gone' | 'over';

export interface Live {
  link: Link;
  refusal: Refusal | null;
  session: Schema['Session'] | null;
  machine: Schema['Machine'] | null;
  groups: Schema['Groups'] | null;
  owners: Schema['Owners'] | null;
  sample: Schema['Sample'] | null;
  history: Schema['History'] | null;
  /** the moment of the log that is shown, in milliseconds by the host's clock; null: now */
  at: number | null;
  /** the log's sample at that moment; it does not have who owned which CPU */
  then: Schema['Sample'] | null;
  thenProblem: Refusal | null;
  /** how far the host's clock is ahead of this browser's, in milliseconds; 0 below a second */
  ahead: number;
  /** when the newest sample came, by performance.now(): a clock that nobody sets */
  cameAt: number;
  /** the busy CPUs and used memory of the last minutes, for charts without a log */
  recent: Recent;
}

export interface Recent {
  times: number[];
  busy: (number | null)[];
  memory: (number | null)[];
}

export const live = new Store<Live>({
  link: 'starting',
  refusal: null,
  session: null,
  machine: null,
  groups: null,
  owners: null,
  sample: null,
  history: null,
  at: null,
  then: null,
  thenProblem: null,
  ahead: 0,
  cameAt: 0,
  recent: { times: [], busy: [], memory: [] },
});

/** The host's clock now, in milliseconds since 1970. */
export const hostNow = () => Date.now() + live.value.ahead;

/** The sample that pages show, and the owners, where they are known: now. */
export const shownSample = (l: Live) => (l.at == null ? l.sample : l.then);
export const shownOwners = (l: Live) => (l.at == null ? l.owners : null);

const RECENT = 600;
const HISTORY_EVERY = 5000;
const SESSION_EVERY = 15000;
let nextHistory = 0;
let nextSession = 0;
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

export function start(): void {
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) soon(0);
  });
  soon(0);
}

function soon(delay: number): void {
  clearTimeout(timer);
  timer = setTimeout(round, delay);
}

async function round(): Promise<void> {
  if (document.hidden) return;
  const began = performance.now();
  try {
    await look();
    failures = 0;
    if (live.value.link !== 'up') live.set({ link: 'up', refusal: null });
  } catch (error) {
    failures += 1;
    fail(error);
  }
  const every = live.value.sample?.interval_ms ?? 1000;
  const wait = failures ? Math.min(5000, 500 * 2 ** Math.min(failures, 4)) : every - (performance.now() - began);
  soon(Math.max(50, wait));
}

async function look(): Promise<void> {
  const signal = AbortSignal.timeout(PATIENCE);
  if (live.value.link !== 'up') await lookAtSession(signal);
  // a daemon that hangs delays this answer, and no figures
  else if (performance.now() >= nextSession) void lookAtSession(signal).catch(fail);
  if (!live.value.machine) live.set({ machine: await api.machine(signal) });
  if (performance.now() >= nextHistory) await lookAtHistory(signal);
  if (live.value.at != null && live.value.sample) return;
  const sample = await api.newest(signal);
  if (sample) await take(sample, signal);
}

async function lookAtSession(signal: AbortSignal): Promise<void> {
  const asked = performance.now();
  nextSession = asked + SESSION_EVERY;
  const session = await api.session(signal);
  const took = performance.now() - asked;
  if (live.value.session && live.value.session.hostname !== session.hostname) live.set({ machine: null });
  live.set({ session, ahead: difference(session.now_ms - (Date.now() - took / 2), took) });
}

async function take(sample: Schema['Sample'], signal: AbortSignal): Promise<void> {
  const { groups, owners } = live.value;
  const change: Partial<Live> = { sample, cameAt: performance.now(), recent: remember(live.value.recent, sample) };
  if (groups?.version !== sample.groups_version) change.groups = await api.groups(signal);
  if (owners?.version !== sample.owners_version) {
    change.owners = await api.owners(signal);
    // CPUs that come or go are among the changes of owners
    change.machine = await api.machine(signal);
  }
  live.set(change);
}

function remember(recent: Recent, sample: Schema['Sample']): Recent {
  if (sample.at_ms == null) return recent;
  const m = sample.machine;
  const busy = m.cpus.some(c => c != null) ? m.cpus.reduce<number>((sum, c) => sum + (c ?? 0), 0) : null;
  const memory = m.memory_total != null && m.memory_available != null ? m.memory_total - m.memory_available : null;
  const keep = <T>(list: T[], value: T) => [...list.slice(-RECENT + 1), value];
  return { times: keep(recent.times, sample.at_ms / 1000), busy: keep(recent.busy, busy), memory: keep(recent.memory, memory) };
}

/** Within the time that the answer TOOK nobody knows when it was written, and a difference below a second matters to nobody. */
const difference = (ahead: number, took: number) => (Math.abs(ahead) < 1000 + took / 2 ? 0 : Math.round(ahead));

export async function lookAtHistory(signal?: AbortSignal): Promise<void> {
  const history = await api.history(signal);
  const pending = history.pending;
  nextHistory = performance.now() + (pending ? Math.min(1000, Math.max(200, pending.remaining_ms)) : HISTORY_EVERY);
  if (JSON.stringify(history) !== JSON.stringify(live.value.history)) live.set({ history });
}

function fail(error: unknown): void {
  const refusal = error instanceof Refusal ? error : new Refusal('failed', error instanceof Error ? error.message : String(error));
  const link: Link = refusal.kind === 'session_over' ? 'over' : 'gone';
  // the first refusal says why: those that follow only that there is no session
  if (link === 'over' && live.value.link === 'over') return;
  const same = live.value.link === link && live.value.refusal?.message === refusal.message;
  if (!same) live.set({ link, refusal });
}

/** Ends the session here and at the server. */
export async function endSession(): Promise<void> {
  try {
    await api.endSession();
    fail(new Refusal('session_over', 'it was ended from this page'));
  } catch (error) {
    fail(error);
  }
}

let seeking: AbortController | null = null;
let aim: ReturnType<typeof setTimeout> | undefined;

/** Shows a moment of the log soon: while the scrubber is dragged, the last place counts. */
export function seekSoon(at: number): void {
  clearTimeout(aim);
  live.set({ at });
  aim = setTimeout(() => void seek(at), 60);
}

/** Shows the log's sample at this moment on all pages; null: the newest one again. */
export async function seek(at: number | null): Promise<void> {
  seeking?.abort();
  clearTimeout(aim);
  if (at == null) {
    live.set({ at: null, then: null, thenProblem: null });
    soon(0);
    return;
  }
  const controller = new AbortController();
  seeking = controller;
  live.set({ at });
  try {
    const then = await api.sampleAt(Math.round(at), controller.signal);
    if (!controller.signal.aborted) live.set({ then, thenProblem: null });
  } catch (error) {
    if (!controller.signal.aborted && error instanceof Refusal) live.set({ then: null, thenProblem: error });
  }
}

/** Exchanges the token of the printed address for a cookie, and takes it out of the address and the browser's history. */
export async function openSession(): Promise<void> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, '', '#/map');
  try {
    await api.openSession(decodeURIComponent(token));
  } catch (error) {
    fail(error);
  }
}
