//! Exclusive CPUs and whether they are; SMT, isolation and clocks.

use topology::{
    Machine,
    facts::{Exclusive, Facts, Partition},
};
use units::{CpuSet, group_path, hint::Command};

use super::{Area, FactsExt, Finding, Level};

pub(super) fn cpusets(facts: &Facts, machine: Option<&Machine>) -> Vec<Finding> {
    let mut found: Vec<Finding> = abilities(facts).into_iter().collect();
    let partitions = facts.v2.as_ref().map_or(&[][..], |v2| &v2.partitions);
    found.extend(partitions.iter().flat_map(|one| partition(one, partitions, machine)));
    found.extend(facts.exclusive.iter().flat_map(|one| exclusive(one, facts, machine)));
    found
}

fn finding(level: Level, what: impl Into<String>) -> Finding {
    Finding::new(Area::Cpusets, level, what)
}

/// What this kernel has for exclusive CPUs.
fn abilities(facts: &Facts) -> Option<Finding> {
    if facts.v1_has("cpuset") {
        return Some(finding(Level::Ok, "exclusive CPUs: by cpuset.cpu_exclusive (v1)"));
    }
    if !facts.v2_has("cpuset") {
        return None;
    }
    let has = |file| facts.child_has(file);
    Some(match (has("cpuset.cpus.partition"), has("cpuset.cpus.exclusive")) {
        (None, _) => {
            finding(Level::Ok, "exclusive CPUs: what there is shows once a group has the cpuset controller")
        }
        (Some(false), _) => finding(Level::Note, "this kernel has no cpuset.cpus.partition")
            .so("CPUs are exclusive only as long as no other group is given them"),
        (_, Some(true)) => {
            finding(Level::Ok, "exclusive CPUs: by cpuset.cpus.exclusive and cpuset.cpus.partition")
        }
        _ => finding(Level::Note, "this kernel has no cpuset.cpus.exclusive")
            .so("a sibling's overlapping cpuset.cpus takes a partition out of force, without an error"),
    })
}

fn partition(partition: &Partition, all: &[Partition], machine: Option<&Machine>) -> Vec<Finding> {
    let Partition { group, kind, invalid, cpus, .. } = partition;
    let Some(reason) = invalid else {
        let what = format!("{group}: {kind} partition of CPUs {cpus}");
        return std::iter::once(finding(Level::Ok, what)).chain(split_cores(group, cpus, machine)).collect();
    };
    let reason = if reason.is_empty() { String::new() } else { format!(": {}", reason.to_lowercase()) };
    let what = format!("{group}: {kind} partition that is not in force{reason}");
    let mut hint: Vec<String> =
        partition.overlaps.iter().map(|(sibling, used)| give_up(sibling, used, all)).collect();
    // Linux 6.1 was seen to leave an invalid partition so until it has been a member again
    hint.extend(["member", kind].map(|state| set(group, "cpuset.cpus.partition", state)));
    vec![
        finding(Level::Attention, what)
            .so(format!("other groups run on CPUs {cpus}, too"))
            .hint(hint.join(" && ")),
    ]
}

/// The command that takes from a group what belongs to partitions other than itself: all of it at once, so that
/// the hints of several partitions agree.
fn give_up(sibling: &str, used: &CpuSet, partitions: &[Partition]) -> String {
    let others = partitions.iter().filter(|partition| partition.group != sibling);
    let left = others.fold(used.clone(), |left, partition| left.difference(&partition.cpus));
    let left = if left.is_empty() { "OTHER-CPUS".to_owned() } else { left.to_string() };
    set(sibling, "cpuset.cpus", &left)
}

fn set(group: &str, file: &str, value: &str) -> String {
    Command::ringfence("set").group(group).arg(format!("{file}={value}")).into()
}

fn exclusive(exclusive: &Exclusive, facts: &Facts, machine: Option<&Machine>) -> Vec<Finding> {
    let Exclusive { group, cpus } = exclusive;
    let what = format!("{group}: exclusive CPUs {cpus} (v1)");
    let within = |outer: &Exclusive| group_path::is_below(group, &outer.group);
    let first = match facts.in_cpuset_root {
        Some(others @ 1..) if !cpus.is_empty() && !facts.exclusive.iter().any(within) => {
            finding(Level::Attention, what)
                .so(format!("{others} processes of the root group still run there: v1 moves nobody away"))
                .hint(make_room(facts))
        }
        _ => finding(Level::Ok, what),
    };
    std::iter::once(first).chain(split_cores(group, cpus, machine)).collect()
}

