//! Refused writes, which end a rule where many come in a short time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::memory::count_within;

/// The times of refused writes.
#[derive(Debug, Clone, Default)]
pub struct Refusals(VecDeque<f64>);

impl Refusals {
    /// Adds one. Are there at least `most` within `span` seconds now?
    pub fn add(&mut self, now: Duration, most: f64, span: f64) -> bool {
        let now = now.as_secs_f64();
        self.0.push_back(now);
        count_within(&mut self.0, now, span) as f64 >= most
    }
}
