//! What is kept of one generation: who changed what when, what every file held before, how far it came and how it
//! ended. One JSON value a line: a head, then the steps (both written before anything is changed), then what
//! happened. The same file is the journal while it is under way. Holds no logic of doing or undoing.

use std::path::PathBuf;

use kernel::{Hierarchy, Host};
use plan::{Owned, Ownership, Place};
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::stayed::Stayed;

/// The format that is written; older ones are read.
pub const FORMAT: u32 = 1;

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct By {
    /// Effective user.
    pub uid: u32,
    /// The user who logged in, by name or number, where that is known.
    pub login: Option<String>,
    /// The process.
    pub pid: u32,
    /// Its command line, arguments joined by blanks.
    pub command: String,
}

/// What kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// A plan was carried out.
    Apply,
    /// The state after an earlier generation was brought back.
    Undo {
        /// That generation; 0 is before the first.
        to: u32,
    },
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`FORMAT`].
    pub format: u32,
    /// Its number, from 1.
    pub generation: u32,
    /// Apply or undo.
    #[serde(flatten)]
    pub kind: Kind,
    /// Who.
    pub by: By,
    /// When, in seconds since 1970.
    pub at: u64,
    /// In words: which layout.
    pub what: String,
    /// The boot it was done in: nothing of it outlives that.
    pub boot: String,
    /// The hierarchies that the steps' places count.
    pub hierarchies: Vec<Spot>,
    /// Seconds within which it has to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within: Option<u64>,
    /// The applied generations that were in effect before, oldest first.
    pub in_effect_before: Vec<u32>,
    /// And once it has succeeded.
    pub in_effect: Vec<u32>,
    /// What earlier undos had to leave, before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stayed_before: Vec<Stayed>,
    /// And once it has succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stayed: Vec<Stayed>,
    /// How many steps follow.
    pub steps: usize,
}

/// A hierarchy as it is found again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// [`Hierarchy::label`].
    pub label: String,
    /// Where it is mounted.
    pub mount: PathBuf,
}

/// A step with what was there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The group for whose sake, as the user writes it.
    pub group: String,
    /// What is done.
    #[serde(flatten)]
    pub act: Act,
    /// Why.
    pub why: String,
    /// What it changes.
    #[serde(default, skip_serializing_if = "Before::is_nothing")]
    pub before: Before,
}

/// What is done: a plan's actions, and what undoes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[allow(missing_docs)] // as the plan's actions of the same names
pub enum Act {
    Mount {
        controllers: Vec<String>,
        name: Option<String>,
        path: PathBuf,
    },
    Unmount {
        controllers: Vec<String>,
        name: Option<String>,
        path: PathBuf,
    },
    CreateGroup {
        place: Place,
    },
    /// Removes one group without tasks and without groups below.
    RemoveGroup {
        place: Place,
    },
    EnableControllers {
        place: Place,
        names: Vec<String>,
    },
    DisableControllers {
        place: Place,
        names: Vec<String>,
    },
    Write {
        place: Place,
        file: String,
        text: String,
    },
    SetDevices {
        place: Place,
        setting: String,
        rule: String,
    },
    /// Gives back the device rules of a v2 group; without rules takes its own off.
    RestoreDevices {
        place: Place,
        rules: Option<String>,
    },
    SetOwnership {
        place: Place,
        access: Ownership,
    },
    RestoreOwners {
        place: Place,
        owners: Vec<(Option<String>, Owned)>,
    },
    MoveTasksAway {
        place: Place,
        cpus: CpuSet,
        to: CpuSet,
    },
    RestoreAffinities {
        place: Place,
        threads: Vec<Affinity>,
    },
}

/// The CPUs that a thread had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affinity {
    /// Its number.
    pub thread: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// The CPUs.
    pub cpus: CpuSet,
}

