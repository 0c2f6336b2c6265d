// What the mock server answers to each operation of the contract, and the state behind it: groups, generations, a change that waits.
import { COLUMNS, ownersOf, sampleOf } from './figures.mjs';
import { check, plan } from './layout.mjs';
import { machines } from './machines.mjs';
import { report, results, studies } from './lab.mjs';
import { settingsOf, tasksOf, whyOf } from './group.mjs';

const MIB = 2 ** 20;

export class Answers {
  constructor({ machine = 'demo', write = false, skew = 0, log = true, now = () => Date.now() } = {}) {
    Object.assign(this, { write, skew, log, now });
    const { machine: facts, groups } = machines[machine]();
    this.machine = facts;
    this.token = 'one-time-token';
    this.session = 'mock-session';
    this.requests = [];
    this.changes = new Map();
    this.generations = [];
    this.states = [groups];
    this.pending = null;
    this.daemon = 'running';
    /** the connection carries nothing */
    this.hang = false;
    /** milliseconds until the answer of an operation */
    this.late = {};
    this.versions = { groups: 1, owners: 1 };
    this.record('layout /etc/ringfence', 'apply', groups, 31);
    this.setGroups(groups);
  }

  setGroups(groups) {
    this.groups = groups;
    this.byName = new Map(groups.map(g => [g.group, g]));
    this.versions = { groups: this.versions.groups + 1, owners: this.versions.owners + 1 };
  }

  hostNow() {
    return this.now() + this.skew;
  }

  record(what, kind, groups, steps) {
    for (const g of this.generations) g.in_effect = kind === 'set' ? g.in_effect : false;
    this.states.push(groups);
    this.generations.push({ generation: this.generations.length + 1, at_ms: this.hostNow(), by: 'ada', kind, what, steps, state: 'done', in_effect: true, problems: [] });
    return this.generations.length;
  }

  /** What time alone changes. */
  pass() {
    const p = this.pending;
    if (!p || this.hostNow() < p.until) return;
    this.pending = null;
    this.setGroups(p.back);
    this.generations[p.generation - 1].state = 'undone';
    this.record(`undo of ${p.generation}: not confirmed`, 'undo', p.back, p.steps);
  }

  /** A change that nobody here has made, and that waits to be confirmed. */
  wait(seconds) {
    const back = this.groups;
    const generation = this.record('layout of bob', 'apply', back, 3);
    this.pending = { generation, until: Math.round(this.hostNow() + seconds * 1000), back, steps: 3 };
    return this.pending;
  }

  waiting() {
    const p = this.pending;
    if (!p) return null;
    const remaining_ms = Math.max(0, p.until - this.hostNow());
    return { generation: p.generation, remaining_ms, overdue: false, unwatched: false, sentence: `generation ${p.generation} will be undone in ${Math.ceil(remaining_ms / 1000)} s` };
  }

  owners(groups = this.groups, source = 'live') {
    const { owners, cpus } = ownersOf({ ...this, groups });
    return { at_ms: Math.round(this.hostNow()), source, version: this.versions.owners, owners, cpus };
  }

  to(route, url, body, headers) {
    this.pass();
    this.requests.push({ id: route.id, body, at: this.now(), url: url.pathname + url.search });
    if (route.id === 'openSession') {
      if (body.token !== this.token) return refuse(401, 'session_over', 'the token was used already', 'ringfence web');
      this.token = null;
      return { status: 204, headers: { 'Set-Cookie': `rf=${this.session}; HttpOnly; SameSite=Strict; Path=/` } };
    }
    if (!(headers.cookie ?? '').includes(`rf=${this.session}`)) return refuse(401, 'session_over', 'this session is over or was never opened', 'ringfence web');
    if (this.fail) return this.fail;
    const writes = ['apply', 'confirm', 'undo', 'changeSettings'].includes(route.id);
    if (writes && !this.write) return refuse(403, 'read_only', 'ringfence web was started without --write', 'ringfence web --write');
    const unknown = route.names.name !== undefined && !this.byName.has(route.names.name);
    if (unknown) return refuse(404, 'missing', `there is no group ${route.names.name}`, 'ringfence list');
    return (OPERATIONS[route.id] ?? ((a, ...rest) => a[route.id](...rest)))(this, body, Object.fromEntries(url.searchParams), route.names, headers);
  }

