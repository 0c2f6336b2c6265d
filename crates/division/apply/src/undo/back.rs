//! What undoes a generation, from its last step to its first.

use super::*;

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

impl Steps<'_> {
    /// Adds what undoes a generation, from its last step to its first.
    pub(super) fn back(&mut self, record: &Record) -> Result<(), Failure> {
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
    pub(super) fn still_there(
        &mut self,
        record: &Record,
        mut steps: Vec<(usize, Entry)>,
    ) -> Vec<(usize, Entry)> {
        let mut gone = BTreeSet::new();
        steps.retain(|(_, entry)| {
            let is_there = |place: &Place| self.performer.exists(place) || self.made.contains(place);
            let stays = entry.action.place().is_none_or(is_there);
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
    pub(super) fn defaults(&self, record: &Record) -> BTreeMap<(usize, String), String> {
        let now = record.hierarchies(self.performer.host());
        let at = |position: usize| Some(now.get(position)?.as_ref()?.id);
        let fresh = record.fresh.iter();
        fresh.filter_map(|((then, file), text)| Some(((at(*then)?, file.clone()), text.clone()))).collect()
    }

    /// Tries again what earlier undos of a generation had to leave.
    pub(super) fn back_again(
        &mut self,
        generation: u32,
        stayed: &[&Remainder],
        record: Option<&Record>,
    ) -> Result<(), Failure> {
        self.remade.extend(remade(record, self.state, self.target)?);
        let fresh = record.map(|record| self.defaults(record)).unwrap_or_default();
        let (host, target) = (self.performer.host(), self.target);
        let mut steps: Vec<(usize, Entry)> =
            stayed.iter().filter_map(|stayed| Some((stayed.step, stayed.here(target)?))).collect();
        // where the removal was refused, what the generation set in the group may be in force still
        if let Some(record) = record {
            let now = record.hierarchies(host);
            let made = |step: &usize| match &record.entries.get(*step)?.action {
                Action::CreateGroup { place } => Some(place),
                _ => None,
            };
            let made: BTreeSet<&Place> = steps.iter().filter_map(|(step, _)| made(step)).collect();
            let is_in = |entry: &Entry| {
                entry.before == Before::New && entry.action.place().is_some_and(|place| made.contains(place))
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
        let made = steps.iter().filter_map(|(step, entry)| match &entry.action {
            Action::CreateGroup { place } => Some((place.clone(), self.source_of(generation, *step, entry))),
            _ => None,
        });
        let made: BTreeMap<Place, Option<Remainder>> = made.collect();
        let turned = steps.iter().filter_map(|(_, entry)| turns_devices(&entry.action)).collect();
        let own = Own { made, steps, fresh: &more.fresh, turned };
        for (step, entry) in steps.iter().rev() {
            self.source = self.source_of(generation, *step, entry);
            let why = format!("undoes step {} of generation {generation}", step + 1);
            self.take_back_step(*step, &Entry { why, restores: true, ..entry.clone() }, &own, more);
        }
        let stay: Vec<Remainder> =
            steps.iter().filter_map(|(step, entry)| self.staying(generation, *step, entry)).collect();
        self.stayed.extend(stay);
    }

    fn take_back_step(&mut self, step: usize, entry: &Entry, own: &Own<'_>, more: &More<'_>) {
        let instead = |action: Action| Entry { action, before: Before::Nothing, ..entry.clone() };
        match (&entry.action, &entry.before) {
            (Action::MoveTasks { place, .. }, _) if self.remade.contains(place) => {}
            (Action::MoveTasks { place, .. }, _) => {
                let moved = more.moved.iter().filter(|(of, _)| *of == step).map(|(_, one)| one.clone());
                let tasks: Vec<Outsider> = moved.collect();
                if !tasks.is_empty() {
                    self.emptied.insert(place.clone());
                }
                self.push(instead(Action::ReturnTasks { place: place.clone(), tasks }));
            }
            (Action::SetKnob { .. }, Before::Knob(_)) => {
                let actual = more.actual.iter().find(|(of, _)| *of == step);
                let then = self.stands(&entry.action);
                self.knob_back(entry, actual.map(|(_, actual)| actual.as_str()));
                self.started_since(entry, own.steps, then.as_deref());
            }
            // as on failure: a new group goes at the first of its steps that is undone
            (Action::CreateGroup { place }, _) => self.remove(place, own, entry),
            // they are in the group elsewhere, and follow it again; a directory that an earlier undo should have removed
            // does not come back
            (Action::ReturnTasks { place, tasks }, _) => {
                if self.performer.exists(place) || self.made.contains(place) {
                    self.push(instead(Action::MoveTasks { place: place.clone(), tasks: tasks.clone() }));
                }
            }
            // an earlier undo should have removed it, and could not
            (Action::RemoveGroup { place }, Before::Group { .. }) if more.stayed.contains(place) => {}
            (Action::RemoveGroup { place }, Before::Group { .. }) => match self.original(entry, place) {
                Some(original) => self.not_again(place.clone(), original),
                None => self.recreate(place, entry),
            },
            (action, Before::New) => {
                let Some(place) = action.place() else { return };
                self.remove(place, own, entry);
                if self.ours.contains(place) && self.spared.contains(place) {
                    self.reset(entry, &more.fresh);
                }
            }
            (action, _)
                if devices_of(action).is_some_and(|place| own.turned.contains(place))
                    && self.keeps_devices(entry) => {}
            _ => {
                let threads = more.affinities.iter().filter(|(of, _)| *of == step);
                let threads: Vec<&Affinity> = threads.map(|(_, affinity)| affinity).collect();
                let inverse = inverse::inverse(entry, &threads);
                self.left.extend(inverse.cannot);
                for action in inverse.actions {
                    if let Some(entry) = self.performer.for_group_of(entry, action) {
                        self.add(entry);
                    }
                }
            }
        }
    }
}

/// And if the step allows or denies everything.
fn turns_devices(action: &Action) -> Option<&Place> {
    let all = matches!(action, Action::Write { text, .. } if text.trim_start().starts_with('a'));
    devices_of(action).filter(|_| all)
}
