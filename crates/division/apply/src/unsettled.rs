//! What units' drop-in files on the disk had before a change that may still go back: one that waits for its confirmation, or
//! is under way. Beside the files, so that a boot can read it before it starts a unit: the history may not be mounted then.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use layout::UnitName;
use serde::{Deserialize, Serialize};

/// Where units' files outlive a boot.
pub(crate) const UNITS: &str = "/etc/systemd/system";
/// The directory in it, with a file for each unit. systemd reads no name with a dot in front.
const DIRECTORY: &str = ".ringfence-before";
/// The largest of them that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// What one of them says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The boot of the change.
    boot: String,
    /// What the drop-in file contained; `None`: there was none.
    before: Option<String>,
}

/// Notes what a unit's drop-in file contains before a change writes it. What an earlier write of a change that is not
/// settled noted stays.
pub(crate) fn note(units: &Path, unit: &str, boot: &str, before: Option<&str>) -> io::Result<()> {
    let directory = units.join(DIRECTORY);
    let file = directory.join(unit);
    if read(&file).is_some() {
        return Ok(());
    }
    let note = Note { boot: boot.to_owned(), before: before.map(str::to_owned) };
    match fs::create_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ if fs::symlink_metadata(&directory)?.is_dir() => {}
        _ => return Err(io::Error::other(format!("{} is no directory", directory.display()))),
    }
    let _ = fs::remove_file(&file); // left behind by a process that was killed
    let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&file)?;
    to.write_all(&serde_json::to_vec(&note)?)?;
    // before the file of the unit, or a cut leaves that alone
    to.sync_all()?;
    File::open(&directory)?.sync_all()?;
    File::open(units)?.sync_all()
}

/// Forgets all: the files are as they are to be.
pub(crate) fn forget(units: &Path) -> io::Result<()> {
    let directory = units.join(DIRECTORY);
    // none, or somebody's
    if !fs::symlink_metadata(&directory).is_ok_and(|there| there.is_dir()) {
        return Ok(());
    }
    for entry in fs::read_dir(&directory)? {
        let entry = entry?;
        let is_unit = entry.file_name().to_str().is_some_and(|name| UnitName::of_directory(name).is_ok());
        // files of others stay
        if is_unit && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
        _ => File::open(units)?.sync_all(),
    }
}

/// Drop-in files below `units` that a change of an earlier boot wrote and that is not settled: by path, what they had before.
/// A file that is not Ringfence's any more is left out, and one that is as before.
pub fn unsettled(units: &Path, boot: &str) -> BTreeMap<PathBuf, Option<String>> {
    let listed = fs::read_dir(units.join(DIRECTORY)).into_iter().flatten().flatten();
    let of_earlier_boot = listed.filter_map(|entry| {
        let unit = entry.file_name().into_string().ok()?;
        let note = read(&entry.path()).filter(|note| note.boot != boot)?;
        let drop_in = plan::drop_in(&unit, false);
        let path = units.join(Path::new(&drop_in).strip_prefix(UNITS).ok()?);
        let now = fs::read_to_string(&path).ok();
        let may_go = now.as_deref().is_none_or(plan::is_drop_in) && now != note.before;
        may_go.then_some((path, note.before))
    });
    of_earlier_boot.collect()
}

fn read(file: &Path) -> Option<Note> {
    let there = fs::symlink_metadata(file).ok()?;
    if !there.is_file() || there.len() > LARGEST {
        return None;
    }
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "# by ringfence, from the layout in effect; `ringfence undo 0` removes it\n";

    #[test]
    fn what_was_there_first_is_kept_until_the_change_is_settled() {
        let tree = tempfile::tempdir().unwrap();
        let units = tree.path();
        let path = units.join("a.service.d/90-ringfence.conf");
        fs::create_dir(units.join("a.service.d")).unwrap();
        assert!(plan::is_drop_in(OURS), "the first line of ours is another by now");
        note(units, "a.service", "1", None).unwrap();
        fs::write(&path, OURS).unwrap();
        note(units, "a.service", "1", Some("later")).unwrap();
        assert_eq!(unsettled(units, "1"), BTreeMap::new(), "it is under way");
        assert_eq!(unsettled(units, "2"), BTreeMap::from([(path.clone(), None)]));
        // in the next boot it goes on as before the first write
        note(units, "a.service", "2", Some(OURS)).unwrap();
        assert_eq!(unsettled(units, "2"), BTreeMap::from([(path.clone(), None)]));
        fs::write(&path, "[Service]\nMemoryMax=1G\n").unwrap();
        assert_eq!(unsettled(units, "2"), BTreeMap::new(), "it is somebody's");
        fs::remove_file(&path).unwrap();
        assert_eq!(unsettled(units, "2"), BTreeMap::new(), "it is as before");
        forget(units).unwrap();
        forget(units).unwrap();
        fs::write(&path, OURS).unwrap();
        assert_eq!(unsettled(units, "3"), BTreeMap::new());
        note(units, "a.service", "3", Some("later")).unwrap();
        assert_eq!(unsettled(units, "4")[&path].as_deref(), Some("later"));
        // a file of somebody's stays there
        let theirs = units.join(DIRECTORY).join("mine");
        fs::write(&theirs, "x").unwrap();
        forget(units).unwrap();
        assert_eq!(unsettled(units, "4"), BTreeMap::new());
        assert!(theirs.exists());
        fs::remove_file(theirs).unwrap();
        forget(units).unwrap();
        assert!(!units.join(DIRECTORY).exists());
        // a link leads elsewhere
        std::os::unix::fs::symlink(tree.path().join("a.service.d"), units.join(DIRECTORY)).unwrap();
        assert!(note(units, "a.service", "3", None).is_err());
        forget(units).unwrap();
        assert!(units.join(DIRECTORY).is_symlink());
    }

    #[test]
    fn what_a_cut_left_of_a_note_is_written_again() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join(DIRECTORY)).unwrap();
        fs::write(tree.path().join(DIRECTORY).join("a.service"), "{\"boot\":").unwrap();
        assert_eq!(unsettled(tree.path(), "2"), BTreeMap::new());
        note(tree.path(), "a.service", "1", Some("x")).unwrap();
        assert_eq!(unsettled(tree.path(), "2").into_values().collect::<Vec<_>>(), [Some("x".to_owned())]);
    }
}
