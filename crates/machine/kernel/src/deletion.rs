//! Removes groups: checked before the first one goes, the deepest first, in every hierarchy that is meant.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use rustix::io::Errno;
use settings::Version;
use units::group_path;

use crate::{Change, Error, GroupName, Host, Op, Seat, control_files::SUBTREE_CONTROL, refuse_foreign};

/// What is done with what a doomed group holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// The groups below go too; else they keep it.
    pub groups: bool,
    /// Tasks move up to the nearest group that stays, as libcgroup's commands have it; else they keep it. On v2 they keep it
    /// where that one gives controllers to groups below it, and so may hold none.
    pub tasks_move_up: bool,
}

/// A group whose tasks fork faster than they can be moved away.
const MAX_PASSES: usize = 1000;

impl Host {
    /// Removes one group; see [`Host::delete_all`].
    ///
    /// # Errors
    /// As [`Host::delete_all`].
    pub fn delete(&self, group: &GroupName, recursive: bool) -> Result<Vec<PathBuf>, Error> {
        self.delete_all(std::slice::from_ref(group), recursive)
    }

    /// Removes groups from every hierarchy they are in. Without `recursive` they must have no children but those
    /// that are named too. Everything is checked before the first directory goes.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::RootGroup`], [`Error::Refused`] (tasks or children); [`Error::PartlyDeleted`]
    /// if a task came in meanwhile.
    pub fn delete_all(&self, groups: &[GroupName], recursive: bool) -> Result<Vec<PathBuf>, Error> {
        let mut doomed = Vec::new();
        for group in groups {
            if group.path().is_empty() {
                return Err(Error::RootGroup { what: "deletion" });
            }
            refuse_foreign(group, Change::Delete)?;
            doomed.extend(self.existing(group)?.into_iter().map(|seat| (seat, group.clone())));
        }
        self.delete_at(&doomed, Contents { groups: recursive, tasks_move_up: false })
    }

