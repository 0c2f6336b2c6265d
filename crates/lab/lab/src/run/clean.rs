//! Removes what a journal says: at the end of an experiment, and for one that was killed. What a damaged line named is
//! not known: it may be that programs of the machine are in a group, or that a file system is mounted in a directory.
//! Where a line is damaged, no process is killed therefore; and nothing is ever removed through a mount.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use apply::Damage;
use kernel::Host;
use serde::Serialize;
use units::hint::Command;

use super::isolation;
use super::journal::{Entry, Journal, Owner, Written, directory, read};
use crate::{Error, groups};

impl Journal {
    /// Removes whatever it says that is still there. What can't be removed stays in it for the next time; the first
    /// reason is reported.
    pub fn end(self, host: &Host) -> Result<(), Error> {
        let mut cleaned = Cleaned::default();
        undo_all(host, &self.path, &read(&self.path)?, &mut cleaned)?;
        if cleaned.left.is_empty() {
            return Ok(());
        }
        let hint = cleaned.hint().unwrap_or_else(|| "ringfence lab clean tries again".to_owned());
        Err(Error::Cannot { text: cleaned.left.join("; "), hint: Some(hint) })
    }
}

/// What a clean-up did, in words, and what it could not do.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// What was removed.
    pub removed: Vec<String>,
    /// What is still there, and why. Its journal stays for the next time.
    pub left: Vec<String>,
    /// The journals among these with damaged lines: they stay until somebody removes them.
    #[serde(skip)]
    pub damaged: Vec<PathBuf>,
}

impl Cleaned {
    /// What is to be done about damaged journals.
    pub fn hint(&self) -> Option<String> {
        if self.damaged.is_empty() {
            return None;
        }
        let remove = Command::new("rm").args(self.damaged.iter().map(|path| path.to_string_lossy()));
        Some(format!("remove by hand what the damaged lines named, then: {remove}"))
    }
}

/// Removes what dead experiments left.
///
/// # Errors
/// The journals can't be listed.
pub fn clean(host: &Host) -> Result<Cleaned, Error> {
    let directory = directory();
    let mut cleaned = Cleaned::default();
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(cleaned),
        Err(error) => return Err(Error::file("read", &directory)(error)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "journal"));
    paths.sort();
    for path in paths {
        // one that can't be read keeps nobody from the others
        let written = match read(&path) {
            Ok(written) => written,
            Err(error) => {
                cleaned.left.push(error.to_string());
                continue;
            }
        };
        match written.owner(&path) {
            Owner::Lives => {}
            Owner::NoProcess => undo_all(host, &path, &written, &mut cleaned)?,
            Owner::Unknown(pid) => {
                name_damage(&path, &written, &mut cleaned);
                let whose = pid.map_or("its owner is not known".to_owned(), |pid| {
                    format!("process {pid} may still run its experiment")
                });
                cleaned
                    .left
                    .push(format!("{}: {whose}, so nothing that it lists was removed", path.display()));
            }
        }
    }
    Ok(cleaned)
}

/// Removes what a journal says, the last first, then the journal.
fn undo_all(host: &Host, path: &Path, written: &Written, cleaned: &mut Cleaned) -> Result<(), Error> {
    let left = cleaned.left.len();
    name_damage(path, written, cleaned);
    let is_whole = written.damage.is_empty();
    let mut holds_others = false;
    for made in written.made.iter().rev() {
        match made {
            // what is in it would be killed
            Entry::Group(group) if holds_others => {
                cleaned.left.push(format!("group {group}: programs of the machine are still in it"));
            }
            made => {
                let before = cleaned.left.len();
                undo(host, made, is_whole, cleaned);
                holds_others |= matches!(made, Entry::Relocation(_)) && cleaned.left.len() > before;
            }
        }
    }
    if cleaned.left.len() == left {
        fs::remove_file(path).map_err(Error::file("remove", path))?;
    }
    Ok(())
}

fn name_damage(path: &Path, written: &Written, cleaned: &mut Cleaned) {
    for damage in &written.damage {
        let (path, Damage { line, what }) = (path.display(), damage);
        cleaned
            .left
            .push(format!("{path}:{line}: damaged ({what}): what it named, if anything, is still there"));
    }
    if !written.damage.is_empty() {
        cleaned.damaged.push(path.to_owned());
    }
}

