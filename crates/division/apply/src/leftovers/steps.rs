//! From what has to go back to steps in the order that the kernel accepts.

use settings::CpuMax;
use units::hint::Command;

use super::*;
use crate::{
    membership::{holds_frozen, stays_elsewhere, to_above},
    order::cpuset_order,
};

impl Past<'_> {
    pub(super) fn steps(mut self, exclusive: &dyn Fn(&Place) -> CpuSet) -> Leftovers {
        let mut left = Leftovers::default();
        let (gone, returns) = self.removed(&mut left);
        // the layout makes a group that somebody removed again, without what it does not request
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
            left.dropped.gone.push(place.clone());
        }
        let renamed = self.renamed.keys().filter(|place| !self.covered.groups.contains(*place));
        left.dropped.gone.extend(renamed.cloned());
        self.found(&mut left);
        let stays = |place: &Place| !gone.contains(place);
        for ((place, ..), entries) in std::mem::take(&mut self.writes) {
            if stays(&place) && self.performer.exists(&place) {
                entries.into_iter().for_each(|entry| self.write(&entry, &mut left));
            }
        }
        // v1's rules of devices add up in the order of their lines
        let (rules, values) = std::mem::take(&mut left.before).into_iter().partition(is_device_rule);
        left.before = plan::in_order(values, &|place, file| self.performer.content(place, file));
        left.before.extend::<Vec<Step>>(rules);
        let mut sets: Vec<_> = std::mem::take(&mut self.sets).into_iter().collect();
        if !sets.is_empty() {
            self.partitions = self.partitions(&stays, &left);
        }
        sets.sort_by_key(|((place, _), _)| place.path.matches('/').count());
        for ((place, file), entry) in sets {
            if stays(&place) && self.performer.exists(&place) {
                self.parents_set(&place, &file, &entry, exclusive, &mut left);
            }
        }
        self.lists_below(&stays, &mut left);
        left.before.sort_by_key(cpuset_order);
        self.others(&stays, &mut left);
        self.affinities(exclusive, &mut left);
        self.controllers(&stays, &mut left);
        for (group, file) in &self.unknown {
            let message = format!(
                "{file} of group '{group}' is no longer in the layout and stays: what it was before is not in the record"
            );
            left.lints.push(Lint::new(LintKind::Leftover, Some(group), message));
        }
        // the removals come first, the deepest before those above it
        let mut removals: Vec<(Place, GroupName)> =
            self.made.into_iter().filter(|(place, _)| gone.contains(place)).collect();
        removals.sort_by_key(|(place, _)| std::cmp::Reverse(place.path.matches('/').count()));
        let removals = removals.into_iter().map(|(place, group)| {
            restoring(&group, Action::RemoveGroup { place }, "no longer in the layout; it is empty")
        });
        let removals: Vec<Step> = returns.into_iter().chain(removals).collect();
        left.before.splice(0..0, removals);
        left
    }

    /// What was there before the layouts that decided about it stays as it is.
    fn found(&self, left: &mut Leftovers) {
        let found: Vec<&Place> = self.found.keys().filter(|place| !self.made.contains_key(*place)).collect();
        left.dropped.gone.extend(found.iter().map(|place| (*place).clone()));
        left.dropped.owners.extend(self.owners.iter().cloned());
        // a v1 group that the layout names in another hierarchy is not out of it
        let is_out = |place: &Place| self.found.contains_key(place) && !self.is_named_elsewhere(place);
        let news = found.into_iter().filter(|place| !self.known.0.contains(*place) && is_out(place));
        let groups: BTreeSet<&GroupName> = news.map(|place| &self.found[place]).collect();
        let now = |(place, file, key): &Line, then: &str| match key.is_empty() {
            true => self.performer.content(place, file).unwrap_or_else(|| then.to_owned()),
            false => then.to_owned(),
        };
        let standing = |group: &GroupName| {
            let news = |line: &Line, of: &GroupName| of == group && !self.known.1.contains(line);
            let of_group = self.standing.iter().filter(|(line, (of, _))| news(line, of));
            of_group.map(|(line, (_, text))| format!("{} = {}", line.1, now(line, text))).collect::<Vec<_>>()
        };
        for group in &groups {
            let values = standing(group);
            let with = match values.len() {
                0 => String::new(),
                _ => format!(" ({})", values.join(", ")),
            };
            let message = format!(
                "group '{group}' is no longer in the layout and stays as it is{with}: it existed before a layout named it"
            );
            let hint = Command::ringfence("delete").group(group);
            let lint = Lint::new(LintKind::Stays, Some(group), message);
            left.lints.push(lint.hint(format!("if nothing else needs it: {hint}")));
        }
        for (line, (group, text)) in &self.standing {
            if self.known.1.contains(line) || is_out(&line.0) {
                continue;
            }
            let file = &line.1;
            let message = format!(
                "{file} of group '{group}' is no longer in the layout and stays {}: it was so before a layout set it",
                now(line, text)
            );
            left.lints.push(Lint::new(LintKind::Stays, Some(group), message));
        }
    }

    /// The directories that can go, with the moves that empty them; of those that can't, why.
    fn removed(&self, left: &mut Leftovers) -> (BTreeSet<Place>, Vec<Step>) {
        let mut gone: BTreeSet<Place> = BTreeSet::new();
        let mut returns = Vec::new();
        let mut made: Vec<(&Place, &GroupName)> = self.made.iter().collect();
        made.sort_by_key(|(place, _)| std::cmp::Reverse(place.path.matches('/').count()));
        let host = self.performer.host();
        let mut named: BTreeMap<(String, bool), Vec<String>> = BTreeMap::new();
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
                (_, None)
                    if place.version == Version::V1
                        && self.is_elsewhere(place)
                        && !holds_frozen(host, place) =>
                {
                    returns.extend(self.emptied(place, &tasks));
                    gone.insert(place.clone());
                    continue;
                }
                (0, Some(other)) => format!("group '{}' is in {directory}", host.named(at, other)),
                (1, _) => format!("1 process is in {directory}"),
                (count, _) => format!("{count} processes are in {directory}"),
            };
            left.dropped.groups.push(place.clone());
            let elsewhere = place.version == Version::V1 && self.is_elsewhere(place);
            named.entry((host.named(at, &place.path), elsewhere)).or_default().push(why);
        }
        for ((group, elsewhere), why) in named {
            let why = why.join(", ");
            let (message, hint) = match elsewhere {
                true => (
                    format!(
                        "group '{group}' stays where the layout sets nothing any more, without limits there: {why}"
                    ),
                    "its other limits hold; apply the layout again once that is gone, to remove the directory",
                ),
                false => (
                    format!(
                        "group '{group}' is no longer in the layout and stays, without its limits: {why}"
                    ),
                    "move the processes out, and apply the layout again to remove it",
                ),
            };
            left.lints.push(Lint::new(LintKind::Leftover, Some(&name(&group)), message).hint(hint));
        }
        (gone, returns)
    }

    /// Does the layout name the same group in another hierarchy?
    fn is_named_elsewhere(&self, place: &Place) -> bool {
        let host = self.performer.host();
        let Some(at) = self.performer.at(place) else { return false };
        let group = name(&host.named(at, &place.path));
        host.hierarchies().iter().any(|at| {
            let path = group.below(host.base(at).path());
            self.covered.groups.contains(&Place { hierarchy: at.id, path, version: at.version })
        })
    }

    /// Does the same group stay in another hierarchy, as the layout names it there or it was there before?
    fn is_elsewhere(&self, place: &Place) -> bool {
        self.is_named_elsewhere(place)
            || stays_elsewhere(self.performer.host(), place, |other| self.made.contains_key(other))
    }

    /// Moves processes to the nearest group above that no generation made for the group's sake.
    fn emptied(&self, place: &Place, tasks: &[u32]) -> Option<Step> {
        let tasks = to_above(self.performer.target, place, tasks, |above| self.made.contains_key(above));
        let group = self.made.get(place)?;
        let action = Action::ReturnTasks { place: place.clone(), tasks };
        Some(restoring(group, action, "the group stays, and is no longer in this hierarchy"))
    }

    fn write(&self, entry: &Entry, left: &mut Leftovers) {
        let Action::Write { place, file, text } = &entry.action else {
            if let Action::InheritSet { place, file } = &entry.action {
                self.parents_set(place, file, entry, &|_| CpuSet::new(), left);
            }
            return;
        };
        let now = self.performer.content(place, file);
        if now.is_none() && !file.starts_with("devices.") {
            return; // its controller went, and the value with it
        }
        let text = &whole_quota(file, text, now.as_deref());
        // of a file of lines by device only this one's line counts
        let line = settings::is_by_key(file);
        let is_restored = match now.as_deref() {
            Some(now) if line => self.performer.means(place, file, text, now),
            _ => is_so(
                &self.performer,
                &Action::Write { place: place.clone(), file: file.clone(), text: text.clone() },
            ),
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
        let action = Action::Write { place, file, text };
        let why = "no longer in the layout: as it was before";
        left.before.push(restoring(&entry.group, action, why).was(now));
    }

    /// What a file will contain, if the steps so far or the layout write it.
    fn planned(&self, group: &Place, file: &str, left: &Leftovers) -> Option<String> {
        let written = left.before.iter().rev().find_map(|step| match &step.action {
            Action::Write { place, file: of, text, .. } if place == group && of == file => Some(text.clone()),
            _ => None,
        });
        written.or_else(|| self.alone.get(&(group.clone(), file.to_owned())).cloned())
    }

    /// The partitions in effect of the hierarchy that has cpusets on v2.
    fn partitions(&self, stays: &dyn Fn(&Place) -> bool, left: &Leftovers) -> Vec<Partition> {
        let host = self.performer.host();
        let v2 = host.hierarchies().iter().filter(|at| at.version == Version::V2);
        let groups = v2.flat_map(|at| {
            let paths = host.kernel().descendants(at, "").unwrap_or_default();
            paths.into_iter().map(|path| Place { hierarchy: at.id, path, version: at.version })
        });
        let partition = |place: Place| {
            let state = self.performer.content(&place, plan::PARTITION)?;
            plan::is_partition(&state).then_some(())?;
            let cpus: CpuSet = self.performer.content(&place, plan::CPUS)?.trim().parse().ok()?;
            let ends = !stays(&place)
                || self
                    .planned(&place, "cpuset.cpus.partition", left)
                    .is_some_and(|text| text.trim() == "member");
            let list = self.planned(&place, "cpuset.cpus", left).and_then(|text| text.trim().parse().ok());
            let after = (!ends).then(|| list.unwrap_or_else(|| cpus.clone()));
            Some(Partition { place, cpus, after })
        };
        groups.filter_map(partition).collect()
    }

    /// The CPUs that partitions below a group have now and will not have: they are not in the group's effective list
    /// yet.
    fn released(&self, group: &Place) -> CpuSet {
        let is_below = |place: &Place| {
            place.hierarchy == group.hierarchy && group_path::is_below(&place.path, &group.path)
        };
        let below = self.partitions.iter().filter(|partition| is_below(&partition.place));
        let (now, after) = below.fold((CpuSet::new(), CpuSet::new()), |(now, after), partition| {
            let stays = partition.after.as_ref().map_or_else(|| after.clone(), |cpus| after.union(cpus));
            (now.union(&partition.cpus), stays)
        });
        now.difference(&after)
    }

    /// The CPUs or memory nodes that a group will have once the steps so far are done. On v2 it has those of its list
    /// that the group above has, and all of them without any; only a partition and the root have their own.
    pub(super) fn list_to_come(&self, group: &Place, file: &str, left: &Leftovers) -> CpuSet {
        let list = |text: &str| text.trim().parse::<CpuSet>().unwrap_or_default();
        let planned = self.planned(group, file, left);
        let own = planned.clone().or_else(|| self.performer.content(group, file));
        let own = own.as_deref().map(list).unwrap_or_default();
        if group.version == Version::V1 || planned.is_some() && !own.is_empty() {
            return own;
        }
        let is_it = |partition: &Partition| partition.place == *group && partition.after.is_some();
        match group_path::parent(&group.path).filter(|_| !self.partitions.iter().any(is_it)) {
            Some(above) => {
                let above = Place { path: above.to_owned(), ..group.clone() };
                let above = self.list_to_come(&above, file, left);
                let both = own.intersection(&above);
                if both.is_empty() { above } else { both }
            }
            None => {
                let effective = self.performer.content(group, &format!("{file}.effective"));
                let effective = effective.as_deref().map(list).unwrap_or_default();
                if file == plan::CPUS { effective.union(&self.released(group)) } else { effective }
            }
        }
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
        let all = self.list_to_come(&above, file, left);
        if self.performer.content(place, file).is_none() {
            return; // its controller went, and the list with it
        }
        let parent = self.covered.parents.contains(place);
        let taken = if file == plan::CPUS && !parent { exclusive(place) } else { CpuSet::new() };
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
        // v1, and v2 before 7.0, let no list become empty while processes are in the group; an empty one on v2 stands
        // for the CPUs of the group above
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
        let action = Action::Write { place, file, text };
        let why = "no longer in the layout: as its parent";
        left.before.push(restoring(&entry.group, action, why).was(now));
    }
}

fn is_device_rule(step: &Step) -> bool {
    matches!(&step.action, Action::Write { file, .. } if file.starts_with("devices."))
}

/// A quota or period alone, with the other part as it is now.
fn whole_quota(file: &str, text: &str, now: Option<&str>) -> String {
    let parse = |text: &str| text.parse::<CpuMax>().ok().filter(|_| settings::has_period(file));
    match (parse(text), now.and_then(parse)) {
        (Some(part), Some(now)) => part.or(now).to_string(),
        _ => text.to_owned(),
    }
}

pub(super) fn restoring(group: &GroupName, action: Action, why: &str) -> Step {
    Step { restores: true, ..Step::new(group.clone(), action, why) }
}
