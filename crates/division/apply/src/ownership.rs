//! From whose a group becomes to the owners and modes of its directory and files. Data only.

use kernel::Ownership as To;
use plan::{Owned, Ownership};
use settings::Version;

/// The files that put tasks into a group.
pub(crate) const TASK_FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "tasks"];

/// Owners and modes that `access` requests, without those that a group has from its maker; the directory last, as
/// its mode may lock the way to the files. Of each file its owner and mode are given, which its new ones depend on.
pub(crate) fn each<'f>(
    access: &Ownership,
    version: Version,
    files: &'f [(String, Owned)],
    maker: Option<(u32, u32)>,
    keeper: (u32, u32),
) -> Vec<(Option<&'f str>, To)> {
    let mut each: Vec<(Option<&str>, To)> = files
        .iter()
        .map(|(file, now)| {
            let (uid, gid, mode) = access.of_file(version, file, *now, keeper);
            (Some(file.as_str()), To { uid, gid, mode })
        })
        .collect();
    each.push((None, To { uid: access.admin_uid, gid: access.admin_gid, mode: access.directory_mode }));
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
