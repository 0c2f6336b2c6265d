//! How a group differs from what was applied to it, as data and in words.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use units::hint;

/// How a group is not as requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "drift", rename_all = "kebab-case")]
pub enum Drift {
    /// Somebody changed a value.
    Changed {
        /// The file's path.
        file: PathBuf,
        /// What was requested.
        requested: String,
        /// What it holds; `None` if it can't be read any more.
        actual: Option<String>,
    },
    /// Somebody gave a file, or a directory, to another, or changed its mode.
    Owner {
        /// Its path.
        file: PathBuf,
        /// What was requested: `user 1000, mode 660`.
        requested: String,
        /// What of that it has.
        actual: String,
    },
    /// Somebody removed or, on v1, renamed it.
    Gone {
        /// The directory.
        directory: PathBuf,
        /// Directories beside it that no generation in effect made, and that have all values of this one: it may have
        /// been renamed to one of them.
        alike: Vec<PathBuf>,
    },
    /// Somebody renamed it.
    Renamed {
        /// The directory as it was made.
        directory: PathBuf,
        /// The same by its name of now.
        to: PathBuf,
        /// Does another directory have the old name?
        is_there: bool,
    },
    /// The unit's processes are in another group than when it was applied: its slice or its name is another.
    Elsewhere {
        /// The unit.
        unit: String,
        /// Where systemd has it.
        directory: PathBuf,
    },
    /// Somebody masked the unit: systemd never starts it.
    Masked {
        /// The unit.
        unit: String,
    },
    /// An undo was to remove it, but somebody was in it; the next undo takes it up again.
    Stayed {
        /// The directory.
        directory: PathBuf,
        /// The generation that made it, or the last that decided anything about it.
        generation: u32,
        /// Is a process or a group in it still?
        populated: bool,
    },
    /// An undo could not restore a value; the next undo or apply tries again.
    NotRestored {
        /// The file's path.
        file: PathBuf,
        /// What it contained before the generation.
        before: String,
        /// What it contains.
        actual: String,
        /// The generation that changed it and was undone.
        generation: u32,
    },
    /// v2: processes can't use all CPUs or memory nodes of the list.
    Unavailable {
        /// The list's path.
        file: PathBuf,
        /// What was requested, which the file has.
        requested: String,
        /// What they use.
        effective: String,
        /// Why.
        reason: String,
    },
    /// Somebody changed or removed the drop-in file of the group's unit.
    DropIn {
        /// The file.
        file: PathBuf,
        /// Is it there, with other contents?
        is_there: bool,
    },
    /// An undo could not take back the drop-in file of the group's unit, or systemd did not read that it is gone; the next
    /// undo or apply tries again.
    DropInStays {
        /// The file.
        file: PathBuf,
        /// The unit.
        unit: String,
        /// The generation that wrote it and was undone.
        generation: u32,
        /// Does the file still have what the generation wrote? If not, systemd did not read it since.
        is_written: bool,
    },
    /// An undo could not unmount the hierarchy; the next one tries again.
    StaysMounted {
        /// Where.
        directory: PathBuf,
        /// The generation that mounted it and was undone.
        generation: u32,
    },
    /// Something that `isolate` moves is not as requested.
    Knob {
        /// The row of the table of knobs.
        knob: String,
        /// The file, or the thread of the kernel.
        instance: String,
        /// What was requested.
        requested: String,
        /// What it is.
        actual: String,
        /// It came since the layout was applied.
        is_new: bool,
        /// Programs that run and set it too.
        writers: Vec<String>,
    },
    /// The kernel keeps the partition invalid.
    InvalidPartition {
        /// The kernel's words.
        state: String,
    },
    /// Processes that are in the group elsewhere are not in this directory of it, or not with all of their threads:
    /// what is set there does not hold for them.
    Outside {
        /// The directory.
        directory: PathBuf,
        /// The processes without a thread there, ascending.
        processes: Vec<u32>,
        /// How many processes are in the group in any hierarchy.
        of: usize,
        /// The processes with some threads there, ascending.
        split: Vec<Split>,
    },
    /// On v1, processes of the group are in another group in some hierarchies: the other one's limits hold for them there.
    InOther {
        /// Each hierarchy's controllers.
        controllers: Vec<String>,
        /// The other group.
        group: String,
        /// The processes, ascending.
        processes: Vec<u32>,
        /// How many processes are in the group in any hierarchy.
        of: usize,
    },
}

impl Drift {
    /// The other group that processes are in, and these.
    pub fn in_other(&self) -> Option<(&str, &[u32])> {
        match self {
            Drift::InOther { group, processes, .. } => Some((group, processes)),
            _ => None,
        }
    }

