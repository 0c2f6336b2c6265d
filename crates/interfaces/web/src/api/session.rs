//! The session and refusals, as JSON.

use std::collections::BTreeMap;

use answers::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request is refused; nothing was changed unless the message says so.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// What and why.
    pub message: String,
    /// The command or step that fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the page can act on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProblemKind>,
    /// What is wrong with the layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Of a conflict: the values that the settings have now, or the generation now as `generation`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub current: BTreeMap<String, String>,
}

/// Who looks, and what they may do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Session {
    /// Started with --write, so that changes are carried out.
    pub write: bool,
    /// The login name of the user whom the server runs as.
    pub user: String,
    /// The user's number.
    pub uid: u32,
    /// The machine's name.
    pub hostname: String,
    /// Of ringfence.
    pub version: String,
    /// Ringfenced on its socket.
    pub daemon: DaemonState,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_problem: Option<String>,
    /// When the session ends; milliseconds since 1970 by the host's clock.
    pub ends_at_ms: u64,
    /// Milliseconds since 1970 by the host's clock: compare with the browser's to show times.
    pub now_ms: u64,
}

/// The one-time token of the printed URL's fragment (#token=…).
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The token.
    pub token: String,
}

/// What the page can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// There is no session, or it is over: a new URL is needed.
    SessionOver,
    /// The server was started without --write.
    ReadOnly,
    /// Somebody else made a change meanwhile.
    Conflict,
    /// The input makes no sense.
    Invalid,
    /// What is named is not there.
    Missing,
    /// This user may not do it.
    Denied,
    /// It was tried and failed.
    Failed,
    /// What would answer does not, or is busy.
    Unavailable,
}

/// Ringfenced on its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DaemonState {
    /// It answers.
    Running,
    /// Nothing listens there.
    NotRunning,
    /// It refuses or breaks off.
    Unreachable,
}
