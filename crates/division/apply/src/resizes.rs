//! What resizing did, beside the generations: a file of the last changes of elastic groups, a line each; who does it;
//! and the pause that a user requests. Nothing here is needed to bring a group back: that is its generation's.

use std::{
    fmt,
    fs::{DirBuilder, File, OpenOptions},
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::{Failure, State};

/// The file is renamed to [`OLD`] at this size.
const LARGEST: u64 = 1 << 20;
/// The two files of changes, and the marks.
const NEW: &str = "resizes.jsonl";
const OLD: &str = "resizes.1.jsonl";
const PAUSED: &str = "paused";
const RESUMED: &str = "resumed";
const CONTROLLER: &str = "controller";

/// One change of a group's setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resize {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The generation of the layout.
    pub generation: u32,
    /// The group.
    pub group: String,
    /// Which setting. Lines of versions that only knew CPUs have none.
    #[serde(default = "cpus")]
    pub setting: String,
    /// What it had: a list of CPUs, or what the setting shows.
    pub from: String,
    /// What it was to get.
    pub to: String,
    /// Why, in words.
    pub why: String,
    /// The same with its numbers.
    pub numbers: serde_json::Value,
    /// The kernel's refusal: the group has what it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

fn cpus() -> String {
    plan::CPUS.to_owned()
}

impl Resize {
    /// A change at this moment; of which generation, and whether the kernel refuses it, is not known yet.
    pub fn now(
        group: &str,
        setting: &str,
        (from, to): (String, String),
        (why, numbers): (String, serde_json::Value),
    ) -> Resize {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        let (group, setting) = (group.to_owned(), setting.to_owned());
        Resize { at, generation: 0, group, setting, from, to, why, numbers, refused: None }
    }

    /// The two lists of CPUs, if it is a change of these.
    pub fn cpus(&self) -> Option<(CpuSet, CpuSet)> {
        let is_cpus = self.setting == plan::CPUS;
        is_cpus.then(|| Some((self.from.parse().ok()?, self.to.parse().ok()?)))?
    }
}

impl fmt::Display for Resize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resize { group, setting, from, to, why, refused, .. } = self;
        match self.cpus() {
            Some((less, more)) => write!(f, "{group}: {} to {} CPUs ({to}): {why}", less.len(), more.len())?,
            None => write!(f, "{group}: {setting} {from} to {to}: {why}")?,
        }
        refused.as_ref().map_or(Ok(()), |refused| write!(f, "; refused: {refused}"))
    }
}

/// What the process that resizes says of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Controller {
    /// Its number.
    pub pid: u32,
    /// The generation of the layout whose groups it resizes; `None`: none in effect has any.
    pub generation: Option<u32>,
    /// Why it has given up, if it has: the groups have their static shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// What the latency sources of elastic groups say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Measured>,
}

/// An elastic group's latency, as its source reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The group.
    pub group: String,
    /// The source, without a command's arguments.
    pub source: String,
    /// What the 99th percentile is not to exceed, in seconds.
    pub target: f64,
    /// What it says.
    #[serde(flatten)]
    pub says: Says,
}

/// What a latency source says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Says {
    /// Nothing yet: the group's waiting decides.
    Begins,
    /// The latency decides.
    Measures {
        /// The 99th percentile in seconds.
        p99: f64,
    },
    /// It answers, and there are no requests: the group's waiting decides.
    Nothing,
    /// It no longer answers: the group's waiting decides.
    Stopped {
        /// Why, in words.
        why: String,
        /// Since when, in seconds since 1970.
        since: u64,
    },
}

impl Measured {
    /// Has its source stopped to answer?
    pub fn has_stopped(&self) -> bool {
        matches!(self.says, Says::Stopped { .. })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { source, target, says, .. } = self;
        let target = milliseconds(*target);
        match says {
            Says::Begins => write!(f, "latency: not known yet, at most {target} is wanted: {source}"),
            Says::Measures { p99 } => {
                write!(f, "latency: P99 {}, at most {target} is wanted: {source}", milliseconds(*p99))
            }
            Says::Nothing => {
                write!(f, "latency: no requests, its waiting decides; at most {target} is wanted: {source}")
            }
            Says::Stopped { why, .. } => {
                write!(f, "latency: not known, its waiting decides: {source}: {why}")
            }
        }
    }
}

