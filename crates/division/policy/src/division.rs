//! What a controller and the simulator call.

use std::time::Duration;

use units::CpuSet;

use crate::{Decision, Parameters, Pool};

/// What a group did since the sample before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GroupState {
    /// CPU time over time: CPUs that it used.
    pub used: f64,
    /// The share of the time in which some task of it waited for a CPU, 0 to 1.
    pub waiting: f64,
    /// The share of its periods in which its quota ran out, 0 to 1: more CPUs would not help.
    pub throttled: f64,
    /// Where a latency is measured: 1 - p99 / target; 0 is at the target, below 0 above it. It then decides in place of
    /// `waiting`, from the next sample on without it `waiting` does again.
    pub slack: Option<f64>,
}

/// A rule that changes groups' CPUs.
pub trait Division {
    /// The changes that follow from what the groups did, in the order in which they are to be written. A group whose
    /// figures are no numbers, or are missing, keeps what it has.
    fn tick(&mut self, now: Duration, states: &[GroupState]) -> Vec<Decision>;

    /// All CPUs of a group, those that it borrows among them.
    fn cpus(&self, group: usize) -> CpuSet;
}

/// A rule that deals out CPUs: each is one group's.
pub trait Dealer: Division {
    /// Who has what for itself.
    fn pool(&self) -> &Pool;
}

/// A rule whose changes are written.
pub trait Live: Division {
    /// This decision of the last tick was not written: the group has what it had.
    fn withdraw(&mut self, decision: &Decision);

    /// The kernel refused this decision of the last tick: the group has what it had. After some refusals resizing ends.
    fn refused(&mut self, now: Duration, decision: &Decision);

    /// Has resizing ended? What the plan gave returns in the next ticks.
    fn has_stopped(&self) -> bool;
}

impl GroupState {
    /// Does it need more CPUs, by its latency or else by its waiting?
    pub(crate) fn is_short(&self, numbers: &Parameters) -> bool {
        self.slack.map_or(self.waiting > numbers.waiting, |slack| slack < numbers.least_slack)
    }

    /// Has it enough to give some away?
    pub(crate) fn is_quiet(&self, numbers: &Parameters) -> bool {
        self.slack.map_or(self.waiting < numbers.quiet, |slack| slack >= numbers.quiet_slack)
    }

    /// Are these numbers that mean something?
    pub fn is_sound(&self) -> bool {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        let slack = self.slack.is_none_or(|slack| slack.is_finite() && slack <= 1.0);
        sound(self.used) && sound(self.waiting) && sound(self.throttled) && slack
    }
}
