//! What is remembered of schedules between looks, and over a restart.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Moment;

/// Of the schedules of one layout on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The layout's path; absolute.
    pub layout: PathBuf,
    /// Of its text: another text is another layout.
    pub checksum: u32,
    /// The boot's ID: delays begin anew with each boot.
    pub boot: String,
    /// When the layout was applied first, on `CLOCK_BOOTTIME`.
    pub applied: std::time::Duration,
    /// Up to when everything was decided.
    pub seen: Option<Moment>,
    /// The changes in force in the order in which they were made; the last counts most.
    pub in_force: Vec<InForce>,
    /// Was a unit active, did a process run? By schedule.
    pub levels: BTreeMap<String, bool>,
    /// What was done last, by schedule.
    pub last: BTreeMap<String, Last>,
}

/// A change in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// The schedule's name.
    pub name: String,
    /// The moment that it was made for.
    pub since: Timestamp,
    /// Its number in the history; `None`: there was nothing to do, or it is under way.
    pub generation: Option<u32>,
}

/// What a schedule did last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// The moment that it was to happen.
    pub at: Timestamp,
    /// Made, or taken back?
    pub on: bool,
    /// Its number in the history, if there was something to do.
    pub generation: Option<u32>,
    /// Why it was not done, if it was not.
    pub failure: Option<String>,
}

impl Memory {
    /// Is the change of this schedule in force?
    pub fn is_in_force(&self, name: &str) -> bool {
        self.in_force.iter().any(|one| one.name == name)
    }

    /// Makes a change or takes it back; one that is made again counts most. False: it is as it was.
    pub fn turn(&mut self, name: &str, on: bool, at: Timestamp) -> bool {
        let newest = self.in_force.last().is_some_and(|one| one.name == name);
        let was = self.is_in_force(name);
        if on && newest || !on && !was {
            return false;
        }
        self.in_force.retain(|one| one.name != name);
        if on {
            self.in_force.push(InForce { name: name.to_owned(), since: at, generation: None });
        }
        true
    }

    /// The names of what is in force, in order.
    pub fn names(&self) -> Vec<&str> {
        self.in_force.iter().map(|one| one.name.as_str()).collect()
    }
}
