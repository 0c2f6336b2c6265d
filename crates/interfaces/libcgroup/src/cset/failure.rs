//! Why a command failed, as cset says it: on standard output, behind `**>`, with exit status 2.

use std::{fmt::Display, io};

use clap::error::ErrorKind;

use crate::cset::out::Out;

/// What is wrong with the request or with the machine.
const REFUSED: u8 = 2;
/// What cset has for a command that it does not know.
const UNKNOWN: u8 = 1;

#[derive(Debug)]
pub(crate) struct Failure {
    pub message: String,
    hint: Option<String>,
    /// No cpuset has that name.
    pub is_missing: bool,
}

impl Failure {
    pub fn new(message: impl Display) -> Failure {
        Failure { message: message.to_string(), hint: None, is_missing: false }
    }

    /// No cpuset has that name.
    pub fn missing(name: &str) -> Failure {
        let message = format!("cpuset \"{}\" not found in cpusets", units::printable(name));
        Failure { is_missing: true, ..Failure::new(message) }
    }

    pub fn maybe_hint(self, hint: Option<String>) -> Failure {
        Failure { hint: hint.or(self.hint), ..self }
    }

    /// Python's form of an errno.
    pub fn system(error: &io::Error) -> Failure {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Failure::new(match error.raw_os_error() {
            Some(number) => format!("[Errno {number}] {text}"),
            None => text.to_owned(),
        })
    }

    /// Says it, and gives the exit status.
    pub fn reported(self, out: Out) -> u8 {
        out.info(&format!("**> {}", self.message));
        if let Some(hint) = self.hint {
            out.info(&format!("hint: {hint}"));
        }
        REFUSED
    }
}

/// What clap says of the arguments; `--help` is no error.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    // a closed output is the reader's wish
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
        ErrorKind::InvalidSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => UNKNOWN,
        _ => REFUSED,
    }
}

impl From<kernel::Error> for Failure {
    fn from(error: kernel::Error) -> Failure {
        let hint = error.hint();
        Failure::new(error).maybe_hint(hint)
    }
}

impl From<settings::GroupNameError> for Failure {
    fn from(error: settings::GroupNameError) -> Failure {
        kernel::Error::from(error).into()
    }
}

impl From<apply::Error> for Failure {
    fn from(error: apply::Error) -> Failure {
        let hint = error.hint();
        Failure::new(error).maybe_hint(hint)
    }
}

impl From<apply::InvalidSetting> for Failure {
    fn from(error: apply::InvalidSetting) -> Failure {
        let hint = error.hint();
        Failure::new(error).maybe_hint(hint)
    }
}

impl From<apply::Failure> for Failure {
    fn from(failure: apply::Failure) -> Failure {
        let hint = failure.hint();
        Failure::new(failure).maybe_hint(hint)
    }
}
