//! Time without memory: a limit that makes tasks reclaim, swap, a machine that is short of it, memory far away; and
//! processes that were killed.

use std::time::Duration;

use settings::Version;
use units::{Limit, counted};

use super::{
    answer::{Cause, Certainty, Lost, Number, bytes, count, seconds},
    blocked::{PAGE, refault_part, slept, time_of},
    causes::Kind,
    facts::{Facts, Level, MemoryFacts, MemoryStop},
    thresholds::{AT_MEMSW_LIMIT, LEAST_REMOTE},
    words::{half_more, percent, set, size, subject, time, whose},
};
use monitor::FigureUnit;

/// v1's limit of memory and swap together.
const MEMSW: &str = "memory.memsw.limit_in_bytes";

/// The distance of a node from itself (ACPI SLIT).
const LOCAL: u32 = 10;

pub(crate) fn causes(facts: &Facts) -> Vec<Cause> {
    let mut causes = stops(facts);
    causes.extend(killed(facts));
    causes.extend(waited(facts));
    causes.extend(remote(facts));
    causes
}

fn stops(facts: &Facts) -> Vec<Cause> {
    let stop = |stop: &MemoryStop| {
        let level = &stop.level;
        let known = if stop.stopped == (true, true) { Certainty::Sampled } else { Certainty::AtMost };
        let when = match stop.stopped {
            (true, true) => "all the time",
            (true, false) => "until some was free",
            (false, _) => "since it was used up meanwhile",
        };
        Cause {
            lost: Some(Lost::new(time_of(stop, facts.span), known)),
            numbers: vec![
                max(limit(level).or(both(level)).unwrap_or_default()),
                bytes("memory.current", level.memory),
                count("waiting tasks", stop.tasks as u64),
            ],
            sentence: format!(
                "{} ({}) is used up, and memory.oom_control keeps the kernel from killing: {} stood still {when}",
                whose(facts, level, name_of_max(level)),
                size_of_max(level),
                counted(stop.tasks as u64, "task"),
            ),
            hint: if stop.stopped.1 { raised_max(facts, level) } else { None },
            ..Cause::new(Kind::MemoryStop, &level.group)
        }
    };
    facts.memory_stops.iter().map(stop).collect()
}

/// v1 counts a kill where the process was, v2 also above: the lowest limit that was met is named.
fn killed(facts: &Facts) -> Option<Cause> {
    let kills = facts.levels.first()?.oom_kills;
    if kills == 0 {
        return None;
    }
    // what was killed is gone from the usage
    let uncounted = || facts.levels.iter().find(|level| both(level).is_some());
    let met = facts.levels.iter().find(|level| was_met(level)).or_else(uncounted);
    let (at, sentence) = match met {
        Some(level) => (
            level,
            format!(
                "{} killed as memory met {} ({})",
                processes(kills),
                whose(facts, level, name_of_max(level)),
                size_of_max(level)
            ),
        ),
        None => {
            (facts.levels.first()?, format!("{} killed as the machine had no memory left", processes(kills)))
        }
    };
    Some(Cause {
        numbers: vec![
            count("memory.events.oom_kill", kills),
            count("memory.events.max", met_max(at)),
            bytes("memory.current", facts.memory.current),
        ],
        sentence,
        hint: met.and_then(|level| raised_max(facts, level)),
        ..Cause::new(Kind::OutOfMemory, &at.group)
    })
}

fn processes(number: u64) -> String {
    match number {
        1 => "1 process was".to_owned(),
        number => format!("{number} processes were"),
    }
}

fn limit(level: &Level) -> Option<u64> {
    level.memory_max.and_then(Limit::at)
}

fn max(limit: u64) -> Number {
    bytes("memory.max", limit)
}

/// v1's limit of memory and swap together.
fn both(level: &Level) -> Option<u64> {
    level.memsw_max.and_then(Limit::at)
}

/// How often usage met a limit. v1 charges memory and swap together first: where both limits are the same, only that
/// one's count grows.
fn met_max(level: &Level) -> u64 {
    let memory = if limit(level).is_some() { level.met_max } else { 0 };
    let together = if both(level).is_some() { level.met_swap_max } else { 0 };
    memory + together
}

fn was_met(level: &Level) -> bool {
    let is_full = |both: u64| level.memory as f64 >= AT_MEMSW_LIMIT.at * both as f64;
    met_max(level) > 0 || both(level).is_some_and(is_full)
}

/// Is the limit of both the only one, or the one that was met?
fn holds_both(level: &Level) -> bool {
    both(level).is_some() && (limit(level).is_none() || level.met_max == 0 && both(level) > limit(level))
}

