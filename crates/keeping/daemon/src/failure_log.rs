//! A failure that lasts is logged once, and its end.

use std::{borrow::Cow, fmt::Display};

use tracing::{info, warn};

/// One thing that may fail for a while.
#[derive(Debug)]
pub(crate) struct FailureLog {
    failed: Cow<'static, str>,
    again: Cow<'static, str>,
    failing: bool,
}

impl FailureLog {
    /// The lines for its begin, with the reason, and for its end.
    pub fn new(failed: &'static str, again: &'static str) -> FailureLog {
        FailureLog { failed: failed.into(), again: again.into(), failing: false }
    }

    /// The same of one of several things.
    pub fn of(failed: String, again: String) -> FailureLog {
        FailureLog { failed: failed.into(), again: again.into(), failing: false }
    }

    /// It failed.
    pub fn fail(&mut self, why: impl Display) {
        if !std::mem::replace(&mut self.failing, true) {
            warn!("{}: {why}", self.failed);
        }
    }

    /// It succeeded.
    pub fn succeeded(&mut self) {
        if std::mem::take(&mut self.failing) {
            info!("{}", self.again);
        }
    }
}
