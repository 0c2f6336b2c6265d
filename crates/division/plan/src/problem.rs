//! Why a machine can't satisfy a layout: which demands conflict, by how much, what would make it fit, and where it
//! was requested.

use layout::{Diagnostic, Origin};
use settings::Version;

/// One reason. All problems are reported at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The layout says that it is for another machine, and in what that differs.
    #[error("{}", .0.message)]
    OtherMachine(Diagnostic),
    /// Demands that can't be satisfied together, or not on this machine.
    #[error("{message}")]
    Unsatisfied {
        /// Which demand, what it requests, what the machine has, and how much is missing.
        message: String,
        /// Where it was requested.
        origin: Origin,
        /// The demands that it conflicts with.
        against: Vec<Against>,
        /// How many CPUs are missing; 0 where it is not a matter of number.
        missing: usize,
        /// What would make it fit.
        hint: String,
    },
    /// A value that can't be read on this machine, or not written on this version.
    #[error("group '{group}': {message}")]
    Value {
        /// The group.
        group: String,
        /// What is wrong.
        message: String,
        /// Where it was given.
        origin: Origin,
        /// What to do instead.
        hint: Option<String>,
    },
    /// Two settings of a group that contradict each other.
    #[error("{message}")]
    Contradiction {
        /// Both, and what they say.
        message: String,
        /// Where the first was given.
        origin: Origin,
        /// Where the other was given.
        other: Origin,
        /// What to do.
        hint: Option<String>,
    },
    /// No hierarchy holds the controller.
    #[error("group '{group}' needs the controller {controller}, which no hierarchy holds")]
    NoController {
        /// The group.
        group: String,
        /// The kernel's name of it.
        controller: String,
        /// Where it was requested.
        origin: Origin,
    },
    /// A user or group of the system that does not exist.
    #[error("no {kind} '{name}' exists on this system")]
    Nobody {
        /// `user` or `group`.
        kind: &'static str,
        /// The name.
        name: String,
        /// Where it was named.
        origin: Origin,
    },
    /// The kernel would refuse.
    #[error("{message}")]
    Refused {
        /// What it would refuse, and why.
        message: String,
        /// Whose sake it is for.
        origin: Origin,
        /// What to do.
        hint: String,
        /// The version that refuses.
        version: Version,
    },
}

/// A demand that another one conflicts with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Against {
    /// Where it was requested; `None` if it is no demand of the layout but an existing group.
    pub origin: Option<Origin>,
    /// What it requests or has.
    pub what: String,
}

impl Problem {
    /// What would fix it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Problem::OtherMachine(diagnostic) => diagnostic.hint.clone(),
            Problem::Unsatisfied { hint, .. } | Problem::Refused { hint, .. } => Some(hint.clone()),
            Problem::Value { hint, .. } | Problem::Contradiction { hint, .. } => hint.clone(),
            Problem::NoController { controller, .. } => {
                Some(format!("mount it (ringfence mount {controller}), or see ringfence doctor"))
            }
            Problem::Nobody { kind, name, .. } => Some(format!("{kind}add {name}")),
        }
    }

    /// To be shown with its places in the files.
    pub fn diagnostic(&self) -> Diagnostic {
        let error =
            |origin: &Origin| Diagnostic::error(self.to_string()).at(origin.clone()).maybe_hint(self.hint());
        match self {
            Problem::OtherMachine(diagnostic) => diagnostic.clone(),
            Problem::Unsatisfied { origin, against, .. } => {
                against.iter().fold(error(origin), |error, other| match &other.origin {
                    Some(origin) => error.also(origin.clone(), other.what.clone()),
                    None => error,
                })
            }
            Problem::Contradiction { origin, other, .. } => {
                error(origin).also(other.clone(), "the other one")
            }
            Problem::Value { origin, .. }
            | Problem::NoController { origin, .. }
            | Problem::Nobody { origin, .. }
            | Problem::Refused { origin, .. } => error(origin),
        }
    }
}
