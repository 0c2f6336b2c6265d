// The real server for tests: RINGFENCE web as root, with a history, a log and results of its own, and its browser.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { browser, open } from '../browser.mjs';

/** An absolute path. */
const PROGRAM = process.env.RINGFENCE;

/** Another command of the program. */
export function run(...args) {
  const { status, stdout, stderr } = spawnSync(PROGRAM, args, { encoding: 'utf8' });
  return { status, out: stdout, error: stderr };
}

/** A command that goes on. */
export const start = (...args) => spawn(PROGRAM, args, { stdio: 'ignore' });

/** `ringfence web` with these arguments and a page of it. */
export async function serve(...more) {
  assert.ok(PROGRAM && existsSync(PROGRAM), 'RINGFENCE names no program: scripts/web real target/release/ringfence');
  const state = mkdtempSync(join(tmpdir(), 'ringfence-web-'));
  const socket = join(state, 'daemon.sock');
  const own = ['--state', state, '--socket', socket];
  const server = spawn(PROGRAM, ['web', '--listen', '127.0.0.1:0', '--directory', state, '--results', state, ...own, ...more], { cwd: state, stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((resolve, reject) => {
    let text = '';
    server.stdout.on('data', part => {
      text += part;
      const found = /http:\/\/\S+/.exec(text);
      if (found) resolve(found[0]);
    });
    server.on('exit', code => reject(new Error(`ringfence web ended with ${code}: ${text}`)));
  });
  const chrome = await browser();
  const { page, problems } = await open(chrome, url);
  await page.waitForSelector('.pulse .dot.on', { state: 'attached' });
  const close = async () => {
    await chrome.close();
    server.kill('SIGTERM');
    // with a history of its own nothing else is undone
    run('undo', '0', '--state', state);
    rmSync(state, { recursive: true, force: true });
    assert.deepEqual(problems, [], 'errors in the console');
  };
  return { state, socket, page, close };
}

/** A group's directories in the hierarchies of this machine. */
export function directories(group) {
  const roots = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter(line => / - cgroup2? /.test(line))
    .map(line => line.split(' ')[4]);
  return [...new Set(roots)].map(root => join(root, group)).filter(existsSync);
}

export const limits = group => directories(group).flatMap(d => readdirSync(d).filter(f => /^memory\.(max|limit_in_bytes)$/.test(f)).map(f => readFileSync(join(d, f), 'utf8').trim()));
