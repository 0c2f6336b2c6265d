//! Processes of the user's that are moved into a group for the time of an experiment, and put back where they were, with
//! the children that they have had since.

use kernel::{GroupName, Host, What};

use super::journal::{Entry, Home, Journal, started};
use crate::Error;

impl Home {
    fn of(host: &Host, pid: u32, group: &str) -> Option<Home> {
        let place = |at: &kernel::Hierarchy| {
            let group = host.kernel().group_of(at, pid).ok()?;
            Some((at.mount.display().to_string(), at.below_mount(&group)?))
        };
        let places = host.hierarchies().iter().filter_map(place).collect();
        Some(Home { pid, started: started(pid)?, group: group.to_owned(), places })
    }

    /// Puts it and those of its descendants that are in the experiment's group back. One that is gone is no failure.
    pub fn put_back(&self, host: &Host) -> Result<bool, Error> {
        if started(self.pid) != Some(self.started) {
            return Ok(false);
        }
        let name = GroupName::new(&self.group)?;
        for seat in host.seats(&name) {
            let Some(home) = self.places.get(&seat.at.mount.display().to_string()) else { continue };
            // a child that is born meanwhile is met in the next round
            for _ in 0..1000 {
                let ours: Vec<u32> =
                    host.tasks_in(&seat).into_iter().filter(|pid| self.is_of(host, *pid)).collect();
                if ours.is_empty() {
                    break;
                }
                for pid in ours {
                    match host.kernel().write(seat.at, home, "cgroup.procs", &pid.to_string()) {
                        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                        Err(errno) => {
                            let path = seat.at.path(home);
                            return Err(Error::cannot(format!(
                                "process {pid} can't be put back into {}: {}",
                                path.display(),
                                kernel::describe(errno)
                            )));
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Is it this process or a descendant of it?
    fn is_of(&self, host: &Host, pid: u32) -> bool {
        let mut at = pid;
        // a bound, should numbers be used again while we look
        for _ in 0..64 {
            if at == self.pid {
                return true;
            }
            match host.kernel().process(at) {
                Ok(process) if process.tgid != at => at = process.tgid,
                Ok(process) if process.parent > 1 => at = process.parent,
                _ => return false,
            }
        }
        false
    }
}

/// Moves a running server and its children into a group, until there is no new child outside it.
pub(crate) fn move_in(
    host: &Host,
    group: &GroupName,
    server: &dyn Fn() -> Vec<u32>,
    journal: &mut Journal,
) -> Result<Vec<Home>, Error> {
    let mut homes: Vec<Home> = Vec::new();
    loop {
        let new: Vec<u32> =
            server().into_iter().filter(|pid| homes.iter().all(|home| home.pid != *pid)).collect();
        if new.is_empty() {
            return Ok(homes);
        }
        for pid in new {
            // one that has ended meanwhile needs no place
            let Some(home) = Home::of(host, pid, &group.to_string()) else { continue };
            journal.write(&Entry::Moved(home.clone()))?;
            homes.push(home);
            match host.move_tasks(group, &[pid], What::Process) {
                Ok(_) | Err(kernel::Error::NoProcess { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
