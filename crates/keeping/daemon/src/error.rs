//! Why the daemon can't start or go on, and why a reload left the old configuration active.

/// Why the daemon ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration has errors; each is in the text, with its place.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// No hierarchy, or no unit of systemd for our groups.
    #[error(transparent)]
    Kernel(#[from] kernel::Error),
    /// The state directory can't be used.
    #[error(transparent)]
    State(#[from] apply::Failure),
    /// The kernel refuses process events.
    #[error(transparent)]
    Events(#[from] events::Error),
    /// The socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] crate::socket::ServeError),
    /// A new exec gate did not answer; the old one remains.
    #[error("the new strict rules are not active: their exec gate does not answer; the old one remains")]
    NoGate,
    /// Another daemon keeps the same state.
    #[error("another daemon is running: it has locked {}", path.display())]
    Second {
        /// The lock.
        path: std::path::PathBuf,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// What it was for.
        what: &'static str,
        /// The system's answer.
        error: std::io::Error,
    },
}

/// Why a configuration can't be used; the one before it stays active.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{summary}")]
pub struct ConfigurationError {
    /// In a line.
    pub summary: String,
    /// Every error with its place, as `ringfence check` shows them; may be empty.
    pub details: String,
}

impl From<kernel::Error> for ConfigurationError {
    fn from(error: kernel::Error) -> ConfigurationError {
        let hint = error.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
        ConfigurationError { summary: error.to_string(), details: hint }
    }
}

impl Error {
    /// For `map_err`: a system call's error.
    pub(crate) fn of(what: &'static str) -> impl Fn(std::io::Error) -> Error {
        move |error| Error::System { what, error }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Kernel(error) => error.hint(),
            Error::State(failure) => failure.hint(),
            Error::Second { .. } => Some("systemctl status ringfenced, or end it first".to_owned()),
            // theirs are part of their texts
            Error::Events(_)
            | Error::Socket(_)
            | Error::Configuration(_)
            | Error::System { .. }
            | Error::NoGate => None,
        }
    }

    /// What is to be shown before the summary: the places of a configuration's errors.
    pub fn details(&self) -> &str {
        match self {
            Error::Configuration(error) => &error.details,
            _ => "",
        }
    }
}
