//! What can go wrong in an experiment, as values.

use std::{io, path::PathBuf};

/// Everything that can end an experiment, or one condition of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A workload, or the wait for one.
    #[error(transparent)]
    Workload(#[from] workloads::Error),
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
    /// A group could not be made, entered or removed.
    #[error("{0}")]
    Group(#[from] kernel::Error),
    /// Not a name that a group may have.
    #[error(transparent)]
    GroupName(#[from] settings::GroupNameError),
    /// A setting could not be given.
    #[error("{0}")]
    Setting(#[from] apply::Error),
    /// No such setting, or no value of it.
    #[error(transparent)]
    Invalid(#[from] apply::InvalidSetting),
    /// A run failed.
    #[error("run {number} ({cell}): {source}")]
    Run {
        /// From 1, as the results number it.
        number: u32,
        /// Its condition, with its load.
        cell: String,
        /// What failed.
        source: Box<Error>,
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
        let error = workloads::Error::file(what, path);
        move |source| error(source).into()
    }

    /// A system call of the measuring itself failed.
    pub(crate) fn system(what: &'static str, source: impl Into<io::Error>) -> Error {
        workloads::Error::System { what, source: source.into() }.into()
    }

    /// In words.
    pub(crate) fn cannot(text: impl Into<String>) -> Error {
        Error::Cannot { text: text.into(), hint: None }
    }

    /// Of this run, where it is not an interruption.
    pub(crate) fn of_run(self, number: u32, condition: &str, load: Option<&str>) -> Error {
        if self.is_interruption() {
            return self;
        }
        let under = load.map_or_else(String::new, |load| format!(" under '{load}'"));
        Error::Run { number, cell: format!("'{condition}'{under}"), source: Box::new(self) }
    }

    /// Did the caller's flag end it: Ctrl-C, or an end from outside?
    pub fn is_interruption(&self) -> bool {
        matches!(self, Error::Workload(workloads::Error::Interrupted))
    }

    /// What fixes it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Workload(error) => error.hint(),
            Error::Loop { what, source, path } => loop_hint(what, source, path.as_deref()),
            Error::Group(error) => error.hint(),
            Error::GroupName(error) => Some(error.hint()),
            Error::Setting(error) => error.hint(),
            Error::Invalid(error) => error.hint(),
            Error::Run { source, .. } => source.hint(),
            Error::Cannot { hint, .. } => hint.clone(),
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

fn at(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default()
}
