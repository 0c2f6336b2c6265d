//! Which knobs of the machine a group's CPUs, or the machine, are to have.

use std::collections::BTreeMap;

/// Rows of the table of knobs, by name, with the value that the layout names; `None` is the usual one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolate(pub BTreeMap<&'static str, Option<String>>);

impl Isolate {
    /// All rows of a level; `None` if it is no level.
    pub fn of_level(word: &str) -> Option<Isolate> {
        Some(Isolate(knobs::of_level(word)?.map(|knob| (knob.name, None)).collect()))
    }
}

/// The levels, each with all of the one before.
pub(crate) const LEVELS: [&str; 3] = ["cpus", "quiet", "full"];
