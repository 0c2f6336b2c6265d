//! How long planning takes: 500 groups of two CPUs on a made-up machine of 16 nodes and 1,024 CPUs, when nothing is
//! there yet, when everything is already as requested, and when a group is added to that. Prints medians of 50 runs each: the
//! time that passed, and the time on a CPU (/proc/self/schedstat), which other load on the machine does not add to.
//! `cargo run --release -p ringfence-plan --example planning_time [GROUPS]`. Only planning is timed, neither reading
//! the layout nor looking at the (in-memory) kernel.
#![allow(clippy::print_stdout, reason = "an example that prints")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure ends it")]

#[allow(dead_code, reason = "the tests' world, of which only a part is needed")]
mod world;

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use plan::{Anybody, MachineFacts, Plan, plan};
use world::{Kind, World, desired, machine};

const RUNS: usize = 50;

/// Groups of two CPUs: their own or shared, in whole cores, near to a node or to another group, with local memory and
/// limits.
fn layout(groups: usize) -> String {
    let mut text = String::new();
    for index in 0..groups {
        let node = index / 4 % 16;
        writeln!(text, "[groups.\"tenant{}/g{index}\"]", index % 10).unwrap();
        let demands = match index % 4 {
            0 => "cpus = { count = 2, pool = \"exclusive\" }\nmems = \"local\"".to_owned(),
            1 => "cpus = 2\nmemory.max = \"1G\"\ncpu.weight = 200".to_owned(),
            2 => format!(
                "cpus = {{ count = 2, near = \"node:{node}\" }}\nmems = \"local\"\nmemory.high = \"512M\""
            ),
            _ => format!(
                "cpus = {{ count = 2, smt = \"whole-cores\", pool = \"exclusive\", near = \"group:tenant{}/g{}\" }}\nmems = \"local\"\npids.max = 1000",
                (index - 1) % 10,
                index - 1
            ),
        };
        writeln!(text, "{demands}").unwrap();
    }
    text
}

/// How long this process was on a CPU so far.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

fn report(what: &str, world: &World, text: &str) -> Plan {
    let desired = desired(text);
    let observed = world.observed(&desired);
    let facts = MachineFacts(&world.machine);
    let (mut passed, mut used, mut last) = (Vec::new(), Vec::new(), None);
    for _ in 0..RUNS {
        let (begun, used_before) = (Instant::now(), on_cpu());
        let planned = plan(&desired, &world.machine, &observed, &facts, &Anybody);
        passed.push(begun.elapsed());
        used.push(on_cpu() - used_before);
        last = Some(planned.unwrap_or_else(|problems| panic!("{problems:#?}")));
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[RUNS / 2]
    };
    let plan = last.unwrap();
    let (passed, used) = (median(&mut passed), median(&mut used));
    println!("{what:<24} {passed:>9.2?} passed, {used:>9.2?} on a CPU, {} steps", plan.steps.len());
    plan
}

fn main() {
    let groups = std::env::args().nth(1).map_or(500, |text| text.parse().unwrap());
    let text = layout(groups);
    for kind in [Kind::V1, Kind::V2Exclusive] {
        let mut world = World::new(kind, machine(16, 4, 8, 2));
        world.watched = false;
        let fresh = report(&format!("{kind:?}, fresh"), &world, &text);
        world.carry_out(&fresh);
        report(&format!("{kind:?}, unchanged"), &world, &text);
        let more = format!("{text}[groups.more]\ncpus = 8\nexclusive = true\n");
        report(&format!("{kind:?}, one more"), &world, &more);
    }
}
