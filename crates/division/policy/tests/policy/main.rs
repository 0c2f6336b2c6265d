//! The policy from the outside: what it may never do, for random groups and loads, and each rule by itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod latency;
mod lending;
mod properties;
mod quotas;
mod reclaiming;
mod rules;
mod saving;

use std::time::Duration;

use policy::{Dealer as _, Decision, Division, Elastic, GroupState, Parameters, Policy, Units};

fn machine(nodes: usize, cores: usize, width: usize) -> Units {
    Units::regular(nodes, cores, width).unwrap()
}

fn group(name: &str, min: usize, max: usize, weight: u32) -> Elastic {
    Elastic { name: name.to_owned(), min, max, weight, borrows: false }
}

/// A policy with its clock.
struct Run {
    policy: Policy,
    ticks: u64,
}

impl Run {
    fn new(groups: &[Elastic], units: Units) -> Run {
        Run { policy: Policy::new(groups, units, Parameters::default()).unwrap(), ticks: 0 }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.ticks * 100)
    }

    fn tick(&mut self, states: &[GroupState]) -> Vec<Decision> {
        self.ticks += 1;
        self.policy.tick(self.now(), states)
    }

    /// Of groups that use what they can of a demand, and wait for what they lack.
    fn load(&mut self, demands: &[f64]) -> Vec<Decision> {
        let state = |(group, demand): (usize, &f64)| {
            let has = self.policy.pool().cpus(group).len() as f64;
            let waiting = if *demand > has { (demand - has) / demand } else { 0.0 };
            GroupState { used: demand.min(has), waiting, throttled: 0.0, slack: None }
        };
        let states: Vec<GroupState> = demands.iter().enumerate().map(state).collect();
        self.tick(&states)
    }

    fn loads(&mut self, ticks: usize, demands: &[f64]) -> Vec<Decision> {
        (0..ticks).flat_map(|_| self.load(demands)).collect()
    }

    /// With what they borrow.
    fn cpus(&self) -> Vec<String> {
        (0..self.policy.pool().groups()).map(|group| self.policy.cpus(group).to_string()).collect()
    }

    fn sizes(&self) -> Vec<usize> {
        let pool = self.policy.pool();
        (0..pool.groups()).map(|group| pool.cpus(group).len()).collect()
    }
}
