//! What the state directory holds, for those who only look: finished generations, the one that is under way or was
//! interrupted, and damaged ones, which hide no other. Never takes the lock, and changes nothing.

use serde::{Deserialize, Serialize};

use crate::{
    Failure, State, Target,
    entry::Entry,
    lasting,
    made::renamed,
    record::{By, Ending, Head, Record, Summary},
    state::{command_line, in_place, is_replaced},
    status::unknown,
};

/// One generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Generation {
    /// It has its end.
    Finished(Summary),
    /// It has none.
    Unfinished {
        /// Who, when, what.
        head: Head,
        /// Is the process that makes it still there? If not, it was interrupted.
        lives: bool,
        /// What its process had come to when it ended, if it had come to an end.
        ended: Option<Ending>,
    },
    /// It can't be read.
    Damaged {
        /// Its number.
        generation: u32,
        /// Why not, with the file.
        failure: Failure,
    },
    /// It is in effect, and its record is gone.
    Lost {
        /// Its number.
        generation: u32,
    },
}

/// A generation that was begun and has no end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Its number.
    pub generation: u32,
    /// The process that makes it, or made it.
    pub process: u32,
    /// Is that process still there? If not, the generation was interrupted.
    pub lives: bool,
    /// How it ended, where only its being finished is not recorded: nothing of it is rolled back then.
    pub ended: Option<Ending>,
}

impl Generation {
    /// Its number.
    pub fn generation(&self) -> u32 {
        match self {
            Generation::Finished(summary) => summary.head.generation,
            Generation::Unfinished { head, .. } => head.generation,
            Generation::Damaged { generation, .. } | Generation::Lost { generation } => *generation,
        }
    }

    /// Who, when, what; `None` where that can't be read.
    pub fn head(&self) -> Option<&Head> {
        match self {
            Generation::Finished(summary) => Some(&summary.head),
            Generation::Unfinished { head, .. } => Some(head),
            Generation::Damaged { .. } | Generation::Lost { .. } => None,
        }
    }

    /// How it ended, in a word or two.
    pub fn state(&self) -> &'static str {
        let result = match self {
            Generation::Damaged { failure: Failure::Later { .. }, .. } => return "of a later version",
            Generation::Damaged { .. } => return "damaged",
            Generation::Lost { .. } => return "lost",
            Generation::Unfinished { lives: true, .. } => return "under way",
            Generation::Unfinished { lives: false, .. } => return "broken off",
            Generation::Finished(summary) => &summary.result,
        };
        match (result.ending, result.left.is_empty()) {
            (Ending::Done, true) => "done",
            (Ending::Done, false) => "done in part",
            (Ending::RolledBack, _) => "rolled back",
            (Ending::Partly, _) => "partly undone",
            (Ending::NotBegun, _) => "not begun",
            (Ending::LostAtBoot, _) => "lost at boot",
        }
    }
}

/// The applied generations that are in effect, and those of an earlier boot of which drop-in files are left.
pub fn in_effect_now(state: &State, target: Target<'_>, all: &[Generation]) -> Vec<u32> {
    let is_done = |kept: &&Generation| matches!(kept, Generation::Finished(summary) if summary.is_done());
    let last = all.iter().rev().find(is_done).and_then(Generation::head);
    let boot = target.system.boot();
    let mut numbers = recorded(all, &boot);
    if last.is_some_and(|head| head.boot != boot) {
        let left = lasting::last(state, target).ok().flatten();
        numbers.splice(0..0, left.map(|left| left.head.in_effect).unwrap_or_default());
    }
    numbers
}

/// The applied generations of this boot that are in effect, as the last change that succeeded recorded them.
pub fn in_effect(all: &[Generation], boot: &str) -> Vec<u32> {
    let earlier = |kept: &&Generation| kept.head().is_some_and(|head| head.boot != boot);
    let earlier: Vec<u32> = all.iter().filter(earlier).map(Generation::generation).collect();
    let mut numbers = recorded(all, boot);
    numbers.retain(|generation| !earlier.contains(generation));
    numbers
}

fn recorded(all: &[Generation], boot: &str) -> Vec<u32> {
    let done = |kept: &Generation| match kept {
        Generation::Finished(summary) if summary.is_done() && summary.head.boot == boot => {
            Some(summary.head.in_effect.clone())
        }
        _ => None,
    };
    let lost = all.iter().filter(|kept| matches!(kept, Generation::Lost { .. })).map(Generation::generation);
    let joins = |kept: &Generation| kept.head()?.joins.clone();
    let mut last = all.iter().rev().find_map(done).unwrap_or_default();
    in_place(&all.iter().filter_map(joins).collect::<Vec<_>>(), &mut last);
    last.into_iter().chain(lost).collect()
}

