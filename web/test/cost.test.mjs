// What the page costs: size, time to the first paint, and the browser's CPU time at one sample a second of 1,000 groups and 1,024 CPUs.
// The figures are printed: RF_COST=1 holds them to their limits, which a machine busy with other work does not meet.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { go, visit } from './helpers.mjs';

const SECONDS = 15;
const strict = process.env.RF_COST === '1';
const dist = fileURLToPath(new URL('../dist/', import.meta.url));

test('all files together have at most 80 kB', t => {
  const size = readdirSync(dist).reduce((sum, name) => sum + statSync(dist + name).size, 0);
  t.diagnostic(`${size} bytes`);
  assert.ok(size <= 80_000);
});

test('the first paint comes within 300 ms', async t => {
  const { page } = await visit(t, { server: { machine: 'big' } });
  const times = [];
  for (let i = 0; i < 5; i += 1) {
    await page.reload();
    await page.waitForSelector('.map-page');
    times.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
  }
  times.sort((a, b) => a - b);
  t.diagnostic(`first contentful paint: ${times.map(x => x.toFixed(0)).join(', ')} ms`);
  assert.ok(times[0] < 300, `${times[0]} ms`);
  if (strict) assert.ok(times[2] < 300, `${times[2]} ms`);
});

for (const hash of ['#/map', '#/groups', '#/groups/tenant05']) {
  test(`the browser at 1 Hz with 1,000 groups and 1,024 CPUs: ${hash}`, async t => {
    const { page } = await visit(t, { server: { machine: 'big' }, hash });
    const browser = await page.context().browser().newBrowserCDPSession();
    const client = await page.context().newCDPSession(page);
    await client.send('Performance.enable');
    await page.waitForTimeout(4000);
    const before = await spent(browser, client);
    const began = Date.now();
    await page.waitForTimeout(SECONDS * 1000);
    const seconds = (Date.now() - began) / 1000;
    const after = await spent(browser, client);
    const share = Object.fromEntries(Object.keys(after).map(k => [k, (100 * (after[k] - before[k])) / seconds]));
    const text = Object.entries(share).map(([k, v]) => `${k} ${v.toFixed(1)} %`);
    t.diagnostic(`${hash}: ${text.join(', ')} of a core`);
    assert.ok(share.all > 0);
    if (strict) assert.ok(share.all < 5, `${share.all} %`);
  });
}

/** CPU time in seconds: of all of the browser's processes, of the one that draws the page, and of its main thread. */
async function spent(browser, client) {
  const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
  const sum = some => some.reduce((total, p) => total + p.cpuTime, 0);
  const { metrics } = await client.send('Performance.getMetrics');
  const get = name => metrics.find(m => m.name === name).value;
  return { all: sum(processInfo), page: sum(processInfo.filter(p => p.type === 'renderer')), 'main thread': get('TaskDuration'), script: get('ScriptDuration') };
}
