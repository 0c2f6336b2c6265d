//! Brings the state after an earlier generation back: from the records to steps, which are then carried out like any
//! other change and make a generation of their own. Nothing is killed: a group with tasks in it stays, is
//! reported, and is taken up again by the next undo.

mod again;
mod back;
mod groups;
mod machine;
mod resets;
mod resized;
mod retry;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use kernel::{Hierarchy, Seat};
use knobs::{Encoding, Instance};
use plan::{Dropped, Outsider, Place, is_reserve};
use units::group_path;

use crate::{
    Difference, Drift, Failure, GroupStatus, Lock, Meta, Outcome, State, Target,
    act::{Act, Before, Entry, devices_of},
    already::is_so,
    carry_out::{Change, carry_out},
    frequencies::give_back,
    inverse,
    knob::is_ours,
    lasting,
    lift::lift,
    made::{Inodes, remade, renamed},
    occupied::Occupied,
    originals,
    performer::{DEVICES_V1, Performer},
    record::{Affinity, Head, Kind, Record},
    remainder::Remainder,
    rollback::at_or_below,
    state::UNDOABLE,
    status::status,
};

/// The state that an undo brings back.
pub(crate) enum To<'m> {
    /// That before the last generation in effect.
    BeforeLast,
    /// That after this generation; 0: before the first.
    After(u32),
    /// The present one without these generations, behind which is no other.
    Without(&'m dyn Fn(&Head) -> bool),
}

pub(crate) fn undo_recovered(
    lock: &Lock,
    target: Target<'_>,
    to: &To<'_>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    let state = lock.state();
    let nothing = || Failure::NothingRecorded { directory: state.directory().to_owned() };
    let last = state.last()?.ok_or_else(nothing)?;
    let boot = target.system.boot();
    let here = lasting::last(state, target)?;
    let here = here.as_ref();
    let now: Vec<u32> = here.map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let stayed: Vec<Remainder> = here.map(|last| last.stayed()).unwrap_or_default();
    let (to, wanted) = match to {
        To::BeforeLast => match now.split_last() {
            Some((_, rest)) => (rest.last().copied().unwrap_or(0), rest.to_vec()),
            None if !stayed.is_empty() => (0, Vec::new()),
            None => return Err(Failure::NothingToUndo),
        },
        To::After(0) => (0, Vec::new()),
        To::After(requested) => {
            (*requested, in_effect_after(state, *requested, (last.head.generation, &now), &boot)?)
        }
        To::Without(is_meant) => {
            let mut wanted = Vec::new();
            for &generation in &now {
                // one without a record is nobody's
                if !state.is_there(generation) || !is_meant(&state.summary(generation)?.head) {
                    wanted.push(generation);
                }
            }
            let before = now.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
            if wanted.len() == now.len() {
                return Err(Failure::NothingToUndo);
            }
            if let Some(behind) = wanted.get(before) {
                let to = before.checked_sub(1).map_or(0, |last| wanted[last]);
                return Err(Failure::Behind { behind: *behind, to });
            }
            (wanted.last().copied().unwrap_or(0), wanted)
        }
    };
    let common = now.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
    let mut steps = Steps::new(target, state);
    let tried = steps.take_up(&stayed, &now[common..], &wanted, state)?;
    for &generation in wanted.iter().filter(|generation| state.is_there(**generation)) {
        let head = state.summary(generation)?.head;
        steps.adopted.extend(head.dropped.adopted.iter().filter_map(head.here(target.host)));
    }
    let originals = originals::read(state, target)?;
    let undone: BTreeSet<u32> =
        now[common..].iter().copied().chain(tried.iter().map(|stayed| stayed.generation)).collect();
    for &generation in undone.iter().rev() {
        let record = lasting::record(state, target, generation)?;
        steps.renamed = renamed(&record, target);
        if now[common..].contains(&generation) {
            match &record {
                Some(record) => {
                    steps.end_resizing(record, &originals)?;
                    steps.back(record)?;
                }
                None => steps.left.push(unrecorded(generation)),
            }
        }
        let of_it: Vec<&Remainder> = tried.iter().filter(|stayed| stayed.generation == generation).collect();
        // a record that was pruned has nothing of its own to add
        steps.back_again(generation, &of_it, record.as_ref())?;
    }
    steps.renamed.clear();
    if to != 0 {
        steps.left.append(&mut steps.lost);
    }
    let removed = steps.removals();
    if wanted.len() > common {
        // one that is removed again may not be the one that a generation made
        let records =
            wanted.iter().filter_map(|generation| lasting::record(state, target, *generation).transpose());
        let records: Vec<Record> = records.collect::<Result<_, _>>()?;
        steps.remade.extend(remade(&records, state, target)?);
    }
    for &generation in &wanted[common..] {
        match lasting::record(state, target, generation)? {
            Some(record) => steps.again(&record),
            None => steps.left.push(unrecorded(generation)),
        }
    }
    steps.report_gone(&wanted[..common], &removed)?;
    let known = wanted.iter().rev().find(|generation| state.is_there(**generation));
    let then = known.map(|known| state.summary(*known)).transpose()?.map_or(0, |known| known.head.settled);
    match here.map_or(0, |last| last.head.settled).saturating_sub(then) {
        0 => {}
        count => steps.left.push(format!(
            "what {count} older `ringfence set` wrote stays: only the last {UNDOABLE} of them can be undone"
        )),
    }
    steps.inherit_sets();
    steps.left.splice(0..0, steps.occupied.lines(target.host));
    let directory = |place: &Place| PathBuf::from(steps.performer.directory(place));
    let written = steps.written.iter().map(|(place, file)| directory(place).join(file)).collect();
    let replaced = changed(state, target, &written).map(|(_, file, requested, actual)| {
        let file = file.display();
        format!(
            "{file}: {actual} is gone: the file was changed to it after {requested} was applied, which is undone"
        )
    });
    let change = Change {
        kind: Kind::Undo { to },
        sources: steps.sources,
        dropped: Dropped::default(),
        elastic: Vec::new(),
        isolation: None,
        ranges: Vec::new(),
        latencies: Default::default(),
        partitions: steps.partitions,
        entries: steps.entries,
        decided: Vec::new(),
        planned: Vec::new(),
        hierarchies: target.host.hierarchies().iter().cloned().map(Some).collect(),
        in_effect: Some(wanted),
        left: steps.left,
        replaced: replaced.chain(steps.skipped).collect(),
        stayed: Some(steps.stayed),
    };
    let meta = Meta { confirm_within: None, ..meta.clone() };
    let mut outcome = carry_out(lock, target, change, &meta)?;
    outcome.left.extend(give_back(state, target));
    // lines that stay are those of a generation that is in effect no longer, and do no harm
    let _ = originals::forget(lock, target, &now[common..].iter().copied().collect());
    Ok(Outcome { foreign: foreign(state, target, &written), ..outcome })
}

