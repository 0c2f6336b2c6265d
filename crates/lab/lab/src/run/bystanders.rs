//! The rest of the machine's programs, moved off CPUs that a group of the experiment has for itself, where the kernel does
//! not do it: they are moved into a group beside the experiment's general one, in the hierarchy of the cpusets alone, for
//! the length of a run. Only with `--move-others`. The group has nothing else in it, so that all that is in it, also what
//! was born meanwhile, goes back to where it came from; it is in the journal first.

use std::time::{Duration, Instant};

use experiment::Note;
use kernel::{GroupName, Hierarchy, Host, threads};
use rustix::io::Errno;
use settings::{Controller, Version};
use topology::facts::Base;
use units::{CpuSet, group_path};

use super::journal::{Entry, Journal, Narrow, Relocation, started};
use crate::{Error, groups::Groups};

/// Programs that fork while they are moved are met in the next round.
const ROUNDS: usize = 1000;
/// How long the kernel may call an emptied group busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// May they be moved? systemd's units are systemd's, and from a container the others are not seen.
pub(crate) fn can_move(host: &Host) -> bool {
    let at = host.hierarchy_of(Controller::Cpuset);
    !host.needs_unit() && at.is_some_and(|at| *host.base(at) == Base::Root)
}

/// Moves them to these CPUs. What a reader must know comes with it.
pub(crate) fn move_away(
    host: &Host,
    groups: &Groups,
    cpus: &str,
    journal: &mut Journal,
) -> Result<(Relocation, Vec<Note>), Error> {
    let parent = host.seat(&groups.parent()?, Controller::Cpuset)?;
    let (at, from) = (parent.at, group_path::parent(&parent.path).unwrap_or_default().to_owned());
    // a v1 group beside the experiment's would overlap its CPUs, which are exclusive; a v2 group below it would count as
    // the experiment's own
    let group = match at.version {
        Version::V1 => groups.name("others")?,
        Version::V2 => GroupName::new(&format!("{}-others", groups.parent()?))?,
    };
    let before = tasks(host, at, &from)?;
    let whole = read(host, at, &from, whole_of(at.version)).parse::<CpuSet>().unwrap_or_default();
    let away = Relocation {
        group: group.to_string(),
        mount: at.mount.display().to_string(),
        from,
        narrow: before.iter().filter_map(|thread| narrow(*thread, &whole)).collect(),
    };
    journal.write(&Entry::Relocation(away.clone()))?;
    let moved = groups.make_cpuset(host, &group, cpus).and_then(|()| move_all(host, at, &away, &group));
    match moved {
        Ok(notes) => Ok((away, notes)),
        Err(error) => {
            let _ = away.put_back(host); // the journal has what is left
            Err(error)
        }
    }
}

fn move_all(host: &Host, at: &Hierarchy, away: &Relocation, group: &GroupName) -> Result<Vec<Note>, Error> {
    let seat = host.seat_in(at, group);
    let mut stay: Vec<(u32, Errno)> = Vec::new();
    for _ in 0..ROUNDS {
        let mut left = tasks(host, at, &away.from)?;
        left.retain(|task| stay.iter().all(|(known, _)| known != task) && !is_protected(host, *task));
        if left.is_empty() {
            break;
        }
        for task in left {
            match host.kernel().write(at, &seat.path, file_of(at.version), &task.to_string()) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => stay.push((task, errno)),
            }
        }
    }
    // the kernel keeps its threads that belong to a CPU
    let mut notes = Vec::new();
    for (task, errno) in stay {
        if let Ok(process) = host.kernel().process(task)
            && !process.kernel_thread
        {
            notes.push(Note::NotMoved { program: process.comm, why: kernel::describe(errno).to_string() });
        }
    }
    Ok(notes)
}

impl Relocation {
    /// Puts everything in the group back, gives threads the CPUs that they had chosen, and removes the group. Was there
    /// anything?
    ///
    /// # Errors
    /// Something is still in it: then nothing must kill what is in the groups above.
    pub fn put_back(&self, host: &Host) -> Result<bool, Error> {
        let name = GroupName::new(&self.group)?;
        let Some(at) = host.hierarchies().iter().find(|at| at.mount.display().to_string() == self.mount)
        else {
            return Ok(false);
        };
        let seat = host.seat_in(at, &name);
        if !host.kernel().exists(at, &seat.path) {
            return Ok(false);
        }
        let mut failed = None;
        for _ in 0..ROUNDS {
            let inside = tasks(host, at, &seat.path)?;
            if inside.is_empty() || failed.is_some() {
                break;
            }
            for task in inside {
                match host.kernel().write(at, &self.from, file_of(at.version), &task.to_string()) {
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(errno) => failed = Some((task, errno)),
                }
            }
        }
        if let Some((task, errno)) = failed {
            return Err(Error::cannot(format!(
                "process {task} can't be put back from group {name}: {}",
                kernel::describe(errno)
            )));
        }
        self.narrow.iter().for_each(Narrow::restore);
        let begun = Instant::now();
        loop {
            match host.delete(&name, false) {
                Ok(_) => return Ok(true),
                // threads that are ending
                Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Narrow {
    /// One that ended meanwhile needs none; one that has it is not changed.
    fn restore(&self) {
        let Ok(cpus) = self.cpus.parse::<CpuSet>() else { return };
        if started(self.thread) != Some(self.started)
            || threads::cpus_of(self.thread).is_ok_and(|now| now == cpus)
        {
            return;
        }
        // threads of the kernel may refuse
        let _ = threads::set_cpus_of(self.thread, &cpus);
    }
}

fn narrow(thread: u32, whole: &CpuSet) -> Option<Narrow> {
    let cpus = threads::cpus_of(thread).ok()?;
    let is_narrow = !whole.difference(&cpus).is_empty();
    is_narrow.then_some(())?;
    Some(Narrow { thread, started: started(thread)?, cpus: cpus.to_string() })
}

/// v1 moves single threads, as they may be in different groups.
fn file_of(version: Version) -> &'static str {
    if version == Version::V1 { "tasks" } else { "cgroup.procs" }
}

fn whole_of(version: Version) -> &'static str {
    if version == Version::V1 { "cpuset.cpus" } else { "cpuset.cpus.effective" }
}

fn read(host: &Host, at: &Hierarchy, path: &str, file: &str) -> String {
    host.kernel().read(at, path, file).unwrap_or_default().trim().to_owned()
}

/// The daemon and its exec gate are never moved.
fn is_protected(host: &Host, task: u32) -> bool {
    let process = host.kernel().process(task).map_or(task, |process| process.tgid);
    kernel::protected(host.kernel(), process).is_some()
}

fn tasks(host: &Host, at: &Hierarchy, path: &str) -> Result<Vec<u32>, Error> {
    let text = host.kernel().read(at, path, file_of(at.version));
    let text = text.map_err(|errno| Error::system("cannot list a group's tasks", errno))?;
    // 0: a process of another namespace, which can't be named here
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).filter(|task| *task != 0).collect())
}
