//! What the controller is a loop over: groups that one rule changes together, each with its own figures and writes.

use std::{rc::Rc, time::Duration};

use apply::{Originals, Resize, Target};
use kernel::{GroupName, Host};
use policy::GroupState;

/// What parts start with: the groups may not have what a rule can start from.
pub(super) struct Start<'s> {
    pub target: Target<'s>,
    pub originals: Rc<Originals>,
    /// What the groups had to be given first.
    pub changes: Vec<Resize>,
}

/// Groups with a rule.
pub(super) trait Part {
    /// The groups, for the log.
    fn names(&self) -> Vec<&str>;

    /// Whose figures [`Part::tick`] takes, in this order.
    fn groups(&self) -> &[GroupName];

    /// Has a group something else than the rule knows?
    ///
    /// # Errors
    /// In words: the kernel does not say what it has.
    fn is_changed(&mut self, host: &Host) -> Result<bool, String>;

    /// The changes that follow, in the order in which they are to be written. `states`: of [`Part::groups`].
    ///
    /// # Errors
    /// In words: figures that only this rule takes can't be read.
    fn tick(&mut self, host: &Host, now: Duration, states: &[GroupState]) -> Result<Vec<Resize>, String>;

    /// Writes one change of the last tick, by its place in the list.
    ///
    /// # Errors
    /// In words: the kernel does not say what the group has.
    fn write(&mut self, target: Target<'_>, now: Duration, change: usize) -> Result<Outcome, String>;

    /// No change of the last tick is written: the groups have what they had.
    fn withdraw(&mut self);

    /// Why the rule has ended by itself, in words. Said once.
    fn end(&mut self) -> Option<String>;

    /// Has it ended, so that its changes only bring back what the plan gave?
    fn has_ended(&self) -> bool {
        false
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The group has it.
    Written,
    /// The kernel refused it, with the cause: the group has what it had.
    Refused(String),
    /// The group was not as the rule knows it: nothing was written.
    Unexpected,
}
