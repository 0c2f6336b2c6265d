// A server of the contract for the tests of the pages, with machines of its own. Each answer is compared with docs/web-api.json, so that
// the pages are never tested against what the contract does not say. On the command line: node server.mjs [small|demo|big]
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Answers } from './answers.mjs';
import { contract } from './contract.mjs';

const dist = join(dirname(fileURLToPath(import.meta.url)), '../../dist');
export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FILES = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/app.js': ['app.js', 'text/javascript; charset=utf-8'],
  '/app.css': ['app.css', 'text/css; charset=utf-8'],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
};

export async function serve(options = {}) {
  const answers = new Answers(options);
  const server = createServer((request, response) => void answer(answers, request, response));
  server.keepAliveTimeout = 500;
  await new Promise(resolve => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address();
  return {
    url: `http://127.0.0.1:${port}/#token=${answers.token}`,
    port,
    answers,
    close: () => new Promise(resolve => (server.closeAllConnections(), server.close(resolve))),
  };
}

async function answer(answers, request, response) {
  const url = new URL(request.url, 'http://127.0.0.1');
  response.setHeader('Content-Security-Policy', CSP);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  const file = FILES[url.pathname];
  if (file) {
    const bytes = readFileSync(join(dist, `${file[0]}.gz`));
    gunzipSync(bytes);
    return response.writeHead(200, { 'Content-Type': file[1], 'Content-Encoding': 'gzip', 'Cache-Control': 'no-cache' }).end(bytes);
  }
  const body = await read(request);
  if (answers.hang) return undefined;
  const found = contract.route(request.method, url.pathname);
  const late = answers.late[found?.id];
  if (late) await new Promise(resolve => setTimeout(resolve, late));
  const { status, value, headers = {}, html } = answers.to(found, url, body, request.headers);
  if (html !== undefined) return response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'" }).end(html);
  if (status === 204 || status === 304) return response.writeHead(status, headers).end();
  contract.check(found, status, value);
  const type = status >= 400 ? 'application/problem+json' : 'application/json';
  return response.writeHead(status, { 'Content-Type': type, ...headers }).end(JSON.stringify(value));
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return text ? JSON.parse(text) : undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await serve({ machine: process.argv[2] ?? 'demo', write: true, port: Number(process.env.PORT ?? 0) });
  console.log(url);
}
