// Who owns which CPU, how busy each is, and what interrupts it.
import { useMemo, useState } from 'preact/hooks';
import type { Schema } from '../client';
import { live, shownOwners, shownSample } from '../live';
import { figures } from '../model/figures';
import { bytes, count, cpus, percent, plural } from '../model/format';
import { href } from '../model/router';
import { useStore } from '../model/store';
import { Chosen, MachineMap } from '../parts/map';
import { Bar, Busy, CpuList, Empty, Tag } from '../parts/words';

export function MapPage() {
  const machine = useStore(live, l => l.machine);
  const owners = useStore(live, shownOwners);
  const past = useStore(live, l => l.at !== null);
  const sample = useStore(live, shownSample);
  const [selected, setSelected] = useState<number | null>(null);
  if (!machine) return <Busy>Reading the machine …</Busy>;
  const owner = (cpu: number) => {
    const first = owners?.cpus.find(c => c.id === cpu)?.owners[0];
    return first === undefined ? undefined : owners?.owners[first]?.group;
  };
  const open = (cpu: number) => {
    const group = owner(cpu);
    if (group) location.hash = href('groups', group);
  };
  return (
    <div class="map-page">
      <div class="map-head">
        <h1>{machine.hostname}</h1>
        <Summary machine={machine} sample={sample} />
      </div>
      <div class="map-body">
        <div class="map-place">
          <MachineMap
            machine={machine}
            owners={owners}
            sample={sample?.machine ?? null}
            label={`Machine map of ${plural(machine.cpus.length, 'CPU')}`}
            height={Math.max(240, innerHeight - 190)}
            selected={selected}
            onSelect={setSelected}
            onOpen={open}
          />
          <Chosen cpu={selected} machine={machine} owners={owners} sample={sample} />
        </div>
        <aside class="legend" aria-label="Owners">
          {past ? <NotRecorded /> : <OwnersTable owners={owners} sample={sample} chosen={selected == null ? undefined : owner(selected)} />}
          <Legend owned={!past} />
        </aside>
      </div>
      <NodesTable machine={machine} sample={sample} />
      <CpusTable machine={machine} owners={owners} sample={sample} />
    </div>
  );
}

function Summary({ machine, sample }: { machine: Schema['Machine']; sample: Schema['Sample'] | null }) {
  const online = machine.cpus.filter(c => c.online).length;
  const busy = sample?.machine.cpus.reduce<number>((sum, c) => sum + (c ?? 0), 0);
  const m = sample?.machine;
  const used = m?.memory_total != null && m.memory_available != null ? m.memory_total - m.memory_available : null;
  return (
    <dl class="facts">
      <Fact name="CPUs busy" value={busy == null ? '–' : `${cpus(busy)} of ${online}`} room={String(online).length * 2 + 6} />
      <Fact name="Memory" value={used == null ? '–' : `${bytes(used)} of ${bytes(m!.memory_total)}`} room={15} />
      <Fact name="Waiting for CPU" value={percent(m?.pressure.cpu)} room={6} />
      <Fact name="for memory" value={percent(m?.pressure.memory)} room={6} />
      <Fact name="for I/O" value={percent(m?.pressure.io)} room={6} />
      <Fact name="Load" value={m?.load == null ? '–' : m.load.toFixed(2)} room={7} />
      {machine.model && <Fact name="Model" value={machine.model} />}
    </dl>
  );
}

/** A figure with its name. ROOM: characters that it may need, so that nothing moves when it gets longer. */
export function Fact({ name, value, room }: { name: string; value: string; room?: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd style={room ? { minWidth: `${room}ch` } : undefined}>{value}</dd>
    </div>
  );
}

/** Of an earlier time. */
export function NotRecorded() {
  return (
    <Empty>
      Who owned which CPU then is not known: the recorder's log has the figures of CPUs and groups, not the CPUs that each group might use. What was applied when is on the page <a href={href('plan')}>Plan</a>.
    </Empty>
  );
}