  getSession() {
    const now_ms = Math.round(this.hostNow());
    return ok({ hostname: this.machine.hostname, user: 'ada', uid: 1000, version: '0.1.0', write: this.write, daemon: this.daemon, daemon_problem: this.daemon === 'unreachable' ? 'connection refused' : null, now_ms, ends_at_ms: now_ms + 8 * 3600e3 });
  }

  sample(_, { at_ms }, __, headers) {
    const now_ms = Math.round(this.hostNow());
    const at = at_ms ? Number(at_ms) : now_ms - (now_ms % 1000);
    const tag = `"${at}.${this.versions.owners}"`;
    if (!at_ms && headers['if-none-match'] === tag) return { status: 304 };
    if (at_ms && !this.log) return refuse(404, 'missing', 'there is no log in /var/log/ringfence', 'ringfence record');
    return ok(
      { seq: at_ms ? 0 : Math.floor(at / 1000), at_ms: at, now_ms, source: at_ms ? 'log' : 'live', interval_ms: 1000, owners_version: this.versions.owners, groups_version: this.versions.groups, log_problem: this.torn ?? null, ...sampleOf(this, (at / 1000) % 86400) },
      at_ms ? {} : { ETag: tag },
    );
  }

  groupsList() {
    const groups = this.groups.map(({ group, label, parent, depth, cpus, elastic, hierarchies, unit }) => ({ group, label, parent, depth, cpus, elastic, hierarchies, unit }));
    return ok({ version: this.versions.groups, groups });
  }

  group(_, __, { name }) {
    const g = this.byName.get(name);
    const tasks = tasksOf(this, g);
    return ok({ group: name, unit: g.unit, hierarchies: g.hierarchies, limits: g.throttled ? [{ name: 'cpu.max', count: 1803, meaning: 'periods in which the quota stopped it' }] : [], resizes: g.elastic ? [{ at_ms: Math.round(this.hostNow()) - 42000, sentence: 'it used 3.8 of 4 CPUs, and got 2 more' }] : [], kills: g.throttled ? [{ at_ms: Math.round(this.hostNow()) - 90000, sentence: "process 4711 (postgres, user postgres) with 60M in memory was killed, as group 'db' met its limit of memory (64M)" }] : [], settings: settingsOf(this, g), tasks, tasks_total: tasks.length });
  }

  why(_, query, { name }) {
    return ok(whyOf(this.byName.get(name), Number(query.for ?? 5)));
  }

  planSettings({ set }, _, { name }) {
    const before = {};
    const current = settingsOf(this, this.byName.get(name));
    for (const [setting, value] of Object.entries(set)) {
      const found = current.find(s => s.name === setting);
      if (setting === 'memory.max' && !/^(max|\d+(\.\d+)?[KMGT]?|\d+%)$/.test(value)) return refuse(400, 'invalid', `memory.max: '${value}' is no size`, 'such as 8G');
      before[setting] = found.value;
    }
    const writes = Object.entries(set).map(([setting, text]) => ({ file: `/sys/fs/cgroup/${name}/${setting}`, text, why: null }));
    return ok({ group: name, before, generation: this.generations.length, writes, notes: [], command: `ringfence set ${name} ${Object.entries(set).map(([k, v]) => `${k}=${v}`).join(' ')}` });
  }

