//! What the generations in effect decide about each group, as it adds up over them. Knows nothing of what the kernel
//! has.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use plan::{Action, Ownership, Place, is_reserve, target_key};

use crate::{
    Target,
    record::{Head, Record},
};

/// What was decided about one group.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// The last generation that decided anything.
    pub generation: u32,
    pub places: BTreeSet<Place>,
    /// By place, file and, in a file of lines by device, the line's first word; with the content after the write.
    pub writes: BTreeMap<(Place, String, String), (String, Option<String>)>,
    pub owners: BTreeMap<Place, Ownership>,
    /// The drop-in file of the unit that it is: the unit's group, the unit, the file and what it says.
    pub drop_in: Option<DropIn>,
    /// Device rules in the order of their writes, each with v1's file.
    pub rules: BTreeMap<Place, Vec<(String, String)>>,
    /// What undos had to leave, with the generation that made it.
    pub stayed: BTreeMap<Place, u32>,
    /// Files that undos could not restore, with what they contained before the generation.
    pub not_restored: BTreeMap<(Place, String), (String, u32)>,
}

/// A unit's drop-in file.
#[derive(Debug)]
pub(crate) struct DropIn {
    pub place: Place,
    pub unit: String,
    pub path: PathBuf,
    pub text: String,
}

/// By name.
pub(crate) type Groups = BTreeMap<String, Decided>;

/// What the last layout does not decide about nobody decides about, whatever earlier ones wrote.
pub(crate) fn drop_undecided(head: &Head, target: Target<'_>, groups: &mut Groups) {
    let here = head.here(target.host);
    for (place, file, key) in &head.dropped.files {
        let Some(place) = here(place) else { continue };
        let key = (place, file.clone(), key.clone());
        groups.values_mut().for_each(|decided| {
            decided.writes.remove(&key);
            if file.starts_with("devices.") {
                decided.rules.remove(&key.0);
            }
        });
    }
    for place in head.dropped.owners.iter().filter_map(&here) {
        groups.values_mut().for_each(|decided| {
            decided.owners.remove(&place);
        });
    }
    for place in head.dropped.groups.iter().filter_map(here) {
        let mut known = false;
        for decided in groups.values_mut().filter(|decided| decided.places.contains(&place)) {
            decided.stayed.insert(place.clone(), decided.generation);
            known = true;
        }
        // somebody renamed it
        let Some(at) = target.host.hierarchies().get(place.hierarchy).filter(|_| !known) else { continue };
        let renamed = groups.entry(target.host.named(at, &place.path)).or_default();
        renamed.generation = renamed.generation.max(head.generation);
        renamed.places.insert(place.clone());
        renamed.stayed.insert(place, head.generation);
    }
}

impl Decided {
    /// Is this what is decided?
    pub(crate) fn decides(&self, action: &Action) -> bool {
        match action {
            Action::CreateGroup { place } => self.places.contains(place),
            Action::Write { place, file, text, .. } => {
                let key = (place.clone(), file.clone(), target_key(file, text).to_owned());
                self.writes.get(&key).is_some_and(|(known, _)| known.trim() == text.trim())
            }
            Action::WriteDropIn { place, path, text, .. } => {
                let is_it = |known: &&DropIn| known.path == Path::new(path) && known.place == *place;
                let known = self.drop_in.as_ref().filter(is_it);
                known.map(|known| &known.text) == text.as_ref()
            }
            Action::SetOwnership { place, access } => self.owners.get(place) == Some(access),
            _ => true,
        }
    }

