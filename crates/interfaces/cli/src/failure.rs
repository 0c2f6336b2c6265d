//! Why a command failed, with a hint and an exit status. The statuses are documented here
//! and in `ringfence --help`.

use std::fmt::Display;

use rustix::io::Errno;

/// It failed, and nothing was changed.
pub const FAILED: u8 = 1;
/// The arguments make no sense.
pub const USAGE: u8 = 2;
/// Done in part, as was said, or something needs attention.
pub const ATTENTION: u8 = 3;
/// A signal came, and everything was put back (as shells have it for SIGINT).
pub const INTERRUPTED: u8 = 130;
/// `run`: this program failed before the other one was started (as env(1) and timeout(1) have it).
pub const RUN_FAILED: u8 = 125;

/// What is said on standard error at the end.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub hint: Option<String>,
    pub code: u8,
    /// It failed because of a missing permission: the daemon may do it instead.
    pub denied: bool,
    /// A group that was named is not there: the name may be a unit's.
    pub missing: bool,
    /// The unit of systemd that it is about: it may be a group of the layout in effect.
    pub of_unit: Option<kernel::OfUnit>,
    /// The newest generation, where the change was decided on after another one.
    pub newest: Option<u32>,
    /// What is wrong with a layout, already printed with its text; for JSON.
    pub diagnostics: Vec<layout::Diagnostic>,
}

impl Failure {
    pub fn new(message: impl Display) -> Failure {
        Failure {
            message: message.to_string(),
            hint: None,
            code: FAILED,
            denied: false,
            missing: false,
            of_unit: None,
            newest: None,
            diagnostics: Vec::new(),
        }
    }

    pub fn usage(message: impl Display) -> Failure {
        Failure { code: USAGE, ..Failure::new(message) }
    }

    pub fn hint(self, hint: impl Display) -> Failure {
        Failure { hint: Some(hint.to_string()), ..self }
    }

    pub fn maybe_hint(self, hint: Option<String>) -> Failure {
        Failure { hint: hint.or(self.hint), ..self }
    }

    pub fn code(self, code: u8) -> Failure {
        Failure { code, ..self }
    }

    /// Of a layout that a command which changes things refuses: says that it changed nothing.
    pub fn unchanged(self) -> Failure {
        if self.diagnostics.is_empty() {
            return self;
        }
        Failure { message: format!("{}; nothing was changed", self.message), ..self }
    }

    /// The first error's place in a file.
    pub fn place(&self) -> Option<&layout::Origin> {
        let errors = self.diagnostics.iter().filter(|one| one.severity == layout::Severity::Error);
        errors.filter_map(|one| one.origin.as_ref()).next()
    }

    /// `error: …` and, on a line of its own, `hint: …`.
    pub fn rendered(&self) -> String {
        let hint =
            self.hint.as_ref().map(|hint| format!("hint: {}\n", printable_lines(hint))).unwrap_or_default();
        format!("error: {}\n{hint}", printable_lines(&self.message))
    }
}

/// Paths and names in a message are others' choice; its lines are ours.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(units::printable).collect::<Vec<_>>().join("\n")
}

impl From<settings::GroupNameError> for Failure {
    fn from(error: settings::GroupNameError) -> Failure {
        kernel::Error::from(error).into()
    }
}

impl From<kernel::Error> for Failure {
    fn from(error: kernel::Error) -> Failure {
        let code = match &error {
            kernel::Error::BadName(_) => USAGE,
            partial if partial.is_partial() => ATTENTION,
            _ => FAILED,
        };
        let (denied, missing) = (is_denied(&error), is_missing(&error));
        let of_unit = error.of_unit();
        Failure { hint: error.hint(), code, denied, missing, of_unit, ..Failure::new(error) }
    }
}

fn is_missing(error: &kernel::Error) -> bool {
    matches!(error, kernel::Error::NoGroup { .. })
}

/// A group that another user does not find may be there all the same: root's groups live elsewhere than his own.
fn is_denied(error: &kernel::Error) -> bool {
    match error {
        kernel::Error::Refused(refusal) => matches!(refusal.errno, Errno::ACCESS | Errno::PERM),
        kernel::Error::PartlyDeleted { error, .. } => is_denied(error),
        kernel::Error::NoGroup { .. } | kernel::Error::NotControlled { .. } => {
            !rustix::process::geteuid().is_root()
        }
        _ => false,
    }
}

impl From<apply::Error> for Failure {
    fn from(error: apply::Error) -> Failure {
        let partial = matches!(&error, apply::Error::Undone { left, .. } if !left.is_empty());
        Failure {
            hint: error.hint(),
            code: if partial { ATTENTION } else { FAILED },
            denied: !partial && is_denied_at_all(&error),
            missing: matches!(&error, apply::Error::Kernel(error) if is_missing(error)),
            of_unit: match &error {
                apply::Error::Kernel(error) => error.of_unit(),
                _ => None,
            },
            ..Failure::new(error)
        }
    }
}

fn is_denied_at_all(error: &apply::Error) -> bool {
    match error {
        apply::Error::Kernel(error) => is_denied(error),
        apply::Error::Undone { error, .. } => is_denied_at_all(error),
        _ => false,
    }
}

impl From<daemon::socket::client::ClientError> for Failure {
    fn from(error: daemon::socket::client::ClientError) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error) }
    }
}

impl From<settings::UnknownSetting> for Failure {
    fn from(error: settings::UnknownSetting) -> Failure {
        Failure { hint: Some(error.hint()), code: USAGE, ..Failure::new(error) }
    }
}

impl From<apply::InvalidSetting> for Failure {
    fn from(error: apply::InvalidSetting) -> Failure {
        match error {
            apply::InvalidSetting::Unknown(error) => error.into(),
            apply::InvalidSetting::Value(error) => error.into(),
        }
    }
}

impl From<settings::ValueError> for Failure {
    fn from(error: settings::ValueError) -> Failure {
        Failure { hint: error.hint(), code: USAGE, ..Failure::new(error) }
    }
}

impl From<topology::TopologyError> for Failure {
    fn from(error: topology::TopologyError) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error) }
    }
}

impl From<system::AccountError> for Failure {
    fn from(error: system::AccountError) -> Failure {
        let code = if matches!(error, system::AccountError::Getent { .. }) { FAILED } else { USAGE };
        Failure { hint: Some(error.hint()), code, ..Failure::new(error) }
    }
}

impl From<exporters::view::UnknownField> for Failure {
    fn from(error: exporters::view::UnknownField) -> Failure {
        Failure { hint: Some(error.hint()), code: USAGE, ..Failure::new(error) }
    }
}

impl From<monitor::LogError> for Failure {
    fn from(error: monitor::LogError) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error) }
    }
}

impl From<tui::Error> for Failure {
    fn from(error: tui::Error) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error) }
    }
}
