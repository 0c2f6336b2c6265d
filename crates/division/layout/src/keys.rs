//! The keys of tables that are no structs: where settings stand beside the keys, and what processes must be like. Every
//! other table is a struct of its own ([`crate::reader::keyed`]).

use schedule::Missed;
use serde_json::json;

use crate::demand::{CpuDemand, MemDemand, Placement, Pool, Smt};
use crate::desired::{Assertions, Keep, Power, Reserve, Systemd};
use crate::isolate::{Isolate, knobs_schema};
use crate::matcher::Matcher;
use crate::people::{Person, TASKS_KEYS};
use crate::reader::{Key, Keyed as _, Takes as _, object, one_or_more};
use crate::rule::Rule;

/// At the top of the file.
pub(crate) const TOP: &[Key] = &[
    Key::new(
        "groups",
        || json!({ "type": "object" }),
        "{ oltp1 = { cpus = 8 } }",
        "The groups, by name. `[groups.db.groups.oltp1]` and `[groups.\"db/oltp1\"]` are the same group",
    ),
    Key::new(
        "templates",
        || json!({ "type": "object" }),
        "{ \"students/%u\" = { memory.max = \"2G\" } }",
        "Groups that are made when a rule first needs them; the name holds codes: %u %U user, %g %G group, %p %P process, each as name and as number; \\% is a per cent sign",
    ),
    Key::new(
        "rules",
        || one_or_more(Rule::schema()),
        "[{ user = \"oracle\", to = \"oltp1\" }]",
        "Which processes go to which group. The first rule that matches counts; the groups' own `match` come after all rules",
    ),
    Key::new(
        "schedule",
        || one_or_more(object(SCHEDULE)),
        "[{ name = \"night\", at = \"22:00\", until = \"06:00\", groups.oltp1 = { cpus = 4 } }]",
        "What changes by itself, and when; the daemon makes the changes",
    ),
    Key::new(
        "reserve",
        Reserve::schema,
        "{ cpus = 2, memory = \"4G\" }",
        "What the rest of the system keeps; no group is given it",
    ),
    Key::new(
        "power",
        Power::schema,
        "{ saving = true, floor = 2 }",
        "Fewer CPUs for groups without CPUs of their own while they use little",
    ),
    Key::new(
        "isolate",
        || knobs_schema(true),
        "{ stat-interval = 10, huge-pages = \"never\", timer-migration = true }",
        "Knobs of the whole machine that are set while a group has `isolate` (docs/isolation.md): true is the usual value",
    ),
    Key::new(
        "host",
        Assertions::schema,
        "{ hostname = \"db*\", nodes = 4 }",
        "What the machine must be like; on another one the layout is refused",
    ),
    Key::new(
        "defaults",
        || object(DEFAULTS),
        "{ smt = \"whole-cores\", memory.oom.group = true }",
        "What groups and templates get that do not say otherwise; settings too",
    ),
    Key::new(
        "mounts",
        || json!({ "type": "object", "additionalProperties": String::schema() }),
        "{ cpu = \"/cgroup/cpu\", \"name=jobs\" = \"/cgroup/jobs\" }",
        "v1 hierarchies to be mounted if they are not; controllers with the same path share one",
    ),
    Key::new(
        "systemd",
        || one_or_more(Systemd::schema()),
        "[{ slice = \"db.slice\", scope = \"db.scope\" }]",
        "cgconfig.conf's sections of that name, used by exports only; groups live below a unit of Ringfence's own",
    ),
];

/// Of an entry of `schedule`.
pub(crate) const SCHEDULE: &[Key] = &[
    Key::new("name", String::schema, "\"night\"", "Its name, which the history shows"),
    Key::new(
        "at",
        String::schema,
        "\"22:00\" · \"Mon..Fri 22:00\" · \"*-*-01 03:00 Europe/Berlin\" · \"hourly\"",
        "When the change is made: a calendar in systemd's syntax, in the machine's time zone unless it ends with another",
    ),
    Key::new(
        "until",
        String::schema,
        "\"06:00\"",
        "When it is taken back: another calendar. Default: it stays, and what another schedule changes later counts more",
    ),
    Key::new(
        "missed",
        Missed::schema,
        "\"run\" · \"skip\"",
        "What becomes of a change whose time passed while the daemon or the machine was down: the latest one is made at the start, or none. Default: run",
    ),
    Key::new(
        "after",
        String::schema,
        "\"600s\" · \"1h 30m\"",
        "Instead of `at`: the change is made this long after the daemon first applied the layout since the boot",
    ),
    Key::new(
        "every",
        String::schema,
        "\"600s\"",
        "With `after`: the change is taken back after this time, made again after it, and so on",
    ),
    Key::new(
        "on",
        || object(ON),
        "{ unit = \"backup.service\", state = \"active\" } · { process = \"pg_dump\", state = \"start\" }",
        "Instead of `at`: the change is made when this happens, and taken back when its opposite does",
    ),
    Key::new(
        "groups",
        || json!({ "type": "object" }),
        "{ oltp1 = { cpus = 4 }, batch = { cpus = 32, memory.max = \"8G\" } }",
        "What groups of the layout have meanwhile: `cpus`, `mems` and settings; everything else stays",
    ),
];

