//! A way from the root directory to a file or directory on which nobody but root and the caller decides what is found:
//! who owns a directory on it, or may write there, could put something else in the place of what follows.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};
use units::hint::Command;

/// Permissions of a file or directory that others than its owner may change.
pub(crate) const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// As many links as the kernel follows.
const LINKS: usize = 40;

/// Why root does not trust a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untrusted {
    /// This, which is on the way, is another user's.
    Owner {
        /// What.
        path: PathBuf,
        /// Whose.
        uid: u32,
    },
    /// This, which is on the way, can be written by others than its owner.
    Writable {
        /// What.
        path: PathBuf,
    },
    /// It can't be looked at.
    Failed {
        /// Where it went no further.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
}

impl std::fmt::Display for Untrusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Untrusted::Owner { path, uid } => write!(f, "{} belongs to user {uid}", path.display()),
            Untrusted::Writable { path } => {
                write!(f, "{} can be written by others than its owner", path.display())
            }
            Untrusted::Failed { path, errno } => {
                write!(f, "{}: {}", path.display(), crate::files::in_words(&(*errno).into()))
            }
        }
    }
}

impl Untrusted {
    /// What corrects it.
    pub fn hint(&self) -> Option<Command> {
        match self {
            Untrusted::Owner { path, .. } => Some(Command::new("chown root").arg(path.to_string_lossy())),
            Untrusted::Writable { path } => Some(Command::new("chmod go-w").arg(path.to_string_lossy())),
            Untrusted::Failed { .. } => None,
        }
    }
}

/// May a file of that user decide what root does? Root's own and the caller's may, also of the caller of sudo: that
/// variable is root's where the real user is root.
pub(crate) fn is_trusted(uid: u32) -> bool {
    let real = rustix::process::getuid();
    let by_sudo = || real.is_root() && std::env::var("SUDO_UID").is_ok_and(|text| text.parse() == Ok(uid));
    uid == 0 || uid == rustix::process::geteuid().as_raw() || by_sudo()
}

/// Goes to a file or directory, links followed, and opens it to be named (`O_PATH`).
///
/// # Errors
/// It, a directory above it, or a directory above a link on the way can be changed by others than root and the caller.
pub fn trusted(path: &Path) -> Result<OwnedFd, Untrusted> {
    let failed = |path: &Path, errno| Untrusted::Failed { path: path.to_owned(), errno };
    let whole = match path.is_absolute() {
        true => path.to_owned(),
        false => {
            let here = std::env::current_dir();
            let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT);
            here.map_err(|error| failed(path, errno(error)))?.join(path)
        }
    };
    let how = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root =
        || rustix::fs::openat(CWD, "/", how, Mode::empty()).map_err(|errno| failed(Path::new("/"), errno));
    let (mut at, mut reached, mut links) = (root()?, PathBuf::from("/"), 0);
    let mut rest = names(&whole);
    let stat_of =
        |at: &OwnedFd, reached: &Path| rustix::fs::fstat(at).map_err(|errno| failed(reached, errno));
    check(&stat_of(&at, &reached)?, &reached)?;
    while let Some(name) = rest.pop_front() {
        let shown = if name == ".." { above(&reached) } else { reached.join(&name) };
        let next =
            rustix::fs::openat(&at, &name, how, Mode::empty()).map_err(|errno| failed(&shown, errno))?;
        let stat = stat_of(&next, &shown)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            links += 1;
            if links > LINKS {
                return Err(failed(&shown, Errno::LOOP));
            }
            // the directory it is in is trusted; in a sticky one anybody may have made the link
            if !is_trusted(stat.st_uid) {
                return Err(Untrusted::Owner { path: shown, uid: stat.st_uid });
            }
            let target =
                rustix::fs::readlinkat(&next, "", Vec::new()).map_err(|errno| failed(&shown, errno))?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            if target.is_absolute() {
                (at, reached) = (root()?, PathBuf::from("/"));
            }
            let mut new = names(&target);
            new.append(&mut rest);
            rest = new;
            continue;
        }
        check(&stat, &shown)?;
        (at, reached) = (next, shown);
    }
    Ok(at)
}

/// The program that a command's first word starts, as execvp(3) finds it.
///
/// # Errors
/// As [`trusted`]; there is none.
pub fn trusted_program(word: &OsStr) -> Result<OwnedFd, Untrusted> {
    if word.as_bytes().contains(&b'/') {
        return trusted(Path::new(word));
    }
    let directories = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let found = std::env::split_paths(&directories)
        .map(|directory| directory.join(word))
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok());
    match found {
        Some(path) => trusted(&path),
        None => Err(Untrusted::Failed { path: PathBuf::from(word), errno: Errno::NOENT }),
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

fn above(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// Only root and the caller may change it; in a sticky directory such as /tmp only its owner can exchange what is there.
fn check(stat: &Stat, path: &Path) -> Result<(), Untrusted> {
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if !is_trusted(stat.st_uid) {
        return Err(Untrusted::Owner { path: path.to_owned(), uid: stat.st_uid });
    }
    if stat.st_mode & OTHERS_WRITE != 0 && !(is_directory && stat.st_mode & STICKY != 0) {
        return Err(Untrusted::Writable { path: path.to_owned() });
    }
    Ok(())
}
