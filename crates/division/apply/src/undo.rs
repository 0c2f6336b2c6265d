//! Brings the state after an earlier generation back: from the records to steps, which are then carried out like any
//! other change and make a generation of their own. Nothing is killed: a group with tasks in it stays, is
//! reported, and is taken up again by the next undo.

mod groups;
mod resets;
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
    carry_out::{Change, carry_out},
    inverse,
    knob::is_ours,
    lift::lift,
    made::{Inodes, remade, renamed},
    occupied::Occupied,
    performer::{DEVICES_V1, Performer},
    record::{Affinity, Head, Kind, Record},
    remainder::Remainder,
    rollback::{at_or_below, is_so},
    spot::Spot,
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
    let here = Some(&last).filter(|last| last.head.boot == boot);
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
            (*requested, in_effect_after(state, *requested, last.head.generation, &boot)?)
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
    let undone: BTreeSet<u32> =
        now[common..].iter().copied().chain(tried.iter().map(|stayed| stayed.generation)).collect();
    for &generation in undone.iter().rev() {
        let record = state.record_in_effect(generation)?;
        steps.renamed = renamed(&record, target);
        if now[common..].contains(&generation) {
            match &record {
                Some(record) => steps.back(record)?,
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
        steps.report_gone(&wanted[..common])?;
    }
    if wanted.len() > common {
        // one that is removed again may not be the one that a generation made
        let records = wanted.iter().filter_map(|generation| state.record_in_effect(*generation).transpose());
        let records: Vec<Record> = records.collect::<Result<_, _>>()?;
        steps.remade.extend(remade(&records, state, target)?);
    }
    for &generation in &wanted[common..] {
        match state.record_in_effect(generation)? {
            Some(record) => steps.again(&record),
            None => steps.left.push(unrecorded(generation)),
        }
    }
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
    let outcome = carry_out(lock, target, change, &meta)?;
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

fn in_effect_after(state: &State, requested: u32, last: u32, boot: &str) -> Result<Vec<u32>, Failure> {
    if !state.finished()?.contains(&requested) {
        return Err(Failure::NoGeneration { requested, last });
    }
    let record = state.summary(requested)?;
    let wanted = record.in_effect().to_vec();
    if record.head.boot != boot && !wanted.is_empty() {
        return Err(Failure::OtherBoot { generation: requested });
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
}

type Inherited = BTreeMap<(Place, String), (Entry, Option<Remainder>)>;

/// What an older generation's claim on a group put aside.
struct Reclaimed {
    /// The number of the first entry that came of it.
    from: usize,
    stayed: Vec<Remainder>,
    inherited: Inherited,
}

/// What of a record is needed beside its steps.
#[derive(Default)]
struct More<'r> {
    affinities: &'r [(usize, Affinity)],
    moved: &'r [(usize, Outsider)],
    /// What the kernel made of what was written.
    actual: &'r [(usize, String)],
    /// By hierarchy as it is counted now.
    fresh: BTreeMap<(usize, String), String>,
    /// Groups that an undo before the generation had to leave.
    stayed: BTreeSet<Place>,
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
        }
    }

    /// Notes which groups of a record are units'.
    fn note_units(&mut self, record: &Record) {
        let now = record.hierarchies(self.performer.host());
        let units = record.entries.iter().chain(&record.decided).filter_map(|entry| match &entry.act {
            Act::WriteDropIn { place, .. } => {
                let hierarchy = now.get(place.hierarchy)?.as_ref()?.id;
                Some(Place { hierarchy, ..place.clone() })
            }
            _ => None,
        });
        self.of_units.extend(units);
    }

    /// Adds what undoes a generation, from its last step to its first.
    fn back(&mut self, record: &Record) -> Result<(), Failure> {
        self.note_units(record);
        self.remade.extend(remade([record], self.state, self.target)?);
        let now = record.hierarchies(self.performer.host());
        let steps = record.entries.iter().enumerate();
        let steps: Vec<(usize, Entry)> =
            steps.filter_map(|(step, entry)| Some((step, self.here(&now, entry)?))).collect();
        let steps = if record.head.kind == Kind::Set { self.still_there(record, steps) } else { steps };
        let fresh = self.defaults(record);
        let host = self.performer.host();
        let (adopted, stayed): (Vec<_>, Vec<_>) = record
            .head
            .stayed_before
            .iter()
            .filter_map(|stayed| Some((stayed.made(host)?, stayed.clone())))
            .partition(|(place, _)| self.adopted.contains(place));
        let stayed = stayed.into_iter().map(|(place, _)| place).collect();
        // they come back, and stay whose they were
        let back = adopted.into_iter().map(|(_, stayed)| stayed);
        let back: Vec<Remainder> = back.filter(|stayed| !self.stayed.contains(stayed)).collect();
        self.stayed.extend(back);
        let (affinities, moved, actual) = (&record.affinities, &record.moved, &record.actual);
        let more = More { affinities, moved, actual, fresh, stayed };
        self.take_back(record.head.generation, &steps, &more);
        Ok(())
    }

    /// A value that somebody set by hand went with a group that was deleted since: nothing of it is left to undo.
    fn still_there(&mut self, record: &Record, mut steps: Vec<(usize, Entry)>) -> Vec<(usize, Entry)> {
        let mut gone = BTreeSet::new();
        steps.retain(|(_, entry)| {
            let is_there = |place: &Place| self.performer.exists(place) || self.made.contains(place);
            let stays = entry.act.place().is_none_or(is_there);
            gone.extend((!stays).then(|| entry.group.clone()));
            stays
        });
        let generation = record.head.generation;
        self.skipped.extend(gone.iter().map(|group| {
            format!(
                "generation {generation} is skipped: group '{group}', in which it set values, was deleted"
            )
        }));
        steps
    }

    /// What files of new groups contain by default, by hierarchy as it is counted now.
    fn defaults(&self, record: &Record) -> BTreeMap<(usize, String), String> {
        let now = record.hierarchies(self.performer.host());
        let at = |position: usize| Some(now.get(position)?.as_ref()?.id);
        let fresh = record.fresh.iter();
        fresh.filter_map(|((then, file), text)| Some(((at(*then)?, file.clone()), text.clone()))).collect()
    }

    /// Tries again what earlier undos of a generation had to leave.
    fn back_again(
        &mut self,
        generation: u32,
        stayed: &[&Remainder],
        record: Option<&Record>,
    ) -> Result<(), Failure> {
        self.remade.extend(remade(record, self.state, self.target)?);
        let fresh = record.map(|record| self.defaults(record)).unwrap_or_default();
        let host = self.performer.host();
        let mut steps: Vec<(usize, Entry)> =
            stayed.iter().filter_map(|stayed| Some((stayed.step, stayed.here(host)?))).collect();
        // where the removal was refused, what the generation set in the group may be in force still
        if let Some(record) = record {
            let now = record.hierarchies(host);
            let made = |step: &usize| match &record.entries.get(*step)?.act {
                Act::CreateGroup { place } => Some(place),
                _ => None,
            };
            let made: BTreeSet<&Place> = steps.iter().filter_map(|(step, _)| made(step)).collect();
            let is_in = |entry: &Entry| {
                entry.before == Before::New && entry.act.place().is_some_and(|place| made.contains(place))
            };
            let set = record.entries.iter().enumerate().filter(|(_, entry)| is_in(entry));
            let set = set.filter_map(|(step, entry)| Some((step, self.here(&now, entry)?)));
            steps.extend(set.collect::<Vec<_>>());
        }
        // refusals are noted in the order of the undo
        steps.sort_by_key(|(step, _)| *step);
        steps.dedup_by_key(|(step, _)| *step);
        let (affinities, moved): (&[_], &[_]) =
            record.map_or((&[], &[]), |record| (&record.affinities, &record.moved));
        self.take_back(generation, &steps, &More { affinities, moved, fresh, ..More::default() });
        Ok(())
    }

    fn take_back(&mut self, generation: u32, steps: &[(usize, Entry)], more: &More<'_>) {
        let made = steps.iter().filter_map(|(step, entry)| match &entry.act {
            Act::CreateGroup { place } => Some((place.clone(), self.source_of(generation, *step, entry))),
            _ => None,
        });
        let made: BTreeMap<Place, Option<Remainder>> = made.collect();
        let own = Own { made, steps, fresh: &more.fresh };
        let turned: BTreeSet<&Place> =
            steps.iter().filter_map(|(_, entry)| turns_devices(&entry.act)).collect();
        for (step, entry) in steps.iter().rev() {
            self.source = self.source_of(generation, *step, entry);
            let why = format!("undoes step {} of generation {generation}", step + 1);
            let entry = Entry { why, restores: true, ..entry.clone() };
            if let Act::MoveTasks { place, .. } = &entry.act {
                if self.remade.contains(place) {
                    continue;
                }
                let moved = more.moved.iter().filter(|(of, _)| of == step).map(|(_, one)| one.clone());
                let tasks: Vec<Outsider> = moved.collect();
                if !tasks.is_empty() {
                    self.emptied.insert(place.clone());
                }
                let act = Act::ReturnTasks { place: place.clone(), tasks };
                self.push(Entry { act, before: Before::Nothing, ..entry });
                continue;
            }
            if let (Act::SetKnob { .. }, Before::Knob(_)) = (&entry.act, &entry.before) {
                let actual = more.actual.iter().find(|(of, _)| of == step);
                self.knob_back(&entry, actual.map(|(_, actual)| actual.as_str()));
                self.started_since(&entry, steps);
                continue;
            }
            // as on failure: a new group goes at the first of its steps that is undone
            if let Act::CreateGroup { place } = &entry.act {
                self.remove(&place.clone(), &own, &entry);
                continue;
            }
            if let Act::ReturnTasks { place, tasks } = &entry.act {
                // a directory that an earlier undo should have removed does not come back
                if !self.performer.exists(place) && !self.made.contains(place) {
                    continue;
                }
                // they are in the group elsewhere, and follow it again
                let act = Act::MoveTasks { place: place.clone(), tasks: tasks.clone() };
                self.push(Entry { act, before: Before::Nothing, ..entry });
                continue;
            }
            if let (Act::RemoveGroup { place }, Before::Group { .. }) = (&entry.act, &entry.before) {
                // an earlier undo should have removed it, and could not
                if more.stayed.contains(place) {
                    continue;
                }
                if let Some(original) = self.original(&entry, place) {
                    self.not_again(place.clone(), original);
                    continue;
                }
                self.recreate(place, &entry);
                continue;
            }
            if entry.before == Before::New {
                if let Some(place) = entry.act.place().cloned() {
                    self.remove(&place, &own, &entry);
                    if self.ours.contains(&place) && self.spared.contains(&place) {
                        self.reset(&entry, &more.fresh);
                    }
                }
                continue;
            }
            if devices_of(&entry.act).is_some_and(|place| turned.contains(place))
                && self.keeps_devices(&entry)
            {
                continue;
            }
            let threads: Vec<&Affinity> =
                more.affinities.iter().filter(|(of, _)| of == step).map(|(_, affinity)| affinity).collect();
            let mut inverse = inverse::inverse(&entry, &threads);
            self.left.extend(inverse.cannot.take());
            for act in inverse.acts {
                if let Some(entry) = self.performer.for_group_of(&entry, act) {
                    self.add(entry);
                }
            }
        }
        let stay: Vec<Remainder> =
            steps.iter().filter_map(|(step, entry)| self.staying(generation, *step, entry)).collect();
        self.stayed.extend(stay);
    }

    fn source_of(&self, generation: u32, step: usize, entry: &Entry) -> Option<Remainder> {
        let spot = Spot::of_act(&entry.act, &self.performer.hierarchies)?;
        Some(Remainder { generation, step, spot, entry: entry.clone() })
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.sources.push(self.source.clone());
    }

    /// Adds the steps of a generation as they were.
    fn again(&mut self, record: &Record) {
        self.note_units(record);
        let now = record.hierarchies(self.performer.host());
        self.source = None;
        // a group that was there already is nobody's to make again
        let decided = record.decided.iter().filter(|entry| !matches!(entry.act, Act::CreateGroup { .. }));
        for entry in record.entries.iter().chain(decided) {
            let Some(entry) = self.here(&now, entry) else { continue };
            let why = format!("again as in generation {}: {}", record.head.generation, entry.why);
            match &entry.act {
                // it had to stay, and is this generation's again
                Act::CreateGroup { place } if self.ours.contains(place) => {
                    self.spared.remove(place);
                    self.stayed.retain(|stayed| stayed.group(self.performer.host()).as_ref() != Some(place));
                }
                Act::CreateGroup { place }
                    if self.performer.exists(place)
                        && !self.removed.contains(place)
                        && self.is_of_others(place) =>
                {
                    self.leave_to_others(place);
                }
                Act::CreateGroup { place } => {
                    self.made.insert(place.clone());
                    self.push(Entry { why, ..entry });
                }
                Act::RemoveGroup { place } if self.remade.contains(place) => self.leave_to_others(place),
                Act::RemoveGroup { place } if self.performer.exists(place) => {
                    let place = place.clone();
                    self.add(Entry { why, ..entry });
                    self.made.remove(&place);
                    self.removed.insert(place);
                }
                _ => self.add(Entry { why, ..entry }),
            }
        }
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

    fn add(&mut self, entry: Entry) {
        if let Act::SetKnob { instance, text, .. } = &entry.act {
            let touched = self.knobs.insert(instance.clone(), text.clone()).is_some();
            if touched || !is_so(&self.performer, &entry.act) {
                self.push(Entry { before: Before::Nothing, ..entry });
            }
            return;
        }
        let Some(place) = entry.act.place().cloned() else {
            // what is mounted, or is not, is as this undo leaves it only if no earlier step of it is about that
            let is_first = !self.entries.iter().any(|earlier| mount_of(&earlier.act) == mount_of(&entry.act));
            if is_first && is_so(&self.performer, &entry.act) {
                return;
            }
            return self.push(entry);
        };
        if let Act::WriteDropIn { .. } = &entry.act {
            // a later step of this undo may be about a file that an earlier one wrote
            let earlier = self.entries.iter().any(|earlier| entry.act.covers(&earlier.act));
            if earlier || !is_so(&self.performer, &entry.act) {
                self.push(Entry { before: Before::Nothing, ..entry });
            }
            return;
        }
        if self.removed.contains(&place) && !self.made.contains(&place) || self.spared.contains(&place) {
            return;
        }
        let exists = self.performer.exists(&place);
        // a unit's group comes and goes with its processes
        if !exists && self.of_units.contains(&place) {
            return;
        }
        if !exists && !self.made.contains(&place) {
            let directory = self.performer.directory(&place);
            self.report(format!("group '{}' is gone already ({directory})", entry.group));
            return;
        }
        // a slice's list goes with its controllers
        if let Act::Write { place, file, .. } = &entry.act
            && is_reserve(place, file)
            && self.performer.content(place, file).is_none()
        {
            return;
        }
        if let Act::Write { place, file, text } = &entry.act
            && self.is_set_by_others(place, file, text)
        {
            return;
        }
        let entry = match self.still_needed(entry) {
            Some(entry) => entry,
            None => return,
        };
        // a file that an earlier step of this undo writes is not as it is now when this one comes
        let touched = match &entry.act {
            Act::Write { place, file, .. } => self.written.contains(&(place.clone(), file.clone())),
            Act::DisableControllers { place, .. } => self.entries.iter().any(
                |earlier| matches!(&earlier.act, Act::EnableControllers { place: other, .. } if other == place),
            ),
            _ => false,
        };
        if exists && !touched && is_so(&self.performer, &entry.act) {
            return;
        }
        if let Act::Write { place, file, .. } = &entry.act {
            self.written.insert((place.clone(), file.clone()));
        }
        self.push(Entry { before: Before::Nothing, ..entry });
    }

    /// A knob goes back where what the generation wrote is still there.
    fn knob_back(&mut self, entry: &Entry, actual: Option<&str>) {
        let (Act::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.act, &entry.before)
        else {
            return;
        };
        let planned = self.knobs.get(instance).cloned();
        let now = planned.or_else(|| self.performer.system().knobs().read(instance).ok());
        // what is gone needs nothing
        let (Some(row), Some(now)) = (knobs::find(knob), now) else { return };
        // the end of a partition resets the CPUs of threads
        let is_reset = row.encoding == Encoding::Affinity;
        if row.same(&now, before) && !is_reset {
            return;
        }
        let texts: Vec<&str> = [text.as_str()].into_iter().chain(actual).collect();
        if !is_ours(row, before, &texts, &now) {
            let now = row.plain(&now);
            self.skipped
                .push(format!("{instance} stays {now}: it was changed to that since it was set to {text}"));
            return;
        }
        let text = row.plain(before).to_owned();
        self.knobs.insert(instance.clone(), text.clone());
        let act = Act::SetKnob { knob: knob.clone(), instance: instance.clone(), text };
        self.push(Entry { act, before: Before::Nothing, ..entry.clone() });
    }

    /// Threads that kthreadd started since have the CPUs that it had then: they go back with it.
    fn started_since(&mut self, entry: &Entry, steps: &[(usize, Entry)]) {
        let (Act::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.act, &entry.before)
        else {
            return;
        };
        let is_first = matches!(instance, Instance::Thread { thread, .. } if *thread == system::KTHREADD);
        let Some(row) = knobs::find(knob).filter(|_| is_first) else { return };
        let back = row.plain(before);
        if self.knobs.get(instance).is_none_or(|planned| planned != back) {
            return;
        }
        let of = |entry: &Entry| match &entry.act {
            Act::SetKnob { instance, .. } => Some(instance.clone()),
            _ => None,
        };
        let known: BTreeSet<Instance> = steps.iter().filter_map(|(_, entry)| of(entry)).collect();
        for seen in self.performer.system().knobs().look(row) {
            if seen.fixed || known.contains(&seen.instance) || !row.same(&seen.text, text) {
                continue;
            }
            let act = Act::SetKnob { knob: knob.clone(), instance: seen.instance, text: back.to_owned() };
            self.push(Entry { act, before: Before::Nothing, ..entry.clone() });
        }
    }

    /// Does systemd set a file of a unit to what somebody set by it, once it reads that our drop-in file is gone?
    fn is_set_by_others(&self, place: &Place, file: &str, text: &str) -> bool {
        let of_unit = self.entries.iter().rev().find_map(|entry| match &entry.act {
            Act::WriteDropIn { place: of, unit, text, .. } if of == place => Some((unit, text)),
            _ => None,
        });
        let Some((unit, None)) = of_unit else { return false };
        let lines = settings::unit_lines(file, text).unwrap_or_default();
        let mut properties = lines.iter().filter_map(|line| Some(line.split_once('=')?.0));
        properties.any(|name| self.target.system.unit_files().is_set(unit, name))
    }
}

/// Where a step mounts or unmounts a hierarchy.
fn mount_of(act: &Act) -> Option<&std::path::Path> {
    match act {
        Act::Mount { path, .. } | Act::Unmount { path, .. } => Some(path),
        _ => None,
    }
}

/// And if the step allows or denies everything.
fn turns_devices(act: &Act) -> Option<&Place> {
    let all = matches!(act, Act::Write { text, .. } if text.trim_start().starts_with('a'));
    devices_of(act).filter(|_| all)
}
