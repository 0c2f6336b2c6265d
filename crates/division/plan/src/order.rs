//! The order in which the kernel accepts a set of writes: what must be off before, nodes before CPUs, flags that
//! need both after, and pairs of limits in the order that keeps the kernel's own rule between them true at every
//! moment. Writes without a rule keep the order in which they were requested.

use std::{cmp::Reverse, collections::HashMap};

use units::CpuSet;

use crate::{
    Write,
    ask::{Place, ReadFile},
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
        rule: ratio,
        why: "between the two writes the group's real-time share is no more than before or after",
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
pub(crate) fn order(writes: &mut [Write], read: ReadFile<'_>) {
    for write in writes.iter_mut() {
        write.why = stage(&write.file, &write.text).1;
    }
    let shrinking = shrinking_shares(writes, read);
    let rank = |write: &Write| (stage(&write.file, &write.text).0, depth_rule(write, &shrinking, read));
    writes.sort_by_cached_key(rank);
    order_pairs(writes, read);
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
        "cpu.idle" if off => (6, Some("an idle group has no weight to set")),
        "cpu.idle" => (8, Some("it takes the weight's place")),
        "devices.deny" => (8, Some("first what is taken, then what is given")),
        "devices.allow" => (9, None),
        "cgroup.freeze" | "freezer.state" => (10, Some("after all limits are in place")),
        "cgroup.procs" | "cgroup.threads" | "tasks" => (11, Some("tasks come when the group is ready")),
        "cgroup.kill" | "memory.force_empty" | "memory.reclaim" => {
            (11, Some("can't be undone, so it comes last"))
        }
        _ => (7, None),
    }
}

/// Files that together hold a share of a period, which v1 bounds by the parent's.
const SHARES: [[&str; 2]; 2] =
    [["cpu.cfs_quota_us", "cpu.cfs_period_us"], ["cpu.rt_runtime_us", "cpu.rt_period_us"]];

/// The files of [`SHARES`] that one is of.
fn share(file: &str) -> Option<[&'static str; 2]> {
    SHARES.into_iter().find(|files| files.contains(&file))
}

/// For what v1 bounds by the parent (sets, quotas, real-time budgets): a group that grows comes after its parent,
/// one that shrinks before it. Of real-time budgets, which v1 adds up, all that shrink come before those that grow.
fn depth_rule(
    write: &Write,
    shrinking: &HashMap<(Place, &'static str), bool>,
    read: ReadFile<'_>,
) -> (bool, Result<usize, Reverse<usize>>) {
    let depth = write.place.path.matches('/').count() + usize::from(!write.place.path.is_empty());
    let shrinks = match (write.file.as_str(), share(&write.file)) {
        (_, Some([time, _])) => shrinking.get(&(write.place.clone(), time)).copied().unwrap_or(false),
        ("cpuset.cpus" | "cpuset.mems" | "cpuset.cpus.exclusive", None) => {
            let set =
                |text: Option<String>| text.and_then(|text| text.parse::<CpuSet>().ok()).unwrap_or_default();
            let (old, new) = (set(read(&write.place, &write.file)), set(Some(write.text.clone())));
            new.is_subset(&old) && !new.is_empty()
        }
        _ => false,
    };
    let first = shrinks && write.file.starts_with("cpu.rt_");
    (!first, if shrinks { Err(Reverse(depth)) } else { Ok(depth) })
}

/// By place and the file that holds the time: is the share that it is to have less than what it has?
fn shrinking_shares(writes: &[Write], read: ReadFile<'_>) -> HashMap<(Place, &'static str), bool> {
    let bound = || writes.iter().filter_map(|write| Some((write, share(&write.file)?)));
    let texts: HashMap<(&Place, &str), &str> =
        bound().map(|(write, _)| ((&write.place, write.file.as_str()), write.text.as_str())).collect();
    let shrinks = |place: &Place, [time, period]: [&'static str; 2]| {
        let new = |file: &'static str| {
            let text = texts.get(&(place, file)).map(|text| (*text).to_owned());
            amount(text.or_else(|| read(place, file)))
        };
        let old = |file: &str| amount(read(place, file));
        new(time) / new(period) < old(time) / old(period)
    };
    bound().map(|(write, files)| ((write.place.clone(), files[0]), shrinks(&write.place, files))).collect()
}

/// Orders the files of each place between which the kernel keeps a rule: of those that may go, the one that stood
/// first goes first.
fn order_pairs(writes: &mut [Write], read: ReadFile<'_>) {
    let bound =
        |write: &Write| PAIRS.iter().any(|pair| pair.first == write.file || pair.second == write.file);
    let mut slots_of: HashMap<Place, Vec<usize>> = HashMap::new();
    for (slot, write) in writes.iter().enumerate().filter(|(_, write)| bound(write)) {
        slots_of.entry(write.place.clone()).or_default().push(slot);
    }
    for (place, slots) in slots_of {
        let mut left: Vec<Write> = slots.iter().map(|&slot| writes[slot].clone()).collect();
        let rules = rules(&place, &left, read);
        for slot in slots {
            let free = |write: &Write| {
                let waits = |rule: &Rule| {
                    rule.after == write.file && left.iter().any(|other| other.file == rule.before)
                };
                !rules.iter().any(waits)
            };
            // two rules over three files have no circle, so one is always free
            let next = left.iter().position(free).unwrap_or(0);
            writes[slot] = left.remove(next);
            let own = writes[slot].file.clone();
            if let Some(rule) = rules.iter().find(|rule| rule.before == own) {
                writes[slot].why = Some(rule.why);
            }
        }
    }
}

/// One file goes before another.
struct Rule {
    before: &'static str,
    after: &'static str,
    why: &'static str,
}

fn rules(place: &Place, writes: &[Write], read: ReadFile<'_>) -> Vec<Rule> {
    let new = |file: &str| writes.iter().find(|write| write.file == file).map(|write| write.text.clone());
    let rule = |pair: &Pair| {
        let (first, second) = (new(pair.first)?, new(pair.second)?);
        let old = [amount(read(place, pair.first)), amount(read(place, pair.second))];
        let (before, after) = match (pair.rule)(old, [amount(Some(first)), amount(Some(second))]) {
            FirstGoes::Before => (pair.first, pair.second),
            FirstGoes::After => (pair.second, pair.first),
        };
        Some(Rule { before, after, why: pair.why })
    };
    PAIRS.iter().filter_map(rule).collect()
}

/// A limit's first number; no limit (`max`, `-1`, nothing) is infinite.
fn amount(text: Option<String>) -> f64 {
    let number = text.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    number.filter(|number| *number >= 0.0).unwrap_or(f64::INFINITY)
}
