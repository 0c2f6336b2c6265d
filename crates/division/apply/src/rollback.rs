//! Rolls back what a generation changed, from its last step to its first, and goes on with the rest where one thing
//! can't be rolled back. Used on failure, and for a generation whose process died.

use std::{collections::BTreeSet, path::Path};

use plan::{Outsider, Place};
use units::group_path;

use crate::{
    act::{Act, Before, Entry},
    away, inverse,
    journal::Journal,
    membership,
    perform::refill::refill,
    performer::{DEVICES_V1, Performer},
    record::Affinity,
};

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
    performer.takes_back = true;
    let affinities = std::mem::take(&mut performer.affinities);
    let moves = std::mem::take(&mut performer.moved);
    let created = |entry: &Entry| match &entry.act {
        Act::CreateGroup { place } => Some(place.clone()),
        _ => None,
    };
    let mut back = Back {
        performer,
        journal,
        made: entries.iter().take(last + 1).filter_map(created).collect(),
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
    steps.extend(back.verify(&entries[..=last]));
    Remains { left: back.left, steps }
}

struct Back<'b, 't, 'l> {
    performer: &'b mut Performer<'t>,
    journal: &'b mut Journal<'l>,
    /// Groups that were made and are not yet removed.
    made: BTreeSet<Place>,
    left: Vec<String>,
}

impl Back<'_, '_, '_> {
    fn step(&mut self, step: usize, entry: &Entry, threads: &[Affinity], moved: &[&Outsider]) {
        match (&entry.act, &entry.before) {
            (Act::MoveTasks { .. } | Act::ReturnTasks { .. }, _) => {
                self.left.extend(membership::put_back(self.performer, entry, moved));
            }
            (Act::CreateGroup { place }, _) => self.unmake(step, place, entry),
            (act, Before::New) => {
                if let Some(place) = act.place() {
                    self.unmake(step, place, entry);
                }
            }
            (Act::RemoveGroup { place }, Before::Group { files, owners, devices, controllers }) => {
                // it was not removed, or an earlier recovery died after it had made it again
                self.act(step, entry, Act::CreateGroup { place: place.clone() });
                if !controllers.is_empty() {
                    let names = controllers.clone();
                    self.act(step, entry, Act::EnableControllers { place: place.clone(), names });
                }
                self.refill(step, entry, place, files);
                if let Some(rules) = devices.clone() {
                    let rules = Some(rules);
                    self.act(step, entry, Act::RestoreDevices { place: place.clone(), rules });
                }
                let owners = owners.clone();
                self.act(step, entry, Act::RestoreOwners { place: place.clone(), owners });
            }
            (Act::MoveTasksAway { .. } | Act::RestoreAffinities { .. }, _) => {
                self.left.extend(away::put_back(self.performer, entry, threads));
            }
            _ => {
                let inverse = inverse::inverse(entry, &[]);
                self.left.extend(inverse.cannot);
                inverse.acts.into_iter().for_each(|act| self.act(step, entry, act));
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
            let entry = Entry { act: Act::RemoveGroup { place: place.clone() }, ..entry.clone() };
            if self.performer.is_remade(&place) {
                self.left.push(self.performer.remade(&place));
            } else if self.performer.exists(&place)
                && let Err(error) = self.performer.remove(&place, &entry)
            {
                self.left.push(error.to_string());
                if !self.performer.inodes.contains_key(&place) {
                    self.performer.note_made(step, &place, self.journal);
                }
            }
        }
    }

    /// Lets a group that was made again contain what it contained.
    fn refill(&mut self, step: usize, entry: &Entry, place: &Place, files: &[(String, String)]) {
        self.left.extend(refill(self.performer, self.journal, step, entry, (place, files)));
    }

    fn act(&mut self, step: usize, entry: &Entry, act: Act) {
        if is_so(self.performer, &act) {
            if let Act::CreateGroup { place } = &act {
                self.performer.note_made(step, place, self.journal);
            }
            return;
        }
        let Some(entry) = self.performer.for_group_of(entry, act) else { return };
        if let Err(error) = self.performer.perform(step, &entry, self.journal) {
            self.left.push(error.to_string());
        }
    }

    /// Reads everything again that was there before: a write that was taken is no proof. Returns the steps
    /// whose files contain something else now.
    fn verify(&mut self, entries: &[Entry]) -> BTreeSet<usize> {
        let (mut seen, mut steps) = (BTreeSet::new(), BTreeSet::new());
        let enables = entries.iter().any(|entry| matches!(entry.act, Act::EnableControllers { .. }));
        for (step, entry) in entries.iter().enumerate() {
            let (Some(place), Some(files)) = (entry.act.place(), entry.before.files()) else { continue };
            for (file, before) in files {
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

/// Is it as the act would make it? `false` where that is unknown.
pub(crate) fn is_so(performer: &Performer<'_>, act: &Act) -> bool {
    match act {
        Act::Write { place, file, text } => performer.content(place, file).is_some_and(|actual| {
            if settings::is_by_key(file) {
                // weights come back to the digit
                !file.ends_with("weight") && performer.means(place, file, text, &actual)
            } else {
                actual == text.trim_end_matches('\n')
            }
        }),
        Act::CreateGroup { place } => performer.exists(place),
        Act::RemoveGroup { place } => !performer.exists(place),
        Act::DisableControllers { place, names } => {
            let on = performer.content(place, "cgroup.subtree_control").unwrap_or_default();
            !names.iter().any(|name| on.split_whitespace().any(|word| word == name))
        }
        Act::Mount { path, .. } => is_mounted(performer, path),
        Act::Unmount { path, .. } => !is_mounted(performer, path),
        _ => false,
    }
}

/// As the kernel says now: what was known before does not show whether a step came to its end.
fn is_mounted(performer: &Performer<'_>, path: &Path) -> bool {
    let now = performer.host().kernel().hierarchies();
    now.is_ok_and(|all| all.iter().any(|at| at.mount == path))
}
