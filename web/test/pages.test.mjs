// Every page: it shows what the server says, no rule of accessibility is broken, nothing is wider than the window, and the content
// security policy is never violated (an error in the console fails a test).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessible, go, says, visit } from './helpers.mjs';

const PAGES = {
  '#/map': 'CPUs busy',
  '#/groups': '10 groups',
  '#/groups/db/report': 'stopped it in 16 of 50 periods',
  '#/history': 'Groups by CPU',
  '#/plan': 'The checker finds no error.',
  '#/lab': 'Reads per second fall by 34 %',
  '#/lab/memory-2026-11-25': 'Open on its own',
  '#/simulate': 'Beside ringfence',
};

for (const [width, height] of [[400, 800], [1280, 800], [2560, 1440]]) {
  for (const dark of [false, true]) {
    test(`every page is accessible and as wide as the window at ${width} px, ${dark ? 'dark' : 'light'}`, async t => {
      const { page } = await visit(t, { width, height, dark });
      for (const [hash, words] of Object.entries(PAGES)) {
        await go(page, hash);
        await says(page, words);
        await accessible(page, `${hash} at ${width}`);
        const over = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${hash} is ${over} px wider than the window`);
      }
    });
  }
}

for (const width of [400, 1280]) {
  test(`names of 255 bytes make nothing wider than the window at ${width} px`, async t => {
    const { page, server } = await visit(t, { width, allow: [/404/] });
    const name = 'n'.repeat(255);
    const like = server.answers.byName.get('web');
    const below = (group, parent) => ({ ...like, group, label: name, parent, depth: parent ? 1 : 0 });
    server.answers.record(`layout ${'/long'.repeat(60)}`, 'apply', server.answers.groups, 3);
    server.answers.setGroups([...server.answers.groups, below(name, null), below(`${name}/${name}`, name)]);
    const fits = async what => {
      const over = await page.evaluate(() => [document.scrollingElement, document.querySelector('dialog')].map(e => (e ? e.scrollWidth - e.clientWidth : 0)));
      assert.deepEqual(over, [0, 0], `${what}: wider than the window, and than the dialog`);
    };
    await says(page, name);
    await page.locator('.map').focus();
    await page.keyboard.press('End');
    for (let i = 0; i < 70 && !(await page.locator('.chosen').innerText()).includes(name); i += 1) await page.keyboard.press('ArrowLeft');
    await says(page, name, '.chosen');
    await fits('map');
    for (const [hash, words] of [['#/groups', name], [`#/groups/${name}`, 'Settings'], [`#/groups/${name}/${name}`, 'Settings'], ['#/history', 'Groups by CPU'], ['#/plan', '/long']]) {
      await go(page, hash);
      await says(page, words);
      await fits(hash.slice(0, 12));
    }
    await page.locator('#layout-text').fill(`[groups.${name}]\ncpus = 2\n`);
    await page.getByRole('button', { name: 'Show plan' }).click();
    await says(page, 'Owners of CPUs before and after');
    await fits('a plan');
    await page.getByRole('button', { name: 'Undo the last change' }).click();
    await says(page, '/long', 'dialog');
    await fits('a dialog');
    await go(page, `#/groups/no${name}`);
    await says(page, 'There is no group');
    await fits('no group');
  });
}

for (const machine of ['small', 'big']) {
  test(`the map of the ${machine} machine draws each CPU, and names it in words`, async t => {
    const { page } = await visit(t, { server: { machine } });
    await page.locator('.map').focus();
    await page.keyboard.press('End');
    const last = machine === 'small' ? 'CPU 1,' : 'CPU 1023,';
    await says(page, last, '.chosen');
    await accessible(page, machine);
    const painted = await page.evaluate(() => {
      const canvas = document.querySelector('.map canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const colours = new Set();
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return colours.size;
    });
    assert.ok(painted >= (machine === 'small' ? 4 : 16), `${painted} colours`);
    await page.getByText('Each CPU as a table').click();
    await page.locator('.lazy[open] tbody tr').first().waitFor();
    const rows = await page.locator('.lazy[open] tbody tr').count();
    assert.equal(rows, machine === 'small' ? 2 : 1024);
  });
}

test('the map says who owns a CPU, to whom it is lent, and that it is isolated', async t => {
  const { page } = await visit(t);
  await page.getByText('Each CPU as a table').click();
  const row = id => page.locator('.lazy[open] tbody tr').nth(id);
  await row(0).waitFor();
  const cells = async id => (await row(id).innerText()).split('\t').map(s => s.trim());
  const order = await page.locator('.lazy[open] tbody th').allInnerTexts();
  const lent = await cells(order.indexOf('22'));
  assert.deepEqual(lent.slice(5, 8), ['web', 'backup', '']);
  const isolated = await cells(order.indexOf('16'));
  assert.deepEqual(isolated.slice(5, 8), ['rt', '', 'yes']);
});

test('the tree shows 1,000 groups, draws only what can be seen, and finds one by its name', async t => {
  const { page } = await visit(t, { server: { machine: 'big' }, hash: '#/groups' });
  await says(page, '1000 groups');
  assert.ok((await page.locator('.tree-body .tree-row').count()) < 80);
  assert.equal(await page.locator('.tree').getAttribute('aria-rowcount'), '1001');
  await page.keyboard.press('/');
  await page.keyboard.type('tenant13 service07');
  await says(page, '1 of 1000 groups');
  await page.locator('.tree').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash === '#/groups/tenant13/service07');
});

test('a second goes by without flicker: no element comes, goes or moves on the map and in the tree', async t => {
  const { page } = await visit(t, { server: { machine: 'big' } });
  for (const hash of ['#/map', '#/groups']) {
    await go(page, hash);
    await page.waitForTimeout(2500);
    const changes = await page.evaluate(
      () =>
        new Promise(resolve => {
          const places = () => [...document.querySelectorAll('main :is([role=gridcell], dd, td, th, h1, canvas, .bar)')].map(e => { const b = e.getBoundingClientRect(); return `${b.left} ${b.top} ${b.width} ${b.height}`; });
          const before = places();
          const seen = { nodes: 0, texts: 0, moved: [] };
          new MutationObserver(list => {
            for (const m of list) {
              if (m.type === 'characterData') seen.texts += 1;
              else seen.nodes += [...m.addedNodes, ...m.removedNodes].filter(n => n.nodeType === 1).length;
            }
          }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true });
          setTimeout(() => resolve({ ...seen, moved: places().flatMap((p, i) => (p === before[i] ? [] : [`${before[i]} → ${p}`])) }), 4000);
        }),
    );
    assert.ok(changes.texts > 0, `${hash}: the figures change`);
    assert.equal(changes.nodes, 0, `${hash}: elements that came or went`);
    assert.deepEqual(changes.moved, [], `${hash}: elements that moved`);
  }
});

test('the report of the lab is shown in place, where no script runs', async t => {
  const { page } = await visit(t, { hash: '#/lab/memory-2026-11-25' });
  const frame = page.frameLocator('iframe');
  await frame.getByText('Reads per second fall by 34 %.').waitFor();
  assert.equal(await page.locator('iframe').getAttribute('sandbox'), '');
  await go(page, '#/lab');
  await says(page, 'running:');
  assert.match(await page.getByRole('progressbar').getAttribute('aria-valuenow'), /^\d+$/);
});

test('the simulation shows CPUs of each group over time, beside another rule', async t => {
  const { page } = await visit(t, { hash: '#/simulate' });
  await page.getByRole('button', { name: 'Simulate' }).click();
  await says(page, 'square');
  await page.locator('.uplot canvas').waitFor();
  await page.getByText('Figures of').click();
  await says(page, 'backup');
  await accessible(page, 'simulated');
});
