// Draws the map on two canvases that lie on each other: what seldom changes (tints, letters, hatches, rings, headings) and what changes
// each second (fill by use, interrupts, memory). Only cells whose picture differs are drawn again.
import type { Schema } from '../client';
import { mark } from '../model/marks';
import { HEAD, LEAST_FOR_L3, type Cell, type Floor } from '../model/floor';
import { bytes } from '../model/format';
import { write } from '../model/cpuset';

export interface Scene {
  floor: Floor;
  machine: Schema['Machine'];
  owners: Schema['Owners'] | null;
  /** CPUs to outline, as those whose owner a plan changes */
  outlined?: ReadonlySet<number>;
}

interface Palette {
  ink: string;
  ink2: string;
  ink3: string;
  rule: string;
  sheet: string;
  mark: string;
  free: string;
  freeFill: string;
  fill: string[];
  tint: string[];
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  const all = (name: string) => Array.from({ length: 9 }, (_, i) => get(`--${name}-${i}`));
  return {
    ink: get('--ink'),
    ink2: get('--ink-2'),
    ink3: get('--ink-3'),
    rule: get('--rule'),
    sheet: get('--sheet'),
    mark: get('--mark'),
    free: get('--tint-0'),
    freeFill: get('--owner-0'),
    fill: all('owner'),
    tint: all('tint'),
  };
}

const FONT = 'system-ui, sans-serif';

export class Painter {
  private colours = palette();
  private readonly under: CanvasRenderingContext2D;
  private readonly over: CanvasRenderingContext2D;
  private scene: Scene | null = null;
  private drawn: Int32Array = new Int32Array();
  private heads = new Map<string, string>();
  private byCpu = new Map<number, { owners: number[]; colours: number[] }>();

  constructor(
    private readonly lower: HTMLCanvasElement,
    private readonly upper: HTMLCanvasElement,
  ) {
    this.under = lower.getContext('2d')!;
    this.over = upper.getContext('2d')!;
  }

  /** The colour scheme changed. */
  recolour(): void {
    this.colours = palette();
    if (this.scene) this.show(this.scene);
  }

  /** Draws all that the machine and the owners say. */
  show(scene: Scene): void {
    this.scene = scene;
    const { floor } = scene;
    const ratio = Math.min(3, devicePixelRatio || 1);
    for (const canvas of [this.lower, this.upper]) {
      canvas.width = Math.max(1, Math.ceil(floor.width * ratio));
      canvas.height = Math.max(1, Math.ceil(floor.height * ratio));
      canvas.style.width = `${floor.width}px`;
      canvas.style.height = `${floor.height}px`;
    }
    this.under.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.over.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawn = new Int32Array(floor.cells.length).fill(-1);
    this.heads.clear();
    this.byCpu.clear();
    scene.owners?.cpus.forEach(c => {
      const colours = c.owners.map(i => mark(scene.owners!.owners[i]!.group).colour);
      this.byCpu.set(c.id, { owners: c.owners, colours });
    });
    this.over.clearRect(0, 0, floor.width, floor.height);
    for (const box of floor.boxes) this.heading(box);
    const info = new Map(scene.owners?.cpus.map(c => [c.id, c]));
    const online = new Map(scene.machine.cpus.map(c => [c.id, c.online]));
    for (const cell of floor.cells) this.face(cell, info.get(cell.cpu), online.get(cell.cpu) ?? true);
  }

