//! Study S4's measurement: threads that want to run at given instants, and how late they are, as a process of its own.
//! What keeps them from running in time is the question, so what the process can do against it, it does: a real-time
//! policy, locked memory, no deep sleep of the CPU. It says which of these it had.

mod driver;
mod realtime;
mod report;
mod thread;

use std::{ffi::OsString, fs::File, num::NonZeroU64, sync::Arc, time::Duration};

use experiment::file;
use rustix::{
    mm::{MlockAllFlags, mlockall},
    thread::{CpuSet as Mask, sched_getaffinity},
};
use units::CpuSet;

pub use driver::Cyclic;
pub use report::CyclicReport;

use self::{realtime::Budget, thread::Cycles};
use super::stop_request::{Clock, print_report, until_stopped};
use crate::{Error, options::Options, start::die_with};

/// What it is called.
const NAME: &str = "cyclic latency measurement";

/// The measurement's whole process. Its options are those of [`file::Cyclic`], with its defaults; and `[--cpus LIST|any]` (each thread stays on one of them, in turns, as cyclictest has it; without, of
/// those that the process may run on; `any`: they go where the scheduler puts them) `[--cycles N]` (how many each thread
/// has room for from the beginning), and how it is ended: `[--parent PID]` `[--time-ms T [--warm-up-ms W]]`. Writes
/// `ready`, counts of cycles, and its report as one line of JSON.
///
/// # Errors
/// [`Error::Option`], [`Error::System`]. That it may not be real-time is no error, but reported in the report.
pub fn main_cyclic(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let clock = Clock::of(&mut options)?;
    let usual = file::Cyclic::default();
    let interval = Duration::from_micros(options.number(
        "interval-us",
        10..=1_000_000,
        Some(usual.interval_us.into()),
    )?);
    let priority = options.number("priority", 0..=99, Some(usual.priority.into()))?;
    let threads = options.number("threads", 1..=1024, Some(usual.threads.into()))?;
    let room = options.number("cycles", 1..=100_000_000, Some(1 << 20))?;
    let cpus: CpuSet = match options.text("cpus")? {
        Some(any) if any == "any" => CpuSet::new(),
        Some(list) => list.parse().map_err(|error: units::ListError| Error::Option {
            option: "--cpus".to_owned(),
            reason: error.to_string(),
        })?,
        // a thread that moves pays for it when it wakes, which is not what is measured
        None => allowed(),
    };
    options.end()?;
    die_with(clock.parent, c"rf-cyclic")?;

    let priority = u32::try_from(priority).unwrap_or(0);
    let memory_locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let awake: Option<File> = realtime::keep_cpus_awake(); // until the file is closed
    let budget = if priority > 0 { Budget::of_this_process() } else { Budget::default() };
    let cycles = Arc::new(Cycles::new(interval, priority));
    let cpus: Vec<usize> = cpus.iter().take(usize::try_from(threads).unwrap_or(usize::MAX)).collect();
    let cpu = |number: u64| cpus.get(usize::try_from(number).ok()? % cpus.len().max(1)).copied();
    let all: Result<Vec<_>, Error> =
        (0..threads).map(|number| Cycles::start(&cycles, cpu(number), room)).collect();
    // it ends those that were started, too
    let all = all.inspect_err(|_| cycles.stop())?;
    let requested = until_stopped(clock, || cycles.done());
    cycles.stop();
    let ended = all.into_iter().map(thread::Running::join).collect::<Result<Vec<_>, Error>>()?;
    let cpus_kept_awake = awake.is_some(); // up to here
    drop(awake);
    let Some(requested) = requested? else { return Ok(()) };
    let circumstances = report::Circumstances {
        interval,
        wanted: priority,
        memory_locked: memory_locked.map_err(std::io::Error::from),
        cpus_kept_awake,
        budget,
        cpus,
    };
    print_report(NAME, &report::of(&ended, requested, &circumstances))
}

/// Where this process may run; none if the kernel does not say.
fn allowed() -> CpuSet {
    let mask = sched_getaffinity(None);
    mask.map(|mask| (0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect()).unwrap_or_default()
}

/// The least that a timer may be late by itself, in nanoseconds; a task of SCHED_OTHER has 50,000 otherwise.
const TIMER_SLACK: Option<NonZeroU64> = NonZeroU64::new(1);
