// Samples of the mock: who uses what at a number of seconds. Pure.
import { noise, parseSet } from './machines.mjs';

export const COLUMNS = [
  ['cpu.usage', 'cpus', 'CPU time used by the group and those below it'],
  ['cpu.allotment', 'cpus', 'CPUs that the group may use'],
  ['cpu.throttled', 'share', 'Share of the periods in which the quota stopped the group'],
  ['cpu.pressure.some', 'share', 'Time in which some task waited for a CPU'],
  ['memory.current', 'bytes', 'Memory that the group uses'],
  ['memory.limit', 'bytes', 'Memory that the group may use'],
  ['memory.pressure.some', 'share', 'Time in which some task waited for memory'],
  ['io.rbytes', 'bytes_per_second', 'Bytes read'],
  ['io.wbytes', 'bytes_per_second', 'Bytes written'],
  ['io.pressure.some', 'share', 'Time in which some task waited for I/O'],
  ['pids.current', 'count', 'Tasks'],
  ['frozen', 'count', 'Are all tasks stopped?'],
].map(([name, unit, help]) => ({ name, unit, help }));

const wave = (t, i) => 0.75 + 0.2 * Math.sin(t / 23 + i) + 0.1 * (noise(Math.floor(t), i) - 0.5);

export function ownersOf(state) {
  const deepest = state.groups.filter(g => g.cpus);
  const owners = deepest.map(g => ({ group: g.group, cpus: g.cpus, exclusive: g.exclusive, isolate: g.isolate, borrows: g.borrows, elastic: g.elastic }));
  const by = new Map(state.machine.cpus.map(c => [c.id, { id: c.id, owners: [], borrowers: [], isolated: false }]));
  deepest.forEach((g, i) => {
    for (const cpu of parseSet(g.cpus)) {
      by.get(cpu)?.owners.push(i);
      if (g.isolate.length && by.has(cpu)) by.get(cpu).isolated = true;
    }
    for (const cpu of parseSet(g.lent)) by.get(cpu)?.borrowers.push(i);
  });
  return { owners, cpus: [...by.values()] };
}

function own(g, i, t, all) {
  const cpus = g.cpus ? parseSet(g.cpus).length : null;
  const may = g.quota ?? cpus ?? all;
  return Math.min(may, (g.cpus ? may : 1) * g.load * wave(t, i));
}

export function sampleOf(state, t) {
  const all = state.machine.cpus.length;
  const used = new Map(state.groups.map((g, i) => [g.group, own(g, i, t, all)]));
  for (const g of [...state.groups].reverse()) {
    if (g.parent && !state.byName.get(g.parent)?.cpus) used.set(g.parent, (used.get(g.parent) ?? 0) + used.get(g.group));
  }
  const rows = state.groups.map((g, i) => {
    const use = used.get(g.group);
    const memory = (g.memory ?? 2 ** 31) * Math.min(0.97, 0.3 + 0.5 * noise(3, i) + 0.05 * Math.sin(t / 60 + i));
    const hot = Math.max(0, g.load - 0.6);
    return {
      group: g.group,
      values: [
        use,
        g.quota ?? (g.cpus ? parseSet(g.cpus).length : null),
        g.throttled != null ? g.throttled * wave(t, i) : null,
        hot * 0.6 * wave(t, i),
        Math.round(memory / 4096) * 4096,
        g.memory ?? 'max',
        memory > 0.9 * (g.memory ?? Infinity) ? 0.04 * wave(t, i) : 0,
        Math.round(use * 4e6 * wave(t, i + 1)),
        Math.round(use * 9e6 * wave(t, i + 2)),
        0.02 * use * noise(Math.floor(t), i),
        3 + Math.round(40 * noise(1, i)),
        g.frozen ? 1 : 0,
      ],
    };
  });
  const owner = ownersOf(state);
  const busy = state.machine.cpus.map((c, i) => {
    const o = owner.cpus[i];
    const load = o.owners.length ? state.byName.get(owner.owners[o.owners[0]].group).load : 0.08;
    const lent = o.borrowers.length ? 0.3 : 0;
    return Math.min(1, Math.max(0, (load + lent) * wave(t, c.core) * (0.7 + 0.6 * noise(Math.floor(t / 2), c.id))));
  });
  const nodes = state.machine.nodes.map((n, i) => ({
    id: n.id,
    total: n.memory_total_bytes,
    free: Math.round(n.memory_total_bytes * (0.25 + 0.4 * noise(7, i) + 0.01 * Math.sin(t / 20))),
    file: Math.round(n.memory_total_bytes * (0.1 + 0.1 * noise(8, i))),
  }));
  const total = nodes.reduce((sum, n) => sum + n.total, 0);
  return {
    columns: COLUMNS,
    rows,
    notes: [],
    machine: {
      cpus: busy,
      interrupts: state.machine.cpus.map((c, i) => (owner.cpus[i].isolated ? noise(Math.floor(t), i) * 3 : 60 + 1e4 * noise(5, c.id) ** 6 * wave(t, i))),
      load: busy.reduce((a, b) => a + b, 0) * 1.05,
      memory_total: total,
      memory_available: nodes.reduce((sum, n) => sum + n.free + n.file * 0.8, 0),
      swap_total: 0,
      swap_free: 0,
      nodes,
      pressure: { cpu: 0.03 * wave(t, 1), memory: 0, io: 0.012 * wave(t, 2) },
    },
  };
}
