//! Moves processes, threads and whole process trees into a group, in every hierarchy that the group is in, and
//! back again if one of them refuses.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use settings::{Controller, Version};

use crate::{
    Change, Error, GroupName, Host, Op, Process, Seat, describe, protected::protected, refuse_foreign,
    unit_group, unit_of,
};

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
    /// The group that each process was in before, where memory is counted; a path below the mount.
    #[serde(skip)]
    pub(crate) memory_from: BTreeMap<u32, String>,
}

/// Where a task was before it was moved.
struct Step {
    hierarchy: usize,
    /// A process, or on v1 one of its threads: they may have been in different groups.
    task: u32,
    from: String,
}

/// A tree that still grows after this many passes forks faster than it can be read.
const MAX_PASSES: usize = 1000;

impl Host {
    /// Moves tasks into `group`, all of them in all of its hierarchies or none.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NoProcess`], [`Error::KernelThread`], [`Error::OfUnit`], [`Error::Protected`], [`Error::Foreign`],
    /// [`Error::Refused`].
    pub fn move_tasks(&self, group: &GroupName, pids: &[u32], what: What) -> Result<Moved, Error> {
        if service_of(std::iter::once(group)).is_none() {
            refuse_foreign(group, Change::Enter)?;
        }
        let into: Vec<_> =
            self.seats_to_enter(group)?.into_iter().map(|seat| (seat, group.clone())).collect();
        self.move_into(&into, pids, what)
    }

