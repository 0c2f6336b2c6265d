//! What keeps work from being done at all: a frozen group, one without CPUs, a limit of tasks.

use units::{Limit, counted};

use super::{
    answer::{Cause, Certainty, Lost, Note, NoteKind, count, seconds},
    causes::Kind,
    facts::{Facts, Level},
    words::{set, subject, whose},
};

pub(crate) fn causes(facts: &Facts) -> Vec<Cause> {
    let refused = [no_cpus(facts), forks(facts)].into_iter().flatten();
    frozen(facts).into_iter().chain(frozen_parts(facts)).chain(refused).collect()
}

/// The highest frozen group of the way: those below it are frozen by it.
fn highest_frozen(facts: &Facts) -> Option<&Level> {
    facts.levels.iter().rev().find(|level| level.frozen.0 || level.frozen.1)
}

fn frozen(facts: &Facts) -> Option<Cause> {
    let level = highest_frozen(facts)?;
    let what = format!("{} is frozen: {}", subject(facts, level), tasks(facts.tasks));
    // a group without tasks would stop the next one
    Some(stopped(facts, &level.group, facts.tasks.max(1), level.frozen, &what))
}

/// Groups below that are frozen, and on v1 groups elsewhere in the freezer's hierarchy that some of the tasks are in.
/// Below a frozen group all stand still anyway.
fn frozen_parts(facts: &Facts) -> impl Iterator<Item = Cause> {
    let is_frozen = highest_frozen(facts).is_some();
    facts.frozen_parts.iter().filter(move |part| !(is_frozen && part.is_below)).map(|part| {
        let what = match part.is_below {
            true => format!("group {} below it is frozen: {} there", part.group, tasks(part.tasks)),
            false => format!("group {} is frozen, in which {} of it", part.group, tasks(part.tasks)),
        };
        stopped(facts, &part.group, part.tasks, part.frozen, &what)
    })
}

fn tasks(number: usize) -> String {
    counted(number as u64, "task")
}

/// `tasks` tasks stood still with `group`, frozen at the begin and at the end or not.
fn stopped(facts: &Facts, group: &str, tasks: usize, frozen: (bool, bool), what: &str) -> Cause {
    // when it thawed or froze meanwhile was not seen
    let (known, when) = match frozen {
        (true, true) => (Certainty::Measured, "all the time"),
        (true, false) => (Certainty::AtMost, "until it was thawed meanwhile"),
        (false, _) => (Certainty::AtMost, "since it was frozen meanwhile"),
    };
    let lost = facts.span.saturating_mul(u32::try_from(tasks).unwrap_or(u32::MAX));
    Cause {
        numbers: vec![count("pids.current", tasks as u64), seconds("span", facts.span)],
        sentence: format!("{what} stood still {when}"),
        hint: if frozen.1 { kernel::thaw_command(group).map(String::from) } else { None },
        lost: Some(Lost::new(lost, known)),
        ..Cause::new(Kind::Frozen, group)
    }
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
        numbers: vec![count("pids.current", facts.tasks as u64)],
        sentence: format!("it has no {missing}: no task can be put into it"),
        hint: set(facts, &level.group, &values),
        ..Cause::new(Kind::NoCpus, &level.group)
    })
}

/// The nodes of the machine as the facts know them; 0 is on every machine.
fn nodes(facts: &Facts) -> String {
    let mut set = units::NodeSet::new();
    facts.memory.nodes.iter().for_each(|node| _ = set.insert(node.node as usize));
    if set.is_empty() { "0".to_owned() } else { set.to_string() }
}

/// v1 counts a failed fork where the task was, v2 where the limit is: the limit that is fullest is named.
fn forks(facts: &Facts) -> Option<Cause> {
    let failed = facts.levels.iter().map(|level| level.failed_forks).max().filter(|failed| *failed > 0)?;
    let limit = |level: &Level| level.pids_max.and_then(Limit::at);
    let limited = facts.levels.iter().filter_map(|level| Some((level, limit(level)?)));
    let (level, max) = limited.min_by_key(|(level, max)| max.saturating_sub(level.pids))?;
    let more = max.max(level.pids).saturating_mul(2).max(8);
    Some(Cause {
        numbers: vec![
            count("pids.events.max", failed),
            count("pids.max", max),
            count("pids.current", level.pids),
        ],
        sentence: format!(
            "{} failed by {} ({max}), with {} there now",
            counted(failed, "fork"),
            whose(facts, level, "pids.max"),
            counted(level.pids, "task")
        ),
        hint: set(facts, &level.group, &[format!("pids.max={more}")]),
        ..Cause::new(Kind::PidsLimit, &level.group)
    })
}

/// The highest invalid partition of the way: those below it are invalid by it. Its CPUs are shared, which nothing
/// counts: others who then ran there are neighbours.
pub(crate) fn invalid_partition(facts: &Facts) -> Option<Note> {
    let mut levels = facts.levels.iter().enumerate().rev();
    let (place, level, of) =
        levels.find_map(|(place, level)| Some((place, level, level.invalid_partition.as_ref()?)))?;
    let reason = if of.reason.is_empty() { String::new() } else { format!(" ({})", of.reason) };
    let above = facts.levels.get(place + 1).filter(|_| of.is_below_member);
    let again = |group: &str, wanted: &str| set(facts, group, &[format!("cpuset.cpus.partition={wanted}")]);
    // what stands in its way first; then the kernel checks it again, but not for a write of what it is to be already
    let mut commands: Vec<Option<String>> =
        above.map(|above| again(&above.group, "root")).into_iter().collect();
    let has_others = |(_, others): &&(String, units::CpuSet)| !others.is_empty();
    let apart = of.overlapping.iter().filter(has_others);
    commands.extend(apart.map(|(group, others)| set(facts, group, &[format!("cpuset.cpus={others}")])));
    let is_known = !commands.is_empty();
    commands.extend(["member", &of.wanted].map(|state| again(&level.group, state)));
    let beside: Vec<String> = of.overlapping.iter().map(|(group, _)| group.clone()).collect();
    let shared = match (beside.is_empty(), above) {
        (false, _) => format!(", as {} may use some of them too", beside.join(" and ")),
        (true, Some(above)) => format!(", as {} is a member", above.group),
        (true, None) => String::new(),
    };
    Some(Note {
        kind: NoteKind::InvalidPartition,
        sentence: format!(
            "{} is '{} invalid{reason}': {} CPUs are not only its own{shared}",
            whose(facts, level, "cpuset.cpus.partition"),
            of.wanted,
            if subject(facts, level) == "it" { "its" } else { "that group's" },
        ),
        hint: commands
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .filter(|_| is_known)
            .map(|all| all.join(" && ")),
    })
}
