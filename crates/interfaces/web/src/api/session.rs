//! The session, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