  changeSettings(body, query, names) {
    const { name } = names;
    const planned = this.planSettings(body, query, names);
    if (planned.status >= 400) return planned;
    if (body.expected_generation != null && body.expected_generation !== this.generations.length) return this.changedMeanwhile();
    for (const [setting, seen] of Object.entries(body.expected ?? {})) {
      const now = planned.value.before[setting];
      if (now !== seen) return { status: 409, value: { status: 409, kind: 'conflict', message: `${setting} of ${name} is ${now} now: somebody changed it meanwhile`, hint: 'look at the value and try again', current: { [setting]: now } } };
    }
    const kept = this.changes.get(name) ?? {};
    this.changes.set(name, { ...kept, ...body.set });
    const generation = this.record(`set ${name} ${Object.keys(body.set).join(' ')}`, 'set', this.groups, planned.value.writes.length);
    return ok({ group: name, values: body.set, writes: planned.value.writes, notes: [], command: planned.value.command, by: 'ringfenced', generation });
  }

  changedMeanwhile() {
    return { status: 409, value: { status: 409, kind: 'conflict', message: `another change came meanwhile (generation ${this.generations.length}); nothing was changed`, hint: 'look at the history, and plan again', current: { generation: String(this.generations.length) } } };
  }

  getLog() {
    const now = Math.round(this.hostNow());
    return ok(this.log ? { directory: '/var/log/ringfence', begins_ms: now - 6 * 3600e3, ends_ms: now - 1000, problem: this.torn ?? null, hint: null } : { directory: '/var/log/ringfence', begins_ms: null, ends_ms: null, problem: 'there is no log', hint: 'ringfence record' });
  }

  series(_, { group, figures, from_ms, to_ms, points = 600 }) {
    if (group && !this.byName.has(group)) return refuse(404, 'missing', `the log has no group ${group}`);
    const names = figures.split(',');
    if (names.length > 8) return refuse(400, 'invalid', 'at most 8 figures at once');
    const count = Math.min(Number(points), this.machine.cpus.length > 100 ? 60 : 240);
    const at_ms = Array.from({ length: count }, (_, i) => Math.round(Number(from_ms) + ((Number(to_ms) - Number(from_ms)) * i) / (count - 1)));
    const values = Object.fromEntries(names.map(n => [n, []]));
    const index = Math.max(0, this.groups.findIndex(g => g.group === group));
    const few = { ...this, groups: group ? [this.groups[index]] : this.groups.filter(g => g.cpus), byName: this.byName };
    for (const at of at_ms) {
      const s = sampleOf(few, (at / 1000) % 86400);
      for (const n of names) {
        const column = COLUMNS.findIndex(c => c.name === n);
        values[n].push(group ? (s.rows[0].values[column] ?? null) : machineFigure(n, s.machine));
      }
    }
    return ok({ at_ms, columns: names.map(name => COLUMNS.find(c => c.name === name) ?? { name, unit: 'cpus', help: name }), values, problem: this.torn ?? null });
  }

  layout() {
    return ok({ path: '/etc/ringfence/layout.toml', exists: true, text: LAYOUT });
  }

  check({ text }) {
    if (text.length > 4 * MIB) return refuse(413, 'invalid', 'the layout is larger than 4 MiB');
    const found = check(text);
    return ok({ diagnostics: found.diagnostics, errors: found.errors, groups: found.groups.length, rules: 0 });
  }

  plan({ text }) {
    const found = check(text);
    const command = 'ringfence plan layout.toml';
    if (found.errors) return ok({ diagnostics: found.diagnostics, plan: null, pending: this.waiting(), command });
    const { steps, assignments, after } = plan(this, text);
    return ok({
      diagnostics: found.diagnostics,
      pending: this.waiting(),
      command,
      plan: { generation: this.generations.length, empties: found.groups.length === 0, reserved: '', steps, assignments, text: steps.map(s => `${s.what}\n`).join(''), before: this.owners(), after: this.owners(after, 'plan') },
    });
  }

