//! The built-in CPU workload: counted units of integer mixing for a given time. It measures itself: units, wall
//! time, CPU time and the CPUs it ran on. It never sleeps or yields: what it does not get, the scheduler kept.

use std::{ffi::OsString, hint::black_box, thread, time::Duration};

use rustix::{
    thread::sched_getcpu,
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::{
    Error,
    options::Options,
    start::{Instant, die_with, nanoseconds, process_cpu_time, report, wait_for_start},
};

/// Rounds of mixing in one unit: some 10 us of an optimised build, short against a scheduler's slice (3 ms) and
/// long against the two clock reads around it.
const ROUNDS: u32 = 4096;

/// What a CPU worker did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReport {
    /// Units of work done. Only comparable between workers of one build.
    pub units: u64,
    /// The time that was measured, the mean of the threads'.
    pub wall_ns: u64,
    /// CPU time of all threads in that time (CLOCK_THREAD_CPUTIME_ID).
    pub cpu_ns: u64,
    /// CPU time of the process since its start, with its warm-up: what the machine spent on it.
    pub process_cpu_ns: u64,
    /// How many threads worked.
    pub threads: u64,
    /// The CPUs it was seen on, asked after every unit.
    pub cpus: CpuSet,
    /// Units done in each interval of `interval_ms`; the last may be cut short. Empty if not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units_per_interval: Vec<u64>,
}

impl CpuReport {
    /// CPUs used on average: 0.5 is half of one.
    pub fn cpus_used(&self) -> f64 {
        ratio(self.cpu_ns, self.wall_ns)
    }

    /// Units per second of CPU time: how fast the CPUs were.
    pub fn units_per_cpu_second(&self) -> f64 {
        ratio(self.units, self.cpu_ns) * 1e9
    }

