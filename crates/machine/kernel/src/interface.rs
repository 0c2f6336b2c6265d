//! What a kernel offers for cgroups, as one trait: the real kernel ([`crate::Real`]) and the in-memory one
//! (the crate `fake`) pass the same conformance suite. Refusals come back as the bare
//! errno; what they mean is [`crate::explain`]'s part.

use std::{
    collections::BTreeSet,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use settings::{Controller, Version, devices::DeviceAccess};

use crate::bpf::DeviceFilter;

/// One mounted hierarchy. v1 has several, v2 one, a hybrid host both.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Hierarchy {
    /// Position in the list that [`Kernel::hierarchies`] gave.
    pub id: usize,
    /// v1 or v2.
    pub version: Version,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The group that the mount shows as its root: `/`, or a subtree in a container.
    pub root: String,
    /// The controllers that live here; a v2 hierarchy also holds `Core`.
    pub controllers: Vec<Controller>,
    /// A named v1 hierarchy's name (`systemd`).
    pub name: Option<String>,
    /// Mounted read-only, for all or for this mount.
    pub read_only: bool,
}

impl Hierarchy {
    /// The path of `group` (relative to the mount, "" for the root) as the user finds it.
    pub fn path(&self, group: &str) -> PathBuf {
        if group.is_empty() { self.mount.clone() } else { self.mount.join(group) }
    }

    /// A short name for messages: the controllers on v1 (`cpu,cpuacct`), `name=x`, or `unified`.
    pub fn label(&self) -> String {
        if self.version == Version::V2 {
            return "unified".to_owned();
        }
        match &self.name {
            Some(name) => format!("name={name}"),
            None => {
                let names: Vec<&str> =
                    self.controllers.iter().filter_map(|controller| controller.name(Version::V1)).collect();
                names.join(",")
            }
        }
    }

    /// The path below the mount of a group that the kernel names from the hierarchy's root
    /// (`/proc/PID/cgroup`); `None` if this mount does not show it.
    pub fn below_mount(&self, kernel_path: &str) -> Option<String> {
        let rest = match self.root.as_str() {
            "/" => kernel_path,
            root => kernel_path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
        };
        let rest = rest.trim_start_matches('/');
        // a process outside our cgroup namespace is shown as /../…
        (!rest.split('/').any(|part| part == "..")).then(|| rest.to_owned())
    }
}

/// What the kernel reports of one process or thread (`/proc/PID/stat`, `/proc/PID/status`).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Process {
    /// Process or thread number.
    pub pid: u32,
    /// The process that a thread belongs to; `pid` itself for a process.
    pub tgid: u32,
    /// Parent process.
    pub parent: u32,
    /// Command name, at most 15 bytes.
    pub comm: String,
    /// State letter as `ps` prints it (`R S D T Z`…).
    pub state: char,
    /// A thread of the kernel's own (`PF_KTHREAD`).
    pub kernel_thread: bool,
    /// Forbidden to change its CPUs (`PF_NO_SETAFFINITY`): per-CPU kernel threads.
    pub bound: bool,
    /// Real user.
    pub uid: u32,
    /// Scheduling policy number (0 other, 1 fifo, 2 rr, 3 batch, 5 idle, 6 deadline).
    pub policy: u32,
    /// The CPU it ran on last.
    pub last_cpu: u32,
}

impl Process {
    /// It has ended, and its parent has not waited for it yet; on v1 it is shown in no group any more.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Is the policy SCHED_FIFO or SCHED_RR, which take from a group's real-time budget?
    pub fn is_realtime(&self) -> bool {
        matches!(self.policy, 1 | 2)
    }
}

/// Owner and permission bits of a group's directory or file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ownership {
    /// New user, if it changes.
    pub uid: Option<u32>,
    /// New group, if it changes.
    pub gid: Option<u32>,
    /// New permission bits, if they change.
    pub mode: Option<u32>,
}