/// Of `on = { … }`.
pub(crate) const ON: &[Key] = &[
    Key::new("unit", String::schema, "\"backup.service\"", "A unit of systemd, of any kind"),
    Key::new(
        "process",
        String::schema,
        "\"pg_dump\" · \"/usr/bin/pg_dump\"",
        "A program: its name, at most 15 bytes, or its path; instead of `unit`",
    ),
    Key::new(
        "state",
        || json!({ "enum": &["active", "inactive", "start", "end"] }),
        "\"start\"",
        "active or inactive of a unit; start or end of a process: the first one starts, the last one ends. Default: active, start",
    ),
];

/// Of a group of a schedule. Settings stand beside them.
pub(crate) const SCHEDULED: &[Key] = &[CPUS, MEMS];

const CPUS: Key = Key::new(
    "cpus",
    CpuDemand::schema,
    "8 · \"0-7\" · \"25%\" · \"all\" · { node = 0 } · { count = 8, near = \"node:0\" } · { like = \"oltp2\" }",
    "CPUs: a number is how many, a string is a list of CPU numbers (\"8\" is CPU 8) or a share of those not reserved; \"all\" are the parent's. Default: as the kernel gives them",
);
const MEMS: Key = Key::new(
    "mems",
    MemDemand::schema,
    "\"local\" · \"0-1\" · \"all\" · { like = \"oltp2\" }",
    "NUMA nodes for memory: \"local\" are those that the CPUs are on, a string is a list of node numbers, \"all\" are the parent's",
);
const EXCLUSIVE: Key = Key::new(
    "exclusive",
    bool::schema,
    "true",
    "No other group may use its CPUs, enforced by the kernel: a partition on cgroup v2, cpu_exclusive on v1",
);
const ISOLATE: Key = Key::new(
    "isolate",
    Isolate::schema,
    "\"cpus\" · \"quiet\" · \"full\" · { level = \"cpus\", governor = \"performance\", interrupts = false } · { level = \"full\", budget = { per-second = 20, longest-us = 50 } }",
    "Its CPUs are left alone by interrupts, queues of work and threads of the kernel too; with \"quiet\" sleep and changes of frequency too (docs/isolation.md). Its CPUs are named, or exclusive",
);
const GROUP_LATENCY: Key = Key::new(
    "latency",
    || object(LATENCY),
    "{ command = [\"/usr/local/bin/p99\"], p99 = \"5ms\" } · { log = \"/var/log/nginx/access.log\", pattern = 'request_time=([0-9.]+)', p99 = \"50ms\" } · { prometheus = \"http://127.0.0.1:9100/metrics\", metric = \"http_request_duration_seconds\", p99 = \"20ms\", every = \"2s\" }",
    "Of an elastic group: its latency, which decides about its CPUs in place of how long its tasks wait (docs/elastic.md)",
);
const TASKS: Key = Key::new(
    "tasks",
    || object(&Person::KEYS[..TASKS_KEYS]),
    "{ user = \"oracle\", group = \"dba\" }",
    "Who may put tasks in: the owner of the files that take them",
);
const ADMIN: Key = Key::new(
    "admin",
    Person::schema,
    "{ user = \"root\", group = \"root\" }",
    "Who may change its limits and make groups in it: the owner of the directory and of the files that change nothing for other groups",
);
const CONTROLLERS: Key = Key::new(
    "controllers",
    || one_or_more(String::schema()),
    "[\"cpu\", \"memory\"]",
    "Controllers that the group is to have beyond those that its settings need; `name=x` is a named v1 hierarchy",
);
const PLACEMENT: Key = Key::new(
    "placement",
    Placement::schema,
    "\"pack\" · \"spread\"",
    "On as few nodes and caches as can be, or evenly over all",
);
const SMT: Key = Key::new(
    "smt",
    Smt::schema,
    "\"whole-cores\" · \"threads\" · \"any\"",
    "SMT siblings: all of a core or none; each CPU on a core of its own while there are any; as it comes",
);
const POOL: Key = Key::new(
    "pool",
    Pool::schema,
    "\"shared\" · \"exclusive\"",
    "Whether other groups of the layout may be given the same CPUs. `exclusive = true` of the group also makes the kernel hold to it",
);

