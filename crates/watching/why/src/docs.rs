//! The table of causes for people: a page of the manual (`docs/why.md`) and the help of `why`.

use std::fmt::Write as _;

use super::{
    causes::{CAUSES, Effect, Row},
    thresholds::{LEAST_SHARE, Threshold},
};

/// The page.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.replace("LEAST", &LEAST_SHARE.words());
    for effect in [Effect::Stopped, Effect::Refused, Effect::Slowed] {
        // writing to a String can't fail
        let _ =
            write!(page, "\n## {}\n\n| cause | meaning | from | fix |\n|---|---|---|---|\n", heading(effect));
        for row in CAUSES.iter().filter(|row| row.effect == effect) {
            let from: Vec<String> = row.from.iter().map(Threshold::words).collect();
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                row.name,
                row.meaning,
                if from.is_empty() { first(effect).to_owned() } else { from.join("; ") },
                if row.fix.is_empty() { "none" } else { row.fix },
            );
        }
    }
    page.push_str("\n## Why these thresholds\n\n");
    for threshold in std::iter::once(&LEAST_SHARE).chain(CAUSES.iter().flat_map(|row| row.from)) {
        let _ = writeln!(page, "- {}: {}.", threshold.words(), threshold.reason());
    }
    page
}

/// The causes by name, a line each, for help on a terminal.
pub fn list() -> String {
    let width = CAUSES.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |row: &Row| format!("  {:width$}  {}\n", row.name, row.meaning.replace('`', ""));
    CAUSES.iter().map(line).collect()
}

fn heading(effect: Effect) -> &'static str {
    match effect {
        Effect::Stopped => "Nothing ran",
        Effect::Refused => "Something failed",
        Effect::Slowed => "Something took longer",
    }
}

/// From where on a cause without a threshold of its own is one.
fn first(effect: Effect) -> &'static str {
    match effect {
        Effect::Stopped | Effect::Refused => "the first",
        Effect::Slowed => "lost time",
    }
}

const INTRODUCTION: &str = "\
# What slows a group down

Generated from the table in `crates/watching`; `make docs` writes it again.

`ringfence why GROUP` samples a group and its neighbours twice and names what slowed it down in between, the worst first,
each with its figures and the command that changes it. It changes nothing itself.

Lost time is seconds of tasks' time in which a task could have continued and did not. Where the kernel does not measure
a wait, the states of tasks are sampled (\"sampled\"), or the time is a bound (\"at most\"). A cause's share is its part of
all that the group's tasks used and lost. A cause that took time is named from LEAST.

What `ringfenced` changes with the load of a group ([elastic.md](elastic.md)) is never a hint's to write: the hint is the key of the
layout that gives the group more, or the command that lets resizing go on.

What a quota took in a period that used it up is the quota's alone: without neighbours, or on more CPUs, the group would have had
no more. CPUs that are advised are those of the NUMA nodes that the group may take memory of.

Of a unit of systemd the command is systemd's (`systemctl set-property`); of a unit that is a group of the layout in effect the
hint is the line of the layout, as systemd takes the drop-in file of that layout after its own.

The last three processes of the group, of one below it, or of an earlier one of that name, that the kernel killed for want of memory
are named behind the causes: when, whose limit was met, and whether the whole group went (`memory.oom.group`). They are read from the
kernel's log of this boot and from what `ringfenced` wrote down: its state directory keeps the last few thousand, also of earlier
boots and of the time before it started. Its unit may not read the log unless you let it: `systemctl edit ringfenced`, `[Service]`,
`ProtectKernelLogs=no`, `CapabilityBoundingSet=CAP_SYSLOG` and `DeviceAllow=/dev/kmsg r`. `status` counts those since the last apply, `ringfence web` lists them, and of the metric
`ringfence_killed_processes_total` kills at a group's limit and on the whole machine are two series. The kernel logs the group of at most
ten kills in five seconds; of how many it did not is said. Processes that kill(2) ended are not listed; how many of the group
systemd-oomd ended is shown separately.

Of a group with isolated CPUs ([isolation.md](isolation.md)) a note says how often interrupts and softirqs came to them in that
time, with the most frequent: no time of its tasks is counted for these. [`ringfence isolate check`](isolate-check.md) counts more.
";
