//! What can go wrong in an experiment, as values.

use std::{io, path::PathBuf};

/// Everything that can end an experiment, or one condition of it.
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
    /// No loop device could be made.
    #[error("cannot make a loop device: {what}{}: {source}", at(.path))]
    Loop {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: Option<PathBuf>,
        /// What the kernel said.
        source: io::Error,
    },
    /// A workload's tool is missing or can't be used.
    #[error(transparent)]
    Driver(#[from] crate::drivers::Failure),
    /// A group could not be made, entered or removed.
    #[error("{0}")]
    Group(#[from] kernel::Error),
    /// Not a name that a group may have.
    #[error(transparent)]
    GroupName(#[from] settings::GroupNameError),
    /// A setting could not be given.
    #[error("{0}")]
    Setting(#[from] apply::Error),
    /// A value is none of its setting.
    #[error("{0}")]
    Value(#[from] settings::ValueError),
    /// There is no such setting.
    #[error("{0}")]
    NoSetting(#[from] settings::UnknownSetting),
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
    /// The experiment can't be made.
    #[error("{text}")]
    Cannot {
        /// Why.
        text: String,
        /// What fixes it.
        hint: Option<String>,
    },
}

impl Error {
    /// Of a file of ours.
    pub(crate) fn file<'p>(
        what: &'static str,
        path: &'p std::path::Path,
    ) -> impl Fn(io::Error) -> Error + 'p {
        move |source| Error::File { what, path: path.to_owned(), source }
    }

    /// In words.
    pub(crate) fn cannot(text: impl Into<String>) -> Error {
        Error::Cannot { text: text.into(), hint: None }
    }

    /// What fixes it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Loop { what, source, path } => loop_hint(what, source, path.as_deref()),
            Error::Driver(failure) => failure.hint(),
            Error::Group(error) => error.hint(),
            Error::GroupName(error) => Some(error.hint()),
            Error::Setting(error) => error.hint(),
            Error::Value(error) => error.hint(),
            Error::NoSetting(error) => Some(error.hint()),
            Error::Cannot { hint, .. } => hint.clone(),
            Error::Device { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run it as root".to_owned())
            }
            _ => None,
        }
    }
}

fn loop_hint(what: &str, source: &io::Error, path: Option<&std::path::Path>) -> Option<String> {
    let hint = match source.kind() {
        io::ErrorKind::PermissionDenied => "run it as root",
        io::ErrorKind::NotFound if what.contains("/dev/loop-control") => "modprobe loop",
        io::ErrorKind::NotFound if path.is_some_and(|path| path.starts_with("/dev")) => {
            "the kernel has the device but /dev does not show it, as in a container: run it on the host"
        }
        io::ErrorKind::StorageFull => "free some space there, or name another directory",
        io::ErrorKind::InvalidInput => "attaching in one call needs Linux 5.8",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn at(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default()
}
