// What goes wrong is said in words, and goes away by itself where it can: no server, no session, no daemon, no log, other clocks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from './mock/server.mjs';
import { accessible, go, says, visit } from './helpers.mjs';

const NETWORK = [/Failed to load resource/, /ERR_/];

test('a server that is gone and comes back: the last figures stay, and the page goes on', async t => {
  const { page, server } = await visit(t, { allow: NETWORK });
  await server.close();
  await says(page, 'the server does not answer');
  await says(page, 'no connection', '.status');
  assert.equal(await page.locator('.map').count(), 1);
  await accessible(page, 'gone');
  const again = await serve({ write: true, port: server.port });
  t.after(() => again.close());
  await page.waitForSelector('.pulse .dot.on', { state: 'attached', timeout: 12000 });
  assert.equal(await page.locator('.note.error').count(), 0);
});

test('a connection that carries nothing is said so, and the page goes on when it does again', async t => {
  const { page, server } = await visit(t, { allow: NETWORK });
  server.answers.hang = true;
  await says(page, 'no figures for', '.status', 12000);
  await says(page, 'no answer came within 15 s', 'main', 25000);
  await accessible(page, 'silent');
  server.answers.hang = false;
  await page.waitForSelector('.pulse .dot.on', { state: 'attached', timeout: 25000 });
  assert.equal(await page.locator('.note.error').count(), 0);
});

test('a daemon that takes its time delays no figures', async t => {
  const { page, server } = await visit(t);
  server.answers.late.session = 8000;
  const asked = () => server.answers.requests.filter(r => r.id === 'session').length;
  const before = asked();
  const late = [];
  // the page looks at the session every 15 s
  for (let i = 0; i < 26; i += 1) {
    await page.waitForTimeout(1000);
    if (!(await page.locator('.pulse .dot.on').count())) late.push(await page.locator('.pulse').innerText());
  }
  assert.ok(asked() > before, 'it looked');
  assert.deepEqual(late, []);
});

test('a session that is over is said so, and how to get another', async t => {
  const { page, server } = await visit(t, { allow: NETWORK });
  server.answers.session = 'another';
  await says(page, 'The session is over');
  await says(page, 'ringfence web');
  await accessible(page, 'session over');
});

test('a session that is ended from the page is over at the server too', async t => {
  const { page, server } = await visit(t, { allow: NETWORK });
  await page.getByRole('button', { name: 'End session' }).click();
  await says(page, 'The session is over: it was ended from this page');
  assert.equal(server.answers.session, null);
  await accessible(page, 'ended');
});

test('a token that was used already opens nothing, and the page says what to do', async t => {
  const { page, server } = await visit(t);
  const stranger = await page.context().browser().newContext();
  t.after(() => stranger.close());
  const other = await stranger.newPage();
  await other.goto(server.url);
  await says(other, 'The session is over: the token was used already');
  assert.equal(await other.locator('.map').count(), 0);
});

test('the token is gone from the address', async t => {
  const { page } = await visit(t);
  assert.ok(!(await page.evaluate(() => location.href)).includes('token'));
});

test('a daemon that does not answer is said so beside the figures', async t => {
  const { page, server } = await visit(t, { ready: null });
  server.answers.daemon = 'unreachable';
  await page.reload();
  await says(page, 'ringfenced does not answer: connection refused. The figures are read without it.');
});

// timers and performance.now() go on as they are, as where somebody sets the clock of a computer
const SHIFT = ms => {
  const Real = Date;
  window.shift = ms;
  window.Date = class extends Real {
    constructor(...given) {
      super(...(given.length ? given : [Real.now() + window.shift]));
    }
    static now() {
      return Real.now() + window.shift;
    }
  };
};
const DAY = 86400e3;
const clock = at => `${[at.getHours(), at.getMinutes(), at.getSeconds()].map(n => String(n).padStart(2, '0')).join(':')}`;

for (const [ms, words] of [
  [3 * DAY, "The host's clock is 3 d behind this browser's"],
  [-3 * DAY, "The host's clock is 3 d ahead of this browser's"],
  [2000, "The host's clock is 2 s behind this browser's"],
]) {
  test(`a browser whose clock is off by ${ms / 1000} s says so, and times, session and countdown are the host's`, async t => {
    const { page, server, context } = await visit(t, { shift: [SHIFT, ms] });
    await says(page, words);
    const shown = await page.locator('.pulse').innerText();
    const now = [-2, -1, 0, 1, 2].map(s => clock(new Date(Date.now() + s * 1000)));
    assert.ok(now.some(time => shown.trim() === time), `${shown} is none of ${now}`);
    assert.ok((await context.cookies()).length, 'the session lasts');
    const { generation } = server.answers.wait(8);
    await says(page, `Generation ${generation} is undone in`);
    const left = Number.parseInt(await page.locator('.pending .count').innerText(), 10);
    assert.ok(left >= 2 && left <= 8, `${left} s`);
    await page.waitForFunction(() => !document.querySelector('.pending'), undefined, { timeout: 15000 });
    await go(page, '#/plan');
    await says(page, `undo of ${generation}: not confirmed`);
    const rows = await page.locator('.scroll tbody tr td:nth-child(2)').allInnerTexts();
    assert.ok(rows.every(time => /^\d\d:\d\d:\d\d$/.test(time)), `today's times without a date: ${rows}`);
    await accessible(page, words);
  });
}

