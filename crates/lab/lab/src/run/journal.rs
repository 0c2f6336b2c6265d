//! What an experiment makes, written down before it is made, so that the next `ringfence lab` command can remove what a
//! killed one left: the group (with every process in it), mounts, swap files, directories. Loop devices need no line:
//! the kernel detaches them with their last user.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use workloads::files;

use crate::{Error, OwnDirectory};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Made {
    /// Whose the journal is: its number, and its start in clock ticks since boot, as numbers are used again.
    Owner { pid: u32, started: u64, boot: String },
    /// A group and all below it.
    Group(String),
    /// Something is mounted there.
    Mount(PathBuf),
    /// It is used as swap.
    Swap(PathBuf),
    /// A directory with everything in it.
    Directory(PathBuf),
    /// A process of the user's is in a group of the experiment.
    Moved(Home),
    /// The machine's other programs are in a group of their own.
    Away(Away),
}

/// Where a process was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Home {
    /// Its number.
    pub pid: u32,
    /// Its start in clock ticks since boot.
    pub started: u64,
    /// The experiment's group that it is moved into.
    pub group: String,
    /// Mount of a hierarchy → its group there.
    pub places: BTreeMap<String, String>,
}

/// Where the machine's other programs are, and where they came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// The group made for them.
    pub group: String,
    /// The hierarchy's mount.
    pub mount: String,
    /// The group that they were in, as a path below it.
    pub from: String,
    /// Threads that could run on a part of the CPUs only: a change of groups may make them forget it.
    pub narrow: Vec<Narrow>,
}

/// A thread's own choice of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Narrow {
    pub thread: u32,
    /// In clock ticks since boot.
    pub started: u64,
    pub cpus: String,
}

/// The journal of a running experiment.
pub(crate) struct Journal {
    pub(super) path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins one in this directory.
    pub fn begin(directory: &Path) -> Result<Journal, Error> {
        let pid = std::process::id();
        let path = directory.join(format!("{pid}.journal"));
        let own = OwnDirectory::create(directory)?;
        let name = format!("{pid}.journal");
        let owner = Made::Owner { pid, started: started(pid).unwrap_or(0), boot: boot() };
        // it appears with its owner: a clean-up removes what nobody owns
        own.write(&name, line(&owner)?.as_bytes())?;
        Ok(Journal { path, file: own.append(&name)? })
    }

    /// Writes down what is made next.
    pub fn write(&mut self, made: &Made) -> Result<(), Error> {
        let written = self.file.write_all(line(made)?.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(Error::file("write", &self.path))
    }
}

fn line(made: &Made) -> Result<String, Error> {
    let line = serde_json::to_string(made);
    let line = line.map_err(|source| workloads::Error::Report { name: "journal".to_owned(), source })?;
    Ok(line + "\n")
}

/// Where journals are.
pub(crate) fn directory() -> PathBuf {
    apply::state_directory().join("lab")
}

/// The largest journal that is read, in bytes.
const LARGEST: u64 = 16 << 20;

pub(super) fn read(path: &Path) -> Result<Vec<Made>, Error> {
    let bytes = files::open(path).and_then(|file| files::read_all(file, LARGEST));
    let bytes = bytes.map_err(Error::file("read", path))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut all = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        match serde_json::from_str(line) {
            Ok(made) => all.push(made),
            // a last line that was cut off says of something that was not made yet
            Err(_) if !line.ends_with('\n') => {}
            // what it names may be a mount in a directory that another line names
            Err(_) => {
                return Err(Error::Cannot {
                    text: format!(
                        "{}:{}: damaged line; nothing that it lists is removed",
                        path.display(),
                        index + 1
                    ),
                    hint: Some("remove by hand what it lists, then the file".to_owned()),
                });
            }
        }
    }
    Ok(all)
}

pub(super) fn lives(owner: &Made) -> bool {
    match owner {
        Made::Owner { pid, started: then, boot: of } => *of == boot() && started(*pid) == Some(*then),
        _ => false,
    }
}

/// When a process began, in clock ticks since boot; `None` if there is none, or only a zombie.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
