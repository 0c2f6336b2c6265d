//! What earlier layouts in effect changed and a new one does not decide about: as steps of its plan that bring it back
//! to what was there before the first of them. A layout is so the whole truth about what was applied. Only reads.

mod earlier;
mod foresee;
mod resized;
mod rest;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use kernel::{GroupName, Seat};
use plan::{Action, Coverage, Dropped, Lint, LintKind, Owned, Place, Plan, Step, target_key};
use settings::{CpuMax, Version};
use units::{CpuSet, group_path};

use crate::{
    Target, affinity,
    already::is_so,
    entry::{Before, Entry, devices_of, owners_of_both},
    inside, inverse,
    performer::DEVICES_V1,
    performer::SUBTREE_CONTROL,
    performer::{Performer, name},
    record::{Affinity, Record},
    remainder::Remainder,
};

pub use earlier::Earlier;
pub(crate) use foresee::{foresee, of_partition, widen};
use resized::Resized;
pub(crate) use resized::{Below, lists_behind};

/// The steps that go before those of the layout, and those behind.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// Releases: removals, limits lifted.
    pub before: Vec<Step>,
    /// Controllers that no group needs any more.
    pub after: Vec<Step>,
    /// Lists below elastic groups that go back behind the layout's steps, parents before children.
    pub below: Vec<Below>,
    /// What stays, and why.
    pub lints: Vec<Lint>,
    /// What earlier layouts decided about and this one does not.
    pub dropped: Dropped,
    /// v1's groups above others that earlier layouts made exclusive for the sake of groups below them.
    pub exclusive: BTreeSet<Place>,
    /// Lists of CPUs and memory nodes that groups above others had before earlier layouts, by file.
    pub lists: BTreeMap<(Place, String), String>,
}

/// What is to be brought back. `exclusive`: the CPUs that the new layout gives to single groups, by hierarchy and group
/// above.
pub(crate) fn leftovers(
    earlier: &Earlier,
    target: Target<'_>,
    covered: &Coverage,
    alone: &Plan,
    exclusive: &dyn Fn(&Place) -> CpuSet,
) -> Leftovers {
    let mut past = Past::new(target, covered, earlier);
    past.known = earlier.dropped(target);
    let adopted = earlier.stayed.iter().filter_map(|(stayed, _)| stayed.group(target.host));
    let adopted: BTreeSet<Place> = adopted.filter(|place| covered.groups.contains(place)).collect();
    // an older generation knows better what was there before all of them
    let mut stayed: Vec<&(Remainder, Option<Rc<Record>>)> = earlier.stayed.iter().collect();
    stayed.sort_by_key(|(stayed, _)| (stayed.generation, stayed.step));
    for record in earlier.records.iter().rev() {
        while let Some((newer, of)) = stayed.pop_if(|(stayed, _)| stayed.generation > record.head.generation)
        {
            past.add_stayed(newer, of.as_deref());
        }
        past.add_resized(record, &earlier.originals);
        past.add(record);
    }
    for (stayed, of) in stayed.into_iter().rev() {
        past.add_stayed(stayed, of.as_deref());
    }
    for step in &alone.steps {
        if let Action::Write { place, file, text, .. } = &step.action {
            past.alone.insert((place.clone(), file.clone()), text.trim().to_owned());
        }
    }
    let mut leftovers = past.steps(exclusive);
    leftovers.dropped.adopted = adopted.into_iter().collect();
    leftovers
}

/// A file, and of one of lines by device or resource the line's first word.
type Line = (Place, String, String);

