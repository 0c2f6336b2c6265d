//! `make demo`: divides this machine and shows what that did. Two groups compete for CPUs without and with a
//! CPU of their own, one works under quotas, one reads a block device without and with a limit. Conditions
//! alternate, so that a disturbance meets all of them; medians are told. A figure that is off never fails the
//! demonstration, a setting that can't be made does. Whatever it made is gone when it returns, and what a killed
//! one left behind goes at the next start.

mod bench; // doing it
mod condition; // what is asked
mod text;
mod verdict; // what was measured against what was asked

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde::Serialize;
use topology::Machine;

pub use bench::{Applied, GroupRun, Run};
pub use condition::{Condition, Group, Kind, Site};
pub use text::text;
pub use verdict::{Row, Verdict};

use crate::{Division, Error, LoopDevice, Program};
use bench::{Bench, Machinery};

/// Data to read from: small enough to be written in a moment, and no cache helps as reads are direct.
const DEVICE_SIZE: u64 = 64 << 20;

/// Where the device's data goes if no directory is named: /tmp may be memory.
const DIRECTORIES: [&str; 2] = ["/var/tmp", "/tmp"];

/// How long each condition is measured, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lengths {
    /// Runs of every condition.
    pub repetitions: u32,
    /// Two groups of CPU workers, in seconds.
    pub compete_seconds: f64,
    /// CPU workers under a quota: a multiple of the kernel's period, 0.1 s, and long against it.
    pub quota_seconds: f64,
    /// Reads without a limit, in seconds.
    pub read_seconds: f64,
    /// Reads with a limit of few a second: long enough to count them.
    pub limited_seconds: f64,
    /// Disturbed runs are repeated until this much time has passed since the start, in seconds.
    pub repeat_until_seconds: f64,
}

impl Default for Lengths {
    /// Some 40 s on a quiet machine, 70 s on a busy one.
    fn default() -> Lengths {
        Lengths {
            repetitions: 3,
            compete_seconds: 1.5,
            quota_seconds: 2.0,
            read_seconds: 1.0,
            limited_seconds: 5.0,
            repeat_until_seconds: 70.0,
        }
    }
}

/// What the demonstration needs from the program around it.
pub struct Options<'a> {
    /// How workloads are started.
    pub program: Program,
    /// Set by the caller's signal handler; looked at many times a second.
    pub stop: &'a AtomicBool,
    /// Where the block device's data goes, 64 MiB; `/var/tmp` if not given.
    pub directory: Option<PathBuf>,
    /// How long and how often.
    pub lengths: Lengths,
    /// Told in a few words what happens next.
    pub progress: &'a mut dyn FnMut(&str),
}

/// A condition that could not be made or measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// Which condition, or which part of the demonstration.
    pub of: String,
    /// The error.
    pub error: String,
    /// What mends it.
    pub hint: Option<String>,
}

/// Everything that was asked, done and measured.
#[derive(Debug, Serialize)]
pub struct DemoResult {
    /// The machine.
    pub machine: Machine,
    /// Where each controller was found.
    pub controllers: Vec<String>,
    /// How long and how often.
    pub lengths: Lengths,
    /// The conditions, in the order in which they alternated.
    pub conditions: Vec<Condition>,
    /// Every single run.
    pub runs: Vec<Run>,
    /// One row for each condition.
    pub rows: Vec<Row>,
    /// The settings used, each once.
    pub settings: Vec<Applied>,
    /// What could not be done: the caller ends with an error if there is any.
    pub failures: Vec<Failure>,
    /// Groups of dead demonstrations that were removed at the start.
    pub removed: Vec<String>,
    /// How long it took.
    pub seconds: f64,
}

