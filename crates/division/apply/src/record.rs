//! The record of one generation: who changed what when, what every file contained before, how far it came and how it
//! ended. One JSON value a line, each with a checksum: a head, then the steps (both written before anything is
//! changed), then what happened. The same file is the journal while it is under way. No logic of doing or undoing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use kernel::{Hierarchy, Host};
pub use plan::Affinity;
use plan::{Action, Dropped, Outsider, Place, Upkeep};
use serde::{Deserialize, Serialize};

use crate::{
    entry::Entry,
    lines::{self, Damage},
    remainder::Remainder,
    spot::Spot,
};

/// The format that is written: 3 has what a layout decides beyond its steps, 4 names the kind of a step as `plan --json`
/// does, 5 has runs of generations. Older ones are read.
pub const FORMAT: u32 = 5;
/// The first format with a checksum for each line.
pub const CHECKSUMS: u32 = 2;

/// Who requested a change.
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

impl By {
    /// The login name, else the user.
    pub fn person(&self) -> String {
        let number = || if self.uid == 0 { "root".to_owned() } else { self.uid.to_string() };
        self.login.clone().unwrap_or_else(number)
    }
}

/// What kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// A plan was carried out.
    Apply,
    /// Single settings were written, by a command that names them: no layout decides about them.
    Set,
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
    /// The boot it was done in: only drop-in files of units outlive that.
    pub boot: String,
    /// The hierarchies that the steps' places count.
    pub hierarchies: Vec<Spot>,
    /// Seconds within which it has to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within: Option<u64>,
    /// A whole layout was applied: the next one takes back what it does not repeat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub layout: bool,
    /// The layout's file, if it has rules for processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesFile>,
    /// The layout's file or directory, absolute. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What the layout asks for after its steps.
    #[serde(flatten)]
    pub upkeep: Upkeep,
    /// What earlier layouts decided about and this one does not.
    #[serde(default, skip_serializing_if = "Dropped::is_empty")]
    pub dropped: Dropped,
    /// The applied generations that were in effect before, oldest first.
    #[serde(with = "crate::runs")]
    pub in_effect_before: Vec<u32>,
    /// And once it has succeeded.
    #[serde(with = "crate::runs")]
    pub in_effect: Vec<u32>,
    /// How many commands that set single values no undo takes back any more, as there were too many after them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub settled: u32,
    /// What earlier undos had to leave, before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stayed_before: Vec<Remainder>,
    /// And once it has succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stayed: Vec<Remainder>,
    /// It is several layouts in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Joins>,
    /// How many steps follow.
    pub steps: usize,
    /// And behind them, how many lines of what the layout decides and was so already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub decided: usize,
}

/// Generations that one record is in the place of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joins {
    /// Their numbers, ascending, of which the last is the record's.
    #[serde(with = "crate::runs")]
    pub generations: Vec<u32>,
    /// How many layouts that were, with those that were joined before.
    pub count: u32,
}

impl Head {
    /// `undo to 3: not confirmed within 60 s`.
    pub fn words(&self) -> String {
        match self.kind {
            Kind::Apply | Kind::Set => {
                let what = units::printable(&self.what);
                match self.joins.as_ref().map_or(0, |joins| joins.count) {
                    0 | 1 => what.into_owned(),
                    count => {
                        format!("{what}, with {} before it", units::counted(count as usize - 1, "layout"))
                    }
                }
            }
            Kind::Undo { to } if self.what == "undo" => format!("undo to generation {to}"),
            Kind::Undo { to } => format!("undo to generation {to}: {}", units::printable(&self.what)),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_none(count: &u32) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A layout with rules, as it was when it was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesFile {
    /// Absolute.
    pub path: PathBuf,
    /// CRC-32 of all its text, included files among it.
    pub checksum: u32,
}

impl RulesFile {
    /// `texts`: what the layout consists of, in the order in which it was read.
    pub fn new<'t>(path: &Path, texts: impl IntoIterator<Item = &'t str>) -> RulesFile {
        let mut sum = crc32fast::Hasher::new();
        texts.into_iter().for_each(|text| sum.update(text.as_bytes()));
        RulesFile { path: absolute(path), checksum: sum.finalize() }
    }
}

/// A layout's path as records have it.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// How a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Everything was done.
    Done,
    /// It failed or was interrupted, and all is as before.
    RolledBack,
    /// It failed or was interrupted, and not all could be rolled back.
    Partly,
    /// It was interrupted before anything was changed.
    NotBegun,
    /// The machine went down in the middle of it, and nothing of it is left.
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
    /// Milliseconds since boot, sleep included (`CLOCK_BOOTTIME`): a deadline counts from here, whatever happens to
    /// the wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime: Option<u64>,
    /// What could not be rolled back, or was left alone, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// Values of others that an undo wrote over, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
    /// Steps of an undo that the kernel refused: the next undo tries them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Remainder>,
    /// How many lines come before this one.
    #[serde(default)]
    pub lines: u64,
}

/// A line after the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// What a file contained after a step, where that is not the text written.
    ReadBack {
        /// The step.
        step: usize,
        /// The content; `held` in formats before 3.
        actual: String,
    },
    /// The content before a step of a file that did not exist at first.
    Was {
        /// The step.
        step: usize,
        /// The content.
        was: String,
    },
    /// What a file of a new group holds before anybody writes it: the kernel's default.
    Fresh {
        /// The hierarchy, as the steps count it.
        hierarchy: usize,
        /// The file.
        file: String,
        /// The content.
        fresh: String,
    },
    /// A step made a directory: its inode number distinguishes it from one that somebody makes later.
    Made {
        /// The step.
        step: usize,
        /// The inode number.
        made: u64,
    },
    /// A thread that a step is about to move.
    Moved {
        /// The step.
        step: usize,
        /// The thread, with where it is.
        moved: Outsider,
    },
    /// The end.
    End {
        /// How.
        result: Result,
    },
}

