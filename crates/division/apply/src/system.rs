//! What carrying a plan out needs of the running system beside the kernel crate's interface: owners as they are, many
//! of them changed at once, threads' CPUs, mounts. A trait, so that every one of its calls can be made to fail in a
//! test. Opens no cgroup file: directories come from [`kernel::Real::open`], the one opener.

use std::{
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use kernel::{Hierarchy, Host, Kernel, Ownership, Real, threads};
use plan::Owned;
use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Uid},
    io::Errno,
    thread::{CapabilitySet, CapabilitySets},
};
use settings::Controller;
use units::CpuSet;

use crate::{
    machine_knobs::{KnobFiles, MachineKnobs, NoKnobs},
    unit_files::{NoUnits, Systemd, UnitFiles},
};

/// The running system, or what a test puts in its place.
pub trait System {
    /// Owner and mode of a group's directory (`None`) or one of its files.
    ///
    /// # Errors
    /// The kernel's errno.
    fn owned(&self, at: &Hierarchy, group: &str, file: Option<&str>) -> Result<Owned, Errno>;
    /// Owners and modes of several of a group's files, `None` for its directory; in this order, without those that do
    /// not exist.
    ///
    /// # Errors
    /// The kernel's errno for the first that can't be looked at.
    fn owned_each<'f>(
        &self,
        at: &Hierarchy,
        group: &str,
        files: &[Option<&'f str>],
    ) -> Result<Vec<(Option<&'f str>, Owned)>, Errno> {
        files.iter().filter_map(|file| there(*file, self.owned(at, group, *file))).collect()
    }
    /// Changes owners and modes of a group's files and directory (`None`), in this order.
    ///
    /// # Errors
    /// The kernel's errno for the first that it refuses, with its name; those before it are changed.
    fn own(
        &self,
        at: &Hierarchy,
        group: &str,
        each: &[(Option<&str>, Ownership)],
    ) -> Result<(), (Option<String>, Errno)>;
    /// Does `act` as that user and group where that can be, so that what it makes is theirs at once; `None` if it
    /// can't, and nothing was done.
    fn as_owner(
        &self,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _act: &mut dyn FnMut() -> Result<(), Errno>,
    ) -> Option<Result<(), Errno>> {
        None
    }
    /// User and group that what the caller makes belongs to.
    fn maker(&self) -> (u32, u32);
    /// The CPUs that a thread may run on.
    ///
    /// # Errors
    /// `ESRCH` if it is gone.
    fn affinity(&self, thread: u32) -> Result<CpuSet, Errno>;
    /// sched_setaffinity(2).
    ///
    /// # Errors
    /// `EINVAL` for a thread that can't leave its CPUs, or if its group has none of these.
    fn set_affinity(&self, thread: u32, cpus: &CpuSet) -> Result<(), Errno>;
    /// When a thread started, in clock ticks since boot: together with its number, this identifies it.
    ///
    /// # Errors
    /// `ESRCH` if it is gone.
    fn started(&self, thread: u32) -> Result<u64, Errno>;
    /// Mounts a v1 hierarchy.
    ///
    /// # Errors
    /// The kernel crate's, with the cause.
    fn mount(&self, controllers: &[Controller], name: Option<&str>, path: &Path)
    -> Result<(), kernel::Error>;
    /// Unmounts it again; its directory goes if it is empty.
    ///
    /// # Errors
    /// The kernel's errno.
    fn unmount(&self, path: &Path) -> Result<(), Errno>;
    /// A fresh view of the host, after a mount.
    ///
    /// # Errors
    /// As [`Host::even_without_hierarchies`].
    fn look(&self) -> Result<Host, kernel::Error>;
    /// What is different after each boot (`/proc/sys/kernel/random/boot_id`).
    fn boot(&self) -> String;
    /// Seconds since 1970.
    fn now(&self) -> u64;
    /// Milliseconds since boot, sleep included (`CLOCK_BOOTTIME`): nobody can set it.
    fn uptime(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
    }
    /// Now, in clock ticks since boot, as [`System::started`] counts.
    fn ticks(&self) -> u64 {
        self.uptime() * rustix::param::clock_ticks_per_second() / 1000
    }
    /// The units of systemd.
    fn unit_files(&self) -> &dyn UnitFiles {
        &NoUnits
    }
    /// The machine's knobs.
    fn knobs(&self) -> &dyn MachineKnobs {
        &NoKnobs
    }
    /// Did a request to stop arrive? Checked before each step; on a request all steps done are rolled back.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The running system.
#[derive(Debug, Default)]
pub struct Running {
    /// Keeps a descriptor of every hierarchy's root.
    kernel: Real,
    knobs: KnobFiles,
    systemd: Systemd,
    /// Set by a process that wants us to stop.
    stop: Arc<AtomicBool>,
    /// It stays the same as long as this process lives, and is compared with each record of the history.
    boot: OnceLock<String>,
}

impl Running {
    /// The running system.
    pub fn new() -> Running {
        Running::default()
    }

