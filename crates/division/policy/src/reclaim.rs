//! Memory of a quiet group: small steps of `memory.reclaim` while nobody waits for memory and swap is free, and `memory.low`
//! that follows what is left, the working set. The rules are those of oomd's plugin Senpai; no limit is set.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::Error;
use crate::parameters::parameters;

parameters! {
    /// The numbers of reclaiming; [`RECLAIM`] has their units, defaults and ranges.
    Numbers, RECLAIM;
    dwell: 6.0 "s", 1.0 to 3600.0, "The time between two steps, and how long a group has to be quiet before the first.";
    longest_dwell: 300.0 "s", 1.0 to 86400.0, "The dwell doubles with each step that did harm, up to this, and is halved by each that did not.";
    late: 3.0 "dwells", 1.5 to 100.0, "After a longer gap between two samples the quiet time begins again.";
    pressure: 0.001 "of the time", 0.0 to 1.0, "A group of which some task waits for memory for more than this is not quiet.";
    io_pressure: 0.01 "of the time", 0.0 to 1.0, "The same of waiting for disks.";
    swap_free: 0.2 "of the swap", 0.0 to 1.0, "Below this nothing is reclaimed.";
    step: 0.01 "of the memory", 0.0001 to 0.2, "The largest step; less near the limit of pressure.";
    protect: 0.9 "of the working set", 0.0 to 1.0, "What memory.low protects.";
    least_gap: 0.1 "of memory.low", 0.0 to 1.0, "A smaller move of memory.low is not made.";
}

/// Smaller steps are not worth a write, in bytes.
const LEAST_STEP: u64 = 1 << 20;

/// What a group has and waits for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryState {
    /// `memory.current`, in bytes.
    pub current: u64,
    /// The share of the time in which some task waited for memory, 0 to 1.
    pub pressure: f64,
    /// The same of disks.
    pub io_pressure: f64,
    /// The free share of the swap, 0 to 1; `None`: the machine has no swap, and only pages of files go.
    pub swap_free: Option<f64>,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// To `memory.reclaim`: the group is quiet.
    Reclaim {
        /// How much.
        bytes: u64,
    },
    /// To `memory.low`.
    Low {
        /// What it was.
        from: u64,
        /// What it is to be.
        to: u64,
    },
}

/// A group's memory.
#[derive(Debug, Clone)]
pub struct Reclaim {
    min: u64,
    max: u64,
    low: u64,
    dwell: f64,
    last: Option<f64>,
    quiet_since: Option<f64>,
    /// When it last gave up memory.
    reclaimed: Option<f64>,
    numbers: Numbers,
}

impl Reclaim {
    /// Starts with `memory.low` at `min`. Nothing is reclaimed below `min`, and `memory.low` is at most `max`; in bytes.
    ///
    /// # Errors
    /// `max` is below `min`; a number is out of its range.
    pub fn new(min: u64, max: u64, numbers: Numbers) -> Result<Reclaim, Error> {
        numbers.check()?;
        if min > max {
            return Err(Error::Bounds { what: "the protected memory", min: min as f64, max: max as f64 });
        }
        let dwell = numbers.dwell;
        Ok(Reclaim { min, max, low: min, dwell, last: None, quiet_since: None, reclaimed: None, numbers })
    }

    /// `memory.low` now.
    pub fn low(&self) -> u64 {
        self.low
    }

    /// How long the group has to be quiet before the next step, in seconds.
    pub fn dwell(&self) -> f64 {
        self.dwell
    }

    /// The step that follows. Figures that are no numbers are no quiet.
    pub fn tick(&mut self, now: Duration, state: &MemoryState) -> Option<Step> {
        let now = now.as_secs_f64();
        let since = self.last.replace(now).map_or(0.0, |last| now - last);
        if !(0.0..=self.numbers.dwell * self.numbers.late).contains(&since) {
            (self.quiet_since, self.reclaimed) = (None, None);
        }
        if !self.is_quiet(state) {
            return self.disturbed(now, state);
        }
        let quiet_since = *self.quiet_since.get_or_insert(now);
        if now - quiet_since < self.dwell {
            return None;
        }
        self.quiet_since = Some(now);
        if self.reclaimed.take().is_some() {
            self.dwell = (self.dwell / 2.0).max(self.numbers.dwell);
        }
        if let Some(low) = self.target(state.current) {
            return Some(self.move_low(low));
        }
        let bytes = self.step(state).min(state.current.saturating_sub(self.min));
        let may = state.swap_free.is_none_or(|free| free >= self.numbers.swap_free);
        if !may || bytes < LEAST_STEP {
            return None;
        }
        self.reclaimed = Some(now);
        Some(Step::Reclaim { bytes })
    }

    /// `memory.low` was not written, or the group was changed by others: it has this.
    pub fn restore(&mut self, low: u64) {
        self.low = low.clamp(self.min, self.max);
    }

    /// The kernel could not reclaim so much: the next step comes later.
    pub fn refused(&mut self, now: Duration) {
        (self.quiet_since, self.reclaimed) = (Some(now.as_secs_f64()), None);
        self.dwell = (self.dwell * 2.0).min(self.numbers.longest_dwell.max(self.numbers.dwell));
    }

    fn is_quiet(&self, state: &MemoryState) -> bool {
        let below = |value: f64, limit: f64| (0.0..=limit).contains(&value);
        below(state.pressure, self.numbers.pressure)
            && below(state.io_pressure, self.numbers.io_pressure)
            && state.swap_free.is_none_or(f64::is_finite)
    }

    /// After a step that did harm the next comes later, and what the group has is its working set.
    fn disturbed(&mut self, now: f64, state: &MemoryState) -> Option<Step> {
        self.quiet_since = None;
        let soon = self.reclaimed.take().is_some_and(|at| now - at <= self.dwell);
        if !soon {
            return None;
        }
        self.dwell = (self.dwell * 2.0).min(self.numbers.longest_dwell.max(self.numbers.dwell));
        self.target(state.current).filter(|low| *low > self.low).map(|low| self.move_low(low))
    }

    /// Where `memory.low` is to be now, if that is far from where it is.
    fn target(&self, current: u64) -> Option<u64> {
        let low = ((current as f64 * self.numbers.protect) as u64).clamp(self.min, self.max);
        let gap = low.abs_diff(self.low);
        (gap > 0 && gap as f64 >= self.low as f64 * self.numbers.least_gap).then_some(low)
    }

    fn move_low(&mut self, to: u64) -> Step {
        let from = std::mem::replace(&mut self.low, to);
        Step::Low { from, to }
    }

    fn step(&self, state: &MemoryState) -> u64 {
        let Numbers { pressure, step, .. } = self.numbers;
        let room = if pressure > 0.0 { 1.0 - state.pressure / pressure } else { 1.0 };
        (state.current as f64 * step * room.max(0.0)) as u64
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Reclaim { bytes } => write!(f, "reclaims {bytes} bytes: nobody waits for memory"),
            Step::Low { from, to } => write!(f, "memory.low from {from} to {to} bytes, with the working set"),
        }
    }
}
