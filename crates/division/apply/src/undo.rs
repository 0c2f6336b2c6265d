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
mod way;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use kernel::{Hierarchy, Seat};
use plan::{Action, Outsider, Place, is_reserve};
use settings::knobs::{Encoding, Instance};
use units::group_path;

use crate::{
    Difference, Drift, Failure, GroupStatus, Lock, Meta, Outcome, State, Target,
    already::is_so,
    carry_out::{Change, carry_out},
    entry::{Before, Entry, covers, devices_of},
    frequencies::give_back,
    inverse,
    knob::is_ours,
    lasting,
    lift::lift,
    made::{Inodes, remade, renamed},
    occupied::Occupied,
    originals,
    performer::{DEVICES_V1, Performer, SUBTREE_CONTROL, name},
    record::{Affinity, Head, Kind, Record},
    remainder::Remainder,
    rollback::at_or_below,
    status::status,
};
pub(crate) use way::To;
use way::Way;

pub(crate) fn undo_recovered(
    lock: &Lock,
    target: Target<'_>,
    to: &To<'_>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    let state = lock.state();
    let nothing = || Failure::NothingRecorded { directory: state.directory().to_owned() };
    let last = state.last()?.ok_or_else(nothing)?;
    let here = lasting::last(state, target)?;
    let here = here.as_ref();
    let now: Vec<u32> = here.map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let stayed: Vec<Remainder> = here.map(|last| last.stayed()).unwrap_or_default();
    let is_left = !stayed.is_empty();
    let (to, wanted) = to.wanted(state, target, (last.head.generation, &now), is_left)?;
    let way = Way::new(now, wanted);
    let mut steps = Steps::new(target, state);
    steps.go_back(&way, &stayed)?;
    if to != 0 {
        steps.left.append(&mut steps.lost);
    }
    let removed = steps.removals();
    steps.go_on(&way)?;
    steps.report_gone(way.kept(), &removed)?;
    steps.report_settled(here.map_or(0, |last| last.head.settled), &way.wanted)?;
    steps.inherit_sets();
    steps.left.splice(0..0, steps.occupied.lines(target.host));
    let directory = |place: &Place| PathBuf::from(steps.performer.directory(place));
    let written = steps.written.iter().map(|(place, file)| directory(place).join(file)).collect();
    let replaced = steps.replaced(&way, &written)?;
    steps.skipped.splice(0..0, replaced);
    let meta = Meta { confirm_within: None, ..meta.clone() };
    let words =
        |generation: &u32| Some(format!("{generation}, {}", state.summary(*generation).ok()?.head.words()));
    let undone = way.undone().iter().filter_map(words).collect();
    let mut outcome = carry_out(lock, target, steps.change(to, &way.wanted), &meta)?;
    outcome.left.extend(give_back(state, target));
    // lines that stay are those of a generation that is in effect no longer, and do no harm
    let _ = originals::forget(lock, target, &way.undone().iter().copied().collect());
    Ok(Outcome { foreign: foreign(state, target, &written), undone, ..outcome })
}

/// Files that contain something else than a generation in effect applied, of these: group, file, applied, contained.
fn changed(
    state: &State,
    target: Target<'_>,
    is_among: impl Fn(&Path) -> bool,
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
    changed.filter(move |(_, file, ..)| is_among(file))
}

