//! The page of the table, docs/isolation.md.

use std::fmt::Write;

use crate::knobs::{Accepts, Aim, BOOT, KNOBS, Knob, Scope};

const INTRODUCTION: &str = r#"<!-- Made from the table in crates/machine/settings/src/knobs by `make docs`. -->
# Isolated CPUs

CPUs of a group's own (`exclusive = true`) keep other tasks away. Interrupts, queues of work, threads of the kernel,
timers and power states stay. `isolate` moves or stops these for the sake of the group's CPUs:

```toml
[groups.control]
cpus = "3"
exclusive = true
isolate = "quiet"

[isolate]
stat-interval = 10
numa-balancing = true
```

`isolate` of a group takes `"cpus"`, `"quiet"` or `"full"`, or a table: `{ level = "cpus", governor = "performance",
transmit-steering = false }`. A row is `true` for its usual value, `false` to leave it alone, or the value itself. The
group needs CPUs that stay the same: named ones, or `exclusive = true`. Leave at least one CPU unassigned.

With `budget = { per-second = 20, longest-us = 50 }` in the group's table, `ringfence isolate check` says whether that is met
([isolate-check.md](isolate-check.md)).

Rows of the whole machine are set only where `[isolate]` names them, and only while some group has `isolate`.

`ringfence plan` shows each step, `apply` does them with the steps of the groups, reads each back, and rolls all back if the
kernel refuses one; what can't be moved (an interrupt that the kernel manages) is reported and stays. `undo` brings every
place back where what `apply` wrote is still there, and names the others. What the kernel refuses to take back is left to the next
`undo` or `apply`, and `status` shows it until then. Nothing of an earlier boot is written to this one. `status` names what was changed since, with
programs that run and set it too, and interrupts, queues and threads that came since; `apply` again, or the daemon, sets them.

Before Linux 6.3 bring all CPUs online before an `undo`: until then the kernel gives no thread a CPU that is offline. On cgroup v1 `undo` names
the threads that lack one, and the next `undo` or `apply` gives it back; tasks of cgroup v2's root group go without it.
"#;

/// What is not set: where, why, and what does as much.
const LEFT_OUT: &[[&str; 3]] = &[
    [
        "`/dev/cpu_dma_latency`",
        "in force only while a program has it open, and for all CPUs",
        "the row wake-up-latency does the same for the isolated CPUs, and outlives every program",
    ],
    [
        "the static key of network timestamps",
        "in force only while a socket with SO_TIMESTAMPING is open; it is switched once, when the first one opens",
        "a program that opens one early",
    ],
    [
        "the CPUs that irqbalance leaves alone (`IRQBALANCE_BANNED_CPULIST`)",
        "they are in irqbalance's own configuration, which it reads at its start",
        "`status` names irqbalance where an interrupt is no longer as applied, and the daemon sets it again",
    ],
    [
        "the number of queues of network interfaces (`ethtool -L`)",
        "a change of it resets most interfaces",
        "`isolcpus=managed_irq` at boot keeps their interrupts off where other CPUs can take them",
    ],
    [
        "CPUs that share a core with an isolated one (`/sys/devices/system/cpu/smt`)",
        "on cgroup v1 a CPU that goes offline is taken out of every group for good",
        "`plan` names them; `cpus = { count = 2, smt = \"whole-cores\" }`, or `nosmt` at boot",
    ],
];

/// The page.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let sections = [
        (Scope::Cpus, "In \"cpus\", \"quiet\" and \"full\""),
        (Scope::Quiet, "In \"quiet\" and \"full\""),
        (Scope::Full, "In \"full\""),
        (Scope::Group, "Of a group, by name only"),
        (Scope::Machine, "Of the machine, in [isolate] only"),
    ];
    for (scope, title) in sections {
        let _ = write!(page, "\n## {title}\n"); // a String takes everything
        KNOBS.iter().filter(|knob| knob.scope == scope).for_each(|knob| row(&mut page, knob));
    }
    page.push_str(
        "\n## At boot only\n\nThese are compared with the running kernel's command line. What is missing is printed as one line by\n\
         `plan`; the boot loader's configuration is never changed.\n\n",
    );
    for parameter in BOOT {
        let cpus = parameter.cpus_behind.map_or_else(String::new, |behind| format!("{behind}CPUS"));
        let optional = if parameter.is_optional { " (optional)" } else { "" };
        let _ = writeln!(page, "- `{}{cpus}`{optional}: {}", parameter.name, parameter.doc);
    }
    page.push_str("\n## Not set\n\n| what | why | instead |\n|---|---|---|\n");
    for [what, why, instead] in LEFT_OUT {
        let _ = writeln!(page, "| {what} | {why} | {instead} |");
    }
    page
}

fn row(page: &mut String, knob: &Knob) {
    let _ = write!(page, "\n### {}\n\n{}.\n\n", knob.name, knob.doc);
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(page, "- {name}: {text}");
        }
    };
    line("where", &format!("`{}`", knob.path));
    line(
        "becomes",
        &match knob.aim {
            Aim::Off => "what it is, less the isolated CPUs".to_owned(),
            Aim::OffOrNone => "what it is, less the isolated CPUs; none stays none".to_owned(),
            Aim::Value(usual) => format!("`{usual}`, or what the layout names"),
            Aim::Named => "what the layout names".to_owned(),
        },
    );
    if knob.accepts != Accepts::Nothing {
        line("takes", &knob.accepts.to_string());
    }
    line(
        "refused",
        &knob.never_from.map_or_else(String::new, |(text, why)| format!("where it is `{text}`: {why}")),
    );
    line("since Linux", knob.since);
    line("the kernel does it itself", knob.by_kernel);
    line("also written by", &knob.writers.join(", "));
    for refusal in knob.refusals {
        let then = if refusal.stays { "stays, and is reported" } else { "the change is rolled back" };
        line(&format!("errno {}", refusal.errno.0), &format!("{} ({then})", refusal.means));
    }
    line("source", knob.source);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/isolation.md");

    #[test]
    fn docs_isolation_is_the_table() {
        if std::env::var_os("RF_BLESS").is_some() {
            std::fs::write(PAGE, markdown()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(PAGE).unwrap(), markdown(), "make docs");
    }
}
