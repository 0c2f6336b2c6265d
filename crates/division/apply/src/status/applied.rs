//! What the generations in effect decide about each group, and what undos had to leave of others.

use std::collections::{BTreeMap, BTreeSet};

use layout::UnitName;
use plan::{Action, Inside, Place, target_key};
use units::group_path;

use crate::{
    Drift, Failure, State,
    entry::Before,
    in_effect::{Decided, DropIn, Groups, add, drop_undecided},
    isolation, lasting,
    performer::Performer,
    record::{Head, Kind, Record, Summary},
    remainder::Remainder,
};

pub(super) struct Applied<'a> {
    performer: &'a Performer<'a>,
    pub(super) decided: Groups,
    /// The head of the last layout's record.
    pub(super) layout: Option<Head>,
    pub(super) records: Vec<Record>,
    /// Groups that undos had to leave, and that the layout took over.
    adopted: BTreeSet<Place>,
    /// What undos had to leave beside groups and their values, by group.
    pub(super) left: BTreeMap<String, Vec<Drift>>,
}

impl<'a> Applied<'a> {
    pub(super) fn read(state: &State, performer: &'a Performer<'a>) -> Result<Applied<'a>, Failure> {
        let target = performer.target;
        let last = lasting::last(state, target)?;
        let (decided, records, adopted, left) = Default::default();
        let mut applied = Applied { performer, decided, layout: None, records, adopted, left };
        for &generation in last.iter().flat_map(Summary::in_effect) {
            let Some(record) = lasting::record(state, target, generation)? else { continue };
            // by hand: `status` compares what a layout decides with what the kernel has, without regard to the writer
            if record.head.kind == Kind::Set {
                continue;
            }
            add(&record, target, &mut applied.decided);
            applied.records.push(record);
        }
        let layout = applied.records.iter().rev().find(|record| record.head.layout);
        applied.layout = layout.map(|record| record.head.clone());
        if let Some(head) = &applied.layout {
            drop_undecided(head, target, &mut applied.decided);
            applied.adopted = head.dropped.adopted.iter().filter_map(head.here(target.host)).collect();
        }
        applied.add_inside();
        last.iter().flat_map(Summary::stayed).for_each(|stayed| applied.add_stayed(&stayed));
        applied.decided.retain(|_, decided| {
            !decided.places.is_empty() || !decided.writes.is_empty() || !decided.owners.is_empty()
        });
        for group in applied.left.keys() {
            applied.decided.entry(group.clone()).or_default();
        }
        Ok(applied)
    }

    /// Adds the groups that drop-in files have in services. Of an earlier boot nothing else describes them.
    fn add_inside(&mut self) {
        let files = self.decided.iter().filter_map(|(name, group)| {
            let DropIn { place, unit, text, .. } = group.drop_in.as_ref()?;
            let is_one = UnitName::of_file_name(unit).is_ok_and(|unit| !unit.is_pattern());
            Some((name.clone(), group.generation, place.clone(), Inside::of_text(text).filter(|_| is_one)?))
        });
        for (above, generation, place, inside) in files.collect::<Vec<_>>() {
            for (name, writes) in inside.groups {
                let place = Place { path: group_path::join(&place.path, &name), ..place.clone() };
                let group = self.decided.entry(format!("{above}/{name}")).or_default();
                group.generation = group.generation.max(generation);
                group.places.insert(place.clone());
                for (file, text) in writes {
                    let key = target_key(&file, &text).to_owned();
                    group.writes.entry((place.clone(), file, key)).or_insert((text, None));
                }
            }
        }
    }

    /// Adds what an undo had to leave.
    fn add_stayed(&mut self, stayed: &Remainder) {
        let target = self.performer.target;
        let Some(entry) = stayed.here(target) else { return };
        if let Some(drift) = isolation::not_restored(target, stayed) {
            self.left.entry(entry.group.to_string()).or_default().push(drift);
        }
        let generation = stayed.generation;
        if let Action::Mount { path, .. } = &entry.action {
            let drift = Drift::StaysMounted { directory: path.clone(), generation };
            self.left.entry(entry.group.to_string()).or_default().push(drift);
        }
        let Some(place) = entry.action.place() else { return };
        // a group above may have been made for the sake of the one that the step is about
        let name = target.host.named(&target.host.hierarchies()[place.hierarchy], &place.path);
        match (&entry.action, &entry.before) {
            (Action::CreateGroup { .. }, _) => self.add_group(name, place, generation),
            (Action::Write { file, .. }, before) => {
                let files = before.files().unwrap_or_default();
                if let Some((_, before)) = files.iter().find(|(name, _)| name == file) {
                    self.add_value(name, (place, file), before, generation);
                }
            }
            (Action::WriteDropIn { path, unit, .. }, Before::DropIn(before)) => {
                // what a generation in effect writes is compared with that
                let is_of_layout = |of: &Decided| of.drop_in.as_ref().is_some_and(|of| of.path == *path);
                if self.decided.values().any(is_of_layout) {
                    return;
                }
                let is_written = target.system.unit_files().read(path) != *before;
                let (file, unit) = (path.clone(), unit.clone());
                let drift = Drift::DropInStays { file, unit, generation, is_written };
                self.left.entry(entry.group.to_string()).or_default().push(drift);
            }
            _ => {}
        }
    }

    fn add_group(&mut self, name: String, place: &Place, generation: u32) {
        let group = self.decided.entry(name).or_default();
        group.places.insert(place.clone());
        if !self.adopted.contains(place) {
            group.generation = group.generation.max(generation);
            group.stayed.insert(place.clone(), generation);
        }
    }

    /// Adds a file that still has what a generation wrote that was undone.
    fn add_value(&mut self, name: String, (place, file): (&Place, &String), before: &str, generation: u32) {
        if self.performer.content(place, file).is_none_or(|actual| actual.trim() == before.trim()) {
            return;
        }
        let group = self.decided.entry(name).or_default();
        // what a generation in effect writes is compared with that
        if !group.writes.keys().any(|(of, name, _)| of == place && name == file) {
            group.generation = group.generation.max(generation);
            group.places.insert(place.clone());
            let before = (before.to_owned(), generation);
            group.not_restored.entry((place.clone(), file.clone())).or_insert(before);
        }
    }
}
