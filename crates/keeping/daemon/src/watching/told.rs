//! A failure that lasts is told once, and its end.

use std::fmt::Display;

use tracing::{info, warn};

/// One thing that may fail for a while.
#[derive(Debug)]
pub(super) struct Told {
    failed: &'static str,
    again: &'static str,
    failing: bool,
}

impl Told {
    /// What is told with the reason when it fails, and when it is over.
    pub fn new(failed: &'static str, again: &'static str) -> Told {
        Told { failed, again, failing: false }
    }

    /// It failed.
    pub fn fail(&mut self, why: impl Display) {
        if !std::mem::replace(&mut self.failing, true) {
            warn!("{}: {why}", self.failed);
        }
    }

    /// It went well.
    pub fn well(&mut self) {
        if std::mem::take(&mut self.failing) {
            info!("{}", self.again);
        }
    }
}
