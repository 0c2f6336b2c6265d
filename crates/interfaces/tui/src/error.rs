//! Why the screen could not be shown, or not any longer.

use rustix::io::Errno;

/// Why; each with a hint where one is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `TERM` says that nothing can be drawn.
    #[error("this terminal can't place text on a screen (TERM={term})")]
    Dumb {
        /// What `TERM` is.
        term: String,
    },
    /// The terminal can't be read or written.
    #[error("the terminal can't be used: {0}")]
    Terminal(std::io::Error),
    /// The loop's own descriptors.
    #[error("there is no {what}: {}", kernel::describe(*.errno))]
    System {
        /// Which.
        what: &'static str,
        /// Why not.
        errno: Errno,
    },
    /// The kernel's groups.
    #[error(transparent)]
    Kernel(#[from] kernel::Error),
    /// The recorder's log.
    #[error(transparent)]
    Log(#[from] monitor::LogError),
    /// The log has nothing of that time.
    #[error("nothing was recorded at {moment} or before")]
    NothingRecorded {
        /// The moment, RFC 3339.
        moment: String,
        /// When the log begins, if it has anything.
        begins: Option<String>,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Dumb { .. } => Some("ringfence watch prints the same figures as lines".to_owned()),
            Error::Terminal(_) => Some("ringfence top --once needs no terminal".to_owned()),
            Error::System { .. } => None,
            Error::Kernel(error) => error.hint(),
            Error::Log(error) => error.hint(),
            Error::NothingRecorded { begins: Some(begins), .. } => {
                Some(format!("the log begins at {begins}"))
            }
            Error::NothingRecorded { begins: None, .. } => Some("ringfence record writes the log".to_owned()),
        }
    }
}
