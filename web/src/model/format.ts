// Figures as text, in the units of the command line: 1.4G, 150%, 2.3 ms. Absent figures are an en dash.

export const NONE = '–';

export function digits(value: number, significant = 3): string {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 100) return value.toFixed(0);
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(places, significant)).replace(/\.?0+$/, '');
}

const BINARY = ['', 'K', 'M', 'G', 'T', 'P', 'E'];

/** Bytes with a binary prefix, as layouts have them: 400M, 1.4G. */
export function bytes(value: number | null | undefined): string {
  if (value == null) return NONE;
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= 1024 && step < BINARY.length - 1) {
    scaled /= 1024;
    step += 1;
  }
  return `${digits(scaled)}${BINARY[step]}`;
}

/** Bytes a second. */
export const rate = (value: number | null | undefined) => (value == null ? NONE : `${bytes(value)}/s`);

export function count(value: number | null | undefined): string {
  if (value == null) return NONE;
  if (value >= 1e6) return `${digits(value / 1e6)}m`;
  if (value >= 1e4) return `${digits(value / 1e3)}k`;
  return digits(value);
}

/** A share of 1 as per cent. */
export function percent(share: number | null | undefined): string {
  if (share == null || !Number.isFinite(share)) return NONE;
  const value = share * 100;
  return `${value >= 9.95 || value < 0.05 ? value.toFixed(0) : value.toFixed(1)} %`;
}

export const cpus = (value: number | null | undefined) => (value == null ? NONE : value.toFixed(value < 9.995 ? 2 : 1));

/** A time of SECONDS with one unit: 23 ms, 2.8 s, 4 min, 3 h. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size < 1e-3) return `${digits(seconds * 1e6)} us`;
  if (size < 1) return `${digits(seconds * 1e3)} ms`;
  if (size < 120) return `${digits(seconds)} s`;
  if (size < 7200) return `${digits(seconds / 60)} min`;
  if (size < 172800) return `${digits(seconds / 3600)} h`;
  return `${digits(seconds / 86400)} d`;
}

const pad = (value: number) => String(value).padStart(2, '0');

/** SECONDS since 1970 as the time of day of this browser, with the date where it is another day than TODAY, by the host's clock. */
export function moment(seconds: number | null | undefined, today: number): string {
  if (seconds == null) return NONE;
  const at = new Date(seconds * 1000);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  if (at.toDateString() === new Date(today * 1000).toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

/** Words for how long ago SECONDS since 1970 are, seen from NOW. */
export function ago(seconds: number, now: number): string {
  const age = now - seconds;
  return age < 1.5 ? 'now' : `${duration(Math.round(age))} ago`;
}

export const plural = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** Is this of `why` a command to be copied? What only a layout can give comes as a sentence. */
export const isCommand = (hint: string) => /^(ringfence|sudo|systemctl|echo|kill) /.test(hint);
