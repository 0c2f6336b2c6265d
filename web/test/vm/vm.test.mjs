// The live page beside the packaged daemon in a virtual machine, opened through a tunnel of ssh: scripts/test-packages web. With
// RF_SHOTS=DIRECTORY also the screenshots of the README.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, open } from '../browser.mjs';
import { accessible, go, says } from '../helpers.mjs';
import { booted, over, run, serve, SLOW, until } from './guest.mjs';

const FAR = 8080;
const OURS = '/sys/fs/cgroup/ringfence.slice/ringfence.service';
const SHOTS = process.env.RF_SHOTS;
const say = (page, words, selector = 'main') => says(page, words, selector, SLOW);
let server;
let chrome;
let page;
let problems;
let layout;

before(async () => {
  await booted();
  server = await serve('root', FAR, '--write');
  chrome = await browser();
  ({ page, problems } = await enter(await server.url()));
  layout = run('root', 'cat /etc/ringfence/layout.toml').out;
});

after(async () => {
  try {
    await chrome?.close();
    if (server) assert.equal(await server.stop(), 0, 'Ctrl-C');
  } finally {
    over();
  }
});

async function enter(url) {
  const opened = await open(chrome, url, { width: 1200, height: 680, allow: [/409/, /403/], patience: SLOW });
  await opened.page.waitForSelector('.pulse .dot.on', { state: 'attached' });
  return opened;
}

const value = file => run('root', `cat ${OURS}/${file}`).out;
const is_there = group => run('root', `test -d ${OURS}/${group}`).status === 0;
/** The groups are those of the daemon's layout alone, and as applied. */
const as_before = () =>
  until(() => {
    if (is_there('report')) return 'the group report is still there';
    const { status, out, error } = run('root', 'ringfence status');
    return status === 0 ? null : `ringfence status: ${status}\n${out}\n${error}`;
  });
const as_applied = () => {
  const { status, out, error } = run('root', 'ringfence status');
  assert.equal(status, 0, `${out}\n${error}`);
};

async function shot(name) {
  if (!SHOTS) return;
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(0, 0);
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${SHOTS}/web-${name}.png` });
}

test('the map has the owners of the machine at the far end', async () => {
  await say(page, 'db1');
  await say(page, 'of 8');
  await say(page, 'ringfenced runs', '.status');
  for (const words of ['db/oltp1', 'db/oltp2', 'control']) await say(page, words);
  await accessible(page, 'map');
  await shot('map');
});

test('a group that its quota stops has that as the first reason', async () => {
  await go(page, '#/groups/batch');
  await say(page, 'quota', '.causes li:first-child');
  await page.locator('.uplot').first().waitFor();
  await shot('group');
});

async function plan(page, text) {
  await go(page, '#/plan');
  // the field has the file's text by then: what came into it after it was marked would stay
  await say(page, '/etc/ringfence/layout.toml');
  await page.locator('#layout-text').fill(text);
  await say(page, 'The checker finds no error.');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await say(page, 'Owners of CPUs before and after');
}

async function apply(page, seconds) {
  await page.locator('.apply select').selectOption(String(seconds));
  await page.getByRole('button', { name: /^Apply/ }).click();
}

const MORE = '\n[groups.report]\ncpus = { node = 2 }\nmems = "local"\nmemory.max = "100M"\n';

test('an apply that nobody confirms is undone beside the daemon, which leaves it alone until then', async () => {
  await plan(page, layout + MORE);
  await shot('plan');
  assert.ok(!is_there('report'), 'a plan makes nothing');
  await apply(page, 60);
  await page.waitForSelector('.pending');
  assert.equal(value('report/memory.max'), String(100 << 20));
  // the daemon looks every 30 s
  await page.waitForFunction(() => Number.parseInt(document.querySelector('.pending .count')?.textContent, 10) <= 22);
  assert.equal(value('report/memory.max'), String(100 << 20), 'the daemon leaves it');
  await page.waitForFunction(() => !document.querySelector('.pending'));
  await as_before();
  await say(page, 'It is no longer in effect.');
});

test('one that is confirmed stays, and undo takes it back', async () => {
  await plan(page, layout + MORE);
  await apply(page, 900);
  await page.getByRole('button', { name: 'Confirm: keep it' }).click();
  await page.waitForFunction(() => !document.querySelector('.pending'));
  assert.equal(value('report/cpuset.cpus'), '4-5');
  as_applied();
  await undo();
});

async function undo() {
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
  await say(page, 'Undone: generation');
  await as_before();
}

test('of two browsers that planned after the same generation one applies, and the other is refused', async () => {
  const second = await enter(await server.again());
  await plan(second.page, layout + MORE.replace('100M', '120M'));
  await plan(page, layout + MORE);
  await apply(second.page, 0);
  await say(second.page, 'steps done.');
  const [, applied] = /Generation (\d+): \d+ steps done/.exec(await second.page.locator('main').innerText());
  await apply(page, 0);
  await say(page, 'another change came meanwhile');
  assert.equal(value('report/memory.max'), String(120 << 20));
  await page.getByRole('rowheader', { name: applied, exact: true }).waitFor();
  await undo();
  await second.context.close();
  assert.deepEqual(second.problems, []);
});

test('a setting is planned and written', async () => {
  await go(page, '#/groups/batch');
  await page.getByRole('button', { name: 'Change cpu.weight', exact: true }).click();
  await page.locator('.editing input').fill('50');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await say(page, 'What is written');
  assert.notEqual(value('batch/cpu.weight'), '50', 'a plan writes nothing');
  await page.getByRole('button', { name: /^Write/ }).click();
  await say(page, 'cpu.weight is 50');
  assert.equal(value('batch/cpu.weight'), '50');
});

test("the recorder's log moves all pages to an earlier time, and has no owners", async () => {
  await go(page, '#/history');
  await page.locator('.uplot').first().waitFor();
  await page.locator('input[type=range]').focus();
  for (const _ of [1, 2]) await page.keyboard.press('PageDown');
  await say(page, "from the recorder's log");
  await say(page, 'Who owned which CPU then is not known');
  await say(page, 'db/oltp1');
  await shot('history');
  await go(page, '#/map');
  await say(page, 'Who owned which CPU then is not known');
  await page.keyboard.press('n');
});

test('a user without rights looks, and is refused in words', async () => {
  const own = await serve('rf', FAR + 1, '--write /');
  const { page, context } = await enter(await own.url());
  await say(page, 'rf', '.status');
  await plan(page, layout + MORE);
  await apply(page, 60);
  await say(page, 'ringfence web --write');
  assert.ok(!is_there('report'));
  await context.close();
  assert.equal(await own.stop(), 0);
});

test('no page had an error in its console', () => assert.deepEqual(problems, []));
