//! Which mount keeps a file read-only (proc_pid_mountinfo(5)), and whether the caller may change that. Only reads.

use std::{fs, path::Path};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, statx},
    thread::{CapabilitySet, capabilities},
};
use settings::knobs::ReadOnly;
use units::hint::Command;

/// The mount that a file is in; the file itself where the kernel does not say (before Linux 5.8).
pub(crate) fn of(file: &Path) -> ReadOnly {
    let id = statx(CWD, file, AtFlags::empty(), StatxFlags::MNT_ID).map(|found| found.stx_mnt_id);
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let may = may_mount();
    let found = id.ok().and_then(|id| mount(&mountinfo, id, may));
    found.unwrap_or_else(|| ReadOnly { mount: file.display().to_string(), remount: None })
}

/// `36 35 98:0 /root /mount/point ro,noatime shared:1 - proc source rw`. The mount points above a knob have no character
/// that this file escapes.
fn mount(mountinfo: &str, id: u64, may: bool) -> Option<ReadOnly> {
    let line = mountinfo.lines().find(|line| line.split(' ').next() == Some(id.to_string().as_str()))?;
    let (before, after) = line.split_once(" - ")?;
    let (mount, of_file_system) = (before.split(' ').nth(4)?, after.rsplit(' ').next()?);
    // with `bind` the rest of the machine's mounts of this file system stay as they are
    let words = match of_file_system.split(',').any(|option| option == "ro") {
        true => "mount -o remount,rw",
        false => "mount -o remount,bind,rw",
    };
    let remount = may.then(|| Command::new(words).arg(mount).to_string());
    Some(ReadOnly { mount: mount.to_owned(), remount })
}

/// May the caller change mounts? A user namespace may not lift what was read-only before it.
fn may_mount() -> bool {
    let is_able = capabilities(None).is_ok_and(|of| of.effective.contains(CapabilitySet::SYS_ADMIN));
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    is_able && map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCKER: &str = "\
21 20 0:5 / /proc rw,nosuid - proc proc rw
22 20 0:6 / /sys ro,nosuid - sysfs sysfs ro
23 21 0:5 /sys /proc/sys ro,nosuid - proc proc rw
";

    #[test]
    fn the_mount_is_named_with_what_makes_it_writable() {
        let of = |id, may| mount(DOCKER, id, may).map(|found| (found.mount, found.remount));
        let remount = |mount: &str, command: &str| Some((mount.to_owned(), Some(command.to_owned())));
        assert_eq!(of(23, true), remount("/proc/sys", "mount -o remount,bind,rw /proc/sys"));
        assert_eq!(of(22, true), remount("/sys", "mount -o remount,rw /sys"));
        assert_eq!(of(22, false), Some(("/sys".to_owned(), None)));
        assert_eq!(of(2, true), None);
    }
}
