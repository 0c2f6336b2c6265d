//! What a thread sees that wants to run all the time on one CPU: it reads the clock, and each gap above a threshold is time
//! that something else took, be it the kernel, another task or a hypervisor.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// Of each second the probe works this long and rests for the remainder: less than real-time tasks may have in a second, so
/// that their throttling does not count as noise and that what waits for the CPU gets it.
const BUSY: Duration = Duration::from_millis(900);
const REST: Duration = Duration::from_millis(100);

/// How the probe was scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_FIFO of priority 1: before all tasks that are not real-time ones.
    Fifo,
    /// SCHED_OTHER: what other tasks take is noise, too.
    Other,
}

/// What the probe saw on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The CPU.
    pub cpu: usize,
    /// How the probe was scheduled.
    pub policy: Policy,
    /// How long it watched, its rests not counted.
    pub observed_sec: f64,
    /// Shorter gaps are not counted.
    pub threshold_us: f64,
    /// How many gaps there were.
    pub gaps: u64,
    /// The longest.
    pub longest_us: f64,
    /// All together.
    pub total_us: f64,
}

impl Noise {
    /// Gaps in a second of watching.
    pub fn per_sec(&self) -> f64 {
        if self.observed_sec > 0.0 { self.gaps as f64 / self.observed_sec } else { 0.0 }
    }

    /// The part of the time that was taken.
    pub fn share(&self) -> f64 {
        if self.observed_sec > 0.0 { self.total_us / 1e6 / self.observed_sec } else { 0.0 }
    }
}

/// Gaps between moments.
struct Gaps {
    threshold: Duration,
    count: u64,
    longest: Duration,
    total: Duration,
    observed: Duration,
}

impl Gaps {
    fn new(threshold: Duration) -> Gaps {
        let none = Duration::ZERO;
        Gaps { threshold, count: 0, longest: none, total: none, observed: none }
    }

    fn add(&mut self, gap: Duration) {
        self.observed += gap;
        if gap > self.threshold {
            self.count += 1;
            self.total += gap;
            self.longest = self.longest.max(gap);
        }
    }
}

/// Watches the CPU that the calling thread is on, until the span is over or it is to stop.
pub(crate) fn on_this_cpu(
    (cpu, policy): (usize, Policy),
    span: Duration,
    threshold: Duration,
    stop: &AtomicBool,
) -> Noise {
    let mut gaps = Gaps::new(threshold);
    let end = Instant::now() + span;
    loop {
        let begun = Instant::now();
        let until = end.min(begun + BUSY);
        let mut last = begun;
        while last < until && !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            gaps.add(now - last);
            last = now;
        }
        if last >= end || stop.load(Ordering::Relaxed) {
            break;
        }
        sleep(REST.min(end.saturating_duration_since(last)));
    }
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    Noise {
        cpu,
        policy,
        observed_sec: gaps.observed.as_secs_f64(),
        threshold_us: micros(threshold),
        gaps: gaps.count,
        longest_us: micros(gaps.longest),
        total_us: micros(gaps.total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gaps_above_the_threshold_count() {
        let mut gaps = Gaps::new(Duration::from_micros(5));
        [1, 5, 6, 100, 2].into_iter().map(Duration::from_micros).for_each(|gap| gaps.add(gap));
        assert_eq!((gaps.count, gaps.longest.as_micros(), gaps.total.as_micros()), (2, 100, 106));
        assert_eq!(gaps.observed.as_micros(), 114);
    }

    #[test]
    fn nothing_observed_is_no_division_by_nothing() {
        let stop = AtomicBool::new(true);
        let noise = on_this_cpu((0, Policy::Other), Duration::from_secs(60), Duration::ZERO, &stop);
        assert_eq!((noise.gaps, noise.per_sec(), noise.share()), (0, 0.0, 0.0));
    }
}
