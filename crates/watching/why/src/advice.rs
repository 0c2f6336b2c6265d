//! What is advised where groups contend for the same thing: a command for the group that the user named, or a choice
//! between equals; never one for each side of a contention, as two answers would then raise each other's weights for
//! ever. Pure.

use units::{CpuSet, group_path};

use super::{
    answer::Choice,
    by_load::Instead,
    facts::{CpuFacts, DeviceFacts, Facts, Level},
    room::Room,
    words::set,
};

/// What to do about a neighbour.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Advice {
    /// How the two stand to each other, to follow a sentence; may be empty.
    pub sentence: String,
    /// The command that gives the group more.
    pub hint: Option<String>,
    /// Where the two are equal: a command for each.
    pub choices: Vec<Choice>,
}

/// Weights and rates this near to each other (a tenth, a quarter) are equal: v1 rounds weights, and two that share a device
/// alike never do the same number of operations.
const EQUAL_WEIGHTS: f64 = 0.1;
const EQUAL_RATES: f64 = 0.25;

/// A larger weight is four times the one before: less is hard to see beside a busy machine's noise.
const MORE: u64 = 4;
const LARGEST_WEIGHT: u64 = 10_000;

impl Advice {
    /// CPUs that idle nearby cost nobody anything. Else a weight where both branches meet, if the neighbour's weight says that
    /// it matters no more than this group.
    pub(crate) fn on_cpus(facts: &Facts) -> Advice {
        let cpu = &facts.cpu;
        // nothing that is set here changes the hypervisor
        if cpu.steal * 2 > cpu.foreign {
            return Advice::default();
        }
        if let Some((level, all)) = idle_cpus(facts, cpu) {
            return match Instead::of_cpus(facts, level) {
                Some(Instead { ending, hint }) => Advice { sentence: ending, hint, ..Advice::default() },
                None => Advice {
                    hint: set(facts, &level.group, &[format!("cpuset.cpus={all}")]),
                    ..Advice::default()
                },
            };
        }
        let Some(largest) = cpu.others.first() else { return Advice::default() };
        let Some(level) = facts.levels.get(largest.meets) else { return Advice::default() };
        let Some(weight) = level.weight else { return Advice::default() };
        let raised = |group: &str, from: u64| {
            let more = from.saturating_mul(MORE).clamp(1, LARGEST_WEIGHT);
            if more > from { set(facts, group, &[format!("cpu.weight={more}")]) } else { None }
        };
        let Some((rival, theirs)) = &largest.rival else {
            return Advice { hint: raised(&level.group, weight), ..Advice::default() };
        };
        if are_equal(weight, *theirs, EQUAL_WEIGHTS) {
            let choice = |group: &str, weight| {
                Some(Choice { group: group.to_owned(), command: raised(group, weight)? })
            };
            return Advice {
                sentence: format!(
                    "; {} and {rival} share equally (cpu.weight {weight} and {theirs}): decide which matters more",
                    level.group
                ),
                choices: [choice(&level.group, weight), choice(rival, *theirs)]
                    .into_iter()
                    .flatten()
                    .collect(),
                hint: None,
            };
        }
        if weight > *theirs {
            return Advice { hint: raised(&level.group, weight), ..Advice::default() };
        }
        Advice {
            sentence: format!(
                "; {rival} has cpu.weight {theirs} and {} has {weight}, so that is how they were set to share",
                level.group
            ),
            ..Advice::default()
        }
    }

    /// A limit for the neighbour that does clearly more; none for one that does less, as that one's answer advises to limit this
    /// group.
    pub(crate) fn on_device(facts: &Facts, device: &DeviceFacts) -> Advice {
        let Some((rival, theirs)) = device.others.first().filter(|(group, _)| group != "/") else {
            return Advice::default();
        };
        let own = device.rios + device.wios;
        // half of what it does now
        let limited = |group: &str, operations: u64| {
            let rate = operations as f64 / facts.span.as_secs_f64().max(f64::MIN_POSITIVE);
            let limit = (rate / 2.0).ceil().max(1.0) as u64;
            set(facts, group, &[format!("io.max={} riops={limit} wiops={limit}", device.device)])
        };
        if are_equal(own, *theirs, EQUAL_RATES) {
            let beside = beside(facts, rival);
            let choice = |group: &str, command: Option<String>| {
                Some(Choice { group: group.to_owned(), command: command? })
            };
            let both = [choice(beside, limited(rival, *theirs)), choice(rival, limited(beside, own))];
            return Advice {
                sentence: format!("; {beside} and {rival} share equally: decide which matters more"),
                choices: both.into_iter().flatten().collect(),
                hint: None,
            };
        }
        if *theirs > own {
            return Advice { hint: limited(rival, *theirs), ..Advice::default() };
        }
        Advice { sentence: format!("; it did more itself than {rival} did"), ..Advice::default() }
    }
}

/// The group or the one above it that stands beside `rival`: names of one depth.
fn beside<'f>(facts: &'f Facts, rival: &str) -> &'f str {
    let depth = |name: &str| group_path::names(name).count();
    let level = facts.levels.iter().find(|level| depth(&level.group) == depth(rival));
    level.map_or(&facts.group, |level| &level.group)
}

fn are_equal(one: u64, other: u64, within: f64) -> bool {
    one.abs_diff(other) as f64 <= within * one.max(other) as f64
}

/// The group's CPUs with those that idle and that it could have without a change of a group above.
fn idle_cpus<'f>(facts: &'f Facts, cpu: &CpuFacts) -> Option<(&'f Level, CpuSet)> {
    let room = Room::of(facts)?;
    let [level] = room.levels[..] else { return None };
    let idle = room.more.intersection(&cpu.idle);
    (!idle.is_empty()).then(|| (level, cpu.cpus.union(&idle)))
}
