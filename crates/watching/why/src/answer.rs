//! What `why` answers: the causes of a group's lost time, with the time that each cost and the figures behind it.

use std::time::Duration;

use monitor::interruptions::Interrupted;
use serde::Serialize;

use super::causes::{Effect, Kind};
use monitor::FigureUnit;

/// What slowed a group down.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The group.
    pub group: String,
    /// How long it was looked at, in seconds.
    pub seconds: f64,
    /// Its tasks.
    pub tasks: usize,
    /// What it used, in the order of importance.
    pub used: Vec<Number>,
    /// What slowed it down, the worst first; empty if nothing did.
    pub causes: Vec<Cause>,
    /// What did not slow it down now, and would with other work.
    pub notes: Vec<Note>,
    /// What interrupted its isolated CPUs, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
}

/// What did not slow a group down now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A partition is invalid, so that its CPUs are shared.
    InvalidPartition,
    /// Real-time tasks would be refused.
    NoRealtimeBudget,
    /// The kernel does not count its CPU time.
    UncountedCpuTime,
    /// What interrupted its isolated CPUs, which no time of its tasks is counted for.
    Interrupted,
}

/// Something that did not slow the group down now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Note {
    /// What.
    pub kind: NoteKind,
    /// In words.
    pub sentence: String,
    /// The command that would change it, if one would.
    pub hint: Option<String>,
}

/// One thing that slowed the group down.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What.
    pub kind: Kind,
    /// The group whose setting or work it is.
    pub at: String,
    /// How bad.
    pub effect: Effect,
    /// The time that it cost; `None` where work was refused and not slowed.
    pub lost: Option<Lost>,
    /// The part that it had in all that the group's tasks used and lost, 0 to 1.
    pub share: Option<f64>,
    /// The figures behind it.
    pub numbers: Vec<Number>,
    /// In words.
    pub sentence: String,
    /// The command that would change it, if one would.
    pub hint: Option<String>,
    /// Where equals contend: a command for each of them, of which the user carries out at most one.
    pub choices: Vec<Choice>,
}

impl Cause {
    /// Without any time, figures or words.
    pub(crate) fn new(kind: Kind, at: impl Into<String>) -> Cause {
        Cause {
            kind,
            at: at.into(),
            effect: kind.effect(),
            lost: None,
            share: None,
            numbers: Vec::new(),
            sentence: String::new(),
            hint: None,
            choices: Vec::new(),
        }
    }
}

/// One way to end a contention of equals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The group that gets more by it.
    pub group: String,
    /// The command.
    pub command: String,
}

/// Time that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lost {
    /// Seconds of tasks' time.
    pub seconds: f64,
    /// How that is known.
    pub known: Certainty,
}

/// How well a time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The kernel counted it.
    Measured,
    /// From samples of tasks' states.
    Sampled,
    /// It is at most this.
    AtMost,
}

impl Lost {
    pub(crate) fn new(time: Duration, known: Certainty) -> Lost {
        Lost { seconds: time.as_secs_f64(), known }
    }

    /// What it counts beside others: a bound counts half.
    pub(crate) fn counted(self) -> f64 {
        if self.known == Certainty::AtMost { self.seconds / 2.0 } else { self.seconds }
    }
}

/// A figure behind a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// What it is: a field's name where there is one.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: FigureUnit,
}

pub(crate) fn seconds(name: &'static str, time: Duration) -> Number {
    Number { name, value: time.as_secs_f64(), unit: FigureUnit::Seconds }
}

pub(crate) fn count(name: &'static str, number: u64) -> Number {
    Number { name, value: number as f64, unit: FigureUnit::Count }
}

pub(crate) fn bytes(name: &'static str, number: u64) -> Number {
    Number { name, value: number as f64, unit: FigureUnit::Bytes }
}
