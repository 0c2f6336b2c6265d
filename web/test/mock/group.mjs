// What the mock's pages of a group show: settings, tasks, and why it waits.
import { noise, parseSet } from './machines.mjs';

const side = (files, range) => ({ files, default: 'max', range, fidelity: null });

export function settingsOf(state, g) {
  const changed = state.changes.get(g.group) ?? {};
  const has = (name, controller, kind, value, help, more = {}) => ({
    name, controller, kind, help, value: changed[name] ?? value, unit: null, range: null, choices: [], example: value, can_set: true, file: `/sys/fs/cgroup/${g.group}/${name}`, v1: null, v2: side([name], null), ...more,
  });
  return [
    has('cpu.max', 'cpu', 'quota', g.quota ? `${g.quota * 100}%` : 'max', 'CPU time that the group may use in each period', { example: '150%', range: '1000 us to 1 s of each period' }),
    has('cpu.weight', 'cpu', 'weight', '100', 'Share of CPU time relative to the groups beside it', { example: '200', range: '1 to 10000' }),
    has('cpu.idle', 'cpu', 'flag', g.borrows ? '1' : '0', 'Run only where no other task wants to', { choices: ['0', '1'] }),
    has('cpuset.cpus', 'cpuset', 'cpus', g.cpus ?? '', 'CPUs on which the tasks may run', { example: '0-3' }),
    has('cpuset.mems', 'cpuset', 'nodes', '0', 'NUMA nodes that memory may come from', { example: '0' }),
    has('memory.max', 'memory', 'bytes', g.memory ? `${g.memory / 2 ** 30}G` : 'max', 'Limit of memory', { example: '8G', unit: 'bytes' }),
    has('memory.high', 'memory', 'bytes', 'max', 'Memory above which tasks are slowed down to reclaim memory', { example: '6G', unit: 'bytes' }),
    has('memory.current', 'memory', 'bytes', '2.1G', 'Memory that the group uses', { can_set: false }),
    has('pids.max', 'pids', 'count', 'max', 'Limit of tasks', { example: '500' }),
    has('io.weight', 'io', 'weight', '100', 'Share of I/O relative to the groups beside it', { example: '200', range: '1 to 10000' }),
  ];
}

const NAMES = ['postgres', 'walwriter', 'checkpointer', 'autovacuum', 'worker'];

export function tasksOf(state, g) {
  const cpus = parseSet(g.cpus);
  const t = Math.floor(state.hostNow() / 1000);
  return Array.from({ length: 24 }, (_, i) => {
    const cpu = shift => (cpus.length ? cpus[Math.floor(noise(t - shift, i) * cpus.length)] : i % state.machine.cpus.length);
    return { pid: 4100 + (i % 6), tid: 4100 + i, comm: NAMES[i % NAMES.length], state: i % 4 ? 'S' : 'R', policy: g.isolate.length ? 'fifo 50' : 'other', group: g.group, cpu: cpu(0), cpus_before: [cpu(2), cpu(1)], running: Math.round(100 * noise(t, i) * g.load) / 100, waiting: Math.round(100 * noise(t, i + 9) * 0.1) / 100 };
  });
}

export function whyOf(g, seconds) {
  const command = `ringfence why ${g.group} --for ${seconds}s`;
  const used = [
    { name: 'cpu.usage', text: '16.6 s' },
    { name: 'memory.current', text: '2.1G' },
  ];
  const causes = g.throttled
    ? [
        { kind: 'quota', at: g.group, share: 0.31, sentence: `its quota (${g.quota} CPUs: ${g.quota * 100} ms of each 100 ms) stopped it in 16 of 50 periods`, hint: `ringfence set ${g.group} cpu.max=${g.quota * 150}%`, choices: [], numbers: [{ name: 'periods', text: '50' }, { name: 'stopped', text: '16' }] },
        { kind: 'neighbours', at: 'db/oltp2', share: 0.06, sentence: 'its tasks waited while db/oltp2 ran on its CPUs', hint: null, choices: [`ringfence set ${g.group} cpuset.cpus=0-7`, 'ringfence set db/oltp2 cpuset.cpus=8-15'], numbers: [] },
      ]
    : [];
  return { group: g.group, seconds, tasks: 24, command, used, causes, notes: causes.length ? [{ sentence: 'with more memory used it would meet memory.max', hint: null }] : [], text: `${g.group}, 24 tasks for ${seconds} s\n` };
}
