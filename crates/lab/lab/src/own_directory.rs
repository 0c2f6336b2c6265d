//! A directory of this user that files are written to and read from by name: the only writer of results. It is opened
//! once, its owner and its permissions are checked, and everything below it is reached from there without following a
//! link, so that nobody else can choose what is written or read. A file appears whole or not at all.
//!
//! It never writes to a file that was there before: it makes a new one and puts that in its place.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, Stat},
    io::Errno,
};

use workloads::files;

use units::hint::Command;

use crate::Error;

/// Permissions of a directory that others than its owner may change.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// A directory that belongs to this user.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

/// How an existing directory is opened.
fn how() -> OFlags {
    // a directory that may only be passed through can't be opened for reading
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW
}

/// Whom this process acts for.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    /// The user who ran `sudo`.
    behind: Option<u32>,
}

impl User {
    fn of_this_process() -> User {
        let behind = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        User { uid: rustix::process::geteuid().as_raw(), behind }
    }

    /// As root, check who owns a file before touching it.
    fn is_strict(self) -> bool {
        self.uid == 0
    }

    /// Only root or this user can exchange what is in such a directory.
    fn trusts(self, stat: &Stat) -> bool {
        (stat.st_uid == 0 || stat.st_uid == self.uid)
            && (stat.st_mode & OTHERS_WRITE == 0 || stat.st_mode & STICKY != 0)
    }
}

impl OwnDirectory {
    /// Opens one that is there.
    ///
    /// # Errors
    /// There is none; as root: it or a link on the way belongs to another user, or others can write to it.
    pub fn open(path: &Path) -> Result<OwnDirectory, Error> {
        OwnDirectory::walk(path, false, User::of_this_process())
    }

    /// Opens one, and makes it and those above it where they are missing.
    ///
    /// # Errors
    /// As [`OwnDirectory::open`]; it can't be made; as root: it would be in a directory of another user.
    pub fn create(path: &Path) -> Result<OwnDirectory, Error> {
        OwnDirectory::walk(path, true, User::of_this_process())
    }

    /// Goes to it step by step, so that no part of the way can be exchanged meanwhile.
    fn walk(path: &Path, make: bool, user: User) -> Result<OwnDirectory, Error> {
        let failed = |errno: Errno| Error::file(if make { "make" } else { "open" }, path)(errno.into());
        let start = if path.is_absolute() { "/" } else { "." };
        let mut at = rustix::fs::openat(CWD, start, how(), Mode::empty()).map_err(failed)?;
        let mut reached = PathBuf::from(if path.is_absolute() { "/" } else { "" });
        let mut is_last_there = true;
        for part in path.components() {
            let name: &OsStr = match part {
                Component::Normal(name) => name,
                Component::ParentDir => OsStr::new(".."),
                _ => continue,
            };
            reached.push(name);
            at = match rustix::fs::openat(&at, name, how(), Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT) if make => {
                    if is_last_there {
                        is_last_there = false;
                        may_make_in(&at, &reached, user)?;
                    }
                    make_below(&at, name).map_err(failed)?
                }
                Err(Errno::NOTDIR | Errno::LOOP) => through_link(&at, name, &reached, user)?,
                Err(errno) => return Err(failed(errno)),
            };
        }
        let stat = rustix::fs::fstat(&at).map_err(failed)?;
        check_owner(&stat, path, user)?;
        Ok(OwnDirectory { path: path.to_owned(), directory: at })
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in a file; `None` if there is none.
    ///
    /// # Errors
    /// It is not a regular file of this user, larger than `most` bytes, or can't be read.
    pub fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join(name);
        match files::open_at(&self.directory, name).and_then(|file| files::read_all(file, most)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("read", &path)(error)),
        }
    }

    /// Is there something of that name?
    pub fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Writes a file, whole or not at all. Directories in its path are made.
    ///
    /// # Errors
    /// A part of its path is something else than a directory of this user; it can't be written.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_by(path, |file| file.write_all(bytes)).map(drop)
    }

    /// The same, by whatever writes it. Returns what that does.
    ///
    /// # Errors
    /// As [`OwnDirectory::write`].
    pub fn write_by<T>(
        &self,
        path: &str,
        write: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> Result<T, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let shown = self.path.join(path);
        let failed = |error: io::Error| Error::file("write", &shown)(error);
        let (below, name) = self.below(path)?;
        let directory = below.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let new = format!(".{}-{number}.new", std::process::id());
        let written = exclusively(directory, OsStr::new(&new)).and_then(|mut file| {
            let done = write(&mut file)?;
            file.sync_all()?;
            Ok(done)
        });
        let placed = written.and_then(|done| {
            rustix::fs::renameat(directory, new.as_str(), directory, name.as_os_str())?;
            Ok(done)
        });
        if placed.is_err() {
            // the half of a file is of no use to anybody
            let _ = rustix::fs::unlinkat(directory, new.as_str(), AtFlags::empty());
        }
        placed.map_err(failed)
    }

    /// Opens a file to add to its end, and makes it if there is none.
    ///
    /// # Errors
    /// It is not a regular file, or can't be opened.
    pub fn append(&self, name: &str) -> Result<File, Error> {
        self.opened(name, OFlags::CREATE | OFlags::APPEND)
    }

    /// Opens a file that is there to write to any place of it.
    ///
    /// # Errors
    /// It is not a regular file, or can't be opened.
    pub fn update(&self, name: &str) -> Result<File, Error> {
        self.opened(name, OFlags::empty())
    }

    fn opened(&self, name: &str, how: OFlags) -> Result<File, Error> {
        let path = self.path.join(name);
        let failed = |errno: Errno| Error::file("write", &path)(errno.into());
        let how = how | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&self.directory, name, how, new_file()).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        let file: File = file.into();
        // a file with another name elsewhere could be somebody else's
        let is_ours = file.metadata().is_ok_and(|found| found.is_file()) && stat.st_nlink == 1;
        if !is_ours {
            return Err(Error::cannot(format!("{} is not a file of its own", path.display())));
        }
        Ok(file)
    }

    /// Removes a directory with everything in it, if there is one.
    ///
    /// # Errors
    /// It can't be removed.
    pub fn remove_all(&self, path: &str) -> Result<(), Error> {
        let shown = self.path.join(path);
        let parent = match self.parent_of(path) {
            Ok(parent) => parent,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(Error::file("remove", &shown)(errno.into())),
        };
        let directory = parent.as_ref().map_or(self.directory.as_raw_fd(), AsRawFd::as_raw_fd);
        let name = Path::new(path).file_name().unwrap_or_default();
        // the standard library removes without following links below what it is given
        match std::fs::remove_dir_all(Path::new(&format!("/proc/self/fd/{directory}")).join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::file("remove", &shown)(error))
            }
            _ => Ok(()),
        }
    }

    /// The directory that a path below this one is in; `None`: this one. None of it is made.
    fn parent_of(&self, path: &str) -> Result<Option<OwnedFd>, Errno> {
        let mut at: Option<OwnedFd> = None;
        let parent = Path::new(path).parent().unwrap_or(Path::new(""));
        for part in parent.components() {
            let above = at.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
            at = Some(rustix::fs::openat(above, part.as_os_str(), how(), Mode::empty())?);
        }
        Ok(at)
    }

    /// The directory that a path below this one is in (`None`: this one), which is made, and its last part.
    fn below(&self, path: &str) -> Result<(Option<OwnedFd>, OsString), Error> {
        let shown = self.path.join(path);
        let parts: Vec<Component<'_>> = Path::new(path).components().collect();
        let plain = parts.iter().all(|part| matches!(part, Component::Normal(_)));
        let Some((name, above)) = parts.split_last().filter(|_| plain) else {
            return Err(Error::cannot(format!("{} is not below {}", shown.display(), self.path.display())));
        };
        let user = User::of_this_process();
        let mut at: Option<OwnedFd> = None;
        for part in above {
            let directory = at.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
            let next = make_below(directory, part.as_os_str());
            let next = next.map_err(|errno| Error::file("make", &shown)(errno.into()))?;
            let stat = rustix::fs::fstat(&next).map_err(|errno| Error::file("make", &shown)(errno.into()))?;
            check_owner(&stat, shown.parent().unwrap_or(&shown), user)?;
            at = Some(next);
        }
        Ok((at, name.as_os_str().to_owned()))
    }
}