const KEEP: Key = Key::new(
    "keep",
    Keep::schema,
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
    Key::new(
        "match",
        || one_or_more(Matcher::schema()),
        "[{ user = \"oracle\" }, { group = \"dba\", process = \"ora_*\" }]",
        "Which processes belong to it, wherever they start: those that fit one of these",
    ),
    CONTROLLERS,
    KEEP,
    Key::new(
        "unit",
        String::schema,
        "\"postgresql@15-main.service\" · \"machine.slice\" · \"postgresql@*.service\"",
        "The group is this unit of systemd: its settings become properties of the unit, in a drop-in file, and hold over reloads, restarts and reboots. With *, ? or […] there is such a group for each unit that fits and is loaded at `apply`, GROUP/UNIT without the unit's kind: db/postgresql@15-main of db",
    ),
    Key::new("groups", || json!({ "type": "object" }), "{ reports = { cpus = 2 } }", "Groups in it"),
];

/// Of a template. Settings stand beside them.
pub(crate) const TEMPLATE: &[Key] = &[CPUS, MEMS, EXCLUSIVE, TASKS, ADMIN, CONTROLLERS];

/// Of `defaults`. Settings stand beside them.
pub(crate) const DEFAULTS: &[Key] = &[
    Key::new("mems", MemDemand::schema, "\"local\"", "Memory nodes of groups that ask for CPUs"),
    PLACEMENT,
    SMT,
    POOL,
    TASKS,
    ADMIN,
    KEEP,
];

