//! Processes that every start of a strict rule's program depends on: the daemon and its exec gate. Each registers its PID
//! and start time, where only root writes; nothing of this program freezes a group that contains one, or moves one. A
//! name protects nobody: anyone can take any name.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{Hierarchy, Kernel};

/// The directory of the registrations, a file by PID with the start time (proc_pid_stat(5)) and what the process is.
pub const PROTECTED: &str = "/run/ringfence/protected";

/// This process's registration; it ends with this value, or with the process.
#[derive(Debug)]
pub struct Protection(PathBuf);

impl Protection {
    /// Registers this process as `role`, and removes registrations of processes that ended.
    ///
    /// # Errors
    /// The directory can't be made or written to.
    pub fn of_this_process(role: &'static str) -> io::Result<Protection> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(PROTECTED)?;
        let pid = std::process::id();
        for entry in fs::read_dir(PROTECTED)?.filter_map(Result::ok) {
            let other = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if other.is_none_or(|other| other == pid || role_of(read, other).is_none()) {
                let _ = fs::remove_file(entry.path()); // another daemon may have removed it
            }
        }
        let path = file(pid);
        let started = started(read, pid).ok_or_else(|| io::Error::other("/proc/self/stat"))?;
        // nobody reads a part of it
        let beside = path.with_extension("new");
        fs::write(&beside, format!("{started} {role}\n"))?;
        fs::rename(&beside, &path)?;
        Ok(Protection(path))
    }

    /// Removes the registration of a process that was killed. One that stays protects nobody.
    pub fn forget(pid: u32) {
        let _ = fs::remove_file(file(pid));
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // a stale one protects nobody
    }
}

/// What a process is registered as; `None` if it is not.
pub fn protected(kernel: &dyn Kernel, pid: u32) -> Option<String> {
    role_of(|path| kernel.outside(path), pid)
}

/// The first protected process in a group or below it, with what it is.
pub(crate) fn protected_in(kernel: &dyn Kernel, at: &Hierarchy, group: &str) -> Option<(u32, String)> {
    // the usual case costs one look: no daemon runs
    if kernel.outside(Path::new(PROTECTED)) == Err(Errno::NOENT) {
        return None;
    }
    let below = kernel.descendants(at, group).unwrap_or_default();
    std::iter::once(group.to_owned()).chain(below).find_map(|path| {
        let read = |file| kernel.read(at, &path, file);
        // of a threaded v2 group only its threads can be read
        let text = read("cgroup.procs").or_else(|_| read("cgroup.threads")).unwrap_or_default();
        let process = |task: u32| kernel.process(task).map_or(task, |process| process.tgid);
        let mut processes: Vec<u32> =
            text.lines().filter_map(|line| line.parse().ok()).map(process).collect();
        processes.dedup();
        processes.into_iter().find_map(|pid| Some((pid, protected(kernel, pid)?)))
    })
}

/// Would this write freeze a group?
pub(crate) fn freezes(file: &str, text: &str) -> bool {
    match file {
        "freezer.state" => text.trim() == "FROZEN",
        "cgroup.freeze" => text.trim() == "1",
        _ => false,
    }
}

fn role_of(read: impl Fn(&Path) -> Result<String, Errno> + Copy, pid: u32) -> Option<String> {
    let text = read(&file(pid)).ok()?;
    let (since, role) = text.trim().split_once(' ')?;
    (started(read, pid)?.to_string() == since).then(|| role.to_owned())
}

/// When a process started, in ticks since boot.
fn started(read: impl Fn(&Path) -> Result<String, Errno>, pid: u32) -> Option<u64> {
    let stat = read(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn file(pid: u32) -> PathBuf {
    Path::new(PROTECTED).join(pid.to_string())
}

fn read(path: &Path) -> Result<String, Errno> {
    fs::read_to_string(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use settings::Controller;

    use super::*;
    use crate::{Access, Fake, GroupName, Host, State, What, set_frozen};

    /// A host with the groups db and db/oltp, and a process that is registered with this start time, but started at 77.
    fn host(fake: &Fake, since: u64) -> (Host, u32) {
        let host = Host::new(Box::new(fake.clone())).unwrap();
        let below = GroupName::new("db/oltp").unwrap();
        host.create(&below, Some(&[Controller::Freezer]), &Access::default()).unwrap();
        let pid = fake.spawn(1).unwrap();
        host.move_tasks(&below, &[pid], What::Process).unwrap();
        fake.set_outside(PROTECTED, "");
        fake.set_outside(file(pid), &format!("{since} the exec gate\n"));
        let stat = format!("{pid} (a) b) S 1{} 77 0 0\n", " 0".repeat(17));
        fake.set_outside(format!("/proc/{pid}/stat"), &stat);
        (host, pid)
    }

    /// Attack finding 3: nothing freezes a group with the daemon or its gate, itself or below it.
    #[test]
    fn a_group_with_the_exec_gate_below_it_is_not_frozen() {
        for fake in [Fake::v1(2, 1), Fake::v2(2, 1), Fake::hybrid(2, 1)] {
            let (host, pid) = host(&fake, 77);
            for name in ["db", "db/oltp"] {
                let group = GroupName::new(name).unwrap();
                let refused = set_frozen(&host, &group, true, Duration::ZERO).unwrap_err();
                let text = format!("{refused} {}", refused.hint().unwrap());
                assert!(text.contains(&format!("contains the exec gate (process {pid})")), "{text}");
                let seat = host.seat(&group, Controller::Freezer).unwrap();
                let (file, frozen) = if seat.at.version == settings::Version::V1 {
                    ("freezer.state", "FROZEN")
                } else {
                    ("cgroup.freeze", "1\n")
                };
                assert!(host.write(&seat, &group, file, frozen).is_err(), "as a setting");
                assert_eq!(set_frozen(&host, &group, false, Duration::ZERO), Ok(State::Thawed));
            }
            let moved = host.move_tasks(&GroupName::new("db").unwrap(), &[pid], What::Process);
            assert!(moved.unwrap_err().to_string().contains("never moves"));
        }
    }

    #[test]
    fn a_number_that_was_used_again_protects_nobody() {
        for fake in [Fake::v1(2, 1), Fake::v2(2, 1)] {
            let (host, _) = host(&fake, 76);
            let group = GroupName::new("db").unwrap();
            assert_eq!(set_frozen(&host, &group, true, Duration::from_secs(1)), Ok(State::Frozen));
        }
    }
}
