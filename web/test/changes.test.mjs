// Changes: a plan before each, apply with the countdown, undo; two browsers that change the same group; read-only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, browser } from './browser.mjs';
import { accessible, go, says, visit } from './helpers.mjs';

const sent = (server, id) => server.answers.requests.filter(r => r.id === id);

async function edit(page, setting, value) {
  await page.getByRole('button', { name: `Change ${setting}` }).click();
  const field = page.locator('.editing input, .editing select');
  await (setting === 'cpu.idle' ? field.selectOption(value) : field.fill(value));
  await page.getByRole('button', { name: 'Show plan' }).click();
}

test('a setting is written after its plan was shown, with the value that was there before', async t => {
  const { page, server } = await visit(t, { hash: '#/groups/db/report' });
  await edit(page, 'cpu.max', '500%');
  await says(page, '/sys/fs/cgroup/db/report/cpu.max ← 500%');
  await accessible(page, 'plan of a setting');
  assert.equal(sent(server, 'changeSettings').length, 0, 'nothing is written before');
  await page.getByRole('button', { name: 'Write 350% → 500%' }).click();
  await says(page, 'Written by ringfenced: cpu.max is 500%, generation 2');
  assert.deepEqual(sent(server, 'changeSettings')[0].body, { set: { 'cpu.max': '500%' }, expected: { 'cpu.max': '350%' }, expected_generation: 1 });
});

test('a value that the server refuses is explained, and nothing is written', async t => {
  const { page, server } = await visit(t, { hash: '#/groups/db/report', allow: [/400/] });
  await edit(page, 'memory.max', '8Q');
  await says(page, "memory.max: '8Q' is no size");
  assert.equal(sent(server, 'changeSettings').length, 0);
});

test('of two browsers that change the same setting the second is told so, and plans again', async t => {
  const { page, server } = await visit(t, { hash: '#/groups/db/report', allow: [/409/] });
  await edit(page, 'memory.max', '6G');
  await says(page, 'memory.max ← 6G');
  server.answers.changes.set('db/report', { 'memory.max': '5G' });
  await page.getByRole('button', { name: /^Write/ }).click();
  await says(page, 'memory.max of db/report is 5G now');
  await page.getByRole('button', { name: 'Plan again with the value now' }).click();
  await says(page, 'It is 5G now: somebody changed it while you edited (8G before).');
  await page.getByRole('button', { name: /^Write 5G/ }).click();
  await says(page, 'memory.max is 6G');
});

test('a setting is not written where somebody else changed another one after its plan', async t => {
  const { page, server } = await visit(t, { hash: '#/groups/db/report', allow: [/409/] });
  await edit(page, 'memory.max', '6G');
  await says(page, 'memory.max ← 6G');
  server.answers.record('set db/report memory.high=1G', 'set', server.answers.groups, 1);
  await page.getByRole('button', { name: /^Write/ }).click();
  await says(page, 'another change came meanwhile (generation 2); nothing was changed');
  assert.equal(server.answers.changes.size, 0);
  await page.getByRole('button', { name: 'Plan again with the value now' }).click();
  await page.getByRole('button', { name: /^Write 8G/ }).click();
  await says(page, 'memory.max is 6G');
});

test('diagnostics come while one types, mark the place in the text, and lead there', async t => {
  const { page } = await visit(t, { hash: '#/plan' });
  await says(page, 'The checker finds no error.');
  await page.locator('#layout-text').fill('[groups.db]\ncpus = 4\ncpu.mx = 3\n');
  await says(page, "unknown setting 'cpu.mx'");
  await says(page, 'did you mean cpu.max?');
  assert.equal(await page.locator('.marks mark.error').innerText(), 'cpu.mx');
  assert.ok(await page.getByRole('button', { name: 'Show plan' }).isDisabled());
  await accessible(page, 'diagnostics');
  await page.getByRole('button', { name: 'line 3' }).click();
  const marked = await page.evaluate(() => {
    const f = document.activeElement;
    return f.value.slice(f.selectionStart, f.selectionEnd);
  });
  assert.equal(marked, 'cpu.mx');
});

