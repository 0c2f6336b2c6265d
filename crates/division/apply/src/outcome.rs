//! What a change is for, and what came of it.

use std::path::PathBuf;

use crate::record::{By, RulesFile};

/// Who requests a change, and for which.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// Who.
    pub by: By,
    /// In words, for the history: `layout /etc/ringfence/layout.toml`.
    pub what: String,
    /// It is undone unless it is confirmed within this many seconds ([`crate::confirm`]).
    pub confirm_within: Option<u64>,
    /// It is a whole layout: the next one takes back what it does not repeat.
    pub layout: bool,
    /// Its file, if it has rules for processes.
    pub rules: Option<RulesFile>,
    /// Its file or directory, absolute.
    pub file: Option<PathBuf>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// Its number in the history; `None` if there was nothing to do.
    pub generation: Option<u32>,
    /// How many steps were done. A plan's and a generation's `steps` are lists.
    #[serde(rename = "step_count")]
    pub steps: usize,
    /// Where the kernel holds something else than was requested.
    pub differences: Vec<Difference>,
    /// Threads of the kernel that stay on CPUs which another group has for itself.
    pub unmoved: Vec<Unmoved>,
    /// What an undo, or a layout that no longer names it, could not take back, each with the reason.
    pub left: Vec<String>,
    /// Values of others that an undo brought back: they were set between a generation in effect and the one undone.
    pub foreign: Vec<Difference>,
    /// Values of others that went with what an undo took back: they were set after it.
    pub replaced: Vec<String>,
    /// What an undo took back: generations with what they were, oldest first.
    #[serde(skip)]
    pub undone: Vec<String>,
}

impl Outcome {
    /// Of a request that had nothing to do.
    pub fn nothing() -> Outcome {
        Outcome {
            generation: None,
            steps: 0,
            differences: Vec::new(),
            unmoved: Vec::new(),
            left: Vec::new(),
            foreign: Vec::new(),
            replaced: Vec::new(),
            undone: Vec::new(),
        }
    }
}

/// A file that holds something else than was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// The group.
    pub group: String,
    /// The file's path.
    pub file: String,
    /// What was written.
    pub requested: String,
    /// What it holds.
    pub actual: String,
    /// Why.
    pub reason: String,
}

/// A thread that can't leave its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unmoved {
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub comm: String,
    /// The CPUs it may run on.
    pub cpus: units::CpuSet,
}

impl By {
    /// The caller.
    pub fn caller() -> By {
        let known = |variable: &str| std::env::var(variable).ok().filter(|user| !user.is_empty());
        let number =
            || std::fs::read_to_string("/proc/self/loginuid").ok().filter(|id| id.trim() != "4294967295");
        let login = known("SUDO_USER").or_else(|| known("LOGNAME")).or_else(number);
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        By {
            uid: rustix::process::geteuid().as_raw(),
            login: login.map(|login| login.trim().to_owned()),
            pid: std::process::id(),
            command: words.join(" "),
        }
    }
}

/// What came of one action.
#[derive(Default)]
pub(crate) struct Done {
    pub difference: Option<Difference>,
    pub unmoved: Vec<Unmoved>,
    /// What is not quite as it was before.
    pub note: Option<String>,
}