  private heading(box: Floor['boxes'][number]): void {
    const c = this.over;
    const { ink, ink2, ink3, rule } = this.colours;
    c.textBaseline = 'alphabetic';
    c.textAlign = 'left';
    if (box.kind === 'package') {
      c.fillStyle = ink;
      c.font = `600 13px ${FONT}`;
      c.fillText(box.part.id < 0 ? 'Package' : `Package ${box.part.id}`, box.x, box.y + 14);
    } else if (box.kind === 'node') {
      c.strokeStyle = rule;
      c.lineWidth = 1;
      c.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1);
      c.fillStyle = ink2;
      c.font = `600 12px ${FONT}`;
      c.fillText(box.part.id < 0 ? 'Node' : `Node ${box.part.id}`, box.x + 8, box.y + 15);
    } else if (box.kind === 'l3' && this.scene!.floor.size >= LEAST_FOR_L3) {
      c.fillStyle = ink3;
      c.font = `10px ${FONT}`;
      c.fillText(clip(c, `L3  ${write(box.part.cpus)}`, box.w - 6), box.x + 3, box.y + 11);
    }
  }

  /** What stands still on a cell. */
  private face(cell: Cell, info: Schema['CpuOwners'] | undefined, online: boolean): void {
    const c = this.over;
    const { x, y, size } = cell;
    const { ink, ink2 } = this.colours;
    if (!online) {
      c.strokeStyle = ink2;
      c.setLineDash([2, 2]);
      c.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      c.setLineDash([]);
    }
    if (info?.borrowers.length) hatch(c, x, y, size, ink);
    if (info?.isolated) ring(c, x, y, size, ink, this.colours.sheet);
    if (this.scene?.outlined?.has(cell.cpu)) {
      // dashed, as a whole line is the ring of an isolated CPU
      c.strokeStyle = this.colours.mark;
      c.lineWidth = 2;
      c.setLineDash([3, 2]);
      c.strokeRect(x + 1, y + 1, size - 2, size - 2);
      c.setLineDash([]);
    }
    this.letters(cell, info);
  }

  private letters(cell: Cell, info: Schema['CpuOwners'] | undefined): void {
    const c = this.over;
    const { x, y, size } = cell;
    const owners = info?.owners.map(i => this.scene!.owners!.owners[i]!.group) ?? [];
    const text = owners.length === 0 ? '' : owners.length === 1 ? mark(owners[0]!).letter : `${mark(owners[0]!).letter}+`;
    const inset = info?.isolated ? 4 : 3;
    c.fillStyle = this.colours.ink;
    if (size < 30) {
      if (!text) return;
      c.font = `600 ${size < 20 ? 9 : 11}px ${FONT}`;
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      backed(c, text, x + size / 2, y + size / 2 + 0.5, info, this.tintOf(cell.cpu));
      return;
    }
    c.textBaseline = 'top';
    c.textAlign = 'left';
    c.font = `600 ${size < 48 ? 11 : 13}px ${FONT}`;
    c.fillText(text, x + inset + 1, y + inset + 3);
    c.textAlign = 'right';
    c.font = `${size < 48 ? 9 : 11}px ${FONT}`;
    // in small cells below the letter rather than beside it: four figures do not fit there
    if (size < 56) {
      c.textBaseline = 'bottom';
      c.fillText(String(cell.cpu), x + size - inset, y + size - inset);
    } else {
      c.fillText(String(cell.cpu), x + size - inset - 1, y + inset + 4);
    }
    if (size >= 64 && owners[0]) {
      c.textAlign = 'left';
      c.textBaseline = 'bottom';
      c.font = `11px ${FONT}`;
      const name = owners.length > 1 ? `${owners.length} groups` : owners[0];
      c.fillText(clip(c, name, size - 2 * inset - 2), x + inset + 1, y + size - inset - 1);
    }
  }

  private tintOf(cpu: number): string {
    const first = this.byCpu.get(cpu)?.colours[0];
    return first === undefined ? this.colours.free : this.colours.tint[first]!;
  }

  /** Draws the figures of a sample; nothing where its picture is as it was. */
  fill(sample: Schema['MachineSample'] | null): void {
    if (!this.scene) return;
    const { floor, machine } = this.scene;
    const index = new Map(machine.cpus.map((c, i) => [c.id, i]));
    floor.cells.forEach((cell, n) => {
      const i = index.get(cell.cpu) ?? -1;
      const level = Math.round((sample?.cpus[i] ?? 0) * cell.size);
      const irq = Math.round(interruptScale(sample?.interrupts[i] ?? 0) * (cell.size - 2));
      const picture = level * 256 + irq;
      if (this.drawn[n] === picture) return;
      this.drawn[n] = picture;
      this.level(cell, level, irq);
    });
    for (const box of floor.boxes) if (box.kind === 'node') this.memory(box, sample);
  }

  private level(cell: Cell, level: number, irq: number): void {
    const c = this.under;
    const { x, y, size } = cell;
    const colours = this.byCpu.get(cell.cpu)?.colours ?? [];
    const stripes = colours.length ? colours.slice(0, 3) : [0];
    const width = size / stripes.length;
    c.clearRect(x, y, size, size);
    stripes.forEach((colour, i) => {
      c.fillStyle = this.colours.tint[colour]!;
      c.fillRect(x + i * width, y, width, size);
      c.fillStyle = this.colours.fill[colour]!;
      c.fillRect(x + i * width, y + size - level, width, level);
    });
    if (irq > 0) {
      c.fillStyle = this.colours.ink;
      c.fillRect(x + 1, y + 1, irq, size < 30 ? 1.5 : 2);
    }
  }

  private memory(box: Floor['boxes'][number], sample: Schema['MachineSample'] | null): void {
    const node = sample?.nodes.find(n => n.id === box.part.id);
    const total = node?.total ?? null;
    const used = total != null && node?.free != null ? total - node.free : null;
    // caches of files give way to programs: they are in the bar, not in the figure
    const own = used == null ? null : Math.max(0, used - (node?.file ?? 0));
    const text = own == null || total == null ? '' : `${bytes(own)} of ${bytes(total)}`;
    const w = box.w - 16;
    const cache = node?.file != null && total ? Math.round((w * node.file) / total) : 0;
    const full = used != null && total ? Math.round((w * used) / total) : 0;
    const picture = `${text}|${cache}|${full}`;
    const at = `${box.x},${box.y}`;
    if (this.heads.get(at) === picture) return;
    this.heads.set(at, picture);
    const c = this.under;
    const y = box.y + 22;
    c.clearRect(box.x + 1, box.y + 1, box.w - 2, HEAD.node - 4);
    if (!text) return;
    c.fillStyle = this.colours.ink2;
    c.font = `11px ${FONT}`;
    c.textAlign = 'right';
    c.textBaseline = 'alphabetic';
    // beside the node's name, as far as there is room: the table has it in any case
    if (box.w >= 110) c.fillText(box.w < 160 ? bytes(own) : text, box.x + box.w - 8, box.y + 15);
    c.fillStyle = this.colours.rule;
    c.fillRect(box.x + 8, y, w, 6);
    c.fillStyle = this.colours.ink3;
    c.fillRect(box.x + 8, y, full, 6);
    c.fillStyle = this.colours.freeFill;
    c.fillRect(box.x + 8 + Math.max(0, full - cache), y, Math.min(cache, full), 6);
  }
}

