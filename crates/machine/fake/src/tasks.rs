//! Tasks of the fake kernel: how they come, move and end, and what refuses a move.

use kernel::Process;
use rustix::io::Errno;
use settings::{Controller, Version};

use crate::{
    core_v2, cpuset_v1, files, freezer, numbers, partitions, pids, realtime,
    state::{Place, Scope, State, Task},
};

impl State {
    /// Adds a process where its parent is, as fork(2) does.
    pub fn fork(&mut self, parent: u32) -> Result<u32, Errno> {
        let parent = self.tasks.get(&parent).ok_or(Errno::SRCH)?.clone();
        pids::admit(self, &parent.groups)?;
        let pid = self.last_pid + 1;
        let process = Process { pid, tgid: pid, parent: parent.process.tgid, ..parent.process };
        Ok(self.add(Task { process, charges: Vec::new(), stuck: false, doomed: false, ..parent }))
    }

    /// Adds a thread to a process, in the process' groups.
    pub fn start_thread(&mut self, pid: u32) -> Result<u32, Errno> {
        let leader = self.tasks.get(&pid).ok_or(Errno::SRCH)?.clone();
        pids::admit(self, &leader.groups)?;
        let process = Process { pid: self.last_pid + 1, ..leader.process };
        Ok(self.add(Task { process, charges: Vec::new(), stuck: false, doomed: false, ..leader }))
    }

    pub fn add(&mut self, task: Task) -> u32 {
        let pid = task.process.pid;
        self.last_pid = self.last_pid.max(pid);
        self.tasks.insert(pid, task);
        pids::note_peaks(self, pid);
        pid
    }

    /// Everybody in a fork storm forks once more. Called before each look at the tasks, which is when forks hurt.
    pub fn storm(&mut self) {
        let storms = std::mem::take(&mut self.storms);
        for (parent, left) in storms {
            let Some(forks) = left.checked_sub(1) else { continue };
            if let Ok(child) = self.fork(parent) {
                self.storms.extend([(parent, forks - forks / 2), (child, forks / 2)]);
            }
        }
    }

    /// Ends a process with its threads, reaped at once; its memory is free again.
    pub fn end(&mut self, pid: u32) {
        self.tasks.retain(|_, task| task.process.tgid != pid);
        for task in self.tasks.values_mut().filter(|task| task.process.parent == pid) {
            task.process.parent = 1;
        }
    }

    /// SIGKILL. A task in a frozen v1 group ends when that is thawed.
    pub fn kill(&mut self, pid: u32) {
        if freezer::holds(self, pid) {
            let process = self.tasks.values_mut().filter(|task| task.process.tgid == pid);
            process.for_each(|task| task.doomed = true);
        } else {
            self.end(pid);
        }
    }

    pub fn signal(&mut self, pid: u32, signal: i32) -> Result<(), Errno> {
        let process = &self.tasks.get(&pid).ok_or(Errno::SRCH)?.process;
        let uid = self.caller.1;
        if uid != 0 && process.uid != uid {
            return Err(Errno::PERM);
        }
        match signal {
            9 => {
                self.kill(process.tgid);
                Ok(())
            }
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// The process as `/proc` shows it: a v1 freezer leaves its tasks in state D, v2's in S.
    pub fn process(&self, pid: u32) -> Result<Process, Errno> {
        let task = self.tasks.get(&pid).ok_or(Errno::SRCH)?;
        let state = if task.stuck || freezer::holds(self, pid) { 'D' } else { task.process.state };
        Ok(Process { state, ..task.process.clone() })
    }

    pub fn threads_of(&self, pid: u32) -> Vec<u32> {
        let thread = |task: &&Task| task.process.tgid == pid;
        self.tasks.values().filter(thread).map(|task| task.process.pid).collect()
    }

    /// sched_setscheduler(2), as far as a group's real-time budget matters.
    pub fn set_policy(&mut self, pid: u32, policy: u32) -> Result<(), Errno> {
        let task = self.tasks.get(&pid).ok_or(Errno::SRCH)?;
        if matches!(policy, 1 | 2) && realtime::starves(self, task) {
            return Err(Errno::PERM);
        }
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.process.policy = policy;
        }
        Ok(())
    }

    /// A write to `tasks`, `cgroup.procs` or `cgroup.threads`.
    pub fn attach(&mut self, place: &Place, text: &str, scope: Scope) -> Result<(), Errno> {
        self.storm();
        let number = numbers::trimmed(text).map_err(|_| Errno::INVAL)?;
        let pid = match u32::try_from(number).map_err(|_| Errno::INVAL)? {
            0 => self.caller.0,
            pid => pid,
        };
        let task = self.tasks.get(&pid).ok_or(Errno::SRCH)?.clone();
        if task.process.bound {
            return Err(Errno::INVAL);
        }
        self.may_move(&task, place)?;
        let moved = match scope {
            Scope::Process => self.threads_of(task.process.tgid),
            Scope::Thread => vec![pid],
        };
        if self.version(place) == Version::V2 {
            core_v2::may_host(self, place, &task, scope)?;
        }
        for &pid in &moved {
            self.controllers_accept(place, pid)?;
        }
        for pid in moved {
            if let Some(task) = self.tasks.get_mut(&pid) {
                task.groups[place.tree].clone_from(&place.group);
            }
            pids::note_peaks(self, pid);
        }
        Ok(())
    }

    /// On v1 the task must be the caller's; on v2 the caller must be able to write the `cgroup.procs` of the
    /// nearest group that holds both ends.
    fn may_move(&self, task: &Task, to: &Place) -> Result<(), Errno> {
        let uid = self.caller.1;
        let allowed = match self.version(to) {
            _ if uid == 0 => true,
            Version::V1 => uid == task.process.uid,
            Version::V2 => {
                let from = Place::new(to.tree, task.groups[to.tree].clone());
                let common = to.upward().find(|place| place.holds(&from));
                common.is_some_and(|place| {
                    let file = files::find(self, &place, "cgroup.procs");
                    let owner = file.and_then(|file| files::owner(self, &place, file));
                    owner.is_some_and(|owner| owner.allows(uid, 2))
                })
            }
        };
        if allowed { Ok(()) } else { Err(Errno::ACCESS) }
    }

    fn controllers_accept(&self, place: &Place, pid: u32) -> Result<(), Errno> {
        let stays = self.place_of(pid, place.tree).as_ref() == Some(place);
        if stays {
            return Ok(());
        }
        let has = |controller| self.trees[place.tree].at.controllers.contains(&controller);
        if has(Controller::Cpuset) {
            let empty = match self.version(place) {
                Version::V1 => cpuset_v1::is_empty(self, place),
                Version::V2 => partitions::effective_cpus(self, place).is_empty(),
            };
            if empty {
                return Err(Errno::NOSPC);
            }
        }
        if has(Controller::Cpu) { realtime::accepts(self, place, pid) } else { Ok(()) }
    }
}
