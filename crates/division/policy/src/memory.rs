//! What the policy remembers of a group.

use std::collections::VecDeque;

use crate::{GroupState, Parameters};

/// Of one group. Times are seconds of the controller's clock, sizes units.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// Since when it waits less than the threshold, or has enough slack; `None`: it does not.
    pub quiet_since: Option<f64>,
    /// The most CPUs used since then.
    pub peak: f64,
    /// What it used lately, with the times: each less than the one before it, so that the first is the peak.
    recent: VecDeque<(f64, f64)>,
    /// How much it waits while it has enough.
    pub baseline: f64,
    /// How many times the dwell is longer than at first.
    pub caution: f64,
    /// When it last shrank, and what it had before.
    pub shrunk: Option<(f64, usize)>,
    /// Was the last sample one with a latency?
    pub by_latency: bool,
    /// When a shrink was undone.
    pub reversals: VecDeque<f64>,
}

/// How fast the baseline follows: about fifty samples.
const BASELINE: f64 = 0.02;

impl Memory {
    pub fn new() -> Memory {
        Memory {
            quiet_since: None,
            peak: 0.0,
            recent: VecDeque::new(),
            baseline: 0.0,
            caution: 1.0,
            shrunk: None,
            by_latency: false,
            reversals: VecDeque::new(),
        }
    }

    /// Takes in a sample; after a late one the quiet time begins again.
    pub fn observe(&mut self, state: &GroupState, now: f64, late: bool, numbers: &Parameters) {
        while self.recent.back().is_some_and(|(_, used)| *used <= state.used) {
            self.recent.pop_back();
        }
        self.recent.push_back((now, state.used));
        let span = numbers.recent * self.caution;
        while self.recent.front().is_some_and(|(at, _)| !(0.0..=span).contains(&(now - at))) {
            self.recent.pop_front();
        }
        let measured = state.slack.is_some();
        // what was quiet by one measure need not be by the other
        let changed = std::mem::replace(&mut self.by_latency, measured) != measured;
        if changed || late || !state.is_quiet(numbers) {
            self.quiet_since = None;
        } else if self.quiet_since.is_none() {
            (self.quiet_since, self.peak) = (Some(now), state.used);
        } else {
            self.peak = self.peak.max(state.used);
        }
        if self.shrunk.is_none() && !measured && state.waiting < numbers.waiting {
            self.baseline += BASELINE * (state.waiting - self.baseline);
        }
    }

    /// Did the last shrink do harm? The size before it, if so. Without harm in its time, the dwell gets shorter again.
    pub fn harmed(&mut self, state: &GroupState, now: f64, numbers: &Parameters) -> Option<usize> {
        let (at, before) = self.shrunk?;
        if now - at > numbers.harm_within {
            self.shrunk = None;
            self.caution = (self.caution / 2.0).max(1.0);
            return None;
        }
        if !self.is_harm(state, numbers) {
            return None;
        }
        self.shrunk = None;
        self.caution = (self.caution * 2.0).min((numbers.longest_dwell / numbers.dwell).max(1.0));
        self.reversals.push_back(now);
        Some(before)
    }

    /// Is this what a change that did harm looks like?
    pub fn is_harm(&self, state: &GroupState, numbers: &Parameters) -> bool {
        let most = numbers.harm.max(numbers.harm_times * self.baseline);
        state.slack.map_or(state.waiting > most, |slack| slack < numbers.least_slack)
    }

    /// The most CPUs that it used lately.
    pub fn recent(&self) -> f64 {
        self.recent.front().map_or(0.0, |(_, used)| *used)
    }

    /// How long it has to be quiet before it shrinks.
    pub fn dwell(&self, numbers: &Parameters) -> f64 {
        numbers.dwell * self.caution
    }

    /// Starts the next quiet time, in which a new peak counts.
    pub fn restart(&mut self, now: f64, used: f64) {
        (self.quiet_since, self.peak) = (Some(now), used);
    }
}

/// Forgets what is older than the span, and says how many are left.
pub(crate) fn count_within(times: &mut VecDeque<f64>, now: f64, span: f64) -> usize {
    while times.front().is_some_and(|time| now - time > span) {
        times.pop_front();
    }
    times.len()
}
