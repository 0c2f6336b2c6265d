//! What resizing wrote to groups that no earlier layout had to write to: it goes back, too.

use super::{steps::restoring, *};
use crate::{originals::Original, performer::is_at_or_below, reading::content};
use plan::Action;

/// What files contained before resizing, as the generations are gone through from the newest to the oldest.
#[derive(Default)]
pub(super) struct Resized {
    /// The groups that all layouts so far resize; `None` before the first: what stopped that one gave back its files.
    groups: Option<BTreeSet<String>>,
    /// v1's lists below elastic groups.
    below: BTreeMap<Place, Entry>,
}

/// A list of CPUs below a group that was elastic and has CPUs by the layout.
#[derive(Debug, Clone)]
pub(crate) struct Below {
    pub place: Place,
    /// The layout's group for whose sake it was written.
    pub group: GroupName,
    /// What it was before.
    pub own: CpuSet,
}

/// Lists below groups that the plan gives CPUs go back as far as these have their CPUs: steps behind the plan's. Below a group
/// that goes on being elastic they follow it.
pub(crate) fn lists_behind(target: Target<'_>, below: &[Below], plan: &Plan) -> Vec<Step> {
    let host = target.host;
    let elastic: Vec<&str> = plan
        .upkeep
        .elastic
        .iter()
        .flat_map(|scope| scope.groups.iter().map(|group| scope.directory(group)))
        .collect();
    let list = |text: &str| text.trim().parse::<CpuSet>().unwrap_or_default();
    let then = |place: &Place| {
        let written = plan.steps.iter().rev().find_map(|step| match &step.action {
            Action::Write { place: of, file, text, .. } if of == place && file == plan::CPUS => {
                Some(list(text))
            }
            _ => None,
        });
        written.or_else(|| content(host, place, plan::CPUS).as_deref().map(list)).unwrap_or_default()
    };
    let (mut grow, mut shrink, mut given) = (Vec::new(), Vec::new(), BTreeMap::new());
    for Below { place, group, own } in below {
        let Some(at) = host.hierarchies().get(place.hierarchy) else { continue };
        let named = host.named(at, &place.path);
        if elastic.iter().any(|above| group_path::is_at_or_below(&named, above)) {
            continue;
        }
        let above = group_path::parent(&place.path).unwrap_or_default().to_owned();
        let above = Place { path: above, ..place.clone() };
        let above = given.get(&above).cloned().unwrap_or_else(|| then(&above));
        let (now, to) = (then(place), own.intersection(&above));
        let to = if to.is_empty() { now.clone() } else { to };
        given.insert(place.clone(), to.clone());
        let step = |cpus: &CpuSet| {
            let (place, file) = (place.clone(), plan::CPUS.to_owned());
            let action = Action::Write { place, file, text: cpus.to_string() };
            restoring(group, action, "no longer resized: as it was before, as far as the group above has it")
        };
        if !to.is_subset(&now) {
            grow.push(step(&now.union(&to)));
        }
        if !now.is_subset(&to) {
            shrink.push(step(&to));
        }
    }
    // no list ever has what the one above has not
    grow.into_iter().chain(shrink.into_iter().rev()).collect()
}

impl Past<'_> {
    pub(super) fn add_resized(&mut self, record: &Record, originals: &[Original]) {
        let elastic =
            record.head.upkeep.elastic.iter().flat_map(|scope| &scope.groups).map(|group| &group.name);
        let ranges = record.head.upkeep.ranges.iter().map(|range| &range.group);
        let own = elastic.chain(ranges).cloned();
        let groups: BTreeSet<String> = match &self.resized.groups {
            Some(groups) => own.filter(|name| groups.contains(name)).collect(),
            None => own.collect(),
        };
        let of_it = originals.iter().filter(|line| line.generation == record.head.generation);
        let of_it = of_it.filter(|line| groups.contains(&line.group));
        // systemd sets the lists of units once their drop-in files are gone
        let units = record.units(self.performer.host());
        let is_of_unit = |place: &Place| units.iter().any(|unit| is_at_or_below(place, unit));
        for line in of_it {
            let Some(place) = line.place(self.performer.host()) else { continue };
            if is_of_unit(&place) {
                continue;
            }
            let key = (place.clone(), line.file.clone(), String::new());
            if self.covered.files.contains_key(&key) {
                continue;
            }
            let entry = Entry {
                group: name(&line.group),
                action: Action::Write {
                    place: place.clone(),
                    file: line.file.clone(),
                    text: line.text.clone(),
                },
                why: String::new(),
                restores: true,
                before: Before::Nothing,
            };
            if line.is_below {
                self.resized.below.insert(place, entry);
            } else {
                self.dropped.insert(key.clone());
                self.standing.remove(&key);
                self.writes.insert(key, vec![entry]);
            }
        }
        self.resized.groups = Some(groups);
    }

    /// Lists below elastic groups go back as far as the group above has their CPUs then. One that the layout gives CPUs is
    /// written after this.
    pub(super) fn lists_below(&self, stays: &dyn Fn(&Place) -> bool, left: &mut Leftovers) {
        let mut below: Vec<(&Place, &Entry)> = self.resized.below.iter().collect();
        below.sort_by_key(|(place, _)| place.path.matches('/').count());
        for (place, entry) in below {
            let above = group_path::parent(&place.path).unwrap_or_default().to_owned();
            let above = Place { path: above, ..place.clone() };
            let is_written = |place: &Place| {
                let key = (place.clone(), plan::CPUS.to_owned(), String::new());
                self.covered.files.contains_key(&key)
            };
            if !stays(place) || !self.performer.exists(place) {
                continue;
            }
            let Action::Write { file, text, .. } = &entry.action else { continue };
            let own: CpuSet = text.trim().parse().unwrap_or_default();
            // which CPUs the layout gives to the group above is known once it is planned
            if is_written(&above) || left.below.iter().any(|below| below.place == above) {
                left.below.push(Below { place: place.clone(), group: entry.group.clone(), own });
                continue;
            }
            let cpus = own.intersection(&self.list_to_come(&above, file, left));
            let now = self.performer.content(place, file).unwrap_or_default();
            let old: CpuSet = now.trim().parse().unwrap_or_default();
            if cpus.is_empty() || cpus == old {
                continue;
            }
            // by both, so that it never has what the group above has not
            let both = old.union(&cpus);
            let mut before = now;
            for text in [both, cpus].map(|cpus| cpus.to_string()) {
                if text == before {
                    continue;
                }
                let (place, file) = (place.clone(), file.clone());
                let was = std::mem::replace(&mut before, text.clone());
                let action = Action::Write { place, file, text };
                let why = "no longer in the layout: as it was before";
                left.before.push(restoring(&entry.group, action, why).was(Some(was)));
            }
        }
    }
}
