// Screenshots of all pages against the mock server, to look at: node shots.mjs DIRECTORY [PAGE…]
import { mkdirSync } from 'node:fs';
import { browser, open } from './browser.mjs';
import { serve } from './mock/server.mjs';

const [to, ...some] = process.argv.slice(2);
mkdirSync(to, { recursive: true });
const pages = { map: '#/map', groups: '#/groups', group: '#/groups/db/report', history: '#/history', plan: '#/plan', lab: '#/lab', simulate: '#/simulate' };
const sizes = (process.env.SIZES ?? '400x800,1280x800,2560x1440').split(',').map(s => s.split('x').map(Number));
const chrome = await browser();
for (const machine of (process.env.MACHINES ?? 'demo').split(',')) {
  for (const dark of process.env.SCHEME ? [process.env.SCHEME === 'dark'] : [false, true]) {
    for (const [width, height] of sizes) {
      const server = await serve({ machine, write: true });
      const { page, problems, context } = await open(chrome, server.url, { width, height, dark });
      await page.waitForSelector('.map-page', { timeout: 10000 });
      for (const [name, hash] of Object.entries(pages)) {
        if (some.length && !some.includes(name)) continue;
        await page.evaluate(h => void (location.hash = h), hash);
        await page.waitForTimeout(1800);
        await page.screenshot({ path: `${to}/${machine}-${name}-${width}${dark ? '-dark' : ''}.png`, fullPage: width < 500 });
      }
      for (const p of problems) console.log(`${machine} ${width}: ${p}`);
      await context.close();
      await server.close();
    }
  }
}
await chrome.close();
