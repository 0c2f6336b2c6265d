//! Why a request was refused or failed, as its answer (RFC 9457).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// What failed and why.
    #[serde(rename = "detail")]
    pub message: String,
    /// What would fix it.
    pub hint: Option<String>,
}

impl Problem {
    /// With an HTTP status.
    pub fn new(status: u16, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), hint: None }
    }

    /// 400: the request is not valid.
    pub fn bad(message: impl Into<String>) -> Problem {
        Problem::new(400, message)
    }

    /// 403: the peer may not.
    pub fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(403, message)
    }

    /// With what would fix it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }
}

impl From<settings::GroupNameError> for Problem {
    fn from(error: settings::GroupNameError) -> Problem {
        kernel::Error::from(error).into()
    }
}

impl From<kernel::Error> for Problem {
    fn from(error: kernel::Error) -> Problem {
        let status = match &error {
            kernel::Error::BadName(_) => 400,
            kernel::Error::NoGroup { .. } | kernel::Error::NoProcess { .. } => 404,
            kernel::Error::NotControlled { .. } | kernel::Error::NoController { .. } => 404,
            kernel::Error::Outside { .. } | kernel::Error::NoHierarchy => 500,
            partial if partial.is_partial() => 500,
            _ => 409,
        };
        Problem { status, message: error.to_string(), hint: error.hint() }
    }
}

impl From<apply::Error> for Problem {
    fn from(error: apply::Error) -> Problem {
        match error {
            apply::Error::Kernel(error) => error.into(),
            other => {
                let partial = matches!(&other, apply::Error::Undone { left, .. } if !left.is_empty());
                Problem {
                    status: if partial { 500 } else { 409 },
                    message: other.to_string(),
                    hint: other.hint(),
                }
            }
        }
    }
}

impl From<settings::UnknownSetting> for Problem {
    fn from(error: settings::UnknownSetting) -> Problem {
        Problem::bad(error.to_string()).hint(error.hint())
    }
}

impl From<settings::ValueError> for Problem {
    fn from(error: settings::ValueError) -> Problem {
        Problem { status: 400, message: error.to_string(), hint: error.hint() }
    }
}

impl From<system::NoProcess> for Problem {
    fn from(gone: system::NoProcess) -> Problem {
        Problem::new(404, gone.to_string())
    }
}