fn name_of_max(level: &Level) -> &'static str {
    if holds_both(level) { MEMSW } else { "memory.max" }
}

fn size_of_max(level: &Level) -> String {
    let met = if holds_both(level) { both(level) } else { limit(level) };
    met.map(size).unwrap_or_default()
}

/// The limit that was met, half as high again.
fn raised_max(facts: &Facts, level: &Level) -> Option<String> {
    match (limit(level), both(level)) {
        // memory.max is far below: swap is full too
        (Some(limit), Some(both)) if level.met_max == 0 && both >= half_more(limit).0 => {
            raised(facts, level, MEMSW, both)
        }
        (Some(limit), _) => raised(facts, level, "memory.max", limit),
        (None, Some(both)) => raised(facts, level, MEMSW, both),
        (None, None) => None,
    }
}

/// The limit half as high again; on v1 that of memory plus swap must not be below it.
fn raised(facts: &Facts, level: &Level, name: &'static str, limit: u64) -> Option<String> {
    let new = half_more(limit);
    let memsw = level.memsw_max.and_then(Limit::at).filter(|memsw| *memsw < new.0 && name == "memory.max");
    let also = memsw.map(|_| format!("{MEMSW}={new}"));
    let settings: Vec<String> = [format!("{name}={new}")].into_iter().chain(also).collect();
    set(facts, &level.group, &settings)
}

/// Time in which the group waited for memory, and how well that is known: where the kernel counts none by group, the
/// machine's is a bound; without that, what the group spent in the kernel is.
fn pressure(facts: &Facts) -> Option<Lost> {
    let memory = &facts.memory;
    let bound = memory.machine_pressure.or(memory.system).map(|time| Lost::new(time, Certainty::AtMost));
    let counted = memory.pressure.map(|time| Lost::new(time, Certainty::Measured)).or(bound);
    // The kernel counts pages that come again as pressure only if they were in use when they were taken: what was waited
    // for the others is I/O to it.
    let again = slept(facts).map(|lost| Lost { seconds: lost.seconds * refault_part(facts), ..lost });
    match (counted, again) {
        (Some(counted), Some(again)) if counted.counted() < again.counted() => Some(again),
        (counted, again) => counted.or(again),
    }
}

fn waited(facts: &Facts) -> Vec<Cause> {
    let memory = &facts.memory;
    let Some(lost) = pressure(facts) else { return Vec::new() };
    let met = facts.levels.iter().find(|level| level.met_high > 0 || was_met(level));
    let again = memory.refaults_anon + memory.refaults_file;
    if met.is_none() && again == 0 && memory.pressure.is_none() {
        return Vec::new(); // the machine's pressure is somebody else's
    }
    let swapped = if again == 0 { 0.0 } else { memory.refaults_anon as f64 / again as f64 };
    let part = |of: f64| Lost { seconds: lost.seconds * of, known: lost.known };
    let mut causes = Vec::new();
    if swapped > 0.0 {
        causes.push(swap(facts, met, part(swapped)));
    }
    if swapped < 1.0 {
        causes.push(match met {
            Some(level) => limited(facts, level, part(1.0 - swapped)),
            None => machine(facts, part(1.0 - swapped)),
        });
    }
    causes
}

fn refaults(memory: &MemoryFacts) -> Vec<Number> {
    vec![
        count("memory.refaults.file", memory.refaults_file),
        count("memory.refaults.anon", memory.refaults_anon),
        count("memory.faults.major", memory.major_faults),
        bytes("memory.current", memory.current),
    ]
}

fn limited(facts: &Facts, level: &Level, lost: Lost) -> Cause {
    let memory = &facts.memory;
    // what is met more often is the one that holds
    let high = level.memory_high.and_then(Limit::at).filter(|_| level.met_high > met_max(level));
    let (name, size, met, hint) = match high {
        Some(high) => ("memory.high", size(high), level.met_high, raised(facts, level, "memory.high", high)),
        None => (name_of_max(level), size_of_max(level), met_max(level), raised_max(facts, level)),
    };
    let met = if met == 0 { String::new() } else { format!(" {}", counted(met, "time")) };
    let mut numbers =
        vec![count("memory.events.max", met_max(level)), count("memory.events.high", level.met_high)];
    numbers.extend(limit(level).map(max));
    numbers.extend(high.map(|high| bytes("memory.high", high)));
    numbers.extend(refaults(memory));
    Cause {
        lost: Some(lost),
        numbers,
        sentence: format!(
            "{} ({size}) was met{met}: its tasks had to make room{}",
            whose(facts, level, name),
            read_again(memory)
        ),
        hint,
        ..Cause::new(Kind::MemoryLimit, &level.group)
    }
}

