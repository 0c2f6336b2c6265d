//! Mounts and unmounts v1 hierarchies, only on request. Never remounts or moves what is there.

use std::{
    ffi::CStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{io::Errno, mount::MountFlags};
use settings::{Controller, Version};
use units::hint;

use crate::{Error, Host, Kernel, Real};

/// Mounts one v1 hierarchy that holds the controllers, at `at` or in a directory of their names beside the other
/// hierarchies; returns where. The directory and those above it are made if they are missing, and
/// removed again on failure.
///
/// # Errors
/// [`Error::Outside`]: a controller is mounted already, bound to v2, or unknown to the kernel.
pub fn mount_v1(kernel: &Real, controllers: &[Controller], at: Option<&Path>) -> Result<PathBuf, Error> {
    let names: Vec<&str> = controllers.iter().filter_map(|controller| controller.name(Version::V1)).collect();
    let names = names.join(",");
    let hierarchies =
        kernel.hierarchies().map_err(|errno| outside("cannot read /proc/self/mountinfo", errno, None))?;
    if let Some(mounted) = hierarchies
        .iter()
        .find(|h| h.version == Version::V1 && h.controllers.iter().any(|c| controllers.contains(c)))
    {
        let where_ = mounted.mount.display();
        let hint = Some(format!("it is at {where_}"));
        return Err(outside(&format!("{} is mounted already", mounted.label()), Errno::BUSY, hint));
    }
    let directory = at.map_or_else(|| beside(&hierarchies).join(&names), Path::to_path_buf);
    let made: Vec<&Path> = directory.ancestors().take_while(|at| at.symlink_metadata().is_err()).collect();
    // mount(2) reports what stays missing
    let _ = std::fs::create_dir_all(&directory);
    let options =
        std::ffi::CString::new(names.clone()).map_err(|_| outside("controller names", Errno::INVAL, None))?;
    let mounted = mount_cgroup(&directory, &options);
    mounted.map(|()| directory.clone()).map_err(|errno| {
        for directory in &made {
            let _ = std::fs::remove_dir(directory); // ours, and empty: nothing was mounted
        }
        let hint = match errno {
            Errno::BUSY => format!(
                "cgroup v2 holds {names} for groups that use it, or another v1 mount has a part of it"
            ),
            Errno::INVAL | Errno::NOENT => {
                format!(
                    "this kernel has no v1 {names}, or {} is missing: mkdir it first",
                    directory.display()
                )
            }
            errno => needs_to_mount(errno),
        };
        outside(&format!("cannot mount {names} at {}", directory.display()), errno, Some(hint))
    })
}

/// What to do where mount(2) was refused, whatever was mounted.
pub fn needs_to_mount(errno: Errno) -> String {
    let hint = match errno {
        Errno::PERM | Errno::ACCESS => "mounting needs root (CAP_SYS_ADMIN)",
        Errno::IO => "see why: journalctl -u 'run-*.service' -n 20",
        _ => "see dmesg for details",
    };
    hint.to_owned()
}

/// Unmounts the v1 hierarchy of the controllers, if no group is left in it; returns where it was.
///
/// # Errors
/// [`Error::NoController`], [`Error::Outside`] while groups exist.
pub fn unmount_v1(host: &Host, controllers: &[Controller]) -> Result<PathBuf, Error> {
    let holds = |at: &&crate::Hierarchy| {
        at.version == Version::V1 && controllers.iter().all(|controller| at.controllers.contains(controller))
    };
    let Some(at) = host.hierarchies().iter().find(holds) else {
        let controller = controllers.first().copied().unwrap_or(Controller::Core);
        let hint = "ringfence doctor shows where each controller is".to_owned();
        return Err(Error::NoController { controller, hint });
    };
    let left = host.kernel().children(at, "").unwrap_or_default();
    if !left.is_empty() {
        let hint = Some(
            hint::Command::ringfence("delete --recursive")
                .args(left.iter().map(|name| format!("/{name}")))
                .into(),
        );
        return Err(outside(&format!("{} still has groups", at.mount.display()), Errno::BUSY, hint));
    }
    host.kernel().let_go(&at.mount);
    unmount_cgroup(&at.mount)
        .map_err(|errno| outside(&format!("cannot unmount {}", at.mount.display()), errno, None))?;
    // a directory made by mount_v1 goes with it; one that holds anything stays
    let _ = std::fs::remove_dir(&at.mount);
    Ok(at.mount.clone())
}

/// Mounts a v1 hierarchy with these options, where the host sees it.
///
/// # Errors
/// The kernel's errno; `EIO` if systemd was to do it and could not.
pub fn mount_cgroup(directory: &Path, options: &CStr) -> Result<(), Errno> {
    if is_systemds() {
        let options = format!("nosuid,nodev,noexec,relatime,{}", options.to_string_lossy());
        let words = ["mount", "-t", "cgroup", "-o", &options, "--", "cgroup"];
        return by_systemd(&words, directory);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
    rustix::mount::mount("cgroup", directory, "cgroup", flags, options)
}

/// Unmounts a v1 hierarchy without groups, where the host sees it.
///
/// # Errors
/// As of [`mount_cgroup`].
pub fn unmount_cgroup(directory: &Path) -> Result<(), Errno> {
    wait_for_removed(directory);
    if is_systemds() {
        return by_systemd(&["umount", "--"], directory);
    }
    rustix::mount::unmount(directory, rustix::mount::UnmountFlags::empty())
}

/// How long removed groups are waited for, in steps of 10 ms.
const STEPS: u32 = 100;

/// The kernel releases a removed group a little later, or with the last page that is charged to it. Until then an unmount
/// keeps the hierarchy, unseen, with its controllers, and no other hierarchy gets them.
fn wait_for_removed(directory: &Path) {
    let kernel = Real::new();
    let all = kernel.hierarchies().unwrap_or_default();
    let of = |at: &&crate::Hierarchy| at.version == Version::V1 && at.mount == *directory;
    let controller = all.iter().find(of).and_then(|at| at.controllers.first()?.name(Version::V1));
    let Some(controller) = controller else { return };
    for _ in 0..STEPS {
        let text = kernel.outside(Path::new("/proc/cgroups")).unwrap_or_default();
        if groups_of(&text, controller).is_none_or(|groups| groups <= 1) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// How many groups a controller has by `/proc/cgroups`, its root and removed ones included.
fn groups_of(cgroups: &str, controller: &str) -> Option<u32> {
    let line = cgroups.lines().find(|line| line.split_whitespace().next() == Some(controller))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

/// Set to `systemd` where this process has a mount namespace of its own, as a sandboxed service has: systemd mounts then.
const VARIABLE: &str = "RINGFENCE_MOUNT";

fn is_systemds() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "systemd")
}

fn by_systemd(words: &[&str], directory: &Path) -> Result<(), Errno> {
    let mut command = Command::new("systemd-run");
    command.args(["--quiet", "--wait", "--collect", "--"]).args(words).arg(directory);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if status.success() { Ok(()) } else { Err(Errno::IO) }
}

/// The directory in which the other hierarchies are mounted.
fn beside(hierarchies: &[crate::Hierarchy]) -> PathBuf {
    let parent = hierarchies.iter().find(|at| at.version == Version::V1).and_then(|at| at.mount.parent());
    parent.map_or_else(|| PathBuf::from("/sys/fs/cgroup"), Path::to_path_buf)
}

fn outside(what: &str, errno: Errno, hint: Option<String>) -> Error {
    Error::Outside { what: what.to_owned(), errno, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_by_controller() {
        let text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t3\t2\t1\ncpu\t1\t17\t1\n";
        assert_eq!((groups_of(text, "cpu"), groups_of(text, "cpuset")), (Some(17), Some(2)));
        assert_eq!(
            (groups_of(text, "pids"), groups_of("", "cpu"), groups_of("cpu 1", "cpu")),
            (None, None, None)
        );
    }
}
