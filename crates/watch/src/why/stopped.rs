//! What keeps work from being done at all: a frozen group, one without CPUs, a limit of tasks.

use units::Limit;

use super::{
    answer::{Cause, Effect, Kind, Known, Lost, Note, count, seconds},
    facts::{Facts, Level},
    words::{plural, set, subject, whose},
};

pub(crate) fn causes(facts: &Facts) -> Vec<Cause> {
    [frozen(facts), no_cpus(facts), forks(facts)].into_iter().flatten().collect()
}

/// The highest frozen group of the way: those below it are frozen by it.
fn frozen(facts: &Facts) -> Option<Cause> {
    let level = facts.levels.iter().rev().find(|level| level.frozen.0 || level.frozen.1)?;
    let (part, when) = match level.frozen {
        (true, true) => (1.0, "all the time"),
        // it thawed or froze at a moment that was not seen: in the middle, by the least mistake
        (true, false) => (0.5, "until it was thawed meanwhile"),
        (false, _) => (0.5, "since it was frozen meanwhile"),
    };
    let tasks = u32::try_from(facts.tasks.max(1)).unwrap_or(u32::MAX);
    let known = if part < 1.0 { Known::AtMost } else { Known::Measured };
    let lost = Lost::new(facts.span * tasks, known);
    Some(Cause {
        kind: Kind::Frozen,
        at: level.group.clone(),
        effect: Effect::Stopped,
        share: None,
        numbers: vec![count("pids.current", facts.tasks as u64), seconds("span", facts.span)],
        sentence: format!(
            "{} is frozen: {} stood still {when}",
            subject(facts, level),
            plural(facts.tasks as u64, "task")
        ),
        hint: level.frozen.1.then(|| format!("ringfence thaw {}", level.group)),
        lost: Some(lost),
    })
}

fn no_cpus(facts: &Facts) -> Option<Cause> {
    let level = facts.levels.first()?;
    let above = facts.levels.get(1);
    let no_cpus = level.cpus.as_ref().is_some_and(|cpus| cpus.is_empty());
    let no_mems = level.mems.as_ref().is_some_and(|mems| mems.is_empty());
    let missing = match (no_cpus, no_mems) {
        (true, true) => "CPUs and no NUMA nodes",
        (true, false) => "CPUs",
        (false, true) => "NUMA nodes",
        (false, false) => return None,
    };
    let cpus = above.and_then(|level| level.cpus.clone()).filter(|cpus| !cpus.is_empty());
    let mems = above.and_then(|level| level.mems.clone()).filter(|mems| !mems.is_empty());
    let mut values = Vec::new();
    if no_cpus {
        values.push(format!("cpuset.cpus={}", cpus.unwrap_or_else(|| facts.cpu.online.clone())));
    }
    if no_mems {
        values.push(format!("cpuset.mems={}", mems.map_or_else(|| nodes(facts), |mems| mems.to_string())));
    }
    Some(Cause {
        kind: Kind::NoCpus,
        at: level.group.clone(),
        effect: Effect::Refused,
        lost: None,
        share: None,
        numbers: vec![count("pids.current", facts.tasks as u64)],
        sentence: format!("it has no {missing}: no task can be put into it"),
        hint: Some(set(&level.group, &values.join(" "))),
    })
}

/// The nodes of the machine as the facts know them; 0 is on every machine.
fn nodes(facts: &Facts) -> String {
    let mut set = units::NodeSet::new();
    facts.memory.nodes.iter().for_each(|node| _ = set.insert(node.node as usize));
    if set.is_empty() { "0".to_owned() } else { set.to_string() }
}

/// v1 counts a failed fork where the task was, v2 where the limit is: the limit that is fullest is told.
fn forks(facts: &Facts) -> Option<Cause> {
    let failed = facts.levels.iter().map(|level| level.failed_forks).max().filter(|failed| *failed > 0)?;
    let limit = |level: &Level| level.pids_max.and_then(Limit::at);
    let limited = facts.levels.iter().filter_map(|level| Some((level, limit(level)?)));
    let (level, max) = limited.min_by_key(|(level, max)| max.saturating_sub(level.pids))?;
    Some(Cause {
        kind: Kind::PidsLimit,
        at: level.group.clone(),
        effect: Effect::Refused,
        lost: None,
        share: None,
        numbers: vec![
            count("pids.events.max", failed),
            count("pids.max", max),
            count("pids.current", level.pids),
        ],
        sentence: format!(
            "{} failed by {} ({max}), with {} there now",
            plural(failed, "fork"),
            whose(facts, level, "pids.max"),
            plural(level.pids, "task")
        ),
        hint: Some(set(&level.group, &format!("pids.max={}", max.max(level.pids).saturating_mul(2).max(8)))),
    })
}

/// A kernel with real-time budgets refuses real-time tasks (EPERM) where there is none, and counts no refusals: so this
/// can't be a cause.
pub(crate) fn notes(facts: &Facts) -> Vec<Note> {
    let none = |level: &&Level| matches!(level.realtime, Some((Limit::At(budget), _)) if budget.is_zero());
    let note = |level: &Level| Note {
        sentence: format!(
            "a real-time task would be refused, as {} is 0",
            whose(facts, level, "cpu.rt_runtime_us")
        ),
        hint: set(&level.group, "cpu.rt_runtime_us=50ms"),
    };
    facts.levels.iter().rev().find(none).map(note).into_iter().collect()
}
