//! What only the daemon's main loop knows, as a trait: the rules, the layout in effect and its rights.

use std::sync::Arc;

use answers::{
    Problem,
    socket::{Classification, Counters, Reloaded, Status},
};
use apply::By;

use super::Rights;

/// What only the daemon's main loop can answer.
pub trait Control: Send + Sync {
    /// Who may request what, by the layout in effect.
    fn rights(&self) -> Arc<Rights>;
    /// The daemon's status.
    ///
    /// # Errors
    /// [`Problem`], as below.
    fn status(&self) -> Result<Status, Problem>;
    /// Its counters.
    ///
    /// # Errors
    /// [`Problem`].
    fn counters(&self) -> Result<Counters, Problem>;
    /// Reloads the configuration.
    ///
    /// # Errors
    /// [`Problem`] with what is wrong with it.
    fn reload(&self, by: By) -> Result<Reloaded, Problem>;
    /// What the rules say about a process.
    ///
    /// # Errors
    /// [`Problem`].
    fn classify(&self, pid: u32) -> Result<Classification, Problem>;
}
