// What the tests of the pages share: one browser, a mock server and a page for each test, closed at its end.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import axe from 'axe-core';
import { browser, open } from './browser.mjs';
import { serve } from './mock/server.mjs';

let chrome;
after(async () => chrome?.close());

/** A server and a page that has its first sample. */
export async function visit(t, { server: options = {}, hash, ready = '.pulse .dot.on', ...more } = {}) {
  chrome ??= await browser();
  const server = await serve({ write: true, ...options });
  const { page, context, problems } = await open(chrome, server.url, more);
  t.after(async () => {
    await context.close();
    await server.close().catch(() => {});
    assert.deepEqual(problems, [], 'errors in the console');
  });
  if (ready) await page.waitForSelector(ready, { state: 'attached' });
  if (hash) await go(page, hash);
  return { page, server, problems, context };
}

export async function go(page, hash) {
  await page.evaluate(h => void (location.hash = h), hash);
  await page.waitForFunction(h => location.hash === h, hash);
}

/** No violation that axe knows of, of any level. */
export async function accessible(page, what) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  const text = violations.map(v => `${v.id}: ${v.help}\n  ${v.nodes.map(n => `${n.target} ${n.failureSummary}`).join('\n  ')}`);
  assert.deepEqual(text, [], `axe: ${what}`);
}

export const text = (page, selector) => page.locator(selector).innerText();

export async function says(page, words, selector = 'main', timeout = 8000) {
  await page.waitForFunction(([s, w]) => document.querySelector(s)?.innerText.replace(/\s+/g, ' ').includes(w), [selector, words], { timeout }).catch(async () => {
    assert.fail(`the page does not say "${words}", but: ${(await text(page, selector)).slice(0, 3000)}`);
  });
}
