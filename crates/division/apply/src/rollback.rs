//! Rolls back what a generation changed, from its last step to its first, and goes on with the rest where one thing
//! can't be rolled back. Used on failure, and for a generation whose process died.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Seat;
use plan::{Action, Outsider, Place};
use units::group_path;

use crate::{
    Error, affinity,
    already::is_so,
    entry::{Before, Entry},
    inverse,
    journal::Journal,
    knob,
    lift::lift,
    membership,
    perform::refill::refill,
    performer::{DEVICES_V1, Performer, Unread},
    record::Affinity,
};

/// How often a group is emptied again and its removal tried, as what is inside forks meanwhile.
const MAX_REMOVALS: usize = 4;

/// What a roll-back had to leave.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// In words, each with the reason; empty if all is as before.
    pub left: Vec<String>,
    /// The steps.
    pub steps: BTreeSet<usize>,
}

/// Rolls back the steps `0..=last`, each of which may or may not have been done.
pub(crate) fn roll_back(
    performer: &mut Performer<'_>,
    journal: &mut Journal<'_>,
    entries: &[Entry],
    last: Option<usize>,
) -> Remains {
    let Some(last) = last else { return Remains::default() };
    let affinities = std::mem::take(&mut performer.affinities);
    let moves = std::mem::take(&mut performer.moved);
    let created = |entry: &Entry| match &entry.action {
        Action::CreateGroup { place } => Some(place.clone()),
        _ => None,
    };
    let mut back = Back {
        performer,
        journal,
        made: entries.iter().take(last + 1).filter_map(created).collect(),
        stay: BTreeSet::new(),
        came: BTreeMap::new(),
        inherited: Vec::new(),
        unread: Vec::new(),
        left: Vec::new(),
    };
    let mut steps = BTreeSet::new();
    for step in (0..=last).rev() {
        // a mark that can't be written only means that a broken rollback starts again above this step
        let _ = back.journal.back(step);
        let threads: Vec<Affinity> =
            affinities.iter().filter(|(of, _)| *of == step).map(|(_, affinity)| affinity.clone()).collect();
        let moved: Vec<&Outsider> =
            moves.iter().filter(|(of, _)| *of == step).map(|(_, moved)| moved).collect();
        let before = back.left.len();
        back.step(step, &entries[step], &threads, &moved);
        if back.left.len() > before {
            steps.insert(step);
        }
    }
    back.reload_units();
    let unread = std::mem::take(&mut back.unread);
    for (step, words) in unread.iter().flat_map(|unread| unread.steps(&entries[..=last])) {
        steps.insert(step);
        back.left.push(words);
    }
    steps.extend(back.inherit_sets());
    steps.extend(back.verify(&entries[..=last]));
    Remains { left: back.left, steps }
}

struct Back<'b, 't, 'l> {
    performer: &'b mut Performer<'t>,
    journal: &'b mut Journal<'l>,
    /// Groups that were made and are not yet removed.
    made: BTreeSet<Place>,
    /// Groups that were made and could not be removed so far.
    stay: BTreeSet<Place>,
    /// The processes that were moved into groups that were made.
    came: BTreeMap<Place, Vec<Outsider>>,
    /// Steps that let groups that stay have the CPUs and memory nodes of their parents.
    inherited: Vec<(usize, Entry)>,
    /// Units whose drop-in files systemd did not read.
    unread: Vec<Unread>,
    left: Vec<String>,
}

