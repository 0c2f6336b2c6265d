//! Why a command did not do what it was asked, with libcgroup's exit status, which scripts look at.

use std::{fmt::Display, io::Write};

/// The arguments make no sense. The reference ends so, too.
pub(crate) const BAD_ARGUMENTS: u8 = 129;

/// What is said on standard error at the end.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Empty where nothing is to be said on standard error.
    pub message: String,
    pub hint: Option<String>,
    pub status: u8,
}

impl Failure {
    pub(crate) fn new(status: u8, message: impl Display) -> Failure {
        Failure { message: message.to_string(), hint: None, status }
    }

    pub(crate) fn hint(self, hint: impl Display) -> Failure {
        Failure { hint: Some(hint.to_string()), ..self }
    }

    /// What clap says of the arguments; `--help` is no error.
    pub(crate) fn arguments(error: &clap::Error) -> Failure {
        // a closed output is the reader's wish
        let _ = error.print();
        Failure::new(if error.use_stderr() { BAD_ARGUMENTS } else { 0 }, "")
    }

    /// Says it, and gives the exit status.
    pub(crate) fn told(self, name: &str) -> u8 {
        let mut text = String::new();
        if !self.message.is_empty() {
            text = format!("{name}: {}\n", self.message);
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        // nobody is left to tell if standard error is closed
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.status
    }
}
