//! The keys of tables that are read key by key: what stands beside settings, and what counts only together. Every other
//! table is a struct of its own ([`crate::reader::keyed`]).

use std::sync::LazyLock;

use serde_json::json;

use super::cpus::CpuTable;
use crate::demand::{CpuDemand, MemDemand};
use crate::desired::{Assertions, Keep, Power, Reserve, Systemd};
use crate::isolate::{Isolate, knobs_schema};
use crate::latency::LatencyUnit;
use crate::matcher::Matcher;
use crate::people::{Person, TASKS_KEYS};
use crate::reader::{Key, Keyed as _, Takes as _, keys, object, one_or_more};
use crate::rule::Rule;
use crate::schedule::Missed;

/// Some of a table's keys.
fn some(keys: &[Key], names: &[&str]) -> Vec<Key> {
    keys.iter().filter(|key| names.contains(&key.name)).copied().collect()
}

/// At the top of the file.
pub(crate) const TOP: &[Key] = keys! {
    /// The groups, by name. `[groups.db.groups.oltp1]` and `[groups."db/oltp1"]` are the same group.
    #[takes("{ oltp1 = { cpus = 8 } }")]
    groups: || json!({ "type": "object" }),
    /// Groups that are made when a rule first needs them; the name holds codes: %u %U user, %g %G group, %p %P process,
    /// each as name and as number; \% is a per cent sign.
    #[takes(r#"{ "students/%u" = { memory.max = "2G" } }"#)]
    templates: || json!({ "type": "object" }),
    /// Which processes go to which group. The first rule that matches counts; the groups' own `match` come after all
    /// rules.
    #[takes(r#"[{ user = "oracle", to = "oltp1" }]"#)]
    rules: || one_or_more(Rule::schema()),
    /// What changes by itself, and when; the daemon makes the changes.
    #[takes(r#"[{ name = "night", at = "22:00", until = "06:00", groups.oltp1 = { cpus = 4 } }]"#)]
    schedule: || one_or_more(object(SCHEDULE)),
    /// What the rest of the system keeps; no group is given it.
    #[takes(r#"{ cpus = 2, memory = "4G" }"#)]
    reserve: Reserve::schema,
    /// Fewer CPUs for groups without CPUs of their own while they use little.
    #[takes("{ saving = true, floor = 2 }")]
    power: Power::schema,
    /// Knobs of the whole machine that are set while a group has `isolate` (docs/isolation.md): true is the usual
    /// value.
    #[takes(r#"{ stat-interval = 10, huge-pages = "never", timer-migration = true }"#)]
    isolate: || knobs_schema(true),
    /// What the machine must be like; on another one the layout is refused.
    #[takes(r#"{ hostname = "db*", nodes = 4 }"#)]
    host: Assertions::schema,
    /// What groups and templates get that do not say otherwise; settings too.
    #[takes(r#"{ smt = "whole-cores", memory.oom.group = true }"#)]
    defaults: || object(&DEFAULTS),
    /// v1 hierarchies to be mounted if they are not; controllers with the same path share one.
    #[takes(r#"{ cpu = "/cgroup/cpu", "name=jobs" = "/cgroup/jobs" }"#)]
    mounts: || json!({ "type": "object", "additionalProperties": String::schema() }),
    /// cgconfig.conf's sections of that name, used by exports only; groups live below a unit of Ringfence's own.
    #[takes(r#"[{ slice = "db.slice", scope = "db.scope" }]"#)]
    systemd: || one_or_more(Systemd::schema()),
};

