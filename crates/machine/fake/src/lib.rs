//! A kernel's cgroup interface in memory, for tests of everything above it. It knows only what Linux 6.1 (v1, v2
//! and both), 6.12 and 7.2 (v2's exclusive CPUs) and 6.18 (v1) were seen to do, and the conformance suite holds it to real
//! kernels. What it does not know it refuses: a file that is not modelled is `ENOENT`, a write that is not
//! modelled `EOPNOTSUPP`. Beside it, [`suite`] runs the suites that hold it, and all above it, to real kernels.

mod state; // what it remembers
mod worlds; // how it starts

mod files; // is a file there, and who may do what with it
mod groups; // directories
mod look; // what a test reads of it at once
mod numbers; // how written text is read
mod tasks; // processes and their moves

mod core_v1;
mod core_v2;
mod cpu;
mod cpuset_v1;
mod cpuset_v2;
mod devices;
mod exclusive;
mod freezer;
mod io;
mod memory;
mod partitions;
mod pids;
mod realtime;

mod tables; // all files

pub mod suite; // which tests run on this machine

#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;
use settings::{Controller, Version};
use units::group_path;

use kernel::{Hierarchy, Kernel, Ownership, Process};
use state::{Place, State};

pub use look::{Snapshot, Values};

/// A kernel in memory. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct Fake {
    state: Arc<Mutex<State>>,
}

impl Fake {
    /// A plain host with cgroup v1: cpu and cpuacct together, cpuset, blkio, memory, devices, freezer, pids and a
    /// named hierarchy, each at `/sys/fs/cgroup/NAME`; with real-time budgets. The caller is root.
    pub fn v1(cpus: usize, nodes: usize) -> Fake {
        let fake = Fake::new(worlds::V1, cpus, nodes);
        fake.state().realtime = true;
        fake
    }

    /// A plain host with cgroup v2 at `/sys/fs/cgroup`: cpuset, cpu, io, memory and pids. The caller is root.
    pub fn v2(cpus: usize, nodes: usize) -> Fake {
        Fake::new(worlds::V2, cpus, nodes)
    }

    /// As [`Fake::v2`], but as new as Linux 6.12, where a partition's CPUs are named by `cpuset.cpus.exclusive`. What
    /// such a kernel made of overlapping lists was not always the same; those writes are refused with `EOPNOTSUPP`.
    pub fn v2_with_exclusive_cpus(cpus: usize, nodes: usize) -> Fake {
        let fake = Fake::v2(cpus, nodes);
        fake.state().exclusive = true;
        fake.set_outside("/proc/sys/kernel/osrelease", "6.12.95+deb12-cloud-amd64\n");
        fake
    }

    /// As [`Fake::v2_with_exclusive_cpus`], but as new as Linux 7.2: a valid partition's CPUs are its own, whatever its
    /// siblings list. Partitions that claim the same CPUs are refused with `EOPNOTSUPP`.
    pub fn v2_with_firm_partitions(cpus: usize, nodes: usize) -> Fake {
        let fake = Fake::v2_with_exclusive_cpus(cpus, nodes);
        fake.state().firm = true;
        fake.set_outside("/proc/sys/kernel/osrelease", "7.2.12+deb14-cloud-amd64\n");
        fake
    }

    /// A plain host with both: cpu and cpuacct together, cpuset, freezer and devices on v1, and v2 at
    /// `/sys/fs/cgroup/unified` with io, memory and pids. The caller is root.
    pub fn hybrid(cpus: usize, nodes: usize) -> Fake {
        Fake::new(worlds::HYBRID, cpus, nodes)
    }