    /// Units per second of wall time.
    pub fn units_per_second(&self) -> f64 {
        ratio(self.units, self.wall_ns) * 1e9
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// When a worker works, and how it counts.
#[derive(Clone, Copy)]
struct Plan {
    /// Work before the measurement. Under a quota the first period brings what was not used before, as a surplus.
    warm_up: Duration,
    time: Duration,
    threads: u64,
    interval: Duration,
}

/// What one thread did.
#[derive(Default)]
struct Spun {
    units: u64,
    wall_ns: u64,
    cpu_ns: u64,
    cpus: CpuSet,
    intervals: Vec<u64>,
}

/// A CPU worker's whole process: `--seconds S [--warm-up-ms W] [--threads N] [--interval-ms I] [--parent PID]`,
/// the words after its hidden subcommand. Writes `ready`, waits for its start on standard input, writes its report as one line
/// of JSON.
///
/// # Errors
/// [`Error::Option`], [`Error::System`].
pub fn main_cpu(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let time = options.seconds("seconds")?;
    let warm_up = Duration::from_millis(options.number("warm-up-ms", 0..=60_000, Some(0))?);
    let threads = options.number("threads", 1..=8192, Some(1))?;
    let interval = Duration::from_millis(options.number("interval-ms", 0..=60_000, Some(0))?);
    let parent = options.number("parent", 0..=u64::from(u32::MAX), Some(0))?;
    options.end()?;
    die_with(parent, c"rf-cpu")?;
    let start = wait_for_start()?;
    let done = work(start, Plan { warm_up, time, threads, interval })?;
    let line = serde_json::to_string(&done);
    report(&line.map_err(|source| Error::Report { name: "CPU worker".to_owned(), source })?)
}

fn work(start: Instant, plan: Plan) -> Result<CpuReport, Error> {
    let all = thread::scope(|scope| {
        let spawn = |seed| {
            let builder = thread::Builder::new().stack_size(64 << 10);
            builder.spawn_scoped(scope, move || spin(seed, start, plan))
        };
        let others: Result<Vec<_>, _> = (1..plan.threads).map(spawn).collect();
        let others = others.map_err(|source| Error::System { what: "cannot start a thread", source })?;
        let mut all = vec![spin(0, start, plan)];
        all.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        Ok::<_, Error>(all)
    })?;
    let process_cpu_ns = process_cpu_time();
    let threads = all.len() as u64; // at least the one above
    let Spun { units, wall_ns, cpu_ns, cpus, intervals } = all.into_iter().fold(Spun::default(), Spun::add);
    let (wall_ns, units_per_interval) = (wall_ns / threads, intervals);
    Ok(CpuReport { units, wall_ns, cpu_ns, process_cpu_ns, threads, cpus, units_per_interval })
}

impl Spun {
    fn add(mut self, other: Spun) -> Spun {
        self.units += other.units;
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.cpus = self.cpus.union(&other.cpus);
        add_intervals(&mut self.intervals, &other.intervals);
        self
    }
}

/// Adds counts per interval; the longer list gives the length.
pub(crate) fn add_intervals(sum: &mut Vec<u64>, other: &[u64]) {
    sum.resize(sum.len().max(other.len()), 0);
    sum.iter_mut().zip(other).for_each(|(sum, count)| *sum += count);
}

/// Counts an event in the interval of an instant; nothing if intervals were not asked for.
pub(crate) fn count_in_interval(intervals: &mut Vec<u64>, elapsed_ns: u64, interval: Duration) {
    let length = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    let Some(place) = elapsed_ns.checked_div(length).and_then(|place| usize::try_from(place).ok()) else {
        return;
    };
    if intervals.len() <= place {
        intervals.resize(place + 1, 0); // a throttled worker skips some: they hold 0
    }
    intervals[place] += 1;
}

/// Works until the time is over. A throttled thread notices the end of its warm-up, and of its time, when it
/// next runs, at the beginning of a period both: what it measures are whole periods.
fn spin(seed: u64, start: Instant, plan: Plan) -> Spun {
    let mut spun = Spun::default();
    let (mut state, mut last_cpu) = (seed, usize::MAX);
    let mut begin = start;
    while begin < start.after(plan.warm_up) {
        state = black_box(mix(black_box(state)));
        begin = Instant::now();
    }
    let (end, cpu_before) = (start.after(plan.warm_up).after(plan.time), cpu_time());
    loop {
        state = black_box(mix(black_box(state)));
        let now = Instant::now();
        spun.units += 1;
        count_in_interval(&mut spun.intervals, now.since(begin), plan.interval);
        let cpu = sched_getcpu();
        if cpu != last_cpu {
            spun.cpus.insert(cpu);
            last_cpu = cpu;
        }
        if now >= end {
            (spun.wall_ns, spun.cpu_ns) = (now.since(begin), cpu_time().saturating_sub(cpu_before));
            return spun;
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

/// CPU time of this thread so far, in nanoseconds.
fn cpu_time() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_counts_its_work_and_names_the_cpus_it_ran_on() {
        let ms = Duration::from_millis;
        let plan = Plan { warm_up: Duration::ZERO, time: ms(60), threads: 2, interval: ms(20) };
        let done = work(Instant::now(), plan).unwrap();
        assert!(done.wall_ns >= 60_000_000, "{done:?}");
        assert!(done.cpu_ns > 0 && done.units > 0 && !done.cpus.is_empty(), "{done:?}");
        assert!(done.cpu_ns <= 2 * done.wall_ns && done.threads == 2, "{done:?}");
        assert_eq!(done.units_per_interval.iter().sum::<u64>(), done.units);
        assert!(done.units_per_interval.len() >= 3, "{done:?}");
    }

    #[test]
    fn what_is_done_while_warming_up_does_not_count() {
        let ms = Duration::from_millis;
        let plan = Plan { warm_up: ms(60), time: ms(1), threads: 1, interval: Duration::ZERO };
        let begun = std::time::Instant::now();
        let done = work(Instant::now(), plan).unwrap();
        let whole = begun.elapsed();
        assert!(whole >= ms(61), "{whole:?}");
        assert!(u128::from(done.wall_ns) + 59_000_000 <= whole.as_nanos(), "{done:?} of {whole:?}");
        assert!(done.process_cpu_ns > done.cpu_ns, "the machine spent the warm-up, too: {done:?}");
    }

    #[test]
    fn intervals_without_an_event_hold_zero() {
        let mut intervals = Vec::new();
        count_in_interval(&mut intervals, 5, Duration::from_nanos(10));
        count_in_interval(&mut intervals, 39, Duration::from_nanos(10));
        assert_eq!(intervals, [1, 0, 0, 1]);
        count_in_interval(&mut intervals, 39, Duration::ZERO);
        assert_eq!(intervals, [1, 0, 0, 1]);
        add_intervals(&mut intervals, &[1, 1, 1, 1, 1]);
        assert_eq!(intervals, [2, 1, 1, 2, 1]);
    }

    #[test]
    fn shares_and_rates_follow_from_the_raw_counts() {
        let report = CpuReport {
            units: 300,
            wall_ns: 2_000_000_000,
            cpu_ns: 500_000_000,
            process_cpu_ns: 600_000_000,
            threads: 1,
            cpus: CpuSet::range(0, 1),
            units_per_interval: Vec::new(),
        };
        assert_eq!(report.cpus_used(), 0.25);
        assert_eq!(report.units_per_second(), 150.0);
        let line = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<CpuReport>(&line).unwrap(), report);
    }
}