impl Back<'_, '_, '_> {
    fn step(&mut self, step: usize, entry: &Entry, threads: &[Affinity], moved: &[&Outsider]) {
        match (&entry.action, &entry.before) {
            (Action::MoveTasks { place, .. } | Action::ReturnTasks { place, .. }, _) => {
                self.left.extend(membership::put_back(self.performer, entry, moved));
                if self.made.contains(place) {
                    let came = self.came.entry(place.clone()).or_default();
                    came.extend(moved.iter().map(|one| (*one).clone()));
                }
            }
            (Action::CreateGroup { place }, _) => {
                self.unmake(step, place, entry);
                self.unmake_at_last(place, entry);
            }
            (Action::SetKnob { .. }, _) => self.left.extend(knob::put_back(self.performer, step, entry)),
            (action, Before::New) => {
                if let Some(place) = action.place() {
                    self.unmake(step, place, entry);
                    if self.stay.contains(place) {
                        self.lift(step, entry);
                    }
                }
            }
            (Action::RemoveGroup { place }, Before::Group { files, owners, devices, controllers }) => {
                // it was not removed, or an earlier recovery died after it had made it again
                self.action(step, entry, Action::CreateGroup { place: place.clone() });
                if !controllers.is_empty() {
                    let names = controllers.clone();
                    self.action(step, entry, Action::EnableControllers { place: place.clone(), names });
                }
                self.refill(step, entry, place, files);
                if let Some(rules) = devices.clone() {
                    let rules = Some(rules);
                    self.action(step, entry, Action::RestoreDevices { place: place.clone(), rules });
                }
                let owners = owners.clone();
                self.action(step, entry, Action::RestoreOwners { place: place.clone(), owners });
            }
            (Action::MoveTasksAway { .. } | Action::RestoreAffinities { .. }, _) => {
                self.left.extend(affinity::put_back(self.performer, entry, threads));
            }
            _ => {
                let inverse = inverse::inverse(entry, &[]);
                self.left.extend(inverse.cannot);
                inverse.actions.into_iter().for_each(|action| self.action(step, entry, action));
            }
        }
    }

    /// A group goes at the first of its steps that is taken back: from then on nothing of it may stand in the way of
    /// what others get back. Groups below it were made by later steps, or go with it now.
    fn unmake(&mut self, step: usize, place: &Place, entry: &Entry) {
        let mut doomed = at_or_below(self.made.range(place..), place);
        doomed.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        for place in doomed {
            self.made.remove(&place);
            if self.performer.is_remade(&place) {
                self.left.push(self.performer.remade(&place));
            } else if self.performer.exists(&place) && self.remove(&place, entry).is_err() {
                if !self.performer.inodes.contains_key(&place) {
                    self.performer.note_made(step, &place, self.journal);
                }
                self.stay.insert(place);
            }
        }
    }

    /// A group that could not be removed has lost its limits by now.
    fn unmake_at_last(&mut self, place: &Place, entry: &Entry) {
        if self.stay.contains(place)
            && let Err(error) = self.remove(place, entry)
        {
            self.left.push(self.stays(place).unwrap_or_else(|| error.in_words()));
        }
    }

    /// Removes a group, with what came along with the processes that were moved there moved out again.
    fn remove(&mut self, place: &Place, entry: &Entry) -> Result<(), Error> {
        let entry = Entry { action: Action::RemoveGroup { place: place.clone() }, ..entry.clone() };
        for _ in 1..MAX_REMOVALS {
            let Some(came) = self.came.get(place) else { break };
            membership::empty(self.performer, &entry, place, came)?;
            if self.performer.remove(place, &entry).is_ok() {
                return Ok(());
            }
        }
        self.performer.remove(place, &entry)
    }

    /// Why a group has to stay into which processes were moved; `None` if that is not the cause.
    fn stays(&self, place: &Place) -> Option<String> {
        // it may be a process of somebody else
        membership::returning(self.performer, place, self.came.get(place)?).first()?;
        let at = self.performer.at(place)?;
        let tasks = self.performer.host().tasks_in(&Seat { at, path: place.path.clone() });
        let first = tasks.first()?;
        let (group, directory) =
            (self.performer.host().named(at, &place.path), self.performer.directory(place));
        let count =
            if tasks.len() == 1 { "1 process".to_owned() } else { format!("{} processes", tasks.len()) };
        Some(format!(
            "group '{group}' stays: {count} in {directory}, which fork faster than they can be moved back (kill -STOP {first} stops one; the next apply or undo tries again)"
        ))
    }

    /// Lifts what a step set in a group of this generation that has to stay.
    fn lift(&mut self, step: usize, entry: &Entry) {
        let performer = &self.performer;
        let default = |key: &(usize, String)| performer.fresh.get(key).cloned().flatten();
        let lifted = lift(entry, default, performer.system().maker());
        self.left.extend(lifted.cannot);
        for action in lifted.actions {
            match action {
                Action::InheritSet { .. } => self.inherited.push((step, Entry { action, ..entry.clone() })),
                Action::DisableControllers { ref place, .. } if !self.has_only_ours(place) => {}
                action => self.action(step, entry, action),
            }
        }
    }

    /// Are all groups below it ones that have to stay and have lost their limits?
    fn has_only_ours(&self, place: &Place) -> bool {
        let Some(at) = self.performer.at(place) else { return false };
        let below = self.performer.host().kernel().children(at, &place.path).unwrap_or_default();
        let path = |name: String| group_path::join(&place.path, &name);
        below.into_iter().all(|name| self.stay.contains(&Place { path: path(name), ..place.clone() }))
    }

    /// From the top down: a cpuset takes only what its parent has. Returns the steps that were refused.
    fn inherit_sets(&mut self) -> BTreeSet<usize> {
        let (mut inherited, mut refused) = (std::mem::take(&mut self.inherited), BTreeSet::new());
        inherited.retain(|(_, entry)| entry.action.place().is_some_and(|place| self.performer.exists(place)));
        inherited.sort_by_key(|(_, entry)| entry.action.place().map(|place| place.path.matches('/').count()));
        for (step, entry) in inherited {
            let before = self.left.len();
            self.action(step, &entry, entry.action.clone());
            if self.left.len() > before {
                refused.insert(step);
            }
        }
        refused
    }

    /// Lets a group that was made again contain what it contained.
    fn refill(&mut self, step: usize, entry: &Entry, place: &Place, files: &[(String, String)]) {
        self.left.extend(refill(self.performer, self.journal, step, entry, (place, files)));
    }

    fn reload_units(&mut self) {
        self.unread.extend(self.performer.reload_units().err());
    }

    fn action(&mut self, step: usize, entry: &Entry, action: Action) {
        // whether systemd read a file that is so, the process that wrote it may not have lived to see
        let is_file = matches!(action, Action::WriteDropIn { .. });
        if !is_file {
            self.reload_units();
        }
        if !is_file && is_so(self.performer, &action) {
            if let Action::CreateGroup { place } = &action {
                self.performer.note_made(step, place, self.journal);
            }
            return;
        }
        let Some(entry) = self.performer.for_group_of(entry, action) else { return };
        if let Err(error) = self.performer.perform(step, &entry, self.journal) {
            self.left.push(error.in_words());
        }
    }

    /// Reads everything again that was there before: a write that was taken is no proof. Returns the steps
    /// whose files contain something else now.
    fn verify(&mut self, entries: &[Entry]) -> BTreeSet<usize> {
        let (mut seen, mut steps) = (BTreeSet::new(), BTreeSet::new());
        let enables = entries.iter().any(|entry| matches!(entry.action, Action::EnableControllers { .. }));
        for (step, entry) in entries.iter().enumerate() {
            let Some(place) = entry.action.place() else { continue };
            let lifted = self.lifted(place, entry);
            for (file, before) in lifted.as_slice().iter().chain(entry.before.files().into_iter().flatten()) {
                let now = self.performer.content(place, file);
                if now.is_none() && enables {
                    continue; // it came with its controller, and went with it
                }
                if seen.insert((place.clone(), file.clone()))
                    && !self.is_as_before(place, file, before, now.as_deref())
                {
                    let now = now.unwrap_or_else(|| "nothing".to_owned());
                    let group = &entry.group;
                    self.left.push(format!("{file} of group '{group}' was '{before}' and is '{now}' now"));
                    steps.insert(step);
                }
            }
        }
        steps
    }

    /// What the file of a group that has to stay contained before a step wrote it.
    fn lifted(&self, place: &Place, entry: &Entry) -> Option<(String, String)> {
        let Action::Write { file, .. } = &entry.action else { return None };
        let is_so = entry.before == Before::New && self.stay.contains(place) && self.performer.exists(place);
        let inherits = matches!(file.as_str(), plan::CPUS | "cpuset.mems");
        let default = self.performer.fresh.get(&(place.hierarchy, file.clone())).cloned().flatten();
        Some((file.clone(), default.filter(|_| is_so && !inherits)?))
    }

    /// Lines that were taken out and given back may stand in another order.
    fn is_as_before(&self, place: &Place, file: &str, before: &str, now: Option<&str>) -> bool {
        let in_any_order = settings::is_by_key(file) || file == DEVICES_V1;
        let same = |one: &str, other: &str| self.performer.means(place, file, one, other);
        now.is_some_and(|now| now == before || in_any_order && same(before, now) && same(now, before))
    }
}

/// A group and those below it, out of sorted ones of which the first is not before the group.
pub(crate) fn at_or_below<'p>(sorted: impl Iterator<Item = &'p Place>, above: &Place) -> Vec<Place> {
    let near =
        sorted.take_while(|place| place.hierarchy == above.hierarchy && place.path.starts_with(&above.path));
    near.filter(|place| group_path::is_at_or_below(&place.path, &above.path)).cloned().collect()
}