/// What is to be brought back, as the generations are gone through from the newest to the oldest.
struct Past<'p> {
    performer: Performer<'p>,
    covered: &'p Coverage,
    /// Groups that somebody removed and made again: not the generations' any more.
    remade: &'p BTreeSet<Place>,
    /// Where directories that the generations made are by now, of those that somebody renamed.
    renamed: &'p BTreeMap<Place, Place>,
    /// Directories that the generations made, with the group.
    made: BTreeMap<Place, GroupName>,
    /// By place, file and line: the writes that bring it back.
    writes: BTreeMap<(Place, String, String), Vec<Entry>>,
    /// Cpusets of groups that the generations made, which have no list of their own to go back to.
    sets: BTreeMap<(Place, String), Entry>,
    others: BTreeMap<(Place, &'static str), Entry>,
    /// What a directory handed down for the layouts' sake, by controller with the groups that were below it then.
    controllers: BTreeMap<Place, (GroupName, BTreeMap<String, Vec<String>>)>,
    affinities: BTreeMap<Place, (Entry, Vec<Affinity>)>,
    /// Groups that were there before the layouts that decided about them, with their names.
    found: BTreeMap<Place, GroupName>,
    /// Values that were so before, with the group and the value.
    standing: BTreeMap<Line, (GroupName, String)>,
    /// Groups and values that the last layout did without already.
    known: (BTreeSet<Place>, BTreeSet<Line>),
    /// Groups with owners that they had before.
    owners: BTreeSet<Place>,
    unknown: Vec<(GroupName, String)>,
    dropped: BTreeSet<(Place, String, String)>,
    exclusive: BTreeSet<Place>,
    lists: BTreeMap<(Place, String), String>,
    /// What the layout would write if no group had CPUs.
    alone: BTreeMap<(Place, String), String>,
    partitions: Vec<Partition>,
    resized: Resized,
}

/// A v2 partition in effect.
struct Partition {
    place: Place,
    cpus: CpuSet,
    /// Its CPUs once the plan is done; `None` if it ends.
    after: Option<CpuSet>,
}