/// Files that contain something else than a generation in effect applied, of these: group, file, applied, contained.
fn changed(
    state: &State,
    target: Target<'_>,
    files: &BTreeSet<PathBuf>,
) -> impl Iterator<Item = (String, PathBuf, String, String)> {
    // it is undone, whatever can be said of it
    let groups = status(state, target).unwrap_or_default();
    let changed = groups.into_iter().flat_map(|GroupStatus { group, drift, .. }| {
        drift.into_iter().filter_map(move |drift| match drift {
            Drift::Changed { file, requested, actual: Some(actual) } => {
                Some((group.clone(), file, requested, actual))
            }
            _ => None,
        })
    });
    changed.filter(|(_, file, ..)| files.contains(file))
}

/// What an undo brought back that a generation in effect did not apply: `status` shows it as drift.
fn foreign(state: &State, target: Target<'_>, written: &BTreeSet<PathBuf>) -> Vec<Difference> {
    let restored = changed(state, target, written);
    let difference = |(group, file, requested, actual): (String, PathBuf, String, String)| Difference {
        group,
        file: file.display().to_string(),
        requested,
        actual,
        reason: "it was there before the change that is undone".to_owned(),
    };
    restored.map(difference).collect()
}

fn unrecorded(generation: u32) -> String {
    format!("what generation {generation} changed is not known: its record was moved away")
}

/// `now`: those in effect, of an earlier boot as far as they outlived it.
fn in_effect_after(
    state: &State,
    requested: u32,
    (last, now): (u32, &[u32]),
    boot: &str,
) -> Result<Vec<u32>, Failure> {
    if !state.finished()?.contains(&requested) {
        return Err(Failure::NoGeneration { requested, last });
    }
    let record = state.summary(requested)?;
    let wanted = record.in_effect().to_vec();
    if record.head.boot != boot && !wanted.is_empty() {
        let left: Vec<u32> = wanted.into_iter().filter(|generation| now.contains(generation)).collect();
        let is_before = left.last() == Some(&requested) && left.len() < now.len() && now.starts_with(&left);
        return if is_before { Ok(left) } else { Err(Failure::OtherBoot { generation: requested }) };
    }
    Ok(wanted)
}

