//! Removes what a journal says: at the end of an experiment, and for one that was killed.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use kernel::Host;
use serde::Serialize;

use super::journal::{Journal, Made, directory, lives, read};
use crate::{Error, groups};

impl Journal {
    /// Removes whatever it says that is still there. What can't be removed stays in it for the next time; the first
    /// reason is reported.
    pub fn end(self, host: &Host) -> Result<(), Error> {
        let mut cleaned = Cleaned::default();
        undo_all(host, &self.path, &mut cleaned)?;
        match cleaned.left.into_iter().next() {
            None => Ok(()),
            Some(why) => {
                Err(Error::Cannot { text: why, hint: Some("ringfence lab clean tries again".to_owned()) })
            }
        }
    }
}

/// What a clean-up did, in words, and what it could not do.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// What was removed.
    pub removed: Vec<String>,
    /// What is still there, and why. Its journal stays for the next time.
    pub left: Vec<String>,
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(cleaned),
        Err(error) => return Err(Error::file("read", &directory)(error)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "journal"));
    paths.sort();
    for path in paths {
        // one that can't be read keeps nobody from the others
        match read(&path) {
            Ok(all) if all.first().is_some_and(lives) => {}
            Ok(_) => undo_all(host, &path, &mut cleaned)?,
            Err(error) => cleaned.left.push(error.to_string()),
        }
    }
    Ok(cleaned)
}

/// Removes what a journal says, the last first, then the journal.
fn undo_all(host: &Host, path: &Path, cleaned: &mut Cleaned) -> Result<(), Error> {
    let left = cleaned.left.len();
    let mut holds_others = false;
    for made in read(path)?.iter().rev() {
        match made {
            // what is in it would be killed
            Made::Group(group) if holds_others => {
                cleaned.left.push(format!("group {group}: programs of the machine are still in it"));
            }
            made => {
                let before = cleaned.left.len();
                undo(host, made, cleaned);
                holds_others |= matches!(made, Made::Away(_)) && cleaned.left.len() > before;
            }
        }
    }
    if cleaned.left.len() == left {
        fs::remove_file(path).map_err(Error::file("remove", path))?;
    }
    Ok(())
}

/// Removes one thing; one that is not there is as good as removed.
fn undo(host: &Host, made: &Made, cleaned: &mut Cleaned) {
    let done = match made {
        Made::Owner { .. } => return,
        Made::Group(group) => kernel::GroupName::new(group).map_err(Error::from).and_then(|name| {
            let is_there = !host.seats(&name).is_empty();
            groups::remove(host, group).map(|()| is_there.then(|| format!("group {group}")))
        }),
        Made::Moved(home) => {
            home.put_back(host).map(|done| done.then(|| format!("process {} from its group", home.pid)))
        }
        Made::Away(away) => away.put_back(host).map(|done| done.then(|| format!("group {}", away.group))),
        Made::Mount(path) => unmount(path).map(|done| done.then(|| format!("mount {}", path.display()))),
        Made::Swap(path) => swap_off(path).map(|done| done.then(|| format!("swap {}", path.display()))),
        Made::Directory(path) => match fs::remove_dir_all(path) {
            Ok(()) => Ok(Some(format!("directory {}", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("remove", path)(error)),
        },
    };
    match done {
        Ok(done) => cleaned.removed.extend(done),
        Err(error) => cleaned.left.push(error.to_string()),
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

/// Takes a file out of use as swap; was it in use?
pub(crate) fn swap_off(path: &Path) -> Result<bool, Error> {
    if !is_swapped_to(path) {
        return Ok(false);
    }
    let begun = Instant::now();
    loop {
        let output = std::process::Command::new("swapoff").arg(path).output();
        let output = output.map_err(Error::file("stop swapping to", path))?;
        if output.status.success() || !is_swapped_to(path) {
            return Ok(true);
        }
        // the swapoff of an owner that was killed goes on without it: until that has read all back, ours is refused
        if begun.elapsed() > OTHERS_SWAPOFF {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let (name, status) = ("swapoff".to_owned(), output.status.to_string());
            return Err(workloads::Error::Ended { name, status, message }.into());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// How long another swapoff of the same file is waited for.
const OTHERS_SWAPOFF: Duration = Duration::from_secs(30);

fn is_swapped_to(path: &Path) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    swaps.lines().any(|line| line.split_whitespace().next().is_some_and(|used| Path::new(used) == path))
}
