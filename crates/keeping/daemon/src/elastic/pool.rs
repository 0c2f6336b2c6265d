//! Elastic groups that share CPUs: who has which.

use std::{rc::Rc, time::Duration};

use apply::{Originals, Resize, Target};
use kernel::{GroupName, Host};
use plan::Place;
use policy::{
    Decision, Elastic, General, GroupState, Live, Parameters, Policy, Scope, Units,
    saving::{self, Saving},
};
use settings::Controller;
use topology::Machine;
use tracing::info;
use units::CpuSet;

use super::{
    contents::Contents,
    part::{Outcome, Part, Start},
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
    stopped: bool,
    /// Units that do not run have no group.
    missing: Vec<GroupName>,
}

impl Pool {
    /// Starts with what the groups have. What is not made of whole cores, or overlaps, as a plan or a user may have left
    /// it, becomes the static division first.
    ///
    /// # Errors
    /// In words: the machine can't give what the layout guarantees, or a group's CPUs can't be read or written.
    pub fn find(
        start: &mut Start<'_>,
        machine: &Machine,
        scope: &Scope,
        numbers: &Parameters,
    ) -> Result<Pool, String> {
        let units = Units::of(machine, &scope.pool).map_err(|error| error.to_string())?;
        let (mut elastic, mut groups, mut sets, mut missing) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for one in &scope.groups {
            let group = GroupName::new(scope.directory(one)).map_err(|error| error.to_string())?;
            match cpus_of(start.target.host, &group)? {
                Some(cpus) => {
                    elastic.push(one.clone());
                    groups.push(group);
                    sets.push(cpus);
                }
                None => missing.push(group),
            }
        }
        let rule = |has: Option<&[CpuSet]>| rule(machine, scope, (&elastic, &units), numbers, has);
        let policy = match rule(Some(&sets)) {
            Ok(policy) => policy,
            Err(why) => {
                let policy = rule(None).map_err(|error| error.to_string())?;
                for (index, (one, group)) in elastic.iter().zip(&groups).enumerate() {
                    give(start, (&one.name, group), &sets[index], &policy.cpus(index), &why)?;
                }
                policy
            }
        };
        let names = elastic.into_iter().map(|group: Elastic| group.name).collect();
        let (contents, originals, decisions) =
            (Contents::of(groups.len()), start.originals.clone(), Vec::new());
        Ok(Pool { policy, names, groups, contents, originals, decisions, stopped: false, missing })
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
            let cpus = cpus_of(host, group)?;
            if cpus.as_ref() != Some(&self.policy.cpus(index)) {
                self.contents.forget(index);
                let now = cpus
                    .map_or("it is gone".to_owned(), |cpus| format!("somebody else gave it the CPUs {cpus}"));
                info!("{}: {now}", self.names[index]);
                return Ok(true);
            }
        }
        for group in &self.missing {
            if cpus_of(host, group)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tick(&mut self, _: &Host, now: Duration, states: &[GroupState]) -> Result<Vec<Resize>, String> {
        self.decisions = self.policy.tick(now, states);
        Ok(self.decisions.iter().map(resize).collect())
    }

    fn write(&mut self, target: Target<'_>, now: Duration, change: usize) -> Result<Outcome, String> {
        let decision = &self.decisions[change];
        let group = &self.groups[decision.group];
        self.contents.forget(decision.group);
        if cpus_of(target.host, group)?.as_ref() != Some(&decision.from) {
            return Ok(Outcome::Unexpected);
        }
        match apply::resize(target, &self.originals, group, &decision.to) {
            Ok(()) => Ok(Outcome::Written),
            Err(error) => {
                self.policy.refused(now, decision);
                Ok(Outcome::Refused(error.to_string()))
            }
        }
    }

    fn withdraw(&mut self) {
        let decisions = std::mem::take(&mut self.decisions);
        decisions.iter().rev().for_each(|decision| self.policy.withdraw(decision));
    }

    fn end(&mut self) -> Option<String> {
        let is_new = self.policy.has_stopped() && !std::mem::replace(&mut self.stopped, true);
        is_new.then(|| "too many changes were refused or did harm within a minute".to_owned())
    }

    fn has_ended(&self) -> bool {
        self.policy.has_stopped()
    }
}

/// The CPUs of a group by its own list; `None`: there is no such group.
///
/// # Errors
/// In words: the kernel does not say what it has.
fn cpus_of(host: &Host, group: &GroupName) -> Result<Option<CpuSet>, String> {
    match apply::cpus_of(host, group) {
        Ok(cpus) => Ok(Some(cpus)),
        Err(_) if host.seats(group).is_empty() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The rule for these groups, from what they have, or from what the layout gives.
fn rule(
    machine: &Machine,
    scope: &Scope,
    (groups, units): (&[Elastic], &Units),
    numbers: &Parameters,
    has: Option<&[CpuSet]>,
) -> Result<Box<dyn Live>, policy::Error> {
    let (units, numbers) = (units.clone(), numbers.clone());
    let Some(named) = &scope.saving else {
        let policy = match has {
            Some(sets) => Policy::with_sets(groups, units, numbers, sets)?,
            None => Policy::new(groups, units, numbers)?,
        };
        return Ok(Box::new(policy));
    };
    let floor = scope.groups.first().map_or(plan::FLOOR, |group| group.min);
    let saving = Saving::new(machine, units, named, floor, saving::Numbers::default())?;
    let names = groups.iter().map(|group| group.name.clone()).collect();
    Ok(Box::new(match has {
        Some(sets) => General::with_sets(saving, names, sets)?,
        None => General::new(saving, names),
    }))
}

fn resize(decision: &Decision) -> Resize {
    let (from, to) = (decision.from.to_string(), decision.to.to_string());
    let numbers = serde_json::to_value(decision.reason).unwrap_or_default();
    Resize::now(&decision.name, plan::CPUS, (from, to), (decision.reason.to_string(), numbers))
}

/// Gives a group another set by one that has both: no group is ever without CPUs.
fn give(
    start: &mut Start<'_>,
    (name, group): (&str, &GroupName),
    from: &CpuSet,
    to: &CpuSet,
    why: &policy::Error,
) -> Result<(), String> {
    if from == to {
        return Ok(());
    }
    for step in [&from.union(to), to] {
        let resized = apply::resize(start.target, &start.originals, group, step);
        resized.map_err(|error| error.to_string())?;
    }
    let (texts, why) = ((from.to_string(), to.to_string()), format!("what the layout gives first: {why}"));
    start.changes.push(Resize::now(name, plan::CPUS, texts, (why, serde_json::Value::Null)));
    Ok(())
}