/// Of an entry of `schedule`.
pub(crate) const SCHEDULE: &[Key] = keys! {
    /// Its name, which the history shows.
    #[takes(r#""night""#)]
    name: String::schema,
    /// When the change is made: a calendar in systemd's syntax, in the machine's time zone unless it ends with another.
    #[takes(r#""22:00" · "Mon..Fri 22:00" · "*-*-01 03:00 Europe/Berlin" · "hourly""#)]
    at: String::schema,
    /// When it is taken back: another calendar. Default: it stays, and what another schedule changes later counts more.
    #[takes(r#""06:00""#)]
    until: String::schema,
    /// What becomes of a change whose time passed while the daemon or the machine was down: the latest one is made at
    /// the start, or none. Default: run.
    #[takes(r#""run" · "skip""#)]
    missed: Missed::schema,
    /// Instead of `at`: the change is made this long after the daemon first applied the layout since the boot.
    #[takes(r#""600s" · "1h 30m""#)]
    after: String::schema,
    /// With `after`: the change is taken back after this time, made again after it, and so on.
    #[takes(r#""600s""#)]
    every: String::schema,
    /// Instead of `at`: the change is made when this happens, and taken back when its opposite does.
    #[takes(r#"{ unit = "backup.service", state = "active" } · { process = "pg_dump", state = "start" }"#)]
    on: || object(ON),
    /// What groups of the layout have meanwhile: `cpus`, `mems` and settings; everything else stays.
    #[takes(r#"{ oltp1 = { cpus = 4 }, batch = { cpus = 32, memory.max = "8G" } }"#)]
    groups: || json!({ "type": "object" }),
};

/// Of `on = { … }`.
pub(crate) const ON: &[Key] = keys! {
    /// A unit of systemd, of any kind.
    #[takes(r#""backup.service""#)]
    unit: String::schema,
    /// A program: its name, at most 15 bytes, or its path; instead of `unit`.
    #[takes(r#""pg_dump" · "/usr/bin/pg_dump""#)]
    process: String::schema,
    /// active or inactive of a unit; start or end of a process: the first one starts, the last one ends. Default:
    /// active, start.
    #[takes(r#""start""#)]
    state: || json!({ "enum": &["active", "inactive", "start", "end"] }),
};

/// Of a group of a schedule. Settings stand beside them.
pub(crate) static SCHEDULED: LazyLock<Vec<Key>> = LazyLock::new(|| some(GROUP, &["cpus", "mems"]));

/// Of a group. Settings stand beside them.
pub(crate) const GROUP: &[Key] = keys! {
    /// CPUs: a number is how many, a string is a list of CPU numbers ("8" is CPU 8) or a share of those not reserved;
    /// "all" are the parent's. Default: as the kernel gives them.
    #[takes(r#"8 · "0-7" · "25%" · "all" · { node = 0 } · { count = 8, near = "node:0" } · { like = "oltp2" }"#)]
    cpus: CpuDemand::schema,
    /// NUMA nodes for memory: "local" are those that the CPUs are on, a string is a list of node numbers, "all" are the
    /// parent's.
    #[takes(r#""local" · "0-1" · "all" · { like = "oltp2" }"#)]
    mems: MemDemand::schema,
    /// No other group may use its CPUs, enforced by the kernel: a partition on cgroup v2, cpu_exclusive on v1.
    #[takes("true")]
    exclusive: bool::schema,
    /// Its CPUs are left alone by interrupts, queues of work and threads of the kernel too; with "quiet" sleep and
    /// changes of frequency too (docs/isolation.md). Its CPUs are named, or exclusive.
    #[takes(r#""cpus" · "quiet" · "full" · { level = "cpus", governor = "performance", interrupts = false } · { level = "full", budget = { per-second = 20, longest-us = 50 } }"#)]
    isolate: Isolate::schema,
    /// Of an elastic group: its latency, which decides about its CPUs in place of how long its tasks wait
    /// (docs/elastic.md).
    #[takes(r#"{ command = ["/usr/local/bin/p99"], p99 = "5ms" } · { log = "/var/log/nginx/access.log", pattern = 'request_time=([0-9.]+)', p99 = "50ms" } · { prometheus = "http://127.0.0.1:9100/metrics", metric = "http_request_duration_seconds", p99 = "20ms", every = "2s" }"#)]
    latency: || object(LATENCY),
    /// Who may put tasks in: the owner of the files that take them.
    #[takes(r#"{ user = "oracle", group = "dba" }"#)]
    tasks: || object(&Person::KEYS[..TASKS_KEYS]),
    /// Who may change its limits and make groups in it: the owner of the directory and of the files that change nothing
    /// for other groups.
    #[takes(r#"{ user = "root", group = "root" }"#)]
    admin: Person::schema,
    /// Which processes belong to it, wherever they start: those that fit one of these.
    #[takes(r#"[{ user = "oracle" }, { group = "dba", process = "ora_*" }]"#)]
    matching as "match": || one_or_more(Matcher::schema()),
    /// Controllers that the group is to have beyond those that its settings need; `name=x` is a named v1 hierarchy.
    #[takes(r#"["cpu", "memory"]"#)]
    controllers: || one_or_more(String::schema()),
    /// What the daemon does where the group is no longer as the layout asks: repair it, report it, or ignore it.
    /// Default: what the daemon's options say.
    #[takes(r#""repair" · "report" · "off""#)]
    keep: Keep::schema,
    /// The group is this unit of systemd: its settings become properties of the unit, in a drop-in file, and hold over
    /// reloads, restarts and reboots. With *, ? or […] there is such a group for each unit that fits and is loaded at
    /// `apply`, GROUP/UNIT without the unit's kind: db/postgresql@15-main of db. Units that start later have the same: of
    /// NAME@*.service and PREFIX-*.slice from their start, of other patterns once ringfenced has seen them.
    #[takes(r#""postgresql@15-main.service" · "machine.slice" · "postgresql@*.service""#)]
    unit: String::schema,
    /// Groups in it.
    #[takes("{ reports = { cpus = 2 } }")]
    groups: || json!({ "type": "object" }),
};

