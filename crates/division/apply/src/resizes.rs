//! What resizing did, beside the generations: a file of the last changes of elastic groups, a line each; who does it;
//! and the pause that a user requests. Nothing here is needed to bring a group back: that is its generation's.

use std::{
    fmt,
    fs::{DirBuilder, File, Permissions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use layout::{BURST, QUOTA};
use rustix::{
    fs::FlockOperation,
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::{
    Again, Failure, LineLog, Lock, State,
    line_log::{make, readable},
    state::{failed, private},
};

/// More than the controller says of itself.
const LARGEST: u64 = 1 << 20;
/// The files of changes, and the marks: everybody may read them.
const CHANGES: &str = "resizes";
const PAUSED: &str = "paused";
const RESUMED: &str = "resumed";
const CONTROLLER: &str = "controller";
/// The directory that only the owner enters, with the file whose lock is the right to resize: who can open a file can lock it.
const PRIVATE: &str = "resizing";
const LOCK: &str = "lock";

/// The directory of what only the process that resizes writes.
pub(crate) fn resizing(state: &State) -> PathBuf {
    state.directory().join(PRIVATE)
}

/// Makes a directory that nobody else enters.
///
/// # Errors
/// [`Failure::State`]: it can't be made, or is another user's.
pub(crate) fn make_private(directory: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let about = made.and_then(|()| std::fs::symlink_metadata(directory));
    let about = about.map_err(|error| failed("make", directory, &error))?;
    if !about.is_dir() || about.uid() != rustix::process::geteuid().as_raw() {
        let reason = format!("owner {}, and no directory of this process's user", about.uid());
        return Err(Failure::State { what: "trust", path: directory.to_owned(), reason, hint: None });
    }
    if about.mode() & 0o077 != 0 {
        let closed = std::fs::set_permissions(directory, Permissions::from_mode(0o700));
        closed.map_err(|error| failed("close to others", directory, &error))?;
    }
    Ok(())
}

/// Writes a file of the private directory, wholly or not at all.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn write_whole(lock: &Lock, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    make_private(&resizing(lock.state()))?;
    let new = path.with_extension("new");
    let written = private().create(true).truncate(true).open(&new).and_then(|mut file: File| {
        file.write_all(bytes)?;
        file.sync_data()?;
        std::fs::rename(&new, path)
    });
    written.map_err(|error| failed("write", path, &error))
}

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

    /// What it changed, and why.
    pub fn change(&self) -> String {
        let Resize { setting, from, to, why, refused, .. } = self;
        let what = match self.cpus() {
            Some((less, more)) => format!("{} to {} CPUs ({to})", less.len(), more.len()),
            None => format!("{setting} {from} to {to}"),
        };
        let refused = refused.as_ref().map(|refused| format!("; refused: {refused}")).unwrap_or_default();
        format!("{what}: {why}{refused}")
    }
}

impl fmt::Display for Resize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group, self.change())
    }
}

/// What the process that resizes says of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Controller {
    /// Its number.
    pub pid: u32,
    /// The generation of the layout whose groups it resizes; `None`: none in effect has any.
    pub generation: Option<u32>,
    /// Why it can't resize at the moment; it tries again every second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Of which settings resizing has ended by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Ended>,
    /// What goes on beside it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goes_on: Vec<String>,
    /// Groups that are left as they are until the next apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
    /// What the latency sources of elastic groups say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Measured>,
}

/// Resizing that has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Of what.
    pub of: Subject,
    /// Why, and what the groups have since then, in words.
    pub why: String,
}

/// What one rule resizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The CPUs of these groups.
    Cpus(Vec<String>),
    /// The quota of this group.
    Quota(String),
}

impl Subject {
    /// Is a setting of a group resized by it?
    pub fn is(&self, group: &str, setting: &str) -> bool {
        match self {
            Subject::Cpus(groups) => setting == plan::CPUS && groups.iter().any(|one| one == group),
            Subject::Quota(of) => matches!(setting, QUOTA | BURST) && of == group,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Cpus(groups) => write!(f, "the CPUs of {}", groups.join(", ")),
            Subject::Quota(group) => write!(f, "the quota of {group}"),
        }
    }
}

/// A group of the layout that nobody resizes until the next apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Its name.
    pub group: String,
    /// Which setting of it.
    pub setting: String,
    /// Why, in words.
    pub why: String,
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group, self.why)
    }
}

impl Controller {
    /// Which resizing has ended, why, what goes on, and the command that starts it again.
    pub fn end(&self, again: &Again) -> Option<String> {
        let ended = self.ended.iter().map(|Ended { of, why }| format!("resizing of {of} has ended: {why}"));
        let ended: Vec<String> = ended.collect();
        let goes_on = match self.goes_on.as_slice() {
            [] => String::new(),
            on => format!("; resizing of {} goes on", on.join(" and ")),
        };
        let resume = again.resume();
        (!ended.is_empty()).then(|| format!("{}{goes_on}: {resume}", ended.join("; ")))
    }

    /// Groups that are not resized, why, and the command that changes it.
    fn left_alone(&self, again: &Again) -> Option<String> {
        let mut groups: Vec<String> = self.left_alone.iter().map(LeftAlone::to_string).collect();
        groups.dedup(); // one that is gone has none of its settings
        let groups = groups.join("; ");
        (!groups.is_empty()).then(|| format!("not resized: {groups}: {}", again.apply()))
    }
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

/// The same in its file: the start of the process distinguishes it from a later one with its number.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// In clock ticks since boot.
    started: u64,
    #[serde(flatten)]
    controller: Controller,
}

