//! Why a request was refused or failed: what went wrong, with an HTTP status, on the socket and for the page alike. The socket
//! writes less of it than the page, by the names of RFC 9457.

use std::{collections::BTreeMap, fmt::Display};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Diagnostic;

/// Why a request is refused; nothing was changed unless the message says so.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// What and why.
    pub message: String,
    /// The command or step that fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the page can act on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProblemKind>,
    /// What is wrong with the layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Of a conflict: the values that the settings have now, or the generation now as `generation`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub current: BTreeMap<String, String>,
}

/// What the page can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// There is no session, or it is over: a new URL is needed.
    SessionOver,
    /// The server was started without --write.
    ReadOnly,
    /// Somebody else made a change meanwhile.
    Conflict,
    /// The input makes no sense.
    Invalid,
    /// What is named is not there.
    Missing,
    /// This user may not do it.
    Denied,
    /// It was tried and failed.
    Failed,
    /// What would answer does not, or is busy.
    Unavailable,
}

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct SocketProblem {
    /// The HTTP status.
    pub status: u16,
    /// What failed and why.
    pub detail: String,
    /// What would fix it.
    pub hint: Option<String>,
}

impl From<&Problem> for SocketProblem {
    fn from(problem: &Problem) -> SocketProblem {
        let Problem { status, message, hint, .. } = problem;
        SocketProblem { status: *status, detail: message.clone(), hint: hint.clone() }
    }
}

impl From<SocketProblem> for Problem {
    fn from(SocketProblem { status, detail, hint }: SocketProblem) -> Problem {
        Problem::new(status, detail).maybe_hint(hint)
    }
}

impl Problem {
    /// With an HTTP status, and what that mostly means.
    pub fn new(status: u16, message: impl Display) -> Problem {
        let kind = match status {
            401 => ProblemKind::SessionOver,
            403 | 421 => ProblemKind::Denied,
            404 => ProblemKind::Missing,
            409 => ProblemKind::Conflict,
            422 | 500 => ProblemKind::Failed,
            503 => ProblemKind::Unavailable,
            _ => ProblemKind::Invalid,
        };
        let (diagnostics, current) = Default::default();
        Problem { status, message: message.to_string(), hint: None, kind: Some(kind), diagnostics, current }
    }

    /// Of another kind.
    #[must_use]
    pub fn kind(self, kind: ProblemKind) -> Problem {
        Problem { kind: Some(kind), ..self }
    }

    /// 400: the request makes no sense.
    pub fn invalid(message: impl Display) -> Problem {
        Problem::new(400, message)
    }

    /// 403: who asks may not.
    pub fn forbidden(message: impl Display) -> Problem {
        Problem::new(403, message)
    }

    /// 404.
    pub fn missing(message: impl Display) -> Problem {
        Problem::new(404, message)
    }

    /// 409: somebody else was faster.
    pub fn conflict(message: impl Display) -> Problem {
        Problem::new(409, message)
    }

    /// 422: it was tried, and nothing was changed.
    pub fn failed(message: impl Display) -> Problem {
        Problem::new(422, message)
    }

    /// 503: it may work later.
    pub fn unavailable(message: impl Display) -> Problem {
        Problem::new(503, message)
    }

    /// With what would fix it.
    #[must_use]
    pub fn hint(self, hint: impl Display) -> Problem {
        Problem { hint: Some(hint.to_string()), ..self }
    }

    /// The same, where something would.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Problem {
        Problem { hint: hint.or(self.hint), ..self }
    }
}

impl From<settings::GroupNameError> for Problem {
    fn from(error: settings::GroupNameError) -> Problem {
        kernel::Error::from(error).into()
    }
}

impl From<kernel::Error> for Problem {
    fn from(error: kernel::Error) -> Problem {
        let problem = match &error {
            kernel::Error::BadName(_) => Problem::invalid(&error),
            kernel::Error::NoGroup { .. } | kernel::Error::NoProcess { .. } => Problem::missing(&error),
            kernel::Error::NotControlled { .. } | kernel::Error::NoController { .. } => {
                Problem::missing(&error)
            }
            kernel::Error::Outside { .. } | kernel::Error::NoHierarchy => Problem::new(500, &error),
            partial if partial.is_partial() => Problem::new(500, &error),
            _ => Problem::new(409, &error).kind(ProblemKind::Failed),
        };
        problem.maybe_hint(error.hint())
    }
}

impl From<apply::Error> for Problem {
    fn from(error: apply::Error) -> Problem {
        let hint = error.hint();
        match error {
            apply::Error::Kernel(error) => error.into(),
            apply::Error::Undone { ref left, .. } if !left.is_empty() => {
                Problem::new(500, error).maybe_hint(hint)
            }
            error => Problem::new(409, error).kind(ProblemKind::Failed).maybe_hint(hint),
        }
    }
}

impl From<monitor::LogError> for Problem {
    fn from(error: monitor::LogError) -> Problem {
        let hint = error.hint();
        Problem::unavailable(error).maybe_hint(hint)
    }
}

impl From<settings::UnknownSetting> for Problem {
    fn from(error: settings::UnknownSetting) -> Problem {
        Problem::invalid(&error).hint(error.hint())
    }
}

impl From<settings::ValueError> for Problem {
    fn from(error: settings::ValueError) -> Problem {
        Problem::invalid(&error).maybe_hint(error.hint())
    }
}

impl From<system::NoProcess> for Problem {
    fn from(gone: system::NoProcess) -> Problem {
        Problem::missing(gone)
    }
}
