// Machines and groups for the mock server: a small one, one with everything that the map can show, and one of 1,024 CPUs with 1,000
// groups. All figures follow from the number of the sample, so that two runs draw the same.

const G = 2 ** 30;
const list = (first, last) => (first === last ? `${first}` : `${first}-${last}`);

/** CPUs numbered as Linux does on most servers: all first threads, then all second ones. */
function topology({ hostname, packages, nodes, l3s, cores, threads, memory, model }) {
  const coresInAll = packages * nodes * l3s * cores;
  const cpus = [];
  for (let t = 0; t < threads; t += 1) {
    for (let core = 0; core < coresInAll; core += 1) {
      const l3 = Math.floor(core / cores);
      const node = Math.floor(l3 / l3s);
      cpus.push({ id: t * coresInAll + core, online: true, package: Math.floor(node / nodes), node, l3, core, max_mhz: 3400 });
    }
  }
  const sets = key => {
    const by = new Map();
    for (const c of cpus) by.set(c[key], [...(by.get(c[key]) ?? []), c.id]);
    return [...by].map(([id, ids]) => ({ id, cpus: cpuset(ids) }));
  };
  return {
    hostname,
    model,
    isolated_at_boot: '',
    nohz_full: '',
    cpus,
    packages: sets('package'),
    nodes: sets('node').map(n => ({ ...n, memory_total_bytes: memory })),
    l3: sets('l3').map(l => ({ ...l, size_bytes: 32 * 2 ** 20 })),
  };
}

export function cpuset(ids) {
  const out = [];
  for (let i = 0; i < ids.length; ) {
    let j = i;
    while (j + 1 < ids.length && ids[j + 1] === ids[j] + 1) j += 1;
    out.push(list(ids[i], ids[j]));
    i = j + 1;
  }
  return out.join(',');
}

export function parseSet(text) {
  if (!text) return [];
  return text.split(',').flatMap(part => {
    const [a, b = a] = part.split('-').map(Number);
    return Array.from({ length: b - a + 1 }, (_, i) => a + i);
  });
}

const group = (name, more = {}) => ({
  group: name,
  label: name.split('/').at(-1),
  parent: name.includes('/') ? name.slice(0, name.lastIndexOf('/')) : null,
  depth: name.split('/').length - 1,
  cpus: null,
  elastic: null,
  hierarchies: ['unified'],
  unit: null,
  // of the mock alone: how busy its CPUs are, how much memory it may use
  load: 0.4,
  memory: 4 * G,
  exclusive: false,
  isolate: [],
  borrows: false,
  ...more,
});

const second = (set, by) => `${set},${parseSet(set)[0] + by}-${parseSet(set).at(-1) + by}`;

export const machines = {
  small: () => ({
    machine: topology({ hostname: 'atom', packages: 1, nodes: 1, l3s: 1, cores: 2, threads: 1, memory: 8 * G, model: 'Intel(R) Atom(TM) CPU' }),
    groups: [group('db', { cpus: '0', load: 0.7 }), group('batch', { cpus: '1', load: 0.2 })],
  }),

  demo: () => ({
    machine: topology({ hostname: 'oak', packages: 2, nodes: 2, l3s: 2, cores: 4, threads: 2, memory: 64 * G, model: 'AMD EPYC 7343' }),
    groups: [
      group('db', { load: 0 }),
      group('db/oltp1', { cpus: second('0-7', 32), load: 0.83, memory: 24 * G, quota: 12 }),
      group('db/oltp2', { cpus: second('8-13', 32), load: 0.46, memory: 24 * G }),
      group('db/report', { cpus: second('14-15', 32), load: 0.97, memory: 8 * G, quota: 3.5, throttled: 0.31 }),
      group('rt', { cpus: second('16-19', 32), load: 0.12, exclusive: true, isolate: ['irq.affinity', 'workqueue.cpumask'], memory: 2 * G }),
      group('web', { cpus: second('20-25', 32), load: 0.35, elastic: { min: 4, max: 16 }, unit: 'nginx.service', memory: 8 * G }),
      group('queue', { cpus: second('26-27', 32), load: 0.55, elastic: { min: 2, max: 8 }, memory: 4 * G }),
      group('backup', { cpus: second('28-29', 32), load: 0.62, elastic: { min: 4, max: 24 }, borrows: true, lent: second('22-25', 32), memory: 4 * G }),
      group('system.slice', { unit: 'system.slice', load: 0.02, memory: null }),
      group('system.slice/ssh.service', { unit: 'ssh.service', load: 0.01, memory: null }),
    ],
  }),

  big: () => {
    const machine = topology({ hostname: 'sequoia', packages: 2, nodes: 4, l3s: 8, cores: 8, threads: 2, memory: 512 * G, model: 'AMD EPYC 9965' });
    const groups = [];
    for (let t = 0; t < 20; t += 1) {
      const name = `tenant${String(t).padStart(2, '0')}`;
      const cpus = second(list(t * 24, t * 24 + 23), 512);
      groups.push(group(name, { cpus, load: 0.2 + (t % 7) / 10, exclusive: t === 3, isolate: t === 3 ? ['irq.affinity'] : [], memory: 128 * G }));
      for (let s = 0; s < 49; s += 1) {
        groups.push(group(`${name}/service${String(s).padStart(2, '0')}`, { load: 0.2 + ((t + s) % 7) / 200, memory: 4 * G }));
      }
    }
    return { machine, groups };
  },
};

/** 0 to 1, the same for the same numbers. */
export function noise(a, b) {
  const x = Math.sin(a * 12.9898 + b * 78.233) * 43758.5453;
  return x - Math.floor(x);
}
