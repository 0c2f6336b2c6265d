//! Whose a group's directory and files become. Data only.

use serde::{Deserialize, Serialize};
use settings::{AdminFiles, Version};

use crate::Owned;

/// The files that put tasks into a group.
pub(crate) const TASK_FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "tasks"];

/// Whose a group's directory and files become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ownership {
    /// User of the files that take tasks (`cgroup.procs`, `cgroup.threads`, `tasks`).
    pub tasks_uid: Option<u32>,
    /// Group of the files that take tasks.
    pub tasks_gid: Option<u32>,
    /// Mode of the files that take tasks.
    pub tasks_mode: Option<u32>,
    /// User of the directory and of `admin_files`.
    pub admin_uid: Option<u32>,
    /// Group of the directory and of `admin_files`.
    pub admin_gid: Option<u32>,
    /// Mode of `admin_files`.
    pub file_mode: Option<u32>,
    /// Mode of the directory.
    pub directory_mode: Option<u32>,
    /// Which of the files that take no tasks are the admin's.
    #[serde(default, skip_serializing_if = "gives_own")]
    pub admin_files: AdminFiles,
}

fn gives_own(files: &AdminFiles) -> bool {
    *files == AdminFiles::Own
}

impl Ownership {
    /// What becomes of a file of the group: its new user, group and mode; `None` leaves it. Files that take tasks are
    /// the tasks user's; others are the admin's, or stay `keeper`'s, who takes back what the admin should not have.
    pub fn of_file(
        &self,
        version: Version,
        file: &str,
        now: Owned,
        keeper: (u32, u32),
    ) -> (Option<u32>, Option<u32>, Option<u32>) {
        let cut = |mode: Option<u32>| mode.map(|mode| file_mode(mode, now.mode));
        if TASK_FILES.contains(&file) {
            return (self.tasks_uid, self.tasks_gid, cut(self.tasks_mode));
        }
        if self.admin_files.has(version, file) {
            return (self.admin_uid, self.admin_gid, cut(self.file_mode));
        }
        let (uid, gid) = keeper;
        let is_user = self.admin_uid.is_some_and(|admin| admin == now.uid && admin != uid);
        let is_group = self.admin_gid.is_some_and(|admin| admin == now.gid && admin != gid);
        let is_open = now.mode & OTHERS_WRITE != 0;
        let (user, group) = (is_user.then_some(uid), is_group.then_some(gid));
        (user, group, (is_open && (is_user || is_group)).then_some(now.mode & 0o7777 & !OTHERS_WRITE))
    }
}

/// Permissions of a file that others than its owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// The mode of a file whose group is to have files of that mode: cut to what the file's owner may do with it now, as
/// libcgroup does, so that a number to be read becomes neither writable nor a program.
pub fn file_mode(wanted: u32, current: u32) -> u32 {
    let owner = current >> 6 & 0o7;
    wanted & (owner | owner << 3 | owner << 6)
}
