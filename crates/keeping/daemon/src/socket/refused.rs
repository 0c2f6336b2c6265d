//! Why a request was not carried out, as its answer.

use schemars::JsonSchema;
use serde::Serialize;

/// Why something was not done, as an answer (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// What was refused and why.
    #[serde(rename = "detail")]
    pub message: String,
    /// What would fix it.
    pub hint: Option<String>,
}

impl Refused {
    /// With an HTTP status.
    pub fn new(status: u16, message: impl Into<String>) -> Refused {
        Refused { status, message: message.into(), hint: None }
    }

    /// 400: the request makes no sense.
    pub fn bad(message: impl Into<String>) -> Refused {
        Refused::new(400, message)
    }

    /// 403: the peer may not.
    pub fn forbidden(message: impl Into<String>) -> Refused {
        Refused::new(403, message)
    }

    /// With what would fix it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Refused {
        Refused { hint: Some(hint.into()), ..self }
    }
}

impl From<settings::GroupNameError> for Refused {
    fn from(error: settings::GroupNameError) -> Refused {
        kernel::Error::from(error).into()
    }
}

impl From<kernel::Error> for Refused {
    fn from(error: kernel::Error) -> Refused {
        let status = match &error {
            kernel::Error::BadName(_) => 400,
            kernel::Error::NoGroup { .. } | kernel::Error::NoProcess { .. } => 404,
            kernel::Error::NotControlled { .. } | kernel::Error::NoController { .. } => 404,
            kernel::Error::Outside { .. } | kernel::Error::NoHierarchy => 500,
            partial if partial.is_partial() => 500,
            _ => 409,
        };
        Refused { status, message: error.to_string(), hint: error.hint() }
    }
}

impl From<apply::Error> for Refused {
    fn from(error: apply::Error) -> Refused {
        match error {
            apply::Error::Kernel(error) => error.into(),
            other => {
                let partial = matches!(&other, apply::Error::Undone { left, .. } if !left.is_empty());
                Refused {
                    status: if partial { 500 } else { 409 },
                    message: other.to_string(),
                    hint: other.hint(),
                }
            }
        }
    }
}

impl From<settings::UnknownSetting> for Refused {
    fn from(error: settings::UnknownSetting) -> Refused {
        Refused::bad(error.to_string()).hint(error.hint())
    }
}

impl From<settings::ValueError> for Refused {
    fn from(error: settings::ValueError) -> Refused {
        Refused { status: 400, message: error.to_string(), hint: error.hint() }
    }
}

impl From<system::Gone> for Refused {
    fn from(gone: system::Gone) -> Refused {
        Refused::new(404, gone.to_string())
    }
}
