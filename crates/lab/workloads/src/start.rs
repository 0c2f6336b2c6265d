//! What every workload's process has: it dies with the process that started it, reads the clock that all of them share,
//! and speaks in lines.

use std::{
    ffi::CStr,
    io::{self, Write},
    time::Duration,
};

use rustix::{
    process::{Pid, Signal, getppid, set_parent_process_death_signal},
    thread::{ClockId, clock_nanosleep_absolute},
    time::{Timespec, clock_gettime},
};

use crate::Error;

/// What a workload writes when it works.
pub(crate) const READY: &str = "ready";

/// An instant of CLOCK_MONOTONIC, in nanoseconds: the same for all processes of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(pub u64);

impl Instant {
    pub fn now() -> Instant {
        Instant(nanoseconds(clock_gettime(ClockId::Monotonic)))
    }

    pub fn after(self, time: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Nanoseconds from `earlier` to here; 0 if it is not earlier.
    pub fn since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub fn sleep(self) {
        let until =
            Timespec { tv_sec: (self.0 / 1_000_000_000) as i64, tv_nsec: (self.0 % 1_000_000_000) as i64 };
        while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR) {}
    }
}

/// A clock's reading in nanoseconds.
pub(crate) fn nanoseconds(time: Timespec) -> u64 {
    // no clock that is read here runs below zero
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// CPU time of this process since its start, in nanoseconds.
pub fn process_cpu_time() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of this thread so far, in nanoseconds.
pub(crate) fn thread_cpu_time() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Ends this process when the thread that started it ends. `parent` is 0 for a workload started by hand.
///
/// # Errors
/// The parent is gone already.
pub(crate) fn die_with(parent: u64, name: &CStr) -> Result<(), Error> {
    let system = |source: rustix::io::Errno| Error::System {
        what: "cannot prepare the workload",
        source: source.into(),
    };
    // re-executed through /proc/self/exe it would be called `exe`
    rustix::thread::set_name(name).map_err(system)?;
    if parent == 0 {
        return Ok(());
    }
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(system)?;
    // it may have died before the line above
    let now = getppid().map(Pid::as_raw_nonzero).map_or(0, |pid| u64::from(pid.get().unsigned_abs()));
    if now == parent { Ok(()) } else { Err(Error::Interrupted) }
}

/// Writes one line to standard output.
///
/// # Errors
/// It can't be written.
pub(crate) fn report(line: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|source| Error::System { what: "cannot write the report", source })
}
