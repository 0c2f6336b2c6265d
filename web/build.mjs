// Makes dist/ of src/: types of the API from the server's contract, a check of all types, one bundle of each kind, gzipped by a
// packer of its own version, as what zlib writes depends on how node was built.
//
//   node build.mjs          writes dist/
//   node build.mjs --check  compares dist/ with a fresh build, writes nothing, and exits with 1 where they differ
//   node build.mjs --plain DIRECTORY  writes the files unpacked, without minifying, for a look at them
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { gunzipSync, gzipSync } from 'fflate';
import openapiTS, { astToString } from 'openapi-typescript';

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, 'dist');
const contract = join(here, '../docs/web-api.json');
const types = join(here, 'src/api.d.ts');
const LIMIT = 80_000;

export async function makeTypes() {
  const ast = await openapiTS(new URL(`file://${contract}`), { alphabetize: true, defaultNonNullable: false });
  const text = `// Made from docs/web-api.json by build.mjs.\n${astToString(ast)}`;
  if (!existsSync(types) || readFileSync(types, 'utf8') !== text) writeFileSync(types, text);
}

export async function bundle({ minify = true } = {}) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { app: 'src/main.tsx' },
    bundle: true,
    minify,
    write: false,
    outdir: dist,
    format: 'esm',
    target: ['chrome111', 'firefox114', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'warning',
    loader: { '.svg': 'text' },
    banner: { js: licences(), css: licences() },
  });
  const files = new Map(result.outputFiles.map(f => [f.path.slice(dist.length + 1), f.contents]));
  for (const name of ['index.html', 'icon.svg']) files.set(name, new Uint8Array(readFileSync(join(here, 'src', name))));
  return files;
}

// what the licences of the bundled packages ask to stand in copies
function licences() {
  return '/*! Ringfence, Apache-2.0. Contains Preact (MIT, (c) 2015-present Jason Miller) and uPlot (MIT, (c) 2022 Leon Sorokin). */';
}

const pack = bytes => gzipSync(bytes, { level: 9, mtime: 0 });

function checkTypes() {
  execFileSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', here], { stdio: 'inherit' });
}

async function main(args) {
  await makeTypes();
  checkTypes();
  const plain = args.indexOf('--plain');
  if (plain >= 0) {
    const to = args[plain + 1];
    mkdirSync(to, { recursive: true });
    for (const [name, bytes] of await bundle({ minify: false })) writeFileSync(join(to, name), bytes);
    return 0;
  }
  const packed = new Map([...(await bundle())].map(([name, bytes]) => [`${name}.gz`, pack(bytes)]));
  let total = 0;
  for (const [name, bytes] of packed) {
    total += bytes.length;
    console.log(`${String(bytes.length).padStart(7)}  ${name}`);
  }
  console.log(`${String(total).padStart(7)}  bytes in all; ${LIMIT} are the limit`);
  if (total > LIMIT) return 1;
  return args.includes('--check') ? compare(packed) : write(packed);
}

function write(packed) {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  for (const [name, bytes] of packed) writeFileSync(join(dist, name), bytes);
  return 0;
}

function compare(packed) {
  const there = new Set(existsSync(dist) ? readdirSync(dist) : []);
  let differ = 0;
  for (const name of new Set([...there, ...packed.keys()])) {
    const fresh = packed.get(name);
    const old = there.has(name) ? readFileSync(join(dist, name)) : undefined;
    if (fresh && old && Buffer.compare(old, fresh) === 0) continue;
    differ += 1;
    const why = !fresh ? 'no build makes it' : !old ? 'it is missing' : same(old, fresh) ? 'packed in another way' : 'its content differs';
    console.error(`web/dist/${name} is not what a fresh build makes: ${why}`);
  }
  if (differ) console.error('hint: scripts/web build');
  return differ ? 1 : 0;
}

function same(a, b) {
  try {
    return Buffer.compare(gunzipSync(a), gunzipSync(b)) === 0;
  } catch {
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