impl Mark {
    /// The step that it is about.
    fn step(&self) -> Option<usize> {
        match self {
            Mark::Step(step) if *step < 0 => usize::try_from(-(step + 1)).ok(),
            Mark::Step(step) => usize::try_from(*step).ok(),
            Mark::Thread { step, .. }
            | Mark::ReadBack { step, .. }
            | Mark::Was { step, .. }
            | Mark::Made { step, .. }
            | Mark::Moved { step, .. } => Some(*step),
            Mark::Fresh { .. } | Mark::End { .. } => None,
        }
    }
}

/// A generation as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who, when, what.
    pub head: Head,
    /// The steps that were meant.
    pub entries: Vec<Entry>,
    /// What the layout decides and no step does, as it was so already: nothing of it is ever taken back.
    pub(crate) decided: Vec<Entry>,
    /// How it ended; `None` while it is under way, or interrupted.
    pub result: Option<Result>,
    /// Threads whose CPUs were changed, with the step.
    pub(crate) affinities: Vec<(usize, Affinity)>,
    /// The contents of files after steps, where that is not the text written.
    pub(crate) actual: Vec<(usize, String)>,
    /// The last step that was begun.
    pub(crate) begun: Option<usize>,
    /// The step that was being taken back.
    pub(crate) back: Option<usize>,
    /// What files of new groups hold before anybody writes them, by hierarchy and name.
    pub(crate) fresh: BTreeMap<(usize, String), String>,
    /// Threads that were moved, with the step.
    pub(crate) moved: Vec<(usize, Outsider)>,
    /// Inode numbers of directories that steps made.
    pub(crate) made: Vec<(usize, u64)>,
    /// Where the marks behind the steps can't be read, so that it is not known how far it came.
    pub damage: Option<Damage>,
}

/// A generation without its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Who, when, what.
    pub head: Head,
    /// How it ended.
    pub result: Result,
}

impl Summary {
    /// From a record's first line and its last.
    ///
    /// # Errors
    /// Which of the two is damaged, or that the last one is not the end: whether it was done is not known then.
    pub(crate) fn read(first: &[u8], last: &[u8]) -> std::result::Result<Summary, Damage> {
        let head: Head = lines::head(first)?;
        let numbered = head.format >= CHECKSUMS;
        let count = |mark: &Mark| match mark {
            Mark::End { result } => Some(result.lines),
            _ => None,
        };
        // a finished record ends with its result; one that does not has lost its end
        match lines::value_of(last, count, numbered) {
            Ok(Mark::End { result }) => Ok(Summary { head, result }),
            Ok(_) => Err(Damage::end_is_missing()),
            Err(damage) => Err(damage),
        }
    }

    /// Was everything done?
    pub fn is_done(&self) -> bool {
        is_done(Some(&self.result))
    }

    /// The applied generations in effect after it.
    pub fn in_effect(&self) -> &[u32] {
        self.head.in_effect_after(Some(&self.result))
    }

    /// What undos up to it had to leave.
    pub fn stayed(&self) -> Vec<Remainder> {
        let stayed = if self.is_done() { &self.head.stayed } else { &self.head.stayed_before };
        stayed.iter().chain(&self.result.refused).cloned().collect()
    }
}

fn is_done(result: Option<&Result>) -> bool {
    result.is_some_and(|result| result.ending == Ending::Done)
}

impl Head {
    /// Gives places of its own the hierarchies as they are counted now; `None` where one is mounted no longer.
    pub(crate) fn here(&self, host: &Host) -> impl Fn(&Place) -> Option<Place> + use<> {
        // once for all of its places, of which there are thousands
        let ids: Vec<Option<usize>> =
            self.hierarchies.iter().map(|spot| spot.find(host).map(|at| at.id)).collect();
        move |place| {
            let hierarchy = (*ids.get(place.hierarchy)?)?;
            Some(Place { hierarchy, ..place.clone() })
        }
    }

    fn in_effect_after(&self, result: Option<&Result>) -> &[u32] {
        if is_done(result) { &self.in_effect } else { &self.in_effect_before }
    }
}

