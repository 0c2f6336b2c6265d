// The pure parts: geometry of the map, lists of CPUs, addresses, figures as text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { machines } from './mock/machines.mjs';

async function load(name) {
  const path = fileURLToPath(new URL(`../src/model/${name}.ts`, import.meta.url));
  const { outputFiles } = await build({ entryPoints: [path], bundle: true, write: false, format: 'esm' });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

const { parts, layOut } = await load('floor');
const cpu = (id, more = {}) => ({ id, package: 0, node: 0, l3: 0, core: id, ...more });

/** Machines with gaps, uneven parts and facts that the kernel does not give. */
const ODD = {
  'one CPU': [cpu(0)],
  'three packages, the last with one core': [0, 1, 2, 3, 4].map(i => cpu(i, { package: i >> 1, node: i >> 1, l3: i >> 1 })),
  'no node, no L3': [0, 1, 2, 3].map(i => cpu(i, { node: -1, l3: -1, core: 1_000_000 + i })),
  'cores with and without a second thread': [0, 1, 2, 3, 4, 5].map(i => cpu(i, { core: i < 4 ? i >> 1 : i })),
  'numbers with gaps': [3, 64, 200, 1023].map(i => cpu(i)),
};
for (const name of Object.keys(machines)) ODD[name] = machines[name]().machine.cpus;

test('each CPU has one cell, none overlap, and all are inside of the floor', () => {
  for (const [name, cpus] of Object.entries(ODD)) {
    for (const width of [300, 380, 860, 2200]) {
      const floor = layOut(parts(cpus), width, 600);
      assert.deepEqual(floor.cells.map(c => c.cpu).sort((a, b) => a - b), cpus.map(c => c.id).sort((a, b) => a - b), name);
      for (const c of floor.cells) assert.ok(c.x >= 0 && c.x + c.size <= floor.width && c.y >= 0 && c.y + c.size <= floor.height, `${name} at ${width}: CPU ${c.cpu}`);
      const sorted = [...floor.cells].sort((a, b) => a.y - b.y || a.x - b.x);
      for (let i = 1; i < sorted.length; i += 1) {
        const [a, b] = [sorted[i - 1], sorted[i]];
        if (a.y === b.y) assert.ok(a.x + a.size <= b.x, `${name} at ${width}: CPUs ${a.cpu} and ${b.cpu}`);
        else assert.ok(a.y + a.size <= b.y, `${name} at ${width}: lines of CPUs ${a.cpu} and ${b.cpu}`);
      }
    }
  }
});

test('a floor is never wider than its place, where a core has room at all', () => {
  for (const [name, cpus] of Object.entries(ODD)) {
    for (const width of [300, 380, 860, 2200]) assert.ok(layOut(parts(cpus), width, 600).width <= width, `${name} at ${width}`);
  }
});

test('1,024 CPUs are less than a window of 1280 by 800 high, with cells of at least 14 pixels', () => {
  const floor = layOut(parts(ODD.big), 840, 610);
  assert.ok(floor.size >= 14 && floor.height <= 700, `${floor.size}, ${floor.height}`);
});

test('lists of CPUs come back as they went', async () => {
  const { parse, write } = await load('cpuset');
  for (const text of ['', '0', '0-3', '0-3,8,10-11', '1023']) assert.equal(write(parse(text)), text);
  assert.equal(write([3, 1, 2]), '1-3');
});

test('names of groups with any characters come back from the address', async () => {
  const { parse, href } = await load('router');
  for (const name of ['db', 'db/oltp1', 'a b', 'x%2Fy', 'ünit', 'a#b?c', '..']) assert.deepEqual(parse(href('groups', name)), { page: 'groups', rest: name });
  assert.deepEqual(parse('#/nothing'), { page: 'map', rest: '' });
  assert.deepEqual(parse('#/groups/%E0%A4%A'), { page: 'groups', rest: '%E0%A4%A' });
});

test('figures are written with their units, and absent ones as a dash', async () => {
  const f = await load('format');
  assert.equal(f.bytes(1.4 * 2 ** 30), '1.4G');
  assert.equal(f.bytes(400 * 2 ** 20), '400M');
  assert.equal(f.bytes(null), '–');
  assert.equal(f.percent(0.315), '32 %');
  assert.equal(f.percent(0.0004), '0 %');
  assert.equal(f.percent(0.042), '4.2 %');
  assert.equal(f.duration(0.0023), '2.3 ms');
  assert.equal(f.duration(3600), '60 min');
  assert.equal(f.cpus(9.999), '10.0');
});

test('a place is selected by what a text field counts, whatever stands before it', async () => {
  const { span } = await load('places');
  const text = '# 🙂🙂\n[groups."é🙂"]\ncpuz = 1';
  const marked = place => text.slice(...span(text, place));
  assert.equal(marked({ line: 2, column: 9, length: 4 }), '"é🙂"');
  assert.equal(marked({ line: 2, column: 13, length: 1 }), ']');
  assert.equal(marked({ line: 3, column: 1, length: 4 }), 'cpuz');
  assert.equal(marked({ line: 3, column: 8, length: 9 }), '1');
  assert.equal(marked({ line: 9, column: 1, length: 4 }), 'cpuz');
});

test('a hint is to be copied where it is a command, and not where it is a sentence', async () => {
  const { isCommand } = await load('format');
  for (const hint of ['ringfence set db cpu.max=50%', 'sudo ringfence resume', 'systemctl start ringfenced']) assert.ok(isCommand(hint), hint);
  for (const hint of ['raise max of cpus = { min, max, weight } in /etc/ringfence/layout.toml, line 3', 'look at the history']) assert.ok(!isCommand(hint), hint);
});
