// What a group used over time: of the recorder's log, else what came since the page is open.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { hostNow, live, seek } from '../live';
import { figures } from '../model/figures';
import { bytes, cpus, percent, rate } from '../model/format';
import { useStore } from '../model/store';
import { Chart, type Line } from '../parts/chart';
import { useAsk } from '../parts/use-ask';
import { Busy, Note } from '../parts/words';

export const FIGURES = ['cpu.usage', 'cpu.allotment', 'memory.current', 'memory.limit', 'cpu.pressure.some', 'memory.pressure.some', 'io.pressure.some', 'cpu.throttled', 'io.rbytes', 'io.wbytes'];
const SPANS = [
  [0, 'since the page is open'],
  [600, '10 min'],
  [3600, '1 h'],
  [21600, '6 h'],
  [86400, '1 day'],
] as const;
const KEEP = 900;

export function GroupCharts({ name }: { name: string }) {
  const log = useAsk(() => api.log(), 'log');
  const at = useStore(live, l => l.at);
  const [span, setSpan] = useState<number | null>(null);
  const hasLog = log.value?.begins_ms != null;
  const seconds = span ?? (hasLog ? 600 : 0);
  const end = at == null ? 'now' : Math.round(at / (seconds * 100 + 1));
  const asked = useAsk(
    seconds
      ? signal => {
          const to = Math.max(at == null ? 0 : at + seconds * 500, at == null ? hostNow() : 0);
          return api.series(name, FIGURES, to - seconds * 1000, to, 400, signal);
        }
      : null,
    `${name} ${seconds} ${end}`,
    at == null && seconds ? 10000 : 0,
  );
  const recent = useRecent(name);
  const series = seconds ? asked.value : recent;
  return (
    <>
      <p class="actions inline">
        <label>
          Time{' '}
          <select value={seconds} onChange={e => setSpan(Number(e.currentTarget.value))}>
            {SPANS.filter(([s]) => s === 0 || hasLog).map(([s, text]) => (
              <option key={s} value={s}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {!hasLog && log.value && <span class="numbers">Earlier figures need the recorder{log.value.hint ? `: ${log.value.hint}` : ''}</span>}
      </p>
      {seconds > 0 && asked.refusal && <Note kind="warning">{asked.refusal.message}</Note>}
      {seconds > 0 && asked.value?.problem && <Note kind="warning">The log is damaged: {asked.value.problem}. What is whole is shown.</Note>}
      {series ? <Panels series={series} mark={at} /> : !asked.refusal && <Busy>Reading the log …</Busy>}
    </>
  );
}

/** The figures that came while this component was on show. */
function useRecent(name: string): Schema['Series'] {
  const kept = useRef<Schema['Series']>({ at_ms: [], columns: [], values: {} });
  const [, redraw] = useState(0);
  const sample = useStore(live, l => l.sample);
  useEffect(() => {
    const f = figures(sample);
    if (!f || sample?.at_ms == null) return;
    const before = kept.current;
    const values = Object.fromEntries(FIGURES.map(c => [c, [...(before.values[c] ?? []).slice(-KEEP), f.value(name, c)]]));
    kept.current = { at_ms: [...before.at_ms.slice(-KEEP), sample.at_ms], columns: [], values };
    redraw(sample.seq);
  }, [sample, name]);
  return kept.current;
}

export function Panels({ series, mark, small = false }: { series: Schema['Series']; mark: number | null; small?: boolean }) {
  const times = useMemo(() => series.at_ms.map(t => t / 1000), [series]);
  const lines = useMemo(() => {
    const make = (name: string, column: string, colour: string): Line => ({ name, colour, values: (series.values[column] ?? times.map(() => null)).map(number) });
    return {
      cpu: [make('used', 'cpu.usage', '--line-1'), make('allotment', 'cpu.allotment', '--line-0')],
      memory: [make('used', 'memory.current', '--line-3'), make('limit', 'memory.limit', '--line-0')],
      waiting: [make('CPU', 'cpu.pressure.some', '--line-6'), make('memory', 'memory.pressure.some', '--line-4'), make('I/O', 'io.pressure.some', '--line-7'), make('throttled', 'cpu.throttled', '--line-0')],
      io: [make('read', 'io.rbytes', '--line-8'), make('written', 'io.wbytes', '--line-2')],
    };
  }, [series]);
  const at = mark == null ? null : mark / 1000;
  const pick = (seconds: number) => void seek(seconds * 1000);
  const common = { times, mark: at, onPick: pick, height: small ? 100 : 130 };
  return (
    <div class="charts">
      <Chart title="CPUs" lines={lines.cpu} format={cpus} {...common} />
      <Chart title="Memory" lines={lines.memory} format={bytes} binary {...common} />
      <Chart title="Waiting, share of time" lines={lines.waiting} format={percent} {...common} />
      <Chart title="I/O" lines={lines.io} format={rate} binary {...common} />
    </div>
  );
}

export const number = (v: Schema['Value']): number | null => (typeof v === 'number' ? v : null);
