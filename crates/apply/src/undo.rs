//! Brings the state after an earlier generation back: from the records to steps, which are then carried out like any
//! other change and make a generation of their own. Nothing is killed: a group with tasks in it stays, and is told.

use std::collections::BTreeSet;

use kernel::{Hierarchy, Seat};
use plan::Place;

use crate::{
    Failure, Lock, Outcome, State, Target,
    execute::{Change, Meta, carry_out},
    inverse,
    perform::Performer,
    record::{Act, Affinity, Before, Entry, Kind, Record},
    recover::recover,
    rollback::is_so,
};

/// All generations, oldest first.
///
/// # Errors
/// [`Failure::State`].
pub fn history(state: &State) -> Result<Vec<Record>, Failure> {
    state.finished()?.into_iter().map(|generation| state.record(generation)).collect()
}

/// Brings back the state after `generation` (0: before the first), or without one the state before the last apply
/// that is in effect.
///
/// # Errors
/// As [`crate::execute`]; [`Failure::NoGeneration`], [`Failure::NothingToUndo`], [`Failure::OtherBoot`].
pub fn undo(
    lock: &Lock,
    target: Target<'_>,
    generation: Option<u32>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    recover(lock, target)?;
    undo_recovered(lock, target, generation, meta)
}

pub(crate) fn undo_recovered(
    lock: &Lock,
    target: Target<'_>,
    generation: Option<u32>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    let state = lock.state();
    let last = state.last()?.ok_or(Failure::NothingToUndo)?;
    let boot = target.system.boot();
    let now: Vec<u32> = if last.head.boot == boot { last.in_effect().to_vec() } else { Vec::new() };
    let (to, wanted) = match generation {
        None => {
            let (_, rest) = now.split_last().ok_or(Failure::NothingToUndo)?;
            (rest.last().copied().unwrap_or(0), rest.to_vec())
        }
        Some(0) => (0, Vec::new()),
        Some(asked) => (asked, in_effect_after(state, asked, last.head.generation, &boot)?),
    };
    let common = now.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
    let mut steps = Steps::new(target);
    for &generation in now[common..].iter().rev() {
        steps.back(&state.record(generation)?);
    }
    for &generation in &wanted[common..] {
        steps.again(&state.record(generation)?);
    }
    let change = Change {
        kind: Kind::Undo { to },
        entries: steps.entries,
        planned: Vec::new(),
        hierarchies: target.host.hierarchies().iter().cloned().map(Some).collect(),
        in_effect: Some(wanted),
        left: steps.left,
    };
    let meta = Meta { confirm_within: None, ..meta.clone() };
    carry_out(lock, target, change, &meta)
}

fn in_effect_after(state: &State, asked: u32, last: u32, boot: &str) -> Result<Vec<u32>, Failure> {
    if !state.finished()?.contains(&asked) {
        return Err(Failure::NoGeneration { asked, last });
    }
    let record = state.summary(asked)?;
    let wanted = record.in_effect().to_vec();
    if record.head.boot != boot && !wanted.is_empty() {
        return Err(Failure::OtherBoot { generation: asked });
    }
    Ok(wanted)
}

/// The steps of an undo, as far as they are there.
struct Steps<'t> {
    performer: Performer<'t>,
    entries: Vec<Entry>,
    left: Vec<String>,
    /// Groups that will be gone.
    removed: BTreeSet<Place>,
    /// Groups that will be made again.
    made: BTreeSet<Place>,
    /// Groups that stay although they were to go, or are gone: nothing of them is changed.
    spared: BTreeSet<Place>,
    /// Files that are written.
    written: BTreeSet<(Place, String)>,
}

