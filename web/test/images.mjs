// The screenshots of the README, of the mock's machine with everything that the map can show: node images.mjs DIRECTORY
import { browser, open } from './browser.mjs';
import { serve } from './mock/server.mjs';

const to = process.argv[2];
const chrome = await browser();
const server = await serve({ machine: 'demo', write: true });
const { page } = await open(chrome, server.url, { width: 1200, height: 680 });
await page.waitForSelector('.owners tbody tr');
const shot = async (name, hash, before) => {
  await page.evaluate(h => void (location.hash = h), hash);
  await page.waitForTimeout(3000);
  await before?.();
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(0, 0);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${to}/web-${name}.png` });
};
await shot('map', '#/map');
await shot('group', '#/groups/db/report');
await shot('plan', '#/plan', () => page.getByRole('button', { name: 'Show plan' }).click());
await shot('history', '#/history', async () => {
  await page.locator('input[type=range]').focus();
  await page.keyboard.press('PageDown');
  await page.keyboard.press('PageDown');
  await page.waitForTimeout(1200);
});
await chrome.close();
await server.close();
