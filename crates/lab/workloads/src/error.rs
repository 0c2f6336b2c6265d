//! What can go wrong with a workload, as values.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Everything that can end a workload, or the wait for it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's flag was set: Ctrl-C or an end from outside.
    #[error("interrupted")]
    Interrupted,
    /// A workload's option is unknown, lacks its value or is out of range.
    #[error("{option}: {reason}")]
    Option {
        /// The option as given.
        option: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A system call of the measuring itself failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A block device could not be opened or read.
    #[error("{what} {}: {source}", path.display())]
    Device {
        /// What was tried: "cannot open", "cannot read".
        what: &'static str,
        /// The device.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A device holds less than one read needs.
    #[error("{} holds {size} bytes, too few for reads of {block}", path.display())]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The size of one read in bytes.
        block: usize,
    },
    /// A workload's process could not be started.
    #[error("cannot start the {name}: {source}")]
    Start {
        /// Which workload.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A workload's process ended badly.
    #[error("the {name} ended with {status}{}", said(.message))]
    Ended {
        /// Which workload.
        name: String,
        /// Its exit status or signal.
        status: String,
        /// What it wrote about it.
        message: String,
    },
    /// A workload's process did not report in time.
    #[error("the {name} did not report within {seconds} s")]
    Late {
        /// Which workload.
        name: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A workload's report can't be read.
    #[error("the {name} reported something unreadable: {source}")]
    Report {
        /// Which workload.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A workload's tool is missing or can't be used.
    #[error(transparent)]
    Tool(#[from] crate::Failure),
    /// A file of the results or of the lab's records could not be written or read.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// `write`, `read`, `make`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// Of a file of ours.
    pub fn file<'p>(what: &'static str, path: &'p Path) -> impl Fn(io::Error) -> Error + 'p {
        move |source| Error::File { what, path: path.to_owned(), source }
    }

    /// What fixes it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Tool(failure) => failure.hint(),
            Error::Device { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run it as root".to_owned())
            }
            _ => None,
        }
    }
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