/// All generations, oldest first.
///
/// # Errors
/// [`Failure::State`] if the directory can't be listed, or the caller may not read what is in it.
pub fn generations(state: &State) -> Result<Vec<Generation>, Failure> {
    // before the others: it may become one of them meanwhile
    let unfinished = state.unfinished()?;
    // one that can't be read is listed as such
    let joined = state.joined().unwrap_or_default();
    let mut finished = state.finished()?;
    finished.retain(|generation| !is_replaced(&joined, *generation));
    let mut all: Vec<Generation> =
        finished.iter().filter_map(|generation| finished_one(state, *generation)).collect();
    let unfinished = unfinished.filter(|generation| !finished.contains(generation));
    all.extend(unfinished.and_then(|generation| unfinished_one(state, generation)));
    let denied = |entry: &Generation| match entry {
        Generation::Damaged { generation, failure } if state.is_denied(*generation) => Some(failure.clone()),
        _ => None,
    };
    all.iter().find_map(denied).map_or(Ok(all), Err)
}

/// The number of the newest generation, finished or not; 0: there is none.
///
/// # Errors
/// [`Failure::State`] if the directory can't be listed.
pub fn newest(state: &State) -> Result<u32, Failure> {
    let unfinished = state.unfinished()?;
    Ok(state.finished()?.last().copied().max(unfinished).unwrap_or(0))
}

/// Who made the last change that succeeded, when and what; without a look at those before it.
///
/// # Errors
/// As of [`generations`].
pub fn last_done(state: &State) -> Result<Option<Head>, Failure> {
    for generation in state.finished()?.into_iter().rev() {
        match finished_one(state, generation) {
            Some(Generation::Finished(summary)) if summary.is_done() => return Ok(Some(summary.head)),
            Some(Generation::Damaged { failure, .. }) if state.is_denied(generation) => return Err(failure),
            _ => {}
        }
    }
    Ok(None)
}

/// All generations, with those in effect that have no record.
///
/// # Errors
/// As of [`generations`].
pub fn generations_or_lost(state: &State, target: Target<'_>) -> Result<Vec<Generation>, Failure> {
    let mut all = generations(state)?;
    // where the newest record is damaged, that is said already
    let lost = unknown(state, target).unwrap_or_default();
    all.extend(lost.into_iter().map(|generation| Generation::Lost { generation }));
    all.sort_by_key(Generation::generation);
    Ok(all)
}

/// Is nothing left of what a generation did: neither a group that it made or changed, nor its rules? False where its
/// record can't be read.
pub fn is_gone(state: &State, target: Target<'_>, generation: u32) -> bool {
    let Ok(Some(record)) = lasting::record(state, target, generation) else { return false };
    let renamed = renamed([&record], target);
    let here = record.head.here(target.host);
    let is_there = |entry: &Entry| {
        // what is mounted, or is not, has no group
        let Some(place) = entry.action.place() else { return true };
        let Some(place) = here(place) else { return false };
        let place = renamed.get(&place).unwrap_or(&place);
        let at = target.host.hierarchies().get(place.hierarchy);
        at.is_some_and(|at| target.host.kernel().exists(at, &place.path))
    };
    let mut done = record.entries.iter().chain(&record.decided).filter(|entry| !entry.restores);
    record.head.rules.is_none() && !done.any(is_there)
}

fn finished_one(state: &State, generation: u32) -> Option<Generation> {
    match state.summary(generation) {
        Ok(summary) => Some(Generation::Finished(summary)),
        // old ones are taken away at any moment
        Err(_) if !state.is_there(generation) => None,
        Err(failure) => Some(Generation::Damaged { generation, failure }),
    }
}

fn unfinished_one(state: &State, generation: u32) -> Option<Generation> {
    match state.journal(generation) {
        Ok(record) => {
            let Record { head, result, .. } = record;
            let ended = result.map(|result| result.ending);
            let lives = lives(&head.by);
            // a process that is gone by now may have come to its end since the journal was read
            if !lives && state.is_there(generation) {
                return finished_one(state, generation);
            }
            Some(Generation::Unfinished { head, lives, ended })
        }
        Err(_) if state.is_there(generation) => finished_one(state, generation),
        Err(failure) => Some(Generation::Damaged { generation, failure }),
    }
}

/// The generation that is under way on this machine, or was interrupted there and not rolled back yet.
///
/// # Errors
/// [`Failure::State`], also if its journal is damaged.
pub fn unfinished(state: &State, target: Target<'_>) -> Result<Option<Unfinished>, Failure> {
    let Some(generation) = state.unfinished()? else { return Ok(None) };
    let (head, lives, ended) = match unfinished_one(state, generation) {
        Some(Generation::Unfinished { head, lives, ended }) => (head, lives, ended),
        // what it changed may be in effect
        Some(Generation::Damaged { failure, .. }) => return Err(failure),
        // it has ended meanwhile
        _ => return Ok(None),
    };
    // of what was changed in an earlier boot drop-in files are left
    let boot = target.system.boot();
    let left = |record: Record| record.is_whole() && !record.entries.is_empty();
    let here = head.boot == boot
        || state.journal(generation).is_ok_and(|record| left(lasting::of_boot(record, &boot)));
    Ok(here.then_some(Unfinished { generation, process: head.by.pid, lives, ended }))
}

/// Its number alone may be another's by now.
fn lives(by: &By) -> bool {
    command_line(by.pid).is_some_and(|command| command == by.command)
}