/** 0 to 1 for 1 to 100,000 interrupts a second, by their logarithm. */
function interruptScale(rate: number): number {
  return rate < 1 ? 0 : Math.min(1, Math.log10(rate) / 5);
}

function hatch(c: CanvasRenderingContext2D, x: number, y: number, size: number, ink: string): void {
  c.save();
  c.beginPath();
  c.rect(x, y, size, size);
  c.clip();
  c.strokeStyle = ink;
  c.globalAlpha = 0.55;
  c.lineWidth = 1;
  const step = size < 30 ? 5 : 8;
  c.beginPath();
  for (let d = step / 2; d < size * 2; d += step) {
    c.moveTo(x + d, y);
    c.lineTo(x + d - size, y + size);
  }
  c.stroke();
  c.restore();
}

function ring(c: CanvasRenderingContext2D, x: number, y: number, size: number, ink: string, sheet: string): void {
  c.strokeStyle = sheet;
  c.lineWidth = 1;
  c.strokeRect(x + 2, y + 2, size - 4, size - 4);
  c.strokeStyle = ink;
  c.lineWidth = size < 30 ? 1.5 : 2;
  c.strokeRect(x + c.lineWidth / 2, y + c.lineWidth / 2, size - c.lineWidth, size - c.lineWidth);
}

/** A letter, on a patch of the cell's tint where a hatch would cross it. */
function backed(c: CanvasRenderingContext2D, text: string, x: number, y: number, info: Schema['CpuOwners'] | undefined, tint: string): void {
  if (info?.borrowers.length) {
    const ink = c.fillStyle;
    const w = c.measureText(text).width + 3;
    c.fillStyle = tint;
    c.fillRect(x - w / 2, y - 6, w, 11);
    c.fillStyle = ink;
  }
  c.fillText(text, x, y);
}

function clip(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let short = text;
  while (short.length > 1 && c.measureText(`${short}…`).width > width) short = short.slice(0, -1);
  return `${short}…`;
}
