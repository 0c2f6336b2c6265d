//! Refusals: what failed and why, with what fixes it and an HTTP status.

use std::fmt::Display;

pub use crate::api::session::{Problem, ProblemKind};

impl Problem {
    /// With an HTTP status.
    pub(crate) fn new(status: u16, kind: ProblemKind, message: impl Display) -> Problem {
        Problem {
            status,
            message: message.to_string(),
            hint: None,
            kind: Some(kind),
            diagnostics: Vec::new(),
            current: Default::default(),
        }
    }

    /// 400: the request makes no sense.
    pub(crate) fn invalid(message: impl Display) -> Problem {
        Problem::new(400, ProblemKind::Invalid, message)
    }

    /// 403: it comes from where no page of this server is.
    pub(crate) fn forbidden(message: impl Display) -> Problem {
        Problem::new(403, ProblemKind::Denied, message)
    }

    /// 404.
    pub(crate) fn missing(message: impl Display) -> Problem {
        Problem::new(404, ProblemKind::Missing, message)
    }

    /// 409: somebody else was faster.
    pub(crate) fn conflict(message: impl Display) -> Problem {
        Problem::new(409, ProblemKind::Conflict, message)
    }

    /// 422: it was tried, and nothing was changed.
    pub(crate) fn failed(message: impl Display) -> Problem {
        Problem::new(422, ProblemKind::Failed, message)
    }

    /// 503: it may work later.
    pub(crate) fn unavailable(message: impl Display) -> Problem {
        Problem::new(503, ProblemKind::Unavailable, message)
    }

    pub(crate) fn hint(self, hint: impl Display) -> Problem {
        Problem { hint: Some(hint.to_string()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> Problem {
        Problem { hint: hint.or(self.hint), ..self }
    }
}

impl From<kernel::Error> for Problem {
    fn from(error: kernel::Error) -> Problem {
        let problem = match &error {
            kernel::Error::NoGroup { .. } => Problem::missing(&error),
            kernel::Error::BadName(_) => Problem::invalid(&error),
            _ => Problem::failed(&error),
        };
        problem.maybe_hint(error.hint())
    }
}

impl From<settings::GroupNameError> for Problem {
    fn from(error: settings::GroupNameError) -> Problem {
        kernel::Error::from(error).into()
    }
}

impl From<apply::Error> for Problem {
    fn from(error: apply::Error) -> Problem {
        let hint = error.hint();
        match error {
            apply::Error::Kernel(error) => error.into(),
            error => Problem::failed(error).maybe_hint(hint),
        }
    }
}

impl From<monitor::LogError> for Problem {
    fn from(error: monitor::LogError) -> Problem {
        let hint = error.hint();
        Problem::unavailable(error).maybe_hint(hint)
    }
}