impl Record {
    /// The hierarchies that its places count, those that its own steps mounted behind the others, as they are now.
    pub(crate) fn hierarchies(&self, host: &Host) -> Vec<Option<Hierarchy>> {
        let mounted = self.entries.iter().filter_map(|entry| match &entry.action {
            Action::Mount { path, .. } => {
                Some(host.hierarchies().iter().find(|at| at.mount == *path).cloned())
            }
            _ => None,
        });
        self.head.hierarchies.iter().map(|spot| spot.find(host).cloned()).chain(mounted).collect()
    }

    /// Groups of units for which drop-in files were written, or were there already.
    pub(crate) fn units(&self, host: &Host) -> Vec<Place> {
        let now = self.hierarchies(host);
        let units = self.entries.iter().chain(&self.decided).filter_map(|entry| match &entry.action {
            Action::WriteDropIn { place, .. } => {
                let hierarchy = now.get(place.hierarchy)?.as_ref()?.id;
                Some(Place { hierarchy, ..place.clone() })
            }
            _ => None,
        });
        units.collect()
    }

    /// Reads a generation's file. `under_way`: it is a journal, which ends in unused room.
    ///
    /// # Errors
    /// The first damaged line; of a journal only if the head or a step is damaged, as then nothing can be rolled back.
    pub fn read(bytes: &[u8], under_way: bool) -> std::result::Result<Record, Damage> {
        let mut lines = lines::Lines::new(bytes, under_way);
        let head: Head = lines.head()?;
        let mut entries = |count: usize| {
            let mut entries: Vec<Entry> = Vec::with_capacity(count.min(bytes.len() / 16));
            while entries.len() < count {
                match lines.next() {
                    Some(Ok(entry)) => entries.push(entry),
                    Some(Err(damage)) => return Err(damage),
                    None => return Err(lines.missing("its steps are not all there")),
                }
            }
            Ok(entries)
        };
        let (entries, decided) = (entries(head.steps)?, entries(head.decided)?);
        let (affinities, actual, fresh, moved, made) = Default::default();
        let mut record = Record {
            head,
            entries,
            decided,
            result: None,
            affinities,
            actual,
            begun: None,
            back: None,
            fresh,
            moved,
            made,
            damage: None,
        };
        while let Some(mark) = lines.next::<Mark>() {
            let mark = mark.and_then(|mark| match mark.step() {
                Some(step) if step >= record.entries.len() => {
                    Err(lines.wrong(&format!("it marks step {step} of {}", record.entries.len())))
                }
                _ => Ok(mark),
            });
            match mark {
                Ok(Mark::End { result })
                    if record.head.format >= CHECKSUMS && result.lines != lines.before() =>
                {
                    return Err(lines.missing("lines before its end are missing"));
                }
                Ok(mark) => record.note(mark),
                Err(damage) if under_way => {
                    record.damage = Some(damage);
                    return Ok(record);
                }
                Err(damage) => return Err(damage),
            }
        }
        if record.result.is_none()
            && under_way
            && record.head.format >= CHECKSUMS
            && !lines::ends_in_room(bytes)
        {
            record.damage = Some(lines.missing("its end was cut off"));
        }
        Ok(record)
    }

    /// As a file of a finished generation.
    ///
    /// # Errors
    /// Something of it can't be JSON.
    pub(crate) fn bytes(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        lines::append(&mut bytes, 0, &self.head)?;
        let mut number = 0;
        let mut next = || {
            number += 1;
            number
        };
        for entry in self.entries.iter().chain(&self.decided) {
            lines::append(&mut bytes, next(), entry)?;
        }
        let made = self.made.iter().map(|(step, made)| Mark::Made { step: *step, made: *made });
        let actual =
            self.actual.iter().map(|(step, actual)| Mark::ReadBack { step: *step, actual: actual.clone() });
        let fresh = self.fresh.iter().map(|((hierarchy, file), fresh)| Mark::Fresh {
            hierarchy: *hierarchy,
            file: file.clone(),
            fresh: fresh.clone(),
        });
        for mark in made.chain(actual).chain(fresh) {
            lines::append(&mut bytes, next(), &mark)?;
        }
        if let Some(result) = &self.result {
            let lines = next();
            lines::append(&mut bytes, lines, &Mark::End { result: Result { lines, ..result.clone() } })?;
        }
        Ok(bytes)
    }

    /// The directories that it made, each with its inode number.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = (&Place, u64)> {
        self.made.iter().filter_map(|(step, inode)| Some((self.entries.get(*step)?.action.place()?, *inode)))
    }

    fn note(&mut self, mark: Mark) {
        match mark {
            Mark::Step(0..) => self.begun = mark.step(),
            Mark::Step(_) => self.back = mark.step(),
            Mark::Thread { step, affinity } => self.affinities.push((step, affinity)),
            Mark::ReadBack { step, actual } => self.actual.push((step, actual)),
            Mark::Was { step, was } => {
                if let Some(entry) = self.entries.get_mut(step) {
                    crate::entry::was(entry, was);
                }
            }
            Mark::Fresh { hierarchy, file, fresh } => drop(self.fresh.insert((hierarchy, file), fresh)),
            Mark::Moved { step, moved } => self.moved.push((step, moved)),
            Mark::Made { step, made } => self.made.push((step, made)),
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