/// Runs the demonstration.
///
/// # Errors
/// [`Error::Interrupted`] once `stop` is set; [`Error::NoCpu`]; [`Error::Division`] if groups can't even be
/// listed, or not be removed at the end. A condition that fails is in [`DemoResult::failures`], the others go on.
pub fn run(
    division: &mut dyn Division,
    machine: Machine,
    mut options: Options<'_>,
) -> Result<DemoResult, Error> {
    let begun = Instant::now();
    let controllers = division.describe();
    let removed = remove_leftovers(division)?;
    let mut failures = Vec::new();
    (options.progress)("writing 64 MB of data for a loop device");
    let device = match device(&options) {
        Ok(device) => Some(device),
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => {
            failures.push(Failure::of("loop device", &error));
            None
        }
    };
    let site = Site::of(&machine, device.as_ref().map(LoopDevice::path))?;
    let conditions = condition::conditions(&site, &options.lengths);
    let mut bench = Machinery::new(division, options.program.clone(), options.stop);
    let Record { runs, failures: failed } = alternate(&mut bench, &conditions, &mut options, begun)?;
    failures.extend(failed);
    if let Some(Err(error)) = device.map(LoopDevice::detach) {
        failures.push(Failure::of("loop device", &error));
    }
    let rows = verdict::rows(&conditions, &runs, &mut failures);
    let settings = each_once(&runs);
    let seconds = begun.elapsed().as_secs_f64();
    let lengths = options.lengths;
    Ok(DemoResult {
        machine,
        controllers,
        lengths,
        conditions,
        runs,
        rows,
        settings,
        failures,
        removed,
        seconds,
    })
}

impl Failure {
    fn of(what: &str, error: &Error) -> Failure {
        Failure { of: what.to_owned(), error: error.to_string(), hint: error.hint() }
    }
}

fn device(options: &Options<'_>) -> Result<LoopDevice, Error> {
    let known = || DIRECTORIES.iter().map(Path::new).find(|path| path.is_dir()).map(Path::to_owned);
    let directory = options.directory.clone().or_else(known).unwrap_or_else(std::env::temp_dir);
    LoopDevice::attach(&directory, DEVICE_SIZE, options.stop)
}

/// What was run so far.
#[derive(Default)]
struct Record {
    runs: Vec<Run>,
    failures: Vec<Failure>,
}

/// A B C, A B C, …: what disturbs the machine for a while meets all conditions. Then those whose runs were
/// disturbed again, as long as there is time. Which runs are repeated never depends on their figures.
fn alternate(
    bench: &mut dyn Bench,
    conditions: &[Condition],
    options: &mut Options<'_>,
    begun: Instant,
) -> Result<Record, Error> {
    let Lengths { repetitions, repeat_until_seconds, .. } = options.lengths;
    let mut record = Record::default();
    for repetition in 1..=repetitions {
        for condition in conditions {
            record.add(bench, condition, repetition, options)?;
        }
    }
    for repetition in repetitions + 1..=2 * repetitions {
        for condition in conditions {
            let fits = begun.elapsed().as_secs_f64() + condition.seconds < repeat_until_seconds;
            if fits && record.quiet(condition) < repetitions {
                record.add(bench, condition, repetition, options)?;
            }
        }
    }
    Ok(record)
}

impl Record {
    /// Runs a condition, unless it failed before.
    fn add(
        &mut self,
        bench: &mut dyn Bench,
        condition: &Condition,
        repetition: u32,
        options: &mut Options<'_>,
    ) -> Result<(), Error> {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let name = condition.name();
        if self.failures.iter().any(|failure| failure.of == name) {
            return Ok(());
        }
        (options.progress)(&format!("run {repetition}: {name}, {} s", condition.seconds));
        match bench.run(condition, repetition) {
            Ok(run) => self.runs.push(run),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => self.failures.push(Failure::of(&name, &error)),
        }
        Ok(())
    }

    fn quiet(&self, condition: &Condition) -> u32 {
        let name = condition.name();
        let runs = self.runs.iter().filter(|run| run.condition == name);
        runs.map(|run| u32::from(!verdict::is_disturbed(condition, run))).sum()
    }
}

fn each_once(runs: &[Run]) -> Vec<Applied> {
    let mut each: Vec<Applied> = Vec::new();
    for applied in runs.iter().flat_map(|run| &run.settings) {
        if !each.contains(applied) {
            each.push(applied.clone());
        }
    }
    each
}

/// Removes the groups of demonstrations that were killed. Their names tell their process; one that lives keeps
/// its groups.
///
/// # Errors
/// [`Error::Division`].
fn remove_leftovers(division: &mut dyn Division) -> Result<Vec<String>, Error> {
    let groups = division.groups()?;
    let own = std::process::id();
    // a group with our own number is of a process that had it before us
    let dead = |name: &String| bench::owner(name).is_some_and(|pid| pid == own || !lives(pid));
    let dead: Vec<String> = groups.into_iter().filter(dead).collect();
    for name in &dead {
        division.remove(name)?;
    }
    Ok(dead)
}

/// Is there such a process, and is it no zombie?
fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests;
