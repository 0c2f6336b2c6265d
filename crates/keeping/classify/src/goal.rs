//! Where a rule leads.

use kernel::GroupName;
use layout::{Controllers, NamePattern};
use system::NoProcess;

/// A group that a process belongs to, for some controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// For which controllers.
    pub controllers: Controllers,
    /// The group's name as the rule has it: the name of its template.
    pub pattern: NamePattern,
    /// The group.
    pub group: GroupName,
}

/// Why it can't be said to which group a process belongs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// It ended.
    #[error(transparent)]
    NoProcess(#[from] NoProcess),
    /// The process's facts make a name of it that no group can have.
    #[error(
        "the rule's target '{pattern}' does not expand to a valid group name for process {pid}: {reason}"
    )]
    Name {
        /// The process.
        pid: u32,
        /// The name in the rule.
        pattern: NamePattern,
        /// Why not.
        reason: String,
    },
}
