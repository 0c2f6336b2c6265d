//! What a peer could read itself: the owners and modes of a file and of the directories above it, as the kernel would judge
//! them for that peer. The daemon is root, and must not read for others what the machine keeps from them.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt, path::Path};

use super::Peer;

const READ: u32 = 0o4;
const ENTER: u32 = 0o1;

/// One peer's view; directories are looked at once.
pub(crate) struct View<'p> {
    peer: &'p Peer,
    entered: HashMap<std::path::PathBuf, bool>,
}

impl View<'_> {
    pub(crate) fn of(peer: &Peer) -> View<'_> {
        View { peer, entered: HashMap::new() }
    }

    /// May the peer read this file? Also true of one that is not there: it hides nothing.
    pub(super) fn reads(&mut self, file: &Path) -> bool {
        self.peer.is_root() || (self.enters_above(file) && self.may(file, READ).unwrap_or(true))
    }

    /// May the peer see this directory's files?
    pub(crate) fn lists(&mut self, directory: &Path) -> bool {
        self.peer.is_root()
            || (self.enters_above(directory) && self.may(directory, READ | ENTER).unwrap_or(false))
    }

    fn enters_above(&mut self, path: &Path) -> bool {
        let Some(parent) = path.parent() else { return true };
        if let Some(entered) = self.entered.get(parent) {
            return *entered;
        }
        let enters = self.may(parent, ENTER).unwrap_or(false) && self.enters_above(parent);
        self.entered.insert(parent.to_owned(), enters);
        enters
    }

    /// The kernel takes the first class that fits (path_resolution(7)).
    fn may(&self, path: &Path, bits: u32) -> Option<bool> {
        let metadata = fs::metadata(path).ok()?;
        let class = if metadata.uid() == self.peer.uid {
            metadata.mode() >> 6
        } else if self.peer.is_in(metadata.gid()) {
            metadata.mode() >> 3
        } else {
            metadata.mode()
        };
        Some(class & bits == bits)
    }
}

/// Does `/proc` show this process as the peer's? The directory is its user's only while it may be looked into
/// (proc(5), PR_SET_DUMPABLE).
pub(super) fn shows_as_own(peer: &Peer, pid: u32) -> bool {
    peer.is_root() || fs::metadata(format!("/proc/{pid}")).is_ok_and(|metadata| metadata.uid() == peer.uid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_a_directory_keeps_from_others_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let file = inner.join("file");
        fs::write(&file, "x").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let stranger = Peer { uid: 65534, gid: 65534, pid: 0, groups: Vec::new() };
        let sees = || (View::of(&stranger).lists(&inner), View::of(&stranger).reads(&file));
        mode(directory.path(), 0o755);
        mode(&inner, 0o755);
        mode(&file, 0o644);
        assert_eq!(sees(), (true, true));
        mode(&file, 0o640);
        assert_eq!(sees(), (true, false));
        let gid = fs::metadata(&file).unwrap().gid();
        let member = Peer { groups: vec![gid], ..stranger.clone() };
        assert!(View::of(&member).reads(&file));
        mode(&inner, 0o711);
        assert_eq!(sees(), (false, false));
        mode(&file, 0o644);
        mode(directory.path(), 0o750);
        assert_eq!(sees(), (false, false));
        assert!(View::of(&Peer { uid: 0, gid: 0, pid: 0, groups: Vec::new() }).reads(&file));
    }

    #[test]
    fn only_ones_own_processes_are_shown() {
        let me = std::process::id();
        assert!(shows_as_own(&Peer { uid: 0, gid: 0, pid: 1, groups: Vec::new() }, me));
        assert!(!shows_as_own(&Peer { uid: 65533, gid: 65533, pid: 1, groups: Vec::new() }, me));
        assert!(!shows_as_own(&Peer { uid: 65533, gid: 65533, pid: 1, groups: Vec::new() }, u32::MAX));
    }
}
