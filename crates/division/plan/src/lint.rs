//! What works, but perhaps not as meant. Found while planning; nothing here changes a plan.

use layout::{Diagnostic, Origin};
use serde::{Deserialize, Serialize};
use settings::GroupName;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lint {
    /// What kind it is.
    pub kind: LintKind,
    /// The group, as the user named it; `None` if it is about the whole.
    pub group: Option<String>,
    /// What is found: lower-case, no full stop.
    pub message: String,
    /// Where it was requested.
    pub origin: Option<Origin>,
    /// What to do.
    pub hint: Option<String>,
}

/// The kinds of lint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintKind {
    /// A real-time budget below 2 % of the time, which one thread of 1 kHz needs.
    RealTimeBudget,
    /// The SMT sibling of an exclusive CPU is left to others.
    SiblingLeft,
    /// A memory limit below what is used now.
    BelowUsage,
    /// A memory limit that no program can run with.
    TooSmall,
    /// A group is slowed down above its limit only, where it is killed.
    HighAboveMax,
    /// CPUs that the planner chose for one group belong to another one too.
    Overlap,
    /// A rule names a group that the layout does not have.
    NoSuchGroup,
    /// What groups may or shall have is together more than there is.
    OverCapacity,
    /// An I/O limit names a partition, but holds for the whole disk.
    Partition,
    /// A weight that no device uses.
    WeightWithoutEffect,
    /// Tasks outside the group may still run on CPUs that it is to have for itself.
    StillUsed,
    /// An approximate mapping between versions.
    Approximate,
    /// A wish that could not be heard.
    WishIgnored,
    /// Processes that are pinned to CPUs get all CPUs.
    Affinity,
    /// Something could not be checked.
    Unchecked,
    /// A rule for a user or group that this system does not have.
    NoAccount,
    /// What an earlier layout requested and this one does not, and what can't go back.
    Leftover,
    /// What a layout without it leaves as it is: it was there before, or others use it by now.
    Stays,
    /// Processes of a group that are not in all of its directories.
    Outside,
    /// A group that is not in a hierarchy in which a group above it limits something.
    Escape,
    /// An owner of a group's tasks who can't move processes in from outside of it.
    TasksFromOutside,
    /// A rule that takes processes of a systemd service.
    OfService,
    /// A pattern of units that no unit fits, or of which that is not known.
    NoUnit,
    /// A group that only the daemon resizes.
    Elastic,
    /// Something that disturbs isolated CPUs and can't be moved.
    NotIsolated,
    /// What only the boot can do for isolated CPUs.
    BootOnly,
}

impl Lint {
    /// A lint about the whole, or a group.
    pub fn new(kind: LintKind, group: Option<&GroupName>, message: String) -> Lint {
        Lint { kind, group: group.map(ToString::to_string), message, origin: None, hint: None }
    }

    pub(crate) fn at(self, origin: &Origin) -> Lint {
        Lint { origin: Some(origin.clone()), ..self }
    }

    /// With what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Lint {
        Lint { hint: Some(hint.into()), ..self }
    }

    /// As a warning, to be shown with the place in the file.
    pub fn diagnostic(&self) -> Diagnostic {
        let warning = Diagnostic::warning(self.message.clone()).maybe_hint(self.hint.clone());
        match &self.origin {
            Some(origin) => warning.at(origin.clone()),
            None => warning,
        }
    }
}
