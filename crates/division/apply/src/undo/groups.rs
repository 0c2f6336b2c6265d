//! Groups that go, come back, or have to stay.

use settings::Version;

use super::*;
use crate::{
    Again, in_effect,
    inside::service_above,
    made,
    membership::{holds_frozen, stays_elsewhere, to_above},
    performer::name,
};

/// Why a group can't be removed.
enum Obstacle {
    /// Its processes.
    Tasks { group: String, directory: String, tasks: Vec<u32> },
    /// In words.
    Other(String),
}

impl Steps<'_> {
    /// Makes a group again that the generation removed, with what it contained.
    pub(super) fn recreate(&mut self, place: &Place, entry: &Entry) {
        if self.performer.exists(place) && !self.removed.contains(place) {
            if self.reclaim(place) {
                self.refill(place, entry);
            } else if self.is_of_others(place) {
                self.leave_to_others(place);
            }
            return;
        }
        self.made.insert(place.clone());
        self.removed.remove(place);
        self.push(Entry {
            action: Action::CreateGroup { place: place.clone() },
            before: Before::Nothing,
            ..entry.clone()
        });
        self.refill(place, entry);
    }

    /// Gives a group what it contained when it was removed.
    fn refill(&mut self, place: &Place, entry: &Entry) {
        let Before::Group { files, owners, devices, controllers } = &entry.before else { return };
        let made = |action: Action| Entry { action, before: Before::Nothing, ..entry.clone() };
        if !controllers.is_empty() {
            let names = controllers.clone();
            self.push(made(Action::EnableControllers { place: place.clone(), names }));
        }
        self.push(made(Action::Refill { place: place.clone(), files: files.clone() }));
        if let Some(rules) = devices.clone() {
            self.push(made(Action::RestoreDevices { place: place.clone(), rules: Some(rules) }));
        }
        self.push(made(Action::RestoreOwners { place: place.clone(), owners: owners.clone() }));
    }

    /// A group that a later generation made, and that has to stay, is again that of the older one which the later found
    /// removed.
    fn reclaim(&mut self, place: &Place) -> bool {
        if !self.ours.contains(place) || !self.spared.remove(place) {
            return false;
        }
        match self.obstacle(place) {
            Some(Obstacle::Other(left)) => self.left.retain(|other| *other != left),
            Some(Obstacle::Tasks { group, directory, .. }) => self.occupied.leave(&group, &directory),
            None => {}
        }
        let host = self.performer.host();
        let is_of_it = |stayed: &Remainder| stayed.group(host).as_ref() == Some(place);
        let (stayed, others) = std::mem::take(&mut self.stayed).into_iter().partition(is_of_it);
        self.stayed = others;
        let (inherited, others) =
            std::mem::take(&mut self.inherited).into_iter().partition(|((of, _), _)| of == place);
        self.inherited = others;
        self.reclaimed.insert(place.clone(), Reclaimed { from: self.entries.len(), stayed, inherited });
        true
    }

    /// Drops what would give a group that has to stay what an older generation gave it, which is undone, too.
    fn release(&mut self, place: &Place) -> bool {
        let Some(Reclaimed { from, stayed, inherited }) = self.reclaimed.remove(place) else { return false };
        self.keep_entries(|index, entry| index < from || entry.action.place() != Some(place));
        self.stayed.extend(stayed);
        self.inherited.extend(inherited);
        if let Some(obstacle) = self.obstacle(place) {
            self.report_obstacle(obstacle);
        }
        self.spared.insert(place.clone());
        true
    }

    pub(super) fn is_of_others(&self, place: &Place) -> bool {
        // what can't be read is refused where it is needed
        let all = self.inodes.get_or_init(|| made::inodes(self.state, self.target).unwrap_or_default());
        made::is_of_others(place, all, self.target)
    }

    /// Somebody made a directory where a generation's was: nothing of it is changed.
    pub(super) fn leave_to_others(&mut self, place: &Place) {
        if self.spared.insert(place.clone()) {
            let directory = self.performer.directory(place);
            let group = self.performer.at(place).map(|at| self.performer.host().named(at, &place.path));
            let group = group.unwrap_or_default();
            self.report(format!("group '{group}' stays as it is: it was made since ({directory})"));
        }
    }

    fn report_obstacle(&mut self, obstacle: Obstacle) {
        match obstacle {
            Obstacle::Other(left) => self.report(left),
            Obstacle::Tasks { group, directory, tasks } => {
                self.occupied.add(group, directory, tasks);
            }
        }
    }

    fn keep_entries(&mut self, stays: impl Fn(usize, &Entry) -> bool) {
        let stay: Vec<bool> =
            self.entries.iter().enumerate().map(|(index, entry)| stays(index, entry)).collect();
        for reclaimed in self.reclaimed.values_mut() {
            reclaimed.from = stay.iter().take(reclaimed.from).filter(|stays| **stays).count();
        }
        let mut each = stay.iter();
        self.sources.retain(|_| each.next().copied().unwrap_or(true));
        let mut each = stay.iter();
        self.entries.retain(|_| each.next().copied().unwrap_or(true));
    }

    /// Drops what would make a group again that an older generation made, and that is to go after all.
    pub(super) fn leave_removed(&mut self, place: &Place) -> bool {
        if !self.made.remove(place) {
            return false;
        }
        // it may be removed before that, as it is now
        let removal = self.entries.iter().rposition(
            |entry| matches!(&entry.action, Action::RemoveGroup { place: removed } if removed == place),
        );
        self.keep_entries(|index, entry| {
            entry.action.place() != Some(place) || removal.is_some_and(|removal| index <= removal)
        });
        self.removed.insert(place.clone());
        true
    }

    /// Where the directory of a step was made, if somebody renamed it before that step.
    pub(super) fn original(&self, entry: &Entry, place: &Place) -> Option<Place> {
        let host = self.performer.host();
        let whole = entry.group.below(host.base(self.performer.at(place)?).path());
        let depth = place.path.matches('/').count();
        let path = group_path::branch(&whole).find(|path| path.matches('/').count() == depth)?;
        (path != place.path).then(|| Place { path: path.to_owned(), ..place.clone() })
    }

    /// A group that somebody had renamed before it was removed is not made again under either name.
    pub(super) fn not_again(&mut self, place: Place, original: Place) {
        if !self.performer.exists(&original) {
            let (from, to) = (self.performer.directory(&original), self.performer.directory(&place));
            self.lost.push(format!("{from} is not made again: it had been renamed to {to}"));
            self.removed.insert(original);
        }
        self.removed.insert(place);
    }

    /// Groups that are removed so far.
    pub(super) fn removals(&self) -> BTreeSet<Place> {
        let removed = self.entries.iter().filter_map(|entry| match &entry.action {
            Action::RemoveGroup { place } => Some(place.clone()),
            _ => None,
        });
        removed.collect()
    }

    /// Groups of generations that stay in effect and are not there in the end: somebody removed them, and an undo takes back
    /// what generations did, not what others do; also where one that is undone made them again. `removed`: by going back.
    pub(super) fn report_gone(&mut self, stay: &[u32], removed: &BTreeSet<Place>) -> Result<(), Failure> {
        let (mut groups, mut layout) = (in_effect::Groups::new(), None);
        for &generation in stay {
            let Some(record) = lasting::record(self.state, self.target, generation)? else { continue };
            // what is set by hand goes with its group
            if record.head.kind != Kind::Set {
                in_effect::add(&record, self.target, &mut groups);
                layout = Some(record.head).filter(|head| head.layout).or(layout);
            }
        }
        let file = layout.as_ref().and_then(|head| head.file.clone());
        let apply = Again::of(self.state, self.target.host, file).apply();
        if let Some(head) = &layout {
            in_effect::drop_undecided(head, self.target, &mut groups);
        }
        for (group, decided) in groups {
            let is_so = |place: &Place, text: &str| {
                self.performer.content(place, plan::PARTITION).as_deref() == Some(text.trim())
            };
            let partitions = decided
                .writes
                .iter()
                .filter(|((place, file, _), (text, _))| file == plan::PARTITION && is_so(place, text));
            let partitions: Vec<Entry> = partitions
                .map(|((place, file, _), (text, _))| Entry {
                    group: name(&group),
                    action: Action::Write { place: place.clone(), file: file.clone(), text: text.clone() },
                    why: String::new(),
                    restores: false,
                    before: Before::Nothing,
                })
                .collect();
            self.partitions.extend(partitions);
            let (again, gone): (Vec<&Place>, Vec<&Place>) =
                decided.places.iter().partition(|place| removed.contains(*place));
            for place in again {
                if self.made.contains(place) {
                    continue;
                }
                let directory = self.performer.directory(place);
                self.report(format!(
                    "group '{group}' is gone again ({directory}): it had been removed before what is undone made it"
                ));
            }
            // a unit's group comes and goes with its processes, and one above is a group of its own
            let own = name(&group);
            let is_own = |place: &&Place| {
                self.performer
                    .at(place)
                    .is_some_and(|at| own.below(self.performer.host().base(at).path()) == place.path)
            };
            let is_gone = |place: &&Place| {
                let is_systemds =
                    decided.drop_in.is_some() || service_above(self.target.host, place).is_some();
                !is_systemds && !self.made.contains(place) && !self.performer.exists(place)
            };
            let gone = gone.into_iter().filter(is_own).filter(is_gone);
            let gone: Vec<String> = gone.map(|place| self.performer.directory(place)).collect();
            if !gone.is_empty() {
                let gone = gone.join(", ");
                self.report(format!(
                    "group '{group}' is gone ({gone}): somebody removed or renamed it, and an undo does not make it again: {apply}"
                ));
            }
        }
        Ok(())
    }

    /// A group that the generation made goes, with those below it that it made, unless somebody is in it.
    pub(super) fn remove(&mut self, place: &Place, own: &Own<'_>, entry: &Entry) {
        if self.removed.contains(place) || self.spared.contains(place) {
            return;
        }
        let mut doomed = at_or_below(own.made.range(place..).map(|(place, _)| place), place);
        doomed.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        for place in doomed {
            let is_settled = self.removed.contains(&place) || self.spared.contains(&place);
            if is_settled || self.leave_removed(&place) || self.release(&place) {
                continue;
            }
            self.send_above(&place, own, entry);
            if let Some(obstacle) = self.obstacle(&place) {
                self.report_obstacle(obstacle);
                if self.performer.exists(&place) && !self.remade.contains(&place) {
                    self.ours.insert(place.clone());
                }
                self.spared.insert(place);
            } else {
                self.lift_limits(&place, own);
                self.removed.insert(place.clone());
                let source = own.made.get(&place).cloned().flatten();
                let source = std::mem::replace(&mut self.source, source);
                let action = Action::RemoveGroup { place };
                self.push(Entry { action, before: Before::Nothing, ..entry.clone() });
                self.source = source;
            }
        }
    }

    /// v1: if the group stays in another hierarchy, where it was before, its processes leave this directory for the group above.
    fn send_above(&mut self, place: &Place, own: &Own<'_>, entry: &Entry) {
        let goes = |other: &Place| {
            own.made.contains_key(other) || self.undone.contains(other) || self.removed.contains(other)
        };
        let Some(at) = self.performer.at(place).filter(|at| at.version == Version::V1) else { return };
        if self.emptied.contains(place) || self.remade.contains(place) {
            return;
        }
        let host = self.performer.host();
        let tasks = host.tasks_in(&Seat { at, path: place.path.clone() });
        if tasks.is_empty() || !stays_elsewhere(host, place, goes) || holds_frozen(host, place) {
            return;
        }
        let below = host.kernel().descendants(at, &place.path).unwrap_or_default();
        if below.into_iter().any(|path| !self.removed.contains(&Place { path, ..place.clone() })) {
            return;
        }
        let tasks = to_above(self.target, place, &tasks, goes);
        self.emptied.insert(place.clone());
        let action = Action::ReturnTasks { place: place.clone(), tasks };
        self.push(Entry { action, before: Before::Nothing, ..entry.clone() });
    }

    /// Lifts the limits of a group that is removed once its processes went back: one that came in by itself stays,
    /// and the group with it.
    fn lift_limits(&mut self, place: &Place, own: &Own<'_>) {
        if !self.emptied.contains(place) {
            return;
        }
        let is_limit = |entry: &Entry| match &entry.action {
            Action::Write { place: of, file, .. } => of == place && !file.starts_with("cpuset."),
            _ => false,
        };
        for (_, entry) in own.steps.iter().rev().filter(|(_, entry)| is_limit(entry)) {
            self.reset(&Entry { restores: true, ..entry.clone() }, own.fresh);
        }
    }

    /// Why a group can't be removed.
    fn obstacle(&self, place: &Place) -> Option<Obstacle> {
        let emptied = self.emptied.contains(place);
        let directory = self.performer.directory(place);
        let at = self.performer.at(place)?;
        let group = self.performer.host().named(at, &place.path);
        if !self.performer.exists(place) {
            return Some(Obstacle::Other(format!("group '{group}' is gone already ({directory})")));
        }
        if self.remade.contains(place) {
            return Some(Obstacle::Other(self.performer.remade(place)));
        }
        let seat = Seat { at, path: place.path.clone() };
        let tasks = self.performer.host().tasks_in(&seat);
        if !tasks.is_empty() && !emptied {
            return Some(Obstacle::Tasks { group, directory, tasks });
        }
        let below = self.performer.host().kernel().descendants(at, &place.path).unwrap_or_default();
        let other =
            |path: &&String| !self.removed.contains(&Place { path: (*path).clone(), ..place.clone() });
        let other = self.performer.host().named(at, below.iter().find(other)?);
        Some(Obstacle::Other(format!("group '{group}' stays: group '{other}' is below it ({directory})")))
    }
}
