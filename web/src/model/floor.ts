// Where each package, node, L3, core and CPU of a machine stands on the map: pure geometry, in pixels, for a given width. It never
// draws, and knows nothing of groups.

export interface CpuFacts {
  id: number;
  package: number;
  node: number;
  l3: number;
  core: number;
}

export type Kind = 'package' | 'node' | 'l3' | 'core';

/** A part of the machine with the parts that it consists of; a core has CPUs instead. */
export interface Part {
  kind: Kind;
  id: number;
  parts: Part[];
  cpus: number[];
}

export interface Box {
  kind: Kind;
  part: Part;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Cell {
  cpu: number;
  x: number;
  y: number;
  size: number;
}

export interface Floor {
  width: number;
  height: number;
  size: number;
  boxes: Box[];
  cells: Cell[];
}

/** Heights of the headings, gaps between parts and margins inside of them, by kind. */
export const HEAD = { package: 22, node: 36, l3: 15, core: 0 } as const;
const GAP = { package: 14, node: 10, l3: 5, core: 3 } as const;
const PAD = { package: 0, node: 8, l3: 3, core: 0 } as const;
const BETWEEN_THREADS = 1;
const SMALLEST = 14;
/** With few CPUs there is room for larger cells; with many these would only be farther apart. */
const LARGEST = { few: 150, many: 96 };
const FEW = 16;
/** Smaller cells have no heading of their L3: it would be as high as they are. */
export const LEAST_FOR_L3 = 20;

/** The parts of a machine, from packages down to cores, in the order of their numbers. */
export function parts(cpus: readonly CpuFacts[]): Part[] {
  const levels: { kind: Kind; key: (cpu: CpuFacts) => number }[] = [
    { kind: 'package', key: c => c.package },
    { kind: 'node', key: c => c.node },
    { kind: 'l3', key: c => c.l3 },
    { kind: 'core', key: c => c.core },
  ];
  const split = (some: readonly CpuFacts[], level: number): Part[] => {
    const { kind, key } = levels[level]!;
    const groups = new Map<number, CpuFacts[]>();
    for (const cpu of some) {
      const list = groups.get(key(cpu));
      if (list) list.push(cpu);
      else groups.set(key(cpu), [cpu]);
    }
    return [...groups]
      .sort(([a], [b]) => a - b)
      .map(([id, list]) => ({
        kind,
        id,
        parts: level + 1 < levels.length ? split(list, level + 1) : [],
        cpus: list.map(c => c.id),
      }));
  };
  return split(cpus, 0);
}

interface Block {
  w: number;
  h: number;
  place: (x: number, y: number, floor: Floor) => void;
}

/** How a floor is laid: the side of a cell, in how many columns packages and nodes stand at least, and the shape of an L3. */
interface Manner {
  size: number;
  columns: { package: number; node: number; l3: number; core: number };
  shape: number;
}

/** The floor with the largest cells that fit into WIDTH and HEIGHT; where even small ones do not, the lowest with those. */
export function layOut(machine: readonly Part[], width: number, height: number): Floor {
  const manners: Omit<Manner, 'size'>[] = [];
  for (const packages of [1, 2]) {
    for (const nodes of [1, 2, 4]) {
      for (const shape of [1.2, 2.2, 4.5]) manners.push({ columns: { package: packages, node: nodes, l3: 1, core: 1 }, shape });
    }
  }
  let best: { manner: Manner; h: number } | null = null;
  for (const manner of manners) {
    const found = largest(machine, manner, width, height);
    const smaller = best && found.manner.size < best.manner.size;
    const higher = best && found.manner.size === best.manner.size && found.h >= best.h;
    if (!smaller && !higher) best = found;
  }
  const all = row(machine, width, best!.manner);
  const floor: Floor = { width: all.w, height: all.h, size: best!.manner.size, boxes: [], cells: [] };
  all.place(0, 0, floor);
  return floor;
}

function largest(machine: readonly Part[], manner: Omit<Manner, 'size'>, width: number, height: number): { manner: Manner; h: number } {
  let low = SMALLEST;
  let high = machine.reduce((sum, p) => sum + p.cpus.length, 0) > FEW ? LARGEST.many : LARGEST.few;
  let h = row(machine, width, { ...manner, size: low }).h;
  while (low < high) {
    const size = Math.ceil((low + high) / 2);
    const all = row(machine, width, { ...manner, size });
    if (all.h <= height && all.w <= width) {
      low = size;
      h = all.h;
    } else {
      high = size - 1;
    }
  }
  return { manner: { ...manner, size: low }, h };
}

function block(part: Part, width: number, manner: Manner): Block {
  if (part.kind === 'core') return core(part, manner.size);
  const pad = PAD[part.kind];
  const head = part.kind === 'l3' && manner.size < LEAST_FOR_L3 ? pad : HEAD[part.kind];
  const body = row(part.parts, width - 2 * pad, manner);
  const w = Math.max(body.w + 2 * pad, Math.min(width, MINIMUM[part.kind]));
  const h = head + body.h + (part.kind === 'package' ? 0 : pad);
  return {
    w,
    h,
    place(x, y, floor) {
      floor.boxes.push({ kind: part.kind, part, x, y, w, h });
      body.place(x + pad, y + head, floor);
    },
  };
}

/** How wide a part is at least, for its heading. */
const MINIMUM = { package: 150, node: 150, l3: 0 } as const;

function core(part: Part, size: number): Block {
  const n = part.cpus.length;
  const w = n * size + (n - 1) * BETWEEN_THREADS;
  return {
    w,
    h: size,
    place(x, y, floor) {
      floor.boxes.push({ kind: 'core', part, x, y, w, h: size });
      part.cpus.forEach((cpu, i) => floor.cells.push({ cpu, x: x + i * (size + BETWEEN_THREADS), y, size }));
    },
  };
}

/** Parts in lines of the same number each: as wide as the width allows, or, of cores, near the shape (width by height). */
function row(parts: readonly Part[], width: number, manner: Manner): Block {
  const n = parts.length;
  const kind = parts[0]!.kind;
  const gap = GAP[kind];
  const least = Math.min(n, manner.columns[kind]);
  const all = parts.map(p => block(p, (width + gap) / least - gap, manner));
  const w = Math.max(...all.map(b => b.w));
  const h = Math.max(...all.map(b => b.h));
  const most = Math.max(1, Math.floor((width + gap) / (w + gap)));
  let columns = Math.min(n, most);
  if (kind === 'core') columns = Math.min(columns, Math.max(1, nice(n, Math.sqrt((n * manner.shape * (h + gap)) / (w + gap)))));
  else columns = Math.ceil(n / Math.ceil(n / columns));
  const lines = Math.ceil(n / columns);
  return {
    w: columns * w + (columns - 1) * gap,
    h: lines * h + (lines - 1) * gap,
    place(x, y, floor) {
      all.forEach((b, i) => b.place(x + (i % columns) * (w + gap), y + Math.floor(i / columns) * (h + gap), floor));
    },
  };
}

/** The divisor of N next to WISH, where one is near: full lines are read more easily. */
function nice(n: number, wish: number): number {
  const rounded = Math.round(wish);
  for (let d = 0; d <= Math.ceil(rounded / 2); d += 1) {
    for (const c of [rounded + d, rounded - d]) if (c >= 1 && c <= n && n % c === 0) return c;
  }
  return Math.max(1, Math.min(n, rounded));
}