/// Of a template. Settings stand beside them.
pub(crate) static TEMPLATE: LazyLock<Vec<Key>> =
    LazyLock::new(|| some(GROUP, &["cpus", "mems", "exclusive", "tasks", "admin", "controllers"]));

/// Of `defaults`. Settings stand beside them.
pub(crate) static DEFAULTS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let wishes = some(CpuTable::KEYS, &["placement", "smt", "pool"]);
    [OWN_DEFAULTS, &wishes, &some(GROUP, &["tasks", "admin", "keep"])].concat()
});

const OWN_DEFAULTS: &[Key] = keys! {
    /// Memory nodes of groups that ask for CPUs.
    #[takes(r#""local""#)]
    mems: MemDemand::schema,
};

/// Of `latency = { … }`.
pub(crate) const LATENCY: &[Key] = keys! {
    /// A program, by its path from the root, with arguments: the first line that it prints is the P99, such as `4.2ms`.
    /// It runs as the user of the daemon and is killed if it takes longer than `every`.
    #[takes(r#"["/usr/local/bin/p99", "db"]"#)]
    command: || one_or_more(String::schema()),
    /// Instead of `command`: a file to which a line is added for each request; it is read from its end, and followed
    /// where it is rotated.
    #[takes(r#""/var/log/postgresql/postgresql.log""#)]
    log: String::schema,
    /// With `log`: a regular expression whose first group is the latency; lines that do not fit do not count.
    #[takes("'duration: ([0-9.]+ ms)'")]
    pattern: String::schema,
    /// Instead of `command`: an address, by number or localhost, that answers with metrics.
    #[takes(r#""http://127.0.0.1:9100/metrics""#)]
    prometheus: String::schema,
    /// With `prometheus`: a histogram, whose P99 is of the last 10 s, a summary with quantile 0.99, or a gauge; of
    /// several series of a gauge or summary the slowest counts.
    #[takes(r#""http_request_duration_seconds" · 'http_request_duration_seconds{handler="/api"}'"#)]
    metric: String::schema,
    /// What the 99th percentile is not to exceed, up to 60 s.
    #[takes(r#""5ms""#)]
    p99: String::schema,
    /// How often the source is looked at, from 100 ms to 60 s [default: 1s].
    #[takes(r#""2s""#)]
    every: String::schema,
    /// What a number without a unit is in [default: s].
    #[takes(r#""ms""#)]
    unit: LatencyUnit::schema,
};

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
            ("TEMPLATE", &TEMPLATE),
            ("DEFAULTS", &DEFAULTS),
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
