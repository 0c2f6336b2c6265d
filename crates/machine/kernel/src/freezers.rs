//! Which frozen group keeps a task from running.

use std::collections::HashMap;

use settings::{Controller, Version};

use crate::{GroupName, Hierarchy, Host, Seat, control::frozen_at};

/// The frozen groups that stop tasks. Each group is read once, so this is as old as its first question.
pub struct Freezers<'h> {
    host: &'h Host,
    /// By the hierarchy and the group that tasks are in.
    known: HashMap<(usize, String), Option<String>>,
}

impl<'h> Freezers<'h> {
    /// Reads nothing yet.
    pub fn new(host: &'h Host) -> Freezers<'h> {
        Freezers { host, known: HashMap::new() }
    }

    /// The frozen group that stops a task, the one that it is in or one above, as a user names it. On v1 that need not
    /// be a group that the task is in elsewhere.
    pub fn stopping(&mut self, task: u32) -> Option<String> {
        let host = self.host;
        freezing(host).find_map(|at| {
            let path = at.below_mount(&host.kernel().group_of(at, task).ok()?)?;
            let read = || {
                let frozen = frozen_at(host, &Seat { at, path: path.clone() })?;
                Some(host.named(at, &frozen))
            };
            self.known.entry((at.id, path.clone())).or_insert_with(read).clone()
        })
    }
}

impl Host {
    /// The group that keeps a group frozen, itself or one above it, as a user names it.
    pub fn frozen_by(&self, group: &GroupName) -> Option<String> {
        let mut seats = freezing(self).map(|at| self.seat_in(at, group));
        seats.find_map(|seat| Some(self.named(seat.at, &frozen_at(self, &seat)?)))
    }
}

/// The hierarchies that can stop tasks.
fn freezing(host: &Host) -> impl Iterator<Item = &Hierarchy> {
    let freezes =
        |at: &&Hierarchy| at.version == Version::V2 || at.controllers.contains(&Controller::Freezer);
    host.hierarchies().iter().filter(freezes)
}
