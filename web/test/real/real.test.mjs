// The pages with the real server on this machine: RINGFENCE web --write, as root. Changes are made in a group rf-test-web, with a history
// of its own, and are gone at the end.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, open } from '../browser.mjs';
import { accessible, go, says } from '../helpers.mjs';

const PROGRAM = process.env.RINGFENCE;
const GROUP = 'rf-test-web';
const LAYOUT = `[groups.${GROUP}]\nmemory.max = "64M"\n`;
const state = mkdtempSync(join(tmpdir(), 'ringfence-web-'));
const SETTINGS = ['--state', state, '--socket', join(state, 'none.sock')];
let server;
let url;
let chrome;
let page;
let problems;

before(async () => {
  assert.ok(PROGRAM && existsSync(PROGRAM), 'RINGFENCE names no program: scripts/web real target/release/ringfence');
  server = spawn(PROGRAM, ['web', '--write', '--listen', '127.0.0.1:0', '--directory', state, '--results', state, ...SETTINGS, '/'], { stdio: ['ignore', 'pipe', 'inherit'] });
  url = await new Promise((resolve, reject) => {
    let text = '';
    server.stdout.on('data', part => {
      text += part;
      const found = /http:\/\/\S+/.exec(text);
      if (found) resolve(found[0]);
    });
    server.on('exit', code => reject(new Error(`ringfence web ended with ${code}: ${text}`)));
  });
  chrome = await browser();
  ({ page, problems } = await open(chrome, url));
  await page.waitForSelector('.pulse .dot.on', { state: 'attached' });
});

after(async () => {
  await chrome?.close();
  server?.kill('SIGTERM');
  // with a history of its own nothing else is undone
  if (PROGRAM) spawnSync(PROGRAM, ['undo', '0', '--state', state], { stdio: 'ignore' });
  rmSync(state, { recursive: true, force: true });
  assert.deepEqual(problems, [], 'errors in the console');
});

/** The group's directories in the hierarchies of this machine. */
function directories() {
  const roots = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter(line => / - cgroup2? /.test(line))
    .map(line => line.split(' ')[4]);
  return [...new Set(roots)].map(root => join(root, GROUP)).filter(existsSync);
}

const limits = () => directories().flatMap(d => readdirSync(d).filter(f => /^memory\.(max|limit_in_bytes)$/.test(f)).map(f => readFileSync(join(d, f), 'utf8').trim()));

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
  assert.deepEqual(directories(), [], 'a plan writes nothing');
  await page.locator('.apply select').selectOption(String(seconds));
  await page.getByRole('button', { name: /^Apply/ }).click();
  await page.waitForSelector('.pending', { timeout: 15000 });
  assert.deepEqual(limits(), [String(64 * 2 ** 20)]);
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
  assert.deepEqual(directories(), []);
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
  assert.deepEqual(limits(), [String(64 * 2 ** 20)], 'a plan writes nothing');
  await page.getByRole('button', { name: /^Write/ }).click();
  await says(page, 'memory.max is 32M');
  assert.deepEqual(limits(), [String(32 * 2 ** 20)]);
  await go(page, '#/plan');
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
  await says(page, 'Undone: generation');
  assert.deepEqual(directories(), []);
});
