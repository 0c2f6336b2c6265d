//! The groups of a pool as they are found, and the division that they start with.

use apply::Resize;
use kernel::GroupName;
use policy::{
    Elastic, General, Live, Parameters, Policy, Scope, Units,
    saving::{self, Saving},
};
use topology::Machine;
use units::CpuSet;

use super::part::{Start, cause, is_there};

/// What a division follows from.
pub(super) struct Rules<'r> {
    pub machine: &'r Machine,
    pub scope: &'r Scope,
    pub numbers: &'r Parameters,
}

impl Rules<'_> {
    /// For these groups, from what they have, or from what the layout gives.
    fn policy(
        &self,
        groups: &[Elastic],
        units: &Units,
        has: Option<&[CpuSet]>,
    ) -> Result<Box<dyn Live>, policy::Error> {
        let Rules { machine, scope, numbers } = *self;
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
}

/// The groups that are there.
pub(super) struct Members {
    pub elastic: Vec<Elastic>,
    pub groups: Vec<GroupName>,
    /// Their lists.
    sets: Vec<CpuSet>,
    /// Units that do not run have no group.
    pub missing: Vec<GroupName>,
}

impl Members {
    /// # Errors
    /// In words: a group's CPUs can't be read.
    pub fn find(start: &mut Start<'_>, scope: &Scope) -> Result<Members, String> {
        let (elastic, groups, sets, missing) = Default::default();
        let mut members = Members { elastic, groups, sets, missing };
        for one in &scope.groups {
            let group = GroupName::new(scope.directory(one)).map_err(|error| error.to_string())?;
            let is_unit = scope.units.contains_key(&one.name);
            if is_unit && !is_there(&start.originals, start.target.host, &group, plan::CPUS) {
                members.missing.push(group);
                continue;
            }
            if !start.has(&one.name, &group, plan::CPUS)? {
                continue;
            }
            let cpus = apply::cpus_of(start.target.host, &group).map_err(|error| cause(&error))?;
            members.elastic.push(one.clone());
            members.groups.push(group);
            members.sets.push(cpus);
        }
        Ok(members)
    }

    /// Gives the groups what their rule starts with. One that the kernel refuses that is left as it is.
    ///
    /// # Errors
    /// The machine can't give what the layout guarantees.
    pub fn divide(
        &mut self,
        start: &mut Start<'_>,
        rules: &Rules<'_>,
    ) -> Result<Box<dyn Live>, policy::Error> {
        let mut pool = rules.scope.pool.clone();
        let mut units = Units::of(rules.machine, &pool)?;
        loop {
            let (policy, why) = self.first(rules, &units)?;
            let Err((index, cause)) = self.give_all(start, policy.as_ref(), &why) else {
                return Ok(policy);
            };
            let why = format!("it does not get its static share: {cause}");
            start.leave(&self.elastic.remove(index).name, plan::CPUS, why);
            self.sets.remove(index);
            // general groups have one set together; the others have what it does not keep, if that is enough for them
            let keeps = apply::cpus_of(start.target.host, &self.groups.remove(index)).unwrap_or_default();
            let without = pool.difference(&keeps);
            let is_enough = |units: &Units| rules.policy(&self.elastic, units, None).is_ok();
            let rest = Units::of(rules.machine, &without).ok().filter(is_enough);
            if let Some(rest) = rest.filter(|_| rules.scope.saving.is_none()) {
                (pool, units) = (without, rest);
            }
        }
    }

    /// The rule from what the groups have of the CPUs that are online, or from the static division; and why groups get other
    /// CPUs first. On v2 a list has its CPUs also while they are offline.
    fn first(&self, rules: &Rules<'_>, units: &Units) -> Result<(Box<dyn Live>, String), policy::Error> {
        let online = rules.machine.online();
        let has: Vec<CpuSet> = self.sets.iter().map(|set| set.intersection(&online)).collect();
        let offline = self.sets.iter().fold(CpuSet::new(), |all, set| all.union(set)).difference(&online);
        let (what, are) = if offline.len() == 1 { ("CPU", "is") } else { ("CPUs", "are") };
        let is_offline = format!("{what} {offline} {are} offline");
        match rules.policy(&self.elastic, units, Some(&has)) {
            Ok(policy) => Ok((policy, is_offline)),
            Err(why) => {
                let policy = rules.policy(&self.elastic, units, None)?;
                let why = format!("what the layout gives first: {why}");
                Ok((policy, if offline.is_empty() { why } else { is_offline }))
            }
        }
    }

    /// Gives each group what the rule knows of it; at a refusal, which group and the cause.
    fn give_all(
        &mut self,
        start: &mut Start<'_>,
        policy: &dyn Live,
        why: &str,
    ) -> Result<(), (usize, String)> {
        for index in 0..self.elastic.len() {
            let to = policy.cpus(index);
            self.give(start, index, &to, why).map_err(|cause| (index, cause))?;
            self.sets[index] = to;
        }
        Ok(())
    }

    /// Gives a group another set by one that has both: no group is ever without CPUs.
    fn give(&self, start: &mut Start<'_>, index: usize, to: &CpuSet, why: &str) -> Result<(), String> {
        let (from, group) = (&self.sets[index], &self.groups[index]);
        if from == to {
            return Ok(());
        }
        let resize = |to: &CpuSet| apply::resize(start.target, &start.originals, group, to);
        resize(&from.union(to)).map_err(|error| cause(&error))?;
        resize(to).map_err(|error| {
            let _ = resize(from); // what it has then is read again
            cause(&error)
        })?;
        let (texts, why) = ((from.to_string(), to.to_string()), (why.to_owned(), serde_json::Value::Null));
        start.changes.push(Resize::now(&self.elastic[index].name, plan::CPUS, texts, why));
        Ok(())
    }
}
