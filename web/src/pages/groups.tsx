// The groups as a tree with what each uses of its allotment; below it, or beside it, the page of one group.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Schema } from '../client';
import { live, shownSample } from '../live';
import { figures, type Figures } from '../model/figures';
import { bytes, count, cpus, percent, plural, rate } from '../model/format';
import { href } from '../model/router';
import { useStore } from '../model/store';
import { mark } from '../model/marks';
import { matching, visible } from '../model/tree';
import { Bar, Busy, Empty } from '../parts/words';
import { GroupPage } from './group';

export function GroupsPage({ rest }: { rest: string }) {
  return rest ? <GroupPage name={rest} key={rest} /> : <Tree />;
}

const ROW = 34;
const OVERSCAN = 6;
// what is closed stays so while one looks at a group and comes back
let closedBefore: ReadonlySet<string> = new Set();

function Tree() {
  const groups = useStore(live, l => l.groups);
  const sample = useStore(live, shownSample);
  const [closed, setClosed] = useState(closedBefore);
  const [filter, setFilter] = useState('');
  const [sort, setSort] = useState<string | null>(null);
  closedBefore = closed;
  const f = figures(sample);
  const rows = useMemo(() => {
    if (!groups) return [];
    if (filter || sort) {
      const found = matching(groups.groups, filter);
      return sort && f ? [...found].sort((a, b) => (f.number(b.group, sort) ?? -1) - (f.number(a.group, sort) ?? -1)) : found;
    }
    return visible(groups.groups, closed);
    // sorted again with each sample only where an order was chosen
  }, [groups, closed, filter, sort, sort ? sample : null]);
  if (!groups) return <Busy>Reading the groups …</Busy>;
  const toggle = (group: string, open?: boolean) => {
    const next = new Set(closed);
    if (open ?? closed.has(group)) next.delete(group);
    else next.add(group);
    setClosed(next);
  };
  return (
    <>
      <div class="page-head">
        <h1>Groups</h1>
        <input
          type="search"
          data-filter
          aria-label="Filter groups by name or unit"
          placeholder="Filter  /"
          value={filter}
          onInput={e => setFilter(e.currentTarget.value)}
          onKeyDown={e => e.key === 'Escape' && setFilter('')}
        />
        <label>
          Order{' '}
          <select value={sort ?? ''} onChange={e => setSort(e.currentTarget.value || null)}>
            <option value="">tree</option>
            <option value="cpu.usage">CPU</option>
            <option value="memory.current">memory</option>
            <option value="cpu.pressure.some">waiting for CPU</option>
            <option value="io.wbytes">bytes written</option>
            <option value="pids.current">tasks</option>
          </select>
        </label>
        <span class="quantity" role="status">
          {filter ? `${rows.length} of ${plural(groups.groups.length, 'group')}` : plural(groups.groups.length, 'group')}
        </span>
      </div>
      {groups.groups.length === 0 ? (
        <Empty>There is no group yet. A layout makes some: see the page Plan. On the command line: ringfence create NAME</Empty>
      ) : rows.length === 0 ? (
        <Empty>No group or unit has “{filter}” in its name.</Empty>
      ) : (
        <Rows rows={rows} all={groups.groups} f={f} closed={closed} toggle={toggle} flat={!!(filter || sort)} />
      )}
      {sample?.notes.map(n => (
        <p key={n} class="empty">
          {n}
        </p>
      ))}
    </>
  );
}

interface RowsProps {
  rows: readonly Schema['GroupInfo'][];
  all: readonly Schema['GroupInfo'][];
  f: Figures | null;
  closed: ReadonlySet<string>;
  toggle: (group: string, open?: boolean) => void;
  flat: boolean;
}

