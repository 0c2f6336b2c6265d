//! Times and page faults of runs: how one is measured, and what is printed of many. Decides nothing.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};

/// The median of many times, and the middle half of them.
pub struct Times {
    pub median: Duration,
    quarter: Duration,
    three_quarters: Duration,
}

impl Times {
    /// Of at least one time.
    pub fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        let at = |part: usize| times[times.len() * part / 4];
        Times { quarter: at(1), median: at(2), three_quarters: at(3) }
    }

    /// In microseconds.
    pub fn shown(&self) -> String {
        let [low, middle, high] =
            [self.quarter, self.median, self.three_quarters].map(|time| time.as_micros());
        format!("{middle} ({low}-{high})")
    }
}

/// The median of many numbers, and the middle half of them.
pub struct Numbers {
    pub median: f64,
    quarter: f64,
    three_quarters: f64,
}

impl Numbers {
    /// Of at least one number.
    pub fn of(mut numbers: Vec<f64>) -> Numbers {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| numbers[numbers.len() * part / 4];
        Numbers { quarter: at(1), median: at(2), three_quarters: at(3) }
    }

    pub fn shown(&self, decimals: usize) -> String {
        let [low, middle, high] =
            [self.quarter, self.median, self.three_quarters].map(|number| format!("{number:.decimals$}"));
        format!("{middle} ({low}-{high})")
    }
}

/// What one run of a command took.
pub struct Run {
    pub time: Duration,
    /// Page faults without I/O of the command and of what it started; they can be counted without noise.
    pub faults: i64,
}

/// Runs a command to its end.
///
/// # Errors
/// It could not be started, or failed; the benchmark was interrupted.
pub fn run(words: &[String]) -> Result<Run, String> {
    crate::interrupt::check()?;
    let [program, arguments @ ..] = words else { return Err("no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let before = faults()?;
    let started = Instant::now();
    let status = command.status().map_err(|error| format!("{program}: {error}"))?;
    let time = started.elapsed();
    let faults = faults()? - before;
    if status.success() {
        Ok(Run { time, faults })
    } else {
        Err(format!("{} failed: {status}", words.join(" ")))
    }
}

/// The time of one run of a command.
///
/// # Errors
/// As [`run`].
pub fn timed(words: &[String]) -> Result<Duration, String> {
    run(words).map(|run| run.time)
}

/// Of all children that have ended.
fn faults() -> Result<i64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| format!("getrusage: {error}"))?;
    Ok(usage.minor_page_faults())
}
