//! What to do with a generation whose process died: roll back what it had done. Called before every change, so that no
//! plan is made from a machine halfway between two states. Also takes back what was not confirmed in time.

use std::{collections::BTreeMap, time::Duration};

use plan::{Action, Place};

use crate::{
    Failure, Lock, Meta, Outcome, Target,
    carry_out::refused_steps,
    directories,
    entry::Before,
    journal::Journal,
    lasting,
    pending::{remaining, settle_files},
    performer::Performer,
    record::{By, Ending, Kind, Record, Result as End, Summary},
    remainder::Remainder,
    rollback::roll_back,
    undo::{To, undo_recovered},
};

/// A generation that was brought to its end.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Recovered {
    /// Which.
    pub generation: u32,
    /// What was done with it.
    pub how: Recovery,
    /// Was it an undo itself?
    #[serde(skip)]
    pub of_undo: bool,
    /// What could not be rolled back, each with the reason.
    pub left: Vec<String>,
    /// Values of others that the roll-back wrote over: they were set after the interruption.
    pub replaced: Vec<String>,
}

/// What became of a generation that had no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// It was interrupted; what it had changed was rolled back.
    RolledBack,
    /// Its process had done everything and died before it could say so: the change is in effect.
    Finished,
    /// Its process had rolled it back and died before it could say so.
    WasRolledBack,
    /// It was interrupted before it changed anything.
    NotBegun,
    /// The machine went down in the middle of it, and nothing of it is left.
    LostAtBoot,
    /// It was not confirmed in time, and was undone.
    Unconfirmed,
}

impl Recovered {
    /// Is an apply now undone, or known as not done? Then an undo of the last change has nothing more to do.
    fn takes_back(&self) -> bool {
        !self.of_undo && !matches!(self.how, Recovery::Finished)
    }
}

/// Has the recovery done all that is wanted of an undo to `generation`? Without one, the last change is to be undone,
/// and that is the one which was interrupted or not confirmed.
pub fn is_undone(generation: Option<u32>, recovered: &[Recovered]) -> bool {
    generation.is_none() && recovered.iter().any(Recovered::takes_back)
}

impl std::fmt::Display for Recovered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let generation = self.generation;
        match self.how {
            Recovery::RolledBack if self.left.is_empty() => {
                write!(f, "generation {generation} was interrupted and has been rolled back")
            }
            Recovery::RolledBack => {
                write!(f, "generation {generation} was interrupted and has been rolled back in part")
            }
            Recovery::Finished => {
                write!(f, "generation {generation} was done when its process ended, and is in effect")
            }
            Recovery::WasRolledBack => {
                write!(f, "generation {generation} was rolled back when its process ended")
            }
            Recovery::NotBegun => {
                write!(f, "generation {generation} was interrupted before it changed anything")
            }
            Recovery::LostAtBoot => {
                write!(
                    f,
                    "generation {generation} was interrupted when the machine went down; nothing of it is left"
                )
            }
            Recovery::Unconfirmed => {
                write!(f, "generation {generation} was not confirmed in time and has been undone")
            }
        }?;
        if !self.left.is_empty() {
            write!(f, ", except: {}", self.left.join("; "))?;
        }
        self.replaced.iter().try_for_each(|replaced| write!(f, "; {replaced}"))
    }
}

/// Brings what was interrupted to its end, and undoes what was not confirmed in time.
///
/// # Errors
/// [`Failure::State`].
pub fn recover(lock: &Lock, target: Target<'_>) -> Result<Vec<Recovered>, Failure> {
    let mut recovered = Vec::new();
    read_again(lock, target)?;
    recovered.extend(unfinished(lock, target)?);
    recovered.extend(undo_overdue(lock, target)?);
    // what a change was killed before
    let unsettled = settle_files(lock.state(), target);
    if let (Some(last), Some(unsettled)) = (recovered.last_mut(), unsettled) {
        last.left.push(unsettled);
    }
    Ok(recovered)
}