test('a clock that is set back while the page is open stops nothing', async t => {
  const { page, server } = await visit(t, { shift: [SHIFT, 0] });
  assert.equal(await page.locator('.note.warning').count(), 0);
  await page.evaluate(ms => void (window.shift = ms), -3 * DAY);
  const { generation } = server.answers.wait(60);
  await says(page, `Generation ${generation} is undone in`);
  await says(page, "The host's clock is 3 d ahead of this browser's", 'main', 20000);
});

test('without a log the page of history says how to get one, and shows what came since', async t => {
  const { page } = await visit(t, { server: { log: false }, hash: '#/history' });
  await says(page, 'ringfence record');
  await says(page, 'Since this page is open');
  await go(page, '#/groups/db/report');
  await says(page, 'Earlier figures need the recorder');
});

test('a log with a torn end is shown as far as it is whole', async t => {
  const { page, server } = await visit(t);
  server.answers.torn = 'the last 212 bytes are no whole sample';
  await go(page, '#/history');
  await page.locator('.uplot').first().waitFor();
  await says(page, 'The log is damaged: the last 212 bytes are no whole sample. What is whole is shown.');
  assert.equal(await page.getByText('The log is damaged').count(), 1, 'once');
});

test('the scrubber moves all pages, and n goes back to now', async t => {
  const { page, server } = await visit(t, { hash: '#/history' });
  await page.locator('input[type=range]').focus();
  await page.keyboard.press('PageDown');
  await says(page, "from the recorder's log");
  const past = async () => {
    const list = server.answers.requests.filter(r => r.id === 'sample' && r.url.includes('at_ms'));
    return list.length ? list : (await page.waitForTimeout(100), past());
  };
  const [{ url }] = await past();
  assert.ok(Number(new URLSearchParams(url.split('?')[1]).get('at_ms')) < Date.now() - 10_000);
  await accessible(page, 'the past');
  for (const hash of ['#/map', '#/groups', '#/groups/db/report']) {
    await go(page, hash);
    await says(page, "from the recorder's log");
  }
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press('n');
  await page.waitForSelector('.pulse .dot.on', { state: 'attached' });
  await go(page, '#/history');
  await page.locator('input[type=range]').focus();
  // at once, before the place of the scrubber was looked up
  await Promise.all([page.keyboard.press('Home'), page.keyboard.press('n')]);
  await page.waitForTimeout(1500);
  assert.equal(await page.locator('.pulse .dot.on').count(), 1, 'it stays live');
});

test('a layout of 10 MB that is pasted is refused in words, and the page goes on', async t => {
  const { page, server } = await visit(t, { hash: '#/plan' });
  await says(page, 'The checker finds no error.');
  const took = await page.evaluate(() => {
    const field = document.querySelector('#layout-text');
    const began = performance.now();
    field.value = `# ${'x'.repeat(98)}\n`.repeat(100_000);
    field.dispatchEvent(new Event('input', { bubbles: true }));
    return performance.now() - began;
  });
  assert.ok(took < 5000, `${took} ms`);
  await says(page, 'this text has 9.6 MiB, and a layout may have 4: it was not taken');
  assert.match(await page.locator('#layout-text').inputValue(), /^# The databases/);
  assert.ok(server.answers.requests.every(r => JSON.stringify(r.body ?? '').length < 5e6));
  await page.locator('#layout-text').fill('[groups.db]\n');
  await says(page, 'The checker finds no error.');
  assert.equal(await page.locator('.note.error').count(), 0);
});

test('a machine without groups, results and generations says what to do', async t => {
  const { page, server } = await visit(t, { allow: NETWORK });
  server.answers.setGroups([]);
  server.answers.noResults = true;
  server.answers.generations.length = 0;
  await says(page, 'every group may use every CPU');
  await go(page, '#/groups');
  await says(page, 'There is no group yet');
  await go(page, '#/lab');
  await says(page, 'ringfence lab run tour');
  await go(page, '#/plan');
  await says(page, 'Nothing was applied yet.');
  await go(page, '#/groups/db');
  await says(page, 'There is no group db now.');
  await accessible(page, 'empty');
});