/// `4.2 ms`, with three digits.
fn milliseconds(seconds: f64) -> String {
    let number = seconds * 1e3;
    let digits = if number >= 100.0 {
        0
    } else if number >= 10.0 {
        1
    } else {
        2
    };
    format!("{number:.digits$} ms")
}

/// The files of one state directory.
#[derive(Debug, Clone)]
pub struct Resizes {
    directory: PathBuf,
}

/// The right to resize: one process has it, and it is gone with it.
#[derive(Debug)]
pub struct Resizing {
    file: File,
}

impl Resizes {
    /// Those of a state directory. Nothing is made yet.
    pub fn of(state: &State) -> Resizes {
        Resizes { directory: state.directory().join("elastic") }
    }

    /// Becomes the process that resizes; `None`: another one does.
    ///
    /// # Errors
    /// The directory or file can't be made.
    pub fn begin(&self) -> Result<Option<Resizing>, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(&self.directory);
        made.map_err(|error| self.failed("make", &error))?;
        let path = self.directory.join(CONTROLLER);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path);
        let file = file.map_err(|error| self.failed("write to", &error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Resizing { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(self.failed("lock", &errno.into())),
        }
    }

    /// The process that resizes now.
    pub fn controller(&self) -> Option<Controller> {
        let path = self.directory.join(CONTROLLER);
        let file = File::open(&path).ok()?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)
            != Err(rustix::io::Errno::WOULDBLOCK)
        {
            return None;
        }
        serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
    }

    /// Adds a change. A full disk loses the line, not the change.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn add(&self, resize: &Resize) -> Result<(), Failure> {
        let path = self.directory.join(NEW);
        if path.metadata().is_ok_and(|about| about.len() >= LARGEST) {
            std::fs::rename(&path, self.directory.join(OLD))
                .map_err(|error| self.failed("rename in", &error))?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o644).open(path);
        let mut line = serde_json::to_vec(resize).unwrap_or_default();
        line.push(b'\n');
        file.and_then(|mut file| file.write_all(&line)).map_err(|error| self.failed("write to", &error))
    }

    /// The last changes, oldest first, at most this many. Lines that are damaged are left out.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn last(&self, most: usize) -> Result<Vec<Resize>, Failure> {
        let mut all = Vec::new();
        for name in [OLD, NEW] {
            let file = match File::open(self.directory.join(name)) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(self.failed("read", &error)),
            };
            let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice::<Resize>(&line).ok()));
        }
        let first = all.len().saturating_sub(most);
        Ok(all.split_off(first))
    }

    /// Did a user request a pause?
    pub fn is_paused(&self) -> bool {
        self.directory.join(PAUSED).exists()
    }

    /// When a user requested resizing last, after a pause or an end; another value each time.
    pub fn resumed(&self) -> Option<SystemTime> {
        self.directory.join(RESUMED).metadata().and_then(|about| about.modified()).ok()
    }

    /// Requests a pause.
    ///
    /// # Errors
    /// The mark can't be made.
    pub fn pause(&self) -> Result<(), Failure> {
        self.mark(PAUSED)
    }

    /// Requests resizing again, also where it has ended by itself.
    ///
    /// # Errors
    /// The mark can't be made or removed.
    pub fn resume(&self) -> Result<(), Failure> {
        self.mark(RESUMED)?;
        match std::fs::remove_file(self.directory.join(PAUSED)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("remove a mark in", &error)),
            _ => Ok(()),
        }
    }

    fn mark(&self, name: &str) -> Result<(), Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(&self.directory);
        let marked =
            made.and_then(|()| File::create(self.directory.join(name))?.set_modified(SystemTime::now()));
        marked.map_err(|error| self.failed("write to", &error))
    }

    fn failed(&self, what: &'static str, error: &std::io::Error) -> Failure {
        let reason = error.to_string();
        Failure::State { what, path: self.directory.clone(), reason, hint: None }
    }
}

impl Resizing {
    /// Says what it does now. A failure is no reason to stop.
    pub fn say(&mut self, controller: &Controller) {
        let Ok(mut text) = serde_json::to_vec(controller) else { return };
        text.push(b'\n');
        let written = self.file.write_all_at(&text, 0);
        let _ = written.and_then(|()| self.file.set_len(text.len() as u64));
    }
}