function OwnersTable({ owners, sample, chosen }: { owners: Schema['Owners'] | null; sample: Schema['Sample'] | null; chosen: string | undefined }) {
  const f = figures(sample);
  if (!owners) return <Busy>Reading who owns which CPU …</Busy>;
  if (owners.owners.length === 0) return <Empty>No group has CPUs of its own: every group may use every CPU. The page Plan shows what a layout would change.</Empty>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Owners of CPUs">
      <table class="owners">
        <thead>
          <tr>
            <th scope="col">Owner</th>
            <th scope="col">CPUs</th>
            <th scope="col" class="num">
              Use
            </th>
          </tr>
        </thead>
        <tbody>
          {owners.owners.map(o => {
            const used = f?.number(o.group, 'cpu.usage') ?? null;
            const of = f?.number(o.group, 'cpu.allotment') ?? null;
            return (
              <tr key={o.group} class={o.group === chosen ? 'chosen-row' : undefined}>
                <th scope="row">
                  <span class="who">
                    <Tag group={o.group} /> <a href={href('groups', o.group)}>{o.group}</a>
                  </span>
                </th>
                <td>
                  <CpuList text={o.cpus} />
                  <Notes owner={o} />
                </td>
                <td class="num">
                  {cpus(used)}
                  <Bar used={used} of={of} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Notes({ owner }: { owner: Schema['Owner'] }) {
  const words: string[] = [];
  if (owner.exclusive) words.push('exclusive');
  if (owner.elastic) words.push(`elastic ${owner.elastic.min} to ${owner.elastic.max}`);
  if (owner.borrows) words.push('borrows idle CPUs');
  if (owner.isolate.length) words.push(`keeps off: ${owner.isolate.join(', ')}`);
  return words.length ? <small>{words.join(' · ')}</small> : null;
}

function Legend({ owned }: { owned: boolean }) {
  return (
    <ul class="how">
      <li>
        <i class="eg fill" /> filled from below by use
      </li>
      {owned && (
        <>
          <li>
            <i class="eg lent" /> hatched: lent to another group
          </li>
          <li>
            <i class="eg ringed" /> ringed: isolated
          </li>
        </>
      )}
      <li>
        <i class="eg irq" /> line on top: interrupts per second, full at 100,000, each fifth ten times more
      </li>
      <li>
        <i class="eg memory" /> bar of a node: memory of programs, then caches of files
      </li>
      {owned && (
        <li>
          <i class="eg any" />
          <span>
            no letter: every group may use it; <b>A+</b>: several share it
          </span>
        </li>
      )}
    </ul>
  );
}

function NodesTable({ machine, sample }: { machine: Schema['Machine']; sample: Schema['Sample'] | null }) {
  return (
    <Lazy title="Memory of each node as a table">
      {() => (
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">CPUs</th>
              <th scope="col" class="num">
                Memory
              </th>
              <th scope="col" class="num">
                Free
              </th>
              <th scope="col" class="num">
                Caches of files
              </th>
            </tr>
          </thead>
          <tbody>
            {machine.nodes.map(n => {
              const now = sample?.machine.nodes.find(m => m.id === n.id);
              return (
                <tr key={n.id}>
                  <th scope="row">{n.id}</th>
                  <td class="set">{n.cpus || 'none'}</td>
                  <td class="num">{bytes(now?.total ?? n.memory_total_bytes)}</td>
                  <td class="num">{bytes(now?.free)}</td>
                  <td class="num">{bytes(now?.file)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Lazy>
  );
}

function CpusTable({ machine, owners, sample }: { machine: Schema['Machine']; owners: Schema['Owners'] | null; sample: Schema['Sample'] | null }) {
  const info = useMemo(() => new Map(owners?.cpus.map(c => [c.id, c])), [owners]);
  const names = (list: number[] | undefined) => list?.map(i => owners!.owners[i]!.group).join(', ') ?? '';
  return (
    <Lazy title="Each CPU as a table">
      {() => (
        <table>
          <thead>
            <tr>
              {['CPU', 'Package', 'Node', 'L3', 'Core', 'Owner', 'Lent to', 'Isolated'].map(h => (
                <th scope="col" key={h}>
                  {h}
                </th>
              ))}
              <th scope="col" class="num">
                Busy
              </th>
              <th scope="col" class="num">
                Interrupts/s
              </th>
            </tr>
          </thead>
          <tbody>
            {machine.cpus.map((c, i) => (
              <tr key={c.id}>
                <th scope="row">{c.id}</th>
                <td>{c.package ?? '–'}</td>
                <td>{c.node ?? '–'}</td>
                <td>{c.l3 ?? '–'}</td>
                <td>{c.core ?? '–'}</td>
                <td>{c.online ? (owners ? names(info.get(c.id)?.owners) || 'every group' : 'not recorded') : 'offline'}</td>
                <td>{names(info.get(c.id)?.borrowers)}</td>
                <td>{info.get(c.id)?.isolated ? 'yes' : ''}</td>
                <td class="num">{percent(sample?.machine.cpus[i])}</td>
                <td class="num">{count(sample?.machine.interrupts[i])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Lazy>
  );
}

/** A part that is only drawn while it is open. */
export function Lazy({ title, children }: { title: string; children: () => preact.ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="lazy" onToggle={e => setOpen(e.currentTarget.open)}>
      <summary>{title}</summary>
      {open && (
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          {children()}
        </div>
      )}
    </details>
  );
}
