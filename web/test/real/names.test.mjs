// Names that others choose, of groups, tasks and results, are text on every page, and arguments of no shell: as root, in groups
// rf-test-web-names.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, go, says } from '../helpers.mjs';
import { directories, run, serve } from './server.mjs';

const GROUP = 'rf-test-web-names';
const NAMES = ['<img src=x onerror=alert(1)>', '\u202egpj.exe', 'a%2fb#c?d&e=1', `$(touch trap);'"\`touch trap\``, 'x'.repeat(255)];
const COMM = '<i>x</i>';
let server;
let page;
let task;

before(async () => {
  for (const name of NAMES) {
    const made = run('create', `${GROUP}/${name}`);
    assert.equal(made.status, 0, made.error);
  }
  task = spawn('bash', ['-c', `printf '${COMM}' >/proc/self/comm; while :; do read -t 1 <>/dev/zero; done`], { stdio: 'ignore' });
  const moved = run('move', `${GROUP}/${NAMES[0]}`, String(task.pid));
  assert.equal(moved.status, 0, moved.error);
  server = await serve('--write', GROUP);
  ({ page } = server);
  page.on('dialog', dialog => assert.fail(`a name was a script: ${dialog.message()}`));
});

after(async () => {
  task?.kill('SIGKILL');
  await new Promise(resolve => setTimeout(resolve, 200));
  run('delete', '--recursive', GROUP);
  await server?.close();
  assert.deepEqual(directories(GROUP), []);
});

const images = () => page.locator('main img, main i:has-text("x")').count();

test('names of groups are text in the tree and on their own pages', async () => {
  await go(page, '#/groups');
  for (const name of NAMES) await says(page, name.slice(0, 12));
  assert.equal(await images(), 0);
  await accessible(page, 'groups with such names');
  for (const name of NAMES) {
    await page.getByRole('link', { name, exact: true }).first().click();
    await says(page, 'Settings');
    assert.equal(await page.locator('h1').innerText().then(text => text.trim()), name);
    assert.equal(await images(), 0);
    assert.equal(await page.locator('.note.error').count(), 0);
    await go(page, '#/groups');
  }
});

test('the name of a task is text', async () => {
  await page.getByRole('link', { name: NAMES[0], exact: true }).first().click();
  await says(page, COMM);
  assert.equal(await images(), 0);
});

test('a layout with such names is planned, applied and undone without a shell', async () => {
  const toml = name => `[groups."${GROUP}".groups.${JSON.stringify(name).replaceAll('\u202e', '\\u202e')}]\nmemory.max = "64M"\n`;
  await go(page, '#/plan');
  await page.locator('#layout-text').fill(NAMES.slice(0, 4).map(toml).join(''));
  await says(page, 'The checker finds no error.');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await says(page, NAMES[0]);
  await page.locator('.apply select').selectOption('0');
  await page.getByRole('button', { name: /^Apply/ }).click();
  await says(page, 'done.');
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
  await says(page, 'Undone: generation');
  assert.equal(await images(), 0);
  assert.ok(!existsSync(join(server.state, 'trap')));
});

test('names of results are text, and their reports run no script', async () => {
  const result = join(server.state, '<img src=x onerror=alert(2)>');
  mkdirSync(result);
  writeFileSync(join(result, 'experiment.toml'), 'name = "x"\ntitle = "<img src=x onerror=alert(3)>"\n');
  writeFileSync(join(result, 'report.html'), '<p>report<script>alert(4)</script><img src=x onerror=alert(5)></p>');
  await go(page, '#/lab');
  await says(page, 'experiments that come with ringfence');
  assert.equal(await images(), 0);
});
