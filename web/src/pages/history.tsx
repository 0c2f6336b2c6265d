// The recorder's log: one scrubber moves what all pages show.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { hostNow, live, seekSoon, shownOwners, shownSample } from '../live';
import { figures } from '../model/figures';
import { bytes, cpus, duration, moment, percent } from '../model/format';
import { href } from '../model/router';
import { useStore } from '../model/store';
import { Chart } from '../parts/chart';
import { Chosen, MachineMap } from '../parts/map';
import { steps } from '../parts/shortcuts';
import { useAsk, type Asked } from '../parts/use-ask';
import { Bar, Busy, Empty, Hint, Note, Refused, Tag } from '../parts/words';
import { NotRecorded } from './map';
import { FIGURES, number, Panels } from './group-charts';

const MACHINE = ['machine.cpu.idle', 'machine.cpu.iowait', 'machine.memory.total', 'machine.memory.available', 'machine.cpu.pressure.some', 'machine.memory.pressure.some', 'machine.io.pressure.some'];
const SPANS = [
  [600, '10 min'],
  [3600, '1 h'],
  [21600, '6 h'],
  [86400, '1 day'],
  [604800, '1 week'],
  [0, 'all of the log'],
] as const;

export function HistoryPage() {
  const log = useAsk(() => api.log(), 'log', 30000);
  return (
    <>
      <div class="page-head">
        <h1>History</h1>
        {log.value?.begins_ms != null && (
          <span class="quantity">
            {log.value.directory}: {moment(log.value.begins_ms / 1000, hostNow() / 1000)} to {moment((log.value.ends_ms ?? hostNow()) / 1000, hostNow() / 1000)}
          </span>
        )}
      </div>
      {log.refusal && log.refusal.kind !== 'gone' && <Refused refusal={log.refusal} />}
      {log.value && <Log log={log.value} />}
      {!log.value && !log.refusal && <Busy>Looking for the recorder's log …</Busy>}
    </>
  );
}

function Log({ log }: { log: Schema['Log'] }) {
  const { begins_ms: begins, ends_ms: ends } = log;
  if (begins == null || ends == null) {
    return (
      <>
        <Empty>
          There is no log to show: {log.problem ?? `none in ${log.directory}`}.
          <Hint text={log.hint} />
        </Empty>
        <Since />
      </>
    );
  }
  return (
    <>
      {log.problem && <Note kind="warning">The log is damaged: {log.problem}. What is whole is shown.</Note>}
      <Timeline begins={begins} ends={ends} damage={log.problem} />
    </>
  );
}

/** Without a log: what came since the page is open. */
function Since() {
  const recent = useStore(live, l => l.recent);
  const machine = useStore(live, l => l.machine);
  if (recent.times.length < 2) return null;
  return (
    <section>
      <h2>Since this page is open</h2>
      <div class="charts">
        <Chart title="CPUs busy" times={recent.times} lines={[{ name: `of ${machine?.cpus.length ?? ''}`, colour: '--line-1', values: recent.busy }]} format={cpus} />
        <Chart title="Memory used" times={recent.times} lines={[{ name: 'used', colour: '--line-3', values: recent.memory }]} format={bytes} binary />
      </div>
    </section>
  );
}

function Timeline({ begins, ends, damage }: { begins: number; ends: number; damage: string | null | undefined }) {
  const at = useStore(live, l => l.at);
  const [span, setSpan] = useState(3600);
  const [end, setEnd] = useState<number | null>(null);
  const length = span ? Math.min(span * 1000, ends - begins) : ends - begins;
  const to = Math.min(end ?? ends, ends);
  const from = Math.max(begins, to - length);
  const step = Math.max(1000, Math.round(length / 600000) * 1000);
  const asked = useAsk(signal => api.series(null, MACHINE, from, to, 600, signal), `${Math.round(from / 10000)} ${Math.round(to / 10000)}`);
  const go = (time: number) => {
    const aim = Math.max(begins, Math.min(ends, time));
    if (aim < from || aim > to) setEnd(Math.min(ends, aim + length / 2));
    seekSoon(aim);
  };
  useEffect(() => {
    const press = (direction: -1 | 1) => go((live.value.at ?? ends) + direction * step);
    steps.add(press);
    return () => void steps.delete(press);
  });
  return (
    <>
      <Scrubber from={from} to={to} at={at} step={step} go={go} />
      <p class="actions inline">
        <button type="button" onClick={() => go((at ?? ends) - length / 20)} aria-label="Back by a twentieth of the time shown">
          ◂ Back
        </button>
        <button type="button" onClick={() => go((at ?? ends) + length / 20)} disabled={at == null} aria-label="On by a twentieth of the time shown">
          On ▸
        </button>
        <label>
          Show{' '}
          <select value={span} onChange={e => setSpan(Number(e.currentTarget.value))}>
            {SPANS.map(([s, text]) => (
              <option key={s} value={s}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <When from={begins} to={ends} at={at} go={go} />
      </p>
      {asked.refusal && asked.refusal.kind !== 'gone' && <Refused refusal={asked.refusal} />}
      <MachineCharts asked={asked} at={at} damage={damage} />
      <Then from={from} to={to} />
    </>
  );
}

function Scrubber({ from, to, at, step, go }: { from: number; to: number; at: number | null; step: number; go: (time: number) => void }) {
  const shown = at == null ? to : Math.max(from, Math.min(to, at));
  return (
    <div class="scrubber">
      <input
        type="range"
        aria-label="Moment of the log"
        aria-valuetext={at == null ? 'now' : moment(at / 1000, hostNow() / 1000)}
        min={from}
        max={to}
        step={step}
        value={shown}
        onInput={e => go(Number(e.currentTarget.value))}
      />
      <div class="scrubber-ends" aria-hidden="true">
        <span>{moment(from / 1000, hostNow() / 1000)}</span>
        <b>{at == null ? 'live' : moment(at / 1000, hostNow() / 1000)}</b>
        <span>{moment(to / 1000, hostNow() / 1000)}</span>
      </div>
    </div>
  );
}

/** A moment by its date and time. */
function When({ from, to, at, go }: { from: number; to: number; at: number | null; go: (time: number) => void }) {
  const local = (ms: number) => new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  return (
    <label>
      At{' '}
      <input
        type="datetime-local"
        step="1"
        min={local(from)}
        max={local(to)}
        value={local(at ?? to)}
        onChange={e => {
          const time = new Date(e.currentTarget.value).getTime();
          if (Number.isFinite(time)) go(time);
        }}
      />
    </label>
  );
}

/** DAMAGE of the log: said already. */
function MachineCharts({ asked, at, damage }: { asked: Asked<Schema['Series']>; at: number | null; damage: string | null | undefined }) {
  const series = asked.value;
  const online = useStore(live, l => l.machine?.cpus.filter(c => c.online).length ?? 0);
  const parts = useMemo(() => {
    if (!series) return null;
    const of = (figure: string) => (series.values[figure] ?? []).map(number);
    const [idle, iowait, total, available] = MACHINE.slice(0, 4).map(of);
    const busy = idle!.map((v, i) => (v == null ? null : Math.max(0, online - v - (iowait![i] ?? 0))));
    const used = total!.map((v, i) => (v == null || available![i] == null ? null : v - available![i]!));
    const line = (name: string, figure: string, colour: string) => ({ name, colour, values: of(figure) });
    return {
      times: series.at_ms.map(t => t / 1000),
      busy: [{ name: `busy of ${online}`, colour: '--line-1', values: busy }],
      memory: [{ name: 'used', colour: '--line-3', values: used }],
      waiting: [line('CPU', MACHINE[4]!, '--line-6'), line('memory', MACHINE[5]!, '--line-4'), line('I/O', MACHINE[6]!, '--line-7')],
    };
  }, [series, online]);
  if (!parts) return asked.refusal ? null : <Busy>Reading the log …</Busy>;
  if (parts.times.length === 0) return <Empty>The log has no sample in this time.</Empty>;
  const common = { times: parts.times, mark: at == null ? null : at / 1000, onPick: (s: number) => seekSoon(s * 1000), height: 110 };
  return (
    <>
      {series?.problem && series.problem !== damage && <Note kind="warning">The log is damaged: {series.problem}. What is whole is shown.</Note>}
      <div class="charts">
        <Chart title="CPUs busy" lines={parts.busy} format={cpus} {...common} />
        <Chart title="Memory" lines={parts.memory} format={bytes} binary {...common} />
        <Chart title="Waiting, share of time" lines={parts.waiting} format={percent} {...common} />
      </div>
    </>
  );
}

/** The machine and its groups at the moment. */
function Then({ from, to }: { from: number; to: number }) {
  const machine = useStore(live, l => l.machine);
  const owners = useStore(live, shownOwners);
  const sample = useStore(live, shownSample);
  const at = useStore(live, l => l.at);
  const [cpu, setCpu] = useState<number | null>(null);
  const [group, setGroup] = useState<string | null>(null);
  if (!machine) return null;
  return (
    <div class="moment">
      <section>
        <h2>
          {at == null ? 'Now' : moment((sample?.at_ms ?? at) / 1000, hostNow() / 1000)}
          {at != null && <small>{duration(Math.round((hostNow() - at) / 1000))} ago</small>}
        </h2>
        <MachineMap machine={machine} owners={owners} sample={sample?.machine ?? null} label="Machine map at this moment" height={320} selected={cpu} onSelect={setCpu} />
        <Chosen cpu={cpu} machine={machine} owners={owners} sample={sample} />
        {at != null && <NotRecorded />}
      </section>
      <section>
        <h2>Groups by CPU</h2>
        <Top sample={sample} chosen={group} choose={setGroup} />
        {group && <OneGroup name={group} from={from} to={to} at={at} />}
      </section>
    </div>
  );
}

function Top({ sample, chosen, choose }: { sample: Schema['Sample'] | null; chosen: string | null; choose: (group: string) => void }) {
  const f = figures(sample);
  const order = useRef<string[]>([]);
  if (!f || !sample) return <Empty>No sample at this moment.</Empty>;
  const rows = sample.rows
    .map(r => ({ group: r.group, used: f.number(r.group, 'cpu.usage') }))
    .sort((a, b) => (b.used ?? 0) - (a.used ?? 0))
    .slice(0, 12);
  order.current = rows.map(r => r.group);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Groups by CPU">
    <table>
      <thead>
        <tr>
          <th scope="col">Group</th>
          <th scope="col" class="num">
            CPUs
          </th>
          <th scope="col" class="num">
            Memory
          </th>
          <th scope="col" class="num">
            Wait: CPU
          </th>
          <th scope="col">
            <span class="unseen">Charts</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(r => (
          <tr key={r.group} class={r.group === chosen ? 'chosen-row' : undefined}>
            <th scope="row">
              {live.value.owners?.owners.some(o => o.group === r.group) && <Tag group={r.group} />} <a href={href('groups', r.group)}>{r.group}</a>
            </th>
            <td class="num">
              {cpus(r.used)}
              <Bar used={r.used} of={f.number(r.group, 'cpu.allotment')} />
            </td>
            <td class="num">{bytes(f.number(r.group, 'memory.current'))}</td>
            <td class="num">{percent(f.number(r.group, 'cpu.pressure.some'))}</td>
            <td class="num">
              <button type="button" class="quiet" aria-pressed={r.group === chosen} aria-label={`Charts of ${r.group}`} onClick={() => choose(r.group)}>
                Charts
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
    </div>
  );
}

function OneGroup({ name, from, to, at }: { name: string; from: number; to: number; at: number | null }) {
  const asked = useAsk(signal => api.series(name, FIGURES, from, to, 600, signal), `${name} ${Math.round(from / 10000)} ${Math.round(to / 10000)}`);
  if (asked.refusal) return <Refused refusal={asked.refusal} />;
  if (!asked.value) return <Busy>Reading the log …</Busy>;
  return (
    <>
      <h3>{name}</h3>
      <Panels series={asked.value} mark={at} small />
    </>
  );
}
