//! Why a plan was not carried out, or a generation not brought back; and what state the machine is in then.

use std::path::PathBuf;

use crate::Error;

/// Why; each says whether anything was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Refused before anything was changed.
    #[error("{0}")]
    Refused(#[from] Error),
    /// The state directory can't be used; nothing was changed.
    #[error("cannot {what} {}: {reason}", path.display())]
    State {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer, or what is wrong.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A record is of a later version of this program: nothing is wrong with it.
    #[error("cannot read {}: format {format} is of a later version of this program", path.display())]
    Later {
        /// The record.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// Another change is under way.
    #[error("another change is under way: {} holds {}", holder(*pid, command), path.display())]
    Locked {
        /// Who; `None` if it is not known (yet): it writes its number once it holds the lock.
        pid: Option<u32>,
        /// His command line; empty if it is not known.
        command: String,
        /// The lock.
        path: PathBuf,
    },
    /// The last generation waits for its confirmation.
    #[error("generation {generation} waits to be confirmed for another {seconds} s")]
    Unconfirmed {
        /// Which.
        generation: u32,
        /// How long still.
        seconds: u64,
        /// What a user does about it.
        hint: String,
    },
    /// The machine is no longer as it was when the plan was made; nothing was changed.
    #[error("the machine changed after the plan was made: {what}")]
    Stale {
        /// What is different.
        what: String,
    },
    /// A step failed. Everything done before it was rolled back, but for what is left.
    #[error("step {} of {steps} failed: {error}\n{}", step + 1, after(left))]
    RolledBack {
        /// The generation's number in the history.
        generation: u32,
        /// Which step, from 0.
        step: usize,
        /// Of how many.
        steps: usize,
        /// The refusal.
        error: Box<Error>,
        /// What could not be rolled back, each with the reason.
        left: Vec<String>,
    },
    /// There is no such generation.
    #[error("{}", no_generation(*requested, *last))]
    NoGeneration {
        /// The number.
        requested: u32,
        /// The last one; 0 if there is none.
        last: u32,
    },
    /// Nothing that was applied is in effect.
    #[error("there is nothing to undo: no generation is in effect")]
    NothingToUndo,
    /// A generation came after the one that is to be taken back, and may build on it.
    #[error("generation {behind} came after it and is in effect; nothing was changed")]
    Behind {
        /// That generation.
        behind: u32,
        /// The last one in effect before the one that is meant; 0: none.
        to: u32,
    },
    /// No generation is recorded: none was made, or the records were lost.
    #[error("there is nothing to undo: no generation is recorded in {}", directory.display())]
    NothingRecorded {
        /// The state directory.
        directory: PathBuf,
    },
    /// The generation was made before the machine was booted.
    #[error(
        "generation {generation} was in effect before the machine was booted, and control groups do not outlive that"
    )]
    OtherBoot {
        /// Which.
        generation: u32,
    },
    /// There is nothing that could be confirmed.
    #[error("generation {generation} is not waiting to be confirmed: {why}")]
    NotWaiting {
        /// Which.
        generation: u32,
        /// Why not.
        why: &'static str,
        /// It could have been confirmed before.
        late: bool,
    },
}

fn after(left: &[String]) -> String {
    if left.is_empty() {
        "all is as before".to_owned()
    } else {
        format!("all is as before, except for what could not be put back: {}", left.join("; "))
    }
}

/// `process 7 (ringfence apply l.toml)`, or `another process`.
fn holder(pid: Option<u32>, command: &str) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid} ({command})"))
}

impl Failure {
    /// Who holds the lock, in words; `None` of another failure.
    pub fn holder(&self) -> Option<String> {
        match self {
            Failure::Locked { pid, command, .. } => Some(holder(*pid, command)),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Failure::Refused(error) => error.hint(),
            Failure::RolledBack { error, .. } => error.hint(),
            Failure::State { hint, .. } => hint.clone(),
            Failure::Later { .. } => Some("use that version, or a later one".to_owned()),
            Failure::Locked { pid: Some(pid), .. } => {
                Some(format!("wait for it, or see what it does: ps -fp {pid}"))
            }
            Failure::Locked { pid: None, .. } => Some("wait for it".to_owned()),
            Failure::Unconfirmed { hint, .. } => Some(hint.clone()),
            Failure::Stale { .. } => Some("plan again".to_owned()),
            Failure::NothingRecorded { .. } => Some(
                "if there were records before, it is not known what they put in force: ringfence list shows the groups that exist".to_owned(),
            ),
            Failure::NotWaiting { late: true, .. } => {
                Some("to have it after all: ringfence apply with the same layout".to_owned())
            }
            Failure::NoGeneration { .. } | Failure::NothingToUndo | Failure::NotWaiting { .. } => {
                Some("ringfence history lists what was done".to_owned())
            }
            Failure::Behind { to, .. } => Some(format!("ringfence undo {to} takes both back")),
            Failure::OtherBoot { .. } => Some("ringfence apply with the layout of that time".to_owned()),
        }
    }
}

fn no_generation(requested: u32, last: u32) -> String {
    match last {
        0 if requested == 0 => "no generation is recorded: there is nothing to confirm".to_owned(),
        0 => format!("there is no generation {requested}: none is recorded"),
        last if requested > last => format!("there is no generation {requested}: the last is {last}"),
        _ => format!("generation {requested} has no record: what was in effect after it is not known"),
    }
}