  apply({ text, confirm_seconds, expected_generation }) {
    if (expected_generation !== this.generations.length) return this.changedMeanwhile();
    const { steps, after } = plan(this, text);
    const back = this.groups;
    const generation = this.record('layout of the page', 'apply', after, steps.length);
    this.setGroups(after);
    const until = confirm_seconds == null ? null : Math.round(this.hostNow() + confirm_seconds * 1000);
    if (until) this.pending = { generation, until, back, steps: steps.length };
    return ok({ command: 'ringfence apply layout.toml', generation, steps: steps.length, undone_at_ms: until, warnings: [] });
  }

  confirm({ generation }) {
    if (this.pending?.generation !== generation) return refuse(409, 'conflict', `generation ${generation} does not wait to be confirmed`);
    this.pending = null;
    return ok({ command: `ringfence confirm ${generation}`, generation, steps: 0, undone_at_ms: null, warnings: [] });
  }

  undo({ to, expected_generation }) {
    if (expected_generation !== this.generations.length) return this.changedMeanwhile();
    const target = to ?? this.generations.length - 1;
    const groups = this.pending ? this.pending.back : this.states[target];
    this.pending = null;
    this.setGroups(groups);
    const generation = this.record(to == null ? 'undo' : `undo ${to}`, 'undo', groups, 4);
    return ok({ command: to == null ? 'ringfence undo' : `ringfence undo ${to}`, generation, steps: 4, undone_at_ms: null, warnings: [] });
  }

  history() {
    return ok({ newest: this.generations.length, generations: this.generations, pending: this.waiting() });
  }

  lab() {
    return ok({ directory: '/home/ada/ringfence-results', problem: null, results: this.noResults ? [] : results(this.hostNow(), this.now()), studies });
  }

  labReport() {
    return { status: 200, html: report };
  }

  simulate({ text, synthetic = ['square'], against = ['static'] }) {
    const { diagnostics, errors } = check(text);
    const groups = this.groups.filter(g => g.elastic).map(g => g.group);
    const outcomes = errors ? [] : synthetic.flatMap(load => ['ringfence', ...against].map((rule, r) => ({ load, rule, seconds: 60, lost_percent: r * 1.7, stranded_percent: r * 3.1, unused_percent: 12 + r * 9, changes: r ? 0 : 14, most_changes: r ? 0 : 6, walk: 0, points: r ? [{ at: 0, cpus: groups.map(() => 8) }] : Array.from({ length: 12 }, (_, i) => ({ at: i * 5, cpus: groups.map((_, g) => ((i + g) % 2 ? 4 : 12)) })) })));
    return ok({ command: 'ringfence simulate layout.toml', diagnostics, groups, outcomes, warnings: [] });
  }
}

/** Operations whose names are fields of the state. */
const OPERATIONS = {
  session: a => a.getSession(),
  machine: a => ok(a.machine),
  groups: a => a.groupsList(),
  owners: a => ok(a.owners()),
  log: a => a.getLog(),
  endSession: a => ((a.session = null), { status: 204 }),
};

const ok = (value, headers = {}) => ({ status: 200, value, headers });
export const refuse = (status, kind, message, hint = null) => ({ status, value: { status, kind, message, hint } });

function machineFigure(name, m) {
  const busy = m.cpus.reduce((a, b) => a + b, 0);
  const known = { 'machine.cpu.idle': m.cpus.length - busy, 'machine.cpu.iowait': 0, 'machine.memory.total': m.memory_total, 'machine.memory.available': m.memory_available };
  if (name in known) return known[name];
  const pressure = /^machine\.(cpu|memory|io)\.pressure\.some$/.exec(name);
  return pressure ? m.pressure[pressure[1]] : null;
}

const LAYOUT = `# The databases, and the batch work that takes what they leave.
[groups.db]
memory.max = "75%"

[groups.rt]
cpus = 8
exclusive = true

[groups.queue]
cpus = 4
`;
