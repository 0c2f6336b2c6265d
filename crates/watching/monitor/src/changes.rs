//! Notices that groups were made, removed or renamed, by inotify on their directories (v1 and v2 alike: both go
//! through the file system's own mkdir and rmdir). Never reads a directory: what is there now is found by listing.

use std::{collections::HashSet, mem::MaybeUninit, os::fd::OwnedFd};

use kernel::Hierarchy;
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// Watches on directories.
#[derive(Debug)]
pub(crate) struct Changes {
    descriptor: OwnedFd,
    watched: HashSet<i32>,
    /// Some directory can't be watched (`fs.inotify.max_user_watches`): groups must be listed now and then.
    blind: bool,
}

impl Changes {
    pub(crate) fn new() -> Result<Changes, Errno> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Changes { descriptor, watched: HashSet::new(), blind: false })
    }

    /// Watches a group's directory; `true` if it was not watched before. The kernel ends a watch with its directory.
    pub(crate) fn watch(&mut self, at: &Hierarchy, group: &str) -> bool {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.descriptor, at.path(group), flags) {
            Ok(watch) => self.watched.insert(watch),
            Err(Errno::NOENT) => false, // gone again; its parent's watch reports it
            Err(_) => {
                self.blind = true;
                false
            }
        }
    }

    /// Did anything change since the last call? Lost events count as a change.
    pub(crate) fn any(&mut self) -> bool {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.descriptor, &mut space);
        let mut any = false;
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::IGNORED) {
                self.watched.remove(&event.wd());
            } else {
                any = true;
            }
        }
        any
    }

    pub(crate) fn is_blind(&self) -> bool {
        self.blind
    }
}
