//! Layouts, plans and the history, as JSON.

use answers::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::Owners;

/// The layout to begin with.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LayoutFile {
    /// Of the machine's layout.
    pub path: String,
    /// Empty if there is none.
    pub text: String,
    /// Is it there.
    pub exists: bool,
    /// Why it can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A layout.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayoutText {
    /// TOML, or libcgroup's configuration, up to 4 MiB.
    pub text: String,
}

/// What the checker says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Checked {
    /// What is wrong with the layout.
    pub diagnostics: Vec<Diagnostic>,
    /// How many of these are errors.
    pub errors: usize,
    /// The groups.
    pub groups: usize,
    /// How many rules it has.
    pub rules: usize,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// From 1.
    pub number: usize,
    /// The group.
    pub group: String,
    /// Such as create-group, write, remove-group.
    pub action: String,
    /// In words.
    pub what: String,
    /// Why.
    pub why: String,
    /// The file.
    pub file: Option<String>,
    /// Before.
    pub before: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// Takes back what an earlier layout did.
    pub restores: bool,
}

/// CPUs and memory nodes of a group by the plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Assignment {
    /// The group.
    pub group: String,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub cpus: Option<String>,
    /// Its memory nodes.
    pub mems: Option<String>,
    /// Does nobody else have them.
    pub exclusive: bool,
    /// Why.
    pub why: String,
}

/// A change that waits to be confirmed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pending {
    /// Its number in the history.
    pub generation: u32,
    /// How long it still waits, in milliseconds.
    pub remaining_ms: u64,
    /// It was not undone in time.
    pub overdue: bool,
    /// No process is left that would undo it.
    pub unwatched: bool,
    /// What will happen.
    pub sentence: String,
}

/// What applying a layout would do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// CPUs and memory nodes of the groups.
    pub assignments: Vec<Assignment>,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub reserved: String,
    /// It has no groups: it undoes all that earlier layouts applied, and apply needs `empties: true`.
    pub empties: bool,
    /// Before.
    pub before: Owners,
    /// After.
    pub after: Owners,
    /// The plan as ringfence plan prints it.
    pub text: String,
    /// The newest one in the history: send it back as expected_generation.
    pub generation: u32,
}

/// A layout's diagnostics, and its plan if it has no error.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Planned {
    /// Those of the checker and of this machine.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan.
    pub plan: Option<Plan>,
    /// What waits to be confirmed.
    pub pending: Option<Pending>,
    /// The command that does the same.
    pub command: String,
}

/// A layout to apply.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The text.
    pub text: String,
    /// Undone after these, unless confirmed; null: stays.
    pub confirm_seconds: Option<u32>,
    /// Plan.generation: another one is in the history now: conflict (409).
    pub expected_generation: u32,
    /// Yes, also if the layout has no groups.
    #[serde(default)]
    pub empties: bool,
}

/// What to undo.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// Back to the state after this generation; null: the last change.
    pub to: Option<u32>,
    /// The newest one that the page showed.
    pub expected_generation: u32,
}

/// What to keep.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// Its number in the history.
    pub generation: u32,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// Its number in the history.
    pub generation: Option<u32>,
    /// The steps.
    pub steps: usize,
    /// Differences, what is left, what is not as requested.
    pub warnings: Vec<String>,
    /// When it is undone unless confirmed; milliseconds since 1970 by the host's clock.
    pub undone_at_ms: Option<u64>,
    /// The command that does the same.
    pub command: String,
}

/// A change in the history.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Generation {
    /// Its number in the history.
    pub generation: u32,
    /// When; milliseconds since 1970 by the host's clock.
    pub at_ms: Option<u64>,
    /// Login name or user.
    pub by: String,
    /// What.
    pub what: String,
    /// Done, rolled back, under way, ….
    pub state: String,
    /// Of change.
    pub kind: GenerationKind,
    /// The steps.
    pub steps: usize,
    /// Is it in effect.
    pub in_effect: bool,
    /// What went wrong.
    pub problems: Vec<String>,
}

/// Changes, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// The changes, the oldest first.
    pub generations: Vec<Generation>,
    /// What waits to be confirmed.
    pub pending: Option<Pending>,
    /// Number of the newest, 0 if there is none.
    pub newest: u32,
    /// Why the history can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GenerationKind {
    /// A layout.
    Apply,
    /// Single settings.
    Set,
    /// An undo.
    Undo,
    /// Its record can't be read.
    Unknown,
}
