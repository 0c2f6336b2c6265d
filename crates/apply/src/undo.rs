//! Brings the state after an earlier generation back: from the records to steps, which are then carried out like any
//! other change and make a generation of their own. Nothing is killed: a group with tasks in it stays, is told, and is
//! taken up again by the next undo.

use std::collections::BTreeSet;

use kernel::{Hierarchy, Seat};
use plan::Place;

use crate::{
    Failure, Lock, Outcome, State, Target,
    execute::{Change, Meta, carry_out},
    inverse,
    perform::Performer,
    record::{Act, Affinity, Before, Entry, Kind, Record, Spot},
    recover::recover,
    rollback::is_so,
    stayed::Stayed,
};

/// All generations, oldest first.
///
/// # Errors
/// [`Failure::State`].
pub fn history(state: &State) -> Result<Vec<Record>, Failure> {
    state.finished()?.into_iter().map(|generation| state.record(generation)).collect()
}

/// Brings back the state after `generation` (0: before the first), or without one the state before the last apply
/// that is in effect. What earlier undos had to leave is tried again, unless a generation that stays in effect has to
/// do with it.
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
    let here = Some(&last).filter(|last| last.head.boot == boot);
    let now: Vec<u32> = here.map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let stayed: &[Stayed] = here.map(|last| last.stayed()).unwrap_or_default();
    let (to, wanted) = match generation {
        None => match now.split_last() {
            Some((_, rest)) => (rest.last().copied().unwrap_or(0), rest.to_vec()),
            None if !stayed.is_empty() => (0, Vec::new()),
            None => return Err(Failure::NothingToUndo),
        },
        Some(0) => (0, Vec::new()),
        Some(asked) => (asked, in_effect_after(state, asked, last.head.generation, &boot)?),
    };
    let common = now.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
    let mut steps = Steps::new(target);
    let tried = steps.take_up(stayed, &wanted, state)?;
    let undone: BTreeSet<u32> =
        now[common..].iter().copied().chain(tried.iter().map(|stayed| stayed.generation)).collect();
    for &generation in undone.iter().rev() {
        if now[common..].contains(&generation) {
            steps.back(&state.record(generation)?);
        }
        let of_it: Vec<&Stayed> = tried.iter().filter(|stayed| stayed.generation == generation).collect();
        steps.back_again(generation, &of_it);
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
        stayed: Some(steps.stayed),
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
    /// Those of them that are there, and others that earlier undos had to leave: ours, should a generation come back.
    ours: BTreeSet<Place>,
    /// Groups whose device rules, or controllers for those below, stay as they are.
    kept: BTreeSet<(Place, Kept)>,
    /// What has to stay.
    stayed: Vec<Stayed>,
    /// Files that are written.
    written: BTreeSet<(Place, String)>,
}

/// What of a group stays for the sake of those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    Devices,
    Controllers,
}