    /// Removes groups each from one hierarchy, as [`Host::delete_all`] does.
    ///
    /// # Errors
    /// As [`Host::delete_all`]; [`Error::NotControlled`].
    pub fn delete_at(
        &self,
        groups: &[(Seat<'_>, GroupName)],
        contents: Contents,
    ) -> Result<Vec<PathBuf>, Error> {
        let mut doomed: Vec<(Seat<'_>, &GroupName)> = Vec::new();
        for (seat, group) in groups {
            if group.path().is_empty() {
                return Err(Error::RootGroup { what: "deletion" });
            }
            refuse_foreign(group, Change::Delete)?;
            self.refuse_missing(seat, group)?;
            if contents.groups {
                let below = self.kernel.descendants(seat.at, &seat.path);
                let below = below.map_err(|errno| self.refused(Op::List, seat, group, None, None, errno))?;
                doomed.extend(below.into_iter().map(|path| (Seat { at: seat.at, path }, group)));
            }
            doomed.push((seat.clone(), group));
        }
        // the deepest first; one that was named twice goes once
        doomed.sort_by_key(|(seat, _)| {
            (std::cmp::Reverse(seat.path.matches('/').count()), seat.at.id, seat.path.clone())
        });
        doomed.dedup_by(|(a, _), (b, _)| a == b);
        self.deletable(&doomed, contents)?;
        let going: BTreeSet<(usize, &str)> = going(&doomed);
        let mut gone = Vec::with_capacity(doomed.len());
        for (seat, group) in &doomed {
            let heir = heir(seat, &going);
            let removed = match contents.tasks_move_up && self.takes_tasks(seat, heir) {
                true => self.remove_with_tasks(seat, group, heir),
                false => self.remove(seat, group),
            };
            if let Err(error) = removed {
                let partly = |error| Error::PartlyDeleted { error: Box::new(error), gone: gone.clone() };
                return Err(if gone.is_empty() { error } else { partly(error) });
            }
            gone.push(seat.directory());
        }
        Ok(gone)
    }

    /// Holds none of them a task that stays, or a group that is to stay?
    fn deletable(&self, doomed: &[(Seat<'_>, &GroupName)], contents: Contents) -> Result<(), Error> {
        let going = going(doomed);
        for (seat, group) in doomed {
            let busy = || self.refused(Op::Delete, seat, group, None, None, Errno::BUSY);
            let children = self.kernel.children(seat.at, &seat.path).unwrap_or_default();
            let stays =
                |name: &String| !going.contains(&(seat.at.id, group_path::join(&seat.path, name).as_str()));
            let moves = contents.tasks_move_up && self.takes_tasks(seat, heir(seat, &going));
            if (!moves && !self.tasks_in(seat).is_empty()) || children.iter().any(stays) {
                return Err(busy());
            }
        }
        Ok(())
    }

    /// May a group above hold tasks? The root always may.
    fn takes_tasks(&self, seat: &Seat<'_>, heir: &str) -> bool {
        let gives = || self.kernel.read(seat.at, heir, SUBTREE_CONTROL).unwrap_or_default();
        seat.at.version == Version::V1 || heir.is_empty() || gives().trim().is_empty()
    }

    /// Tasks that ended a moment ago may still hold their group: EBUSY without a task listed is tried again.
    fn remove(&self, seat: &Seat<'_>, group: &GroupName) -> Result<(), Error> {
        let mut attempt = 0;
        loop {
            match self.kernel.rmdir(seat.at, &seat.path) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY) if attempt < 100 && self.tasks_in(seat).is_empty() => {
                    attempt += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(errno) => return Err(self.refused(Op::Delete, seat, group, None, None, errno)),
            }
        }
    }

    /// The same once the tasks are moved to the group `heir`; those that are forked meanwhile, too.
    fn remove_with_tasks(&self, seat: &Seat<'_>, group: &GroupName, heir: &str) -> Result<(), Error> {
        // on v1 one by one: a process's threads may be in different groups. On v2 a thread may not leave the others of its process
        // for a group out of theirs: all of them move
        let file = if seat.at.version == Version::V1 { "tasks" } else { "cgroup.procs" };
        for _ in 0..MAX_PASSES {
            let tasks: Vec<u32> = match seat.at.version {
                Version::V1 => {
                    let tasks = self.kernel.read(seat.at, &seat.path, file).unwrap_or_default();
                    tasks.lines().filter_map(|line| line.parse().ok()).collect()
                }
                Version::V2 => self.tasks_in(seat),
            };
            if tasks.is_empty() {
                match self.remove(seat, group) {
                    Err(Error::Refused(refusal))
                        if refusal.errno == Errno::BUSY && !self.tasks_in(seat).is_empty() => {}
                    removed => return removed,
                }
            }
            let to = Seat { at: seat.at, path: heir.to_owned() };
            for pid in tasks {
                match self.kernel.write(to.at, &to.path, file, &pid.to_string()) {
                    Ok(()) | Err(Errno::SRCH) => {} // or it ended meanwhile
                    Err(errno) => {
                        let named = GroupName::new(&self.named(to.at, &to.path))?;
                        let value = pid.to_string();
                        return Err(self.refused(
                            Op::Move { pid },
                            &to,
                            &named,
                            Some(file),
                            Some(&value),
                            errno,
                        ));
                    }
                }
            }
        }
        Err(self.refused(Op::Delete, seat, group, None, None, Errno::BUSY))
    }
}

fn going<'d>(doomed: &'d [(Seat<'_>, &GroupName)]) -> BTreeSet<(usize, &'d str)> {
    doomed.iter().map(|(seat, _)| (seat.at.id, seat.path.as_str())).collect()
}

/// The nearest group above that stays.
fn heir<'s>(seat: &'s Seat<'_>, going: &BTreeSet<(usize, &str)>) -> &'s str {
    let mut path = seat.path.as_str();
    loop {
        path = group_path::parent(path).unwrap_or_default();
        if path.is_empty() || !going.contains(&(seat.at.id, path)) {
            return path;
        }
    }
}