    fn new(mounts: &[worlds::Mount], cpus: usize, nodes: usize) -> Fake {
        Fake { state: Arc::new(Mutex::new(worlds::fresh(mounts, cpus, nodes))) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new process, child of `parent`, in its groups.
    ///
    /// # Errors
    /// `ESRCH` without such a parent; `EAGAIN` where `pids.max` is reached.
    pub fn spawn(&self, parent: u32) -> Result<u32, Errno> {
        self.state().fork(parent)
    }

    /// One more thread of a process.
    ///
    /// # Errors
    /// As [`Fake::spawn`].
    pub fn spawn_thread(&self, pid: u32) -> Result<u32, Errno> {
        self.state().start_thread(pid)
    }

    /// A process that forks whenever it is looked at, `forks` times in all with its children.
    ///
    /// # Errors
    /// As [`Fake::spawn`].
    pub fn spawn_storm(&self, parent: u32, forks: usize) -> Result<u32, Errno> {
        let mut state = self.state();
        let pid = state.fork(parent)?;
        state.storms.push((pid, forks));
        Ok(pid)
    }

    /// Ends a process with its threads; its parent reaps it at once.
    pub fn end(&self, pid: u32) {
        self.state().end(pid);
    }

    /// Gives a process or thread another policy, as sched_setscheduler(2).
    ///
    /// # Errors
    /// `ESRCH`; `EPERM` for a real-time policy in a v1 group without a real-time budget.
    pub fn set_policy(&self, pid: u32, policy: u32) -> Result<(), Errno> {
        self.state().set_policy(pid, policy)
    }

    /// Changes what `/proc` shows of a process or thread; not its numbers.
    pub fn set_process(&self, pid: u32, change: impl FnOnce(&mut Process)) {
        if let Some(task) = self.state().tasks.get_mut(&pid) {
            let (process, tgid) = (task.process.pid, task.process.tgid);
            change(&mut task.process);
            (task.process.pid, task.process.tgid) = (process, tgid);
        }
    }

    /// Puts a task into an uninterruptible wait, where it can't be frozen, or lets it out.
    pub fn set_stuck(&self, pid: u32, stuck: bool) {
        if let Some(task) = self.state().tasks.get_mut(&pid) {
            task.stuck = stuck;
        }
    }

    /// A task takes `bytes` of memory, which its group is charged with until the task ends.
    ///
    /// # Errors
    /// `ESRCH`; `ENODEV` if no mounted hierarchy counts memory.
    pub fn allocate(&self, pid: u32, bytes: u64) -> Result<(), Errno> {
        let mut state = self.state();
        if !state.tasks.contains_key(&pid) {
            return Err(Errno::SRCH);
        }
        if memory::charge(&mut state, pid, bytes) { Ok(()) } else { Err(Errno::NODEV) }
    }

    /// What the kernel counted: replaces a read-only file's content, without the newline at its end.
    ///
    /// # Errors
    /// `ENOENT` without such a file; `EINVAL` if it is one that is written or computed.
    pub fn count(&self, at: &Hierarchy, group: &str, file: &str, text: &str) -> Result<(), Errno> {
        let place = Place::new(at.id, group);
        let mut state = self.state();
        let file = files::find(&state, &place, file).ok_or(Errno::NOENT)?;
        if !file.is_counter() {
            return Err(Errno::INVAL);
        }
        state.set(&place, file.name, text);
        Ok(())
    }

    /// Lets another user make the calls; 0 is root.
    pub fn set_uid(&self, uid: u32) {
        self.state().caller.1 = uid;
    }

    /// The kernel kills in a v1 group that is out of memory.
    pub fn kill_for_memory(&self, group: &str) {
        let mut state = self.state();
        let has_memory = |at: &Hierarchy| at.controllers.contains(&Controller::Memory);
        let Some(tree) = state.trees.iter().position(|tree| has_memory(&tree.at)) else { return };
        let place = Place::new(tree, group);
        let kills = state.number(&place, memory::OOM_KILLS) + 1;
        state.set(&place, memory::OOM_KILLS, kills.to_string());
    }

    /// Switches a CPU off or on. Off, v1 groups lose it for good; on v2 they have it back when it comes back.
    pub fn set_online(&self, cpu: usize, online: bool) {
        let mut state = self.state();
        if online && cpu < state.cpus {
            state.online.insert(cpu);
        } else if state.online.remove(cpu) {
            let v1_cpusets: Vec<usize> = (0..state.trees.len())
                .filter(|tree| {
                    let at = &state.trees[*tree].at;
                    at.version == Version::V1 && at.controllers.contains(&Controller::Cpuset)
                })
                .collect();
            for tree in v1_cpusets {
                cpuset_v1::drop_cpu(&mut state, &Place::new(tree, ""), cpu);
            }
        }
        worlds::show_online(&mut state);
    }

    /// Mounts a hierarchy read-only.
    pub fn set_read_only(&self, at: &Hierarchy) {
        self.state().trees[at.id].at.read_only = true;
    }

    /// A file outside cgroupfs.
    pub fn set_outside(&self, path: impl AsRef<Path>, text: &str) {
        self.state().set_outside(path, text);
    }
}

/// The group, by a path that can't lead elsewhere.
fn place(at: &Hierarchy, group: &str) -> Result<Place, Errno> {
    let leads_away = group.starts_with('/') || group.split('/').any(|part| part == "..");
    if leads_away { Err(Errno::INVAL) } else { Ok(Place::new(at.id, group)) }
}

fn names(places: Vec<Place>) -> Vec<String> {
    places.into_iter().map(|place| place.group).collect()
}

impl Kernel for Fake {
    fn hierarchies(&self) -> Result<Vec<Hierarchy>, Errno> {
        Ok(self.state().trees.iter().map(|tree| tree.at.clone()).collect())
    }

    fn read(&self, at: &Hierarchy, group: &str, file: &str) -> Result<String, Errno> {
        files::read(&self.state(), &place(at, group)?, file)
    }

    fn write(&self, at: &Hierarchy, group: &str, file: &str, text: &str) -> Result<(), Errno> {
        files::write(&mut self.state(), &place(at, group)?, file, text)
    }

    fn mkdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        self.state().mkdir(&place(at, group)?)
    }

    fn rmdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        self.state().rmdir(&place(at, group)?)
    }

