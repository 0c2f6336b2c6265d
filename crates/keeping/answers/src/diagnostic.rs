//! What is wrong in a layout, as the page has it: places beside a message are objects, and what is not there is left out.

use schemars::JsonSchema;
use serde::Serialize;

/// A place in a layout's text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Characters.
    pub length: usize,
}

/// Another place that belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Also {
    /// The place.
    pub origin: Origin,
    /// What.
    pub message: String,
}

/// What is wrong in a layout.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// What.
    pub message: String,
    /// What would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Other places that belong to it.
    pub also: Vec<Also>,
}

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It can't be applied.
    Error,
    /// It can, perhaps not as meant.
    Warning,
}

impl From<layout::Origin> for Origin {
    fn from(origin: layout::Origin) -> Origin {
        let layout::Origin { file, line, column, length } = origin;
        Origin { file: file.to_string(), line, column, length }
    }
}

impl From<layout::Diagnostic> for Diagnostic {
    fn from(found: layout::Diagnostic) -> Diagnostic {
        let also = found.also.into_iter().map(|(origin, message)| Also { origin: origin.into(), message });
        Diagnostic {
            severity: match found.severity {
                layout::Severity::Error => Severity::Error,
                layout::Severity::Warning => Severity::Warning,
            },
            message: found.message,
            hint: found.hint,
            origin: found.origin.map(Origin::from),
            also: also.collect(),
        }
    }
}
