//! Where an executable's path leads, and a watch over every directory on the way: a replaced file, a link turned to
//! another place or a replaced directory are noticed. Marks nothing itself.

use std::{
    collections::{HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// As many links as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// A watch over the directories that lead to some files.
#[derive(Debug)]
pub(crate) struct Places {
    inotify: OwnedFd,
    /// The names that matter, and the watch (directory) that each is in.
    names: HashSet<(i32, OsString)>,
}

impl Places {
    pub fn new() -> Result<Places, Errno> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Places { inotify, names: HashSet::new() })
    }

    /// Readable when something may have changed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Watches the way to `path`, which is absolute, as far as it exists.
    pub fn watch(&mut self, path: &Path) -> Result<(), Errno> {
        for (directory, name) in way(path) {
            let changes = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            match inotify::add_watch(&self.inotify, &directory, changes) {
                Ok(watch) => _ = self.names.insert((watch, name)),
                Err(Errno::NOENT | Errno::NOTDIR) => {} // gone since
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Takes the changes; whether one concerns the watched files. Does not wait.
    pub fn changed(&self) -> Result<bool, Errno> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut changed = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    changed |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                    changed |= name.is_some_and(|name| self.names.contains(&(event.wd(), name)));
                }
                Err(Errno::AGAIN) => return Ok(changed),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// The directories that a lookup of `path` goes through, each with the name that it looks up there.
fn way(path: &Path) -> Vec<(PathBuf, OsString)> {
    let mut ahead: VecDeque<OsString> = parts(path);
    let mut here = PathBuf::from("/");
    let (mut way, mut links) = (Vec::new(), 0);
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        way.push((here.clone(), name));
        match fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                parts(&target).into_iter().rev().for_each(|part| ahead.push_front(part));
            }
            Ok(_) => break,
            Err(_) => here = next, // no link
        }
    }
    way
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let named = |part| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(|part| named(*part)).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_way_goes_through_links_and_parents() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("lib/16/bin")).unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        symlink("../current/bin/x", root.join("bin/x")).unwrap();
        symlink(root.join("lib/16"), root.join("current")).unwrap();
        let way = way(&root.join("bin/x"));
        let own: Vec<(&Path, &OsStr)> = way
            .iter()
            .filter_map(|(directory, name)| Some((directory.strip_prefix(root).ok()?, name.as_os_str())))
            .collect();
        let expected: [(&str, &str); 7] = [
            ("", "bin"),
            ("bin", "x"),
            ("", "current"),
            ("", "lib"),
            ("lib", "16"),
            ("lib/16", "bin"),
            ("lib/16/bin", "x"),
        ];
        assert_eq!(own, expected.map(|(directory, name)| (Path::new(directory), OsStr::new(name))));
    }

    #[test]
    fn a_circle_of_links_ends() {
        let root = tempfile::tempdir().unwrap();
        symlink("b", root.path().join("a")).unwrap();
        symlink("a", root.path().join("b")).unwrap();
        assert!(way(&root.path().join("a")).len() < 100);
    }

    #[test]
    fn only_changes_of_names_on_the_way_are_told() {
        let root = tempfile::tempdir().unwrap();
        let mut places = Places::new().unwrap();
        let file = root.path().join("x");
        places.watch(&file).unwrap();
        assert!(!places.changed().unwrap());
        fs::write(root.path().join("other"), "").unwrap();
        assert!(!places.changed().unwrap());
        fs::rename(root.path().join("other"), &file).unwrap();
        assert!(places.changed().unwrap());
        assert!(!places.changed().unwrap());
    }
}
