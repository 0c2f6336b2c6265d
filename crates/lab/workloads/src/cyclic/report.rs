//! What the threads saw within a span: the distribution of how late they were, exact in its figures and binned for its
//! picture, and under which policy they ran. A measurement that was not real-time says so before anything else.

use std::{collections::BTreeMap, io, time::Duration};

use experiment::results::Latency;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{
    realtime::Budget,
    thread::{ThreadReport, missed},
};
use crate::{Error, latency::of_sorted, stop_request::StopRequest};

/// How late threads were that wake periodically.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CyclicReport {
    /// `SCHED_FIFO`, or `SCHED_OTHER with timer slack 1`.
    pub policy: String,
    /// Of SCHED_FIFO; 0: SCHED_OTHER.
    pub priority: u32,
    /// The span's length in seconds.
    pub seconds: f64,
    /// Between two cycles, in seconds.
    pub interval: f64,
    /// Cycles that were run.
    pub cycles: u64,
    /// Cycles that went by because the one before was so late.
    pub missed: u64,
    /// Of all threads together, in seconds; `None` without cycles.
    pub latency: Option<Latency>,
    /// Of each thread.
    pub each: Vec<Option<Latency>>,
    /// The CPUs that threads were bound to, in turns; none: they were not.
    pub cpus: Vec<usize>,
    /// Its memory could not be paged out.
    pub memory_locked: bool,
    /// `/dev/cpu_dma_latency` was set to 0.
    pub cpus_kept_awake: bool,
    /// What a reader must know, the worst first.
    pub warnings: Vec<String>,
}

/// What is known beside the cycles.
pub(super) struct Circumstances {
    pub interval: Duration,
    /// The priority that was requested.
    pub wanted: u32,
    pub memory_locked: io::Result<()>,
    pub cpus_kept_awake: bool,
    pub budget: Budget,
    pub cpus: Vec<usize>,
}

pub(super) fn of(ended: &[ThreadReport], requested: StopRequest, known: &Circumstances) -> CyclicReport {
    let refused = ended.iter().find_map(|thread| thread.refused.as_ref());
    let priority = if refused.is_none() { known.wanted } else { 0 };
    let policy = if priority > 0 { "SCHED_FIFO" } else { "SCHED_OTHER with timer slack 1" };
    let threads: Vec<Vec<u64>> = ended.iter().map(|thread| within(thread, requested)).collect();
    let together: Vec<u64> = threads.iter().flatten().copied().collect();
    let latency = |late| latency(late, known.interval);
    let all = latency(together);
    CyclicReport {
        policy: policy.to_owned(),
        priority,
        seconds: requested.seconds(),
        interval: known.interval.as_secs_f64(),
        cycles: all.as_ref().map_or(0, |all| all.count),
        missed: all.as_ref().map_or(0, |all| all.missed),
        latency: all,
        each: threads.into_iter().map(latency).collect(),
        cpus: known.cpus.clone(),
        memory_locked: known.memory_locked.is_ok(),
        cpus_kept_awake: known.cpus_kept_awake,
        warnings: warnings(ended, refused, known),
    }
}

fn within(thread: &ThreadReport, requested: StopRequest) -> Vec<u64> {
    thread.cycles.iter().filter(|cycle| requested.holds(cycle.at)).map(|cycle| cycle.late).collect()
}

fn warnings(ended: &[ThreadReport], refused: Option<&io::Error>, known: &Circumstances) -> Vec<String> {
    let mut reported = Vec::new();
    if let Some(error) = refused {
        reported.push(format!("not real-time: {}", known.budget.refusal(known.wanted, error)));
    } else {
        let per_second = 1.0 / known.interval.as_secs_f64();
        reported.extend(known.budget.warning(ended.len(), per_second));
    }
    if let Err(error) = &known.memory_locked {
        reported.push(format!("its memory could not be locked: {error}"));
    }
    if !known.cpus_kept_awake {
        reported.push("CPUs may sleep deeply: /dev/cpu_dma_latency is missing or refused".to_owned());
    }
    if ended.iter().any(|thread| thread.outgrew) {
        reported.push("there were more cycles than room was made for: some waited for memory".to_owned());
    }
    reported
}

/// The distribution of nanoseconds, in seconds.
fn latency(mut late: Vec<u64>, interval: Duration) -> Option<Latency> {
    late.sort_unstable();
    let seconds: Vec<f64> = late.iter().map(|late| *late as f64 / 1e9).collect();
    let missed = late.iter().map(|late| missed(*late, interval)).sum();
    of_sorted(&seconds, bins(&late).unwrap_or_default(), missed)
}

