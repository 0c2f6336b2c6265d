//! What only the daemon's main loop knows, as a trait: the rules, the division and its rights.

use std::{collections::BTreeMap, sync::Arc};

use apply::By;

use super::{Classification, Refused, Reloaded, Rights, Status};

/// What only the daemon's main loop can answer.
pub trait Control: Send + Sync {
    /// Who may ask for what, as of the layout that holds now.
    fn rights(&self) -> Arc<Rights>;
    /// How the daemon is.
    ///
    /// # Errors
    /// [`Refused`], as below.
    fn status(&self) -> Result<Status, Refused>;
    /// What it counts.
    ///
    /// # Errors
    /// [`Refused`].
    fn counters(&self) -> Result<BTreeMap<String, u64>, Refused>;
    /// Reads the configuration again.
    ///
    /// # Errors
    /// [`Refused`] with what is wrong with it.
    fn reload(&self, by: By) -> Result<Reloaded, Refused>;
    /// What the rules make of a process.
    ///
    /// # Errors
    /// [`Refused`].
    fn classify(&self, pid: u32) -> Result<Classification, Refused>;
}