impl<'t> Steps<'t> {
    fn new(target: Target<'t>) -> Steps<'t> {
        let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
        let (entries, left, removed, made, spared, written) = Default::default();
        Steps { performer, entries, left, removed, made, spared, written }
    }

    /// Adds what undoes a generation, from its last step to its first.
    fn back(&mut self, record: &Record) {
        let now = self.places(record);
        let made = record.entries.iter().filter_map(|entry| match &entry.act {
            Act::CreateGroup { place } => {
                Some(Place { hierarchy: now.get(place.hierarchy)?.as_ref()?.id, ..place.clone() })
            }
            _ => None,
        });
        let made: BTreeSet<Place> = made.collect();
        for (step, entry) in record.entries.iter().enumerate().rev() {
            let Some(entry) = self.here(&now, entry) else { continue };
            let why = format!("undoes step {} of generation {}", step + 1, record.head.generation);
            let entry = Entry { why, ..entry };
            // as on failure: a new group goes at the first of its steps that is undone
            if let (Act::CreateGroup { place }, _) = (&entry.act, &entry.before) {
                self.remove(&place.clone(), &made, &entry);
                continue;
            }
            if entry.before == Before::New {
                if let Some(place) = entry.act.place().cloned() {
                    self.remove(&place, &made, &entry);
                }
                continue;
            }
            let threads: Vec<&Affinity> = record
                .affinities
                .iter()
                .filter(|(of, _)| *of == step)
                .map(|(_, affinity)| affinity)
                .collect();
            let mut inverse = inverse::inverse(&entry, &threads);
            self.left.extend(inverse.cannot.take());
            for act in inverse.acts {
                self.add(Entry { act, before: entry.before.clone(), ..entry.clone() });
            }
        }
    }

    /// Adds the steps of a generation as they were.
    fn again(&mut self, record: &Record) {
        let now = self.places(record);
        for entry in &record.entries {
            let Some(entry) = self.here(&now, entry) else { continue };
            let why = format!("again as in generation {}: {}", record.head.generation, entry.why);
            match &entry.act {
                Act::CreateGroup { place } => {
                    self.made.insert(place.clone());
                    self.entries.push(Entry { why, ..entry });
                }
                _ => self.add(Entry { why, ..entry }),
            }
        }
    }

    /// The hierarchies that a record counts, as they are now.
    fn places(&self, record: &Record) -> Vec<Option<Hierarchy>> {
        let host = self.performer.host();
        let mounted = record.entries.iter().filter_map(|entry| match &entry.act {
            Act::Mount { path, .. } => Some(host.hierarchies().iter().find(|at| at.mount == *path).cloned()),
            _ => None,
        });
        record.head.hierarchies.iter().map(|spot| spot.find(host)).chain(mounted).collect()
    }

    /// The entry with its hierarchy counted as it is now.
    fn here(&mut self, now: &[Option<Hierarchy>], entry: &Entry) -> Option<Entry> {
        let Some(place) = entry.act.place() else { return Some(entry.clone()) };
        match now.get(place.hierarchy) {
            Some(Some(at)) => Some(Entry { act: entry.act.clone().at_hierarchy(at.id), ..entry.clone() }),
            _ => {
                self.tell(format!("group '{}': its hierarchy is no longer mounted", entry.group));
                None
            }
        }
    }

    fn tell(&mut self, left: String) {
        if !self.left.contains(&left) {
            self.left.push(left);
        }
    }

    /// A group that the generation made goes, with those below it that it made, unless somebody is in it.
    fn remove(&mut self, place: &Place, made: &BTreeSet<Place>, entry: &Entry) {
        if self.removed.contains(place) || self.spared.contains(place) {
            return;
        }
        let mut doomed = at_or_below(made, place);
        doomed.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        for place in doomed {
            if self.removed.contains(&place) || self.spared.contains(&place) {
                continue;
            }
            if let Some(left) = self.obstacle(&place, &entry.group) {
                self.tell(left);
                self.spared.insert(place);
            } else {
                self.removed.insert(place.clone());
                let act = Act::RemoveGroup { place };
                self.entries.push(Entry { act, before: Before::Nothing, ..entry.clone() });
            }
        }
    }

    /// Why a group can't be removed.
    fn obstacle(&self, place: &Place, group: &str) -> Option<String> {
        let directory = self.performer.directory(place);
        let at = self.performer.at(place)?;
        if !self.performer.exists(place) {
            return Some(format!("group '{group}' is gone already ({directory})"));
        }
        let seat = Seat { at, path: place.path.clone() };
        let tasks = self.performer.host().tasks_in(&seat);
        if !tasks.is_empty() {
            let some: Vec<String> = tasks.iter().take(5).map(u32::to_string).collect();
            let dots = if tasks.len() > 5 { ", …" } else { "" };
            let count = tasks.len();
            let tasks = if count == 1 { "task" } else { "tasks" };
            return Some(format!(
                "group '{group}' stays: {count} {tasks} in {directory} ({}{dots})",
                some.join(", ")
            ));
        }
        let below = self.performer.host().kernel().descendants(at, &place.path).unwrap_or_default();
        let other =
            |path: &&String| !self.removed.contains(&Place { path: (*path).clone(), ..place.clone() });
        let other = below.iter().find(other)?;
        Some(format!("group '{group}' stays: group '{other}' is below it ({directory})"))
    }

    fn add(&mut self, entry: Entry) {
        let Some(place) = entry.act.place().cloned() else { return self.entries.push(entry) };
        if self.removed.contains(&place) && !self.made.contains(&place) || self.spared.contains(&place) {
            return;
        }
        let exists = self.performer.exists(&place);
        if !exists && !self.made.contains(&place) {
            let directory = self.performer.directory(&place);
            self.tell(format!("group '{}' is gone already ({directory})", entry.group));
            return;
        }
        let entry = match self.still_needed(entry) {
            Some(entry) => entry,
            None => return,
        };
        // a file that an earlier step of this undo writes is not as it is now when this one comes
        let touched = match &entry.act {
            Act::Write { place, file, .. } => self.written.contains(&(place.clone(), file.clone())),
            _ => false,
        };
        if exists && !touched && is_so(&self.performer, &entry.act) {
            return;
        }
        if let Act::Write { place, file, .. } = &entry.act {
            self.written.insert((place.clone(), file.clone()));
        }
        self.entries.push(Entry { before: Before::Nothing, ..entry });
    }

    /// Controllers that groups made since then use stay on.
    fn still_needed(&mut self, entry: Entry) -> Option<Entry> {
        let (Act::DisableControllers { place, names }, Before::Controllers { children: were, .. }) =
            (&entry.act, &entry.before)
        else {
            return Some(entry);
        };
        let at = self.performer.at(place)?;
        let now = self.performer.host().kernel().children(at, &place.path).unwrap_or_default();
        let path = |name: &str| {
            if place.path.is_empty() { name.to_owned() } else { format!("{}/{name}", place.path) }
        };
        let stays = |name: &&String| !self.removed.contains(&Place { path: path(name), ..place.clone() });
        let new: Vec<&String> = now.iter().filter(|name| !were.contains(name)).filter(stays).collect();
        if let Some(first) = new.first() {
            let (names, directory) = (names.join(", "), self.performer.directory(place));
            let left = format!("{names} stays enabled in {directory}: group '{first}' may use it");
            self.tell(left);
            return None;
        }
        Some(entry)
    }
}

/// A group and those below it.
pub(crate) fn at_or_below(all: &BTreeSet<Place>, above: &Place) -> Vec<Place> {
    let near = all
        .range(above..)
        .take_while(|place| place.hierarchy == above.hierarchy && place.path.starts_with(&above.path));
    let rest = |place: &&Place| place.path[above.path.len()..].to_owned();
    near.filter(|place| rest(place).is_empty() || rest(place).starts_with('/')).cloned().collect()
}