    /// The running system for a service that systemd ends when it is silent for long: what takes systemd longer than any other
    /// answer fails, and is rolled back.
    pub fn of_a_service() -> Running {
        Running { systemd: Systemd { reload: systemd::ANSWER }, ..Running::default() }
    }

    /// The running system; changes stop, and are rolled back, once `stop` is set.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Running {
        Running { stop, ..Running::default() }
    }
}

impl System for Running {
    fn owned(&self, at: &Hierarchy, group: &str, file: Option<&str>) -> Result<Owned, Errno> {
        owned(&self.kernel.open(at, group, "", OFlags::PATH | OFlags::DIRECTORY)?, file)
    }

    fn owned_each<'f>(
        &self,
        at: &Hierarchy,
        group: &str,
        files: &[Option<&'f str>],
    ) -> Result<Vec<(Option<&'f str>, Owned)>, Errno> {
        let directory = match self.kernel.open(at, group, "", OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            directory => directory?,
        };
        files.iter().filter_map(|file| there(*file, owned(&directory, *file))).collect()
    }

    fn own(
        &self,
        at: &Hierarchy,
        group: &str,
        each: &[(Option<&str>, Ownership)],
    ) -> Result<(), (Option<String>, Errno)> {
        let directory = self.kernel.open(at, group, "", OFlags::PATH | OFlags::DIRECTORY);
        let directory = directory.map_err(|errno| (None, errno))?;
        for (file, to) in each {
            let name = file.unwrap_or(".");
            let failed = |errno| (file.map(str::to_owned), errno);
            if to.uid.is_some() || to.gid.is_some() {
                let (uid, gid) = (to.uid.map(Uid::from_raw), to.gid.map(Gid::from_raw));
                rustix::fs::chownat(&directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
            }
            if let Some(mode) = to.mode {
                // a cgroup file system holds no links that this could follow
                rustix::fs::chmodat(&directory, name, Mode::from_raw_mode(mode), AtFlags::empty())
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    fn as_owner(
        &self,
        uid: Option<u32>,
        gid: Option<u32>,
        act: &mut dyn FnMut() -> Result<(), Errno>,
    ) -> Option<Result<(), Errno>> {
        let _identity = Identity::take(uid, gid)?;
        Some(act())
    }

    fn maker(&self) -> (u32, u32) {
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    }

    fn affinity(&self, thread: u32) -> Result<CpuSet, Errno> {
        threads::cpus_of(thread).map_err(|error| errno(&error))
    }

    fn set_affinity(&self, thread: u32, cpus: &CpuSet) -> Result<(), Errno> {
        threads::set_cpus_of(thread, cpus).map_err(|error| errno(&error))
    }

    fn started(&self, thread: u32) -> Result<u64, Errno> {
        let stat = self.kernel.outside(Path::new(&format!("/proc/{thread}/stat")));
        let stat = stat.map_err(|errno| if errno == Errno::NOENT { Errno::SRCH } else { errno })?;
        units::ProcStat::parse(stat.as_bytes()).and_then(|stat| stat.started()).ok_or(Errno::SRCH)
    }

    fn mount(
        &self,
        controllers: &[Controller],
        name: Option<&str>,
        path: &Path,
    ) -> Result<(), kernel::Error> {
        match name {
            None => kernel::mount_v1(&self.kernel, controllers, Some(path)).map(|_| ()),
            Some(name) => mount_named(name, path),
        }
    }

    fn unmount(&self, path: &Path) -> Result<(), Errno> {
        self.kernel.let_go(path);
        kernel::unmount_cgroup(path)?;
        let _ = std::fs::remove_dir(path); // made for the mount, unless it holds anything
        Ok(())
    }

    fn look(&self) -> Result<Host, kernel::Error> {
        Host::even_without_hierarchies(Box::new(Real::new()))
    }

    fn boot(&self) -> String {
        let read = || self.kernel.outside(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
        self.boot.get_or_init(|| read().trim_end().to_owned()).clone()
    }

    fn now(&self) -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_secs())
    }

    fn unit_files(&self) -> &dyn UnitFiles {
        &self.systemd
    }

    fn knobs(&self) -> &dyn MachineKnobs {
        &self.knobs
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What does not exist is left out; every other refusal is one.
fn there(file: Option<&str>, owned: Result<Owned, Errno>) -> Option<Result<(Option<&str>, Owned), Errno>> {
    match owned {
        Err(Errno::NOENT | Errno::NODEV) => None,
        owned => Some(owned.map(|owned| (file, owned))),
    }
}

fn owned(directory: &OwnedFd, file: Option<&str>) -> Result<Owned, Errno> {
    let stat = match file {
        Some(file) => rustix::fs::statat(directory, file, AtFlags::SYMLINK_NOFOLLOW)?,
        None => rustix::fs::fstat(directory)?,
    };
    Ok(Owned { uid: stat.st_uid, gid: stat.st_gid, mode: stat.st_mode & 0o7777 })
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::SRCH)
}

/// A hierarchy without controllers, by its name.
fn mount_named(name: &str, path: &Path) -> Result<(), kernel::Error> {
    let failed = |errno| kernel::Error::Outside {
        what: format!("cannot mount name={name} at {}", path.display()),
        errno,
        hint: Some(kernel::needs_to_mount(errno)),
    };
    let made = std::fs::create_dir(path).is_ok();
    let options = std::ffi::CString::new(format!("none,name={name}")).map_err(|_| failed(Errno::INVAL))?;
    kernel::mount_cgroup(path, &options).map_err(|errno| {
        if made {
            let _ = std::fs::remove_dir(path); // ours, and empty: nothing was mounted
        }
        failed(errno)
    })
}

/// The calling thread under another effective user and group. A group's directory and files belong to the user who
/// makes it (`cgroup_mkdir` takes the file system ids), which saves a chown of each of some forty files: those cost
/// five times what making the group does. Restored when dropped; other threads never change.
struct Identity {
    effective: CapabilitySets,
}

impl Identity {
    fn take(uid: Option<u32>, gid: Option<u32>) -> Option<Identity> {
        if rustix::process::geteuid().as_raw() != 0 || rustix::process::getuid().as_raw() != 0 {
            return None;
        }
        let effective = rustix::thread::capabilities(None).ok()?;
        let needed = CapabilitySet::DAC_OVERRIDE | CapabilitySet::SETUID | CapabilitySet::SETGID;
        if !effective.effective.contains(needed) {
            return None;
        }
        let identity = Identity { effective };
        if let Some(gid) = gid {
            rustix::thread::set_thread_res_gid(None, Gid::from_raw(gid), None).ok()?;
        }
        if let Some(uid) = uid.filter(|uid| *uid != 0) {
            rustix::thread::set_thread_res_uid(None, Uid::from_raw(uid), None).ok()?;
            // leaving user 0 cleared the effective capabilities; root's own rights stay needed for the parent
            rustix::thread::set_capabilities(None, effective).ok()?;
        }
        Some(identity)
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // real and saved user are 0 throughout, so these can't be refused
        let _ = rustix::thread::set_thread_res_uid(None, Uid::ROOT, None);
        let _ = rustix::thread::set_thread_res_gid(None, rustix::process::getgid(), None);
        let _ = rustix::thread::set_capabilities(None, self.effective);
    }
}
