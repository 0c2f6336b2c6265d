//! Mounts and unmounts v1 hierarchies, only when asked. Never remounts or moves what is there.

use std::path::{Path, PathBuf};

use rustix::{io::Errno, mount::MountFlags};
use settings::{Controller, Version};

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
    // what stays missing, mount(2) tells
    let _ = std::fs::create_dir_all(&directory);
    let options =
        std::ffi::CString::new(names.clone()).map_err(|_| outside("controller names", Errno::INVAL, None))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
    let mounted = rustix::mount::mount("cgroup", &directory, "cgroup", flags, options.as_c_str());
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
            Errno::PERM | Errno::ACCESS => "mounting needs root (CAP_SYS_ADMIN)".to_owned(),
            _ => "dmesg may tell more".to_owned(),
        };
        outside(&format!("cannot mount {names} at {}", directory.display()), errno, Some(hint))
    })
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
        let hint = Some(format!("delete them first: {}", left.join(" ")));
        return Err(outside(&format!("{} still has groups", at.mount.display()), Errno::BUSY, hint));
    }
    host.kernel().let_go(&at.mount);
    rustix::mount::unmount(&at.mount, rustix::mount::UnmountFlags::empty())
        .map_err(|errno| outside(&format!("cannot unmount {}", at.mount.display()), errno, None))?;
    // a directory made by mount_v1 goes with it; one that holds anything stays
    let _ = std::fs::remove_dir(&at.mount);
    Ok(at.mount.clone())
}

/// The directory in which the other hierarchies are mounted.
fn beside(hierarchies: &[crate::Hierarchy]) -> PathBuf {
    let parent = hierarchies.iter().find(|at| at.version == Version::V1).and_then(|at| at.mount.parent());
    parent.map_or_else(|| PathBuf::from("/sys/fs/cgroup"), Path::to_path_buf)
}

fn outside(what: &str, errno: Errno, hint: Option<String>) -> Error {
    Error::Outside { what: what.to_owned(), errno, hint }
}
