//! The running kernel. One opener for every cgroup file: below the hierarchy's own root, no link followed, and
//! on a cgroup file system, so that no name can lead a write elsewhere.

use std::{
    collections::BTreeSet,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Uid},
    io::Errno,
    process::{Pid, PidfdFlags, Signal},
};
use settings::{Version, devices::DeviceAccess};
use units::group_path;

use crate::{
    Hierarchy, Kernel, Ownership, Process,
    bpf::DeviceFilter,
    control_files::CONTROLLERS,
    descriptor::{PAGE, read_path, read_until, write_to},
    mounts, procfs,
};

/// The running kernel, seen through `/proc` and the mounted cgroup file systems.
#[derive(Debug, Default)]
pub struct Real {
    /// An O_PATH descriptor per mount, opened on first use, for reuse.
    roots: Mutex<Vec<(PathBuf, Arc<OwnedFd>)>>,
}

const CGROUP_SUPER_MAGIC: rustix::fs::FsWord = 0x0027_e0eb;
const CGROUP2_SUPER_MAGIC: rustix::fs::FsWord = 0x6367_7270;

impl Real {
    /// The running kernel.
    pub fn new() -> Self {
        Self::default()
    }

    fn root(&self, at: &Hierarchy) -> Result<Arc<OwnedFd>, Errno> {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, root)) = roots.iter().find(|(mount, _)| *mount == at.mount) {
            return Ok(root.clone());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&at.mount, flags, Mode::empty())?;
        let magic = match at.version {
            Version::V1 => CGROUP_SUPER_MAGIC,
            Version::V2 => CGROUP2_SUPER_MAGIC,
        };
        if rustix::fs::fstatfs(&root)?.f_type != magic {
            return Err(Errno::NODEV); // something else was mounted over it meanwhile
        }
        let root = Arc::new(root);
        roots.push((at.mount.clone(), root.clone()));
        Ok(root)
    }

    /// Opens `group/file` below the hierarchy's root; the only place where a cgroup file is opened. Waits for nobody: the
    /// owner of a file may take a lease on it (fcntl(2)), and another one's open then waits for `fs.lease-break-time`.
    ///
    /// # Errors
    /// The kernel's errno; `EINVAL` for a path with `..`; `EAGAIN` while somebody has a lease.
    pub fn open(&self, at: &Hierarchy, group: &str, file: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let root = self.root(at)?;
        let path = join(group, file)?;
        let path = path.as_str();
        let is_written = flags.contains(OFlags::WRONLY);
        // O_PATH opens nothing, and takes few other flags
        let at_once = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK };
        let flags = flags | OFlags::CLOEXEC | at_once;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let opened = match rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve) {
            // before Linux 5.6, or filtered: cgroup file systems hold no links, and `join` let no `..` through
            Err(Errno::NOSYS | Errno::PERM) => {
                rustix::fs::openat(&root, path, flags | OFlags::NOFOLLOW, Mode::empty())
            }
            opened => opened,
        }?;
        if is_written {
            // a write that does not wait reclaims no memory for a limit (Linux 6.16)
            rustix::fs::fcntl_setfl(&opened, OFlags::empty())?;
        }
        Ok(opened)
    }

    fn directory(&self, at: &Hierarchy, group: &str) -> Result<OwnedFd, Errno> {
        self.open(at, group, "", OFlags::RDONLY | OFlags::DIRECTORY)
    }

    fn entries(&self, at: &Hierarchy, group: &str, kind: FileType) -> Result<Vec<String>, Errno> {
        Ok(self.with_inodes(at, group, kind)?.into_iter().map(|(name, _)| name).collect())
    }

    fn with_inodes(&self, at: &Hierarchy, group: &str, kind: FileType) -> Result<Vec<(String, u64)>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.directory(at, group)?)? {
            let entry = entry?;
            if entry.file_type() == kind && !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push((entry.file_name().to_string_lossy().into_owned(), entry.ino()));
            }
        }
        Ok(names)
    }
}

/// `group/file` as a relative path for the *at calls; "." for the root itself.
fn join(group: &str, file: &str) -> Result<String, Errno> {
    let path = match (group, file) {
        ("", "") => ".".to_owned(),
        ("", file) => file.to_owned(),
        (group, "") => group.to_owned(),
        (group, file) => [group, "/", file].concat(),
    };
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(Errno::INVAL);
    }
    Ok(path) // a zero byte in it is refused where it is used
}

