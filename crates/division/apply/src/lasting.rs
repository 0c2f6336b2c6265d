//! What outlives a boot: drop-in files of units on the disk. A generation of an earlier boot is in effect as far as its
//! files are; its groups, values and knobs went with the boot.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use plan::{Action, Place, Upkeep};

use crate::{
    Failure, State, Target,
    entry::{Before, Entry},
    record::{Head, Record, Summary},
};

/// Is what the action writes still there after a boot? `/run` is empty then.
fn outlives(action: &Action) -> bool {
    matches!(action, Action::WriteDropIn { path, .. } if !path.starts_with("/run"))
}

/// The last finished generation, as it is in this boot; `None` where nothing of the history is in effect any more.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn last(state: &State, target: Target<'_>) -> Result<Option<Summary>, Failure> {
    let Some(last) = state.last()? else { return Ok(None) };
    let boot = target.system.boot();
    if last.head.boot == boot {
        return Ok(Some(last));
    }
    let mut in_effect = Vec::new();
    let mut is_there = false;
    for &generation in last.in_effect() {
        let Some(record) = state.record_in_effect(generation)? else { continue };
        let record = of_boot(record, &boot);
        let files = record.entries.iter().filter_map(|entry| match &entry.action {
            Action::WriteDropIn { path, text: Some(_), .. } => Some(path),
            _ => None,
        });
        is_there |= files.into_iter().any(|path| target.system.unit_files().read(path).is_some());
        if !record.entries.is_empty() {
            in_effect.push(generation);
        }
    }
    // one that nobody confirmed may have removed the last of the files
    let unconfirmed =
        |last: &Summary| last.head.confirm_within.is_some() && !state.is_confirmed(last.head.generation);
    if !is_there && !state.last_done()?.is_some_and(|last| unconfirmed(&last)) {
        in_effect.clear();
    }
    let stayed = last.stayed();
    let stayed: Vec<_> = stayed.into_iter().filter(|stayed| outlives(&stayed.entry.action)).collect();
    if in_effect.is_empty() && stayed.is_empty() {
        return Ok(None);
    }
    let Summary { head, mut result } = last;
    result.refused.clear();
    let head = Head {
        in_effect: in_effect.clone(),
        in_effect_before: in_effect,
        stayed: stayed.clone(),
        stayed_before: stayed,
        layout: false,
        settled: 0,
        ..head
    };
    Ok(Some(Summary { head: bare(head), result }))
}

/// The record of a generation that is in effect, with what is left of it in this boot; `None` if somebody moved it away.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn record(state: &State, target: Target<'_>, generation: u32) -> Result<Option<Record>, Failure> {
    Ok(state.record_in_effect(generation)?.map(|record| of_boot(record, &target.system.boot())))
}

/// What is left of a generation in a boot: the drop-in files, and as decided what these bring about in their units' groups.
pub(crate) fn of_boot(record: Record, boot: &str) -> Record {
    if record.head.boot == boot {
        return record;
    }
    let is_whole = record.is_whole();
    let Record { head, entries, decided, result, begun, damage, .. } = record;
    let begun = begun.and_then(|step| {
        let begun = entries.iter().take(step + 1);
        begun.filter(|entry| outlives(&entry.action)).count().checked_sub(1)
    });
    // those that were taken back already are so, which is seen
    let back = None;
    let (files, others): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| outlives(&entry.action));
    let decided: Vec<Entry> = others.into_iter().chain(decided).collect();
    let of_file = |entry: &Entry| outlives(&entry.action).then(|| entry.action.place().cloned()).flatten();
    let units: BTreeSet<Place> = files.iter().chain(&decided).filter_map(of_file).collect();
    let is_of_unit = |entry: &Entry| {
        let is_value =
            outlives(&entry.action) || matches!(entry.action, Action::Write { .. }) && !entry.restores;
        is_value && entry.action.place().is_some_and(|place| units.contains(place))
    };
    let decided = decided.into_iter().filter(is_of_unit);
    let decided: Vec<Entry> = decided.map(|entry| Entry { before: Before::Nothing, ..entry }).collect();
    let mut head = bare(head);
    if is_whole {
        (head.steps, head.decided) = (files.len(), decided.len());
    }
    let (affinities, actual, fresh, moved, made) = Default::default();
    let entries = files;
    Record { head, entries, decided, result, affinities, actual, begun, back, fresh, moved, made, damage }
}

/// Without what went with the boot.
fn bare(mut head: Head) -> Head {
    head.rules = None;
    head.upkeep = Upkeep::default();
    let files = std::mem::take(&mut head.dropped.files);
    head.dropped = plan::Dropped { files, ..plan::Dropped::default() };
    head
}

/// By path: what generations in effect, and those that were undone and had to leave theirs, wrote to drop-in files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    texts: HashMap<PathBuf, HashSet<String>>,
}

impl Known {
    pub fn add(&mut self, entry: &Entry) {
        self.add_text(entry);
        if let (Action::WriteDropIn { path, .. }, Before::DropIn(Some(before))) =
            (&entry.action, &entry.before)
        {
            self.texts.entry(path.clone()).or_default().insert(before.clone());
        }
    }

    /// What it writes, without what it found.
    pub fn add_text(&mut self, entry: &Entry) {
        if let Action::WriteDropIn { path, text, .. } = &entry.action {
            self.texts.entry(path.clone()).or_default().extend(text.clone());
        }
    }

    /// Do the records name the file?
    pub fn names(&self, path: &Path) -> bool {
        self.texts.contains_key(path)
    }

    /// Is a text as Ringfence wrote it? Without a record its first line says so.
    pub fn wrote(&self, path: &Path, text: &str) -> bool {
        self.texts.get(path).map_or_else(|| plan::is_drop_in(text), |texts| texts.contains(text))
    }
}
