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

/** Heights of the headings and gaps between parts, by kind. */
export const HEAD = { package: 22, node: 40, l3: 15, core: 0 } as const;
const GAP = { package: 14, node: 10, l3: 6, core: 2 } as const;
const PAD = { package: 0, node: 8, l3: 4, core: 0 } as const;
const BETWEEN_THREADS = 1;
const SMALLEST = 15;
const LARGEST = 96;

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

/** The floor with the largest cells that fit into WIDTH and HEIGHT; where even small ones do not, it is higher than that. */
export function layOut(machine: readonly Part[], width: number, height: number): Floor {
  let low = SMALLEST;
  let high = LARGEST;
  let best = lay(machine, width, low);
  while (low < high) {
    const size = Math.ceil((low + high) / 2);
    const floor = lay(machine, width, size);
    if (floor.height <= height && floor.width <= width) {
      best = floor;
      low = size;
    } else {
      high = size - 1;
    }
  }
  return best;
}

function lay(machine: readonly Part[], width: number, size: number): Floor {
  const floor: Floor = { width: 0, height: 0, size, boxes: [], cells: [] };
  const all = row(machine.map(p => block(p, width, size)), width, GAP.package);
  floor.width = all.w;
  floor.height = all.h;
  all.place(0, 0, floor);
  return floor;
}

function block(part: Part, width: number, size: number): Block {
  if (part.kind === 'core') return core(part, size);
  const pad = PAD[part.kind];
  const head = HEAD[part.kind];
  const inner = width - 2 * pad;
  const child = part.parts[0]!.kind;
  const body = row(part.parts.map(p => block(p, inner, size)), inner, GAP[child], child === 'core' ? 2.2 : undefined);
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
const MINIMUM = { package: 150, node: 150, l3: 56 } as const;

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

/** Blocks in lines of the same number each: as wide as the width allows, or near the shape (width by height) where one is given. */
function row(blocks: Block[], width: number, gap: number, shape?: number): Block {
  const n = blocks.length;
  const w = Math.max(...blocks.map(b => b.w));
  const h = Math.max(...blocks.map(b => b.h));
  const most = Math.max(1, Math.floor((width + gap) / (w + gap)));
  let columns = Math.min(n, most);
  if (shape) columns = Math.min(columns, Math.max(1, nice(n, Math.sqrt((n * shape * (h + gap)) / (w + gap)))));
  const lines = Math.ceil(n / columns);
  if (!shape) columns = Math.ceil(n / lines);
  return {
    w: columns * w + (columns - 1) * gap,
    h: lines * h + (lines - 1) * gap,
    place(x, y, floor) {
      blocks.forEach((b, i) => b.place(x + (i % columns) * (w + gap), y + Math.floor(i / columns) * (h + gap), floor));
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
