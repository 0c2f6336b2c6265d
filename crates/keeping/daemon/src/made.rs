//! Which groups this daemon made on demand, in a file of the state directory that survives a restart: a line for each
//! directory, with a checksum and the identity that a later one of the same name lacks. Nothing else is swept.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use classify::NewDirectory;
use kernel::{GroupName, Host};
use rustix::fs::OFlags;
use tracing::{info, warn};

/// The file in the state directory.
const FILE: &str = "made-groups";
/// What the kernel calls this start of the machine: groups do not survive it.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The groups that were made, and where that is written down.
#[derive(Debug, Default)]
pub(crate) struct MadeGroups {
    /// By directory.
    made: BTreeMap<PathBuf, Line>,
    /// `None`: only remembered until the end of this process.
    path: Option<PathBuf>,
    boot: String,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    group: String,
    directory: PathBuf,
    /// The directory's number on cgroupfs: one that was removed and made by somebody else has another.
    inode: u64,
    boot: String,
}

impl MadeGroups {
    /// Reads what an earlier daemon made. A damaged line is reported, and its group is nobody's to remove.
    pub fn read(state: &Path) -> MadeGroups {
        let boot = fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned();
        let mut groups = MadeGroups { made: BTreeMap::new(), path: None, boot };
        let path = state.join(FILE);
        let only_here = "groups made on demand are not removed after a restart";
        match trusted(state).and_then(|()| text(&path)) {
            Ok(text) => groups.take(&path, &text),
            Err(error) => {
                warn!("{}: {error}; {only_here}", path.display());
                return groups;
            }
        }
        groups.path = Some(path.clone());
        if let Err(error) = groups.rewrite() {
            warn!("{}: {error}; {only_here}", path.display());
        }
        groups
    }

    fn take(&mut self, path: &Path, text: &[u8]) {
        let mut damaged = false;
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            match parsed(line) {
                Some(line) if line.boot == self.boot && is_there(&line) => {
                    self.made.insert(line.directory.clone(), line);
                }
                Some(_) => {}
                None => {
                    damaged = true;
                    let at = format!("{}:{}", path.display(), number + 1);
                    warn!("{at}: damaged line; the group that it names is not removed when it is empty");
                }
            }
        }
        if damaged {
            let aside = path.with_extension("damaged");
            match fs::rename(path, &aside) {
                Ok(()) => warn!("the damaged file is now {}", aside.display()),
                Err(error) => warn!("cannot rename the damaged file to {}: {error}", aside.display()),
            }
        }
    }

    /// Is there nothing to remove?
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Notes what was made just now.
    pub fn add(&mut self, made: Vec<NewDirectory>) {
        for NewDirectory { group, directory } in made {
            let Ok(about) = fs::metadata(&directory) else { continue }; // removed again already
            let (group, inode, boot) = (group.to_string(), about.ino(), self.boot.clone());
            let line = Line { group, directory: directory.clone(), inode, boot };
            let written = self.path.as_deref().map_or(Ok(()), |path| append(path, &line));
            if let Err(error) = written {
                warn!("{}: not noted as made here: {error}; it stays after a restart", directory.display());
            }
            self.made.insert(directory, line);
        }
    }

    /// Removes groups that are empty, and returns how many directories that were.
    pub fn sweep(&mut self, host: &Host) -> usize {
        let before = self.made.len();
        // made again by somebody else, or gone
        self.made.retain(|_, line| is_there(line));
        let of_line = |line: &Line| {
            Some(NewDirectory { group: GroupName::new(&line.group).ok()?, directory: line.directory.clone() })
        };
        let made: Vec<NewDirectory> = self.made.values().filter_map(of_line).collect();
        let swept = classify::sweep(host, &made);
        for NewDirectory { group, directory } in &swept {
            self.made.remove(directory);
            info!(group = %group, "removed empty group {}, made on demand", directory.display());
        }
        if self.made.len() < before
            && let Err(error) = self.rewrite()
        {
            warn!("the record of groups made on demand cannot be written: {error}");
        }
        swept.len()
    }

    /// Writes all of it, whole or not at all.
    fn rewrite(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension("new");
        let _ = fs::remove_file(&beside); // of a daemon that was killed
        let mut file = opened(&beside)?;
        for line in self.made.values() {
            file.write_all(&written(line)?)?;
        }
        fs::rename(&beside, path)
    }
}

/// Is it the directory that was made, and no later one of its name?
fn is_there(line: &Line) -> bool {
    fs::metadata(&line.directory).is_ok_and(|about| about.ino() == line.inode)
}

/// Others must not name groups that root removes.
fn trusted(state: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(state)?;
    let about = fs::metadata(state)?;
    if about.mode() & 0o022 != 0 || about.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("others can write to the directory"));
    }
    Ok(())
}

fn text(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn append(path: &Path, line: &Line) -> io::Result<()> {
    opened(path)?.write_all(&written(line)?)
}

fn opened(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)
}

/// The checksum, a blank and the line as JSON.
fn written(line: &Line) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(line)?;
    Ok(format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())).into_bytes())
}

fn parsed(line: &[u8]) -> Option<Line> {
    let (sum, text) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    // a sum has one way to be written
    (sum == format!("{:08x}", crc32fast::hash(text.as_bytes()))).then_some(())?;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(directory: &Path) -> Line {
        let inode = fs::metadata(directory).unwrap().ino();
        let boot = fs::read_to_string(BOOT).unwrap().trim().to_owned();
        Line { group: "users/zoe".to_owned(), directory: directory.to_owned(), inode, boot }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_names_another_group() {
        let directory = tempfile::tempdir().unwrap();
        let line = line(directory.path());
        let text = written(&line).unwrap();
        let text = text.strip_suffix(b"\n").unwrap();
        assert_eq!(parsed(text), Some(line.clone()));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parsed(&flipped), None, "bit {bit}");
        }
        for cut in 0..text.len() {
            assert_eq!(parsed(&text[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_line_is_left_out_and_the_others_stay() {
        let state = tempfile::tempdir().unwrap();
        let (one, other) = (state.path().join("one"), state.path().join("other"));
        [&one, &other].iter().for_each(|directory| fs::create_dir(directory).unwrap());
        let mut text = written(&line(&one)).unwrap();
        text.extend_from_slice(b"00000000 {}\n");
        text.extend(written(&line(&other)).unwrap());
        // of an earlier boot, and of a directory that was made again since
        text.extend(written(&Line { boot: "another".to_owned(), ..line(&one) }).unwrap());
        text.extend(written(&Line { inode: 1, directory: state.path().to_owned(), ..line(&one) }).unwrap());
        fs::write(state.path().join(FILE), &text).unwrap();
        let read = MadeGroups::read(state.path());
        assert_eq!(read.made.keys().collect::<Vec<_>>(), [&one, &other]);
        assert!(state.path().join("made-groups.damaged").exists());
        assert_eq!(MadeGroups::read(state.path()).made, read.made);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join(FILE), written(&line(state.path())).unwrap()).unwrap();
        assert!(!MadeGroups::read(state.path()).is_empty());
        fs::set_permissions(state.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(MadeGroups::read(state.path()).is_empty());
    }
}
