//! What is desired as text again: our TOML, and libcgroup's files and commands.

mod cgconfig;
mod cgrules;
mod cgset;
mod systemd;
mod toml;
mod writes;

pub use cgconfig::{to_cgconfig, word as cgconfig_word};
pub use cgrules::to_cgrules;
pub use cgset::{cgset_line, to_cgset};
pub use systemd::to_systemd;
pub use toml::{changes, to_toml};

use crate::desired::Desired;
use crate::diagnostic::Diagnostic;

/// A text, and what could not be said in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The text; ends with a newline unless it is empty.
    pub text: String,
    /// What is desired and not in it, a warning each; also in the text as comments.
    pub lost: Vec<Diagnostic>,
}

/// Schedules are no part of other programs' files.
fn without_schedules(desired: &Desired) -> impl Iterator<Item = Diagnostic> {
    desired.schedules.iter().map(|schedule| {
        let message = format!(
            "schedule '{}' is not part of it: only ringfenced changes groups by itself",
            schedule.name
        );
        Diagnostic::warning(message).at(schedule.origin.clone())
    })
}
