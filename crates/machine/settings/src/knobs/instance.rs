//! Where a knob stands, as a record has it, and what was seen there.

use serde::{Deserialize, Serialize};

/// One place where a knob is set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Instance {
    /// A file, by its absolute path.
    File(String),
    /// A thread of the kernel.
    Thread {
        /// Its number.
        thread: u32,
        /// When it started, in clock ticks since boot: together with its number, this identifies it.
        started: u64,
        /// The kernel's name of it.
        comm: String,
    },
    /// The scheduling policy of a thread of the kernel.
    Policy {
        /// The thread's number.
        policy_of: u32,
        /// As of [`Instance::Thread`].
        started: u64,
        /// The kernel's name of it.
        comm: String,
    },
}

impl Instance {
    /// The CPU that it is about: the number behind `cpu` of one of a file's directories, or behind the name of a thread.
    pub fn cpu(&self) -> Option<usize> {
        match self {
            Instance::File(path) => path.split('/').find_map(|name| name.strip_prefix("cpu")?.parse().ok()),
            Instance::Policy { comm, .. } => comm.split_once('/')?.1.parse().ok(),
            Instance::Thread { .. } => None,
        }
    }
}

impl std::fmt::Display for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Instance::File(path) => f.write_str(path),
            Instance::Thread { thread, comm, .. } => write!(f, "kernel thread {thread} ({comm})"),
            Instance::Policy { policy_of, comm, .. } => {
                write!(f, "scheduling policy of kernel thread {policy_of} ({comm})")
            }
        }
    }
}

/// What was seen of a knob at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The row.
    pub knob: String,
    /// The place.
    pub instance: Instance,
    /// Its text, without the newline.
    pub text: String,
    /// What it was before the layouts in effect, where that is known and theirs still stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The kernel says beforehand, or said at an earlier write, that it stays as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// The mount that refuses to write it, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<ReadOnly>,
}

/// A mount that is read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOnly {
    /// Where it is mounted.
    pub mount: String,
    /// The command that makes it writable; `None` for a caller who may not, as in most containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remount: Option<String>,
}
