// One group: why it waits, its settings, its tasks, and what it used.
import type { Schema } from '../client';
import { api } from '../client';
import { hostNow, live, shownSample } from '../live';
import { figures } from '../model/figures';
import { bytes, count, cpus, moment, percent, plural } from '../model/format';
import { href } from '../model/router';
import { useStore } from '../model/store';
import { CpuList, Busy, Note, Refused, Tag } from '../parts/words';
import { useAsk } from '../parts/use-ask';
import { GroupCharts } from './group-charts';
import { Settings } from './settings';
import { Tasks } from './tasks';
import { Why } from './why';
import { Fact } from './map';

export function GroupPage({ name }: { name: string }) {
  const info = useStore(live, l => l.groups?.groups.find(g => g.group === name) ?? null);
  const past = useStore(live, l => l.at !== null);
  const known = useStore(live, l => l.groups !== null);
  const asked = useAsk(signal => api.group(name, signal), name, 2000);
  return (
    <>
      <Heading name={name} info={info} />
      {known && !info && (
        <Note kind="warning" live>
          There is no group {name} now. It may have been removed while you looked. <a href={href('groups')}>All groups</a>
        </Note>
      )}
      {asked.refusal && asked.refusal.kind !== 'gone' && asked.refusal.kind !== 'session_over' && <Refused refusal={asked.refusal} />}
      {past && known && <Note>Why it waits, its settings and its tasks are those of now: the log has the figures above and the charts.</Note>}
      <div class="group-body">
        <div>
          <Why name={name} />
          <section>
            <h2>History</h2>
            <GroupCharts name={name} />
          </section>
        </div>
        <div>
          {asked.value ? <Settings group={asked.value} changed={asked.again} /> : asked.refusal ? null : <Busy>Reading the settings …</Busy>}
          {asked.value && <Tasks group={asked.value} />}
          {asked.value && <Events group={asked.value} />}
        </div>
      </div>
    </>
  );
}

function Heading({ name, info }: { name: string; info: Schema['GroupInfo'] | null }) {
  const f = figures(useStore(live, shownSample));
  const owns = useStore(live, l => l.owners?.owners.find(o => o.group === name) ?? null);
  const n = (column: string) => f?.number(name, column) ?? null;
  const of = (value: number | null, text: (v: number | null) => string) => (value == null ? 'no limit' : text(value));
  const parts = name.split('/').filter(Boolean);
  return (
    <header class="group-head">
      <nav aria-label="Groups above" class="crumbs">
        <a href={href('groups')}>Groups</a>
        {parts.slice(0, -1).map((p, i) => (
          <>
            {' / '}
            <a href={href('groups', parts.slice(0, i + 1).join('/'))}>{p}</a>
          </>
        ))}
      </nav>
      <h1>
        {owns && <Tag group={name} />} {parts.at(-1) ?? '/'}
      </h1>
      <dl class="facts">
        <Fact name="CPUs" value={`${cpus(n('cpu.usage'))} of ${of(n('cpu.allotment'), cpus)}`} room={13} />
        <Fact name="Memory" value={`${bytes(n('memory.current'))} of ${of(n('memory.limit'), bytes)}`} room={15} />
        <Fact name="Waiting for CPU" value={percent(n('cpu.pressure.some'))} room={6} />
        <Fact name="for memory" value={percent(n('memory.pressure.some'))} room={6} />
        <Fact name="for I/O" value={percent(n('io.pressure.some'))} room={6} />
        <Fact name="Throttled" value={percent(n('cpu.throttled'))} room={6} />
        <Fact name="Tasks" value={count(n('pids.current'))} room={5} />
        {info?.unit && <Fact name="Unit" value={info.unit} />}
        {info?.elastic && <Fact name="Elastic" value={`${info.elastic.min} to ${info.elastic.max} CPUs`} />}
        {owns?.exclusive && <Fact name="CPUs" value="exclusive" />}
        {n('frozen') ? <Fact name="State" value="frozen" /> : null}
      </dl>
      {info?.cpus && (
        <p class="crumbs">
          Runs on CPUs <CpuList text={info.cpus} />
          {owns?.isolate.length ? `, which are isolated (${owns.isolate.join(', ')})` : ''}
        </p>
      )}
    </header>
  );
}

function Events({ group }: { group: Schema['Group'] }) {
  // of both, the newest first
  const events = [...group.resizes, ...group.kills].sort((a, b) => b.at_ms - a.at_ms);
  if (!group.limits.length && !events.length) return null;
  return (
    <section>
      <h2>Limits met, resizes and kills</h2>
      <ul class="plain">
        {group.limits.map(l => (
          <li key={l.name + l.meaning}>
            <b>{l.name}</b>: {plural(l.count, 'time')}: {l.meaning}
          </li>
        ))}
        {events.map(r => (
          <li key={r.at_ms + r.sentence}>
            {moment(r.at_ms / 1000, hostNow() / 1000)}: {r.sentence}
          </li>
        ))}
      </ul>
    </section>
  );
}
