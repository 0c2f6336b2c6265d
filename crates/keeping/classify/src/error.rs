//! Why a process was not put where a rule leads.

use kernel::GroupName;
use system::NoProcess;

use crate::GoalError;

/// Why a process was not put where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not known where that is, or the process ended.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A group, a controller or the kernel refused.
    #[error(transparent)]
    Kernel(#[from] kernel::Error),
    /// A template's settings were refused.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// A template's value is not possible on this machine.
    #[error("group '{group}', which a rule needs, can't be made: {error}")]
    Value {
        /// The group.
        group: GroupName,
        /// What is wrong.
        error: settings::ValueError,
    },
    /// This machine does not have a template's CPUs or memory nodes.
    #[error("group '{group}', which a rule needs, can't be made: {why}")]
    Cpus {
        /// The group.
        group: GroupName,
        /// Why not.
        why: String,
    },
    /// A template's owner is not known.
    #[error("{0}")]
    Nobody(String),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Kernel(error) => error.hint(),
            Error::Apply(error) => error.hint(),
            Error::Value { error, .. } => error.hint(),
            Error::Goal(_) | Error::Cpus { .. } | Error::Nobody(_) => None,
        }
    }

    /// The process, if all that is wrong is that it ended.
    pub fn gone(&self) -> Option<NoProcess> {
        match self {
            Error::Goal(GoalError::NoProcess(gone)) => Some(*gone),
            Error::Kernel(kernel::Error::NoProcess { pid }) => Some(NoProcess { pid: *pid }),
            _ => None,
        }
    }
}

impl From<NoProcess> for Error {
    fn from(gone: NoProcess) -> Error {
        Error::Goal(gone.into())
    }
}
