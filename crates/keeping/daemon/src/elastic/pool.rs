//! Elastic groups that share CPUs: who has which.

use std::{rc::Rc, time::Duration};

use apply::{Ended, Originals, Resize, Subject, Target};
use kernel::{GroupName, Host};
use plan::Place;
use policy::{Decision, Elastic, GroupState, Live, Parameters, Scope};
use settings::Controller;
use topology::Machine;
use tracing::info;

use super::{
    contents::Contents,
    members::{Members, Rules},
    part::{Ending, Outcome, Part, Start, cause, is_there, refused_too_often},
};

/// One pool with its groups.
pub(super) struct Pool {
    pub policy: Box<dyn Live>,
    names: Vec<String>,
    pub groups: Vec<GroupName>,
    contents: Contents,
    originals: Rc<Originals>,
    /// What the last tick decided.
    decisions: Vec<Decision>,
    ending: Ending,
    /// Are all sets as the rule has them since it ended?
    is_back: bool,
    /// Units that do not run have no group.
    missing: Vec<GroupName>,
}

impl Pool {
    /// Starts with what the groups have of the CPUs that are online. What is not made of whole cores, or overlaps, as a plan or
    /// a user may have left it, becomes the static division first.
    ///
    /// A group that the kernel refuses that is left as it is; `Ok(Err(…))`: the machine can't give what the layout guarantees.
    ///
    /// # Errors
    /// In words: a group's CPUs can't be read.
    pub fn find(
        start: &mut Start<'_>,
        machine: &Machine,
        scope: &Scope,
        numbers: &Parameters,
    ) -> Result<Result<Pool, policy::Error>, String> {
        let mut members = Members::find(start, scope)?;
        let rules = Rules { machine, scope, numbers };
        let policy = match members.divide(start, &rules) {
            Ok(policy) => policy,
            Err(why) => return Ok(Err(why)),
        };
        let Members { elastic, groups, missing, .. } = members;
        let names = elastic.into_iter().map(|group: Elastic| group.name).collect();
        let (contents, originals, decisions) =
            (Contents::of(groups.len()), start.originals.clone(), Vec::new());
        let (ending, is_back) = (Ending::default(), false);
        Ok(Ok(Pool { policy, names, groups, contents, originals, decisions, ending, is_back, missing }))
    }
}

impl Part for Pool {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn groups(&self) -> &[GroupName] {
        &self.groups
    }

    fn is_changed(&mut self, host: &Host) -> Result<bool, String> {
        for (index, group) in self.groups.iter().enumerate() {
            if self.contents.are_as_noted(index) {
                continue;
            }
            if let Ok(seat) = host.seat(group, Controller::Cpuset) {
                let place = Place { hierarchy: seat.at.id, path: seat.path, version: seat.at.version };
                self.contents.note(host, index, &place, &[plan::CPUS.to_owned()]);
            }
            // one that was made again is not what it was, whatever it has
            let is_there = is_there(&self.originals, host, group, plan::CPUS);
            let cpus = apply::cpus_of(host, group).ok().filter(|_| is_there);
            if cpus.as_ref() != Some(&self.policy.cpus(index)) {
                self.contents.forget(index);
                let now = cpus.map_or("it is gone, or somebody made it again".to_owned(), |cpus| {
                    format!("somebody else gave it the CPUs {cpus}")
                });
                info!("{}: {now}", self.names[index]);
                return Ok(true);
            }
        }
        Ok(self.missing.iter().any(|group| is_there(&self.originals, host, group, plan::CPUS)))
    }

    fn tick(&mut self, _: &Host, now: Duration, states: &[GroupState]) -> Result<Vec<Resize>, String> {
        self.decisions.clear();
        if self.ending.is_over() {
            return Ok(Vec::new());
        }
        self.decisions = self.policy.tick(now, states);
        if self.policy.has_stopped() && !self.ending.has_begun() {
            self.ending.begin("changes did harm too often within a minute".to_owned());
        } else {
            self.is_back = self.ending.has_begun() && self.decisions.is_empty();
        }
        Ok(self.decisions.iter().map(resize).collect())
    }

    fn write(&mut self, target: Target<'_>, now: Duration, change: usize) -> Result<Outcome, String> {
        let decision = &self.decisions[change];
        let group = &self.groups[decision.group];
        self.contents.forget(decision.group);
        let is_there = is_there(&self.originals, target.host, group, plan::CPUS);
        let cpus = apply::cpus_of(target.host, group).ok().filter(|_| is_there);
        if cpus.as_ref() != Some(&decision.from) {
            return Ok(Outcome::Unexpected);
        }
        match apply::resize(target, &self.originals, group, &decision.to) {
            Ok(()) => Ok(Outcome::Written),
            Err(error) => {
                let cause = cause(&error);
                self.ending.refused();
                self.policy.refused(now, decision);
                if self.policy.has_stopped() {
                    self.ending.begin(refused_too_often(&cause));
                }
                Ok(Outcome::Refused(cause))
            }
        }
    }

    fn withdraw(&mut self) {
        let decisions = std::mem::take(&mut self.decisions);
        decisions.iter().rev().for_each(|decision| self.policy.withdraw(decision));
    }

    fn end(&mut self) -> Vec<Ended> {
        let why = self.ending.say(self.is_back, "the static shares are back");
        why.map(|why| Ended { of: Subject::Cpus(self.names.clone()), why }).into_iter().collect()
    }

    fn goes_on(&self) -> Option<&'static str> {
        (!self.groups.is_empty() && !self.ending.has_begun()).then_some("CPU sets")
    }
}

fn resize(decision: &Decision) -> Resize {
    let (from, to) = (decision.from.to_string(), decision.to.to_string());
    let numbers = serde_json::to_value(decision.reason).unwrap_or_default();
    Resize::now(&decision.name, plan::CPUS, (from, to), (decision.reason.to_string(), numbers))
}
