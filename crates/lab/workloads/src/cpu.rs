//! CPU work, as a process of its own: threads that count units of integer mixing. They never sleep or yield: what they do
//! not get, the scheduler left to others.

use std::{
    ffi::OsString,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use experiment::results::Series;
use serde::{Deserialize, Serialize};

use super::{
    built_in::{Workload, by, given, readings},
    stop_request::{Clock, StopRequest, grown, print_report, series, until_stopped},
};
use crate::{
    Error, Outcome, Site, Timing,
    options::Options,
    start::{Instant, die_with, thread_cpu_time},
};

/// What it is called.
const NAME: &str = "cpu workload";

/// Rounds of mixing in one unit: some 10 us of an optimised build, short against a scheduler's slice (3 ms) and
/// long against the clock read behind it.
const ROUNDS: u32 = 4096;

/// What was done within a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CpuReport {
    /// The span's length in seconds.
    pub seconds: f64,
    /// Units of work. Only comparable between processes of one build.
    pub units: f64,
    /// CPU time of the threads, in seconds.
    pub cpu_seconds: f64,
    /// Seconds since the span's beginning, and units per second up to then.
    pub series: Vec<(f64, f64)>,
}

/// The workload's whole process. Options: `[--threads N]` (1), and how it is ended: `[--parent PID]`
/// `[--time-ms T [--warm-up-ms W]]`. Writes `ready`, counts of units, and its report as one line of JSON.
///
/// # Errors
/// [`Error::Option`], [`Error::System`].
pub fn main_cpu(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let clock = Clock::of(&mut options)?;
    let threads = options.number("threads", 1..=8192, Some(1))?;
    options.end()?;
    die_with(clock.parent, c"rf-cpu")?;
    let mut crew = Crew::start(threads)?;
    let requested = until_stopped(clock, || crew.look())?;
    crew.look();
    crew.stop.store(true, Ordering::Relaxed); // the threads end with the process
    requested.map_or(Ok(()), |requested| print_report(NAME, &of(&crew.looks, requested)))
}

/// Counters of one thread, on a cache line of their own.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    units: AtomicU64,
    cpu_ns: AtomicU64,
}

/// Counters of all threads at an instant.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    units: u64,
    cpu_ns: u64,
}

/// The threads, and what was seen of them.
struct Crew {
    counters: Vec<Arc<Counters>>,
    stop: Arc<AtomicBool>,
    looks: Vec<Look>,
}

impl Crew {
    fn start(threads: u64) -> Result<Crew, Error> {
        let mut crew = Crew { counters: Vec::new(), stop: Arc::default(), looks: Vec::new() };
        for seed in 0..threads {
            let (counters, stop) = (Arc::<Counters>::default(), Arc::clone(&crew.stop));
            crew.counters.push(Arc::clone(&counters));
            thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(move || counters.count(seed, &stop))
                .map_err(|source| Error::System { what: "cannot start a thread", source })?;
        }
        Ok(crew)
    }

    fn look(&mut self) -> u64 {
        let sum = |of: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|one| of(one).load(Ordering::Relaxed)).sum()
        };
        let units = sum(|one| &one.units);
        self.looks.push(Look { at: Instant::now(), units, cpu_ns: sum(|one| &one.cpu_ns) });
        units
    }
}

impl Counters {
    fn count(&self, seed: u64, stop: &AtomicBool) {
        let mut state = seed;
        while !stop.load(Ordering::Relaxed) {
            state = black_box(mix(black_box(state)));
            self.units.fetch_add(1, Ordering::Relaxed);
            self.cpu_ns.store(thread_cpu_time(), Ordering::Relaxed);
        }
    }
}

/// One unit of work: each round needs the one before (the finaliser of MurmurHash3, 64 bits).
fn mix(mut state: u64) -> u64 {
    for _ in 0..ROUNDS {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state = (state ^ (state >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        state ^= state >> 33;
    }
    state
}

fn of(looks: &[Look], requested: StopRequest) -> CpuReport {
    let between = |number: fn(&Look) -> u64, from, to| {
        grown(looks, |look| look.at, |look| number(look) as f64, from, to)
    };
    CpuReport {
        seconds: requested.seconds(),
        units: between(|look| look.units, requested.from, requested.to),
        cpu_seconds: between(|look| look.cpu_ns, requested.from, requested.to) / 1e9,
        series: series(requested, |from, to| between(|look| look.units, from, to)),
    }
}

/// CPU work of this many threads.
pub struct Cpu {
    /// At least 1.
    pub threads: u64,
}

impl Workload for Cpu {
    type Report = CpuReport;
    const SUBCOMMAND: &'static str = "cpu";

    fn name(&self) -> &'static str {
        NAME
    }

    fn words(&mut self, _: &Site<'_>, _: Timing) -> Result<Vec<OsString>, Error> {
        Ok(given([("--threads", Some(self.threads.to_string()))]))
    }

    fn outcome(&self, report: CpuReport) -> Outcome {
        let CpuReport { seconds, units, cpu_seconds, series } = report;
        let readings = readings([
            ("rate", by(units, seconds)),
            ("cpus", by(cpu_seconds, seconds)),
            ("rate-per-cpu", by(units, cpu_seconds)),
        ]);
        let series = Series { name: "rate".to_owned(), unit: "1/s".to_owned(), points: series };
        Outcome { readings, series: vec![series], ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_in_a_span_is_read_from_the_counters_around_it() {
        let look = |at, units, cpu_ns| Look { at: Instant(at), units, cpu_ns };
        let second = 1_000_000_000;
        let looks = [look(0, 0, 0), look(second, 100, second), look(3 * second, 500, 2 * second)];
        let requested = StopRequest { from: Instant(second / 2), to: Instant(2 * second) };
        let found = of(&looks, requested);
        assert!((found.units - 250.0).abs() < 1e-6, "{found:?}"); // 50 of the first hundred, 200 of the 400
        assert!((found.cpu_seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.series.len(), 7); // of 0.2 s each, the last tenth is left out
        assert!((found.series[0].1 - 100.0).abs() < 1e-6 && (found.series[6].1 - 200.0).abs() < 1e-6);
        assert_eq!(of(&[], requested).units, 0.0);
    }

    #[test]
    fn rates_follow_from_the_raw_counts() {
        let report = CpuReport { seconds: 2.0, units: 300.0, cpu_seconds: 0.5, series: Vec::new() };
        let readings = Cpu { threads: 1 }.outcome(report).readings;
        let expected = [("cpus", 0.25), ("rate", 150.0), ("rate-per-cpu", 600.0)];
        assert_eq!(readings, expected.map(|(name, number)| (name.to_owned(), number)).into());
    }
}