impl Kernel for Real {
    fn let_go(&self, mount: &Path) {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).retain(|(own, _)| own != mount);
    }

    fn hierarchies(&self) -> Result<Vec<Hierarchy>, Errno> {
        let mountinfo = read_path("/proc/self/mountinfo")?;
        Ok(mounts::hierarchies(&mountinfo, |v2| self.read(v2, "", CONTROLLERS).unwrap_or_default()))
    }

    fn read(&self, at: &Hierarchy, group: &str, file: &str) -> Result<String, Errno> {
        let file = self.open(at, group, file, OFlags::RDONLY)?;
        // shown as one record, or as the short ones of a list of tasks (`seq_read_iter`): what leaves half of a page
        // free is whole, without a second read for its end
        read_until(&file, |count| count <= PAGE / 2)
    }

    fn write(&self, at: &Hierarchy, group: &str, file: &str, text: &str) -> Result<(), Errno> {
        write_to(self.open(at, group, file, OFlags::WRONLY)?, text.as_bytes())
    }

    fn hold(&self, at: &Hierarchy, group: &str, file: &str) -> Result<OwnedFd, Errno> {
        self.open(at, group, file, OFlags::WRONLY)
    }

    fn mkdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        rustix::fs::mkdirat(self.root(at)?, join(group, "")?, Mode::from_raw_mode(0o755))
    }

    fn rmdir(&self, at: &Hierarchy, group: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(self.root(at)?, join(group, "")?, AtFlags::REMOVEDIR)
    }

    fn children(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        let mut names = self.entries(at, group, FileType::Directory)?;
        names.sort();
        Ok(names)
    }

    fn children_by_inode(&self, at: &Hierarchy, group: &str) -> Result<Vec<(String, u64)>, Errno> {
        self.with_inodes(at, group, FileType::Directory)
    }

    fn descendants(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        let directory = self.directory(at, group)?;
        let below = subdirectories(&rustix::fs::fstat(&directory)?);
        let mut found = Vec::with_capacity(below);
        if below > 0 {
            walk(directory, group, &mut found);
        }
        Ok(found)
    }

    fn files(&self, at: &Hierarchy, group: &str) -> Result<Vec<String>, Errno> {
        self.entries(at, group, FileType::RegularFile)
    }

    fn exists(&self, at: &Hierarchy, group: &str) -> bool {
        // a look by path opens nothing: most hierarchies lack the group that a command is about
        join(group, "").is_ok()
            && rustix::fs::accessat(CWD, at.path(group), rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
    }

    fn inode(&self, at: &Hierarchy, group: &str) -> Result<u64, Errno> {
        let stat = rustix::fs::statat(self.root(at)?, join(group, "")?, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat.st_ino)
    }

    fn writable(&self, at: &Hierarchy, group: &str) -> bool {
        !at.read_only
            && join(group, "").is_ok()
            && rustix::fs::accessat(CWD, at.path(group), rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)
                .is_ok()
    }

    fn set_ownership(
        &self,
        at: &Hierarchy,
        group: &str,
        file: Option<&str>,
        to: Ownership,
    ) -> Result<(), Errno> {
        let handle =
            self.open(at, group, file.unwrap_or(""), OFlags::RDONLY).or_else(|errno| match errno {
                // a write-only file (cgroup.kill) can't be opened for reading by its owner
                Errno::ACCESS | Errno::PERM => self.open(at, group, file.unwrap_or(""), OFlags::WRONLY),
                other => Err(other),
            })?;
        if to.uid.is_some() || to.gid.is_some() {
            rustix::fs::fchown(&handle, to.uid.map(Uid::from_raw), to.gid.map(Gid::from_raw))?;
        }
        match to.mode {
            Some(mode) => rustix::fs::fchmod(&handle, Mode::from_raw_mode(mode)),
            None => Ok(()),
        }
    }

    fn group_of(&self, at: &Hierarchy, pid: u32) -> Result<String, Errno> {
        procfs::group_in(at, procfs::read(pid, "cgroup")?.as_bytes()).ok_or(Errno::NOENT)
    }

    fn groups_of(&self, hierarchies: &[Hierarchy], pid: u32) -> Result<Vec<Option<String>>, Errno> {
        let text = procfs::read(pid, "cgroup")?;
        Ok(hierarchies.iter().map(|at| procfs::group_in(at, text.as_bytes())).collect())
    }

    fn process(&self, pid: u32) -> Result<Process, Errno> {
        procfs::process(&procfs::read(pid, "stat")?, &procfs::read(pid, "status")?).ok_or(Errno::SRCH)
    }

    fn processes(&self) -> Result<Vec<u32>, Errno> {
        procfs::numbers(Path::new("/proc"))
    }

    fn threads(&self, pid: u32) -> Result<Vec<u32>, Errno> {
        procfs::numbers(Path::new(&format!("/proc/{pid}/task"))).map_err(procfs::gone)
    }

    fn signal(&self, pid: u32, signal: i32) -> Result<(), Errno> {
        let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
        Target::of(pid)?.send(signal)
    }

    fn signal_those(
        &self,
        pids: &[u32],
        signal: i32,
        members: &dyn Fn() -> BTreeSet<u32>,
    ) -> Vec<(u32, Errno)> {
        let Some(signal) = Signal::from_named_raw(signal) else {
            return pids.iter().map(|&pid| (pid, Errno::INVAL)).collect();
        };
        let mut failed = Vec::new();
        for batch in pids.chunks(PIDFDS) {
            let fixed: Vec<(u32, Result<Target, Errno>)> =
                batch.iter().map(|&pid| (pid, Target::of(pid))).collect();
            let members = members();
            for (pid, target) in fixed.into_iter().filter(|(pid, _)| members.contains(pid)) {
                if let Err(errno) = target.and_then(|target| target.send(signal)) {
                    failed.push((pid, errno));
                }
            }
        }
        failed
    }

    fn caller(&self) -> (u32, u32) {
        (std::process::id(), rustix::process::geteuid().as_raw())
    }

    fn outside(&self, path: &Path) -> Result<String, Errno> {
        read_path(path)
    }

    fn device_filter(&self, at: &Hierarchy, group: &str) -> Result<Option<DeviceFilter>, Errno> {
        self.read_device_filter(at, group)
    }

    fn set_device_filter(
        &self,
        at: &Hierarchy,
        group: &str,
        access: Option<&DeviceAccess>,
    ) -> Result<(), Errno> {
        self.write_device_filter(at, group, access)
    }
}