fn pages(number: u64) -> String {
    size(number.saturating_mul(PAGE))
}

/// What it cost that files were dropped.
fn read_again(memory: &MemoryFacts) -> String {
    match memory.refaults_file {
        0 => String::new(),
        number => format!(", and {} of files that had been dropped had to be read again", pages(number)),
    }
}

fn swap(facts: &Facts, met: Option<&Level>, lost: Lost) -> Cause {
    let memory = &facts.memory;
    let mut numbers = refaults(memory);
    numbers.push(bytes("memory.swap", memory.swap));
    numbers.extend(met.map(|level| count("memory.swap.events.max", level.met_swap_max)));
    let why = match met {
        Some(level) => format!("as {} was met", whose(facts, level, "memory limit")),
        None => "as the machine was short of memory".to_owned(),
    };
    let by_limit = met.and_then(|level| raised_max(facts, level));
    Cause {
        lost: Some(lost),
        numbers,
        sentence: format!(
            "{} of its programs' memory had to come back from swap, where {} are now, {why}",
            pages(memory.refaults_anon),
            size(memory.swap)
        ),
        hint: by_limit.or_else(|| protected(facts)),
        ..Cause::new(Kind::Swap, met.map_or(&facts.group, |level| &level.group))
    }
}

fn machine(facts: &Facts, lost: Lost) -> Cause {
    Cause {
        lost: Some(lost),
        numbers: refaults(&facts.memory),
        sentence: format!(
            "no limit was met, but the machine was short of memory{}",
            read_again(&facts.memory)
        ),
        hint: protected(facts),
        ..Cause::new(Kind::MachineMemory, "/")
    }
}

/// v2 can keep a group's memory from being reclaimed; v1 can only prefer its files.
fn protected(facts: &Facts) -> Option<String> {
    let memory = &facts.memory;
    let setting = match memory.version {
        Some(Version::V1) | None => "memory.swappiness=0".to_owned(),
        Some(Version::V2) => {
            format!("memory.min={}", half_more(memory.current.saturating_add(memory.swap)))
        }
    };
    set(facts, &facts.group, &[setting])
}

/// No counter shows what remote memory cost. It is at most what the CPU time would have been shorter by if all of it had
/// been waiting for memory: the distances are ratios of that time.
fn remote(facts: &Facts) -> Option<Cause> {
    let nodes = &facts.memory.nodes;
    let all: u64 = nodes.iter().map(|node| node.bytes).sum();
    let far: Vec<_> = nodes.iter().filter(|node| node.distance > LOCAL && node.bytes > 0).collect();
    let remote: u64 = far.iter().map(|node| node.bytes).sum();
    let part = remote as f64 / all.max(1) as f64;
    if part < LEAST_REMOTE.at {
        return None;
    }
    let dearer = |node: &&super::NodeFacts| {
        node.bytes as f64 / all.max(1) as f64 * (1.0 - f64::from(LOCAL) / f64::from(node.distance))
    };
    let lost: Duration = facts.cpu.used.mul_f64(far.iter().map(dearer).sum::<f64>().clamp(0.0, 1.0));
    let near: Vec<String> =
        nodes.iter().filter(|node| node.distance == LOCAL).map(|node| node.node.to_string()).collect();
    let places: Vec<String> = far
        .iter()
        .map(|node| format!("{} on node {} (distance {})", size(node.bytes), node.node, node.distance))
        .collect();
    let level = facts.levels.first()?;
    let near = near.join(",");
    // v2 moves pages that are there already; v1 only on request
    let moved = match facts.levels.first().and_then(|level| level.mems.as_ref()) {
        Some(_) if facts.memory.version == Some(Version::V1) => Some("cpuset.memory_migrate=1".to_owned()),
        _ => None,
    };
    let settings: Vec<String> = moved.into_iter().chain([format!("cpuset.mems={near}")]).collect();
    Some(Cause {
        lost: Some(Lost::new(lost, Certainty::AtMost)),
        numbers: vec![
            bytes("remote", remote),
            Number { name: "remote part", value: part, unit: FigureUnit::Share },
            seconds("cpu.usage", facts.cpu.used),
        ],
        sentence: format!(
            "{} of its memory is not on the nodes of {} CPUs: {}; that cost at most {}",
            percent(part),
            if subject(facts, level) == "it" { "its" } else { "the" },
            places.join(", "),
            time(lost)
        ),
        hint: (!near.is_empty()).then(|| set(facts, &facts.group, &settings)).flatten(),
        ..Cause::new(Kind::RemoteMemory, &level.group)
    })
}
