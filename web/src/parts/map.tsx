// The machine as a drawing that the keyboard can walk: each CPU by the arrow keys, with its facts in words.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Schema } from '../client';
import { layOut, parts, type Cell } from '../model/floor';
import { count, percent } from '../model/format';
import { Painter } from './painter';

export interface MapProps {
  machine: Schema['Machine'];
  owners: Schema['Owners'] | null;
  sample: Schema['MachineSample'] | null;
  label: string;
  height?: number;
  outlined?: ReadonlySet<number>;
  selected?: number | null;
  onSelect?: (cpu: number | null) => void;
  onOpen?: (cpu: number) => void;
}

export function MachineMap(props: MapProps) {
  const { machine, owners, sample, selected = null } = props;
  const host = useRef<HTMLDivElement>(null);
  const lower = useRef<HTMLCanvasElement>(null);
  const upper = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const newest = useRef(sample);
  newest.current = sample;
  const [width, setWidth] = useState(0);
  const tree = useMemo(() => parts(machine.cpus.map(facts)), [machine]);
  const floor = useMemo(() => (width ? layOut(tree, width, props.height ?? 560) : null), [tree, width, props.height]);

  useLayoutEffect(() => {
    const place = host.current!;
    const measure = () => setWidth(Math.floor(place.clientWidth));
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(place);
    return () => sizes.disconnect();
  }, []);

  useEffect(() => {
    painter.current = new Painter(lower.current!, upper.current!);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const recolour = () => {
      painter.current?.recolour();
      painter.current?.fill(newest.current);
    };
    scheme.addEventListener('change', recolour);
    return () => scheme.removeEventListener('change', recolour);
  }, []);

  useEffect(() => {
    if (!floor || !painter.current) return;
    painter.current.show({ floor, machine, owners, outlined: props.outlined });
    painter.current.fill(newest.current);
  }, [floor, machine, owners, props.outlined]);

  useEffect(() => painter.current?.fill(sample), [sample]);

  const at = (event: PointerEvent | MouseEvent): Cell | undefined => {
    const box = host.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return floor?.cells.find(c => x >= c.x && x < c.x + c.size && y >= c.y && y < c.y + c.size);
  };
  const cell = floor?.cells.find(c => c.cpu === selected);
  const walk = (event: KeyboardEvent) => {
    if (!floor || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' && selected != null) props.onOpen?.(selected);
    else if (event.key === 'Escape' && selected != null) props.onSelect?.(null);
    else {
      const next = neighbour(floor.cells, cell, event.key);
      if (!next) return;
      props.onSelect?.(next.cpu);
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class="map"
      ref={host}
      role="application"
      aria-roledescription="machine map"
      aria-label={`${props.label}. Arrow keys go from CPU to CPU, Enter opens the owner`}
      tabIndex={0}
      onKeyDown={walk}
      onFocus={() => selected == null && floor?.cells[0] && props.onSelect?.(floor.cells[0].cpu)}
      onClick={e => props.onSelect?.(at(e)?.cpu ?? null)}
      onDblClick={e => {
        const hit = at(e);
        if (hit) props.onOpen?.(hit.cpu);
      }}
    >
      <canvas ref={lower} aria-hidden="true" />
      <canvas ref={upper} aria-hidden="true" />
      {cell && <div class="map-cursor" style={{ left: `${cell.x - 3}px`, top: `${cell.y - 3}px`, width: `${cell.size + 6}px`, height: `${cell.size + 6}px` }} />}
      <p class="unseen" aria-live="polite">
        {cell ? describe(cell.cpu, machine, owners, newest.current) : ''}
      </p>
    </div>
  );
}

/** What the cursor of a map is on, for who sees it. */
export function Chosen({ cpu, machine, owners, sample }: { cpu: number | null; machine: Schema['Machine']; owners: Schema['Owners'] | null; sample: Schema['Sample'] | null }) {
  return <p class="chosen">{cpu == null ? 'Click a CPU, or walk there with the arrow keys.' : describe(cpu, machine, owners, sample?.machine ?? null)}</p>;
}

const facts = (c: Schema['MachineCpu']) => ({
  id: c.id,
  package: c.package ?? -1,
  node: c.node ?? -1,
  l3: c.l3 ?? -1,
  core: c.core ?? 1_000_000 + c.id,
});

/** A CPU in one sentence. */
function describe(cpu: number, machine: Schema['Machine'], owners: Schema['Owners'] | null, sample: Schema['MachineSample'] | null): string {
  const index = machine.cpus.findIndex(c => c.id === cpu);
  const place = machine.cpus[index];
  if (!place) return '';
  const info = owners?.cpus.find(c => c.id === cpu);
  const names = (list: number[]) => list.map(i => owners!.owners[i]!.group).join(', ');
  const words = [`CPU ${cpu}`];
  if (place.package != null) words.push(`package ${place.package}`);
  if (place.node != null) words.push(`node ${place.node}`);
  if (!place.online) words.push('offline');
  if (info) words.push(info.owners.length ? `owned by ${names(info.owners)}` : 'every group may use it');
  if (info?.borrowers.length) words.push(`lent to ${names(info.borrowers)}`);
  if (info?.isolated) words.push('isolated');
  const busy = sample?.cpus[index];
  if (busy != null) words.push(`${percent(busy)} busy`);
  const irq = sample?.interrupts[index];
  if (irq != null) words.push(`${count(irq)} interrupts per second`);
  return words.join(', ');
}

const WAYS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The next cell in the arrow's direction: the nearest, with what is aside counted twice. */
function neighbour(cells: readonly Cell[], from: Cell | undefined, key: string): Cell | undefined {
  if (key === 'Home') return cells[0];
  if (key === 'End') return cells.at(-1);
  const way = WAYS[key];
  if (!way) return undefined;
  if (!from) return cells[0];
  let best: Cell | undefined;
  let least = Infinity;
  for (const c of cells) {
    const along = (c.x - from.x) * way[0] + (c.y - from.y) * way[1];
    if (along <= 0) continue;
    const aside = Math.abs((c.x - from.x) * way[1]) + Math.abs((c.y - from.y) * way[0]);
    const far = along + 2 * aside;
    if (far < least) {
      least = far;
      best = c;
    }
  }
  return best;
}
