//! The conformance suite: one list of cases, run on the in-memory kernel (v1, v2 and both) and on the kernel of
//! the machine that it runs on, so that what the fake claims is what real kernels do. Beside it, the device rules
//! on the real kernel. Needs no other file: the binary can be copied into a virtual machine.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without harness"
)]

mod conformance;
mod devices;
mod leases;
mod unit;

use std::process::ExitCode;

use fake::suite;
use libtest_mimic::{Arguments, Completion, Trial};

use conformance::{World, WorldKind};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some(conformance::CHILD) => return conformance::child(),
        Some(devices::PROBE) => {
            devices::probe(words);
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // the cases share the machine's budgets and the root group's files
    arguments.test_threads = Some(1);
    let trials =
        WorldKind::ALL.into_iter().flat_map(trials).chain(leases::trials()).chain(unit::trials()).collect();
    suite::run(&arguments, trials).exit_code()
}

fn trials(kind: WorldKind) -> Vec<Trial> {
    match World::new(kind) {
        Ok(world) => {
            let cases =
                conformance::cases(&world).into_iter().filter_map(|(case, fits)| case.trial(kind, fits));
            let devices = if kind == WorldKind::Real { devices::trials() } else { Vec::new() };
            cases.chain(devices).collect()
        }
        Err(reason) => {
            let ignored = move || Ok(Completion::ignored_with(reason));
            vec![suite::ignorable(format!("{}::all", kind.name()), ignored)]
        }
    }
}
