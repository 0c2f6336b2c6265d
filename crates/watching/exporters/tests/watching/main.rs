//! The field table against the settings table, sampling on the in-memory kernel and on this machine's own hierarchies,
//! metrics, and the log. The binary is also the process that the tests watch.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test's failure is a panic")]

mod ahead;
mod allocations;
mod fake;
mod load;
mod logs;
mod members;
mod metrics;
mod real;
mod real_v2;
mod table;
mod views;
mod why;
mod world;

use std::{path::Path, process::ExitCode};

use ::fake::suite;
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
    // what asks no kernel ran where this was made: emulated CPUs take minutes for the logs
    let pure = if Path::new("/rf-vm").exists() { Vec::new() } else { pure };
    let real = [members::trials(), real::trials(), real_v2::trials(), why::trials()].concat_all();
    let trials = [pure, real].concat_all();
    let _ahead = (!arguments.list).then(ahead::Ahead::new);
    suite::run(&arguments, trials).exit_code()
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
    suite::trial(name, None, case)
}
