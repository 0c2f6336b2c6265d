//! The steps of a generation as they were, for an undo to a state that was undone since; and what of any step needs doing.

use super::*;

impl Steps<'_> {
    /// Adds the steps of a generation as they were.
    pub(super) fn again(&mut self, record: &Record) {
        self.note_units(record);
        let now = record.hierarchies(self.performer.host());
        self.source = None;
        // groups that existed before are not recreated
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

    pub(super) fn add(&mut self, entry: Entry) {
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
        if let Act::WriteDropIn { unit, .. } = &entry.act {
            // a later step of this undo may be about a file that an earlier one wrote
            let earlier = self.entries.iter().any(|earlier| entry.act.covers(&earlier.act));
            let is_read = || self.performer.system().unit_files().is_read(unit);
            if earlier || !is_so(&self.performer, &entry.act) || !is_read() {
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
            let along = settings::changes(place.version, file).iter().copied();
            let files = along.chain([file.as_str()]).map(|file| (place.clone(), file.to_owned()));
            self.written.extend(files);
        }
        self.push(Entry { before: Before::Nothing, ..entry });
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
fn mount_of(act: &Act) -> Option<&Path> {
    match act {
        Act::Mount { path, .. } | Act::Unmount { path, .. } => Some(path),
        _ => None,
    }
}