/// Bins of two digits, without an upper end.
fn bins(late: &[u64]) -> Result<Vec<(f64, u64)>, Error> {
    let failed = |error: hdrhistogram::CreationError| Error::System {
        what: "cannot make a histogram",
        source: io::Error::other(error.to_string()),
    };
    let mut histogram = Histogram::<u64>::new(2).map_err(failed)?;
    for late in late {
        // it resizes itself: no latency is too long for it
        let _ = histogram.record(*late);
    }
    let longest = late.last().copied().unwrap_or(0);
    let end = |value: u64| histogram.highest_equivalent(value).min(longest);
    let steps = histogram.iter_recorded().map(|step| (end(step.value_iterated_to()), step.count_at_value()));
    // bins below a microsecond would be a nanosecond wide
    let mut sums = BTreeMap::new();
    for (end, count) in steps {
        *sums.entry(end.next_multiple_of(100).min(longest.max(1))).or_insert(0) += count;
    }
    Ok(sums.into_iter().map(|(end, count)| (end as f64 / 1e9, count)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cyclic::thread::Cycle, start::Instant};

    fn known() -> Circumstances {
        Circumstances {
            interval: Duration::from_millis(1),
            wanted: 90,
            memory_locked: Ok(()),
            cpus_kept_awake: true,
            budget: Budget::default(),
            cpus: Vec::new(),
        }
    }

    fn ended(cycles: &[(u64, u64)], refused: Option<i32>) -> ThreadReport {
        let cycles = cycles.iter().map(|(at, late)| Cycle { at: Instant(*at), late: *late }).collect();
        ThreadReport { cycles, refused: refused.map(io::Error::from_raw_os_error), outgrew: false }
    }

    #[test]
    fn figures_are_values_that_were_seen_and_no_bin_lacks_one() {
        let late: Vec<u64> = (1..=2000).rev().map(|number| number * 1000).collect();
        let reported = latency(late, Duration::from_millis(1)).unwrap();
        assert_eq!((reported.count, reported.min, reported.max), (2000, 1e-6, 2e-3));
        assert_eq!(
            (reported.p50, reported.p95, reported.p99, reported.p999),
            (1e-3, 1.9e-3, 1.98e-3, Some(1.998e-3))
        );
        assert!((reported.mean - 1.0005e-3).abs() < 1e-12);
        assert_eq!(reported.missed, 1002, "1 ms to 1.999 ms one each, 2 ms two");
        assert_eq!(reported.bins.iter().map(|(_, count)| count).sum::<u64>(), 2000);
        assert!(reported.bins.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(reported.bins.last().map(|bin| bin.0), Some(reported.max));
        assert!(reported.bins.len() < 800, "{}", reported.bins.len());
    }

    #[test]
    fn no_latency_is_too_long() {
        let hour = 3_600_000_000_000;
        let reported = latency(vec![0, 5, hour], Duration::from_millis(1)).unwrap();
        assert_eq!((reported.max, reported.p999), (3600.0, None));
        assert_eq!(reported.bins.iter().map(|(_, count)| count).sum::<u64>(), 3);
        assert_eq!(latency(Vec::new(), Duration::from_millis(1)), None);
    }

    #[test]
    fn cycles_count_that_ran_within_the_span() {
        let requested = StopRequest { from: Instant(100), to: Instant(200) };
        let reported = of(&[ended(&[(100, 1), (101, 2), (200, 3), (201, 4)], None)], requested, &known());
        assert_eq!((reported.cycles, reported.latency.unwrap().max), (2, 3e-9));
        assert_eq!((reported.policy.as_str(), reported.priority), ("SCHED_FIFO", 90));
        assert!(reported.warnings.is_empty(), "{:?}", reported.warnings);
    }

    #[test]
    fn a_measurement_that_was_not_real_time_says_so_first() {
        let requested = StopRequest { from: Instant(0), to: Instant(200) };
        let known = Circumstances { cpus_kept_awake: false, ..known() };
        let reported = of(&[ended(&[(100, 1)], Some(libc::EPERM))], requested, &known);
        assert_eq!((reported.policy.as_str(), reported.priority), ("SCHED_OTHER with timer slack 1", 0));
        assert!(reported.warnings[0].starts_with("not real-time: no right to real-time priority 90"));
        assert!(reported.warnings[1].contains("/dev/cpu_dma_latency"), "{:?}", reported.warnings);
    }
}
