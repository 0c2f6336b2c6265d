//! Which frozen group keeps a task from running.

use std::collections::HashMap;

use settings::{Controller, Version};

use units::group_path;

use crate::{GroupName, Hierarchy, Host, control::asks_itself};

/// The frozen groups that stop tasks. Each group is read once, so this is as old as its first question.
pub struct Freezers<'h> {
    host: &'h Host,
    /// By the hierarchy and the group.
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
            Some(host.named(at, &self.at(at, &path)?))
        })
    }

    /// As [`Host::frozen_by`].
    pub fn by(&mut self, group: &GroupName) -> Option<String> {
        let host = self.host;
        let mut seats = freezing(host).map(|at| host.seat_in(at, group));
        seats.find_map(|seat| Some(host.named(seat.at, &self.at(seat.at, &seat.path)?)))
    }

    /// The nearest group whose own file requests the freeze.
    fn at(&mut self, at: &Hierarchy, path: &str) -> Option<String> {
        let above = group_path::parent(path)?;
        if let Some(known) = self.known.get(&(at.id, path.to_owned())) {
            return known.clone();
        }
        let own = asks_itself(self.host, at, path).then(|| path.to_owned());
        let frozen = own.or_else(|| self.at(at, above));
        self.known.insert((at.id, path.to_owned()), frozen.clone());
        frozen
    }
}

impl Host {
    /// The group that keeps a group frozen, itself or one above it, as a user names it.
    pub fn frozen_by(&self, group: &GroupName) -> Option<String> {
        Freezers::new(self).by(group)
    }
}

/// The hierarchies that can stop tasks.
fn freezing(host: &Host) -> impl Iterator<Item = &Hierarchy> {
    let freezes =
        |at: &&Hierarchy| at.version == Version::V2 || at.controllers.contains(&Controller::Freezer);
    host.hierarchies().iter().filter(freezes)
}
