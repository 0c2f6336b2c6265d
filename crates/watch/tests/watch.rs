//! The field table against the settings table, sampling on the in-memory kernel and on this machine's own hierarchies,
//! metrics, and the log. The binary is also the process that the tests watch.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test's failure is a panic")]

#[path = "watch/allocations.rs"]
mod allocations;
#[path = "watch/fake.rs"]
mod fake;
#[path = "watch/load.rs"]
mod load;
#[path = "watch/logs.rs"]
mod logs;
#[path = "watch/metrics.rs"]
mod metrics;
#[path = "watch/real.rs"]
mod real;
#[path = "watch/real_v2.rs"]
mod real_v2;
#[path = "watch/table.rs"]
mod table;
#[path = "watch/views.rs"]
mod views;
#[path = "watch/why/mod.rs"]
mod why;
#[path = "watch/world.rs"]
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == load::WORD) {
        return load::run(&words[1..]);
    }
    let mut arguments = Arguments::from_args();
    // finished children's CPU time and allocations are counted for the whole process
    arguments.test_threads = Some(1);
    let pure =
        [table::trials(), fake::trials(), logs::trials(), metrics::trials(), views::trials()].concat_all();
    let trials = [pure, real::trials(), real_v2::trials(), why::trials()].concat_all();
    libtest_mimic::run(&arguments, trials).exit_code()
}

trait Concat {
    fn concat_all(self) -> Vec<Trial>;
}

impl<const N: usize> Concat for [Vec<Trial>; N] {
    fn concat_all(self) -> Vec<Trial> {
        self.into_iter().flatten().collect()
    }
}

/// A case; it fails by a panic.
fn trial(name: &str, case: fn()) -> Trial {
    Trial::test(name, move || {
        case();
        Ok(())
    })
}