/// What an undo brought back that a generation in effect did not apply: `status` shows it as drift.
fn foreign(state: &State, target: Target<'_>, written: &BTreeSet<PathBuf>) -> Vec<Difference> {
    let restored = changed(state, target, |file| written.contains(file));
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
    /// Groups made by the generations that are undone.
    undone: BTreeSet<Place>,
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
    /// Groups to which a step allows or denies all devices.
    turned: BTreeSet<&'s Place>,
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
            undone: BTreeSet::new(),
            inherited,
            knobs: BTreeMap::new(),
            foreign: BTreeSet::new(),
            partitions: Vec::new(),
        }
    }

    /// Adds what takes the generations back that are undone, and again what earlier undos had to leave.
    fn go_back(&mut self, way: &Way, stayed: &[Remainder]) -> Result<(), Failure> {
        let (state, target) = (self.state, self.target);
        let tried = self.take_up(stayed, way.undone(), &way.wanted, state)?;
        for &generation in way.wanted.iter().filter(|generation| state.is_there(**generation)) {
            let head = state.summary(generation)?.head;
            self.adopted.extend(head.dropped.adopted.iter().filter_map(head.here(target.host)));
        }
        let originals = originals::read(state, target)?;
        let tried_of = tried.iter().map(|stayed| stayed.generation);
        let undone: BTreeSet<u32> = way.undone().iter().copied().chain(tried_of).collect();
        // `Own::made` covers a single one
        for &generation in undone.iter().filter(|_| undone.len() > 1) {
            if let Some(record) = lasting::record(state, target, generation)? {
                let here = record.head.here(target.host);
                self.undone.extend(record.inodes().filter_map(|(place, _)| here(place)));
            }
        }
        for &generation in undone.iter().rev() {
            let record = lasting::record(state, target, generation)?;
            self.renamed = renamed(&record, target);
            if way.undone().contains(&generation) {
                match &record {
                    Some(record) => {
                        self.end_resizing(record, &originals)?;
                        self.back(record)?;
                    }
                    None => self.left.push(unrecorded(generation)),
                }
            }
            let of_it: Vec<&Remainder> =
                tried.iter().filter(|stayed| stayed.generation == generation).collect();
            // a record that was pruned has nothing of its own to add
            self.back_again(generation, &of_it, record.as_ref())?;
        }
        self.renamed.clear();
        Ok(())
    }

    /// Values that were set after what is undone, and go with it: in files that are written, and in groups that are removed.
    fn replaced(&self, way: &Way, written: &BTreeSet<PathBuf>) -> Result<Vec<String>, Failure> {
        let directory = |place: &Place| PathBuf::from(self.performer.directory(place));
        let removed: BTreeSet<PathBuf> = self.removed.iter().map(directory).collect();
        let is_lost = |file: &Path| {
            written.contains(file) || file.parent().is_some_and(|directory| removed.contains(directory))
        };
        let mut lost: Vec<_> = changed(self.state, self.target, is_lost).collect();
        let mut by_hand = BTreeSet::new();
        // records are read once more only where something is lost
        for &generation in way.undone().iter().filter(|_| !lost.is_empty()) {
            let record = lasting::record(self.state, self.target, generation)?;
            for record in record.iter().filter(|record| record.head.kind == Kind::Set) {
                for (step, entry) in record.entries.iter().enumerate() {
                    let Action::Write { place, file, text } = &entry.action else { continue };
                    let actual =
                        record.actual.iter().find(|(of, _)| *of == step).map_or(text, |(_, actual)| actual);
                    by_hand.insert((directory(place).join(file), actual.clone()));
                }
            }
        }
        lost.retain(|(_, file, _, actual)| !by_hand.contains(&(file.clone(), actual.clone())));
        let words = |(_, file, requested, actual): (String, PathBuf, String, String)| {
            let file = file.display();
            format!(
                "{file}: {actual} is gone: the file was changed to it after {requested} was applied, which is undone"
            )
        };
        Ok(lost.into_iter().map(words).collect())
    }

    /// Adds the steps of the generations that come into effect again.
    fn go_on(&mut self, way: &Way) -> Result<(), Failure> {
        let (state, target) = (self.state, self.target);
        if way.again().is_empty() {
            return Ok(());
        }
        // one that is removed again may not be the one that a generation made
        let records = way
            .wanted
            .iter()
            .filter_map(|generation| lasting::record(state, target, *generation).transpose());
        let records: Vec<Record> = records.collect::<Result<_, _>>()?;
        self.remade.extend(remade(&records, state, target)?);
        for &generation in way.again() {
            match lasting::record(state, target, generation)? {
                Some(record) => self.again(&record),
                None => self.left.push(unrecorded(generation)),
            }
        }
        Ok(())
    }

    /// `now`: how many commands that set single values no undo takes back.
    fn report_settled(&mut self, now: u32, wanted: &[u32]) -> Result<(), Failure> {
        let known = wanted.iter().rev().find(|generation| self.state.is_there(**generation));
        let then = known.map(|known| self.state.summary(*known)).transpose()?;
        match now.saturating_sub(then.map_or(0, |known| known.head.settled)) {
            0 => {}
            count => self.left.push(format!(
                "what {count} older `ringfence set` wrote stays: only the last {} of them can be undone",
                self.state.generations_undoable()
            )),
        }
        Ok(())
    }

    fn change(self, to: u32, wanted: &[u32]) -> Change<'t> {
        Change {
            sources: self.sources,
            partitions: self.partitions,
            in_effect: Some(wanted.to_vec()),
            left: self.left,
            replaced: self.skipped,
            stayed: Some(self.stayed),
            ..Change::new(Kind::Undo { to }, self.target, self.entries)
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
        let Some(place) = entry.action.place() else { return Some(entry.clone()) };
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
