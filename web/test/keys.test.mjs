// Everything by the keyboard: pages, the map, the tree, dialogs; and what is marked can be seen.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { says, visit } from './helpers.mjs';

test('g and a letter go to each page, and ? lists the keys', async t => {
  const { page } = await visit(t);
  for (const [key, hash] of [['g', 'groups'], ['h', 'history'], ['p', 'plan'], ['l', 'lab'], ['s', 'simulate'], ['m', 'map']]) {
    // one after the other, without a wait for the answer between: the second key has to come within 1.5 s
    await Promise.all([page.keyboard.press('g'), page.keyboard.press(key)]);
    await page.waitForFunction(h => location.hash === `#/${h}`, hash);
  }
  await page.keyboard.press('?');
  await says(page, 'A moment back or on in the log', 'dialog');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('dialog').count(), 0);
});

test('letters go into a field rather than to another page', async t => {
  const { page } = await visit(t, { hash: '#/groups' });
  await page.locator('[data-filter]').focus();
  await page.keyboard.type('gm?');
  assert.equal(await page.locator('[data-filter]').inputValue(), 'gm?');
  assert.equal(await page.evaluate(() => location.hash), '#/groups');
});

test('arrows walk over the map, Enter opens the owner', async t => {
  const { page } = await visit(t);
  await page.locator('.map').focus();
  await says(page, 'CPU 0, package 0, node 0, owned by db/oltp1', '.chosen');
  await page.keyboard.press('ArrowRight');
  await says(page, 'CPU 32, package 0, node 0, owned by db/oltp1', '.chosen');
  await page.keyboard.press('ArrowDown');
  assert.match(await page.locator('.chosen').innerText(), /^CPU \d+, package 0, node 0/);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash === '#/groups/db/oltp1');
});

test('the maps of a plan and of the history say in words which CPU is marked', async t => {
  const { page } = await visit(t, { hash: '#/plan' });
  await says(page, 'The checker finds no error.');
  await page.locator('#layout-text').focus();
  await page.keyboard.press('Control+Enter');
  await says(page, 'Owners of CPUs before and after');
  await page.getByRole('application', { name: 'Map before' }).focus();
  await page.keyboard.press('End');
  const [before, after] = await page.locator('.before-after .chosen').allInnerTexts();
  assert.match(before, /^CPU 63, package 1, node 3, /);
  assert.match(after, /^CPU 63, package 1, node 3, /);
  await page.evaluate(() => void (location.hash = '#/history'));
  await page.getByRole('application').focus();
  await says(page, 'CPU 0, package 0, node 0, owned by db/oltp1', '.chosen');
});

test('arrows walk over the tree, and close and open its groups', async t => {
  const { page } = await visit(t, { hash: '#/groups' });
  await page.locator('.tree').focus();
  const marked = () => page.locator('.tree-row.active a').innerText();
  assert.equal(await marked(), 'db');
  await page.keyboard.press('ArrowLeft');
  assert.equal(await page.locator('.tree-body .tree-row').count(), 7);
  assert.equal(await page.locator('.tree-row.active').getAttribute('aria-expanded'), 'false');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  assert.equal(await marked(), 'oltp1');
  const active = await page.locator('.tree').getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash === '#/groups/db/oltp1');
});

test('Tab reaches every control of a page in the order of reading, and each shows its focus', async t => {
  const { page } = await visit(t, { hash: '#/plan' });
  await says(page, 'The checker finds no error.');
  await page.reload();
  await says(page, 'The checker finds no error.');
  const seen = [];
  for (let i = 0; i < 40; i += 1) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (e === document.body) return null;
      const style = getComputedStyle(e);
      const frame = e.closest('.editor') ? getComputedStyle(e.closest('.editor')) : style;
      return { name: e.innerText || e.getAttribute('aria-label') || e.tagName, outline: frame.outlineStyle !== 'none' };
    });
    if (!at) break;
    seen.push(at);
  }
  assert.ok(seen.length >= 12, `stops: ${seen.map(s => s.name)}`);
  assert.deepEqual(seen.filter(s => !s.outline).map(s => s.name), [], 'without a visible focus');
  assert.equal(seen[0].name, 'Skip to the page');
  assert.ok(seen.some(s => s.name === 'Show plan'));
});

test('a dialog keeps the focus inside and gives it back', async t => {
  const { page } = await visit(t, { hash: '#/plan' });
  const undo = page.getByRole('button', { name: 'Undo the last change' });
  await undo.click();
  await page.getByRole('dialog').waitFor();
  assert.ok(await page.evaluate(() => document.querySelector('dialog').contains(document.activeElement)));
  await page.keyboard.press('Escape');
  const given_back = () => page.waitForFunction(() => !document.querySelector('dialog') && document.activeElement.innerText === 'Undo the last change');
  await given_back();
  // closed by the browser itself, as nobody used the page since
  await page.evaluate(() => document.activeElement.click());
  await page.getByRole('dialog').waitFor();
  await page.evaluate(() => document.querySelector('dialog').close());
  await given_back();
  await undo.click();
  await page.getByRole('dialog').waitFor();
});
