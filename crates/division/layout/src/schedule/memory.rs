//! What is remembered of schedules between looks, and over a restart.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::schedule::{Moment, When};

/// Of the schedules of one layout on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The layout's path; absolute.
    pub layout: PathBuf,
    /// Of its text: another text is another layout.
    pub checksum: u32,
    /// The boot's ID: delays begin again with each boot.
    pub boot: String,
    /// When the layout was applied first, on `CLOCK_BOOTTIME`.
    pub applied: Duration,
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
    /// Is that the generation of the whole layout, which was applied while this was in force?
    #[serde(default)]
    pub with_layout: bool,
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
    /// Goes on with what was remembered of this layout. With another text, or after another boot, delays and events begin again,
    /// and what a calendar has in force stays; another layout has nothing in force. `uptime` is `CLOCK_BOOTTIME`.
    pub fn follow(
        &mut self,
        (layout, checksum): (&Path, u32),
        (boot, uptime): (&str, Duration),
        schedules: &[(&str, &When)],
    ) {
        if self.layout != layout {
            *self = Memory::default();
        }
        let when = |name: &str| schedules.iter().find(|(other, _)| *other == name).map(|(_, when)| *when);
        let (same_text, same_boot) = (self.checksum == checksum, self.boot == boot);
        self.in_force.retain(|one| match when(&one.name) {
            Some(When::At { .. }) => true,
            Some(_) => same_text && same_boot,
            None => false,
        });
        self.last.retain(|name, _| when(name).is_some());
        if !same_boot {
            // groups of an earlier boot are gone, and nobody undid them
            self.in_force.iter_mut().for_each(|one| one.generation = None);
        }
        if !(same_text && same_boot) {
            self.applied = uptime;
            self.levels.clear();
            self.seen =
                self.seen.filter(|_| same_text).map(|seen| Moment { elapsed: Duration::ZERO, ..seen });
        }
        self.layout = layout.to_owned();
        self.checksum = checksum;
        self.boot = boot.to_owned();
    }

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
            self.in_force.push(InForce {
                name: name.to_owned(),
                since: at,
                generation: None,
                with_layout: false,
            });
        }
        true
    }

    /// The names of what is in force, in order.
    pub fn names(&self) -> Vec<&str> {
        self.in_force.iter().map(|one| one.name.as_str()).collect()
    }
}
