//! Which knobs of the machine a group's CPUs, or the machine, are to have.

use std::collections::BTreeMap;

use knobs::Budget;

/// Rows of the table of knobs, and what a measurement may find in spite of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolate {
    /// By name, with the value that the layout names; `None` is the usual one.
    pub rows: BTreeMap<&'static str, Option<String>>,
    /// Of a group.
    pub budget: Budget,
}

impl Isolate {
    /// All rows of a level; `None` if it is no level.
    pub fn of_level(word: &str) -> Option<Isolate> {
        let rows = knobs::of_level(word)?.map(|knob| (knob.name, None)).collect();
        Some(Isolate { rows, budget: Budget::default() })
    }
}

/// The levels, each with all of the one before.
pub(crate) const LEVELS: [&str; 3] = ["cpus", "quiet", "full"];