/** Only rows that can be seen are drawn. */
function Rows({ rows, all, f, closed, toggle, flat }: RowsProps) {
  const host = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 40 });
  const [active, setActive] = useState<string | null>(null);
  const parents = useMemo(() => new Set(all.map(g => g.parent)), [all]);
  useEffect(() => {
    const look = () => {
      const top = -host.current!.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
      const many = Math.ceil(innerHeight / ROW) + 2 * OVERSCAN;
      setView(v => (v.first === first && v.count === many ? v : { first, count: many }));
    };
    look();
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', look);
    };
  }, [rows.length]);

  const index = Math.max(0, rows.findIndex(r => r.group === active));
  const go = (to: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))]!;
    setActive(row.group);
    const box = host.current!.getBoundingClientRect();
    const y = box.top + rows.indexOf(row) * ROW;
    if (y < 60) scrollBy(0, y - 60);
    else if (y + ROW > innerHeight - 10) scrollBy(0, y + ROW - innerHeight + 10);
  };
  const press = (event: KeyboardEvent) => {
    const row = rows[index]!;
    const page = Math.max(1, Math.floor(innerHeight / ROW) - 3);
    const open = parents.has(row.group) && !closed.has(row.group);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'ArrowDown') go(active === null ? 0 : index + 1);
    else if (event.key === 'ArrowUp') go(index - 1);
    else if (event.key === 'PageDown') go(index + page);
    else if (event.key === 'PageUp') go(index - page);
    else if (event.key === 'Home') go(0);
    else if (event.key === 'End') go(rows.length - 1);
    else if (event.key === 'Enter') location.hash = href('groups', row.group);
    else if (event.key === 'ArrowRight' && parents.has(row.group) && !open) toggle(row.group, true);
    else if (event.key === 'ArrowLeft' && open && !flat) toggle(row.group, false);
    else if (event.key === 'ArrowLeft' && row.parent) go(rows.findIndex(r => r.group === row.parent));
    else return;
    event.preventDefault();
  };
  const shown = rows.slice(view.first, view.first + view.count);
  const id = (group: string) => `row-${all.findIndex(g => g.group === group)}`;
  return (
    <div
      class="tree"
      role="treegrid"
      aria-label="Groups"
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      aria-activedescendant={active !== null && shown.some(r => r.group === active) ? id(active) : undefined}
      onKeyDown={press}
      onFocus={() => active === null && setActive(rows[view.first]?.group ?? null)}
    >
      <div class="tree-row tree-head" role="row" aria-rowindex={1}>
        <span role="columnheader">Group</span>
        <span role="columnheader">CPUs of allotment</span>
        <span role="columnheader">Memory of limit</span>
        <span role="columnheader" class="c-wait">
          Wait: CPU
        </span>
        <span role="columnheader" class="c-wait">
          memory
        </span>
        <span role="columnheader" class="c-wait">
          I/O
        </span>
        <span role="columnheader" class="c-throttled">
          Throttled
        </span>
        <span role="columnheader" class="c-io">
          Read, written
        </span>
        <span role="columnheader" class="c-tasks">
          Tasks
        </span>
        <span role="columnheader" class="c-set">
          CPU set
        </span>
        <span role="columnheader" class="c-unit">
          Unit
        </span>
      </div>
      <div ref={host} role="rowgroup" class="tree-body" style={{ height: `${rows.length * ROW}px` }}>
        {shown.map((g, i) => (
          <Row
            key={g.group}
            id={id(g.group)}
            g={g}
            f={f}
            flat={flat}
            at={view.first + i}
            open={parents.has(g.group) && !flat ? !closed.has(g.group) : null}
            active={g.group === active}
            toggle={toggle}
            choose={setActive}
          />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  id: string;
  g: Schema['GroupInfo'];
  f: Figures | null;
  flat: boolean;
  at: number;
  open: boolean | null;
  active: boolean;
  toggle: (group: string) => void;
  choose: (group: string) => void;
}

function Row({ id, g, f, flat, at, open, active, toggle, choose }: RowProps) {
  const n = (column: string) => f?.number(g.group, column) ?? null;
  const used = n('cpu.usage');
  const of = n('cpu.allotment');
  const memory = n('memory.current');
  const limit = n('memory.limit');
  const frozen = n('frozen');
  const owns = g.cpus != null && f != null && live.value.owners?.owners.some(o => o.group === g.group);
  return (
    <div
      id={id}
      role="row"
      class={`tree-row${active ? ' active' : ''}`}
      aria-level={flat ? 1 : g.depth + 1}
      aria-rowindex={at + 2}
      aria-expanded={open ?? undefined}
      aria-selected={active}
      style={{ top: `${at * ROW}px` }}
      onClick={() => choose(g.group)}
      onDblClick={() => (location.hash = href('groups', g.group))}
    >
      <span role="gridcell" class="c-name" style={{ paddingLeft: flat ? '0' : `${Math.min(g.depth, 6) * 16}px` }}>
        <button type="button" tabIndex={-1} class="twist" aria-hidden="true" disabled={open === null} onClick={e => (e.stopPropagation(), toggle(g.group))}>
          {open === null ? '' : open ? '▾' : '▸'}
        </button>
        {owns && (
          <i class="tag" style={{ background: `var(--owner-${mark(g.group).colour})` }} aria-hidden="true">
            {mark(g.group).letter}
          </i>
        )}
        <a tabIndex={-1} href={href('groups', g.group)} title={g.group}>
          {flat ? g.group : g.label}
        </a>
        {frozen ? <b class="flag">frozen</b> : null}
      </span>
      <span role="gridcell">
        <span>
          <span class="used">{cpus(used)}</span>
          {used != null && <span class="of"> of {of == null ? 'all' : cpus(of)}</span>}
        </span>
        <Bar used={used} of={of} />
      </span>
      <span role="gridcell">
        <span>
          <span class="used">{bytes(memory)}</span>
          {memory != null && <span class="of"> of {limit == null ? 'all' : bytes(limit)}</span>}
        </span>
        <Bar used={memory} of={limit} />
      </span>
      <Share value={n('cpu.pressure.some')} kind="c-wait" />
      <Share value={n('memory.pressure.some')} kind="c-wait" />
      <Share value={n('io.pressure.some')} kind="c-wait" />
      <Share value={n('cpu.throttled')} kind="c-throttled" />
      <span role="gridcell" class="c-io">
        {rate(n('io.rbytes'))}, {rate(n('io.wbytes'))}
      </span>
      <span role="gridcell" class="c-tasks">
        {count(n('pids.current'))}
      </span>
      <span role="gridcell" class="c-set set" title={g.cpus ?? undefined}>
        {g.cpus ?? ''}
      </span>
      <span role="gridcell" class="c-unit" title={g.unit ?? undefined}>
        {g.unit ?? ''}
      </span>
    </div>
  );
}

/** A share of time; what is much stands out by its weight. */
function Share({ value, kind }: { value: number | null; kind: string }) {
  return (
    <span role="gridcell" class={`${kind}${value != null && value >= 0.1 ? ' much' : value ? '' : ' none'}`}>
      {percent(value)}
    </span>
  );
}
