//! What earlier layouts in effect changed and a new one does not decide about: as steps of its plan that bring it back
//! to what was there before the first of them. A layout is so the whole truth about what was applied. Only reads.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Seat;
use plan::{
    Action, Coverage, Dropped, Lint, LintKind, Observed, Outsider, Owned, Place, Plan, Step, target_key,
};
use settings::Version;
use units::{CpuSet, group_path};

use crate::{
    Failure, State, Target, away,
    before::DEVICES_V1,
    inverse,
    made::remade,
    perform::{Performer, name},
    record::{Act, Affinity, Before, Entry, Record, gives_back},
    rollback::is_so,
    stayed::Stayed,
};

/// The steps that go before those of the layout, and those behind.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// Releases: removals, limits lifted.
    pub before: Vec<Step>,
    /// Controllers that no group needs any more.
    pub after: Vec<Step>,
    /// What stays, and why.
    pub lints: Vec<Lint>,
    /// What earlier layouts decided about and this one does not.
    pub dropped: Dropped,
    /// v1's groups above others that earlier layouts made exclusive for the sake of groups below them.
    pub exclusive: BTreeSet<Place>,
    /// Lists of CPUs and memory nodes that groups above others had before earlier layouts, by file.
    pub lists: BTreeMap<(Place, String), String>,
}

/// The layouts in effect: what a new one has to take back.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Oldest first.
    records: Vec<Record>,
    /// What undos had to leave, with the record of its generation where that is still there.
    stayed: Vec<(Stayed, Option<Record>)>,
    /// Groups of theirs that somebody removed and made again.
    remade: BTreeSet<Place>,
}

impl Earlier {
    /// None: what is planned adds to whatever there is.
    pub fn none() -> Earlier {
        Earlier::default()
    }

    /// Those of a history that are in effect.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn read(state: &State, target: Target<'_>) -> Result<Earlier, Failure> {
        let records = layouts(state, target)?;
        let last = state.last()?.filter(|last| last.head.boot == target.system.boot());
        let stayed = last.as_ref().map(crate::Summary::stayed).unwrap_or_default();
        let with_record = |stayed: Stayed| {
            let there = state.is_there(stayed.generation);
            Ok((stayed.clone(), there.then(|| state.record(stayed.generation)).transpose()?))
        };
        let stayed = stayed.into_iter().map(with_record).collect::<Result<Vec<_>, Failure>>()?;
        let all = records.iter().chain(stayed.iter().filter_map(|(_, record)| record.as_ref()));
        let remade = remade(all, state, target)?;
        Ok(Earlier { records, stayed, remade })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.stayed.is_empty()
    }

    /// Did any of them change cpusets?
    pub(crate) fn has_cpusets(&self) -> bool {
        let of_cpuset = |entry: &Entry| match &entry.act {
            Act::Write { file, .. } => file.starts_with("cpuset."),
            Act::MoveTasksAway { .. } => true,
            _ => false,
        };
        let stayed = self.stayed.iter().map(|(stayed, _)| &stayed.entry);
        self.records.iter().flat_map(|record| &record.entries).chain(stayed).any(of_cpuset)
    }
}