    fn children(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        let (state, place) = (self.state(), place(at, group)?);
        state.group(&place).ok_or(Errno::NOENT)?;
        Ok(names(state.children(&place)).iter().map(|path| group_path::name(path).to_owned()).collect())
    }

    fn descendants(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        let (state, place) = (self.state(), place(at, group)?);
        state.group(&place).ok_or(Errno::NOENT)?;
        Ok(names(state.descendants(&place)))
    }

    fn files(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        let (state, place) = (self.state(), place(at, group)?);
        state.group(&place).ok_or(Errno::NOENT)?;
        Ok(files::names(&state, &place))
    }

    fn exists(&self, at: &Hierarchy, group: &str) -> bool {
        place(at, group).is_ok_and(|place| self.state().group(&place).is_some())
    }

    fn inode(&self, at: &Hierarchy, group: &str) -> Result<u64, Errno> {
        Ok(self.state().group(&place(at, group)?).ok_or(Errno::NOENT)?.inode)
    }

    fn writable(&self, at: &Hierarchy, group: &str) -> bool {
        let state = self.state();
        let may = |place: Place| state.is_writable(&place).and_then(|()| state.may_change(&place));
        place(at, group).and_then(may).is_ok()
    }

    fn set_ownership(
        &self,
        at: &Hierarchy,
        group: &str,
        file: Option<&str>,
        to: Ownership,
    ) -> Result<(), Errno> {
        self.state().set_ownership(&place(at, group)?, file, to)
    }

    fn group_of(&self, at: &Hierarchy, pid: u32) -> Result<String, Errno> {
        let place = self.state().place_of(pid, at.id).ok_or(Errno::SRCH)?;
        Ok(format!("/{}", place.group))
    }

    fn process(&self, pid: u32) -> Result<Process, Errno> {
        self.state().process(pid)
    }

    fn processes(&self) -> Result<Vec<u32>, Errno> {
        let mut state = self.state();
        state.storm();
        Ok(state
            .tasks
            .values()
            .filter(|task| task.process.pid == task.process.tgid)
            .map(|task| task.process.pid)
            .collect())
    }

    fn threads(&self, pid: u32) -> Result<Vec<u32>, Errno> {
        match self.state().threads_of(pid) {
            threads if threads.is_empty() => Err(Errno::SRCH),
            threads => Ok(threads),
        }
    }

    fn signal(&self, pid: u32, signal: i32) -> Result<(), Errno> {
        self.state().signal(pid, signal)
    }

    fn caller(&self) -> (u32, u32) {
        self.state().caller
    }

    fn outside(&self, path: &Path) -> Result<String, Errno> {
        let state = self.state();
        let set = state.outside.get(path).cloned();
        set.or_else(|| look::of_task(&state, path)).ok_or(Errno::NOENT)
    }
}