impl<'t> Steps<'t> {
    fn new(target: Target<'t>) -> Steps<'t> {
        let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
        let (entries, left, removed, made, spared) = Default::default();
        let (ours, kept, stayed, written) = Default::default();
        Steps { performer, entries, left, removed, made, spared, ours, kept, stayed, written }
    }

    /// Of what earlier undos had to leave, that which is tried again. What a generation made that comes back is that
    /// generation's again; what one has to do with that came later, and stays in effect, is left as it is.
    fn take_up(&mut self, stayed: &[Stayed], wanted: &[u32], state: &State) -> Result<Vec<Stayed>, Failure> {
        let mut tried = Vec::new();
        for stayed in stayed {
            let Some(entry) = stayed.here(self.performer.host()) else { continue };
            let Some(place) = entry.act.place() else { continue };
            if wanted.contains(&stayed.generation) {
                self.ours.insert(place.clone());
            } else if self.is_used(place, wanted, stayed.generation, state)? {
                self.stayed.push(stayed.clone());
            } else {
                tried.push(stayed.clone());
            }
        }
        Ok(tried)
    }

    /// Does a generation after `since` that stays in effect change the group or one below it?
    fn is_used(&self, place: &Place, wanted: &[u32], since: u32, state: &State) -> Result<bool, Failure> {
        for &later in wanted.iter().filter(|later| **later > since) {
            let record = state.record(later)?;
            let now = self.places(&record);
            let places = record.entries.iter().filter_map(|entry| {
                let place = entry.act.place()?;
                Some(Place { hierarchy: now.get(place.hierarchy)?.as_ref()?.id, ..place.clone() })
            });
            if !at_or_below(&places.collect(), place).is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds what undoes a generation, from its last step to its first.
    fn back(&mut self, record: &Record) {
        let now = self.places(record);
        let steps = record.entries.iter().enumerate();
        let steps: Vec<(usize, Entry)> =
            steps.filter_map(|(step, entry)| Some((step, self.here(&now, entry)?))).collect();
        self.take_back(record.head.generation, &steps, &record.affinities);
    }

    /// Tries again what earlier undos of a generation had to leave.
    fn back_again(&mut self, generation: u32, stayed: &[&Stayed]) {
        let host = self.performer.host();
        let steps: Vec<(usize, Entry)> =
            stayed.iter().filter_map(|stayed| Some((stayed.step, stayed.here(host)?))).collect();
        self.take_back(generation, &steps, &[]);
    }

    fn take_back(&mut self, generation: u32, steps: &[(usize, Entry)], affinities: &[(usize, Affinity)]) {
        let made = steps.iter().filter_map(|(_, entry)| match &entry.act {
            Act::CreateGroup { place } => Some(place.clone()),
            _ => None,
        });
        let made: BTreeSet<Place> = made.collect();
        let turned: BTreeSet<&Place> =
            steps.iter().filter_map(|(_, entry)| turns_devices(&entry.act)).collect();
        for (step, entry) in steps.iter().rev() {
            let why = format!("undoes step {} of generation {generation}", step + 1);
            let entry = Entry { why, ..entry.clone() };
            // as on failure: a new group goes at the first of its steps that is undone
            if let Act::CreateGroup { place } = &entry.act {
                self.remove(&place.clone(), &made, &entry);
                continue;
            }
            if entry.before == Before::New {
                if let Some(place) = entry.act.place().cloned() {
                    self.remove(&place, &made, &entry);
                }
                continue;
            }
            if devices_of(&entry.act).is_some_and(|place| turned.contains(place))
                && self.keeps_devices(&entry)
            {
                continue;
            }
            let threads: Vec<&Affinity> =
                affinities.iter().filter(|(of, _)| of == step).map(|(_, affinity)| affinity).collect();
            let mut inverse = inverse::inverse(&entry, &threads);
            self.left.extend(inverse.cannot.take());
            for act in inverse.acts {
                self.add(Entry { act, before: entry.before.clone(), ..entry.clone() });
            }
        }
        let stay: Vec<Stayed> =
            steps.iter().filter_map(|(step, entry)| self.staying(generation, *step, entry)).collect();
        self.stayed.extend(stay);
    }

    /// A step that could not be undone.
    fn staying(&self, generation: u32, step: usize, entry: &Entry) -> Option<Stayed> {
        let place = entry.act.place()?;
        let stays = match &entry.act {
            Act::CreateGroup { .. } => self.ours.contains(place),
            Act::EnableControllers { .. } => self.kept.contains(&(place.clone(), Kept::Controllers)),
            act => devices_of(act).is_some() && self.kept.contains(&(place.clone(), Kept::Devices)),
        };
        let spot = Spot::of(std::slice::from_ref(self.performer.at(place)?)).pop()?;
        stays.then(|| Stayed { generation, step, spot, entry: entry.clone() })
    }

    /// v1 gives everything back to a group, or takes it, only where no group is below. Where one stays, all device
    /// rules stay as they are, or it would lose what it has.
    fn keeps_devices(&mut self, entry: &Entry) -> bool {
        let Some(place) = entry.act.place().cloned() else { return false };
        if self.spared.contains(&place) || self.removed.contains(&place) {
            return false;
        }
        let Some(at) = self.performer.at(&place) else { return false };
        let below = self.performer.host().kernel().descendants(at, &place.path).unwrap_or_default();
        let stays =
            |path: &&String| !self.removed.contains(&Place { path: (*path).clone(), ..place.clone() });
        let Some(other) = below.iter().find(stays) else { return false };
        let (group, directory) = (&entry.group, self.performer.directory(&place));
        self.tell(format!(
            "the device rules of group '{group}' stay: group '{other}' is below it ({directory})"
        ));
        self.kept.insert((place, Kept::Devices));
        true
    }

    /// Adds the steps of a generation as they were.
    fn again(&mut self, record: &Record) {
        let now = self.places(record);
        for entry in &record.entries {
            let Some(entry) = self.here(&now, entry) else { continue };
            let why = format!("again as in generation {}: {}", record.head.generation, entry.why);
            match &entry.act {
                // it had to stay, and is this generation's again
                Act::CreateGroup { place } if self.ours.contains(place) => {
                    self.spared.remove(place);
                    self.stayed.retain(|stayed| stayed.group(self.performer.host()).as_ref() != Some(place));
                }
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
                if self.performer.exists(&place) {
                    self.ours.insert(place.clone());
                }
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
            self.kept.insert((place.clone(), Kept::Controllers));
            return None;
        }
        Some(entry)
    }
}

/// The v1 group whose device rules a step changes.
fn devices_of(act: &Act) -> Option<&Place> {
    match act {
        Act::Write { place, file, .. } if matches!(file.as_str(), "devices.allow" | "devices.deny") => {
            Some(place)
        }
        _ => None,
    }
}

/// And if the step allows or denies everything.
fn turns_devices(act: &Act) -> Option<&Place> {
    let all = matches!(act, Act::Write { text, .. } if text.trim_start().starts_with('a'));
    devices_of(act).filter(|_| all)
}

/// A group and those below it.
pub(crate) fn at_or_below(all: &BTreeSet<Place>, above: &Place) -> Vec<Place> {
    let near = all
        .range(above..)
        .take_while(|place| place.hierarchy == above.hierarchy && place.path.starts_with(&above.path));
    let rest = |place: &&Place| place.path[above.path.len()..].to_owned();
    near.filter(|place| rest(place).is_empty() || rest(place).starts_with('/')).cloned().collect()
}
