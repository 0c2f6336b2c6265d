//! Time waited for block devices, and the part of it that want of memory caused.

use std::time::Duration;

use super::{
    answer::{Certainty, Lost},
    facts::{Facts, MemoryStop},
};

/// In bytes, as statistics count it.
pub(super) const PAGE: u64 = 4096;

/// What tasks lost that stood still at a limit of memory.
pub(crate) fn time_of(stop: &MemoryStop, span: Duration) -> Duration {
    span.saturating_mul(u32::try_from(stop.tasks.max(1)).unwrap_or(u32::MAX))
}

/// Time waited for I/O of any kind. A task that v1 froze is in the same state as one that waits for a disk.
pub(crate) fn slept(facts: &Facts) -> Option<Lost> {
    let is_frozen = facts.levels.iter().any(|level| level.frozen.0 || level.frozen.1);
    // nor does one wait for a disk that stands still at a limit of memory, on v1 in that state too
    let at_memory: Duration = facts.memory_stops.iter().map(|stop| time_of(stop, facts.span)).sum();
    let blocked = facts.io.blocked.map(|time| time.saturating_sub(at_memory));
    match (facts.io.pressure, blocked.filter(|_| !is_frozen)) {
        (Some(time), _) => Some(Lost::new(time, Certainty::Measured)),
        (None, Some(time)) => Some(Lost::new(time, Certainty::Sampled)),
        (None, None) => None,
    }
}

/// The part of what the group read that it had to read again.
///
/// The kernel forgets dropped pages where it has many for the group's size, or takes the group for smaller than it is, as
/// it does for the first seconds (seen: every second page). What was forgotten is taken to come again as what was not, but
/// not to be more than that, as it may be others'.
pub(crate) fn refault_part(facts: &Facts) -> f64 {
    let read: u64 = facts.io.devices.iter().map(|device| device.rbytes).sum();
    let counted = facts.memory.refaults_file + facts.memory.refaults_anon;
    let again = counted.saturating_add(facts.memory.forgotten.min(counted)).saturating_mul(PAGE);
    if again == 0 { 0.0 } else { (again as f64 / read.max(1) as f64).min(1.0) }
}
