//! The order in which the kernel accepts a set of writes: what must be off before, nodes before CPUs, flags that
//! need both after, and pairs of limits in the order that keeps the kernel's own rule between them true at every
//! moment. Writes without a rule keep the order in which they were requested.

use std::{cmp::Reverse, collections::HashMap};

use settings::{Law, Pair, Version};
use units::CpuSet;

use crate::{
    Action, Step, Write,
    request::{Place, ReadFile},
};

/// Steps that write values back, in the order that the kernel accepts; a file that a write to another one changes comes
/// behind that. Steps that write nothing keep their order, behind all others.
pub fn in_order(steps: Vec<Step>, read: ReadFile<'_>) -> Vec<Step> {
    let write = |(request, step): (usize, &Step)| match &step.action {
        Action::Write { place, file, text, .. } => {
            let (place, file, text) = (place.clone(), file.clone(), text.clone());
            Some(Write { requests: vec![request], place, file, text, why: None })
        }
        _ => None,
    };
    let mut writes: Vec<Write> = steps.iter().enumerate().filter_map(write).collect();
    order(&mut writes, read);
    writes.sort_by_key(|write| settings::is_changed_by_others(write.place.version, &write.file));
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let mut ordered: Vec<Step> = writes.iter().filter_map(|write| steps[write.requests[0]].take()).collect();
    ordered.extend(steps.into_iter().flatten());
    ordered
}

/// Puts the writes of each place in order. Stable.
pub(crate) fn order(writes: &mut [Write], read: ReadFile<'_>) {
    let turn = |write: &Write| settings::turn(write.place.version, &write.file, &write.text);
    for write in writes.iter_mut() {
        write.why = turn(write).why;
    }
    let shrinking = shrinking_shares(writes, read);
    let rank = |write: &Write| (turn(write).stage, depth_rule(write, &shrinking, read));
    writes.sort_by_cached_key(rank);
    order_pairs(writes, read);
}

/// The rule whose two files together hold a share of a period, which v1 bounds by the parent's; one of them is `file`.
fn share(version: Version, file: &str) -> Option<[&'static str; 2]> {
    let shares = settings::pairs(version).filter(|(_, pair)| pair.law == Law::Share);
    shares.map(|(time, pair)| [time, pair.other]).find(|files| files.contains(&file))
}

/// For what v1 bounds by the parent (sets, quotas, real-time budgets): a group that grows comes after its parent,
/// one that shrinks before it. Of real-time budgets, which v1 adds up, all that shrink come before those that grow.
fn depth_rule(
    write: &Write,
    shrinking: &HashMap<(Place, &'static str), bool>,
    read: ReadFile<'_>,
) -> (bool, Result<usize, Reverse<usize>>) {
    let depth = write.place.path.matches('/').count() + usize::from(!write.place.path.is_empty());
    let shrinks = match (write.file.as_str(), share(write.place.version, &write.file)) {
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
    let bound = || writes.iter().filter_map(|write| Some((write, share(write.place.version, &write.file)?)));
    let texts: HashMap<(&Place, &str), &str> =
        bound().map(|(write, _)| ((&write.place, write.file.as_str()), write.text.as_str())).collect();
    let shrinks = |place: &Place, [time, period]: [&'static str; 2]| {
        let new = |file: &'static str| {
            let text = texts.get(&(place, file)).map(|text| (*text).to_owned());
            amount(text.or_else(|| read(place, file)).as_deref())
        };
        let old = |file: &str| amount(read(place, file).as_deref());
        !settings::is_at_most([old(time), old(period)], [new(time), new(period)])
    };
    bound().map(|(write, files)| ((write.place.clone(), files[0]), shrinks(&write.place, files))).collect()
}

/// Orders the files of each place between which the kernel keeps a rule: of those that may go, the one that stood
/// first goes first.
fn order_pairs(writes: &mut [Write], read: ReadFile<'_>) {
    let bound = |write: &Write| {
        settings::pairs(write.place.version).any(|(first, pair)| [first, pair.other].contains(&&*write.file))
    };
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
    let rule = |(first, pair): (&'static str, Pair)| {
        let texts = [new(first)?, new(pair.other)?];
        let old = [first, pair.other].map(|file| amount(read(place, file).as_deref()));
        let first_goes = pair.law.first_goes(old, texts.map(|text| amount(Some(&text))));
        let [before, after] = if first_goes { [first, pair.other] } else { [pair.other, first] };
        Some(Rule { before, after, why: pair.why })
    };
    settings::pairs(place.version).filter_map(rule).collect()
}

/// A limit's first number; `None` where there is no limit (`max`, `-1`, nothing).
fn amount(text: Option<&str>) -> Option<u64> {
    text?.split_whitespace().next()?.parse().ok()
}