/// The files of one state directory.
#[derive(Debug, Clone)]
pub struct Resizes {
    directory: PathBuf,
    changes: LineLog,
    private: PathBuf,
}

/// The right to resize: one process has it, and it is gone with it.
#[derive(Debug)]
pub struct Resizing {
    _lock: File,
    directory: PathBuf,
}

impl Resizes {
    /// Those of a state directory. Nothing is made yet.
    pub fn of(state: &State) -> Resizes {
        let directory = state.directory().join("elastic");
        let changes = LineLog::new(directory.clone(), CHANGES);
        Resizes { directory, changes, private: resizing(state) }
    }

    /// Becomes the process that resizes; `None`: another one does.
    ///
    /// # Errors
    /// The directories or the file can't be made.
    pub fn begin(&self) -> Result<Option<Resizing>, Failure> {
        make(&self.directory).map_err(|error| self.failed("make", &error))?;
        make_private(&self.private)?;
        let path = self.private.join(LOCK);
        let file = private().create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failed("write to", &path, &error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Resizing { _lock: file, directory: self.directory.clone() })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(failed("lock", &path, &errno.into())),
        }
    }

    /// The process that resizes now, as it says itself.
    pub fn controller(&self) -> Option<Controller> {
        let mut text = String::new();
        let file = self.changes.open(CONTROLLER).ok()?;
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        let Saved { started: then, controller } = serde_json::from_str(&text).ok()?;
        let is_it = match kernel::started(controller.pid) {
            Some(now) => now == then,
            // /proc may be closed to other users
            None => is_there(controller.pid),
        };
        is_it.then_some(controller)
    }

    /// Why nobody resizes the groups, or not as their layout says, with the command that changes it. `time`: a moment, in seconds
    /// since 1970, as it is shown.
    pub fn trouble(&self, again: &Again, time: impl Fn(u64) -> String) -> Option<String> {
        if self.is_paused() {
            return Some(format!("resizing is paused: {}", again.resume()));
        }
        let Some(controller) = self.controller() else {
            return Some(format!("nobody resizes elastic groups: {}", again.start()));
        };
        let stopped = controller.stopped.as_ref();
        let stopped = stopped.map(|why| format!("nobody is resized, and it is tried every second: {why}"));
        let troubles: Vec<String> =
            [stopped, controller.end(again), controller.left_alone(again)].into_iter().flatten().collect();
        if !troubles.is_empty() {
            return Some(troubles.join("; "));
        }
        controller.latencies.iter().find_map(|one| {
            let Says::Stopped { why, since } = &one.says else { return None };
            let (group, source, since) = (&one.group, &one.source, time(*since));
            Some(format!(
                "the latency of {group} is not known since {since}, and its waiting decides: {source}: {why}"
            ))
        })
    }

    /// Adds a change. A full disk loses the line, not the change.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn add(&self, resize: &Resize) -> Result<(), Failure> {
        self.changes.add(resize)
    }

    /// The last changes, oldest first, at most this many. Lines that are damaged are left out.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn last(&self, most: usize) -> Result<Vec<Resize>, Failure> {
        let mut all = self.changes.all()?;
        let first = all.len().saturating_sub(most);
        Ok(all.split_off(first))
    }

    /// Did a user request a pause?
    pub fn is_paused(&self) -> bool {
        self.directory.join(PAUSED).symlink_metadata().is_ok()
    }

    /// When a user requested resizing last, after a pause or an end; another value each time.
    pub fn resumed(&self) -> Option<SystemTime> {
        self.directory.join(RESUMED).symlink_metadata().and_then(|about| about.modified()).ok()
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
        self.begin_again()?;
        match std::fs::remove_file(self.directory.join(PAUSED)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("remove a mark in", &error)),
            _ => Ok(()),
        }
    }

    /// Has the process that resizes look at the groups again.
    ///
    /// # Errors
    /// The mark can't be made.
    pub(crate) fn begin_again(&self) -> Result<(), Failure> {
        self.mark(RESUMED)
    }

    fn mark(&self, name: &str) -> Result<(), Failure> {
        let path = self.directory.join(name);
        let open = || readable().write(true).create(true).truncate(true).open(path);
        let marked = make(&self.directory).and_then(|()| open()?.set_modified(SystemTime::now()));
        marked.map_err(|error| self.failed("write to", &error))
    }

    fn failed(&self, what: &'static str, error: &std::io::Error) -> Failure {
        failed(what, &self.directory, error)
    }
}

fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

impl Drop for Resizing {
    /// Nobody resizes any more.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.directory.join(CONTROLLER));
    }
}

impl Resizing {
    /// Says what it does now. A failure is no reason to stop.
    pub fn say(&mut self, controller: &Controller) {
        let _ = self.replace(controller);
    }

    /// A reader finds the old text or the new one.
    fn replace(&self, controller: &Controller) -> std::io::Result<()> {
        let started = kernel::started(controller.pid).unwrap_or_default();
        let mut text = serde_json::to_vec(&Saved { started, controller: controller.clone() })?;
        text.push(b'\n');
        let new = self.directory.join(format!("{CONTROLLER}.new"));
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        readable().write(true).create_new(true).open(&new)?.write_all(&text)?;
        std::fs::rename(new, self.directory.join(CONTROLLER))
    }
}
