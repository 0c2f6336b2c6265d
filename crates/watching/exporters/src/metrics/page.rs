//! The metrics for people: a page of the manual (`docs/metrics.md`), made of the tables.

use std::fmt::Write as _;

use super::{FAMILIES, MACHINE, Type, families::By, name_of};
use monitor::{Field, GROUP_FIELDS, Kind, MACHINE_FIELDS, Per};

/// The whole page.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.replace("127.0.0.1:PORT", &format!("127.0.0.1:{}", super::PORT));
    // writing to a String can't fail
    let heading = "| metric | what it is | type | labels | source |\n|---|---|---|---|---|\n";
    let _ = write!(page, "\n## What was applied, drift, and the daemon\n\n{heading}");
    for family in FAMILIES {
        let by = match family.by {
            By::Kernel => "both",
            By::History => "both, if something was applied",
            By::Daemon => "`ringfenced`",
            By::Recorder => "`ringfenced --record`",
        };
        let _ = writeln!(
            page,
            "| `{}{}` | {} | {} | {} | {by} |",
            family.name,
            family.kind.suffix(),
            family.help,
            family.kind.word(super::Format::OpenMetrics),
            family.labels.join(", "),
        );
    }
    section(&mut page, "Groups", super::GROUP, GROUP_FIELDS);
    section(&mut page, "The machine", MACHINE, MACHINE_FIELDS);
    page
}

const INTRODUCTION: &str = "\
# Metrics

Generated from the tables in `crates/watching`; `make docs` writes it again.

`ringfenced --metrics` answers at `http://127.0.0.1:PORT/metrics`; `--metrics ADDRESS:PORT` answers elsewhere. There is
no password: who can reach the address reads the names of groups and their figures, so it is the loopback address unless
another is named, which the log warns of. `ringfenced --textfile FILE` writes the same into a file for node_exporter's
textfile collector, every 15 seconds; `ringfence metrics` prints it once, without a daemon.

A client that accepts `application/openmetrics-text` has OpenMetrics 1.0, others the text format 0.0.4. Every answer is
read again, but at most once a second; what was applied is compared at most every 10 seconds, and processes with the rules
at most every 30. Numbers of groups (1,000, or `--metrics-max-groups`), of devices per group (16) and of groups with misplaced processes (100) are
bounded; what is left out is a metric. A figure that this kernel does not have is left out, never shown as 0; no limit is
`+Inf`.

Units of systemd that the layout has as groups are sampled with all groups below them. Their figures have the group's name from the
root (`group=\"/system.slice/postgresql.service/main\"`), and what was applied to them has the layout's name (`group=\"postgres/main\"`).
`ringfence_layout_group_info` has both names, so that a query can compare the two. Memory in use as a part of what was requested:

```promql
max by (layout_group) (
  ringfence_group_memory_current_bytes * on (group) group_left (layout_group) ringfence_layout_group_info
) / on (layout_group)
label_replace(ringfence_group_requested_memory_bytes, \"layout_group\", \"$1\", \"group\", \"(.*)\")
```

## Prometheus

```yaml
scrape_configs:
  - job_name: ringfence
    static_configs:
      - targets: [\"127.0.0.1:PORT\"]
```

Worth an alert: `ringfence_group_drifts > 0`, `ringfence_group_partition_valid == 0`,
`ringfence_group_effective_cpus < ringfence_group_requested_cpus`, `increase(ringfence_group_memory_events_oom_kill_total[10m]) > 0`,
`ringfence_misplaced_processes{by_hand=\"false\"} > 0`, `ringfence_recorder_up == 0`.
";

fn section(page: &mut String, title: &str, prefix: &str, fields: &[Field]) {
    // writing to a String can't fail
    let _ = write!(page, "\n## {title}\n\n| metric | what it is | type | labels |\n|---|---|---|---|\n");
    // those of each CPU of each group are too many
    for field in fields.iter().filter(|field| field.per != Per::Cpu || field.is_of_machine()) {
        let (name, _) = name_of(prefix, field);
        let kind = if field.kind == Kind::Counter { Type::Counter } else { Type::Gauge };
        let group = (!field.is_of_machine()).then_some("group");
        let labels: Vec<&str> = group.into_iter().chain(field.per.label()).collect();
        let _ = writeln!(
            page,
            "| `{name}{}` | {} | {} | {} |",
            kind.suffix(),
            field.help,
            kind.word(super::Format::OpenMetrics),
            labels.join(", "),
        );
    }
}