/// Of `latency = { … }`.
pub(crate) const LATENCY: &[Key] = &[
    Key::new(
        "command",
        || one_or_more(String::schema()),
        "[\"/usr/local/bin/p99\", \"db\"]",
        "A program, by its path from the root, with arguments: the first line that it prints is the P99, such as `4.2ms`. It runs as the user of the daemon and is killed if it takes longer than `every`",
    ),
    Key::new(
        "log",
        String::schema,
        "\"/var/log/postgresql/postgresql.log\"",
        "Instead of `command`: a file to which a line is added for each request; it is read from its end, and followed where it is rotated",
    ),
    Key::new(
        "pattern",
        String::schema,
        "'duration: ([0-9.]+ ms)'",
        "With `log`: a regular expression whose first group is the latency; lines that do not fit do not count",
    ),
    Key::new(
        "prometheus",
        String::schema,
        "\"http://127.0.0.1:9100/metrics\"",
        "Instead of `command`: an address, by number or localhost, that answers with metrics",
    ),
    Key::new(
        "metric",
        String::schema,
        "\"http_request_duration_seconds\" · 'http_request_duration_seconds{handler=\"/api\"}'",
        "With `prometheus`: a histogram, whose P99 is of the last 10 s, a summary with quantile 0.99, or a gauge; of several series of a gauge or summary the slowest counts",
    ),
    Key::new("p99", String::schema, "\"5ms\"", "What the 99th percentile is not to exceed, up to 60 s"),
    Key::new(
        "every",
        String::schema,
        "\"2s\"",
        "How often the source is looked at, from 100 ms to 60 s [default: 1s]",
    ),
    Key::new(
        "unit",
        || json!({ "enum": &["s", "ms", "us", "ns"] }),
        "\"ms\"",
        "What a number without a unit is in [default: s]",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::{Bounds, CpuTable, MatchTable, MemTable, RULE, ToTable};
    use crate::{Source, read_toml, render};

    const GROUPS: &str = "[groups.oltp1]\ncpus = 1\n[groups.batch]\ncpus = 1\n";

    /// The start of a file in which a key's line may stand, and its end.
    fn around(table: &str, key: &Key) -> (String, &'static str) {
        let like = |name: &'static str| {
            (format!("[groups.oltp2]\ncpus = 1\nmems = \"0\"\n[groups.a]\n{name} = {{ "), " }")
        };
        let (before, after) = match table {
            "TOP" if key.name == "schedule" => ("groups.oltp1.cpus = 1\n".to_owned(), ""),
            "TOP" if key.name == "isolate" => {
                ("groups.oltp1 = { cpus = '0', isolate = 'cpus' }\n".to_owned(), "")
            }
            "TOP" => (String::new(), ""),
            "GROUP" => ("[groups.a]\n".to_owned(), ""),
            "TEMPLATE" => ("[templates.'a/%u']\n".to_owned(), ""),
            "DEFAULTS" => ("[defaults]\n".to_owned(), ""),
            "CPU_SPEC" if matches!(key.name, "count" | "cores" | "min" | "max" | "node" | "like") => {
                like("cpus")
            }
            "CPU_SPEC" if key.name == "weight" => (format!("{}min = 1, max = 2, ", like("cpus").0), " }"),
            "CPU_SPEC" => (format!("{}count = 1, ", like("cpus").0), " }"),
            "MEM_SPEC" => like("mems"),
            "TASKS_KEYS" => like("tasks"),
            "ADMIN_KEYS" => like("admin"),
            "MATCH" if key.name == "strict" => {
                ("[groups.a]\nmatch = [{ process = \"/bin/a\", ".to_owned(), " }]")
            }
            "MATCH" => ("[groups.a]\nmatch = [{ ".to_owned(), " }]"),
            "RULE" if key.name == "strict" => {
                ("[[rules]]\nprocess = \"/bin/a\"\nto = \"b\"\n".to_owned(), "")
            }
            "RULE" if key.name == "to" => ("[[rules]]\nuser = \"a\"\n".to_owned(), ""),
            "RULE" if matches!(key.name, "user" | "group") => ("[[rules]]\nto = \"b\"\n".to_owned(), ""),
            "RULE" => ("[[rules]]\nuser = \"a\"\nto = \"b\"\n".to_owned(), ""),
            "TO" if key.name == "group" => ("[[rules]]\nuser = \"a\"\nto = [{ ".to_owned(), " }]"),
            "TO" => ("[[rules]]\nuser = \"a\"\nto = [{ group = \"b\", ".to_owned(), " }]"),
            "SCHEDULE" => {
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
            "ON" => {
                let process = if key.name == "state" { "process = 'a', " } else { "" };
                let start = "name = 'a'\ngroups.oltp1 = { cpus = 1 }\non = { ";
                (format!("{GROUPS}[[schedule]]\n{start}{process}"), " }")
            }
            "RESERVE" => ("[reserve]\n".to_owned(), ""),
            "LATENCY" => {
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
            "POWER" if key.name == "frequency" => ("[power]\nsaving = true\n".to_owned(), ""),
            "POWER" => ("[power]\n".to_owned(), ""),
            "HOST" => ("[host]\n".to_owned(), ""),
            "EXPECTED" => ("[host]\nnodes = { ".to_owned(), " }"),
            _ => ("[[systemd]]\n".to_owned(), ""),
        };
        let others = if table == "GROUP" || table == "TEMPLATE" {
            "[groups.oltp2]\ncpus = 1\nmems = \"0\"\n"
        } else {
            ""
        };
        (format!("{others}{before}"), after)
    }

    #[test]
    fn every_example_of_every_key_is_read() {
        let tables: [(&str, &[Key]); 19] = [
            ("TOP", TOP),
            ("GROUP", GROUP),
            ("TEMPLATE", TEMPLATE),
            ("DEFAULTS", DEFAULTS),
            ("CPU_SPEC", CpuTable::KEYS),
            ("LATENCY", LATENCY),
            ("MEM_SPEC", MemTable::KEYS),
            ("TASKS_KEYS", &Person::KEYS[..TASKS_KEYS]),
            ("ADMIN_KEYS", Person::KEYS),
            ("MATCH", MatchTable::KEYS),
            ("RULE", &RULE),
            ("TO", ToTable::KEYS),
            ("SCHEDULE", SCHEDULE),
            ("ON", ON),
            ("RESERVE", Reserve::KEYS),
            ("POWER", Power::KEYS),
            ("HOST", Assertions::KEYS),
            ("EXPECTED", Bounds::<usize>::KEYS),
            ("SYSTEMD", Systemd::KEYS),
        ];
        for (table, keys) in tables {
            for key in keys {
                assert!(!key.doc().ends_with('.') && !key.examples.is_empty(), "{}", key.name);
                for example in key.examples.split(" · ") {
                    let (before, after) = around(table, key);
                    let exclusive = if matches!(key.name, "exclusive" | "isolate") && table != "TOP" {
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
