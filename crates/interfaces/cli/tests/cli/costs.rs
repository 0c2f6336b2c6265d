//! What a command costs for each group that it is about: system calls, counted at two sizes. They depend on no load, so that they
//! may decide a test.

use std::{fmt::Write, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::Desk,
    tracer,
    world::{Need, World, words},
};

/// Groups of the two layouts.
const SIZES: [usize; 2] = [40, 120];

/// A command, the word that distinguishes it, and how many system calls it may make for each group of a layout in effect. A debug
/// build makes one more for each file that it closes.
const BOUNDS: &[(&str, &str, f64)] = &[
    ("plan {d}/l.toml", "plan", 17.0),
    ("apply {d}/l.toml", "apply", 17.0),
    // memory and CPU time of each group, too
    ("status", "status", 30.0),
    ("set {g}/g0 pids.max=100 --quiet", "set", 0.0),
    ("get {g}/g0 pids.max", "get", 0.0),
    ("history", "history", 2.0),
    // started by a process in a group that the new one is in, too, where its own does not exist
    ("run {g}-rt -- sh -c '{p} run {g}/g0 -- /bin/true; true'", "run", 0.0),
];

/// And of those that have a bound, more where systemd is init: a plan makes 32 for each group below our unit.
const BELOW_UNIT: f64 = 12.0;

/// What a count may differ by from one run to the next: other processes come and go.
const NOISE: f64 = 1.0;

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let lacks = world.lacks(&[Need::Usual]);
    let world = world.clone();
    vec![suite::fallible("costs: system calls for each group", lacks, move || Ok(per_group(&world)?))]
}

fn per_group(world: &Arc<World>) -> Result<(), String> {
    let mut counts = Vec::new();
    for size in SIZES {
        let desk = Desk::new(world, "costs");
        let mut text = String::new();
        for number in 0..size {
            let name = desk.scene.fill(&format!("{{g}}/g{number}"));
            let _ = writeln!(text, "[groups.\"{name}\"]\npids.max = {}\ncpu.weight = 200", number + 10);
        }
        desk.write("l.toml", &text);
        desk.ends("apply {d}/l.toml {s}", 0);
        desk.ends("create {g}-rt -c memory", 0);
        let count = |(line, word, _): &(&str, &'static str, f64)| {
            let program = desk.scene.program();
            let own = words(&desk.scene.fill(&line.replace("{p}", &program)));
            let state = format!("{}={}", apply::STATE_VARIABLE, desk.path("state").display());
            let words = ["/usr/bin/env".to_owned(), state, program].into_iter().chain(own).collect();
            let (calls, code) = tracer::count(words, word, &desk.path("out"));
            match code {
                Some(0) => Ok(calls),
                other => Err(format!("{line}: {other:?}")),
            }
        };
        counts.push(BOUNDS.iter().map(count).collect::<Result<Vec<usize>, String>>()?);
    }
    let mut wrong = Vec::new();
    for ((line, _, bound), (few, many)) in BOUNDS.iter().zip(counts[0].iter().zip(&counts[1])) {
        let each = (*many as f64 - *few as f64) / (SIZES[1] - SIZES[0]) as f64;
        eprintln!(
            "  {line}: {few} calls with {} groups, {many} with {}: {each:.1} a group",
            SIZES[0], SIZES[1]
        );
        let more = if world.has(Need::Systemd) && *bound > 0.0 { BELOW_UNIT } else { 0.0 };
        let bound = bound + more;
        if each > bound + NOISE {
            wrong.push(format!("{line}: {each:.1} system calls for each group, and may make {bound}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
