//! The causes of a group's lost time, found by the judges of one resource each, and ranked. Pure.

use super::{
    answer::{Answer, Cause, Lost, Note, Number, bytes, seconds},
    cpu,
    facts::Facts,
    io, memory, stopped,
    thresholds::LEAST_SHARE,
};

/// Judges the facts.
pub fn why(facts: &Facts) -> Answer {
    let judges = [stopped::causes, cpu::causes, memory::causes, io::causes];
    let mut causes: Vec<Cause> = judges.iter().flat_map(|judge| judge(facts)).collect();
    causes.retain(|cause| cause.lost.is_none_or(|lost| is_worth_naming(lost, facts)));
    let lost: f64 = causes.iter().filter_map(|cause| cause.lost).map(Lost::counted).sum();
    let whole = facts.cpu.used.as_secs_f64() + lost;
    for cause in &mut causes {
        cause.share = cause.lost.filter(|_| whole > 0.0).map(|lost| lost.counted() / whole);
    }
    let rank = |cause: &Cause| cause.lost.map_or(0.0, Lost::counted);
    // a stable sort: refusals stay in the judges' order
    causes.sort_by(|one, other| one.effect.cmp(&other.effect).then(rank(other).total_cmp(&rank(one))));
    Answer {
        group: facts.group.clone(),
        seconds: facts.span.as_secs_f64(),
        tasks: facts.tasks,
        used: used(facts),
        notes: notes(facts, causes.is_empty()),
        interrupted: facts.interrupted.clone(),
        causes,
    }
}

/// What a kernel refuses without counting it is reported only where nothing else is: on a kernel with real-time budgets
/// every group has none at first.
fn notes(facts: &Facts, is_all: bool) -> Vec<Note> {
    let realtime = cpu::no_realtime(facts).filter(|_| is_all);
    let some = [stopped::invalid_partition(facts), cpu::uncounted(facts), realtime, cpu::interrupted(facts)];
    some.into_iter().flatten().collect()
}

fn is_worth_naming(lost: Lost, facts: &Facts) -> bool {
    lost.seconds > 0.0 && lost.counted() >= LEAST_SHARE.at * facts.span.as_secs_f64()
}

fn used(facts: &Facts) -> Vec<Number> {
    let (devices, memory) = (&facts.io.devices, &facts.memory);
    let mut used = vec![seconds("cpu.usage", facts.cpu.used)];
    if memory.is_counted {
        used.extend([bytes("memory.current", memory.current), bytes("memory.swap", memory.swap)]);
    }
    used.extend([
        bytes("io.rbytes", devices.iter().map(|device| device.rbytes).sum()),
        bytes("io.wbytes", devices.iter().map(|device| device.wbytes).sum()),
    ]);
    used
}