    /// Drops what a later layout no longer requests and has brought back.
    fn forget(&mut self, action: &Action, place: &Place) {
        match action {
            Action::RemoveGroup { .. } => {
                self.places.remove(place);
                self.writes.retain(|(of, ..), _| of != place);
                self.owners.remove(place);
                self.rules.remove(place);
            }
            Action::Write { file, text, .. } => {
                let key = target_key(file, text);
                let same = |of: &Place, other: &str, line: &str| of == place && other == file && line == key;
                // a device's rule is taken back through the opposite file
                let rules = |of: &Place, other: &str| {
                    of == place && file.starts_with("devices.") && other.starts_with("devices.")
                };
                self.writes.retain(|(of, other, line), _| !same(of, other, line) && !rules(of, other));
                if file.starts_with("devices.") {
                    self.rules.remove(place);
                }
            }
            Action::WriteDropIn { path, .. }
                if self.drop_in.as_ref().is_some_and(|known| known.path == *path) =>
            {
                self.drop_in = None;
                self.places.remove(place);
            }
            Action::RestoreDevices { .. } => drop(self.rules.remove(place)),
            Action::RestoreOwners { .. } | Action::SetOwnership { .. } => drop(self.owners.remove(place)),
            _ => {}
        }
    }
}

/// Adds what a generation decides to what those before it do.
pub(crate) fn add(record: &Record, target: Target<'_>, groups: &mut Groups) {
    let here = record.head.here(target.host);
    let mut read_back: HashMap<usize, &String> = HashMap::new();
    for (step, actual) in &record.actual {
        read_back.entry(*step).or_insert(actual);
    }
    forget_gone(record, target, groups);
    let steps = record.entries.iter().enumerate().map(|(step, entry)| (Some(step), entry));
    for (step, entry) in steps.chain(record.decided.iter().map(|entry| (None, entry))) {
        let Some(place) = entry.action.place().and_then(&here) else { continue };
        if matches!(&entry.action, Action::Write { file, .. } if is_reserve(&place, file)) {
            continue;
        }
        if entry.restores {
            groups.values_mut().for_each(|group| group.forget(&entry.action, &place));
            continue;
        }
        let named = entry.group.to_string();
        if let Action::WriteDropIn { path, text: Some(_), .. } = &entry.action {
            // the unit may have been another group of an earlier layout
            let is_same = |known: &Decided| known.drop_in.as_ref().is_some_and(|of| of.path == *path);
            groups.retain(|name, known| *name == named || !is_same(known));
        }
        let group = groups.entry(named).or_default();
        group.generation = record.head.generation;
        match &entry.action {
            Action::Write { file, text, .. } => {
                let key = target_key(file, text);
                let actual = step.and_then(|step| read_back.get(&step)).map(|actual| (*actual).clone());
                let found = || match (entry.before.files(), step) {
                    (Some(files), None) => files.first().map(|(_, found)| found.clone()),
                    _ => None,
                };
                let actual = actual.or_else(found);
                group.places.insert(place.clone());
                if file.starts_with("devices.") {
                    group.rules.entry(place.clone()).or_default().push((file.clone(), text.clone()));
                }
                group.writes.insert((place, file.clone(), key.to_owned()), (text.clone(), actual));
            }
            Action::CreateGroup { .. } => {
                group.places.insert(place);
            }
            Action::WriteDropIn { unit, path, text: Some(text), .. } => {
                let (unit, path, text) = (unit.clone(), path.clone(), text.clone());
                // the unit may be in another slice than before
                if let Some(old) = group.drop_in.take().filter(|old| old.place != place) {
                    group.places.remove(&old.place);
                    group.writes.retain(|(of, ..), _| *of != old.place);
                }
                group.places.insert(place.clone());
                group.drop_in = Some(DropIn { place, unit, path, text });
            }
            Action::SetDevices { setting, rule, .. } => {
                group.places.insert(place.clone());
                group.rules.entry(place).or_default().push((setting.clone(), rule.clone()));
            }
            Action::SetOwnership { access, .. } => {
                group.places.insert(place.clone());
                group.owners.insert(place, *access);
            }
            _ => {}
        }
    }
    // several layouts as one: what one of them ended another had made
    if record.head.joins.is_some() {
        forget_gone(record, target, groups);
    }
}

/// Groups that were gone when the record's layout was applied.
fn forget_gone(record: &Record, target: Target<'_>, groups: &mut Groups) {
    for place in record.head.dropped.gone.iter().filter_map(record.head.here(target.host)) {
        let gone = Action::RemoveGroup { place: place.clone() };
        groups.values_mut().for_each(|group| group.forget(&gone, &place));
    }
}
