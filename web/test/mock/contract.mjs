// The contract, docs/web-api.json, as what finds a path's operation and checks an answer's form.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Ajv from 'ajv/dist/2020.js';

const document = JSON.parse(readFileSync(fileURLToPath(new URL('../../../docs/web-api.json', import.meta.url)), 'utf8'));
const ajv = new Ajv({ strict: false, allErrors: false, validateFormats: false });
ajv.addSchema(document, 'api');
const checks = new Map();

const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>.+)')}$`),
    fixed: path.replace(/\{\w+\}/g, '').length,
    id: operation.operationId,
    answer: operation.responses['200']?.content?.['application/json']?.schema.$ref,
  })),
);

export const contract = {
  route(method, path) {
    const found = routes.filter(r => r.method === method && r.pattern.test(path)).sort((a, b) => b.fixed - a.fixed)[0];
    if (!found) throw new Error(`the page asks for ${method} ${path}, which the contract does not have`);
    const groups = found.pattern.exec(path).groups ?? {};
    const names = Object.fromEntries(Object.entries(groups).map(([k, v]) => [k, decodeURIComponent(v)]));
    return { ...found, names };
  },

  check(route, status, value) {
    const ref = status >= 400 ? '#/components/schemas/Problem' : route.answer;
    if (!ref) return;
    if (!checks.has(ref)) checks.set(ref, ajv.compile({ $ref: `api${ref}` }));
    const valid = checks.get(ref);
    if (!valid(value)) throw new Error(`${route.id} answers what the contract does not say: ${ajv.errorsText(valid.errors)}`);
  },
};