/// What was there before a step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Before {
    /// Nothing that would have to be known.
    #[default]
    Nothing,
    /// The group is made by an earlier step of the same generation, and goes with it.
    New,
    /// The file was not there yet: an earlier step enables its controller. What it holds then is marked.
    Absent,
    /// Contents of files, without the newline at their end: the one written and those that change with it.
    Files(Vec<(String, String)>),
    /// Owners and modes; `None` is the directory.
    Owners(Vec<(Option<String>, Owned)>),
    /// Controllers that were off, and the groups that were there, by name.
    Controllers {
        /// The kernel's names.
        off: Vec<String>,
        /// Direct children.
        children: Vec<String>,
    },
    /// A v2 group's own device rules.
    Devices(Option<String>),
    /// Threads' CPUs.
    Affinities(Vec<Affinity>),
    /// A whole group.
    Group {
        /// Contents of its settings' files.
        files: Vec<(String, String)>,
        /// Owners and modes.
        owners: Vec<(Option<String>, Owned)>,
        /// v2: its own device rules.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        devices: Option<String>,
        /// v2: the controllers that it handed down.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        controllers: Vec<String>,
    },
}

impl Before {
    fn is_nothing(&self) -> bool {
        *self == Before::Nothing
    }
}

/// How a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Everything was done.
    Done,
    /// It failed or was broken off, and all is as before.
    RolledBack,
    /// It failed or was broken off, and not all could be put back.
    Partly,
    /// It was broken off before anything was changed.
    NotBegun,
    /// It was broken off by the machine's going down, and nothing of it is left.
    LostAtBoot,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Result {
    /// How.
    pub ending: Ending,
    /// When, in seconds since 1970.
    pub at: u64,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The step that failed, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// What could not be put back, or was left alone, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// A line after the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Mark {
    /// `n`: step n begins. `-n`: step n-1 is being taken back.
    Step(i64),
    /// A thread's CPUs before a step changed them.
    Thread {
        /// The step.
        step: usize,
        /// The thread.
        affinity: Affinity,
    },
    /// What a file held after a step, where that is not the text written.
    Held {
        /// The step.
        step: usize,
        /// The content.
        held: String,
    },
    /// What a file that was not there at first held before a step.
    Was {
        /// The step.
        step: usize,
        /// The content.
        was: String,
    },
    /// The end.
    End {
        /// How.
        result: Result,
    },
}

/// A generation as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who, when, what.
    pub head: Head,
    /// The steps that were meant.
    pub entries: Vec<Entry>,
    /// How it ended; `None` while it is under way, or broken off.
    pub result: Option<Result>,
    /// Threads whose CPUs were changed, with the step.
    pub(crate) affinities: Vec<(usize, Affinity)>,
    /// What files held after steps, where that is not the text written.
    pub(crate) held: Vec<(usize, String)>,
    /// The last step that was begun.
    pub(crate) begun: Option<usize>,
    /// The step that was being taken back.
    pub(crate) back: Option<usize>,
}

/// A generation without its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Who, when, what.
    pub head: Head,
    /// How it ended; `None` if that is not known.
    pub result: Option<Result>,
}

impl Summary {
    /// From a record's first line and its last; `None` if the first is no head.
    pub(crate) fn read(first: &str, last: &str) -> Option<Summary> {
        let head = serde_json::from_str(first).ok()?;
        let result = match serde_json::from_str(last) {
            Ok(Mark::End { result }) => Some(result),
            _ => None,
        };
        Some(Summary { head, result })
    }

    /// Was everything done?
    pub fn is_done(&self) -> bool {
        is_done(self.result.as_ref())
    }

    /// The applied generations in effect after it.
    pub fn in_effect(&self) -> &[u32] {
        self.head.in_effect_after(self.result.as_ref())
    }

    /// What undos up to it had to leave.
    pub fn stayed(&self) -> &[Stayed] {
        if self.is_done() { &self.head.stayed } else { &self.head.stayed_before }
    }
}

fn is_done(result: Option<&Result>) -> bool {
    result.is_some_and(|result| result.ending == Ending::Done)
}

impl Head {
    fn in_effect_after(&self, result: Option<&Result>) -> &[u32] {
        if is_done(result) { &self.in_effect } else { &self.in_effect_before }
    }
}

