//! What can go wrong with a tool, as values.

use std::{io, path::PathBuf};

/// Why a tool could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is not installed.
    #[error("{program} is not installed")]
    Missing {
        /// The program.
        program: &'static str,
        /// The command that installs it, if this machine's way of installing is known.
        install: Option<String>,
    },
    /// An option of the experiment file that the driver can't use.
    #[error("{option} = \"{value}\": {reason}")]
    Option {
        /// As the file names it.
        option: &'static str,
        /// As the file has it.
        value: String,
        /// Why.
        reason: String,
    },
    /// A file of the workload's could not be made, read or removed.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried: `read`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A tool's output is not as that tool writes it.
    #[error("what {program} printed can't be read: {reason}")]
    Unreadable {
        /// The tool.
        program: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// What the workload needs is not there.
    #[error("{text}")]
    Unfit {
        /// What is not as it must be.
        text: String,
        /// What fixes it.
        hint: String,
    },
}

impl Failure {
    /// What fixes it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Failure::Missing { install, .. } => install.clone(),
            Failure::Unfit { hint, .. } => Some(hint.clone()),
            Failure::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space there, or name another directory".to_owned())
            }
            _ => None,
        }
    }

    /// For `map_err` of a call on a file.
    pub fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Failure {
        let path = path.into();
        move |source| Failure::File { what, path, source }
    }

    /// What a program printed can't be used: why.
    pub fn unreadable(program: &str, reason: impl Into<String>) -> Failure {
        Failure::Unreadable { program: program.to_owned(), reason: reason.into() }
    }
}
