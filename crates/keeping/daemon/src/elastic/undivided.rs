//! Elastic groups whose CPUs the machine can't divide as their layout guarantees, as some are offline: they are left as they are,
//! all others go on, until CPUs come.

use std::time::Duration;

use apply::{Ended, Resize, Target};
use kernel::{GroupName, Host};
use policy::{GroupState, Scope};

use super::part::{Outcome, Part, Start};

/// One such pool.
pub(super) struct Undivided;

impl Undivided {
    pub fn new(start: &mut Start<'_>, scope: &Scope, why: &policy::Error) -> Undivided {
        for group in &scope.groups {
            start.leave(&group.name, plan::CPUS, why.to_string());
        }
        Undivided
    }
}

impl Part for Undivided {
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn groups(&self) -> &[GroupName] {
        &[]
    }

    /// What the machine can give changes with the CPUs that are online.
    fn is_changed(&mut self, _: &Host) -> Result<bool, String> {
        Ok(false)
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
