//! What an experiment makes, written down before it is made, so that the next `ringfence lab` command can remove what a
//! killed one left: the group (with every process in it), mounts, swap files, directories. Loop devices need no line:
//! the kernel detaches them with their last user. Each line has a checksum, as those of generations have.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use apply::{Damage, JournalFile};
use serde::{Deserialize, Serialize};
use units::ProcStat;
use workloads::files;

use super::isolated_place::Place;
use crate::{Error, OwnDirectory};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Entry {
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
    Relocation(Relocation),
    /// Places of the machine are set, so that CPUs are isolated.
    Knobs(Vec<Place>),
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
pub(crate) struct Relocation {
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
    file: JournalFile,
}

impl Journal {
    /// Begins one in this directory.
    pub fn begin(directory: &Path) -> Result<Journal, Error> {
        let pid = std::process::id();
        let name = format!("{pid}.journal");
        let path = directory.join(&name);
        let own = OwnDirectory::create(directory)?;
        let owner = Entry::Owner { pid, started: started(pid).unwrap_or(0), boot: boot() };
        let begun = apply::begun(&owner).map_err(Error::file("write", &path))?;
        // it appears with its owner: a clean-up removes what nobody owns
        own.write(&name, &begun)?;
        let file = JournalFile::continued(own.update(&name)?, &begun).map_err(Error::file("write", &path))?;
        Ok(Journal { path, file })
    }

    /// Writes down what is made next.
    pub fn write(&mut self, made: &Entry) -> Result<(), Error> {
        let written = self.file.append(made).and_then(|()| self.file.sync());
        written.map_err(Error::file("write", &self.path))
    }
}

/// Where journals are.
pub(crate) fn directory() -> PathBuf {
    apply::state_directory().join("lab")
}

/// The largest journal that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// What a journal says.
pub(super) struct Written {
    pub made: Vec<Entry>,
    /// What it does not say any more.
    pub damage: Vec<Damage>,
}

impl Written {
    fn of(bytes: &[u8]) -> Written {
        let apply::Readable { lines, mut damage } = apply::readable(bytes);
        if damage.is_empty() && !matches!(lines.first(), Some((0, Entry::Owner { .. }))) {
            damage.push(Damage { line: 1, what: "it does not say whose the journal is".to_owned() });
        }
        Written { made: lines.into_iter().map(|(_, made)| made).collect(), damage }
    }

    /// Whose it is.
    pub fn owner(&self, path: &Path) -> Owner {
        if let Some(Entry::Owner { pid, started: then, boot: of }) = self.made.first() {
            let lives = *of == boot() && started(*pid) == Some(*then);
            return if lives { Owner::Lives } else { Owner::NoProcess };
        }
        // the file's name has its number, which another process may have by now
        let pid = path.file_stem().and_then(|name| name.to_str()?.parse::<u32>().ok());
        match pid {
            Some(pid) if started(pid).is_none() => Owner::NoProcess,
            pid => Owner::Unknown(pid),
        }
    }
}

/// The process whose journal it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It runs the experiment.
    Lives,
    /// It was killed.
    NoProcess,
    /// The line that names it is damaged; there is a process of the number that the file's name has.
    Unknown(Option<u32>),
}

pub(super) fn read(path: &Path) -> Result<Written, Error> {
    let bytes = files::open(path).and_then(|file| files::read_all(file, LARGEST));
    Ok(Written::of(&bytes.map_err(Error::file("read", path))?))
}

/// When a process began, in clock ticks since boot; `None` if there is none, or only a zombie.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = ProcStat::parse(&text)?;
    if matches!(stat.state()?, 'Z' | 'X') { None } else { stat.started() }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a run writes it: with a line of each kind.
    fn journal() -> Vec<u8> {
        let place = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(place.path()).unwrap();
        let group = "rf-lab-4711".to_owned();
        let narrow = vec![Narrow { thread: 815, started: 17, cpus: "0-1".to_owned() }];
        let mount = "/mounted/cpuset".to_owned();
        for made in [
            Entry::Group(group.clone()),
            Entry::Directory("/var/tmp/rf-lab-4711-1".into()),
            Entry::Swap("/var/tmp/rf-lab-4711-1/a.swap".into()),
            Entry::Mount("/var/tmp/rf-lab-4711-1/J*.mount".into()),
            Entry::Moved(Home {
                pid: 813,
                started: 16,
                group: format!("{group}/oltp"),
                places: BTreeMap::from([(mount.clone(), "/db".to_owned())]),
            }),
            Entry::Relocation(Relocation {
                group: format!("{group}/others"),
                mount,
                from: String::new(),
                narrow,
            }),
        ] {
            journal.write(&made).unwrap();
        }
        fs::read(&journal.path).unwrap()
    }

    /// Nothing is read that was not written, all that is read comes in its order, and what is missing is named: without
    /// that, a group is killed in which a process of the user's is, as the line that says so is gone.
    fn is_harmless(bytes: &[u8], whole: &Written) -> bool {
        let read = Written::of(bytes);
        let mut rest = whole.made.iter();
        let is_part = read.made.iter().all(|made| rest.any(|written| written == made));
        is_part && !read.damage.is_empty() && read.made.len() <= whole.made.len()
    }

    #[test]
    fn no_flipped_bit_and_no_cut_is_read_as_something_else() {
        let bytes = journal();
        let whole = Written::of(&bytes);
        assert_eq!((whole.made.len(), whole.damage.len()), (7, 0));
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for at in (0..used).chain((used..bytes.len()).step_by(997)) {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(is_harmless(&flipped, &whole), "byte {at}, bit {bit}");
                // one line, or two where it is the newline between them
                assert!(Written::of(&flipped).made.len() + 2 >= whole.made.len(), "byte {at}, bit {bit}");
            }
        }
        for end in (0..used).chain((used..bytes.len()).step_by(997)) {
            assert!(is_harmless(&bytes[..end], &whole), "cut at {end}");
        }
    }

    #[test]
    fn without_its_first_line_a_journal_is_of_whoever_has_its_number() {
        let bytes = journal();
        let mut damaged = bytes.clone();
        damaged[3] ^= 1;
        let (whole, damaged) = (Written::of(&bytes), Written::of(&damaged));
        let this = std::process::id();
        let own = PathBuf::from(format!("{this}.journal"));
        let nobodys = Path::new("4194305.journal"); // more than there can be
        assert_eq!(whole.owner(nobodys), Owner::Lives);
        assert_eq!(damaged.owner(&own), Owner::Unknown(Some(this)));
        assert_eq!(damaged.owner(Path::new("a.journal")), Owner::Unknown(None));
        assert_eq!(damaged.owner(nobodys), Owner::NoProcess);
        assert!(!Written::of(&vec![0; 64 << 10]).damage.is_empty(), "nothing but room");
    }
}