    /// The directories that [`Host::move_tasks`] moves into.
    ///
    /// # Errors
    /// [`Error::NoGroup`].
    pub fn seats_to_enter(&self, group: &GroupName) -> Result<Vec<Seat<'_>>, Error> {
        if group.path().is_empty() {
            return Ok(self.hierarchies().iter().map(|at| self.seat_in(at, group)).collect());
        }
        self.existing(group)
    }

    /// Moves tasks into groups each in one hierarchy, all of them in all of these or none.
    ///
    /// # Errors
    /// As [`Host::move_tasks`]; [`Error::NotControlled`].
    pub fn move_into(
        &self,
        into: &[(Seat<'_>, GroupName)],
        pids: &[u32],
        what: What,
    ) -> Result<Moved, Error> {
        let service = service_of(into.iter().map(|(_, group)| group));
        for (seat, group) in into {
            if service.is_none() {
                refuse_foreign(group, Change::Enter)?;
            }
            self.refuse_missing(seat, group)?;
        }
        for &pid in pids {
            let movable = self.movable_into(into.iter().map(|(_, group)| group), pid);
            movable.map_err(|error| self.with_properties(error, into))?;
        }
        // v2 asks for more rights: who has these is not refused on v1, where nobody but root moves a process back
        let mut v2_first = into.to_vec();
        v2_first.sort_by_key(|(seat, _)| seat.at.version == Version::V1);
        let mut done = Vec::new();
        let result = match what {
            What::Process | What::Thread => {
                pids.iter().try_for_each(|&pid| self.move_one(&v2_first, pid, what, &mut done))
            }
            What::Tree => self.move_trees(&v2_first, pids, &mut done),
        };
        if let Err(error) = result {
            let left = self.move_back(&done);
            return Err(if left.is_empty() {
                error
            } else {
                Error::NotMovedBack { error: Box::new(error), left }
            });
        }
        let tasks: BTreeSet<u32> =
            done.iter().map(|step| self.process_of(step.task, what)).chain(pids.iter().copied()).collect();
        let memory = self.hierarchy_of(Controller::Memory).map(|at| at.id);
        let counted = done.iter().filter(|step| Some(step.hierarchy) == memory && tasks.contains(&step.task));
        let memory_from = counted.map(|step| (step.task, step.from.clone())).collect();
        let (tasks, gone) = tasks.into_iter().partition(|&pid| self.kernel.process(pid).is_ok());
        let directories = into.iter().map(|(seat, _)| seat.directory()).collect();
        Ok(Moved { tasks, directories, gone, memory_from })
    }

    /// Threads are named one by one only if they were requested one by one.
    fn process_of(&self, task: u32, what: What) -> u32 {
        if what == What::Thread {
            task
        } else {
            self.kernel.process(task).map_or(task, |process| process.tgid)
        }
    }

    /// A process that [`Host::move_tasks`] would take, wherever it leads.
    ///
    /// # Errors
    /// [`Error::NoProcess`], [`Error::KernelThread`], [`Error::OfUnit`], [`Error::Protected`].
    pub fn movable(&self, pid: u32) -> Result<Process, Error> {
        let process = self.kernel.process(pid).map_err(|_| Error::NoProcess { pid })?;
        if process.kernel_thread {
            return Err(Error::KernelThread { pid, comm: units::printable(&process.comm).into_owned() });
        }
        if let Some(role) = protected(self.kernel(), process.tgid) {
            return Err(Error::Protected { pid, role });
        }
        if let Some(unit) = self.service_of(pid) {
            let comm = units::printable(&process.comm).into_owned();
            return Err(Error::OfUnit { pid, comm, unit, given: Vec::new() });
        }
        Ok(process)
    }

    /// The same of a process that is to go into these groups: of a service only into groups in the service's own.
    ///
    /// # Errors
    /// As of [`Host::movable`]; [`Error::Foreign`].
    pub fn movable_into<'g>(
        &self,
        groups: impl Iterator<Item = &'g GroupName> + Clone,
        pid: u32,
    ) -> Result<(), Error> {
        match (self.movable(pid), service_of(groups.clone())) {
            (Err(Error::OfUnit { unit, .. }), Some(own)) if unit == own => Ok(()),
            // only the service's own processes belong there
            (Ok(_), Some(_)) => groups.clone().try_for_each(|group| refuse_foreign(group, Change::Enter)),
            (movable, _) => movable.map(drop),
        }
    }

    /// The same error of [`Host::movable`] with what a service can have in place of its process's move.
    pub fn with_properties(&self, error: Error, into: &[(Seat<'_>, GroupName)]) -> Error {
        match error {
            Error::OfUnit { pid, comm, unit, .. } => {
                let given = self.given(into.iter().map(|(seat, _)| seat));
                Error::OfUnit { pid, comm, unit, given }
            }
            other => other,
        }
    }

    fn move_one(
        &self,
        into: &[(Seat<'_>, GroupName)],
        pid: u32,
        what: What,
        done: &mut Vec<Step>,
    ) -> Result<(), Error> {
        let gone = || Error::NoProcess { pid };
        for (seat, group) in into {
            let before = self.origins(seat, pid, what)?;
            if before.iter().all(|step| step.from == seat.path) {
                continue; // there already, with all its threads
            }
            let file = task_file(seat.at.version, what);
            match self.kernel.write(seat.at, &seat.path, file, &pid.to_string()) {
                Ok(()) => done.extend(before),
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

    /// Where a process, or on v1 each of its threads, is now.
    fn origins(&self, seat: &Seat<'_>, pid: u32, what: What) -> Result<Vec<Step>, Error> {
        let gone = || Error::NoProcess { pid };
        let tasks = match (seat.at.version, what) {
            (Version::V1, What::Process | What::Tree) => self.kernel.threads(pid).map_err(|_| gone())?,
            _ => vec![pid],
        };
        let mut steps = Vec::with_capacity(tasks.len());
        for task in tasks {
            let Ok(path) = self.kernel.group_of(seat.at, task) else { continue }; // a thread that ended
            let Some(from) = seat.at.below_mount(&path) else {
                return Err(Error::OutOfSight { pid, path, mount: seat.at.mount.clone() });
            };
            steps.push(Step { hierarchy: seat.at.id, task, from });
        }
        if steps.is_empty() { Err(gone()) } else { Ok(steps) }
    }

    /// A fork copies the parent's group, so a child can only be outside if it was forked before its parent was
    /// moved: passes over the tree end when one finds nobody new.
    fn move_trees(
        &self,
        into: &[(Seat<'_>, GroupName)],
        roots: &[u32],
        done: &mut Vec<Step>,
    ) -> Result<(), Error> {
        let mut moved: BTreeSet<u32> = BTreeSet::new();
        let seats: Vec<Seat<'_>> = into.iter().map(|(seat, _)| seat.clone()).collect();
        for _ in 0..MAX_PASSES {
            let tree = self.tree(roots, &moved)?;
            // children forked after the move are already in the group, so the loop ends even for a tree that keeps forking
            let is_first = moved.is_empty();
            let new: Vec<u32> = tree.difference(&moved).copied().collect();
            let new: Vec<u32> =
                new.into_iter().filter(|pid| is_first || !self.is_inside(&seats, *pid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            // nobody is moved before all of them may be
            for &pid in &new {
                match self.movable_into(into.iter().map(|(_, group)| group), pid) {
                    Err(Error::NoProcess { .. }) if !roots.contains(&pid) => {}
                    other => drop(other?),
                }
            }
            for pid in new {
                match self.move_one(into, pid, What::Process, done) {
                    Err(Error::NoProcess { .. }) if !roots.contains(&pid) => {} // it ended meanwhile
                    other => other?,
                }
                moved.insert(pid);
            }
        }
        Err(Error::ForkFaster {
            group: into.first().map(|(_, group)| group.to_string()).unwrap_or_default(),
            moved: moved.len(),
            left: {
                let tree = self.tree(roots, &moved)?;
                tree.difference(&moved).filter(|pid| !self.is_inside(&seats, **pid)).count()
            },
        })
    }

    /// Is the process, with all its threads, in the target? One that ended counts as there.
    pub fn is_inside(&self, into: &[Seat<'_>], pid: u32) -> bool {
        let is_at = |seat: &Seat<'_>| match self.origins(seat, pid, What::Tree) {
            Ok(steps) => steps.iter().all(|step| step.from == seat.path),
            Err(error) => matches!(error, Error::NoProcess { .. }),
        };
        into.iter().all(is_at)
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

    /// Puts tasks back in reverse order; says which could not be.
    fn move_back(&self, done: &[Step]) -> Vec<String> {
        let mut left = Vec::new();
        for step in done.iter().rev() {
            let at = &self.hierarchies()[step.hierarchy];
            // of a v2 process, any thread stands for all; of a v1 one, each is put where it was
            let file =
                task_file(at.version, if at.version == Version::V1 { What::Thread } else { What::Process });
            match self.kernel.write(at, &step.from, file, &step.task.to_string()) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => {
                    left.push(format!(
                        "{} could not be put back into {}: {}",
                        step.task,
                        at.path(&step.from).display(),
                        describe(errno)
                    ));
                }
            }
        }
        left
    }
}

/// The service in whose group all of these groups are: its processes may be moved among them.
fn service_of<'g>(groups: impl Iterator<Item = &'g GroupName>) -> Option<String> {
    let service = |group: &GroupName| {
        let path = group.path();
        let is_below = group.is_from_root() && unit_group(path).is_some_and(|unit| unit.len() < path.len());
        unit_of(path).filter(|unit| is_below && unit.ends_with(".service") && !unit.starts_with("user@"))
    };
    let services: BTreeSet<Option<String>> = groups.map(service).collect();
    if services.len() == 1 { services.into_iter().next().flatten() } else { None }
}

pub(crate) fn task_file(version: Version, what: What) -> &'static str {
    match (version, what) {
        (_, What::Process | What::Tree) => "cgroup.procs",
        (Version::V1, What::Thread) => "tasks",
        (Version::V2, What::Thread) => "cgroup.threads",
    }
}
