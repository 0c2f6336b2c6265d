//! From whose a group becomes to the owners and modes of its directory and files. Data only.

use kernel::Ownership as To;
use plan::{Owned, Ownership};
use settings::Version;

/// The files that put tasks into a group.
pub(crate) const TASK_FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "tasks"];

/// Owners and modes that `access` requests, without those that a group has from its maker; the directory last, as
/// its mode may lock the way to the files. Of each file its mode is given, which its new one depends on.
pub(crate) fn each<'f>(
    access: &Ownership,
    version: Version,
    files: &'f [(String, u32)],
    maker: Option<(u32, u32)>,
) -> Vec<(Option<&'f str>, To)> {
    let tasks = To { uid: access.tasks_uid, gid: access.tasks_gid, mode: access.tasks_mode };
    let others = To { uid: access.admin_uid, gid: access.admin_gid, mode: access.file_mode };
    let directory = To { mode: access.directory_mode, ..others };
    let mut each: Vec<(Option<&str>, To)> = files
        .iter()
        .map(|(file, actual)| (file.as_str(), *actual))
        .filter(|(file, _)| !reaches_beyond(version, file))
        .map(|(file, actual)| {
            let to = if TASK_FILES.contains(&file) { tasks } else { others };
            (Some(file), To { mode: to.mode.map(|mode| plan::file_mode(mode, actual)), ..to })
        })
        .collect();
    each.push((None, directory));
    each.iter_mut().for_each(|(_, to)| leave_out(to, maker));
    each.retain(|(_, to)| *to != To::default());
    each
}

/// That owner and that mode.
pub(crate) fn exactly(owned: Owned) -> To {
    To { uid: Some(owned.uid), gid: Some(owned.gid), mode: Some(owned.mode) }
}

/// A new group's files are its maker's. Modes are left as requested: they differ from file to file.
fn leave_out(to: &mut To, maker: Option<(u32, u32)>) {
    let Some((uid, gid)) = maker else { return };
    to.uid = to.uid.filter(|wanted| *wanted != uid);
    to.gid = to.gid.filter(|wanted| *wanted != gid);
}

/// Files of a v1 root group that change more than the group stay its own.
fn reaches_beyond(version: Version, file: &str) -> bool {
    version == Version::V1 && matches!(file, "release_agent" | "cgroup.sane_behavior")
}
