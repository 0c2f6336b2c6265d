//! Moves processes, threads and whole process trees into a group, in every hierarchy that the group is in, and
//! back again if one of them refuses.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use settings::Version;

use crate::{Error, GroupName, Host, Op, Process, Seat};

/// What a number given to [`Host::move_tasks`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A process with all its threads.
    Process,
    /// One thread.
    Thread,
    /// A process and all its descendants, also those that it forks meanwhile.
    Tree,
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Moved {
    /// The processes or threads, ascending.
    pub tasks: Vec<u32>,
    /// The hierarchies they were moved in, as directories.
    pub directories: Vec<std::path::PathBuf>,
    /// Processes that ended before they could be moved.
    pub gone: Vec<u32>,
}

/// One write that was done: where the task was before.
struct Step {
    hierarchy: usize,
    pid: u32,
    from: String,
}

/// A tree that still grows after so many passes forks faster than it can be read.
const MAX_PASSES: usize = 1000;

impl Host {
    /// Moves tasks into `group`, all of them in all of its hierarchies or none.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NoProcess`], [`Error::KernelThread`], [`Error::OfUnit`], [`Error::Foreign`],
    /// [`Error::Refused`].
    pub fn move_tasks(&self, group: &GroupName, pids: &[u32], what: What) -> Result<Moved, Error> {
        self.refuse_foreign(group, None)?;
        let seats = if group.path().is_empty() {
            self.hierarchies().iter().map(|at| self.seat_in(at, group)).collect()
        } else {
            self.existing(group)?
        };
        for &pid in pids {
            self.movable(pid)?;
        }
        let mut done = Vec::new();
        let result = match what {
            What::Process | What::Thread => {
                pids.iter().try_for_each(|&pid| self.move_one(&seats, group, pid, what, &mut done))
            }
            What::Tree => self.move_trees(&seats, group, pids, &mut done),
        };
        if let Err(error) = result {
            self.move_back(&done, what);
            return Err(error);
        }
        let tasks: BTreeSet<u32> = done.iter().map(|step| step.pid).chain(pids.iter().copied()).collect();
        let (tasks, gone) = tasks.into_iter().partition(|&pid| self.kernel.process(pid).is_ok());
        Ok(Moved { tasks, directories: seats.iter().map(Seat::directory).collect(), gone })
    }

    fn movable(&self, pid: u32) -> Result<Process, Error> {
        let process = self.kernel.process(pid).map_err(|_| Error::NoProcess { pid })?;
        if process.kernel_thread {
            return Err(Error::KernelThread { pid, comm: process.comm });
        }
        if let Some(unit) = self.service_of(pid) {
            return Err(Error::OfUnit { pid, comm: process.comm, unit });
        }
        Ok(process)
    }

    fn move_one(
        &self,
        seats: &[Seat<'_>],
        group: &GroupName,
        pid: u32,
        what: What,
        done: &mut Vec<Step>,
    ) -> Result<(), Error> {
        let gone = || Error::NoProcess { pid };
        for seat in seats {
            let from = self.kernel.group_of(seat.at, pid).map_err(|_| gone())?;
            let from = seat.at.below_mount(&from).unwrap_or_default();
            // a process that is there already may have threads elsewhere: only v2's threads can't
            if from == seat.path && what == What::Process && self.is_whole(seat, pid) {
                continue;
            }
            let file = task_file(seat.at.version, what);
            match self.kernel.write(seat.at, &seat.path, file, &pid.to_string()) {
                Ok(()) => done.push(Step { hierarchy: seat.at.id, pid, from }),
                Err(Errno::SRCH) => return Err(gone()),
                Err(errno) => {
                    return Err(self.refused(
                        Op::Move { pid },
                        seat,
                        group,
                        Some(file),
                        Some(&pid.to_string()),
                        errno,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Are all threads of the process in the same v1 group as itself?
    fn is_whole(&self, seat: &Seat<'_>, pid: u32) -> bool {
        let threads = self.kernel.threads(pid).unwrap_or_default();
        seat.at.version == Version::V2
            || threads.iter().all(|&tid| {
                let path =
                    self.kernel.group_of(seat.at, tid).ok().and_then(|path| seat.at.below_mount(&path));
                path.as_deref() == Some(seat.path.as_str())
            })
    }

    /// A fork copies the parent's group, so a child can only be outside if it was forked before its parent was
    /// moved: passes over the tree end when one finds nobody new.
    fn move_trees(
        &self,
        seats: &[Seat<'_>],
        group: &GroupName,
        roots: &[u32],
        done: &mut Vec<Step>,
    ) -> Result<(), Error> {
        let mut moved: BTreeSet<u32> = BTreeSet::new();
        for _ in 0..MAX_PASSES {
            let tree = self.tree(roots, &moved)?;
            let new: Vec<u32> = tree.difference(&moved).copied().collect();
            if new.is_empty() {
                return Ok(());
            }
            for pid in new {
                match self.move_one(seats, group, pid, What::Process, done) {
                    Err(Error::NoProcess { .. }) if !roots.contains(&pid) => {} // it ended meanwhile
                    other => other?,
                }
                moved.insert(pid);
            }
        }
        Err(Error::Timeout {
            what: "moving the process tree",
            group: group.to_string(),
            seconds: 0,
            left: format!("it forks faster than it can be moved ({} processes moved)", moved.len()),
        })
    }

    /// The roots and everything that descends from them or from an already moved process.
    fn tree(&self, roots: &[u32], moved: &BTreeSet<u32>) -> Result<BTreeSet<u32>, Error> {
        let outside = |errno| Error::Outside { what: "cannot list /proc".to_owned(), errno, hint: None };
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in self.kernel.processes().map_err(outside)? {
            if let Ok(process) = self.kernel.process(pid) {
                children.entry(process.parent).or_default().push(pid);
            }
        }
        let mut tree = BTreeSet::new();
        let mut open: Vec<u32> = roots.iter().chain(moved).copied().collect();
        while let Some(pid) = open.pop() {
            if tree.insert(pid) {
                open.extend(children.get(&pid).into_iter().flatten());
            }
        }
        Ok(tree)
    }

    /// Best effort in reverse order: the first error is what the user hears.
    fn move_back(&self, done: &[Step], what: What) {
        for step in done.iter().rev() {
            let at = &self.hierarchies()[step.hierarchy];
            let _ = self.kernel.write(at, &step.from, task_file(at.version, what), &step.pid.to_string());
        }
    }
}

fn task_file(version: Version, what: What) -> &'static str {
    match (version, what) {
        (_, What::Process | What::Tree) => "cgroup.procs",
        (Version::V1, What::Thread) => "tasks",
        (Version::V2, What::Thread) => "cgroup.threads",
    }
}
