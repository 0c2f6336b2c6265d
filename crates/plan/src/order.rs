//! The order in which the kernel accepts a set of writes: what must be off before, nodes before CPUs, flags that
//! need both after, and pairs of limits in the order that keeps the kernel's own rule between them true at every
//! moment. Writes without a rule keep the order in which they were asked for.

use std::cmp::Reverse;

use crate::{
    Write,
    ask::{Held, Place},
};

/// Two files between which the kernel keeps a rule: whichever way they change, one order never breaks it.
struct Pair {
    first: &'static str,
    second: &'static str,
    rule: fn(old: [f64; 2], new: [f64; 2]) -> FirstGoes,
    why: &'static str,
}

/// Where the pair's first file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstGoes {
    Before,
    After,
}

const PAIRS: [Pair; 5] = [
    Pair {
        first: "memory.limit_in_bytes",
        second: "memory.memsw.limit_in_bytes",
        rule: at_most,
        why: "memory plus swap is never below memory",
    },
    Pair {
        first: "cpu.cfs_quota_us",
        second: "cpu.cfs_period_us",
        rule: ratio,
        why: "between the two writes the group may run no more than before or after",
    },
    Pair {
        first: "cpu.cfs_burst_us",
        second: "cpu.cfs_quota_us",
        rule: at_most,
        why: "the burst is never above the quota",
    },
    Pair {
        first: "cpu.max.burst",
        second: "cpu.max",
        rule: at_most,
        why: "the burst is never above the quota",
    },
    Pair {
        first: "cpu.rt_runtime_us",
        second: "cpu.rt_period_us",
        rule: at_most,
        why: "the real-time budget is never longer than its period",
    },
];

/// `first` must stay at most `second`: it goes first if it fits below the second's old value.
fn at_most(old: [f64; 2], new: [f64; 2]) -> FirstGoes {
    if new[0] <= old[1] { FirstGoes::Before } else { FirstGoes::After }
}

/// Quota by period must not rise above both the old and the new share, since a parent may allow just these.
fn ratio(old: [f64; 2], new: [f64; 2]) -> FirstGoes {
    let quota_first = new[0] / old[1];
    let period_first = old[0] / new[1];
    if quota_first <= period_first { FirstGoes::Before } else { FirstGoes::After }
}

/// Puts the writes of each place in order. Stable.
pub(crate) fn order(writes: &mut [Write], held: Held<'_>) {
    for write in writes.iter_mut() {
        write.why = stage(&write.file, &write.text).1;
    }
    writes.sort_by_key(|write| (stage(&write.file, &write.text).0, depth_rule(write, held)));
    for pair in &PAIRS {
        order_pair(writes, pair, held);
    }
}

/// Where a write stands among all, and why.
fn stage(file: &str, text: &str) -> (u8, Option<&'static str>) {
    let off = text.trim() == "0";
    match file {
        "cgroup.type" => (0, Some("threads can be taken only by a threaded group")),
        "cpuset.cpu_exclusive" | "cpuset.mem_exclusive" if off => {
            (1, Some("no longer exclusive before its sets change"))
        }
        "cpuset.cpus.partition" if text == "member" => {
            (1, Some("no longer a partition before its sets change"))
        }
        "cpuset.mems" => (2, Some("memory nodes before CPUs, both before tasks")),
        "cpuset.cpus" => (3, Some("after the memory nodes, before tasks")),
        "cpuset.cpus.exclusive" => (4, Some("after the CPUs that it is a part of")),
        "cpuset.cpu_exclusive" | "cpuset.mem_exclusive" | "cpuset.cpus.partition" => {
            (5, Some("exclusive only once the sets are its own"))
        }
        "devices.deny" => (7, Some("first what is taken, then what is given")),
        "devices.allow" => (8, None),
        "cgroup.freeze" | "freezer.state" => (9, Some("after all limits are in place")),
        "cgroup.procs" | "cgroup.threads" | "tasks" => (10, Some("tasks come when the group is ready")),
        "cgroup.kill" | "memory.force_empty" | "memory.reclaim" => {
            (11, Some("can't be undone, so it comes last"))
        }
        _ => (6, None),
    }
}

/// For sets: a group that grows comes after its parent, one that shrinks before it.
fn depth_rule(write: &Write, held: Held<'_>) -> Result<usize, Reverse<usize>> {
    let depth = write.place.path.matches('/').count() + usize::from(!write.place.path.is_empty());
    if !matches!(write.file.as_str(), "cpuset.cpus" | "cpuset.mems" | "cpuset.cpus.exclusive") {
        return Ok(depth);
    }
    let old: units::CpuSet =
        held(&write.place, &write.file).and_then(|text| text.parse().ok()).unwrap_or_default();
    let new: units::CpuSet = write.text.parse().unwrap_or_default();
    if new.is_subset(&old) && !new.is_empty() { Err(Reverse(depth)) } else { Ok(depth) }
}

fn order_pair(writes: &mut [Write], pair: &Pair, held: Held<'_>) {
    let places: Vec<Place> =
        writes.iter().filter(|write| write.file == pair.first).map(|w| w.place.clone()).collect();
    for place in places {
        let position =
            |file: &str| writes.iter().position(|write| write.place == place && write.file == file);
        let (Some(first), Some(second)) = (position(pair.first), position(pair.second)) else { continue };
        let old = [amount(held(&place, pair.first)), amount(held(&place, pair.second))];
        let new = [amount(Some(writes[first].text.clone())), amount(Some(writes[second].text.clone()))];
        let goes = (pair.rule)(old, new);
        if (goes == FirstGoes::Before) != (first < second) {
            writes.swap(first, second);
        }
        writes[first.min(second)].why = Some(pair.why);
    }
}

/// A limit's first number; no limit (`max`, `-1`, nothing) is infinite.
fn amount(text: Option<String>) -> f64 {
    let number = text.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    number.filter(|number| *number >= 0.0).unwrap_or(f64::INFINITY)
}