/// The steps of an undo, as far as they are there.
struct Steps<'t> {
    performer: Performer<'t>,
    target: Target<'t>,
    state: &'t State,
    entries: Vec<Entry>,
    left: Vec<String>,
    /// What need not be undone, in words.
    skipped: Vec<String>,
    occupied: Occupied,
    /// Groups that will be gone.
    removed: BTreeSet<Place>,
    /// Groups that will be made again.
    made: BTreeSet<Place>,
    /// Groups that stay although they were to go, or are gone: nothing of them is changed.
    spared: BTreeSet<Place>,
    /// Those of them that are there, and others that earlier undos had to leave: ours, should a generation come back.
    ours: BTreeSet<Place>,
    /// Groups that earlier undos had to leave, and that a generation which stays in effect took over.
    adopted: BTreeSet<Place>,
    /// Groups that somebody removed and made again: nobody's of the generations any more.
    remade: BTreeSet<Place>,
    /// Where directories that the generations made are by now, of those that somebody renamed.
    renamed: BTreeMap<Place, Place>,
    /// Groups whose device rules, or controllers for those below, stay as they are.
    unchanged: BTreeSet<(Place, Part)>,
    /// Groups of later generations that have to stay and are an older one's again.
    reclaimed: BTreeMap<Place, Reclaimed>,
    /// Groups that go on missing, in words: somebody had renamed them before they were removed.
    lost: Vec<String>,
    /// What has to stay.
    stayed: Vec<Remainder>,
    /// Directories that all generations made, read where that is needed.
    inodes: OnceCell<Inodes>,
    /// Groups of units.
    of_units: BTreeSet<Place>,
    /// Files that are written.
    written: BTreeSet<(Place, String)>,
    /// What each entry takes back.
    sources: Vec<Option<Remainder>>,
    /// What the entries that are being added take back.
    source: Option<Remainder>,
    /// Groups whose processes go back to where they came from.
    emptied: BTreeSet<Place>,
    /// Cpusets of groups that stay, with what takes them back.
    inherited: Inherited,
    /// Knobs as the steps so far leave them.
    knobs: BTreeMap<Instance, String>,
    /// Knobs that somebody else set since.
    foreign: BTreeSet<Instance>,
    /// Partitions of generations that stay in effect, as far as they are so now.
    partitions: Vec<Entry>,
}

type Inherited = BTreeMap<(Place, String), (Entry, Option<Remainder>)>;

/// What an older generation's claim on a group put aside.
struct Reclaimed {
    /// The number of the first entry that came of it.
    from: usize,
    stayed: Vec<Remainder>,
    inherited: Inherited,
}

/// What a generation made and did.
struct Own<'s> {
    /// Its groups, with the steps that made them.
    made: BTreeMap<Place, Option<Remainder>>,
    steps: &'s [(usize, Entry)],
    /// What files of new groups contain by default.
    fresh: &'s BTreeMap<(usize, String), String>,
}

/// Parts of a group that stay for the sake of the groups below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Devices,
    Controllers,
}

impl<'t> Steps<'t> {
    fn new(target: Target<'t>, state: &'t State) -> Steps<'t> {
        let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
        let (entries, left, removed, made, spared) = Default::default();
        let (ours, adopted, remade, renamed, unchanged, stayed, written) = Default::default();
        let (sources, source, emptied, inherited, reclaimed) = Default::default();
        Steps {
            performer,
            target,
            state,
            entries,
            left,
            skipped: Vec::new(),
            occupied: Occupied::default(),
            removed,
            made,
            spared,
            ours,
            adopted,
            remade,
            renamed,
            unchanged,
            reclaimed,
            lost: Vec::new(),
            stayed,
            inodes: OnceCell::new(),
            of_units: BTreeSet::new(),
            written,
            sources,
            source,
            emptied,
            inherited,
            knobs: BTreeMap::new(),
            foreign: BTreeSet::new(),
            partitions: Vec::new(),
        }
    }

    /// Notes which groups of a record are units'.
    fn note_units(&mut self, record: &Record) {
        let units = record.units(self.performer.host());
        self.of_units.extend(units);
    }

    fn source_of(&self, generation: u32, step: usize, entry: &Entry) -> Option<Remainder> {
        Remainder::of(generation, step, entry, &self.performer.hierarchies)
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.sources.push(self.source.clone());
    }

    /// The entry with its hierarchy counted as it is now.
    fn here(&mut self, now: &[Option<Hierarchy>], entry: &Entry) -> Option<Entry> {
        let Some(place) = entry.act.place() else { return Some(entry.clone()) };
        match now.get(place.hierarchy) {
            Some(Some(at)) => Some(entry.at_hierarchy(at.id).renamed(&self.renamed)),
            _ => {
                self.report(format!("group '{}': its hierarchy is no longer mounted", entry.group));
                None
            }
        }
    }

    fn report(&mut self, left: String) {
        if !self.left.contains(&left) {
            self.left.push(left);
        }
    }
}