    /// The processes that are not in a directory of the group with all of their threads.
    pub fn outside(&self) -> Vec<u32> {
        match self {
            Drift::Outside { processes, split, .. } => {
                processes.iter().copied().chain(split.iter().map(|split| split.process)).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Drift::Changed { file, requested, actual } => {
                let actual = actual.as_deref().unwrap_or("nothing that can be read");
                write!(f, "{}: applied {requested}, now {actual}", file.display())
            }
            Drift::Owner { file, requested, actual } => {
                write!(f, "{}: applied {requested}, now {actual}", file.display())
            }
            Drift::Gone { directory, alike } => {
                write!(f, "{} is gone: it was removed{}", directory.display(), or_renamed(alike))
            }
            Drift::Renamed { directory, to, is_there } => {
                let other = if *is_there { ", and another was made" } else { "" };
                write!(f, "{} was renamed to {}{other}", directory.display(), to.display())
            }
            Drift::Elsewhere { unit, directory } => {
                write!(f, "{unit} is in {} now, where its settings may be missing", directory.display())
            }
            Drift::Masked { unit } => {
                let unmask = hint::unmask(unit);
                write!(f, "{unit} is masked: systemd does not start it until `{unmask}`")
            }
            Drift::Stayed { directory, generation, populated } => {
                let state = match populated {
                    true => "as it is not empty: the next undo or apply removes it once it is",
                    false => "and empty now: the next undo or apply removes it",
                };
                write!(f, "{} is left over from generation {generation}, {state}", directory.display())
            }
            Drift::NotRestored { file, before, actual, generation } => write!(
                f,
                "{} still has {actual} of generation {generation}, which was undone: the kernel refused to restore {before}; the next undo or apply tries again",
                file.display()
            ),
            Drift::Unavailable { file, requested, effective, reason } => {
                write!(f, "{}: applied {requested}, in effect {effective}: {reason}", file.display())
            }
            Drift::StaysMounted { directory, generation } => write!(
                f,
                "{} is still mounted, by generation {generation}, which was undone: the next undo unmounts it once nobody uses it",
                directory.display()
            ),
            Drift::DropIn { file, is_there: true } => {
                write!(f, "{} was changed since it was applied", file.display())
            }
            Drift::DropIn { file, is_there: false } => {
                write!(
                    f,
                    "{} was removed: the settings hold until systemd reads its files again",
                    file.display()
                )
            }
            Drift::DropInStays { file, unit, generation, is_written: true } => write!(
                f,
                "{} of generation {generation}, which was undone, is in force for {unit}: the next undo or apply tries again",
                file.display()
            ),
            Drift::DropInStays { file, unit, generation, is_written: false } => write!(
                f,
                "systemd did not read that generation {generation} was undone ({}): its settings return when {unit} starts; the next undo or apply tries again",
                file.display()
            ),
            Drift::Knob { instance, requested, actual, is_new: false, writers, .. } => {
                write!(f, "{instance}: applied {requested}, now {actual}{}", also_set_by(writers))
            }
            Drift::Knob { instance, requested, actual, is_new: true, .. } => {
                write!(f, "{instance} came since it was applied: {actual}, to be {requested}")
            }
            Drift::InvalidPartition { state } => write!(f, "the kernel keeps the partition invalid: {state}"),
            Drift::Outside { directory, processes, of, split } => {
                f.write_str(&outside(directory, processes, *of, split))
            }
            Drift::InOther { controllers, group, processes, of } => {
                f.write_str(&in_other(controllers, group, processes, *of))
            }
        }
    }
}

fn also_set_by(writers: &[String]) -> String {
    match writers {
        [] => String::new(),
        [one] => format!("; {one} sets it too"),
        more => format!("; {} set it too", more.join(" and ")),
    }
}

/// What else than a removal may have happened to a directory that is gone.
fn or_renamed(alike: &[PathBuf]) -> String {
    if alike.is_empty() {
        return " or renamed".to_owned();
    }
    let alike: Vec<String> = alike.iter().map(|other| other.display().to_string()).collect();
    format!(", or renamed to {}, where its values are in force", alike.join(" or "))
}

fn outside(directory: &Path, processes: &[u32], of: usize, split: &[Split]) -> String {
    let whole = (!processes.is_empty()).then(|| (some_of(processes, of), processes));
    let in_part = split.iter().map(|Split { process, outside, of }| {
        let who = format!("{} of {of} threads of process {process} {}", outside.len(), are(outside));
        (who, outside.as_slice())
    });
    let all = whole.into_iter().chain(in_part).map(|(who, numbers)| {
        let directory = directory.display();
        format!("{who} not in {directory}: what is set there does not hold for {}", few(numbers))
    });
    all.collect::<Vec<String>>().join("; ")
}

fn in_other(controllers: &[String], group: &str, processes: &[u32], of: usize) -> String {
    format!(
        "{} in group '{}' of {}, whose limits hold there for {}",
        some_of(processes, of),
        units::printable(group),
        controllers.join(", "),
        few(processes)
    )
}

/// `2 of 5 processes are`.
fn some_of(processes: &[u32], of: usize) -> String {
    format!("{} of {} {}", processes.len(), units::counted(of, "process"), are(processes))
}

fn are(numbers: &[u32]) -> &'static str {
    if numbers.len() == 1 { "is" } else { "are" }
}

/// The first of them.
fn few(numbers: &[u32]) -> String {
    let some: Vec<String> = numbers.iter().take(5).map(u32::to_string).collect();
    let dots = if numbers.len() > 5 { ", …" } else { "" };
    format!("{}{dots}", some.join(", "))
}

/// A process with some of its threads in a directory, as v1 allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Its number.
    pub process: u32,
    /// The threads that are elsewhere, ascending.
    pub outside: Vec<u32>,
    /// How many it has.
    pub of: usize,
}
