// The mock's small part of a layout's language: [groups.NAME] with `cpus = N`, `memory.max = "…"` and `exclusive = true`. Enough for
// pages to show diagnostics, steps and maps; what a layout really means only the server knows.
import { cpuset, parseSet } from './machines.mjs';

export function check(text) {
  const diagnostics = [];
  const groups = [];
  const say = (line, column, length, message, hint = null, severity = 'error') =>
    diagnostics.push({ severity, message, hint, also: [], origin: { file: 'layout.toml', line, column, length } });
  text.split('\n').forEach((raw, i) => {
    const line = raw.replace(/#.*$/, '').trimEnd();
    if (!line.trim()) return;
    const head = /^\[groups\.([\w./-]+)\]$/.exec(line);
    if (head) return void groups.push({ group: head[1].replaceAll('.groups.', '/'), set: {} });
    const pair = /^([\w."]+)\s*=\s*(.+)$/.exec(line);
    if (!pair) return say(i + 1, 1, line.length, 'expected a setting or a table', 'such as [groups.db]');
    if (!groups.length) return say(i + 1, 1, pair[1].length, `unknown key '${pair[1]}'`);
    const column = line.indexOf(pair[2]) + 1;
    if (pair[1] === 'cpus' && !/^\d+$/.test(pair[2])) return say(i + 1, column, pair[2].length, 'cpus: expected a number of CPUs');
    if (!['cpus', 'memory.max', 'exclusive', 'cpu.max'].includes(pair[1])) {
      return say(i + 1, 1, pair[1].length, `unknown setting '${pair[1]}'`, 'did you mean cpu.max?');
    }
    if (pair[1] === 'memory.max' && pair[2] === '"max"') say(i + 1, column, pair[2].length, 'memory.max: no limit is what a new group has', null, 'warning');
    groups.at(-1).set[pair[1]] = pair[2].replaceAll('"', '');
  });
  return { diagnostics, groups, errors: diagnostics.filter(d => d.severity === 'error').length };
}

/** The groups after a layout, and the steps that lead there. */
export function plan(state, text) {
  const { groups } = check(text);
  const steps = [];
  const assignments = [];
  const after = structuredClone(state.groups);
  const step = more => steps.push({ number: steps.length + 1, file: null, before: null, text: null, restores: false, ...more });
  let free = state.machine.cpus.map(c => c.id);
  for (const g of groups) {
    let now = after.find(a => a.group === g.group);
    if (!now) {
      now = { ...structuredClone(state.groups[0]), group: g.group, label: g.group.split('/').at(-1), parent: null, depth: 0, cpus: null, elastic: null, unit: null, exclusive: false, isolate: [], borrows: false, load: 0.3, quota: undefined, lent: undefined };
      after.push(now);
      step({ action: 'create-group', group: g.group, what: `create ${g.group}`, why: 'the layout names it' });
    }
    if (g.set.cpus) {
      const cpus = cpuset(free.slice(0, Number(g.set.cpus)));
      free = free.slice(Number(g.set.cpus));
      assignments.push({ group: g.group, cpus, mems: '0', exclusive: g.set.exclusive === 'true', why: `${g.set.cpus} CPUs on node 0` });
      if (cpus !== now.cpus) step({ action: 'write', group: g.group, file: 'cpuset.cpus', before: now.cpus, text: cpus, what: `${g.group}/cpuset.cpus <- ${cpus}`, why: `${g.set.cpus} CPUs on node 0` });
      now.cpus = cpus;
      for (const other of after) {
        if (other !== now && other.cpus && !groups.some(x => x.group === other.group)) other.cpus = cpuset(parseSet(other.cpus).filter(c => !parseSet(cpus).includes(c))) || null;
      }
    }
    if (g.set['memory.max']) step({ action: 'write', group: g.group, file: 'memory.max', before: 'max', text: g.set['memory.max'], what: `${g.group}/memory.max <- ${g.set['memory.max']}`, why: `memory.max = ${g.set['memory.max']}` });
  }
  return { steps, assignments, after };
}
