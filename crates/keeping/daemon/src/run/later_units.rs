//! Units that fit a pattern of the layout and start after it was applied, as far as systemd has no file for them.

use tracing::error;

use super::Daemon;
use crate::{Division, division, unit_states::UnitStates};

/// What is known of them.
#[derive(Default)]
pub(super) struct LaterUnits {
    /// The patterns that are looked at, and who looks.
    watch: Option<(Vec<String>, UnitStates)>,
    /// Why those that came are not bound, if they are not.
    not_bound: Option<String>,
}

impl LaterUnits {
    /// What is wrong with them now.
    pub(super) fn trouble(&self) -> Option<String> {
        self.not_bound.clone()
    }
}

impl Daemon {
    /// Units that came after the apply have their limits, too.
    pub(super) fn bind_units(&mut self) {
        let host = self.classifier.host();
        let has_new = |division: &Division| division.is_applied() && division.has_new_units(host);
        let Some(state) = self.state.clone().filter(|_| self.division.as_ref().is_some_and(has_new)) else {
            return;
        };
        // what is in the way ends: it is tried again
        let Ok(Some(lock)) = division::try_lock(&state) else { return };
        // a change that had the lock may have bound them, or taken the layout back
        let still = self.division.as_ref().is_some_and(has_new);
        if !still || !matches!(Division::unconfirmed(&state, host), Ok(None)) {
            return;
        }
        let with = (host, &self.handle);
        match self.division.as_mut().map(|division| self.schedules.apply(division, &lock, with)).transpose() {
            Ok(applied) => {
                self.later_units.not_bound = None;
                self.report(applied.as_ref());
            }
            Err(refused) => {
                let why = format!("units that came are not bound: {}", refused.summary);
                if self.later_units.not_bound.as_ref() != Some(&why) {
                    error!("{why}\n{}", refused.details.trim_end());
                }
                self.later_units.not_bound = Some(why);
            }
        }
    }

    /// Looks for units of the patterns that the layout has now.
    pub(super) fn watch_units(&mut self) {
        let patterns = self.division.as_ref().map(Division::patterns_to_watch).unwrap_or_default();
        if self.later_units.watch.as_ref().map(|(of, _)| of.as_slice()).unwrap_or_default() != patterns {
            let watch = UnitStates::of_patterns(patterns.clone(), self.handle.clone());
            self.later_units.watch = watch.map(|watch| (patterns, watch));
        }
    }
}