fn layouts(state: &State, target: Target<'_>) -> Result<Vec<Record>, Failure> {
    let Some(last) = state.last()?.filter(|last| last.head.boot == target.system.boot()) else {
        return Ok(Vec::new());
    };
    let mut records = Vec::new();
    for generation in last.in_effect() {
        if state.is_there(*generation) && state.summary(*generation)?.head.layout {
            records.push(state.record(*generation)?);
        }
    }
    Ok(records)
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
    let mut past = Past::new(target, covered, &earlier.remade);
    let adopted = earlier.stayed.iter().filter_map(|(stayed, _)| stayed.group(target.host));
    let adopted: BTreeSet<Place> = adopted.filter(|place| covered.groups.contains(place)).collect();
    // an older generation knows better what was there before all of them
    let mut stayed: Vec<&(Stayed, Option<Record>)> = earlier.stayed.iter().collect();
    stayed.sort_by_key(|(stayed, _)| (stayed.generation, stayed.step));
    for record in earlier.records.iter().rev() {
        while let Some((newer, of)) = stayed.pop_if(|(stayed, _)| stayed.generation > record.head.generation)
        {
            past.add_stayed(newer, of.as_ref());
        }
        past.add(record);
    }
    for (stayed, of) in stayed.into_iter().rev() {
        past.add_stayed(stayed, of.as_ref());
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

/// What is to be brought back, as the generations are gone through from the newest to the oldest.
struct Past<'p> {
    performer: Performer<'p>,
    covered: &'p Coverage,
    /// Groups that somebody removed and made again: not the generations' any more.
    remade: &'p BTreeSet<Place>,
    /// Directories that the generations made, with the group.
    made: BTreeMap<Place, String>,
    /// By place, file and line: the writes that bring it back.
    writes: BTreeMap<(Place, String, String), Vec<Entry>>,
    /// Cpusets of groups that the generations made, which have no list of their own to go back to.
    sets: BTreeMap<(Place, String), Entry>,
    others: BTreeMap<(Place, &'static str), Entry>,
    /// What a directory handed down for the layouts' sake, by controller with the groups that were below it then.
    controllers: BTreeMap<Place, (String, BTreeMap<String, Vec<String>>)>,
    affinities: BTreeMap<Place, (Entry, Vec<Affinity>)>,
    unknown: Vec<(String, String)>,
    dropped: BTreeSet<(Place, String, String)>,
    exclusive: BTreeSet<Place>,
    lists: BTreeMap<(Place, String), String>,
    /// What the layout would write if no group had CPUs.
    alone: BTreeMap<(Place, String), String>,
}

impl<'p> Past<'p> {
    fn new(target: Target<'p>, covered: &'p Coverage, remade: &'p BTreeSet<Place>) -> Past<'p> {
        let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
        let (made, writes, sets, others, controllers) = Default::default();
        let (affinities, unknown, dropped, exclusive, lists, alone) = Default::default();
        Past {
            performer,
            covered,
            remade,
            made,
            writes,
            sets,
            others,
            controllers,
            affinities,
            unknown,
            dropped,
            exclusive,
            lists,
            alone,
        }
    }

    fn add(&mut self, record: &Record) {
        let now = record.hierarchies(self.performer.host());
        for (step, entry) in record.entries.iter().enumerate().rev() {
            let Some(place) = entry.act.place() else { continue };
            let Some(Some(at)) = now.get(place.hierarchy) else { continue };
            self.add_step(record, step, &entry.at_hierarchy(at.id), place.hierarchy);
        }
    }

    fn add_stayed(&mut self, stayed: &Stayed, record: Option<&Record>) {
        let Some(entry) = stayed.here(self.performer.host()) else { return };
        let Some(record) = record else {
            if let Act::CreateGroup { place } = &entry.act
                && !self.covered.groups.contains(place)
            {
                self.made.insert(place.clone(), entry.group.clone());
            }
            return;
        };
        let then =
            record.entries.get(stayed.step).and_then(|step| step.act.place()).map(|place| place.hierarchy);
        let Some(then) = then else { return };
        self.add_step(record, stayed.step, &entry, then);
        // where the removal was refused, what the generation set in the group may be in force still
        if let Act::CreateGroup { place } = &entry.act
            && self.covered.groups.contains(place)
        {
            let made = record.entries[stayed.step].act.place();
            let steps = record.entries.iter().enumerate().rev();
            for (step, entry) in steps.filter(|(_, entry)| entry.act.place() == made) {
                self.add_step(record, step, &entry.at_hierarchy(place.hierarchy), then);
            }
        }
    }

    fn add_step(&mut self, record: &Record, step: usize, entry: &Entry, then: usize) {
        let Some(place) = entry.act.place().cloned() else { return };
        if self.remade.contains(&place) && !self.covered.groups.contains(&place) {
            return;
        }
        match &entry.act {
            Act::CreateGroup { .. } if !self.covered.groups.contains(&place) => {
                self.made.insert(place, entry.group.clone());
            }
            Act::Write { file, text, .. } => self.add_write(record, entry, (&place, file, text), then),
            Act::EnableControllers { .. } => {
                let (off, children) = match (&entry.before, &entry.act) {
                    (Before::Controllers { off, children, .. }, _) => (off.clone(), children.clone()),
                    // in a group of the generation's own nothing was handed down before
                    (_, Act::EnableControllers { names, .. }) => (names.clone(), Vec::new()),
                    _ => return,
                };
                let needed = self.covered.controllers.get(&place);
                let idle = off.iter().filter(|name| !needed.is_some_and(|needed| needed.contains(*name)));
                let idle: Vec<(String, Vec<String>)> =
                    idle.map(|name| (name.clone(), children.clone())).collect();
                let of_place = self.controllers.entry(place);
                of_place.or_insert_with(|| (entry.group.clone(), BTreeMap::new())).1.extend(idle);
            }
            // one that took back what an older layout gave is not what its own asked for
            Act::SetOwnership { access, .. } if !entry.restores && self.gives_more(&place, access) => {
                let newer = self.others.remove(&(place.clone(), "owners"));
                self.others.insert((place, "owners"), with_newer(entry, newer));
            }
            Act::SetDevices { .. } if !self.covered.devices.contains(&place) => {
                self.others.insert((place, "devices"), entry.clone());
            }
            Act::MoveTasksAway { .. } => {
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
        let devices = matches!(file.as_str(), "devices.allow" | "devices.deny");
        let parent = self.covered.parents.contains(place);
        if parent && file == "cpuset.cpu_exclusive" && text.trim() == "1" {
            self.exclusive.insert(place.clone());
        }
        let list = matches!(file.as_str(), "cpuset.cpus" | "cpuset.mems");
        let Some(text) = self.covered.rest(place, file, text) else {
            if parent && list {
                // what the layout gives it depends on what it had
                let before = match &entry.before {
                    Before::Files(files) => files.first().map(|(_, text)| text.clone()),
                    _ => None,
                };
                self.lists.insert((place.clone(), file.clone()), before.unwrap_or_default());
            }
            return;
        };
        let (text, entry) = (
            &text,
            &match &entry.act {
                Act::Write { place, file, .. } => Entry {
                    act: Act::Write { place: place.clone(), file: file.clone(), text: text.clone() },
                    ..entry.clone()
                },
                _ => entry.clone(),
            },
        );
        if devices && self.covered.devices.contains(place)
            || settings::lookup(file).is_some_and(|found| found.setting.access == settings::Access::Write)
                && !devices
        {
            return;
        }
        let key = (place.clone(), file.clone(), target_key(file, text).to_owned());
        if !self.covered.files.contains_key(&key) {
            self.dropped.insert(key);
        }
        let shown = if devices { DEVICES_V1 } else { file };
        let before = match &entry.before {
            Before::New => match record.fresh.get(&(then, shown.to_owned())) {
                Some(fresh) => Before::Files(vec![(shown.to_owned(), fresh.clone())]),
                None if list => Before::Files(vec![(shown.to_owned(), String::new())]),
                None => {
                    self.unknown.push((entry.group.clone(), file.clone()));
                    return;
                }
            },
            other => other.clone(),
        };
        let empty = matches!(&before, Before::Files(files) if files.first().is_some_and(|(_, text)| text.trim().is_empty()));
        if list && (empty || entry.before == Before::New) {
            self.writes.remove(&(place.clone(), file.clone(), String::new()));
            self.sets.insert((place.clone(), file.clone()), entry.clone());
            return;
        }
        self.sets.remove(&(place.clone(), file.clone()));
        // the rules of a v1 group go back together
        let (key, entry) = if devices {
            let act =
                Act::Write { place: place.clone(), file: "devices.deny".to_owned(), text: "a".to_owned() };
            (DEVICES_V1.to_owned(), Entry { act, ..entry.clone() })
        } else {
            (target_key(file, text).to_owned(), entry.clone())
        };
        let inverse = inverse::inverse(&Entry { before, ..entry.clone() }, &[]);
        let back = inverse.acts.into_iter().map(|act| Entry { act, ..entry.clone() });
        let back: Vec<Entry> = back.collect();
        let newer = self.writes.remove(&(place.clone(), file.clone(), key.clone())).unwrap_or_default();
        // of a device's line a newer generation may have set more
        let more = newer.iter().filter_map(|newer| without(newer, &back)).collect::<Vec<_>>();
        self.writes.insert((place.clone(), file.clone(), key), [more, back].concat());
    }

    fn steps(mut self, exclusive: &dyn Fn(&Place) -> CpuSet) -> Leftovers {
        let mut left = Leftovers::default();
        let (gone, returns) = self.removed(&mut left);
        // one that somebody removed is made again by the layout, without what it does not ask for
        let there = |place: &Place| {
            (self.performer.exists(place) || self.covered.groups.contains(place)) && !gone.contains(place)
        };
        left.dropped.files =
            std::mem::take(&mut self.dropped).into_iter().filter(|(place, ..)| there(place)).collect();
        left.exclusive = std::mem::take(&mut self.exclusive);
        left.lists = std::mem::take(&mut self.lists);
        for place in self.remade.iter().filter(|place| !self.covered.groups.contains(*place)) {
            let group = self.performer.at(place).map(|at| self.performer.host().named(at, &place.path));
            let message = self.performer.remade(place);
            left.lints.push(Lint::new(LintKind::Leftover, group.as_deref().map(name).as_ref(), message));
        }
        let stays = |place: &Place| !gone.contains(place);
        for ((place, ..), entries) in std::mem::take(&mut self.writes) {
            if stays(&place) && self.performer.exists(&place) {
                entries.into_iter().for_each(|entry| self.write(&entry, &mut left));
            }
        }
        let mut sets: Vec<_> = std::mem::take(&mut self.sets).into_iter().collect();
        sets.sort_by_key(|((place, _), _)| place.path.matches('/').count());
        for ((place, file), entry) in sets {
            if stays(&place) && self.performer.exists(&place) {
                self.parents_set(&place, &file, &entry, exclusive, &mut left);
            }
        }
        left.before.sort_by_key(cpuset_order);
        self.rest(&stays, exclusive, &mut left);
        for (group, file) in &self.unknown {
            let message = format!(
                "{file} of group '{group}' is no longer in the layout and stays: what it was before is not in the record"
            );
            left.lints.push(Lint::new(LintKind::Leftover, Some(&name(group)), message));
        }
        // the removals come first, the deepest before those above it
        let mut removals: Vec<(Place, String)> =
            self.made.into_iter().filter(|(place, _)| gone.contains(place)).collect();
        removals.sort_by_key(|(place, _)| std::cmp::Reverse(place.path.matches('/').count()));
        let removals = removals.into_iter().map(|(place, group)| {
            restoring(&group, Action::RemoveGroup { place }, "no longer in the layout; it is empty")
        });
        let removals: Vec<Step> = returns.into_iter().chain(removals).collect();
        left.before.splice(0..0, removals);
        left
    }

    /// The directories that can go, with the moves that empty them; of those that can't, why.
    fn removed(&self, left: &mut Leftovers) -> (BTreeSet<Place>, Vec<Step>) {
        let mut gone: BTreeSet<Place> = BTreeSet::new();
        let mut returns = Vec::new();
        let mut made: Vec<(&Place, &String)> = self.made.iter().collect();
        made.sort_by_key(|(place, _)| std::cmp::Reverse(place.path.matches('/').count()));
        let host = self.performer.host();
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (place, _) in made {
            let Some(at) = self.performer.at(place).filter(|_| self.performer.exists(place)) else {
                left.dropped.gone.push(place.clone());
                continue;
            };
            let tasks = host.tasks_in(&Seat { at, path: place.path.clone() });
            let below = host.kernel().descendants(at, &place.path).unwrap_or_default();
            let stays = |path: &&String| !gone.contains(&Place { path: (*path).clone(), ..place.clone() });
            let other = below.iter().find(stays);
            let directory = self.performer.directory(place);
            let why = match (tasks.len(), other) {
                (0, None) => {
                    gone.insert(place.clone());
                    continue;
                }
                // the group itself stays, in other hierarchies: its processes need not be in this one
                (_, None) if place.version == Version::V1 && self.is_elsewhere(place) => {
                    returns.extend(self.emptied(place, &tasks));
                    gone.insert(place.clone());
                    continue;
                }
                (0, Some(other)) => format!("group '{}' is in {directory}", host.named(at, other)),
                (1, _) => format!("1 process is in {directory}"),
                (count, _) => format!("{count} processes are in {directory}"),
            };
            left.dropped.groups.push(place.clone());
            named.entry(host.named(at, &place.path)).or_default().push(why);
        }
        for (group, why) in named {
            let message = format!(
                "group '{group}' is no longer in the layout and stays, without its limits: {}",
                why.join(", ")
            );
            let hint = "move the processes out, and apply the layout again to remove it";
            left.lints.push(Lint::new(LintKind::Leftover, Some(&name(&group)), message).hint(hint));
        }
        (gone, returns)
    }

    /// Does the layout name the same group in another hierarchy?
    fn is_elsewhere(&self, place: &Place) -> bool {
        let host = self.performer.host();
        let Some(at) = self.performer.at(place) else { return false };
        let group = name(&host.named(at, &place.path));
        let places = host.hierarchies().iter().map(|at| Place {
            hierarchy: at.id,
            path: group.below(host.base(at).path()),
            version: at.version,
        });
        places.into_iter().any(|place| self.covered.groups.contains(&place))
    }

    /// Moves processes to the nearest group above that no generation made for the group's sake.
    fn emptied(&self, place: &Place, tasks: &[u32]) -> Option<Step> {
        let mut above = place.path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            above = parent;
            if !self.made.contains_key(&Place { path: above.to_owned(), ..place.clone() }) {
                break;
            }
        }
        let above = if self.made.contains_key(&Place { path: above.to_owned(), ..place.clone() })
            || above == place.path
        {
            ""
        } else {
            above
        };
        let system = self.performer.system();
        let outsider = |pid: &u32| {
            Some(Outsider { thread: *pid, started: system.started(*pid).ok()?, from: above.to_owned() })
        };
        let tasks: Vec<Outsider> = tasks.iter().filter_map(outsider).collect();
        let group = self.made.get(place)?;
        let action = Action::ReturnTasks { place: place.clone(), tasks };
        Some(restoring(group, action, "the layout has no setting for the group here any more"))
    }

    fn write(&self, entry: &Entry, left: &mut Leftovers) {
        let Act::Write { place, file, text } = &entry.act else {
            if let Act::InheritSet { place, file } = &entry.act {
                self.parents_set(place, file, entry, &|_| CpuSet::new(), left);
            }
            return;
        };
        let now = self.performer.content(place, file);
        if now.is_none() && !file.starts_with("devices.") {
            return; // its controller went, and the value with it
        }
        // of a file of lines by device only this one's line counts
        let line = plan::is_by_key(file);
        let is_restored = match now.as_deref() {
            Some(now) if line => self.performer.means(place, file, text, now),
            _ => is_so(&self.performer, &entry.act),
        };
        if is_restored && !file.starts_with("devices.") {
            return;
        }
        if file.starts_with("devices.") {
            let list = self.performer.content(place, DEVICES_V1).unwrap_or_default();
            let all = |text: &str| text.trim_start().starts_with('a');
            if all(text) == all(&list) && (all(text) || list.lines().any(|line| line == text)) {
                return;
            }
        }
        let (place, file, text) = (place.clone(), file.clone(), text.clone());
        let action = Action::Write { place, file, text, before: now };
        left.before.push(restoring(&entry.group, action, "no longer in the layout: as it was before"));
    }

    /// A group of an earlier generation's own that stays has its parent's CPUs and memory nodes, less those that the
    /// layout gives to single groups.
    fn parents_set(
        &self,
        place: &Place,
        file: &str,
        entry: &Entry,
        exclusive: &dyn Fn(&Place) -> CpuSet,
        left: &mut Leftovers,
    ) {
        let above = group_path::parent(&place.path).unwrap_or_default();
        let above = Place { path: above.to_owned(), ..place.clone() };
        let planned = left.before.iter().rev().find_map(|step| match &step.action {
            Action::Write { place, file: of, text, .. } if *place == above && of == file => {
                Some(text.clone())
            }
            _ => None,
        });
        let effective = format!("{file}.effective");
        let shown = match place.version {
            Version::V1 => self.performer.content(&above, file),
            Version::V2 => {
                self.performer.content(&above, &effective).or_else(|| self.performer.content(&above, file))
            }
        };
        let planned = planned.or_else(|| self.alone.get(&(above.clone(), file.to_owned())).cloned());
        let all: CpuSet = planned.or(shown).and_then(|text| text.trim().parse().ok()).unwrap_or_default();
        if self.performer.content(place, file).is_none() {
            return; // its controller went, and the list with it
        }
        // what a partition has is not in the list above while it is one
        let released = left.before.iter().filter_map(|step| match &step.action {
            Action::Write { place: other, file: flag, text, .. }
                if flag == "cpuset.cpus.partition"
                    && text.trim() == "member"
                    && other.hierarchy == place.hierarchy
                    && group_path::parent(&other.path).unwrap_or_default() == above.path =>
            {
                self.performer.content(other, "cpuset.cpus")?.parse::<CpuSet>().ok()
            }
            _ => None,
        });
        let all = match file {
            "cpuset.cpus" => released.fold(all, |all, cpus| all.union(&cpus)),
            _ => all,
        };
        let parent = self.covered.parents.contains(place);
        let taken = if file == "cpuset.cpus" && !parent { exclusive(place) } else { CpuSet::new() };
        let rest = all.difference(&taken);
        let rest = if rest.is_empty() { all } else { rest };
        let now = self.performer.content(place, file);
        if rest.is_empty() {
            return;
        }
        let seat = self.performer.at(place).map(|at| Seat { at, path: place.path.clone() });
        let host = self.performer.host();
        let populated = seat.is_some_and(|seat| {
            let below = host.kernel().descendants(seat.at, &place.path).unwrap_or_default();
            let has_tasks = |path: String| !host.tasks_in(&Seat { at: seat.at, path }).is_empty();
            has_tasks(place.path.clone()) || below.into_iter().any(has_tasks)
        });
        // v1, and v2 before 7.0, let no list become empty while processes are in the group; an empty one on v2 stands for
        // the CPUs of the group above
        let has_list = now.as_deref().is_some_and(|now| !now.trim().is_empty());
        let own = populated && (place.version == Version::V1 || has_list || !taken.is_empty());
        let text = if own { rest.to_string() } else { "\n".to_owned() };
        if now.as_deref().map(str::trim) == Some(text.trim()) {
            return;
        }
        if own && !self.made.contains_key(place) {
            let group = self.performer.at(place).map(|at| host.named(at, &place.path)).unwrap_or_default();
            let message = format!(
                "{file} of group '{group}' was empty before, and becomes {text}, as its parent's: the kernel takes no empty list while processes are in the group"
            );
            left.lints.push(Lint::new(LintKind::Leftover, Some(&name(&group)), message));
        }
        let (place, file) = (place.clone(), file.to_owned());
        let action = Action::Write { place, file, text, before: now };
        let why = "no longer in the layout: as its parent";
        left.before.push(restoring(&entry.group, action, why));
    }

    /// Owners, device rules, threads' CPUs, controllers.
    fn rest(
        &self,
        stays: &dyn Fn(&Place) -> bool,
        exclusive: &dyn Fn(&Place) -> CpuSet,
        left: &mut Leftovers,
    ) {
        let why = "no longer in the layout: as it was before";
        for ((place, _), entry) in &self.others {
            if !stays(place) || !self.performer.exists(place) {
                continue;
            }
            match (&entry.act, &entry.before) {
                (Act::SetOwnership { .. }, Before::Owners(owners)) => {
                    let at = self.performer.at(place);
                    let names: Vec<Option<&str>> = owners.iter().map(|(file, _)| file.as_deref()).collect();
                    let system = self.performer.system();
                    let now = at.and_then(|at| system.owned_each(at, &place.path, &names).ok());
                    let same = now.is_some_and(|now| {
                        now.iter()
                            .zip(owners)
                            .all(|(now, then)| (now.0, now.1) == (then.0.as_deref(), then.1))
                    });
                    if !same {
                        let action = Action::RestoreOwners { place: place.clone(), owners: owners.clone() };
                        left.before.push(restoring(&entry.group, action, why));
                    }
                }
                (Act::SetOwnership { access, .. }, Before::New) => {
                    let (uid, gid) = self.performer.system().maker();
                    let at = self.performer.at(place);
                    let system = self.performer.system();
                    let kernel = self.performer.host().kernel();
                    let now = at.and_then(|at| {
                        let files = kernel.files(at, &place.path).ok()?;
                        let each = files.iter().map(|file| Some(file.as_str())).chain([None]);
                        let owned = system.owned_each(at, &place.path, &each.collect::<Vec<_>>()).ok()?;
                        Some(owned.into_iter().map(|(_, owned)| owned).collect::<Vec<Owned>>())
                    });
                    let others =
                        |now: Vec<Owned>| now.iter().any(|owned| (owned.uid, owned.gid) != (uid, gid));
                    if now.is_none_or(others) {
                        let access = plan::Ownership {
                            tasks_uid: Some(uid),
                            tasks_gid: Some(gid),
                            admin_uid: Some(uid),
                            admin_gid: Some(gid),
                            tasks_mode: access.tasks_mode.map(|_| 0o644),
                            file_mode: access.file_mode.map(|_| 0o644),
                            directory_mode: access.directory_mode.map(|_| 0o755),
                        };
                        let action = Action::SetOwnership { place: place.clone(), access };
                        left.before.push(restoring(&entry.group, action, why));
                    }
                }
                (Act::SetDevices { .. }, before) => {
                    let rules = match before {
                        Before::Devices(rules) => rules.clone(),
                        _ => None,
                    };
                    let at = self.performer.at(place);
                    let kernel = self.performer.host().kernel();
                    let now = at.and_then(|at| kernel.device_filter(at, &place.path).ok().flatten());
                    if now.map(|filter| filter.access.to_string()) != rules {
                        let action = Action::RestoreDevices { place: place.clone(), rules };
                        left.before.push(restoring(&entry.group, action, why));
                    }
                }
                _ => {}
            }
        }
        for (place, (entry, threads)) in &self.affinities {
            let taken = exclusive(place);
            let system = self.performer.system();
            // those whose makers are gone by now, too
            let came = away::came_since(&self.performer, place, threads);
            let back = threads.iter().chain(&came).filter_map(|affinity| {
                let cpus = affinity.cpus.difference(&taken);
                let cpus = if cpus.is_empty() { return None } else { cpus };
                let alive = system.started(affinity.thread) == Ok(affinity.started);
                // one that refused to leave its CPUs has them still
                let same =
                    system.affinity(affinity.thread).is_ok_and(|now| now == cpus || now == affinity.cpus);
                (alive && !same).then(|| Affinity { cpus, ..affinity.clone() })
            });
            let threads: Vec<Affinity> = back.collect();
            if !threads.is_empty() {
                let action = Action::RestoreAffinities { place: place.clone(), threads };
                left.before.push(restoring(&entry.group, action, why));
            }
        }
        // a group can't take back what one below it hands on
        let mut controllers: Vec<_> = self.controllers.iter().collect();
        controllers.sort_by_key(|(place, _)| {
            std::cmp::Reverse(place.path.split('/').filter(|part| !part.is_empty()).count())
        });
        let mut off: BTreeMap<Place, BTreeSet<String>> = BTreeMap::new();
        for (place, (group, names)) in controllers {
            let (idle, used) = self.idle(place, names, stays, &off);
            for (name, by) in used {
                let directory = self.performer.directory(place);
                let message = format!("{name} stays enabled in {directory}: group '{by}' may use it");
                left.lints.push(Lint::new(LintKind::Leftover, None, message));
            }
            if !idle.is_empty() {
                let names = idle.iter().cloned().collect();
                let action = Action::DisableControllers { place: place.clone(), names };
                left.after.push(restoring(group, action, "no group of the layout needs it"));
                off.insert(place.clone(), idle);
            }
        }
    }

    /// The controllers that nobody below uses, and the others with who may use them: groups that came since then and are
    /// not the layouts'. `off`: what groups below stop to hand on.
    fn idle(
        &self,
        place: &Place,
        names: &BTreeMap<String, Vec<String>>,
        stays: &dyn Fn(&Place) -> bool,
        off: &BTreeMap<Place, BTreeSet<String>>,
    ) -> (BTreeSet<String>, BTreeMap<String, String>) {
        let on = |place: &Place| -> BTreeSet<String> {
            let text = self.performer.content(place, "cgroup.subtree_control").unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        let Some(at) = self.performer.at(place).filter(|_| stays(place)) else { return Default::default() };
        let Ok(children) = self.performer.host().kernel().children(at, &place.path) else {
            return Default::default();
        };
        let mut used = BTreeMap::new();
        let now = on(place);
        let mut idle: BTreeSet<String> = names.keys().filter(|name| now.contains(*name)).cloned().collect();
        for name in children {
            let path = if place.path.is_empty() { name.clone() } else { format!("{}/{name}", place.path) };
            let child = Place { path, ..place.clone() };
            if !stays(&child) {
                continue;
            }
            let stopped = off.get(&child).cloned().unwrap_or_default();
            let handed = on(&child);
            let others = !self.covered.groups.contains(&child) && !self.made.contains_key(&child);
            idle.retain(|controller| {
                // one that is neither ours nor was there before may have come to use it
                let came = others && !names.get(controller).is_some_and(|were| were.contains(&name));
                let uses = came || handed.contains(controller) && !stopped.contains(controller);
                if uses {
                    used.insert(controller.clone(), self.performer.host().named(at, &child.path));
                }
                !uses
            });
        }
        (idle, used)
    }
}

/// What of a device's line others do not write; `None` if nothing.
fn without(entry: &Entry, others: &[Entry]) -> Option<Entry> {
    let Act::Write { place, file, text } = &entry.act else { return None };
    let set = others.iter().filter_map(|other| match &other.act {
        Act::Write { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = plan::rest_of_line(file, text, &set.collect::<Vec<_>>().join(" "))?;
    Some(Entry { act: Act::Write { place: place.clone(), file: file.clone(), text }, ..entry.clone() })
}

/// What an older generation knows of owners goes before what a newer one knows, which may be of more files.
fn with_newer(older: &Entry, newer: Option<Entry>) -> Entry {
    let Some(newer) = newer else { return older.clone() };
    match (&older.before, newer.before) {
        (Before::Owners(then), Before::Owners(now)) => {
            let mut owners = then.clone();
            // files that came with a controller since then are the maker's
            owners.extend(now.into_iter().filter(|(file, _)| !gives_back(then, file.as_deref())));
            Entry { before: Before::Owners(owners), ..older.clone() }
        }
        _ => older.clone(),
    }
}

/// The order that the kernel takes: what is exclusive is released before lists change, from the deepest group up; lists
/// grow from the top down and shrink from the deepest up; then groups become exclusive again. All else comes behind.
fn cpuset_order(step: &Step) -> (u8, isize) {
    let Action::Write { place, file, text, before } = &step.action else { return (4, 0) };
    let depth = isize::try_from(place.path.matches('/').count()).unwrap_or(isize::MAX);
    let set = |text: &str| text.trim().parse::<CpuSet>().unwrap_or_default();
    match file.as_str() {
        "cpuset.cpu_exclusive" | "cpuset.mem_exclusive" | "cpuset.cpus.partition" => match text.trim() {
            "0" | "member" => (0, -depth),
            _ => (3, depth),
        },
        "cpuset.cpus" | "cpuset.mems" => {
            match set(before.as_deref().unwrap_or_default()).is_subset(&set(text)) {
                true => (1, depth),
                false => (2, -depth),
            }
        }
        _ => (4, 0),
    }
}

fn restoring(group: &str, action: Action, why: &str) -> Step {
    Step { group: name(group), action, why: why.to_owned(), restores: true }
}

/// The machine as it will be once these steps are done, as far as a plan looks at it.
pub(crate) fn foresee(observed: &mut Observed, steps: &[Step]) {
    for step in steps {
        let Some(place) = step.action.place() else { continue };
        let Some(at) = observed.hierarchies.get_mut(place.hierarchy) else { continue };
        match &step.action {
            Action::RemoveGroup { place } => {
                at.groups.remove(&place.path);
            }
            Action::RestoreOwners { place, owners } => {
                let Some(group) = at.groups.get_mut(&place.path) else { continue };
                for (file, owned) in owners {
                    match file {
                        None => group.directory = Some(*owned),
                        Some(file) => drop(group.owners.insert(file.clone(), *owned)),
                    }
                }
            }
            Action::SetOwnership { place, access } => {
                let Some(group) = at.groups.get_mut(&place.path) else { continue };
                let owners = group.owners.values_mut().chain(group.directory.as_mut());
                let (uid, gid) = (access.admin_uid, access.admin_gid);
                owners.for_each(|owned| {
                    (owned.uid, owned.gid) = (uid.unwrap_or(owned.uid), gid.unwrap_or(owned.gid));
                });
            }
            Action::Write { place, file, text, .. } => {
                if let Some(group) = at.groups.get_mut(&place.path)
                    && !plan::is_by_key(file)
                {
                    group.files.insert(file.clone(), text.trim_end_matches('\n').to_owned());
                }
            }
            _ => {}
        }
    }
}