/// The commands that move what is in the root group off all exclusive CPUs.
fn make_room(facts: &Facts) -> String {
    let online = facts.cpus.online.clone().unwrap_or_default();
    let rest = facts.exclusive.iter().fold(online, |rest, exclusive| rest.difference(&exclusive.cpus));
    let rest = if rest.is_empty() { "OTHER-CPUS".to_owned() } else { rest.to_string() };
    let nodes = facts.memory.nodes.as_ref().map_or_else(|| "0".to_owned(), ToString::to_string);
    format!(
        "ringfence create rest && ringfence set rest cpuset.cpus={rest} cpuset.mems={nodes} && \
         ringfence move rest PID…"
    )
}

/// Exclusive CPUs whose SMT siblings are not.
fn split_cores(group: &str, cpus: &CpuSet, machine: Option<&Machine>) -> Option<Finding> {
    let whole = machine?.with_siblings(cpus)?;
    let outside = whole.difference(cpus);
    (!outside.is_empty()).then(|| {
        finding(Level::Attention, format!("{group}: CPUs {outside} are on the same cores, and not exclusive"))
            .so(format!("what runs on CPUs {outside} slows CPUs {cpus} down"))
            .hint(set(group, "cpuset.cpus", &whole.to_string()))
    })
}

pub(super) fn cpus(facts: &Facts, machine: Option<&Machine>) -> Vec<Finding> {
    let found = [smt(facts, machine), isolation(facts), ticks(facts), clocks(facts), power(facts)];
    found.into_iter().flatten().collect()
}

fn smt(facts: &Facts, machine: Option<&Machine>) -> Option<Finding> {
    let control = facts.cpus.smt_control.as_deref();
    let active = facts.cpus.smt_active.or_else(|| machine?.smt_active())?;
    if !active {
        let state = match control {
            Some("notsupported" | "notimplemented") | None => "this machine has none",
            Some(_) => "off",
        };
        return Some(Finding::new(Area::Cpus, Level::Ok, format!("SMT: {state}; each CPU is a core")));
    }
    let threads = machine.and_then(Machine::threads_per_core).filter(|threads| *threads > 1);
    let threads = threads.map_or_else(|| "more than one CPU".to_owned(), |count| format!("{count} CPUs"));
    Some(
        Finding::new(Area::Cpus, Level::Note, format!("SMT: on; a core runs {threads}"))
            .so("a CPU that is exclusive without its siblings still shares its core")
            .hint("echo off > /sys/devices/system/cpu/smt/control, or take whole cores (ringfence topology)"),
    )
}

fn isolation(facts: &Facts) -> Option<Finding> {
    let isolated = facts.cpus.isolated.as_ref().filter(|cpus| !cpus.is_empty())?;
    let finding = Finding::new(Area::Cpus, Level::Note, format!("CPUs {isolated} are isolated"))
        .so("the scheduler balances nothing there: tasks that are not bound one by one pile up on one CPU");
    Some(match facts.booted("isolcpus") {
        Some(word) => {
            finding.hint(format!("taskset -cp CPU PID, or remove {word} from the kernel's command line"))
        }
        None => finding.hint("taskset -cp CPU PID"),
    })
}

fn ticks(facts: &Facts) -> Option<Finding> {
    let cpus = facts.cpus.nohz_full.as_ref().filter(|cpus| !cpus.is_empty())?;
    Some(Finding::new(
        Area::Cpus,
        Level::Ok,
        format!("CPUs {cpus} have no periodic tick while one task runs (nohz_full)"),
    ))
}

/// What power saving can be seen by.
fn power(facts: &Facts) -> Option<Finding> {
    let shown = |what: &str, names: &[String]| match names {
        [] => format!("no {what}"),
        names => format!("{what} {}", names.join(", ")),
    };
    facts.cpus.online.as_ref()?;
    let idle = shown("idle states", &facts.cpus.idle_states);
    let energy = shown("energy counters (RAPL)", &facts.cpus.energy);
    Some(Finding::new(Area::Cpus, Level::Ok, format!("power: this machine shows {idle}, and {energy}")))
}

fn clocks(facts: &Facts) -> Option<Finding> {
    let governors = &facts.cpus.governors;
    let slow: Vec<String> = governors
        .iter()
        .filter(|(governor, _)| *governor != "performance")
        .map(|(governor, cpus)| format!("{governor} on CPUs {cpus}"))
        .collect();
    if slow.is_empty() {
        let fixed = governors.contains_key("performance");
        return fixed.then(|| Finding::new(Area::Cpus, Level::Ok, "frequency governor: performance"));
    }
    Some(
        Finding::new(Area::Cpus, Level::Note, format!("frequency governor: {}", slow.join(", ")))
            .so("the clock follows the load: latencies and measurements vary with it")
            .hint("cpupower frequency-set --governor performance"),
    )
}
