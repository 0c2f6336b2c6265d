//! Workloads, loop devices, drivers and whole experiments on the real kernel. The tests start this program again: as a
//! workload, as the holder of a loop device, as an experiment.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "run as one of these it is a program")]

mod borrowed;
mod conditions;
mod division;
mod drivers;
mod experiments;
mod gates;
mod oltp;
mod real;
mod roles;
mod tools;
mod workloads;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, sync::atomic::AtomicBool, time::Duration};

use lab::LoopDevice;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let done = match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("worker") => worker(words),
        Some("hold-loop-device") => hold_loop_device(words),
        Some("hold-pgbench") => words
            .next()
            .ok_or_else(|| "a directory".into())
            .and_then(|directory| drivers::hold_pgbench(directory.as_ref())),
        Some("run-experiment") => experiments::run_experiment(&words.collect::<Vec<_>>()),
        Some("clean") => experiments::clean(),
        _ => return real::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Failed = Box<dyn std::error::Error>;

fn worker(mut words: impl Iterator<Item = OsString>) -> Result<(), Failed> {
    match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("oltp-server") => ::workloads::oltp::main_oltp_server(words)?,
        Some("oltp-clients") => ::workloads::oltp::main_oltp_clients(words)?,
        Some("cpu") => ::workloads::main_cpu(words)?,
        Some("read") => ::workloads::main_read(words)?,
        Some("logical-io") => ::workloads::main_logical_io(words)?,
        Some("cyclic") => ::workloads::main_cyclic(words)?,
        Some("load") => ::workloads::main_load(words)?,
        Some("enter") => lab::main_enter(words)?,
        _ => return Err("no such workload".into()),
    }
    Ok(())
}

/// Says which device it holds and waits for its end.
fn hold_loop_device(mut words: impl Iterator<Item = OsString>) -> Result<(), Failed> {
    let directory = words.next().map(PathBuf::from).ok_or("a directory")?;
    let device = LoopDevice::attach(&directory, 4 << 20, &AtomicBool::new(false))?;
    println!("{}", device.path().display());
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}
