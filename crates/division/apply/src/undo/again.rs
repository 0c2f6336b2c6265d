//! The steps of a generation as they were, for an undo to a state that was undone since; and what of any step needs doing.

use super::*;

impl Steps<'_> {
    /// Adds the steps of a generation as they were.
    pub(super) fn again(&mut self, record: &Record) {
        self.note_units(record);
        let now = record.hierarchies(self.performer.host());
        self.source = None;
        // groups that existed before are not recreated
        let decided =
            record.decided.iter().filter(|entry| !matches!(entry.action, Action::CreateGroup { .. }));
        for entry in record.entries.iter().chain(decided) {
            let Some(entry) = self.here(&now, entry) else { continue };
            let why = format!("again as in generation {}: {}", record.head.generation, entry.why);
            match &entry.action {
                // it had to stay, and is this generation's again
                Action::CreateGroup { place } if self.ours.contains(place) => {
                    self.spared.remove(place);
                    self.stayed.retain(|stayed| stayed.group(self.performer.host()).as_ref() != Some(place));
                }
                Action::CreateGroup { place }
                    if self.performer.exists(place)
                        && !self.removed.contains(place)
                        && self.is_of_others(place) =>
                {
                    self.leave_to_others(place);
                }
                Action::CreateGroup { place } => {
                    self.made.insert(place.clone());
                    self.push(Entry { why, ..entry });
                }
                Action::RemoveGroup { place } if self.remade.contains(place) => self.leave_to_others(place),
                Action::RemoveGroup { place } if self.performer.exists(place) => {
                    let place = place.clone();
                    self.add(Entry { why, ..entry });
                    self.made.remove(&place);
                    self.removed.insert(place);
                }
                _ => self.add(Entry { why, ..entry }),
            }
        }
    }

    pub(super) fn add(&mut self, entry: Entry) {
        if let Action::SetKnob { instance, text, .. } = &entry.action {
            let touched = self.knobs.insert(instance.clone(), text.clone()).is_some();
            if touched || !is_so(&self.performer, &entry.action) {
                self.push(Entry { before: Before::Nothing, ..entry });
            }
            return;
        }
        let Some(place) = entry.action.place().cloned() else {
            // what is mounted, or is not, is as this undo leaves it only if no earlier step of it is about that
            let is_first =
                !self.entries.iter().any(|earlier| mount_of(&earlier.action) == mount_of(&entry.action));
            if is_first && is_so(&self.performer, &entry.action) {
                return;
            }
            return self.push(entry);
        };
        if let Action::WriteDropIn { unit, .. } = &entry.action {
            // a later step of this undo may be about a file that an earlier one wrote
            let earlier = self.entries.iter().any(|earlier| covers(&entry.action, &earlier.action));
            let is_read = || self.performer.system().unit_files().is_read(unit);
            if earlier || !is_so(&self.performer, &entry.action) || !is_read() {
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
        if let Action::Write { place, file, .. } = &entry.action
            && is_reserve(place, file)
            && self.performer.content(place, file).is_none()
        {
            return;
        }
        if let Action::Write { place, file, text } = &entry.action
            && self.is_set_by_others(place, file, text)
        {
            return;
        }
        let entry = match self.still_needed(entry) {
            Some(entry) => entry,
            None => return,
        };
        // a file that an earlier step of this undo writes is not as it is now when this one comes
        let touched = match &entry.action {
            Action::Write { place, file, .. } => self.written.contains(&(place.clone(), file.clone())),
            Action::DisableControllers { place, .. } => self.entries.iter().any(
                |earlier| matches!(&earlier.action, Action::EnableControllers { place: other, .. } if other == place),
            ),
            _ => false,
        };
        if exists && !touched && is_so(&self.performer, &entry.action) {
            return;
        }
        if let Action::Write { place, file, .. } = &entry.action {
            let along = settings::changes(place.version, file).iter().copied();
            let files = along.chain([file.as_str()]).map(|file| (place.clone(), file.to_owned()));
            self.written.extend(files);
        }
        self.push(Entry { before: Before::Nothing, ..entry });
    }

    /// Does systemd set a file of a unit to what somebody set by it, once it reads that our drop-in file is gone?
    fn is_set_by_others(&self, place: &Place, file: &str, text: &str) -> bool {
        let of_unit = self.entries.iter().rev().find_map(|entry| match &entry.action {
            Action::WriteDropIn { place: of, unit, text, .. } if of == place => Some((unit, text)),
            _ => None,
        });
        let Some((unit, None)) = of_unit else { return false };
        let lines = settings::unit_lines(file, text).unwrap_or_default();
        let mut properties = lines.iter().filter_map(|line| Some(line.split_once('=')?.0));
        properties.any(|name| self.target.system.unit_files().is_set(unit, name))
    }
}

/// Where a step mounts or unmounts a hierarchy.
fn mount_of(action: &Action) -> Option<&Path> {
    match action {
        Action::Mount { path, .. } | Action::Unmount { path, .. } => Some(path),
        _ => None,
    }
}
