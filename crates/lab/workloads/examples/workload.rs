//! A built-in workload by hand, as its hidden subcommand runs it: `workload cpu|read|logical-io|cyclic|load OPTIONS`. It prints
//! `ready` and its report as a line of JSON. For looking at one workload alone; experiments start them otherwise.
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::process::ExitCode;

use workloads::{main_cpu, main_cyclic, main_load, main_logical_io, main_read};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let done = match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("cpu") => main_cpu(words),
        Some("read") => main_read(words),
        Some("logical-io") => main_logical_io(words),
        Some("cyclic") => main_cyclic(words),
        Some("load") => main_load(words),
        _ => {
            eprintln!("error: no such workload\nhint: cpu, read, logical-io, cyclic or load");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.hint().inspect(|hint| eprintln!("hint: {hint}"));
            ExitCode::FAILURE
        }
    }
}
