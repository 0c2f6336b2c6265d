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
        let started = started(pid).ok_or_else(|| io::Error::other("/proc/self/stat"))?;
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
    (started_by(read, pid)?.to_string() == since).then(|| role.to_owned())
}

/// When a process or thread started, in clock ticks since boot: together with its number, this identifies it. `None` if it
/// is gone.
pub fn started(pid: u32) -> Option<u64> {
    started_by(read, pid)
}

fn started_by(read: impl Fn(&Path) -> Result<String, Errno>, pid: u32) -> Option<u64> {
    let stat = read(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    units::ProcStat::parse(stat.as_bytes())?.started()
}

fn file(pid: u32) -> PathBuf {
    Path::new(PROTECTED).join(pid.to_string())
}

fn read(path: &Path) -> Result<String, Errno> {
    fs::read_to_string(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