async function apply(page, seconds) {
  await says(page, 'The checker finds no error.');
  await page.locator('#layout-text').focus();
  await page.keyboard.press('Control+Enter');
  await says(page, '4 CPUs on node 0');
  await says(page, 'CPUs with another owner, dashed.');
  assert.equal(await page.locator('.before-after .map').count(), 2);
  await page.locator('.apply select').selectOption(String(seconds));
  await page.getByRole('button', { name: /^Apply/ }).click();
}

test('an apply that nobody confirms goes back when its time is over', async t => {
  const { page, server } = await visit(t, { hash: '#/plan' });
  await apply(page, 10);
  await says(page, 'Generation 2 is undone in');
  await accessible(page, 'countdown');
  assert.equal(server.answers.generations.length, 2);
  await go(page, '#/map');
  await says(page, 'Generation 2 is undone in');
  await go(page, '#/plan');
  await page.waitForFunction(() => !document.querySelector('.pending'), undefined, { timeout: 15000 });
  await says(page, 'undo of 2: not confirmed');
  assert.equal(sent(server, 'confirm').length, 0);
});

test('an apply that is confirmed stays, and undo takes it back', async t => {
  const { page, server } = await visit(t, { hash: '#/plan' });
  await apply(page, 60);
  await page.getByRole('button', { name: 'Confirm: keep it' }).click();
  await page.waitForFunction(() => !document.querySelector('.pending'));
  assert.deepEqual(sent(server, 'confirm')[0].body, { generation: 2 });
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await says(page, 'This takes back generation 2', 'dialog');
  await accessible(page, 'undo');
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
  await says(page, 'Undone: generation 3');
  assert.deepEqual(sent(server, 'undo')[0].body, { to: null, expected_generation: 2 });
});

test('a plan is not applied where somebody else applied meanwhile', async t => {
  const { page, server } = await visit(t, { hash: '#/plan', allow: [/409/] });
  await says(page, 'The checker finds no error.');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await says(page, '4 CPUs on node 0');
  server.answers.record('layout of bob', 'apply', server.answers.groups, 3);
  await page.getByRole('button', { name: /^Apply/ }).click();
  await says(page, 'another change came meanwhile (generation 2); nothing was changed');
  assert.equal(server.answers.pending, null);
  await says(page, 'layout of bob', 'main', 2000);
});

test('an undo takes back what its dialog names, or nothing', async t => {
  const { page, server } = await visit(t, { hash: '#/plan', allow: [/409/] });
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await says(page, 'This takes back generation 1', 'dialog');
  server.answers.record('layout of bob', 'apply', server.answers.groups, 3);
  await says(page, 'layout of bob', 'main', 12000);
  await says(page, 'This takes back generation 1', 'dialog');
  const undo = page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true });
  await undo.click();
  await says(page, 'another change came meanwhile (generation 2); nothing was changed', 'dialog');
  assert.equal(server.answers.generations.length, 2);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await says(page, 'This takes back generation 2', 'dialog');
  await undo.click();
  await says(page, 'Undone: generation 3');
});

test('the countdown of one browser shows in another', async t => {
  const { page, server } = await visit(t, { hash: '#/plan' });
  server.answers.token = 'second';
  const chrome = await browser();
  t.after(() => chrome.close());
  const other = await open(chrome, server.url.replace(/token=.*/, 'token=second'));
  await other.page.waitForSelector('.map-page');
  await apply(page, 60);
  await says(other.page, 'Generation 2 is undone in');
});

test('without --write all can be planned and nothing carried out', async t => {
  const { page, server } = await visit(t, { server: { write: false }, hash: '#/plan' });
  await says(page, 'The checker finds no error.');
  await page.getByRole('button', { name: 'Show plan' }).click();
  await says(page, 'Read-only: start ringfence web --write to apply it from here.');
  assert.equal(await page.getByRole('button', { name: /^Apply/ }).count(), 0);
  assert.equal(await page.getByRole('button', { name: /^Undo/ }).count(), 0);
  await go(page, '#/groups/db/report');
  await edit(page, 'cpu.max', '500%');
  await says(page, 'Read-only: nothing is written from here.');
  assert.equal(await page.getByRole('button', { name: /^Write/ }).count(), 0);
  await says(page, 'read-only', '.status');
  assert.equal(sent(server, 'changeSettings').length, 0);
});
