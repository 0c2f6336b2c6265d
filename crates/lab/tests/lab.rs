//! Workloads, loop devices and the demonstration on the real kernel. The tests start this program again: as a
//! workload, as the holder of a loop device, as a demonstration.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "run as one of these it is a program")]

#[path = "lab/division.rs"]
mod division;
#[path = "lab/real.rs"]
mod real;

use std::{
    ffi::OsString,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use lab::{LoopDevice, Program, demo};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let done = match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("worker") => worker(words),
        Some("hold-loop-device") => hold_loop_device(words),
        Some("demo") => run_demo(words),
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
        Some("cpu") => lab::main_cpu(words)?,
        Some("read") => lab::main_read(words)?,
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

/// The demonstration, with Ctrl-C as the command line will have it: `demo DIRECTORY [--json] [--short]`.
fn run_demo(words: impl Iterator<Item = OsString>) -> Result<(), Failed> {
    let words: Vec<OsString> = words.collect();
    let directory = words.first().map(PathBuf::from);
    let asked = |word: &str| words.iter().any(|given| given == word);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let short = demo::Lengths {
        repetitions: 1,
        compete_seconds: 0.3,
        quota_seconds: 0.5,
        read_seconds: 0.2,
        limited_seconds: 1.0,
        repeat_until_seconds: 0.0,
    };
    let options = demo::Options {
        program: Program::this("worker"),
        stop: &stop,
        directory,
        lengths: if asked("--short") { short } else { demo::Lengths::default() },
        progress: &mut |what| eprintln!("{what}"),
    };
    let result = demo::run(&mut division::Cgroupfs, topology::Machine::live()?, options)?;
    if asked("--json") {
        println!("{}", serde_json::to_string(&result)?);
    } else {
        print!("{}", demo::text(&result, false));
    }
    if result.failures.is_empty() { Ok(()) } else { Err("some conditions failed".into()) }
}