/// Lets systemd read what undos took back and it did not read: what fails stays open.
fn read_again(lock: &Lock, target: Target<'_>) -> Result<(), Failure> {
    let files = target.system.unit_files();
    let mut units = Vec::new();
    for stayed in lasting::last(lock.state(), target)?.iter().flat_map(Summary::stayed) {
        if let (Action::WriteDropIn { path, unit, .. }, Before::DropIn(before)) =
            (&stayed.entry.action, &stayed.entry.before)
            && files.read(path) == *before
            && !files.is_read(unit)
        {
            units.push(unit.clone());
        }
    }
    if !units.is_empty() {
        let _ = files.reload(&units);
    }
    Ok(())
}

fn unfinished(lock: &Lock, target: Target<'_>) -> Result<Option<Recovered>, Failure> {
    let Some(generation) = lock.state().unfinished()? else { return Ok(None) };
    let record = lock.state().journal(generation)?;
    let is_lost = record.head.boot != target.system.boot();
    let of_undo = matches!(record.head.kind, Kind::Undo { .. });
    let mut journal = Journal::resume(lock, &record)?;
    // of a unit's file that a reboot leaves, the process may have written a part
    let mut record = lasting::of_boot(record, &target.system.boot());
    if is_lost && record.is_whole() {
        // marks are not forced to the disk, as files of units are
        record.begun = record.entries.len().checked_sub(1);
    }
    if let Some(result) = record.result {
        let how = if result.ending == Ending::Done { Recovery::Finished } else { Recovery::WasRolledBack };
        journal.rename()?;
        let (left, replaced) = (result.left, result.replaced);
        return Ok(Some(Recovered { generation, how, of_undo, left, replaced }));
    }
    let (mut refused, mut replaced) = (Vec::new(), Vec::new());
    let (ending, how, left) = if is_lost && (record.entries.is_empty() || record.begun.is_none()) {
        (Ending::LostAtBoot, Recovery::LostAtBoot, Vec::new())
    } else if !record.is_whole() || record.begun.is_none() && record.damage.is_none() {
        (Ending::NotBegun, Recovery::NotBegun, Vec::new())
    } else {
        let left = put_back(target, &record, &mut journal, &mut refused, &mut replaced);
        let ending = if left.is_empty() { Ending::RolledBack } else { Ending::Partly };
        (ending, Recovery::RolledBack, left)
    };
    let error = Some(format!("process {} ended before it was done", record.head.by.pid));
    if how != Recovery::LostAtBoot {
        // without it they are taken as the daemon finds them
        let _ = directories::note(lock, target.host, &record.head, false);
    }
    journal.finish(End {
        ending,
        at: target.system.now(),
        error,
        step: record.begun,
        uptime: Some(target.system.uptime()),
        left: left.clone(),
        replaced: replaced.clone(),
        refused,
        lines: 0,
    })?;
    // of an interrupted undo it may be needed still
    if record.head.confirm_within.is_some() {
        lock.release();
    }
    Ok(Some(Recovered { generation, how, of_undo, left, replaced }))
}

