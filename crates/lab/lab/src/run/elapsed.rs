//! Times of a run, counted from its begin.

use std::time::Instant;

/// Seconds from one instant to another, negative if it is before.
pub(crate) fn since(at: Instant, from: Instant) -> f64 {
    match at.checked_duration_since(from) {
        Some(time) => time.as_secs_f64(),
        None => -from.duration_since(at).as_secs_f64(),
    }
}
