// Figures of a sample by group and column, looked up by name: columns may come in any order, and groups come and go.
import type { Schema } from '../client';

export type Value = Schema['Value'];

export class Figures {
  private readonly columns = new Map<string, number>();
  private readonly rows = new Map<string, readonly Value[]>();

  constructor(readonly sample: Schema['Sample']) {
    sample.columns.forEach((c, i) => this.columns.set(c.name, i));
    for (const row of sample.rows) this.rows.set(row.group, row.values);
  }

  has(group: string): boolean {
    return this.rows.has(group);
  }

  value(group: string, column: string): Value {
    const index = this.columns.get(column);
    return index === undefined ? null : (this.rows.get(group)?.[index] ?? null);
  }

  number(group: string, column: string): number | null {
    const value = this.value(group, column);
    return typeof value === 'number' ? value : null;
  }
}

let last: Figures | null = null;

/** The figures of a sample; those of the last one are not made again. */
export function figures(sample: Schema['Sample'] | null): Figures | null {
  if (!sample) return null;
  if (last?.sample !== sample) last = new Figures(sample);
  return last;
}
