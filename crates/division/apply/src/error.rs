//! Why something could not be read or carried out.

use std::path::PathBuf;

use kernel::GroupName;
use settings::Version;
use units::{Bytes, hint::Command};

/// Why; each with a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The kernel crate's refusal.
    #[error(transparent)]
    Kernel(#[from] kernel::Error),
    /// Nothing could be planned.
    #[error(transparent)]
    Plan(#[from] plan::PlanError),
    /// The version that controls the group has no such setting.
    #[error("cgroup {version}, which controls group '{group}' here, has no {setting}")]
    Lacks {
        /// The setting as it was named.
        setting: String,
        /// The group.
        group: GroupName,
        /// The version.
        version: Version,
        /// What to use instead.
        instead: String,
    },
    /// A file's content is not what the kernel documents.
    #[error("group '{group}': {error}")]
    Decode {
        /// The group.
        group: GroupName,
        /// What is wrong.
        error: settings::DecodeError,
    },
    /// The kernel took the partition's state, but not the partition, or it lost it since.
    #[error("{}", partition(group, state, cause.as_deref()))]
    InvalidPartition {
        /// The group.
        group: GroupName,
        /// What the kernel says.
        state: String,
        /// What was found around the group.
        cause: Option<String>,
        /// The command that ends that.
        fix: Option<String>,
    },
    /// A group that was made again does not contain what it contained before.
    #[error("{}", left.join("; "))]
    NotAsBefore {
        /// What is different, each with the reason.
        left: Vec<String>,
    },
    /// A limit of memory that the group's use is above of: v2 would kill its tasks.
    #[error(
        "memory.max of group '{group}' is not lowered to {limit}: it uses {used}, and the kernel would kill its tasks"
    )]
    WouldKill {
        /// The group.
        group: GroupName,
        /// What it uses.
        used: Bytes,
        /// The limit that is not written.
        limit: Bytes,
    },
    /// All steps were done, but the end of the journal could not be written, so nobody would know of them.
    #[error("the change could not be recorded: {reason}")]
    Unrecorded {
        /// The system's answer.
        reason: String,
    },
    /// A unit's drop-in file that somebody made, or changed since it was applied.
    #[error("{} has lines that are not Ringfence's: it stays as it is", path.display())]
    DropInOfOthers {
        /// The file.
        path: PathBuf,
    },
    /// The change would stop the processes that have to finish it.
    #[error("group '{group}' holds ringfence itself, which could not finish the change once it is frozen")]
    FreezesItself {
        /// The group.
        group: GroupName,
    },
    /// A request to stop came before a step.
    #[error("interrupted")]
    Interrupted,
    /// A write failed, and what had been written before was rolled back, or not.
    #[error("{error}\n{rest}", rest = if .left.is_empty() { "nothing was changed".to_owned() } else { format!("partly changed, as this could not be put back: {}", .left.join("; ")) })]
    Undone {
        /// The refusal.
        error: Box<Error>,
        /// What could not be rolled back, each with the reason.
        left: Vec<String>,
    },
}

fn partition(group: &GroupName, state: &str, cause: Option<&str>) -> String {
    let cause = cause.map_or_else(String::new, |cause| format!("; {cause}"));
    match settings::partition(state).1.is_some() {
        true => format!("the kernel keeps the partition of group '{group}' invalid: {state}{cause}"),
        false => format!("group '{group}' lost its partition: it is {state}{cause}"),
    }
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Kernel(error) => error.hint(),
            Error::Plan(error) => error.hint(),
            Error::Lacks { instead, .. } => Some(instead.clone()),
            Error::Decode { error, .. } => error.hint(),
            Error::InvalidPartition { fix: Some(fix), .. } => Some(format!("{fix}, then try again")),
            Error::InvalidPartition { group, .. } => Some(format!(
                "a partition needs CPUs that no sibling uses and a parent that hands them down: {} \
                 cpuset.cpus.partition=member cpuset.cpus=…, then cpuset.cpus.partition=root again (since Linux 6.7 \
                 with cpuset.cpus.exclusive along the whole path)",
                Command::ringfence("set").group(group)
            )),
            Error::Interrupted | Error::NotAsBefore { .. } => None,
            Error::WouldKill { group, limit, .. } => Some(format!(
                "{} slows the group down until it uses less; then try again",
                Command::ringfence("set").group(group).arg(format!("memory.high={}", limit.0))
            )),
            Error::Unrecorded { .. } => Some("df shows where the disk is full".to_owned()),
            Error::DropInOfOthers { path } => Some(plan::keep_lines(path)),
            Error::FreezesItself { .. } => {
                Some("run ringfence from a shell outside of that group".to_owned())
            }
            Error::Undone { error, .. } => error.hint(),
        }
    }

    /// With what to do about it, where there is no other place to say it.
    pub(crate) fn in_words(&self) -> String {
        self.hint().map_or_else(|| self.to_string(), |hint| format!("{self} ({hint})"))
    }
}
