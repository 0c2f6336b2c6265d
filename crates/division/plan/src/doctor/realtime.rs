//! Real-time throttling, and the real-time budgets of groups.

use topology::facts::{Facts, GroupBudget, RealtimeRoot};
use units::{Limit, Micros, hint::Command};

use super::{Area, FactsExt, Finding, Level};

fn finding(level: Level, what: impl Into<String>) -> Finding {
    Finding::new(Area::RealTime, level, what)
}

pub(super) fn realtime(facts: &Facts) -> Vec<Finding> {
    let found = [throttling(facts), facts.realtime.root.as_ref().map(budgets), v2_group_scheduling(facts)];
    found.into_iter().flatten().collect()
}

fn throttling(facts: &Facts) -> Option<Finding> {
    let period = facts.realtime.period?;
    Some(match facts.realtime.runtime? {
        Limit::Max => finding(Level::Note, "real-time tasks have no bound (sched_rt_runtime_us is -1)")
            .so("one that never sleeps blocks its CPU for everything else")
            .hint("sysctl kernel.sched_rt_runtime_us=950000"),
        Limit::At(Micros(0)) => finding(Level::Attention, "sched_rt_runtime_us is 0")
            .so("no real-time task can run")
            .hint("sysctl kernel.sched_rt_runtime_us=950000"),
        Limit::At(runtime) => {
            finding(Level::Ok, format!("real-time tasks may run {runtime} of every {period}"))
        }
    })
}

/// A budget in millionths of a CPU; the kernel adds them up so.
fn share(runtime: Limit<Micros>, period: Micros) -> u64 {
    match runtime {
        Limit::Max => 1_000_000,
        Limit::At(runtime) => runtime.0.saturating_mul(1_000_000) / period.0.max(1),
    }
}

/// v1: each group has a budget of its own, and a new one has none.
fn budgets(root: &RealtimeRoot) -> Finding {
    let spent: u64 = root.held.iter().map(|group| share(group.runtime, group.period)).sum();
    let free = share(root.runtime, root.period).saturating_sub(spent);
    let free_time =
        Micros(u64::try_from(u128::from(free) * u128::from(root.period.0) / 1_000_000).unwrap_or(u64::MAX));
    let holders = root
        .held
        .iter()
        .map(|GroupBudget { group, runtime, period }| format!("{group} {runtime} of {period}"));
    let holders: Vec<String> = holders.collect();
    let holders = if holders.is_empty() { "no group has one".to_owned() } else { holders.join(", ") };
    let what = format!(
        "real-time budgets (v1 cpu.rt_runtime_us): {holders}; {free_time} of {} are free",
        root.period
    );
    match root.held.iter().max_by_key(|group| share(group.runtime, group.period)) {
        // below 1 % nothing useful can be given
        Some(largest) if free < 10_000 => finding(Level::Note, what)
            .so("no other group can be given one, and a real-time task can't be started in a group without")
            .hint(format!(
                "give some back: {} cpu.rt_runtime_us=50ms",
                Command::ringfence("set").group(&largest.group)
            )),
        _ => finding(Level::Note, what)
            .so("a new group has none: real-time tasks can't be started in it or moved into it")
            .hint("ringfence set GROUP cpu.rt_runtime_us=50ms"),
    }
}

/// v2 has no budgets; a kernel built for them refuses instead.
fn v2_group_scheduling(facts: &Facts) -> Option<Finding> {
    let off = match (facts.booted("rt_group_sched"), facts.built("RT_GROUP_SCHED_DEFAULT_DISABLED")) {
        (Some(word), _) => word == "rt_group_sched=0",
        (None, built) => built == Some("y"),
    };
    (facts.v2_has("cpu") && facts.built("RT_GROUP_SCHED") == Some("y") && !off).then(|| {
        finding(Level::Attention, "this kernel schedules real-time tasks by group (RT_GROUP_SCHED)")
            .so("none can be started in a v2 group, and one that runs in a group keeps cpu from being enabled")
            .hint("rt_group_sched=0 on the kernel's command line")
    })
}
