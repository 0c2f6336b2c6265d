// The virtual machine of scripts/test-packages web: commands there, and `ringfence web` forwarded by ssh to a port of this machine.
import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';

const CONFIG = process.env.RF_SSH;
/** Emulated CPUs: what takes a second elsewhere may take a minute. */
export const SLOW = 180_000;
const BOOT = 900_000;

const ssh = (user, command) => spawnSync('ssh', ['-F', CONFIG, `${user}@guest`, command], { encoding: 'utf8', timeout: SLOW });
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

/** A command that has run there: a connection that fails is an error, and no answer. */
export function run(user, command) {
  const { status, stdout, stderr, error } = ssh(user, command);
  if (status === null || status === 255) throw new Error(`ssh ${user}@guest ${command}: ${error ?? stderr}`);
  return { status, out: stdout.trim(), error: stderr.trim() };
}

export async function booted() {
  if (!CONFIG) throw new Error('there is no virtual machine: scripts/test-packages web starts one, and this');
  const end = Date.now() + BOOT;
  while (ssh('root', 'test -e /run/rf-ready').status !== 0) {
    if (Date.now() > end) throw new Error('the virtual machine does not get ready');
    await pause(3000);
  }
}

/** Waits until this has no complaint, which is the error if time runs out. */
export async function until(complaint, time = 60_000) {
  const end = Date.now() + time;
  for (let found = complaint(); found; found = complaint()) {
    if (Date.now() > end) throw new Error(found);
    await pause(1000);
  }
}

export const over = () => run('root', 'touch /run/rf-done');

async function free() {
  const server = createServer();
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise(resolve => server.close(resolve));
  return port;
}

/** `ringfence web` of a user there, with a tunnel whose near end has another port than the far end. */
export async function serve(user, far, options) {
  const near = await free();
  // Ctrl-C ends a shell too, by a signal
  const command = `exec ringfence web --listen 127.0.0.1:${far} ${options}`;
  const child = spawn('ssh', ['-F', CONFIG, '-tt', '-o', 'ExitOnForwardFailure=yes', '-L', `127.0.0.1:${near}:127.0.0.1:${far}`, `${user}@guest`, command]);
  let text = '';
  let seen = 0;
  child.stdout.on('data', part => void (text += part));
  child.stderr.on('data', part => void (text += part));
  const ended = new Promise(resolve => child.on('exit', resolve));
  /** The next URL that it prints, as who opens it here types it. */
  const url = async () => {
    const end = Date.now() + SLOW;
    while (Date.now() < end) {
      const found = /http:\/\/127\.0\.0\.1:\d+(\/#token=[0-9a-f]+)\r?\n/.exec(text.slice(seen));
      if (found) {
        seen += found.index + found[0].length;
        return `http://localhost:${near}${found[1]}`;
      }
      if (child.exitCode !== null) break;
      await pause(200);
    }
    throw new Error(`no URL: ${text}`);
  };
  return {
    url,
    /** Return in its terminal. */
    again: () => (child.stdin.write('\r'), url()),
    /** Ctrl-C in its terminal; the exit status. */
    stop: () => (child.exitCode === null && child.stdin.write('\x03'), ended),
  };
}
