//! The daemon's own counters, shared with the code that shows them. They only rise.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::tally::{self, Tallies};

/// Counters, each from the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Process events that were received.
    pub events: AtomicU64,
    /// Times that the kernel dropped events for want of room.
    pub overruns: AtomicU64,
    /// Scans of all processes: at the start, after an overrun, after a reload.
    pub scans: AtomicU64,
    /// Decisions made.
    pub decisions: AtomicU64,
    /// Processes that were in their group already.
    pub there: AtomicU64,
    /// Processes that were moved.
    pub moved: AtomicU64,
    /// Processes that were left where somebody had put them.
    pub by_hand: AtomicU64,
    /// Processes that a rule takes and that ended before they were moved.
    pub missed: AtomicU64,
    /// Processes that could not be moved.
    pub failed: AtomicU64,
    /// Groups made on demand that were removed again.
    pub swept: AtomicU64,
    /// Reloads that were followed.
    pub reloads: AtomicU64,
    /// Reloads that were refused.
    pub refused: AtomicU64,
    /// Values that were no longer as applied.
    pub drifts: AtomicU64,
    /// Times that the layout was made good again.
    pub repairs: AtomicU64,
    /// Changes of elastic groups' CPUs.
    pub resizes: AtomicU64,
    /// Those that the kernel refused.
    pub resizes_refused: AtomicU64,
    /// Changes of quotas.
    pub quota_resizes: AtomicU64,
    /// Those that the kernel refused.
    pub quota_resizes_refused: AtomicU64,
    /// Changes of protected memory.
    pub memory_resizes: AtomicU64,
    /// Those that the kernel refused.
    pub memory_resizes_refused: AtomicU64,
    /// Times that resizing ended, as changes were refused or did harm.
    pub given_up: AtomicU64,
    /// Changes of others that were rolled back, as nobody confirmed or finished them.
    pub takeovers: AtomicU64,
    /// Processes that the kernel killed as a group met its limit of memory.
    pub killed_at_a_limit: AtomicU64,
    /// Those that it killed as the machine had no memory left.
    pub killed_on_the_machine: AtomicU64,
    /// Those of which it did not log why.
    pub killed_unknown: AtomicU64,
    /// 1 once the kernel's log is read for these.
    pub kills_are_read: AtomicU64,
    /// Gates of strict rules that came to answer.
    pub gates: AtomicU64,
    /// Gates that were late and were ended.
    pub gates_late: AtomicU64,
    /// What gates count: `gate_left`, `gate_moved` and `gate_let_go` by the outcome of a gated start, and `gate_usec`, how
    /// long these took; together they are all answers.
    gate_tallies: OnceLock<Option<Arc<Tallies>>>,
    /// Moves by their time from the event to the end of the move: below 2^i microseconds, and not below half of it.
    latency: [AtomicU64; Figures::BUCKETS],
    /// The sum of these times, in microseconds.
    latency_sum: AtomicU64,
}

/// Counters as they were at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// By name, in the order of [`Counters`]; of gates' answers their outcomes, and the sum of their microseconds.
    pub counts: Vec<(&'static str, u64)>,
    /// Moves by their latency: the upper bound in microseconds, and how many were below it and not below the one before.
    pub latency: Vec<(u64, u64)>,
    /// The sum of all latencies, in microseconds.
    pub latency_sum: u64,
}

impl Figures {
    /// Up to 2^23 us, about 8 s; the last one takes all above.
    const BUCKETS: usize = 24;
}

impl Counters {
    /// One more.
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Where gates count; `None` if there can be no such place.
    pub(crate) fn tallies(&self) -> Option<Arc<Tallies>> {
        self.gate_tallies.get_or_init(|| Tallies::new().ok().map(Arc::new)).clone()
    }

    /// The time from an event until its process was moved.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.latency[bucket.min(Figures::BUCKETS - 1)].fetch_add(1, Relaxed);
        self.latency_sum.fetch_add(micros, Relaxed);
    }

    /// As they are now.
    pub fn figures(&self) -> Figures {
        let counts = [
            ("events", &self.events),
            ("overruns", &self.overruns),
            ("scans", &self.scans),
            ("decisions", &self.decisions),
            ("there", &self.there),
            ("moved", &self.moved),
            ("by_hand", &self.by_hand),
            ("missed", &self.missed),
            ("failed", &self.failed),
            ("swept", &self.swept),
            ("reloads", &self.reloads),
            ("refused", &self.refused),
            ("drifts", &self.drifts),
            ("repairs", &self.repairs),
            ("resizes", &self.resizes),
            ("resizes_refused", &self.resizes_refused),
            ("quota_resizes", &self.quota_resizes),
            ("quota_resizes_refused", &self.quota_resizes_refused),
            ("memory_resizes", &self.memory_resizes),
            ("memory_resizes_refused", &self.memory_resizes_refused),
            ("given_up", &self.given_up),
            ("takeovers", &self.takeovers),
            ("killed_at_a_limit", &self.killed_at_a_limit),
            ("killed_on_the_machine", &self.killed_on_the_machine),
            ("killed_unknown", &self.killed_unknown),
            ("kills_are_read", &self.kills_are_read),
            ("gates", &self.gates),
            ("gates_late", &self.gates_late),
        ];
        let latency = self.latency.iter().enumerate().map(|(at, count)| (1 << at, count.load(Relaxed)));
        // not made for those who only ask
        let tallies = self.gate_tallies.get().and_then(Option::as_ref);
        let of_gates = tallies.map(|tallies| tallies.sums()).unwrap_or_default();
        let counts = counts.into_iter().map(|(name, counter)| (name, counter.load(Relaxed)));
        Figures {
            counts: counts.chain(tally::NAMES.into_iter().zip(of_gates)).collect(),
            latency: latency.collect(),
            latency_sum: self.latency_sum.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_counted_once_they_have_a_place_for_it() {
        let counters = Counters::default();
        let names =
            |counters: &Counters| counters.figures().counts.into_iter().map(|(name, _)| name).collect();
        let before: Vec<&str> = names(&counters);
        assert!(before.ends_with(&tally::NAMES), "{before:?}");
        counters.tallies().unwrap();
        assert_eq!(before, names(&counters), "a reader finds the same names always");
    }

    #[test]
    fn a_latency_is_counted_below_the_next_power_of_two() {
        let counters = Counters::default();
        for micros in [0, 1, 2, 3, 4, u64::MAX] {
            counters.took(Duration::from_micros(micros));
        }
        let latency = counters.figures().latency;
        let taken: Vec<(u64, u64)> = latency.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(taken, [(1, 1), (2, 1), (4, 2), (8, 1), (1 << 23, 1)]);
    }
}