/// Descriptors of processes that are open at a time; the usual limit is 1024 for all.
const PIDFDS: usize = 256;

/// A process to be signalled.
enum Target {
    Fixed(OwnedFd),
    /// Linux before 5.3 knows processes by their numbers only.
    Number(Pid),
}

impl Target {
    fn of(pid: u32) -> Result<Target, Errno> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fixed) => Ok(Target::Fixed(fixed)),
            Err(Errno::NOSYS) => Ok(Target::Number(pid)),
            Err(errno) => Err(errno),
        }
    }

    fn send(self, signal: Signal) -> Result<(), Errno> {
        match self {
            Target::Fixed(fixed) => rustix::process::pidfd_send_signal(fixed, signal),
            Target::Number(pid) => rustix::process::kill_process(pid, signal),
        }
    }
}

/// Adds the groups below `directory` to `found`. On cgroupfs a directory's link count is 2 plus its
/// subdirectories, so a leaf's twenty files are never listed, and the leaf itself is not opened. Any other is read to its end:
/// stopping after that many entries would miss a group if another one is made meanwhile.
fn walk(directory: OwnedFd, group: &str, found: &mut Vec<String>) {
    let Ok(entries) = Dir::read_from(&directory) else { return }; // the group went away meanwhile
    for entry in entries {
        let Ok(entry) = entry else { return };
        if entry.file_type() != FileType::Directory || matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let name = entry.file_name().to_string_lossy();
        let path = group_path::join(group, &name);
        let look = rustix::fs::statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        let below = look.map_or(0, |stat| subdirectories(&stat));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&directory, entry.file_name(), flags, Mode::empty());
        // a child that goes away meanwhile has nothing below it
        let child = if below == 0 { None } else { open().ok() };
        match child {
            Some(child) => {
                found.push(path.clone());
                walk(child, &path, found);
            }
            None => found.push(path),
        }
    }
}

fn subdirectories(stat: &rustix::fs::Stat) -> usize {
    usize::try_from(stat.st_nlink.saturating_sub(2)).unwrap_or(usize::MAX)
}
