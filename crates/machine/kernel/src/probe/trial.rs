//! What only a trial shows, tried so that nothing is left behind and nobody else sees it: v1 mounts inside a
//! mount namespace of a child process, and clone3(2) with a descriptor that can't be.
#![allow(unsafe_code, reason = "fork, unshare and clone3 have no safe wrapper; each call says what holds")]

use std::{
    ffi::{CStr, CString},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags},
};
use settings::{Controller, Version};
use topology::facts::{ControllerRow, Facts, MountTrial, listed};

use crate::{CLONE_INTO_CGROUP, last_errno, read_path};

/// Tries all controllers that no hierarchy has; fills in [`ControllerRow::trial`].
pub(super) fn mounts(facts: &mut Facts) {
    let mut tried: Vec<(usize, CString)> = Vec::new();
    for index in 0..facts.controllers.len() {
        let row = &facts.controllers[index];
        if row.hierarchy != 0 || !row.enabled {
            continue;
        }
        match (forgone(facts, row), CString::new(row.name.as_str())) {
            (Some(reason), _) => facts.controllers[index].trial = MountTrial::Forgone(reason.to_owned()),
            (None, Ok(name)) => tried.push((index, name)),
            (None, Err(_)) => {} // a name with a NUL is no controller
        }
    }
    if tried.is_empty() {
        return;
    }
    let names: Vec<&CStr> = tried.iter().map(|(_, name)| name.as_c_str()).collect();
    let outcome = mount_for_a_moment(&names);
    for (at, (index, _)) in tried.iter().enumerate() {
        facts.controllers[*index].trial = match &outcome {
            Err(errno) => MountTrial::Forgone(format!("no mount namespace: {}", crate::describe(*errno))),
            Ok(errnos) => match errnos.get(at) {
                Some(0) => MountTrial::Mounts,
                Some(&errno) => MountTrial::Refused(crate::describe(Errno::from_raw_os_error(errno))),
                None => MountTrial::Forgone("the trial ended early".to_owned()),
            },
        };
    }
    let back: Vec<&str> = tried.iter().filter_map(|(_, name)| name.to_str().ok()).collect();
    wait_until_free(&back);
}

/// Why a controller's mount is not tried, if so.
fn forgone(facts: &Facts, row: &ControllerRow) -> Option<&'static str> {
    if !facts.caller.sys_admin {
        return Some("it takes root (CAP_SYS_ADMIN)");
    }
    if facts.v1.is_empty() && facts.v2.is_none() {
        return Some("nothing is mounted");
    }
    if facts.caller.user_namespace || facts.v2.as_ref().is_some_and(|v2| v2.at.root != "/") {
        return Some("the machine's own hierarchies can't be seen from here");
    }
    let controller = Controller::from_name(&row.name);
    let v2_name = controller.and_then(|controller| controller.name(Version::V2)).unwrap_or(&row.name);
    if facts.v2.as_ref().is_some_and(|v2| v2.controllers.iter().any(|name| name == v2_name)) {
        return Some("cgroup v2 has it");
    }
    let in_every_group =
        [Controller::Cpuacct, Controller::Devices, Controller::Freezer, Controller::PerfEvent];
    let in_every_group = controller.is_some_and(|controller| in_every_group.contains(&controller));
    // without a mount in sight v2 may be mounted elsewhere; then it has groups
    (in_every_group && (facts.v2.is_some() || row.groups > 1)).then_some("every v2 group has it")
}

/// Mounts each name for a moment, in a child with a mount namespace of its own; its errnos, 0 for success.
///
/// # Errors
/// The child could not be started, or got no namespace of its own.
fn mount_for_a_moment(names: &[&CStr]) -> Result<Vec<i32>, Errno> {
    let (results, report) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: between fork and _exit the child makes system calls only: it allocates nothing and takes no
    // lock, as another thread may hold one at the time of the fork.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => {
            mount_and_report(names, &report);
            // SAFETY: _exit(2) ends the child without running the parent's clean-up.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(report); // so that the end of the child is the end of the pipe
            let answers = answers(&results);
            // SAFETY: a null status pointer is allowed.
            while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == -1
                && last_errno() == Errno::INTR
            {}
            match answers.split_first() {
                Some((0, errnos)) => Ok(errnos.to_vec()),
                Some((errno, _)) => Err(Errno::from_raw_os_error(*errno)),
                None => Err(Errno::CHILD),
            }
        }
    }
}

/// The child's part: first the namespace's errno, then one for each name.
fn mount_and_report(names: &[&CStr], report: &OwnedFd) {
    let report_to_parent = |outcome: Result<(), Errno>| {
        let errno = outcome.map_or_else(Errno::raw_os_error, |()| 0);
        let _ = rustix::io::write(report, &errno.to_ne_bytes());
        errno == 0
    };
    // SAFETY: unshare(2) touches no memory; the child has one thread.
    let own = if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 { Ok(()) } else { Err(last_errno()) };
    // where "/" is no mount (a chroot) this fails, and nothing is mounted that could spread
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    if !report_to_parent(own.and_then(|()| rustix::mount::mount_change(c"/", private))) {
        return;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    for name in names {
        // over a directory that is always there, seen by this child alone
        let mounted = rustix::mount::mount(c"cgroup", c"/proc", c"cgroup", flags, *name);
        if report_to_parent(mounted) && rustix::mount::unmount(c"/proc", UnmountFlags::empty()).is_err() {
            return; // the namespace's end unmounts it
        }
    }
}

/// All numbers that come through the pipe.
fn answers(results: &OwnedFd) -> Vec<i32> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 256];
    loop {
        match rustix::io::read(results, &mut buffer) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    bytes.chunks_exact(4).map(|four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// The kernel ends a v1 hierarchy some time after its last mount; waits for that, for a second at most, so that
/// the next mount finds the controllers free.
fn wait_until_free(names: &[&str]) {
    let end = Instant::now() + Duration::from_secs(1);
    let bound = || {
        let now = listed(&read_path("/proc/cgroups").unwrap_or_default());
        now.iter().any(|row| row.hierarchy != 0 && names.contains(&row.name.as_str()))
    };
    while bound() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Does clone3(2) know CLONE_INTO_CGROUP? Tried with a descriptor that can't be open: a kernel that knows the
/// flag answers EBADF, one that does not EINVAL. No process is made in either case.
pub(super) fn clone_into_cgroup() -> Option<bool> {
    // SAFETY: all-zero is a valid clone_args; it asks for nothing.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = i32::MAX as u64;
    // SAFETY: `args` is a valid clone_args of the size given; without CLONE_VM a child has its own memory.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) } {
        // SAFETY: _exit(2) ends a child that should not have been.
        0 => unsafe { libc::_exit(0) },
        -1 => match last_errno() {
            Errno::BADF => Some(true),
            Errno::INVAL | Errno::TOOBIG | Errno::NOSYS => Some(false),
            _ => None, // a filter: nothing was seen
        },
        _ => None,
    }
}
