// A browser for the tests: Debian's chromium by playwright-core. Every page of it fails its test on an error in the console, among
// them each violation of the content security policy.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const PROGRAM = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

export async function browser(options = {}) {
  if (!PROGRAM) throw new Error('no chromium: scripts/install web, or CHROMIUM=PROGRAM');
  const root = process.getuid() === 0;
  return chromium.launch({ executablePath: PROGRAM, args: [...(root ? ['--no-sandbox'] : []), '--disable-gpu', ...(options.args ?? [])] });
}

export async function open(chrome, url, { width = 1280, height = 800, dark = false, allow = [], shift, patience = 30_000, ...more } = {}) {
  const context = await chrome.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', locale: 'en-GB', ...more });
  if (shift) await context.addInitScript(...shift);
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const problems = [];
  page.on('console', m => ['error', 'warning'].includes(m.type()) && !allow.some(a => a.test(m.text())) && problems.push(m.text()));
  page.on('pageerror', e => problems.push(String(e)));
  await page.goto(url);
  return { page, context, problems };
}