impl Record {
    /// Reads a generation's text; a last line that was cut short is left out. `None` if not even the head is whole.
    pub(crate) fn read(text: &str) -> Option<Record> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines();
        let head: Head = serde_json::from_str(lines.next()?).ok()?;
        let entries = lines.by_ref().take(head.steps).map_while(|line| serde_json::from_str(line).ok());
        let entries: Vec<Entry> = entries.collect();
        let (affinities, held) = Default::default();
        let mut record = Record { head, entries, result: None, affinities, held, begun: None, back: None };
        for mark in lines.map_while(|line| serde_json::from_str(line).ok()) {
            record.note(mark);
        }
        Some(record)
    }

    fn note(&mut self, mark: Mark) {
        match mark {
            Mark::Step(step) => match usize::try_from(step) {
                Ok(step) => self.begun = Some(step),
                Err(_) => self.back = usize::try_from(-(step + 1)).ok(),
            },
            Mark::Thread { step, affinity } => self.affinities.push((step, affinity)),
            Mark::Held { step, held } => self.held.push((step, held)),
            Mark::Was { step, was } => {
                if let Some(entry) = self.entries.get_mut(step) {
                    entry.was(was);
                }
            }
            Mark::End { result } => self.result = Some(result),
        }
    }

    /// Were all steps written down before the first was done?
    pub(crate) fn is_whole(&self) -> bool {
        self.entries.len() == self.head.steps
    }

    /// Was everything done?
    pub fn is_done(&self) -> bool {
        is_done(self.result.as_ref())
    }

    /// The applied generations in effect after it.
    pub fn in_effect(&self) -> &[u32] {
        self.head.in_effect_after(self.result.as_ref())
    }
}

impl Spot {
    /// The hierarchies of a host, to be found again.
    pub(crate) fn of(hierarchies: &[Hierarchy]) -> Vec<Spot> {
        hierarchies.iter().map(|at| Spot { label: at.label(), mount: at.mount.clone() }).collect()
    }

    /// The hierarchy that this one is now.
    pub(crate) fn find(&self, host: &Host) -> Option<Hierarchy> {
        let like = |at: &&Hierarchy| at.label() == self.label;
        let here = host.hierarchies().iter().filter(like).find(|at| at.mount == self.mount);
        here.or_else(|| host.hierarchies().iter().find(like)).cloned()
    }
}

impl Entry {
    /// Its file is there now, and holds this.
    pub(crate) fn was(&mut self, content: String) {
        if let Act::Write { file, .. } = &self.act {
            self.before = Before::Files(vec![(file.clone(), content)]);
        }
    }
}

impl Act {
    /// The directory that it changes; none for a mount.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Act::Mount { .. } | Act::Unmount { .. } => None,
            Act::CreateGroup { place }
            | Act::RemoveGroup { place }
            | Act::EnableControllers { place, .. }
            | Act::DisableControllers { place, .. }
            | Act::Write { place, .. }
            | Act::SetDevices { place, .. }
            | Act::RestoreDevices { place, .. }
            | Act::SetOwnership { place, .. }
            | Act::RestoreOwners { place, .. }
            | Act::MoveTasksAway { place, .. }
            | Act::RestoreAffinities { place, .. } => Some(place),
        }
    }

    /// Moves its place to another position in the list of hierarchies.
    pub(crate) fn at_hierarchy(mut self, position: usize) -> Act {
        match &mut self {
            Act::Mount { .. } | Act::Unmount { .. } => {}
            Act::CreateGroup { place }
            | Act::RemoveGroup { place }
            | Act::EnableControllers { place, .. }
            | Act::DisableControllers { place, .. }
            | Act::Write { place, .. }
            | Act::SetDevices { place, .. }
            | Act::RestoreDevices { place, .. }
            | Act::SetOwnership { place, .. }
            | Act::RestoreOwners { place, .. }
            | Act::MoveTasksAway { place, .. }
            | Act::RestoreAffinities { place, .. } => place.hierarchy = position,
        }
        self
    }
}
