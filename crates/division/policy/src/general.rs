//! Power saving of several groups: all have one set of CPUs, which follows what they use together.

use std::time::Duration;

use units::CpuSet;

use crate::saving::{Numbers, Saving};
use crate::{Decision, Division, Error, GroupState, Live, Reason, Refusals};

/// General groups.
#[derive(Debug, Clone)]
pub struct General {
    saving: Saving,
    names: Vec<String>,
    /// What each has; where a write was refused it is not what it is to have.
    sets: Vec<CpuSet>,
    /// Why the last change was made.
    reason: Reason,
    refusals: Refusals,
    stopped: bool,
    numbers: Numbers,
}

impl General {
    /// Starts with all CPUs.
    pub fn new(saving: Saving, names: Vec<String>) -> General {
        let sets = vec![saving.cpus(); names.len()];
        let numbers = saving.numbers().clone();
        let (reason, refusals) = (Reason::GivesUp, Refusals::default());
        General { saving, names, sets, reason, refusals, stopped: false, numbers }
    }

    /// Starts with the set that all of them have.
    ///
    /// # Errors
    /// One has another set, or it is none that power saving makes.
    pub fn with_sets(saving: Saving, names: Vec<String>, sets: &[CpuSet]) -> Result<General, Error> {
        let mut general = General::new(saving, names);
        let first = sets.first().cloned().unwrap_or_default();
        let wrong = |group: usize, reason| Error::Start {
            name: general.names.get(group).cloned().unwrap_or_default(),
            cpus: sets.get(group).cloned().unwrap_or_default(),
            reason,
        };
        if let Some(other) = sets.iter().position(|set| *set != first) {
            return Err(wrong(other, "general groups have one set together"));
        }
        if !general.saving.start(&first) {
            return Err(wrong(0, "power saving makes no such set"));
        }
        general.sets = sets.to_vec();
        Ok(general)
    }

    /// What all groups did together. The one that waits longest counts; where a quota ran out, more CPUs would not help.
    fn together(&self, states: &[GroupState]) -> GroupState {
        let state = |index: usize| states.get(index).copied().filter(GroupState::is_sound);
        let none = GroupState { used: f64::NAN, ..GroupState::default() };
        (0..self.names.len())
            .map(state)
            .try_fold(GroupState::default(), |all, state| {
                let state = state?;
                let waiting = if state.throttled > 0.0 { 0.0 } else { state.waiting };
                Some(GroupState { used: all.used + state.used, waiting: all.waiting.max(waiting), ..all })
            })
            .unwrap_or(none)
    }
}

impl Division for General {
    fn tick(&mut self, now: Duration, states: &[GroupState]) -> Vec<Decision> {
        let change = match self.stopped {
            true => self.saving.end(),
            false => self.saving.tick(now, &self.together(states)),
        };
        self.reason = change.map_or(self.reason, |change| change.reason);
        let to = self.saving.cpus();
        let mut decisions = Vec::new();
        for (group, set) in self.sets.iter_mut().enumerate().filter(|(_, set)| **set != to) {
            let (name, from) = (self.names[group].clone(), std::mem::replace(set, to.clone()));
            decisions.push(Decision { group, name, from, to: to.clone(), reason: self.reason });
        }
        decisions
    }

    fn cpus(&self, group: usize) -> CpuSet {
        self.sets.get(group).cloned().unwrap_or_default()
    }
}

impl Live for General {
    /// It is requested again with the next tick.
    fn withdraw(&mut self, decision: &Decision) {
        if let Some(set) = self.sets.get_mut(decision.group) {
            set.clone_from(&decision.from);
        }
    }

    fn refused(&mut self, now: Duration, decision: &Decision) {
        self.withdraw(decision);
        self.stopped |= self.refusals.add(now, self.numbers.refusals, self.numbers.given_up_within);
    }

    fn has_stopped(&self) -> bool {
        self.stopped
    }
}
