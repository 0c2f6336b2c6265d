//! Several layouts that were applied one after the other as one generation: each cell once, with what was there before the first of
//! them and what the last of them gives it. The undo of the whole is what their undos come to. Data only; what can't be joined stays
//! as it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use plan::{Action, Place, Step, target_key};

use crate::{
    entry::{Before, Entry, covers, devices_of, gives_back},
    inverse,
    lift::lift,
    order::in_order,
    record::{Ending, Joins, Kind, Record, Result as End},
};

/// One generation in the place of these, the oldest first; `None`: something of theirs can't be joined.
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
    for (step, cell) in in_undo_order(cells).enumerate() {
        actual.extend(cell.actual.into_iter().map(|text| (step, text)));
        made.extend(cell.made.into_iter().map(|inode| (step, inode)));
        entries.push(cell.entry);
    }
    let generations: Vec<u32> = records.iter().map(|record| record.head.generation).collect();
    let count = records.iter().map(|record| record.head.joins.as_ref().map_or(1, |joins| joins.count)).sum();
    let mut head = last.head.clone();
    (head.in_effect_before, head.in_effect) = (Vec::new(), vec![head.generation]);
    (head.steps, head.decided) = (entries.len(), decided.len());
    head.joins = Some(Joins { generations, count });
    let result = last.result.clone().map(|end| End { left: Vec::new(), replaced: Vec::new(), ..end });
    Some(Record { head, entries, decided, result, actual, made, fresh, begun: None, ..last.clone() })
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
            Action::Write { .. } => {
                let is_older = |older: &Cell| covers(&cell.entry.action, &older.entry.action);
                if let Some(at) = self.cells.iter().position(is_older) {
                    cell.entry.before = self.cells[at].entry.before.clone();
                    let covered: Vec<bool> = self.cells.iter().map(is_older).collect();
                    self.cells[at] = cell;
                    let mut index = 0..;
                    self.cells.retain(|_| {
                        let index = index.next().unwrap_or_default();
                        index == at || !covered[index]
                    });
                    return Some(());
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
            // to the maker, to whom a group goes that has to stay
            Action::SetOwnership { place, .. } => self.take_one(|cell| {
                let gives = matches!(cell.entry.action, Action::SetOwnership { .. });
                gives && cell.is_in(place) && cell.entry.before == Before::New
            }),
            _ => None,
        }
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
                // the group above decides what it comes to
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
            self.back.extend(along);
            self.cells.remove(at);
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

/// What an older step knows of owners goes before what a newer one knows, which may be of more files.
fn owners_before(older: &Before, newer: &Before) -> Option<Before> {
    match (older, newer) {
        (Before::New, _) => Some(Before::New),
        (Before::Owners(older), Before::Owners(newer)) => {
            let more = newer.iter().filter(|(file, _)| !gives_back(older, file.as_deref()));
            Some(Before::Owners(older.iter().chain(more).cloned().collect()))
        }
        _ => None,
    }
}

/// So that the undo goes from the last to the first: what groups that are made here had of a later generation, then these groups, then
/// what was there before them. Of each: what hands controllers down comes first, then values.
fn in_undo_order(cells: Vec<Cell>) -> impl Iterator<Item = Cell> {
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
    ordered(found).into_iter().chain(new).chain(ordered(later))
}

fn ordered(cells: Vec<Cell>) -> Vec<Cell> {
    let (mut enabled, mut values, mut rest) = (Vec::new(), HashMap::new(), Vec::new());
    let (mut now, mut back) = (HashMap::new(), Vec::new());
    for cell in cells {
        match (&cell.entry.action, &cell.entry.before) {
            (Action::EnableControllers { .. }, _) => enabled.push(cell),
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
                values.insert(key, cell);
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
    enabled
}