/// A kernel's cgroup interface. `group` is always a path below the mount without a leading slash, "" for the
/// root; `file` is a plain file name.
pub trait Kernel {
    /// The mounted hierarchies, v1 in mount order, v2 last. An empty list is no error here.
    ///
    /// # Errors
    /// `/proc/self/mountinfo` can't be read.
    fn hierarchies(&self) -> Result<Vec<Hierarchy>, Errno>;
    /// The whole content of a group's file.
    ///
    /// # Errors
    /// The kernel's errno; `ENOENT` for a missing group or file.
    fn read(&self, at: &Hierarchy, group: &str, file: &str) -> Result<String, Errno>;
    /// One write(2) of `text` to a group's file.
    ///
    /// # Errors
    /// The kernel's errno.
    fn write(&self, at: &Hierarchy, group: &str, file: &str, text: &str) -> Result<(), Errno>;
    /// Opens a group's file for writes by [`crate::write_to`]. `ENOSYS` where there is no file to open.
    ///
    /// # Errors
    /// The kernel's errno.
    fn hold(&self, _at: &Hierarchy, _group: &str, _file: &str) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }
    /// Makes one group; its parent must be there.
    ///
    /// # Errors
    /// The kernel's errno.
    fn mkdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno>;
    /// Removes one group without tasks or children.
    ///
    /// # Errors
    /// The kernel's errno.
    fn rmdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno>;
    /// Names of a group's children, sorted.
    ///
    /// # Errors
    /// The kernel's errno.
    fn children(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno>;
    /// A group's children with the inode numbers that its listing has: of one that something is mounted over, the one below.
    ///
    /// # Errors
    /// The kernel's errno.
    fn children_by_inode(&self, at: &Hierarchy, group: &str) -> Result<Vec<(String, u64)>, Errno> {
        let with_inode = |name: String| {
            let path = units::group_path::join(group, &name);
            self.inode(at, &path).ok().map(|inode| (name, inode))
        };
        Ok(self.children(at, group)?.into_iter().filter_map(with_inode).collect())
    }
    /// All groups below `group`, as paths below the mount, parents before children, siblings in the kernel's order.
    ///
    /// # Errors
    /// The kernel's errno for `group` itself; a group that goes away meanwhile is left out.
    fn descendants(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno>;
    /// Names of a group's files, in the kernel's order.
    ///
    /// # Errors
    /// The kernel's errno.
    fn files(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno>;
    /// Is there such a group?
    fn exists(&self, at: &Hierarchy, group: &str) -> bool;
    /// The inode number of a group's directory, which no group has that is made later under its name. `ENOSYS` where it is
    /// not known.
    ///
    /// # Errors
    /// The kernel's errno.
    fn inode(&self, _at: &Hierarchy, _group: &str) -> Result<u64, Errno> {
        Err(Errno::NOSYS)
    }
    /// May the caller create groups in `group` (and write its files)?
    fn writable(&self, at: &Hierarchy, group: &str) -> bool;
    /// Changes owner or mode of the group's directory (`file` = `None`) or one file.
    ///
    /// # Errors
    /// The kernel's errno.
    fn set_ownership(
        &self,
        at: &Hierarchy,
        group: &str,
        file: Option<&str>,
        to: Ownership,
    ) -> Result<(), Errno>;
    /// The group of a process in one hierarchy, as the kernel names it (from the hierarchy's root, `/a/b`).
    ///
    /// # Errors
    /// `ESRCH` if the process is gone.
    fn group_of(&self, at: &Hierarchy, pid: u32) -> Result<String, Errno>;
    /// Its group in each of these hierarchies, from the hierarchy's root; `None` where it is in none.
    ///
    /// # Errors
    /// `ESRCH` if it is gone.
    fn groups_of(&self, hierarchies: &[Hierarchy], pid: u32) -> Result<Vec<Option<String>>, Errno> {
        self.process(pid)?;
        Ok(hierarchies.iter().map(|at| self.group_of(at, pid).ok()).collect())
    }
    /// What the kernel reports of a process or thread.
    ///
    /// # Errors
    /// `ESRCH` if it is gone.
    fn process(&self, pid: u32) -> Result<Process, Errno>;
    /// All processes' numbers.
    ///
    /// # Errors
    /// `/proc` can't be read.
    fn processes(&self) -> Result<Vec<u32>, Errno>;
    /// The threads of a process.
    ///
    /// # Errors
    /// `ESRCH` if it is gone.
    fn threads(&self, pid: u32) -> Result<Vec<u32>, Errno>;
    /// Sends a signal to one process, by its number.
    ///
    /// # Errors
    /// `ESRCH`, `EPERM`.
    fn signal(&self, pid: u32, signal: i32) -> Result<(), Errno>;
    /// Sends a signal to processes, and returns those that did not get it. `members` lists those that are meant, and
    /// is called once the numbers can no longer become those of other processes, as far as the kernel can prevent that.
    fn signal_those(
        &self,
        pids: &[u32],
        signal: i32,
        members: &dyn Fn() -> BTreeSet<u32>,
    ) -> Vec<(u32, Errno)> {
        let members = members();
        let meant = pids.iter().copied().filter(|pid| members.contains(pid));
        meant.filter_map(|pid| Some((pid, self.signal(pid, signal).err()?))).collect()
    }
    /// The caller's own process and effective user.
    fn caller(&self) -> (u32, u32);
    /// Closes the open descriptors of a mount, which can't be unmounted before.
    fn let_go(&self, _mount: &Path) {}
    /// A file outside cgroupfs that a cause is checked against (`/proc/…`, `/sys/…`).
    ///
    /// # Errors
    /// The kernel's errno.
    fn outside(&self, path: &Path) -> Result<String, Errno>;
    /// The device rules that a v2 group was given; `None` if it was given none. Without such programs: `None`.
    ///
    /// # Errors
    /// `EPERM` without the right, `EBADMSG` for a record that can't be read.
    fn device_filter(&self, _at: &Hierarchy, _group: &str) -> Result<Option<DeviceFilter>, Errno> {
        Ok(None)
    }
    /// Gives a v2 group device rules of its own, or with `None` takes them off. Without such programs: `ENOSYS`.
    ///
    /// # Errors
    /// The kernel's errno.
    fn set_device_filter(
        &self,
        _at: &Hierarchy,
        _group: &str,
        _access: Option<&DeviceAccess>,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
}
