//! Every key of the layout file in one table: what readers accept, what the manual and the JSON schema say, and what a
//! mistyped key may have meant. Settings' names are not here; they are the settings table's.

/// One key of a table of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    /// One or two sentences without the last full stop.
    pub doc: &'static str,
    /// Right sides that may stand behind it, as TOML, separated by ` · `.
    pub examples: &'static str,
}

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// True or false.
    Flag,
    /// A level of isolation, or a table of knobs' rows.
    Isolate,
    /// A table of rows of the whole machine.
    MachineKnobs,
    /// Any string.
    Text,
    /// One of these.
    Word(&'static [&'static str]),
    /// A whole number from this.
    Number(u64),
    /// A number of CPUs or a percentage.
    Amount,
    /// NUMA nodes: a number, a list in a string, an array of numbers.
    Nodes,
    /// A string or several.
    Texts,
    /// CPUs.
    Cpus,
    /// Memory nodes.
    Mems,
    /// Memory in bytes, a size, or a percentage.
    Memory,
    /// A number, or from and to.
    Expected,
    /// The same of memory.
    ExpectedMemory,
    /// An account's name or number.
    Account,
    /// Octal digits in a string.
    Mode,
    /// A table of these keys.
    Table(&'static [Key]),
    /// An array of such tables.
    Tables(&'static [Key]),
    /// A table of names, each with a table of keys and settings.
    Groups,
    /// A table of controllers, each with a string.
    Mounts,
    /// A table of any names, each with a string.
    Names,
    /// What processes must be like: a table of [`MATCH`] or several.
    Matches,
    /// Where a rule puts processes: a group's name, or an array of tables.
    To,
}

const fn key(name: &'static str, shape: Shape, examples: &'static str, doc: &'static str) -> Key {
    Key { name, shape, doc, examples }
}

/// At the top of the file.
pub(crate) const TOP: &[Key] = &[
    key(
        "groups",
        Shape::Groups,
        "{ oltp1 = { cpus = 8 } }",
        "The groups, by name. `[groups.db.groups.oltp1]` and `[groups.\"db/oltp1\"]` are the same group",
    ),
    key(
        "templates",
        Shape::Groups,
        "{ \"students/%u\" = { memory.max = \"2G\" } }",
        "Groups that are made when a rule first needs them; the name holds codes: %u %U user, %g %G group, %p %P process, each as name and as number; \\% is a per cent sign",
    ),
    key(
        "rules",
        Shape::Tables(RULE),
        "[{ user = \"oracle\", to = \"oltp1\" }]",
        "Which processes go to which group. The first rule that matches counts; the groups' own `match` come after all rules",
    ),
    key(
        "schedule",
        Shape::Tables(SCHEDULE),
        "[{ name = \"night\", at = \"22:00\", until = \"06:00\", groups.oltp1 = { cpus = 4 } }]",
        "What changes by itself, and when; the daemon makes the changes",
    ),
    key(
        "reserve",
        Shape::Table(RESERVE),
        "{ cpus = 2, memory = \"4G\" }",
        "What the rest of the system keeps; no group is given it",
    ),
    key(
        "power",
        Shape::Table(POWER),
        "{ saving = true, floor = 2 }",
        "Fewer CPUs for groups without CPUs of their own while they use little",
    ),
    key(
        "isolate",
        Shape::MachineKnobs,
        "{ stat-interval = 10, huge-pages = \"never\", timer-migration = true }",
        "Knobs of the whole machine that are set while a group has `isolate` (docs/isolation.md): true is the usual value",
    ),
    key(
        "host",
        Shape::Table(HOST),
        "{ hostname = \"db*\", nodes = 4 }",
        "What the machine must be like; on another one the layout is refused",
    ),
    key(
        "defaults",
        Shape::Table(DEFAULTS),
        "{ smt = \"whole-cores\", memory.oom.group = true }",
        "What groups and templates get that do not say otherwise; settings too",
    ),
    key(
        "mounts",
        Shape::Mounts,
        "{ cpu = \"/cgroup/cpu\", \"name=jobs\" = \"/cgroup/jobs\" }",
        "v1 hierarchies to be mounted if they are not; controllers with the same path share one",
    ),
    key(
        "systemd",
        Shape::Tables(SYSTEMD),
        "[{ slice = \"db.slice\", scope = \"db.scope\" }]",
        "cgconfig.conf's sections of that name, used by exports only; groups live below a unit of Ringfence's own",
    ),
];

/// Of an entry of `schedule`.
pub(crate) const SCHEDULE: &[Key] = &[
    key("name", Shape::Text, "\"night\"", "Its name, which the history shows"),
    key(
        "at",
        Shape::Text,
        "\"22:00\" · \"Mon..Fri 22:00\" · \"*-*-01 03:00 Europe/Berlin\" · \"hourly\"",
        "When the change is made: a calendar in systemd's syntax, in the machine's time zone unless it ends with another",
    ),
    key(
        "until",
        Shape::Text,
        "\"06:00\"",
        "When it is taken back: another calendar. Default: it stays, and what another schedule changes later counts more",
    ),
    key(
        "missed",
        Shape::Word(&["run", "skip"]),
        "\"run\" · \"skip\"",
        "What becomes of a change whose time passed while the daemon or the machine was down: the latest one is made at the start, or none. Default: run",
    ),
    key(
        "after",
        Shape::Text,
        "\"600s\" · \"1h 30m\"",
        "Instead of `at`: the change is made this long after the daemon first applied the layout since the boot",
    ),
    key(
        "every",
        Shape::Text,
        "\"600s\"",
        "With `after`: the change is taken back after this time, made again after it, and so on",
    ),
    key(
        "on",
        Shape::Table(ON),
        "{ unit = \"backup.service\", state = \"active\" } · { process = \"pg_dump\", state = \"start\" }",
        "Instead of `at`: the change is made when this happens, and taken back when its opposite does",
    ),
    key(
        "groups",
        Shape::Groups,
        "{ oltp1 = { cpus = 4 }, batch = { cpus = 32, memory.max = \"8G\" } }",
        "What groups of the layout have meanwhile: `cpus`, `mems` and settings; everything else stays",
    ),
];

/// Of `on = { … }`.
pub(crate) const ON: &[Key] = &[
    key("unit", Shape::Text, "\"backup.service\"", "A unit of systemd, of any kind"),
    key(
        "process",
        Shape::Text,
        "\"pg_dump\" · \"/usr/bin/pg_dump\"",
        "A program: its name, at most 15 bytes, or its path; instead of `unit`",
    ),
    key(
        "state",
        Shape::Word(&["active", "inactive", "start", "end"]),
        "\"start\"",
        "active or inactive of a unit; start or end of a process: the first one starts, the last one ends. Default: active, start",
    ),
];

/// Of a group of a schedule. Settings stand beside them.
pub(crate) const SCHEDULED: &[Key] = &[CPUS, MEMS];

const CPUS: Key = key(
    "cpus",
    Shape::Cpus,
    "8 · \"0-7\" · \"25%\" · \"all\" · { node = 0 } · { count = 8, near = \"node:0\" } · { like = \"oltp2\" }",
    "CPUs: a number is how many, a string is a list of CPU numbers (\"8\" is CPU 8) or a share of those not reserved; \"all\" are the parent's. Default: as the kernel gives them",
);
const MEMS: Key = key(
    "mems",
    Shape::Mems,
    "\"local\" · \"0-1\" · \"all\" · { like = \"oltp2\" }",
    "NUMA nodes for memory: \"local\" are those that the CPUs are on, a string is a list of node numbers, \"all\" are the parent's",
);
const EXCLUSIVE: Key = key(
    "exclusive",
    Shape::Flag,
    "true",
    "No other group may use its CPUs, enforced by the kernel: a partition on cgroup v2, cpu_exclusive on v1",
);
const ISOLATE: Key = key(
    "isolate",
    Shape::Isolate,
    "\"cpus\" · \"quiet\" · \"full\" · { level = \"cpus\", governor = \"performance\", interrupts = false } · { level = \"full\", budget = { per-second = 20, longest-us = 50 } }",
    "Its CPUs are left alone by interrupts, queues of work and threads of the kernel too; with \"quiet\" sleep and changes of frequency too (docs/isolation.md). Its CPUs are named, or exclusive",
);
const GROUP_LATENCY: Key = key(
    "latency",
    Shape::Table(LATENCY),
    "{ command = [\"/usr/local/bin/p99\"], p99 = \"5ms\" } · { log = \"/var/log/nginx/access.log\", pattern = 'request_time=([0-9.]+)', p99 = \"50ms\" } · { prometheus = \"http://127.0.0.1:9100/metrics\", metric = \"http_request_duration_seconds\", p99 = \"20ms\", every = \"2s\" }",
    "Of an elastic group: its latency, which decides about its CPUs in place of how long its tasks wait (docs/elastic.md)",
);
/// Of `isolate` of a group: what `ringfence isolate check` compares with.
pub const BUDGET: &[Key] = &[
    key("per-second", Shape::Number(0), "20", "The most interruptions per second that each CPU may have"),
    key(
        "longest-us",
        Shape::Number(0),
        "50",
        "The longest time, in microseconds, that anything else may take a CPU away at once, as the noise probe sees it",
    ),
];
const TASKS: Key = key(
    "tasks",
    Shape::Table(TASKS_KEYS),
    "{ user = \"oracle\", group = \"dba\" }",
    "Who may put tasks in: the owner of the files that take them",
);
const ADMIN: Key = key(
    "admin",
    Shape::Table(ADMIN_KEYS),
    "{ user = \"root\", group = \"root\" }",
    "Who may change its limits and make groups in it: the owner of the directory and of the files that change nothing for other groups",
);
const CONTROLLERS: Key = key(
    "controllers",
    Shape::Texts,
    "[\"cpu\", \"memory\"]",
    "Controllers that the group is to have beyond those that its settings need; `name=x` is a named v1 hierarchy",
);
const PLACEMENT: Key = key(
    "placement",
    Shape::Word(&["pack", "spread"]),
    "\"pack\" · \"spread\"",
    "On as few nodes and caches as can be, or evenly over all",
);
const SMT: Key = key(
    "smt",
    Shape::Word(&["whole-cores", "threads", "any"]),
    "\"whole-cores\" · \"threads\" · \"any\"",
    "SMT siblings: all of a core or none; each CPU on a core of its own while there are any; as it comes",
);
const POOL: Key = key(
    "pool",
    Shape::Word(&["shared", "exclusive"]),
    "\"shared\" · \"exclusive\"",
    "Whether other groups of the layout may be given the same CPUs. `exclusive = true` of the group also makes the kernel hold to it",
);

const KEEP: Key = key(
    "keep",
    Shape::Word(&["repair", "report", "off"]),
    "\"repair\" · \"report\" · \"off\"",
    "What the daemon does where the group is no longer as the layout asks: repair it, report it, or ignore it. Default: what the daemon's options say",
);

/// Of a group. Settings stand beside them.
pub(crate) const GROUP: &[Key] = &[
    CPUS,
    MEMS,
    EXCLUSIVE,
    ISOLATE,
    GROUP_LATENCY,
    TASKS,
    ADMIN,
    key(
        "match",
        Shape::Tables(MATCH),
        "[{ user = \"oracle\" }, { group = \"dba\", process = \"ora_*\" }]",
        "Which processes belong to it, wherever they start: those that fit one of these",
    ),
    CONTROLLERS,
    KEEP,
    key(
        "unit",
        Shape::Text,
        "\"postgresql@15-main.service\" · \"machine.slice\" · \"postgresql@*.service\"",
        "The group is this unit of systemd: its settings become properties of the unit, in a drop-in file, and hold over reloads, restarts and reboots. With *, ? or […] there is such a group for each unit that fits and is loaded at `apply`, GROUP/UNIT without the unit's kind: db/postgresql@15-main of db",
    ),
    key("groups", Shape::Groups, "{ reports = { cpus = 2 } }", "Groups in it"),
];

/// Of a template. Settings stand beside them.
pub(crate) const TEMPLATE: &[Key] = &[CPUS, MEMS, EXCLUSIVE, TASKS, ADMIN, CONTROLLERS];

/// Of `defaults`. Settings stand beside them.
pub(crate) const DEFAULTS: &[Key] = &[
    key("mems", Shape::Mems, "\"local\"", "Memory nodes of groups that ask for CPUs"),
    PLACEMENT,
    SMT,
    POOL,
    TASKS,
    ADMIN,
    KEEP,
];

/// Of `cpus = { … }`.
pub(crate) const CPU_SPEC: &[Key] = &[
    key("count", Shape::Amount, "8 · \"25%\"", "How many logical CPUs, or which share of those not reserved"),
    key(
        "cores",
        Shape::Number(1),
        "3",
        "How many whole cores, instead of count: with all their SMT siblings, also where cores have different numbers of CPUs; of equally near ones the largest",
    ),
    key("min", Shape::Number(1), "2", "The least number of CPUs; with max instead of count"),
    key("max", Shape::Number(1), "8", "The largest number of CPUs; as many as are free, up to that"),
    key(
        "weight",
        Shape::Number(1),
        "300",
        "With min and max: the group is elastic, with CPUs of its own between these, and this is its share beside other elastic groups. \
         ringfenced resizes it with its load; without the daemon it has min (docs/elastic.md)",
    ),
    key("node", Shape::Nodes, "0 · \"0-1\" · [0, 2]", "Only CPUs of these NUMA nodes; alone: all of them"),
    key(
        "near",
        Shape::Texts,
        "\"node:0\" · \"device:/dev/nvme0n1\" · [\"group:oltp1\", \"node:1\"]",
        "As near as can be to a node, a block device or another group's CPUs; the first counts most",
    ),
    PLACEMENT,
    SMT,
    POOL,
    key("like", Shape::Text, "\"oltp2\"", "The same CPUs as another group; stands alone"),
];

/// Of `latency = { … }`.
pub(crate) const LATENCY: &[Key] = &[
    key(
        "command",
        Shape::Texts,
        "[\"/usr/local/bin/p99\", \"db\"]",
        "A program, by its path from the root, with arguments: the first line that it prints is the P99, such as `4.2ms`. It runs as the user of the daemon and is killed if it takes longer than `every`",
    ),
    key(
        "log",
        Shape::Text,
        "\"/var/log/postgresql/postgresql.log\"",
        "Instead of `command`: a file to which a line is added for each request; it is read from its end, and followed where it is rotated",
    ),
    key(
        "pattern",
        Shape::Text,
        "'duration: ([0-9.]+ ms)'",
        "With `log`: a regular expression whose first group is the latency; lines that do not fit do not count",
    ),
    key(
        "prometheus",
        Shape::Text,
        "\"http://127.0.0.1:9100/metrics\"",
        "Instead of `command`: an address, by number or localhost, that answers with metrics",
    ),
    key(
        "metric",
        Shape::Text,
        "\"http_request_duration_seconds\" · 'http_request_duration_seconds{handler=\"/api\"}'",
        "With `prometheus`: a histogram, whose P99 is of the last 10 s, a summary with quantile 0.99, or a gauge; of several series of a gauge or summary the slowest counts",
    ),
    key("p99", Shape::Text, "\"5ms\"", "What the 99th percentile is not to exceed, up to 60 s"),
    key(
        "every",
        Shape::Text,
        "\"2s\"",
        "How often the source is looked at, from 100 ms to 60 s [default: 1s]",
    ),
    key(
        "unit",
        Shape::Word(&["s", "ms", "us", "ns"]),
        "\"ms\"",
        "What a number without a unit is in [default: s]",
    ),
];

/// Of `mems = { … }`.
pub(crate) const MEM_SPEC: &[Key] =
    &[key("like", Shape::Text, "\"oltp2\"", "The same nodes as another group; stands alone")];

const USER: Key = key("user", Shape::Account, "\"oracle\" · 1001", "The owning user, by name or number");
const OWNING: Key = key("group", Shape::Account, "\"dba\" · 1001", "The owning group, by name or number");
const MODE: Key = key("mode", Shape::Mode, "\"0664\"", "Mode of the files, in octal digits");

/// Of `tasks = { … }`.
pub(crate) const TASKS_KEYS: &[Key] = &[USER, OWNING, MODE];
/// Of `admin = { … }`.
pub(crate) const ADMIN_KEYS: &[Key] = &[
    USER,
    OWNING,
    MODE,
    key("directory_mode", Shape::Mode, "\"0775\"", "Mode of the directory, in octal digits"),
    key(
        "all_files",
        Shape::Flag,
        "true",
        "Also the files that take from other groups (weights, CPUs, exclusive CPUs, protected memory), as libcgroup gives them \
         [default: false]",
    ),
];

const MATCH_USER: Key = key(
    "user",
    Shape::Account,
    "\"oracle\" · 1001 · \"*\"",
    "Whose the process is, by name or number; \"*\" is anyone",
);
const MATCH_GROUP: Key = key(
    "group",
    Shape::Account,
    "\"dba\"",
    "The user is in this group of the system, primary or listed; instead of `user`",
);
const MATCH_PROCESS: Key = key(
    "process",
    Shape::Text,
    "\"/usr/bin/fio\" · \"fio\" · \"ora_*\" · \"*/bin/ora*\"",
    "The program: a path, or a name; * is any text",
);

const MATCH_COMMAND: Key = key(
    "command",
    Shape::Text,
    "\"postgres: .*(autovacuum|archiver)\" · '--role=(db|web)\\b'",
    "A regular expression that occurs in the command line, words parted by spaces",
);
const MATCH_PARENT: Key = key("parent", Shape::Text, "\"cron\"", "The program of its parent, as `process`");
const MATCH_ANCESTOR: Key = key(
    "ancestor",
    Shape::Text,
    "\"/usr/sbin/sshd\"",
    "The program of any that it descends from, as `process`",
);
const MATCH_SESSION: Key = key(
    "session",
    Shape::Text,
    "\"bash\"",
    "The program of its session's leader (setsid(2): mostly a login shell or daemon), as `process`",
);
const MATCH_UNIT: Key = key(
    "unit",
    Shape::Text,
    "\"session-*.scope\"",
    "The unit of systemd that it is in; * is any text. Processes of a service are never moved: systemd would lose them",
);
const MATCH_CONTAINER: Key = key(
    "container",
    Shape::Text,
    "\"*\" · \"4f5e6d*\"",
    "The container that it is in, by number, or by name where the group has that; * is any text",
);
const MATCH_ENVIRONMENT: Key = key(
    "environment",
    Shape::Names,
    "{ ORACLE_SID = \"prod*\" }",
    "Variables of the environment that its program began with; * is any text",
);
const MATCH_IN: Key = key(
    "in",
    Shape::Text,
    "\"batch/*\" · \"/user.slice/*\"",
    "The group that it is in already, in any hierarchy; with a slash before it from the hierarchy's root; * is any text",
);
const MATCH_ANY: Key =
    key("any", Shape::Matches, "[{ process = \"fio\" }, { parent = \"fio\" }]", "At least one of these fits");
const MATCH_NOT: Key = key(
    "not",
    Shape::Matches,
    "{ user = \"root\" } · [{ process = \"sshd\" }, { unit = \"cron.service\" }]",
    "None of these fits",
);

const MATCH_STRICT: Key = key(
    "strict",
    Shape::Flag,
    "true",
    "The program never runs an instruction outside its group: the daemon delays its start until it has been moved. `process` is then a path, and the rule has no condition that is known only after the start (`command`, `environment`)",
);

/// Of an entry of `match`.
pub(crate) const MATCH: &[Key] = &[
    MATCH_USER,
    MATCH_GROUP,
    MATCH_PROCESS,
    MATCH_COMMAND,
    MATCH_PARENT,
    MATCH_ANCESTOR,
    MATCH_SESSION,
    MATCH_UNIT,
    MATCH_CONTAINER,
    MATCH_ENVIRONMENT,
    MATCH_IN,
    MATCH_ANY,
    MATCH_NOT,
    MATCH_STRICT,
];

/// Of an entry of `rules`.
pub(crate) const RULE: &[Key] = &[
    MATCH_USER,
    MATCH_GROUP,
    MATCH_PROCESS,
    MATCH_COMMAND,
    MATCH_PARENT,
    MATCH_ANCESTOR,
    MATCH_SESSION,
    MATCH_UNIT,
    MATCH_CONTAINER,
    MATCH_ENVIRONMENT,
    MATCH_IN,
    MATCH_ANY,
    MATCH_NOT,
    MATCH_STRICT,
    key(
        "to",
        Shape::To,
        "\"db/%u\" · [{ group = \"fast\", controllers = [\"cpu\"] }, { group = \"big\", controllers = [\"memory\"] }]",
        "The group that such processes are put into, with the codes of templates; or one for some controllers each",
    ),
    key("controllers", Shape::Texts, "[\"cpu\", \"memory\"]", "For these controllers only [default: all]"),
    key("ignore", Shape::Flag, "true", "Leave such processes where they are, and look at no further rule"),
    key("ignore_rt", Shape::Flag, "true", "Leave them where they are while they are scheduled in real time"),
];

/// Of an entry of a rule's `to`.
pub(crate) const TO: &[Key] = &[
    key("group", Shape::Text, "\"fast\"", "The group, with the codes of templates"),
    key("controllers", Shape::Texts, "[\"cpu\"]", "For these controllers [default: all]"),
];

/// Of `reserve`.
pub(crate) const RESERVE: &[Key] = &[
    key(
        "cpus",
        Shape::Cpus,
        "2 · \"0-1\" · \"10%\" · { count = 2, near = \"node:0\", smt = \"whole-cores\" }",
        "CPUs that no group is given",
    ),
    key(
        "memory",
        Shape::Memory,
        "\"4G\" · \"10%\"",
        "Memory that the groups' limits and protections leave free",
    ),
];

/// Of `power`.
pub(crate) const POWER: &[Key] = &[
    key(
        "saving",
        Shape::Flag,
        "true",
        "`ringfenced` gives general groups, those without CPUs of their own, fewer CPUs while they use little (docs/elastic.md)",
    ),
    key(
        "floor",
        Shape::Number(1),
        "2",
        "CPUs that general groups have in any case, in whole cores; 1 by default",
    ),
    key(
        "frequency",
        Shape::Flag,
        "true",
        "With `saving`: CPUs that general groups leave idle get the governor `powersave` and the energy preference `power`, as far as the machine has them; CPUs in use have what they had",
    ),
];

/// Of `host`.
pub(crate) const HOST: &[Key] = &[
    key("hostname", Shape::Text, "\"db1\" · \"db*\"", "The host's name; * stands for any text"),
    key("model", Shape::Text, "\"X7560\"", "The CPU's model name holds this; * stands for any text"),
    key("nodes", Shape::Expected, "4 · { min = 2 } · { min = 2, max = 4 }", "Number of NUMA nodes"),
    key("cpus", Shape::Expected, "32 · { min = 32 }", "Number of online CPUs"),
    key(
        "memory",
        Shape::ExpectedMemory,
        "\"128G\" · { min = \"100G\" }",
        "Memory as the kernel counts it; a plain amount allows a tenth more or less, since firmware keeps a part",
    ),
];

/// Of `{ min, max }`.
pub(crate) const EXPECTED: &[Key] =
    &[key("min", Shape::Number(0), "2", "At least"), key("max", Shape::Number(0), "4", "At most")];

/// Of `systemd`.
pub(crate) const SYSTEMD: &[Key] = &[
    key("slice", Shape::Text, "\"db.slice\"", "The slice that libcgroup had its groups below"),
    key("scope", Shape::Text, "\"db.scope\"", "The scope in it"),
    key("set_default", Shape::Flag, "true", "Whether libcgroup's commands took it as the place of groups"),
    key("pid", Shape::Number(1), "4711", "A process that was put into the scope"),
];

/// The names of some keys.
pub(crate) fn names(keys: &[Key]) -> impl Iterator<Item = &'static str> {
    keys.iter().map(|key| key.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, read_toml, render};

    const GROUPS: &str = "[groups.oltp1]\ncpus = 1\n[groups.batch]\ncpus = 1\n";

    /// The start of a file in which a key's line may stand, and its end.
    fn around(table: &[Key], key: &Key) -> (String, &'static str) {
        let like = |name: &'static str| {
            (format!("[groups.oltp2]\ncpus = 1\nmems = \"0\"\n[groups.a]\n{name} = {{ "), " }")
        };
        let (before, after) = match table.as_ptr() {
            table if table == TOP.as_ptr() && key.name == "schedule" => {
                ("groups.oltp1.cpus = 1\n".to_owned(), "")
            }
            table if table == TOP.as_ptr() && key.name == "isolate" => {
                ("groups.oltp1 = { cpus = '0', isolate = 'cpus' }\n".to_owned(), "")
            }
            table if table == TOP.as_ptr() => (String::new(), ""),
            table if table == GROUP.as_ptr() => ("[groups.a]\n".to_owned(), ""),
            table if table == TEMPLATE.as_ptr() => ("[templates.'a/%u']\n".to_owned(), ""),
            table if table == DEFAULTS.as_ptr() => ("[defaults]\n".to_owned(), ""),
            table
                if table == CPU_SPEC.as_ptr()
                    && matches!(key.name, "count" | "cores" | "min" | "max" | "node" | "like") =>
            {
                like("cpus")
            }
            table if table == CPU_SPEC.as_ptr() && key.name == "weight" => {
                (format!("{}min = 1, max = 2, ", like("cpus").0), " }")
            }
            table if table == CPU_SPEC.as_ptr() => (format!("{}count = 1, ", like("cpus").0), " }"),
            table if table == MEM_SPEC.as_ptr() => like("mems"),
            table if table == TASKS_KEYS.as_ptr() => like("tasks"),
            table if table == ADMIN_KEYS.as_ptr() => like("admin"),
            table if table == MATCH.as_ptr() && key.name == "strict" => {
                ("[groups.a]\nmatch = [{ process = \"/bin/a\", ".to_owned(), " }]")
            }
            table if table == MATCH.as_ptr() => ("[groups.a]\nmatch = [{ ".to_owned(), " }]"),
            table if table == RULE.as_ptr() && key.name == "strict" => {
                ("[[rules]]\nprocess = \"/bin/a\"\nto = \"b\"\n".to_owned(), "")
            }
            table if table == RULE.as_ptr() && key.name == "to" => {
                ("[[rules]]\nuser = \"a\"\n".to_owned(), "")
            }
            table if table == RULE.as_ptr() && matches!(key.name, "user" | "group") => {
                ("[[rules]]\nto = \"b\"\n".to_owned(), "")
            }
            table if table == RULE.as_ptr() => ("[[rules]]\nuser = \"a\"\nto = \"b\"\n".to_owned(), ""),
            table if table == TO.as_ptr() && key.name == "group" => {
                ("[[rules]]\nuser = \"a\"\nto = [{ ".to_owned(), " }]")
            }
            table if table == TO.as_ptr() => {
                ("[[rules]]\nuser = \"a\"\nto = [{ group = \"b\", ".to_owned(), " }]")
            }
            table if table == SCHEDULE.as_ptr() => {
                let other = |name: &str, text: &'static str| if key.name == name { "" } else { text };
                let when = match key.name {
                    "at" | "on" | "after" => "",
                    "every" => "after = '1s'\n",
                    _ => "at = '22:00'\n",
                };
                let (name, groups) =
                    (other("name", "name = 'a'\n"), other("groups", "groups.oltp1 = { cpus = 1 }\n"));
                (format!("{GROUPS}[[schedule]]\n{name}{when}{groups}"), "")
            }
            table if table == ON.as_ptr() => {
                let process = if key.name == "state" { "process = 'a', " } else { "" };
                let start = "name = 'a'\ngroups.oltp1 = { cpus = 1 }\non = { ";
                (format!("{GROUPS}[[schedule]]\n{start}{process}"), " }")
            }
            table if table == RESERVE.as_ptr() => ("[reserve]\n".to_owned(), ""),
            table if table == LATENCY.as_ptr() => {
                let group = "[groups.a]\ncpus = { min = 1, max = 2, weight = 1 }\nlatency = { ";
                let rest = match key.name {
                    "command" => "p99 = '5ms', ",
                    "log" => "p99 = '5ms', pattern = '(a)', ",
                    "pattern" => "p99 = '5ms', log = '/a', ",
                    "prometheus" => "p99 = '5ms', metric = 'a', ",
                    "metric" => "p99 = '5ms', prometheus = 'http://127.0.0.1:1/', ",
                    "p99" => "command = '/a', ",
                    _ => "p99 = '5ms', command = '/a', ",
                };
                (format!("{group}{rest}"), " }")
            }
            table if table == POWER.as_ptr() && key.name == "frequency" => {
                ("[power]\nsaving = true\n".to_owned(), "")
            }
            table if table == POWER.as_ptr() => ("[power]\n".to_owned(), ""),
            table if table == HOST.as_ptr() => ("[host]\n".to_owned(), ""),
            table if table == EXPECTED.as_ptr() => ("[host]\nnodes = { ".to_owned(), " }"),
            _ => ("[[systemd]]\n".to_owned(), ""),
        };
        let others = if table.as_ptr() == GROUP.as_ptr() || table.as_ptr() == TEMPLATE.as_ptr() {
            "[groups.oltp2]\ncpus = 1\nmems = \"0\"\n"
        } else {
            ""
        };
        (format!("{others}{before}"), after)
    }

    #[test]
    fn every_example_of_every_key_is_read() {
        let tables = [
            TOP, GROUP, TEMPLATE, DEFAULTS, CPU_SPEC, LATENCY, MEM_SPEC, TASKS_KEYS, ADMIN_KEYS, MATCH, RULE,
            TO, SCHEDULE, ON, RESERVE, POWER, HOST, EXPECTED, SYSTEMD,
        ];
        for table in tables {
            for key in table {
                assert!(!key.doc.ends_with('.') && !key.examples.is_empty(), "{}", key.name);
                for example in key.examples.split(" · ") {
                    let (before, after) = around(table, key);
                    let exclusive =
                        if matches!(key.name, "exclusive" | "isolate") && table.as_ptr() != TOP.as_ptr() {
                            "cpus = '0'\n"
                        } else if key.name == "latency" {
                            "cpus = { min = 1, max = 2, weight = 1 }\n"
                        } else {
                            ""
                        };
                    let near =
                        if example.contains("group:oltp1") { "\n[groups.oltp1]\ncpus = 1" } else { "" };
                    let text = format!("{before}{exclusive}{} = {example}{after}{near}\n", key.name);
                    let source = [Source::new("layout.toml", &text)];
                    let reading = read_toml(&source);
                    assert!(reading.desired.is_some(), "{text}\n{}", render(&reading.diagnostics, &source));
                }
            }
        }
    }
}