impl<'p> Past<'p> {
    fn new(target: Target<'p>, covered: &'p Coverage, earlier: &'p Earlier) -> Past<'p> {
        let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
        let (made, writes, sets, others, controllers) = Default::default();
        let (affinities, found, standing, known, owners) = Default::default();
        let (unknown, dropped, exclusive, lists, alone, partitions) = Default::default();
        Past {
            performer,
            covered,
            remade: &earlier.remade,
            renamed: &earlier.renamed,
            made,
            writes,
            sets,
            others,
            controllers,
            affinities,
            found,
            standing,
            known,
            owners,
            unknown,
            dropped,
            exclusive,
            lists,
            alone,
            partitions,
            resized: Resized::default(),
        }
    }

    fn add(&mut self, record: &Record) {
        let now = record.hierarchies(self.performer.host());
        for entry in record.decided.iter().rev() {
            let Some(place) = entry.action.place() else { continue };
            let Some(Some(at)) = now.get(place.hierarchy) else { continue };
            self.add_decided(&entry.at_hierarchy(at.id));
        }
        for (step, entry) in record.entries.iter().enumerate().rev() {
            let Some(place) = entry.action.place() else { continue };
            let Some(Some(at)) = now.get(place.hierarchy) else { continue };
            let entry = entry.at_hierarchy(at.id).renamed(self.renamed);
            self.add_step(record, step, &entry, place.hierarchy);
        }
    }

    /// What was so before a layout that decided about it: nothing is to be brought back.
    fn add_decided(&mut self, entry: &Entry) {
        // a drop-in file has it, and ends it
        let host = self.performer.host();
        let is_in_service = |place: &Place| inside::service_above(host, place).is_some();
        match &entry.action {
            Action::CreateGroup { place } if is_in_service(place) => {}
            Action::CreateGroup { place } if !self.covered.groups.contains(place) => {
                self.found.insert(place.clone(), entry.group.clone());
            }
            Action::Write { place, file, text } => {
                let key = (place.clone(), file.clone(), target_key(file, text).to_owned());
                if !self.covered.files.contains_key(&key) && !self.writes.contains_key(&key) {
                    self.dropped.insert(key.clone());
                    // of a unit that did not run nothing was so: its drop-in file was to bring it about
                    if matches!(entry.before, Before::Nothing) || is_in_service(place) {
                        return;
                    }
                    self.standing.insert(key, (entry.group.clone(), text.trim().to_owned()));
                }
            }
            Action::SetOwnership { place, access } if self.gives_more(place, access) => {
                self.owners.insert(place.clone());
            }
            _ => {}
        }
    }

    fn add_stayed(&mut self, stayed: &Remainder, record: Option<&Record>) {
        let Some(entry) = stayed.here(self.performer.target) else { return };
        let Some(record) = record else {
            if let Action::CreateGroup { place } = &entry.action
                && !self.covered.groups.contains(place)
            {
                self.made.insert(place.clone(), entry.group.clone());
            }
            return;
        };
        let then =
            record.entries.get(stayed.step).and_then(|step| step.action.place()).map(|place| place.hierarchy);
        let Some(then) = then else { return };
        self.add_step(record, stayed.step, &entry, then);
        // where the removal was refused, what the generation set in the group may be in force still
        if let Action::CreateGroup { place } = &entry.action
            && self.covered.groups.contains(place)
        {
            let made = record.entries[stayed.step].action.place();
            let steps = record.entries.iter().enumerate().rev();
            for (step, entry) in steps.filter(|(_, entry)| entry.action.place() == made) {
                self.add_step(record, step, &entry.at_hierarchy(place.hierarchy), then);
            }
        }
    }

    fn add_step(&mut self, record: &Record, step: usize, entry: &Entry, then: usize) {
        let Some(place) = entry.action.place().cloned() else { return };
        // what it did was done to the directory that is not there any more; a later generation changed the new one
        if self.remade.contains(&place)
            && !self.covered.groups.contains(&place)
            && makes(record, &place.path, then)
        {
            return;
        }
        match &entry.action {
            Action::CreateGroup { .. } if !self.covered.groups.contains(&place) => {
                self.made.insert(place, entry.group.clone());
            }
            Action::Write { file, text, .. } => self.add_write(record, entry, (&place, file, text), then),
            Action::EnableControllers { .. } => {
                let (off, children) = match (&entry.before, &entry.action) {
                    (Before::Controllers { off, children, .. }, _) => (off.clone(), children.clone()),
                    // in a group of the generation's own nothing was handed down before
                    (_, Action::EnableControllers { names, .. }) => (names.clone(), Vec::new()),
                    _ => return,
                };
                let needed = self.covered.controllers.get(&place);
                let idle = off.iter().filter(|name| !needed.is_some_and(|needed| needed.contains(*name)));
                let idle: Vec<(String, Vec<String>)> =
                    idle.map(|name| (name.clone(), children.clone())).collect();
                let of_place = self.controllers.entry(place);
                of_place.or_insert_with(|| (entry.group.clone(), BTreeMap::new())).1.extend(idle);
            }
            // one that took back what an older layout gave is not what its own requested
            Action::SetOwnership { access, .. } if !entry.restores && self.gives_more(&place, access) => {
                let newer = self.others.remove(&(place.clone(), "owners"));
                self.others.insert((place, "owners"), with_newer(entry, newer));
            }
            Action::SetDevices { setting, .. } if !self.covered.devices.contains(&place) => {
                self.dropped.insert((place.clone(), setting.clone(), String::new()));
                self.others.insert((place, "devices"), entry.clone());
            }
            Action::MoveTasksAway { .. } => {
                let threads = record.affinities.iter().filter(|(of, _)| *of == step);
                let of_place = self.affinities.entry(place).or_insert_with(|| (entry.clone(), Vec::new()));
                for (_, affinity) in threads.rev() {
                    let same =
                        |one: &Affinity| (one.thread, one.started) == (affinity.thread, affinity.started);
                    of_place.1.retain(|one| !same(one));
                    of_place.1.push(affinity.clone());
                }
            }
            _ => {}
        }
    }

    /// Did an earlier layout give something of the group to somebody that this one does not?
    fn gives_more(&self, place: &Place, access: &plan::Ownership) -> bool {
        let now = self.covered.owners.get(place).copied().unwrap_or_default();
        let each = |access: &plan::Ownership| {
            [
                access.tasks_uid,
                access.tasks_gid,
                access.tasks_mode,
                access.admin_uid,
                access.admin_gid,
                access.file_mode,
                access.directory_mode,
            ]
        };
        each(access).iter().zip(each(&now)).any(|(then, now)| then.is_some() && now.is_none())
    }

    fn add_write(
        &mut self,
        record: &Record,
        entry: &Entry,
        (place, file, text): (&Place, &String, &String),
        then: usize,
    ) {
        // what it found is what an older layout gave
        if entry.restores {
            return;
        }
        let list = matches!(file.as_str(), "cpuset.cpus" | "cpuset.mems");
        self.note_followed(entry, (place, file, text), list);
        let Some(text) = &self.covered.rest(place, file, text) else { return };
        let devices = matches!(file.as_str(), "devices.allow" | "devices.deny");
        if devices && self.covered.devices.contains(place)
            || settings::lookup(file).is_some_and(|found| found.setting.access == settings::Access::Write)
                && !devices
        {
            return;
        }
        let action = Action::Write { place: place.clone(), file: file.clone(), text: text.clone() };
        let entry = Entry { action, ..entry.clone() };
        let key = (place.clone(), file.clone(), target_key(file, text).to_owned());
        self.standing.remove(&key);
        if !self.covered.files.contains_key(&key) {
            self.dropped.insert(key);
        }
        let shown = if devices { DEVICES_V1 } else { file };
        let Some(before) = before_of(record, &entry, (place, file, shown, list), then) else {
            self.unknown.push((entry.group.clone(), file.clone()));
            return;
        };
        let empty = matches!(&before, Before::Files(files) if files.first().is_some_and(|(_, text)| text.trim().is_empty()));
        if list && (empty || entry.before == Before::New) {
            self.writes.remove(&(place.clone(), file.clone(), String::new()));
            self.sets.insert((place.clone(), file.clone()), entry);
            return;
        }
        self.sets.remove(&(place.clone(), file.clone()));
        self.add_back(&entry, (place, file, text), before);
    }

    /// Notes what a group above others has for the sake of those below it.
    fn note_followed(&mut self, entry: &Entry, (place, file, text): (&Place, &str, &str), list: bool) {
        let follows = |file: &str| {
            let key = (place.clone(), file.to_owned());
            self.covered.parents.contains(place) || self.covered.unrequested.contains(&key)
        };
        if follows(plan::CPUS) && file == "cpuset.cpu_exclusive" && text.trim() == "1" {
            self.exclusive.insert(place.clone());
        }
        if list && follows(file) && self.covered.rest(place, file, text).is_none() {
            // what the layout gives it depends on what it had
            let before = match &entry.before {
                Before::Files(files) => files.first().map(|(_, text)| text.clone()),
                _ => None,
            };
            self.lists.insert((place.clone(), file.to_owned()), before.unwrap_or_default());
        }
    }

    /// Adds the writes that bring a text back.
    fn add_back(&mut self, entry: &Entry, (place, file, text): (&Place, &String, &str), before: Before) {
        // the rules of a v1 group go back together
        let (key, entry) = match devices_of(&entry.action) {
            Some(_) => {
                let (file, text) = ("devices.deny".to_owned(), "a".to_owned());
                let action = Action::Write { place: place.clone(), file, text };
                (DEVICES_V1.to_owned(), Entry { action, ..entry.clone() })
            }
            None => (target_key(file, text).to_owned(), entry.clone()),
        };
        let Some(actions) = self.acts_back(&entry, (place, file, text), before) else { return };
        let back = actions.into_iter().map(|action| Entry { action, ..entry.clone() });
        let (along, back): (Vec<Entry>, Vec<Entry>) =
            back.partition(|back| is_along(place, file, &back.action));
        self.add_along(place, along);
        let newer = self.writes.remove(&(place.clone(), file.clone(), key.clone())).unwrap_or_default();
        // of a device's line a newer generation may have set more
        let more = newer.iter().filter_map(|newer| without(newer, &back)).collect::<Vec<_>>();
        self.writes.insert((place.clone(), file.clone(), key), [more, back].concat());
    }

    /// What brings a text back that the layout does not set; `None` if the entry left it as it was.
    fn acts_back(
        &self,
        entry: &Entry,
        (place, file, text): (&Place, &String, &str),
        before: Before,
    ) -> Option<Vec<Action>> {
        let is_part = settings::has_period(file)
            && self.covered.files.contains_key(&(place.clone(), file.clone(), String::new()));
        match part_of_quota(text, &before).filter(|_| is_part) {
            Some(part) if part == CpuMax::default() => None,
            Some(part) => {
                Some(vec![Action::Write { place: place.clone(), file: file.clone(), text: part.to_string() }])
            }
            None => Some(inverse::inverse(&Entry { before, ..entry.clone() }, &[]).actions),
        }
    }

    /// Files that the write changed along with its own: what they contained before it counts more than what a newer
    /// generation found, which may be this one's doing.
    fn add_along(&mut self, place: &Place, along: Vec<Entry>) {
        for entry in along {
            let Action::Write { file, text, .. } = &entry.action else { continue };
            if self.covered.rest(place, file, text).is_some() {
                let key = (place.clone(), file.clone(), target_key(file, text).to_owned());
                self.writes.insert(key, vec![entry]);
            }
        }
    }
}

/// What a file contained before; `None` if that of a new group is not known.
fn before_of(
    record: &Record,
    entry: &Entry,
    (place, file, shown, list): (&Place, &str, &str, bool),
    then: usize,
) -> Option<Before> {
    match &entry.before {
        Before::New => match record.fresh.get(&(then, shown.to_owned())) {
            Some(fresh) => {
                let along = settings::changes(place.version, file).iter().filter_map(|other| {
                    let fresh = record.fresh.get(&(then, (*other).to_owned())).cloned();
                    let initial = || settings::initial(place.version, other).map(str::to_owned);
                    Some(((*other).to_owned(), fresh.or_else(initial)?))
                });
                Some(Before::Files(std::iter::once((shown.to_owned(), fresh.clone())).chain(along).collect()))
            }
            None => list.then(|| Before::Files(vec![(shown.to_owned(), String::new())])),
        },
        // the rules of groups below are theirs, which a layout may decide about
        Before::ListsBelow { own, .. } => Some(Before::Files(own.clone())),
        other => Some(other.clone()),
    }
}

/// Of a quota's file, what brings `rest`, the part that the layout does not set, back.
fn part_of_quota(rest: &str, before: &Before) -> Option<CpuMax> {
    let Before::Files(files) = before else { return None };
    let before: CpuMax = files.first()?.1.parse().ok()?;
    Some(before.differing_from(rest.parse().ok()?))
}

/// Does a write to `file` change what the action writes?
fn is_along(place: &Place, file: &str, action: &Action) -> bool {
    matches!(action, Action::Write { file: other, .. }
        if other != file && settings::changes(place.version, file).contains(&other.as_str()))
}

/// What of a device's line others do not write; `None` if nothing.
fn without(entry: &Entry, others: &[Entry]) -> Option<Entry> {
    let Action::Write { place, file, text } = &entry.action else { return None };
    let set = others.iter().filter_map(|other| match &other.action {
        Action::Write { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = plan::rest_of_line(file, text, &set.collect::<Vec<_>>().join(" "))?;
    Some(Entry { action: Action::Write { place: place.clone(), file: file.clone(), text }, ..entry.clone() })
}

/// Did a generation make this group, in the hierarchy as it counts them?
fn makes(record: &Record, path: &str, hierarchy: usize) -> bool {
    let is_it = |place: &Place| place.path == path && place.hierarchy == hierarchy;
    record.entries.iter().any(|entry| matches!(&entry.action, Action::CreateGroup { place } if is_it(place)))
}

/// The older step, with what the newer one knows of owners beside it.
fn with_newer(older: &Entry, newer: Option<Entry>) -> Entry {
    let both = match (&older.before, newer.map(|newer| newer.before)) {
        (Before::Owners(then), Some(Before::Owners(now))) => Before::Owners(owners_of_both(then, &now)),
        _ => return older.clone(),
    };
    Entry { before: both, ..older.clone() }
}
