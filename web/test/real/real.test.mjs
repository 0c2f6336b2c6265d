// The pages with the real server on this machine: RINGFENCE web --write, as root. Changes are made in a group rf-test-web, with a history
// of its own, and are gone at the end.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, go, says } from '../helpers.mjs';
import { directories, limits, run, serve, start } from './server.mjs';

const GROUP = 'rf-test-web';
const LAYOUT = `[groups.${GROUP}]\nmemory.max = "64M"\n`;
let server;
let page;

before(async () => {
  server = await serve('--write', '/');
  ({ page } = server);
});
after(() => server?.close());

test('the map has the CPUs of this machine', async () => {
  const online = readFileSync('/sys/devices/system/cpu/online', 'utf8').trim();
  const count = online.split(',').reduce((sum, part) => sum + (Number(part.split('-').at(-1)) - Number(part.split('-')[0]) + 1), 0);
  await says(page, `of ${count}`);
  await page.getByText('Each CPU as a table').click();
  await page.locator('.lazy[open] tbody tr').first().waitFor();
  assert.ok((await page.locator('.lazy[open] tbody tr').count()) >= count);
});

test('every page is shown and accessible, without a violation of the policy', async () => {
  for (const [hash, words] of Object.entries({ '#/map': 'CPUs busy', '#/groups': 'group', '#/history': 'ringfence record', '#/plan': 'Generations', '#/lab': 'ringfence lab run tour', '#/simulate': 'Loads' })) {
    await go(page, hash);
    await says(page, words);
    await accessible(page, hash);
  }
});

async function apply(seconds) {
  await go(page, '#/plan');
  await page.locator('#layout-text').fill(LAYOUT);
  await says(page, 'The checker finds no error.');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await says(page, `create group ${GROUP}`);
  assert.deepEqual(directories(GROUP), [], 'a plan writes nothing');
  await page.locator('.apply select').selectOption(String(seconds));
  await page.getByRole('button', { name: /^Apply/ }).click();
  await page.waitForSelector('.pending', { timeout: 15000 });
  assert.deepEqual(limits(GROUP), [String(64 * 2 ** 20)]);
}

test('the checker of the server marks an error in the text', async () => {
  await go(page, '#/plan');
  await page.locator('#layout-text').fill('[groups.db]\nmemory.max = "400Q"\n');
  await says(page, "unknown unit 'Q'");
  assert.equal(await page.locator('.marks mark.error').innerText(), '"400Q"');
});

test('an apply that nobody confirms is gone from the kernel when its time is over', async () => {
  await apply(10);
  await page.waitForFunction(() => !document.querySelector('.pending'), undefined, { timeout: 30000 });
  assert.deepEqual(directories(GROUP), []);
});

test('an apply that is confirmed stays; a setting is changed; undo takes the layout back', async () => {
  await apply(60);
  await page.getByRole('button', { name: 'Confirm: keep it' }).click();
  await page.waitForFunction(() => !document.querySelector('.pending'));
  await go(page, `#/groups/${GROUP}`);
  await page.getByRole('button', { name: 'Change memory.max' }).click();
  await page.locator('.editing input').fill('32M');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await says(page, 'What is written');
  assert.deepEqual(limits(GROUP), [String(64 * 2 ** 20)], 'a plan writes nothing');
  await page.getByRole('button', { name: /^Write/ }).click();
  await says(page, 'memory.max is 32M');
  assert.deepEqual(limits(GROUP), [String(32 * 2 ** 20)]);
  await go(page, '#/plan');
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
  await says(page, 'Undone: generation');
  assert.deepEqual(directories(GROUP), []);
});

test('the scrubber shows what was recorded, and says that owners were not', async () => {
  const recorded = run('record', '--directory', server.state, '--interval', '50ms', '--count', '40', '/');
  assert.equal(recorded.status, 0, recorded.error);
  await go(page, '#/map');
  await page.reload();
  await go(page, '#/history');
  await page.locator('.uplot').first().waitFor();
  await page.locator('input[type=range]').focus();
  await page.keyboard.press('Home');
  await says(page, "from the recorder's log");
  await says(page, 'Who owned which CPU then is not known');
  assert.equal(await page.locator('.note.error').count(), 0);
  await accessible(page, 'the past');
  await go(page, '#/map');
  await says(page, 'CPUs busy');
  await says(page, 'Who owned which CPU then is not known');
  await page.keyboard.press('n');
  await page.waitForSelector('.pulse .dot.on', { state: 'attached' });
});

test('a log with a torn end is shown up to there', async () => {
  const segment = join(server.state, readdirSync(server.state).filter(name => name.endsWith('.rflog')).sort().at(-1));
  truncateSync(segment, statSync(segment).size - 5);
  await page.reload();
  await go(page, '#/history');
  await says(page, 'What is whole is shown.');
  await page.locator('.uplot').first().waitFor();
  await page.locator('input[type=range]').focus();
  await page.keyboard.press('Home');
  await says(page, "from the recorder's log");
  assert.equal(await page.locator('.note.error').count(), 0);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('n');
});

test('a daemon that comes, hangs, goes on and goes is said so, and the figures go on', async () => {
  await go(page, '#/map');
  const layout = join(server.state, 'empty.toml');
  writeFileSync(layout, '');
  const daemon = start('daemon', '--no-apply', '--no-strict', '--state', server.state, '--socket', server.socket, '--layout', layout);
  // the page looks every 15 s
  const shows = words => says(page, words, '.status', 30_000);
  try {
    await shows('ringfenced runs');
    daemon.kill('SIGSTOP');
    await shows('ringfenced does not answer');
    await says(page, 'nothing came within 3 s. The figures are read without it.');
    await page.waitForSelector('.pulse .dot.on', { state: 'attached' });
    daemon.kill('SIGCONT');
    await shows('ringfenced runs');
    assert.equal(await page.locator('.note').count(), 0);
  } finally {
    daemon.kill('SIGKILL');
  }
  await shows('no ringfenced: read directly');
});
