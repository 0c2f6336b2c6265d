//! The processes of a group that is made in one more v1 hierarchy: without them a limit there would hold for none of them, and
//! a figure would count none. Moves nobody out of a group that somebody chose.

use std::collections::{BTreeMap, BTreeSet};

use settings::Version;
use units::group_path;

use crate::{Created, Error, GroupName, Host, Op, Seat, What, tasks::task_file};

/// How often the processes are looked at again, as they may have forked meanwhile.
const MAX_PASSES: usize = 64;

/// What came of the processes of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Brought {
    /// The processes that were moved.
    pub moved: BTreeSet<u32>,
    /// Those that were left in a group of another branch, by the controllers and that group.
    pub elsewhere: BTreeMap<(String, String), BTreeSet<u32>>,
    /// Those that could not be moved.
    pub refused: BTreeMap<u32, Error>,
}

impl Host {
    /// Puts the processes of `group`, and of the groups below it, into the directories that were made of it just now, in v1
    /// hierarchies. A process comes from a group above, where it was without the group; it goes to the place of its own group, or, where that
    /// is not there, to the nearest above.
    pub fn bring_along(&self, group: &GroupName, created: &Created) -> Brought {
        let mut brought = Brought::default();
        let all = self.hierarchies().iter().map(|at| self.seat_in(at, group));
        let is_new =
            |seat: &Seat<'_>| seat.at.version == Version::V1 && created.made.contains(&seat.directory());
        let (new, old): (Vec<Seat<'_>>, Vec<Seat<'_>>) = all.partition(is_new);
        if new.is_empty() {
            return brought;
        }
        for _ in 0..MAX_PASSES {
            let mut is_done = true;
            for (pid, below) in self.members(&old) {
                for seat in &new {
                    is_done &= !self.bring(seat, group, (pid, &below), &mut brought);
                }
            }
            if is_done {
                break;
            }
        }
        brought
    }

    /// The processes in these directories and below them, each with its group's path below that one.
    fn members(&self, seats: &[Seat<'_>]) -> BTreeMap<u32, String> {
        let mut members = BTreeMap::new();
        for seat in seats.iter().filter(|seat| self.kernel.exists(seat.at, &seat.path)) {
            let below = self.kernel.descendants(seat.at, &seat.path).unwrap_or_default();
            for path in std::iter::once(seat.path.clone()).chain(below) {
                let rest = path.get(seat.path.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
                for pid in self.tasks_in(&Seat { at: seat.at, path }) {
                    members.entry(pid).or_insert_with(|| rest.clone());
                }
            }
        }
        members
    }

    /// Was the process moved?
    fn bring(
        &self,
        seat: &Seat<'_>,
        group: &GroupName,
        (pid, below): (u32, &str),
        brought: &mut Brought,
    ) -> bool {
        if brought.refused.contains_key(&pid) {
            return false;
        }
        let now = self.kernel.group_of(seat.at, pid).ok().and_then(|path| seat.at.below_mount(&path));
        let Some(now) = now.filter(|now| !group_path::is_at_or_below(now, &seat.path)) else { return false };
        if !group_path::is_below(&seat.path, &now) {
            let there = (seat.at.label(), self.named(seat.at, &now));
            brought.elsewhere.entry(there).or_default().insert(pid);
            return false;
        }
        let own = group_path::join(&seat.path, below);
        let is_there = |path: &&str| self.kernel.exists(seat.at, path);
        let to = group_path::branch(&own).filter(is_there).max_by_key(|path| path.len());
        let to = Seat { at: seat.at, path: to.unwrap_or(&seat.path).to_owned() };
        let moved = self.movable(pid).and_then(|_| {
            let (file, text) = (task_file(to.at.version, What::Process), pid.to_string());
            self.kernel
                .write(to.at, &to.path, file, &text)
                .map_err(|errno| self.refused(Op::Move { pid }, &to, group, Some(file), Some(&text), errno))
        });
        match moved {
            Ok(()) => brought.moved.insert(pid),
            Err(Error::NoProcess { .. }) => false,
            Err(error) => {
                brought.refused.insert(pid, error);
                false
            }
        }
    }
}
