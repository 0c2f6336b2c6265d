//! What a command prints that refuses or fails.

use layout::{Diagnostic, Origin};
use serde::{Deserialize, Serialize};

/// In place of the command's answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    pub error: Reason,
    /// Of a file with errors: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a command did not do what it was asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reason {
    /// What failed and why.
    pub message: String,
    /// What would fix it.
    pub hint: Option<String>,
    /// The first error's place in a file.
    pub place: Option<Origin>,
    /// The newest generation, where the change was decided on after another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<u32>,
}
