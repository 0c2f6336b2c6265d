//! Both sources of events on the kernel of the machine that this runs on: real processes, private copies of
//! executables, no others marked. Needs root in the first PID namespace, and no other file: the binary can be copied
//! into a virtual machine. It is also the gate's process and the watchdog's. `--ignored` prints figures.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without harness"
)]

mod connector;
mod figures;
mod gate;
mod processes;
mod watchdog;

use std::process::ExitCode;

use fake::suite;
use libtest_mimic::{Arguments, Completion, Trial};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some(processes::GATE) => return processes::gate(words),
        Some(processes::SUPERVISOR) => return processes::supervisor(words),
        Some(processes::CHILD) => return processes::child(words),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // the cases stop processes, and count the machine's events
    arguments.test_threads = Some(1);
    let trials = if rustix::process::geteuid().is_root() {
        // figures decide nothing, and are made only when they are requested
        let figures = if arguments.ignored { figures::trials() } else { Vec::new() };
        [connector::trials(), gate::trials(), watchdog::trials(), figures].concat_trials()
    } else {
        let ignored = || Ok(Completion::ignored_with("needs root"));
        vec![suite::ignorable("events::all", ignored)]
    };
    suite::run(&arguments, trials).exit_code()
}

trait Concat {
    fn concat_trials(self) -> Vec<Trial>;
}

impl<const N: usize> Concat for [Vec<Trial>; N] {
    fn concat_trials(self) -> Vec<Trial> {
        self.into_iter().flatten().collect()
    }
}

/// A case; it fails by a panic.
fn trial(name: &str, case: fn()) -> Trial {
    suite::trial(name, None, case)
}
