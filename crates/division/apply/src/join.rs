//! Several layouts that were applied one after the other as one generation: each cell once, with what was there before the first of
//! them and what the last of them gives it. The undo of the whole is what their undos come to. Data only; what can't be joined stays
//! as it is.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::Path,
};

use plan::{Action, Place, Step, target_key};

use crate::{
    entry::{Before, Entry, covers, devices_of, owners_of_both},
    inverse,
    lift::lift,
    order::in_order,
    record::{Ending, Joins, Kind, Record, Result as End},
};

/// One generation that replaces these, oldest first; `None` if they can't be joined.
pub(crate) fn join(records: &[Record]) -> Option<Record> {
    let (last, first) = (records.last()?, records.first()?);
    let is_like = |record: &Record| {
        is_plain(record)
            && record.head.boot == first.head.boot
            && record.head.hierarchies == first.head.hierarchies
    };
    if records.len() < 2 || !records.iter().all(is_like) {
        return None;
    }
    let mut joined = Joined::default();
    for record in records {
        joined.add(record)?;
    }
    let Joined { cells, decided, fresh, .. } = joined;
    let (mut entries, mut actual, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for (step, cell) in in_undo_order(cells)?.into_iter().enumerate() {
        actual.extend(cell.actual.into_iter().map(|text| (step, text)));
        made.extend(cell.made.into_iter().map(|inode| (step, inode)));
        entries.push(cell.entry);
    }
    // records of before have the numbers of those that are joined already
    let numbers = |record: &Record| match &record.head.joins {
        Some(joins) => joins.generations.clone(),
        None => vec![record.head.generation],
    };
    let generations: Vec<u32> = records.iter().flat_map(numbers).collect();
    let count = records.iter().map(|record| record.head.joins.as_ref().map_or(1, |joins| joins.count)).sum();
    let mut head = last.head.clone();
    (head.in_effect_before, head.in_effect) = (Vec::new(), vec![head.generation]);
    (head.steps, head.decided) = (entries.len(), decided.len());
    head.joins = Some(Joins { generations, count });
    head.dropped.gone = gone(records);
    let result = last.result.clone().map(|end| End { left: Vec::new(), replaced: Vec::new(), ..end });
    Some(Record { head, entries, decided, result, actual, made, fresh, begun: None, ..last.clone() })
}

/// The groups that were gone for one of these, and that no later one has.
fn gone(records: &[Record]) -> Vec<Place> {
    let mut gone: Vec<Place> = Vec::new();
    for record in records {
        let entries = record.entries.iter().chain(&record.decided).filter(|entry| !entry.restores);
        let has: HashSet<&Place> = entries.filter_map(|entry| entry.action.place()).collect();
        gone.retain(|place| !has.contains(place));
        gone.extend(record.head.dropped.gone.iter().cloned());
    }
    gone
}

/// A layout that was applied wholly, and of which the steps say all that its undo needs.
fn is_plain(record: &Record) -> bool {
    let head = &record.head;
    let is_done =
        record.result.as_ref().is_some_and(|end| end.ending == Ending::Done && end.refused.is_empty());
    is_done
        && (head.kind, head.layout) == (Kind::Apply, true)
        && record.is_whole()
        && record.damage.is_none()
        && head.stayed_before.is_empty()
        && head.stayed.is_empty()
        && head.upkeep.elastic.is_empty()
        && head.upkeep.ranges.is_empty()
        && head.upkeep.isolation.is_none()
        && head.dropped.adopted.is_empty()
        && head.dropped.groups.is_empty()
        && record.affinities.is_empty()
        && record.moved.is_empty()
}

/// A step, with what its marks say.
struct Cell {
    entry: Entry,
    actual: Vec<String>,
    made: Vec<u64>,
}

impl Cell {
    fn is_in(&self, place: &Place) -> bool {
        self.entry.action.place() == Some(place)
    }

    /// What files of this place contained that its write changes along with its own.
    fn along(&self, place: &Place) -> impl Iterator<Item = &(String, String)> {
        self.entry.before.files().filter(|_| self.is_in(place)).unwrap_or_default().iter().skip(1)
    }
}

type File = (Place, String);

/// The generations so far.
#[derive(Default)]
struct Joined {
    cells: Vec<Cell>,
    decided: Vec<Entry>,
    fresh: BTreeMap<(usize, String), String>,
    /// What the current generation brought back, with the contents that its writes change along.
    back: Vec<(File, String)>,
}

impl Joined {
    fn add(&mut self, record: &Record) -> Option<()> {
        for (file, text) in &record.fresh {
            self.fresh.entry(file.clone()).or_insert_with(|| text.clone());
        }
        self.back.clear();
        for (step, entry) in record.entries.iter().enumerate() {
            let of_step = |(of, _): &&(usize, String)| *of == step;
            let actual = record.actual.iter().filter(of_step).map(|(_, text)| text.clone()).collect();
            let made = record.made.iter().filter(|(of, _)| *of == step).map(|(_, inode)| *inode).collect();
            self.decided.retain(|older| !is_same(older, entry));
            match entry.restores {
                true => self.bring_back(entry)?,
                false => self.change(Cell { entry: entry.clone(), actual, made })?,
            }
        }
        for entry in &record.decided {
            self.decided.retain(|older| !is_same(older, entry));
            self.decided.push(entry.clone());
        }
        Some(())
    }

    /// A step towards what a layout asks for.
    fn change(&mut self, mut cell: Cell) -> Option<()> {
        match &cell.entry.action {
            Action::CreateGroup { place } => {
                // somebody had removed it
                if self.cells.iter().any(|older| older.entry.action == cell.entry.action) {
                    self.drop_group(place)?;
                }
            }
            Action::Write { .. } if devices_of(&cell.entry.action).is_some() => {}
            Action::Write { place, file, .. } => {
                let is_older = |older: &Cell| covers(&cell.entry.action, &older.entry.action);
                if let Some(at) = self.cells.iter().position(is_older) {
                    // what it found is not known
                    (self.cells[at].entry.before != Before::Absent).then_some(())?;
                    let before = self.cells[at].entry.before.clone();
                    // none before the first of them is one of them
                    self.cells.retain(|older| !is_older(older));
                    cell.entry.before = before;
                    self.cells.insert(at, cell);
                    return Some(());
                }
                // the step that changed it along knows what it contained
                if self.cells.iter().any(|older| older.along(place).any(|(along, _)| along == file)) {
                    cell.entry.before = Before::Nothing;
                }
            }
            Action::SetOwnership { place, .. } => {
                let is_older = |older: &Cell| {
                    matches!(older.entry.action, Action::SetOwnership { .. }) && older.is_in(place)
                };
                if let Some(at) = self.cells.iter().position(is_older) {
                    cell.entry.before = owners_before(&self.cells[at].entry.before, &cell.entry.before)?;
                    self.cells[at] = cell;
                    return Some(());
                }
            }
            Action::WriteDropIn { path, .. } => {
                if let Some(at) = self.drop_in(path) {
                    cell.entry.before = self.cells[at].entry.before.clone();
                    self.cells[at] = cell;
                    return Some(());
                }
            }
            Action::EnableControllers { .. } | Action::SetDevices { .. } => {}
            _ => return None,
        }
        self.cells.push(cell);
        Some(())
    }

    /// A step that took something back that an older one of these did: both are as if they had not been.
    fn bring_back(&mut self, entry: &Entry) -> Option<()> {
        match &entry.action {
            Action::Write { place, file, text } if devices_of(&entry.action).is_none() => {
                self.write_back(place, file, text)
            }
            Action::RemoveGroup { place } => self.drop_group(place),
            Action::DisableControllers { place, names } => {
                for name in names {
                    let enables = |cell: &&mut Cell| {
                        let action = &cell.entry.action;
                        cell.is_in(place)
                            && matches!(action, Action::EnableControllers { names, .. } if names.contains(name))
                    };
                    let cell = self.cells.iter_mut().find(enables)?;
                    if let Action::EnableControllers { names, .. } = &mut cell.entry.action {
                        names.retain(|other| other != name);
                    }
                    if let Before::Controllers { off, .. } = &mut cell.entry.before {
                        off.retain(|other| other != name);
                    }
                }
                let is_empty = |action: &Action| matches!(action, Action::EnableControllers { names, .. } if names.is_empty());
                self.cells.retain(|cell| !is_empty(&cell.entry.action));
                Some(())
            }
            Action::RestoreOwners { place, owners } => {
                let was = |cell: &Cell| matches!(&cell.entry.before, Before::Owners(was) if was == owners);
                self.take_one(|cell| {
                    matches!(cell.entry.action, Action::SetOwnership { .. }) && cell.is_in(place) && was(cell)
                })
            }
            Action::WriteDropIn { path, text, .. } => {
                let at = self.drop_in(path)?;
                (self.cells[at].entry.before == Before::DropIn(text.clone())).then_some(())?;
                self.cells.remove(at);
                Some(())
            }
            // to the maker, to whom a group goes that has to stay
            Action::SetOwnership { place, .. } => self.take_one(|cell| {
                let gives = matches!(cell.entry.action, Action::SetOwnership { .. });
                gives && cell.is_in(place) && cell.entry.before == Before::New
            }),
            _ => None,
        }
    }

    fn drop_in(&self, path: &Path) -> Option<usize> {
        let writes = |action: &Action| matches!(action, Action::WriteDropIn { path: of, .. } if of == path);
        self.cells.iter().position(|cell| writes(&cell.entry.action))
    }

    fn write_back(&mut self, place: &Place, file: &str, text: &str) -> Option<()> {
        let fresh = &self.fresh;
        let writes = |cell: &Cell| -> Vec<(File, String)> {
            let back = match cell.entry.before {
                Before::New => lift(&cell.entry, |file| fresh.get(file).cloned(), (0, 0)).actions,
                _ => inverse::inverse(&cell.entry, &[]).actions,
            };
            let write = |action| match action {
                Action::Write { place, file, text } => Some(((place, file), text)),
                // its text follows from the group above
                Action::InheritSet { place, file } => Some(((place, file), text.to_owned())),
                _ => None,
            };
            back.into_iter().filter_map(write).collect()
        };
        let file = (place.clone(), file.to_owned());
        let wrote = |cell: &Cell| {
            matches!(&cell.entry.action, Action::Write { place, file: of, .. }
            if (place, of) == (&file.0, &file.1))
        };
        let is_it = |(of, back): &(File, String)| *of == file && back.trim() == text.trim();
        let undone = self.cells.iter().rposition(|cell| wrote(cell) && writes(cell).iter().any(is_it));
        if let Some(at) = undone {
            let along = writes(&self.cells[at]);
            // a list that could not be emptied: the undo tries that again
            let is_spelled = self.cells[at].entry.before != Before::New
                && along.iter().all(|(_, back)| back == text)
                && !text.trim().is_empty()
                && self.cells[at].entry.before.files().is_some_and(|files| files[0].1.trim().is_empty());
            if is_spelled {
                let (place, file) = file;
                let entry = &mut self.cells[at].entry;
                (entry.action, entry.restores) = (Action::Write { place, file, text: text.to_owned() }, true);
                return Some(());
            }
            let undone = self.cells.remove(at);
            for (along, before) in undone.along(place) {
                let depends = |cell: &&mut Cell| {
                    let is_it = matches!(&cell.entry.action, Action::Write { file, .. } if file == along);
                    is_it && cell.is_in(place) && cell.entry.before == Before::Nothing
                };
                for cell in self.cells.iter_mut().filter(depends) {
                    cell.entry.before = Before::Files(vec![(along.clone(), before.clone())]);
                }
            }
            self.back.extend(along);
            return Some(());
        }
        // what another one changed along with its own file goes back with that
        let others = self.cells.iter().filter(|cell| cell.is_in(place)).flat_map(writes);
        self.back.iter().cloned().chain(others).any(|one| is_it(&one)).then_some(())
    }

    /// A group that these made went, with all that they did to it.
    fn drop_group(&mut self, place: &Place) -> Option<()> {
        let made = Action::CreateGroup { place: place.clone() };
        self.cells.iter().find(|cell| cell.entry.action == made)?;
        let of_it = |cell: &&Cell| cell.is_in(place);
        let is_new = |cell: &Cell| cell.entry.action == made || cell.entry.before == Before::New;
        self.cells.iter().filter(of_it).all(is_new).then_some(())?;
        self.cells.retain(|cell| !cell.is_in(place));
        self.decided.retain(|entry| entry.action.place() != Some(place));
        Some(())
    }

    fn take_one(&mut self, is_it: impl Fn(&Cell) -> bool) -> Option<()> {
        let at = self.cells.iter().position(is_it)?;
        self.cells.remove(at);
        Some(())
    }
}

/// Do both decide about the same?
fn is_same(one: &Entry, other: &Entry) -> bool {
    match (&one.action, &other.action) {
        (Action::Write { place, file, text }, Action::Write { place: of, file: same, text: now }) => {
            (place, file) == (of, same) && target_key(file, text) == target_key(file, now)
        }
        (Action::CreateGroup { .. }, _) => one.action == other.action,
        (Action::SetOwnership { place, .. }, Action::SetOwnership { place: of, .. }) => place == of,
        _ => false,
    }
}

/// What was there before both steps; `None` if they do not say.
fn owners_before(older: &Before, newer: &Before) -> Option<Before> {
    match (older, newer) {
        (Before::New, _) => Some(Before::New),
        (Before::Owners(older), Before::Owners(newer)) => Some(Before::Owners(owners_of_both(older, newer))),
        _ => None,
    }
}

/// So that the undo goes from the last to the first: what groups that are made here had of a later generation, then these groups, then
/// what was there before them. Of each: what hands controllers down comes first, then values. `None`: a file has two of them.
fn in_undo_order(cells: Vec<Cell>) -> Option<Vec<Cell>> {
    let made = |cell: &Cell| match &cell.entry.action {
        Action::CreateGroup { place } => Some(place.clone()),
        _ => None,
    };
    let made: HashSet<Place> = cells.iter().filter_map(made).collect();
    let (mut found, mut new, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        let is_made = cell.entry.action.place().is_some_and(|place| made.contains(place));
        let is_new =
            matches!(cell.entry.action, Action::CreateGroup { .. }) || cell.entry.before == Before::New;
        match (is_made, is_new) {
            (_, true) => new.push(cell),
            (true, false) => later.push(cell),
            (false, false) => found.push(cell),
        }
    }
    Some([ordered(found)?, new, ordered(later)?].into_iter().flatten().collect())
}

fn ordered(cells: Vec<Cell>) -> Option<Vec<Cell>> {
    let (mut enabled, mut values, mut rest) = (Vec::new(), HashMap::new(), Vec::new());
    let (mut now, mut back) = (HashMap::new(), Vec::new());
    for cell in cells {
        match (&cell.entry.action, &cell.entry.before) {
            (Action::EnableControllers { .. } | Action::WriteDropIn { .. }, _) => enabled.push(cell),
            // each line of a file by device is for itself
            (Action::Write { place, file, text }, Before::Files(files))
                if devices_of(&cell.entry.action).is_none() && !settings::is_by_key(file) =>
            {
                let key = (place.clone(), file.clone());
                let before = files.first().map(|(_, text)| text.clone()).unwrap_or_default();
                let action = Action::Write { place: place.clone(), file: file.clone(), text: before };
                let step = Step::new(cell.entry.group.clone(), action, "");
                back.push(step.was(Some(text.trim().to_owned())));
                now.insert(key.clone(), text.trim().to_owned());
                // one of them would bring back what the other one wrote
                values.insert(key, cell).is_none().then_some(())?;
            }
            _ => rest.push(cell),
        }
    }
    let back = in_order(back, &|place, file| now.get(&(place.clone(), file.to_owned())).cloned());
    let values = back.iter().rev().filter_map(|step| match &step.action {
        Action::Write { place, file, .. } => values.remove(&(place.clone(), file.clone())),
        _ => None,
    });
    enabled.extend(values);
    enabled.extend(rest);
    Some(enabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { hierarchy: 0, path: "db".to_owned(), version: settings::Version::V2 }
    }

    fn write(file: &str, text: &str, before: &[(&str, &str)]) -> Entry {
        let files = before.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        let action = Action::Write { place: place(), file: file.to_owned(), text: text.to_owned() };
        let before = if before.is_empty() { Before::Nothing } else { Before::Files(files) };
        let group = kernel::GroupName::new("db").unwrap();
        Entry { group, action, why: String::new(), restores: false, before }
    }

    fn back(file: &str, text: &str) -> Entry {
        Entry { restores: true, ..write(file, text, &[(file, "?")]) }
    }

    fn record(generation: u32, entries: Vec<Entry>) -> Record {
        let head = serde_json::json!({
            "format": crate::record::FORMAT, "generation": generation, "kind": "apply", "at": 1, "what": "layout", "boot": "b",
            "by": { "uid": 0, "login": null, "pid": 1, "command": "" }, "hierarchies": [], "layout": true,
            "in_effect_before": [], "in_effect": [generation], "steps": entries.len(),
        });
        let result = serde_json::json!({ "ending": "done", "at": 1 });
        Record {
            head: serde_json::from_value(head).unwrap(),
            entries,
            decided: Vec::new(),
            result: Some(serde_json::from_value(result).unwrap()),
            affinities: Vec::new(),
            actual: Vec::new(),
            begun: None,
            back: None,
            fresh: BTreeMap::new(),
            moved: Vec::new(),
            made: Vec::new(),
            damage: None,
        }
    }

    /// File, text and what was there before of each step.
    fn joined(records: Vec<Vec<Entry>>) -> Option<Vec<(String, String, String)>> {
        let records: Vec<Record> =
            (1..).zip(records).map(|(number, entries)| record(number, entries)).collect();
        let step = |entry: Entry| {
            let Action::Write { file, text, .. } = &entry.action else { panic!("{entry:?}") };
            let before = entry.before.files().map_or("", |files| &files[0].1);
            (file.clone(), text.clone(), before.to_owned())
        };
        join(&records).map(|record| record.entries.into_iter().map(step).collect())
    }

    fn row(file: &str, text: &str, before: &str) -> (String, String, String) {
        (file.to_owned(), text.to_owned(), before.to_owned())
    }

    #[test]
    fn each_cell_has_the_first_content_and_the_last_text() {
        let first = vec![write("pids.max", "10", &[("pids.max", "max")])];
        let second = vec![
            write("pids.max", "20", &[("pids.max", "10")]),
            write("memory.max", "4096", &[("memory.max", "max")]),
        ];
        let third = vec![back("memory.max", "max"), write("pids.max", "30", &[("pids.max", "20")])];
        assert_eq!(joined(vec![first, second, third]), Some(vec![row("pids.max", "30", "max")]));
    }

    #[test]
    fn what_went_back_to_something_else_is_not_joined() {
        let first = vec![write("pids.max", "10", &[("pids.max", "max")])];
        assert_eq!(joined(vec![first, vec![back("pids.max", "7")]]), None);
    }

    /// The parts of one file: an undo of the whole would write one over the other.
    #[test]
    fn two_steps_of_one_file_are_not_joined() {
        let first = vec![write("cpu.max", "5000 50000", &[("cpu.max", "max 100000")])];
        let second = vec![write("cpu.max", "6000", &[("cpu.max", "5000 50000")])];
        let both = joined(vec![first, second]);
        assert!(both.as_ref().is_none_or(|both| both == &[row("cpu.max", "6000", "max 100000")]), "{both:?}");
    }

    /// cpu.idle changes cpu.weight along: the weight of then is what goes back.
    #[test]
    fn what_was_changed_along_goes_back_to_the_first_content() {
        let idle = || vec![write("cpu.idle", "1", &[("cpu.idle", "0"), ("cpu.weight", "100")])];
        let weight = || write("cpu.weight", "200", &[("cpu.weight", "0")]);
        let weights = |records: Vec<Vec<Entry>>| {
            let steps = joined(records).unwrap().into_iter();
            steps.filter(|(file, ..)| file == "cpu.weight").collect::<Vec<_>>()
        };
        // the step of cpu.idle knows
        assert_eq!(weights(vec![idle(), vec![weight()]]), [row("cpu.weight", "200", "")]);
        // until it is gone
        let without = vec![back("cpu.idle", "0"), write("cpu.weight", "300", &[("cpu.weight", "200")])];
        assert_eq!(weights(vec![idle(), vec![weight()], without]), [row("cpu.weight", "300", "100")]);
        assert_eq!(
            joined(vec![idle(), vec![back("cpu.idle", "0"), back("cpu.weight", "100")]]),
            Some(vec![])
        );
    }

    /// The kernel takes no empty list while processes are in the group: the undo tries again.
    #[test]
    fn a_list_that_could_not_be_emptied_is_emptied_by_the_undo() {
        let first = vec![write("cpuset.cpus", "1", &[("cpuset.cpus", "")])];
        let both = join(&[record(1, first), record(2, vec![back("cpuset.cpus", "0-3")])]).unwrap();
        assert_eq!((both.entries.len(), both.entries[0].restores), (1, true));
        assert_eq!(both.entries[0].before, Before::Files(vec![("cpuset.cpus".to_owned(), String::new())]));
    }
}
