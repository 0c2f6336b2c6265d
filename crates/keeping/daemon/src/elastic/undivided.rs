//! Elastic groups whose CPUs the machine can't divide as their layout guarantees, as some are offline: they are left as they are,
//! all others go on, and the machine is looked at again.

use std::time::Duration;

use apply::{Ended, Resize, Target};
use kernel::{GroupName, Host};
use policy::{GroupState, Parameters, Scope};
use topology::Machine;

use super::{
    part::{Outcome, Part, Start},
    pool::rule,
};

/// One such pool.
pub(super) struct Undivided {
    scope: Scope,
    numbers: Parameters,
}

impl Undivided {
    pub fn new(start: &mut Start<'_>, scope: &Scope, numbers: &Parameters, why: &policy::Error) -> Undivided {
        for group in &scope.groups {
            start.leave(&group.name, plan::CPUS, why.to_string());
        }
        Undivided { scope: scope.clone(), numbers: numbers.clone() }
    }
}

impl Part for Undivided {
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn groups(&self) -> &[GroupName] {
        &[]
    }

    /// Can the machine give it now?
    fn is_changed(&mut self, _: &Host) -> Result<bool, String> {
        let machine = Machine::live().map_err(|error| error.to_string())?;
        let units = policy::Units::of(&machine, &self.scope.pool);
        let scope = &self.scope;
        Ok(units
            .is_ok_and(|units| rule(&machine, scope, (&scope.groups, &units), &self.numbers, None).is_ok()))
    }

    fn tick(&mut self, _: &Host, _: Duration, _: &[GroupState]) -> Result<Vec<Resize>, String> {
        Ok(Vec::new())
    }

    fn write(&mut self, _: Target<'_>, _: Duration, _: usize) -> Result<Outcome, String> {
        Ok(Outcome::Unexpected)
    }

    fn withdraw(&mut self) {}

    fn end(&mut self) -> Vec<Ended> {
        Vec::new()
    }

    fn goes_on(&self) -> Option<&'static str> {
        None
    }
}