/// Removes one thing; one that is not there is as good as removed.
fn undo(host: &Host, made: &Entry, is_whole: bool, cleaned: &mut Cleaned) {
    let done = match made {
        Entry::Owner { .. } => return,
        Entry::Group(group) => {
            remove_group(host, group, is_whole).map(|done| done.then(|| format!("group {group}")))
        }
        Entry::Moved(home) => {
            home.put_back(host).map(|done| done.then(|| format!("process {} from its group", home.pid)))
        }
        Entry::Relocation(away) => {
            away.put_back(host).map(|done| done.then(|| format!("group {}", away.group)))
        }
        Entry::Knobs(places) => isolation::give_back(places)
            .map(|count| (count > 0).then(|| format!("{count} knobs of isolated CPUs"))),
        Entry::Mount(path) => unmount(path).map(|done| done.then(|| format!("mount {}", path.display()))),
        Entry::Swap(path) => swap_off(path).map(|done| done.then(|| format!("swap {}", path.display()))),
        Entry::Directory(path) => {
            remove_directory(host, path).map(|done| done.then(|| format!("directory {}", path.display())))
        }
    };
    match done {
        Ok(done) => cleaned.removed.extend(done),
        Err(error) => cleaned.left.push(error.to_string()),
    }
}

/// Was there such a group? What is in it is killed only if it is known that nothing of others is.
fn remove_group(host: &Host, group: &str, is_whole: bool) -> Result<bool, Error> {
    let name = kernel::GroupName::new(group)?;
    let is_there = !host.seats(&name).is_empty();
    if is_whole {
        groups::remove(host, group)?;
    } else if is_there {
        host.delete(&name, true)?;
    }
    Ok(is_there)
}

/// Was there such a directory? One in which something is mounted stays.
fn remove_directory(host: &Host, path: &Path) -> Result<bool, Error> {
    // mounts are listed without the links that lead to them
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::file("remove", path)(error)),
    };
    if let Some(mount) = host.mounts_in(&real)?.first() {
        let text = format!("directory {}: {} is mounted in it", path.display(), mount.display());
        return Err(Error::Cannot { text, hint: None });
    }
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::file("remove", path)(error)),
    }
}

/// Unmounts what is mounted there; was there anything?
pub(crate) fn unmount(path: &Path) -> Result<bool, Error> {
    match rustix::mount::unmount(path, rustix::mount::UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(true),
        // nothing is there, or nothing is mounted there
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => Ok(false),
        Err(errno) => Err(Error::file("unmount", path)(errno.into())),
    }
}

/// Takes a file out of use as swap and removes it; was it in use?
///
/// A `swapon` or `swapoff` of an owner that was killed goes on in the kernel without it. Until that is done, /proc/swaps may
/// not list the file, but its removal is refused.
pub(crate) fn swap_off(path: &Path) -> Result<bool, Error> {
    let begun = Instant::now();
    let mut was_used = false;
    loop {
        let refused = match is_swapped_to(path) {
            true => {
                was_used = true;
                swapoff(path)?
            }
            false => None,
        };
        let refused = match refused {
            Some(refused) => refused,
            None => match fs::remove_file(path) {
                Ok(()) => return Ok(was_used),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(was_used),
                Err(error) => Error::file("remove", path)(error),
            },
        };
        if begun.elapsed() > OTHERS_SWAPS {
            return Err(refused);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Why the program refused, if the file is still used.
fn swapoff(path: &Path) -> Result<Option<Error>, Error> {
    let output = std::process::Command::new("swapoff").arg(path).output();
    let output = output.map_err(Error::file("stop swapping to", path))?;
    if output.status.success() || !is_swapped_to(path) {
        return Ok(None);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let (name, status) = ("swapoff".to_owned(), output.status.to_string());
    Ok(Some(workloads::Error::Ended { name, status, message }.into()))
}

/// How long another swapon or swapoff of the same file is waited for.
const OTHERS_SWAPS: Duration = Duration::from_secs(30);

fn is_swapped_to(path: &Path) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    swaps.lines().any(|line| line.split_whitespace().next().is_some_and(|used| Path::new(used) == path))
}
