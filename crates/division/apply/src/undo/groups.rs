//! Groups that go, come back, or have to stay.

use super::*;

impl Steps<'_> {
    /// Makes a group again that the generation removed, with what it contained.
    pub(super) fn recreate(&mut self, place: &Place, entry: &Entry) {
        let Before::Group { files, owners, devices, controllers } = &entry.before else { return };
        if self.performer.exists(place) && !self.removed.contains(place) {
            return;
        }
        let made = |act: Act| Entry { act, before: Before::Nothing, ..entry.clone() };
        self.made.insert(place.clone());
        self.removed.remove(place);
        self.push(made(Act::CreateGroup { place: place.clone() }));
        if !controllers.is_empty() {
            let names = controllers.clone();
            self.push(made(Act::EnableControllers { place: place.clone(), names }));
        }
        self.push(made(Act::Refill { place: place.clone(), files: files.clone() }));
        if let Some(rules) = devices.clone() {
            self.push(made(Act::RestoreDevices { place: place.clone(), rules: Some(rules) }));
        }
        self.push(made(Act::RestoreOwners { place: place.clone(), owners: owners.clone() }));
    }

    /// Drops what would make a group again that an older generation made, and that is to go after all.
    pub(super) fn leave_removed(&mut self, place: &Place) -> bool {
        if !self.made.remove(place) {
            return false;
        }
        // it may be removed before that, as it is now
        let removal = self
            .entries
            .iter()
            .rposition(|entry| matches!(&entry.act, Act::RemoveGroup { place: removed } if removed == place));
        let kept = self.entries.iter().enumerate().map(|(index, entry)| {
            entry.act.place() != Some(place) || removal.is_some_and(|removal| index <= removal)
        });
        let kept: Vec<bool> = kept.collect();
        let mut kept_sources = kept.iter();
        self.sources.retain(|_| kept_sources.next().copied().unwrap_or(true));
        let mut kept = kept.iter();
        self.entries.retain(|_| kept.next().copied().unwrap_or(true));
        self.removed.insert(place.clone());
        true
    }

    /// A group that the generation made goes, with those below it that it made, unless somebody is in it.
    pub(super) fn remove(&mut self, place: &Place, own: &Own<'_>, entry: &Entry) {
        if self.removed.contains(place) || self.spared.contains(place) {
            return;
        }
        let mut doomed = at_or_below(own.made.range(place..).map(|(place, _)| place), place);
        doomed.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        for place in doomed {
            if self.removed.contains(&place) || self.spared.contains(&place) || self.leave_removed(&place) {
                continue;
            }
            if let Some(left) = self.obstacle(&place) {
                self.tell(left);
                if self.performer.exists(&place) && !self.remade.contains(&place) {
                    self.ours.insert(place.clone());
                }
                self.spared.insert(place);
            } else {
                self.lift_limits(&place, own);
                self.removed.insert(place.clone());
                let source = own.made.get(&place).cloned().flatten();
                let source = std::mem::replace(&mut self.source, source);
                let act = Act::RemoveGroup { place };
                self.push(Entry { act, before: Before::Nothing, ..entry.clone() });
                self.source = source;
            }
        }
    }

    /// Lifts the limits of a group that is removed once its processes went back: one that came in by itself stays, and the
    /// group with it.
    fn lift_limits(&mut self, place: &Place, own: &Own<'_>) {
        if !self.emptied.contains(place) {
            return;
        }
        let is_limit = |entry: &Entry| match &entry.act {
            Act::Write { place: of, file, .. } => of == place && !file.starts_with("cpuset."),
            _ => false,
        };
        for (_, entry) in own.steps.iter().rev().filter(|(_, entry)| is_limit(entry)) {
            self.reset(&Entry { restores: true, ..entry.clone() }, place, own.fresh);
        }
    }

    /// Why a group can't be removed.
    pub(super) fn obstacle(&self, place: &Place) -> Option<String> {
        let emptied = self.emptied.contains(place);
        let directory = self.performer.directory(place);
        let at = self.performer.at(place)?;
        let group = self.performer.host().named(at, &place.path);
        if !self.performer.exists(place) {
            return Some(format!("group '{group}' is gone already ({directory})"));
        }
        if self.remade.contains(place) {
            return Some(self.performer.remade(place));
        }
        let seat = Seat { at, path: place.path.clone() };
        let tasks = self.performer.host().tasks_in(&seat);
        if !tasks.is_empty() && !emptied {
            let some: Vec<String> = tasks.iter().take(5).map(u32::to_string).collect();
            let dots = if tasks.len() > 5 { ", …" } else { "" };
            let count = tasks.len();
            let tasks = if count == 1 { "process" } else { "processes" };
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
}
