//! Why a command failed, with libcgroup's exit status, which scripts look at: an error number of
//! its library, from 50000, modulo 256.

use std::{fmt::Display, io::Write};

/// Something happened that the command goes on after; at the end it says so. (`cgclassify`)
pub(crate) const SOME_FAILED: u8 = 1;
/// No hierarchy is mounted.
pub(crate) const NOT_MOUNTED: u8 = 81;
/// No such group.
pub(crate) const NO_GROUP: u8 = 82;
/// A controller is on no mounted hierarchy.
pub(crate) const NO_CONTROLLER: u8 = 84;
/// Not allowed.
pub(crate) const NOT_ALLOWED: u8 = 87;
/// A value or name that can't be.
pub(crate) const INVALID: u8 = 91;
/// What was to be listed is on no mounted hierarchy.
pub(crate) const NOT_FOUND: u8 = 93;
/// The group has no such setting.
pub(crate) const NO_SETTING: u8 = 95;
/// The system refused.
pub(crate) const SYSTEM: u8 = 96;
/// The rules can't be read.
pub(crate) const BAD_RULES: u8 = 99;
/// A configuration file has errors.
pub(crate) const BAD_CONFIGURATION: u8 = 104;
/// One cgroup version has nothing for a setting of the other.
pub(crate) const NOT_CONVERTED: u8 = 111;
/// The arguments make no sense.
pub(crate) const BAD_ARGUMENTS: u8 = 129;
/// A program could not be executed.
pub(crate) const NOT_EXECUTED: u8 = 255;

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

    pub(crate) fn status(self, status: u8) -> Failure {
        Failure { status, ..self }
    }

    /// Bad arguments that clap can't see.
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure::new(BAD_ARGUMENTS, message)
    }

    /// What clap says of the arguments; `--help` is no error.
    pub(crate) fn arguments(error: &clap::Error) -> Failure {
        if error.use_stderr() {
            return Failure::new(BAD_ARGUMENTS, error.render().to_string().trim_end());
        }
        // a closed output is the reader's wish
        let _ = error.print();
        Failure::new(0, "")
    }

    /// Says it, and gives the exit status.
    pub(crate) fn reported(self, name: &str) -> u8 {
        let mut text = String::new();
        if self.status == BAD_ARGUMENTS {
            // the words that scripts know
            text.push_str(&format!("Wrong input parameters, try {name} -h for more information.\n"));
        }
        if !self.message.is_empty() {
            text.push_str(&format!("{name}: {}\n", self.message));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        warn(&text);
        self.status
    }
}

/// Says something on standard error.
pub(crate) fn warn(text: &str) {
    // nobody reads it if standard error is closed
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn of_kernel(error: &kernel::Error) -> u8 {
    match error {
        kernel::Error::NoGroup { .. } | kernel::Error::NotControlled { .. } => NO_GROUP,
        kernel::Error::NoHierarchy => NOT_MOUNTED,
        kernel::Error::NoController { .. } | kernel::Error::NoNamed { .. } => NO_CONTROLLER,
        kernel::Error::BadName(_) => INVALID,
        kernel::Error::Foreign { .. } | kernel::Error::OfUnit { .. } | kernel::Error::RootGroup { .. } => {
            NOT_ALLOWED
        }
        kernel::Error::PartlyDeleted { error, .. } | kernel::Error::NotMovedBack { error, .. } => {
            of_kernel(error)
        }
        _ => SYSTEM,
    }
}

impl From<settings::GroupNameError> for Failure {
    fn from(error: settings::GroupNameError) -> Failure {
        kernel::Error::from(error).into()
    }
}

impl From<kernel::Error> for Failure {
    fn from(error: kernel::Error) -> Failure {
        Failure { message: in_words(&error), hint: error.hint(), status: of_kernel(&error) }
    }
}

/// With the system's own words for a refusal, which scripts look for: `Invalid argument`.
fn in_words(error: &kernel::Error) -> String {
    let mut refused = error;
    while let kernel::Error::PartlyDeleted { error, .. } | kernel::Error::NotMovedBack { error, .. } = refused
    {
        refused = error;
    }
    let kernel::Error::Refused(refusal) = refused else { return error.to_string() };
    let system = std::io::Error::from_raw_os_error(refusal.errno.raw_os_error()).to_string();
    let system = system.split(" (os error").next().unwrap_or(&system);
    format!("{error} ({system})")
}

fn of_apply(error: &apply::Error) -> u8 {
    match error {
        apply::Error::Kernel(error) => of_kernel(error),
        apply::Error::Lacks { .. } => NO_SETTING,
        apply::Error::Undone { error, .. } => of_apply(error),
        _ => SYSTEM,
    }
}

impl From<apply::Error> for Failure {
    fn from(error: apply::Error) -> Failure {
        let message = match &error {
            apply::Error::Kernel(error) => in_words(error),
            error => error.to_string(),
        };
        Failure { message, hint: error.hint(), status: of_apply(&error) }
    }
}

impl From<apply::Failure> for Failure {
    fn from(failure: apply::Failure) -> Failure {
        let status = match &failure {
            apply::Failure::Refused(error) => of_apply(error),
            apply::Failure::RolledBack { error, .. } => of_apply(error),
            _ => SYSTEM,
        };
        Failure { message: failure.to_string(), hint: failure.hint(), status }
    }
}

impl From<settings::UnknownSetting> for Failure {
    fn from(error: settings::UnknownSetting) -> Failure {
        // the reference looks for the controller first
        let prefix = error.name.split_once('.').map_or("", |(prefix, _)| prefix);
        let known = settings::Controller::from_name(prefix).is_some() || prefix == "cgroup";
        let status = if known { NO_SETTING } else { NO_CONTROLLER };
        Failure { message: error.to_string(), hint: Some(error.hint()), status }
    }
}

impl From<settings::ValueError> for Failure {
    fn from(error: settings::ValueError) -> Failure {
        Failure { message: error.to_string(), hint: error.hint(), status: SYSTEM }
    }
}

impl From<system::AccountError> for Failure {
    fn from(error: system::AccountError) -> Failure {
        Failure { message: error.to_string(), hint: Some(error.hint()), status: BAD_ARGUMENTS }
    }
}

impl From<topology::TopologyError> for Failure {
    fn from(error: topology::TopologyError) -> Failure {
        Failure { message: error.to_string(), hint: error.hint(), status: SYSTEM }
    }
}