/// Opens a directory below another, and makes it if there is none.
fn make_below(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
    match rustix::fs::mkdirat(&directory, name, mode) {
        Ok(()) | Err(Errno::EXIST) => rustix::fs::openat(&directory, name, how(), Mode::empty()),
        Err(errno) => Err(errno),
    }
}

/// A new file.
fn exclusively(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(directory, name, how, new_file())?.into())
}

fn new_file() -> Mode {
    Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH
}

/// Follows a link only where nobody but root and this user could have put it.
fn through_link(directory: &OwnedFd, name: &OsStr, path: &Path, user: User) -> Result<OwnedFd, Error> {
    let failed = |errno: Errno| Error::file("open", path)(errno.into());
    let stat = rustix::fs::fstat(directory).map_err(failed)?;
    let link = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    // in a sticky directory anybody may have made it
    let is_trusted = user.trusts(&stat) && (link.st_uid == 0 || link.st_uid == user.uid);
    if user.is_strict() && !is_trusted {
        return Err(Error::Cannot {
            text: format!("{} may be a link of another user, which root does not follow", path.display()),
            hint: Some("name the directory that it leads to".to_owned()),
        });
    }
    rustix::fs::openat(directory, name, how() - OFlags::NOFOLLOW, Mode::empty()).map_err(failed)
}

/// Root makes directories in its own and in those of who ran sudo.
fn may_make_in(directory: &OwnedFd, path: &Path, user: User) -> Result<(), Error> {
    let stat = rustix::fs::fstat(directory).map_err(|errno| Error::file("make", path)(errno.into()))?;
    let known = [Some(0), Some(user.uid), user.behind];
    if !user.is_strict() || known.contains(&Some(stat.st_uid)) {
        return Ok(());
    }
    Err(Error::Cannot {
        text: format!(
            "{} would be in a directory of user {}, where root writes nothing",
            path.display(),
            stat.st_uid
        ),
        hint: Some("name another with --directory".to_owned()),
    })
}

/// As root: the directory must be root's, and nobody else may write to it.
fn check_owner(stat: &Stat, path: &Path, user: User) -> Result<(), Error> {
    if !user.is_strict() {
        return Ok(());
    }
    let shown = path.to_string_lossy();
    if stat.st_uid != user.uid {
        return Err(Error::Cannot {
            text: format!(
                "{} belongs to user {}: root neither reads nor writes results of other users",
                path.display(),
                stat.st_uid
            ),
            hint: Some(format!(
                "do it as that user, or, if you trust what is in it, {}",
                Command::new("chown -hR root:").arg(&shown)
            )),
        });
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err(Error::Cannot {
            text: format!("others than root can write to {}", path.display()),
            hint: Some(Command::new("chmod go-w").arg(&shown).into()),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
