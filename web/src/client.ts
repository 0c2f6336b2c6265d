// The calls of the API, typed by the contract. A refusal has the server's words; it never guesses a cause that the server did not give.
import type { components, operations } from './api';

export type Schema = components['schemas'];
type Answer<O extends keyof operations> = operations[O]['responses'] extends { 200: { content: { 'application/json': infer T } } } ? T : void;
type Body<O extends keyof operations> = operations[O] extends { requestBody: { content: { 'application/json': infer T } } } ? T : undefined;

/** `gone`: nothing answers; the other kinds are the contract's. */
export type RefusalKind = NonNullable<Schema['Problem']['kind']> | 'gone';

export class Refusal extends Error {
  constructor(
    readonly kind: RefusalKind,
    message: string,
    readonly hint: string | null = null,
    readonly problem: Schema['Problem'] | null = null,
  ) {
    super(message);
  }
}

const GONE = 'the server does not answer: ringfence web has ended, or the connection (ssh -L) is down';
/** Milliseconds in which a look at the newest figures has its answers; the server waits 10 s for its first sample. */
export const PATIENCE = 15_000;
const SILENT = `no answer came within ${PATIENCE / 1000} s: the connection (ssh -L) is down, or the host is stopped or very busy`;

async function send(method: string, path: string, body: unknown, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
  try {
    return await fetch(path, {
      method,
      headers: body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      credentials: 'same-origin',
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw given(signal, error);
    throw new Refusal('gone', GONE, 'ringfence web');
  }
}

/** Why a request was given up: a signal that ends by its time is a connection that carries nothing. */
const given = (signal: AbortSignal | undefined, error: unknown) => (signal?.reason instanceof DOMException && signal.reason.name === 'TimeoutError' ? new Refusal('gone', SILENT) : error);

async function read<T>(response: Response, signal?: AbortSignal): Promise<T> {
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw given(signal, error);
  }
}

async function refusal(response: Response): Promise<Refusal> {
  let problem: Schema['Problem'] | null = null;
  try {
    problem = (await response.json()) as Schema['Problem'];
  } catch {
    // no body in the contract's form: what answers is not ringfence web
  }
  if (!problem?.message) return new Refusal('failed', `the server answers ${response.status} without a reason`);
  return new Refusal(problem.kind ?? 'failed', problem.message, problem.hint ?? null, problem);
}

async function call<O extends keyof operations>(method: string, path: string, body?: Body<O>, signal?: AbortSignal): Promise<Answer<O>> {
  const response = await send(method, path, body, signal);
  if (!response.ok) throw await refusal(response);
  if (response.status === 204) return undefined as Answer<O>;
  return read<Answer<O>>(response, signal);
}

const group = (name: string) => `/api/groups/${encodeURIComponent(name)}`;
const query = (values: Record<string, string | number | null | undefined>) => {
  const set = Object.entries(values).filter(([, v]) => v != null) as [string, string | number][];
  return set.length ? `?${new URLSearchParams(set.map(([k, v]) => [k, String(v)]))}` : '';
};

let sampleTag: string | null = null;

/** The newest live sample, or null while there is no newer one than the last call gave. */
async function newest(signal?: AbortSignal): Promise<Schema['Sample'] | null> {
  const response = await send('GET', '/api/sample', undefined, signal, sampleTag ? { 'If-None-Match': sampleTag } : {});
  if (response.status === 304) return null;
  if (!response.ok) throw await refusal(response);
  const sample = await read<Schema['Sample']>(response, signal);
  sampleTag = response.headers.get('ETag');
  return sample;
}

/** Figures that the server gives in one answer. */
const AT_ONCE = 8;

/** Figures of a group, or of the machine, over time; more than the server gives at once come in several answers. */
async function series(name: string | null, figures: string[], from: number, to: number, points: number, signal?: AbortSignal): Promise<Schema['Series']> {
  const common = { group: name, from_ms: Math.round(from), to_ms: Math.round(to), points };
  const parts = Array.from({ length: Math.ceil(figures.length / AT_ONCE) }, (_, i) => figures.slice(i * AT_ONCE, (i + 1) * AT_ONCE));
  const ask = (part: string[]) => call<'series'>('GET', `/api/series${query({ ...common, figures: part.join(',') })}`, undefined, signal);
  const [first, ...rest] = await Promise.all(parts.map(ask));
  if (!first || !rest.length) return first!;
  const merged = { ...first, columns: [...first.columns], values: { ...first.values } };
  for (const other of rest) {
    // the log may have grown between two answers
    const index = new Map(other.at_ms.map((t, i) => [t, i]));
    merged.columns.push(...other.columns);
    for (const [figure, list] of Object.entries(other.values)) merged.values[figure] = first.at_ms.map(t => list[index.get(t) ?? -1] ?? null);
  }
  return merged;
}

export const api = {
  openSession: (token: string) => call<'openSession'>('POST', '/api/session', { token }),
  endSession: () => call<'endSession'>('DELETE', '/api/session'),
  session: (signal?: AbortSignal) => call<'session'>('GET', '/api/session', undefined, signal),
  machine: (signal?: AbortSignal) => call<'machine'>('GET', '/api/machine', undefined, signal),
  groups: (signal?: AbortSignal) => call<'groups'>('GET', '/api/groups', undefined, signal),
  owners: (signal?: AbortSignal) => call<'owners'>('GET', '/api/owners', undefined, signal),
  newest,
  sampleAt: (at_ms: number, signal?: AbortSignal) => call<'sample'>('GET', `/api/sample${query({ at_ms })}`, undefined, signal),
  group: (name: string, signal?: AbortSignal) => call<'group'>('GET', group(name), undefined, signal),
  why: (name: string, seconds: number, signal?: AbortSignal) => call<'why'>('GET', `${group(name)}/why${query({ for: seconds })}`, undefined, signal),
  planSettings: (name: string, change: Schema['Change']) => call<'planSettings'>('POST', `${group(name)}/settings/plan`, change),
  changeSettings: (name: string, change: Schema['Change']) => call<'changeSettings'>('PATCH', `${group(name)}/settings`, change),
  log: () => call<'log'>('GET', '/api/log'),
  series,
  layout: () => call<'layout'>('GET', '/api/layout'),
  check: (text: string, signal?: AbortSignal) => call<'check'>('POST', '/api/check', { text }, signal),
  plan: (text: string, signal?: AbortSignal) => call<'plan'>('POST', '/api/plan', { text }, signal),
  apply: (body: Schema['Apply']) => call<'apply'>('POST', '/api/apply', body),
  confirm: (generation: number) => call<'confirm'>('POST', '/api/confirm', { generation }),
  undo: (to: number | null, expected_generation: number) => call<'undo'>('POST', '/api/undo', { to, expected_generation }),
  history: (signal?: AbortSignal) => call<'history'>('GET', '/api/history', undefined, signal),
  lab: () => call<'lab'>('GET', '/api/lab'),
  report: (id: string) => `/api/lab/${encodeURIComponent(id)}/report`,
  simulate: (body: Schema['Simulate'], signal?: AbortSignal) => call<'simulate'>('POST', '/api/simulate', body, signal),
};