fn put_back(
    target: Target<'_>,
    record: &Record,
    journal: &mut Journal<'_>,
    refused: &mut Vec<Remainder>,
    replaced: &mut Vec<String>,
) -> Vec<String> {
    let mut performer = Performer::of(target, &record.head.hierarchies);
    // hierarchies that its own steps mounted are counted after those that were there
    performer.count_mounted(&record.entries);
    record.entries.iter().for_each(|entry| performer.drop_ins.add(entry));
    performer.affinities = record.affinities.clone();
    performer.moved = record.moved.clone();
    performer.actual = record.actual.clone();
    performer.fresh = record.fresh.iter().map(|(key, text)| (key.clone(), Some(text.clone()))).collect();
    for (place, inode) in record.inodes() {
        performer.inodes.entry(place.clone()).or_default().push(inode);
    }
    if record.back.is_none() {
        replaced.extend(set_since(&performer, record));
    }
    let Some(damage) = &record.damage else {
        // what is taken back already is not done again: that would lead through states that never were
        let remains = roll_back(&mut performer, journal, &record.entries, record.back.or(record.begun));
        let begun = record.begun.map_or(0, |step| step + 1).min(record.entries.len());
        let entries = &record.entries[..begun];
        refused.extend(refused_steps(&performer, entries, &remains, record.head.generation));
        return remains.left;
    };
    // how far it came is not known: every step may have been done, and what was there before each is known
    let last = record.entries.len().checked_sub(1);
    let remains = roll_back(&mut performer, journal, &record.entries, last);
    refused.extend(refused_steps(&performer, &record.entries, &remains, record.head.generation));
    let mut left = remains.left;
    let unknown = record.entries.iter().filter(|entry| {
        matches!(
            entry.action,
            Action::MoveTasksAway { .. } | Action::MoveTasks { .. } | Action::RestoreAffinities { .. }
        ) || entry.before == Before::Absent
    });
    left.extend(unknown.map(|entry| {
        let group = &entry.group;
        format!("the journal's {damage}: what '{}' changed in group '{group}' is not known", entry.why)
    }));
    left
}

/// What files contain that is neither from before nor written by the generation: nobody may lose a value unseen.
fn set_since(performer: &Performer<'_>, record: &Record) -> Vec<String> {
    let mut known: BTreeMap<(&Place, &str), Vec<&str>> = BTreeMap::new();
    let begun = record.begun.map_or(0, |step| step + 1);
    let count = if record.damage.is_some() { record.entries.len() } else { begun };
    for (step, entry) in record.entries.iter().enumerate().take(count) {
        let (Action::Write { place, file, text }, Some(before)) = (&entry.action, entry.before.files())
        else {
            continue;
        };
        // of lines by device, only some are the generation's
        if settings::is_by_key(file) {
            continue;
        }
        let before = before.iter().filter(|(name, _)| name == file).map(|(_, text)| text.as_str());
        let actual = record.actual.iter().filter(|(of, _)| *of == step).map(|(_, actual)| actual.as_str());
        known.entry((place, file.as_str())).or_default().extend(before.chain(actual).chain([text.as_str()]));
    }
    let set = known.into_iter().filter_map(|((place, file), texts)| {
        let now = performer.content(place, file)?;
        let is_known = |text: &&str| text.trim_end() == now || performer.means(place, file, text, &now);
        let path = format!("{}/{file}", performer.directory(place));
        (!texts.iter().any(is_known)).then(|| {
            format!("{path}: {now} is gone: the file was changed to it after the interrupted change")
        })
    });
    set.collect()
}

/// Undoes what was not confirmed in time, where the process that should have done so is gone.
fn undo_overdue(lock: &Lock, target: Target<'_>) -> Result<Option<Recovered>, Failure> {
    let Some(last) = lock.state().last_done()? else { return Ok(None) };
    let (Some(Duration::ZERO), Some(seconds)) =
        (remaining(lock.state(), &last, target), last.head.confirm_within)
    else {
        return Ok(None);
    };
    let outcome = undo_recovered(lock, target, &To::BeforeLast, &meta(seconds))?;
    let generation = last.head.generation;
    let (how, of_undo) = (Recovery::Unconfirmed, false);
    let Outcome { left, replaced, .. } = outcome;
    Ok(Some(Recovered { generation, how, of_undo, left, replaced }))
}

/// How such an undo's record begins to say what it was.
pub(crate) const UNCONFIRMED: &str = "not confirmed within";

fn meta(seconds: u64) -> Meta {
    let what = format!("{UNCONFIRMED} {seconds} s");
    Meta { by: By::caller(), what, ..Meta::default() }
}
