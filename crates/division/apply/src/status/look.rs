//! One group as the kernel has it, beside what was decided about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use kernel::{GroupName, Hierarchy, Seat};
use layout::UnitName;
use plan::Place;
use settings::{Value, Version};
use units::Limit;

use super::{
    GroupStatus, Task, UnitStatus,
    scene::{Scene, by_systemd},
    values::{SettingStatus, device_rules, is_as_requested, line_of, owners_of},
};
use crate::{
    Bounds, Drift,
    in_effect::{Decided, DropIn},
    inside::{running_units, service_above},
    membership::{Membership, is_chosen, is_dead, may_leave, threads},
    performer::{DEVICES_V1, Performer, name},
    ranges::RangeStatus,
    reading::value_in,
    unavailable::unavailable,
};

/// How a group is, but for the knobs of its CPUs.
pub(super) fn status(scene: &Scene<'_>, group: String, decided: &Decided) -> GroupStatus {
    let host = scene.performer.host();
    let mut look = Look::new(scene, &group, decided);
    look.at_directories();
    look.at_drop_in();
    look.at_device_rules();
    look.at_values();
    look.at_not_restored();
    let owners = look.at_owners();
    let seats = scene.listing.seats(&look.named);
    // the scan finds live processes; cgroup.procs also lists those with only some threads in the group
    let is_listed = |seat: &&Seat<'_>| match scene.membership {
        Some(_) => decided.writes.keys().any(|(place, ..)| place.hierarchy == seat.at.id),
        None => true,
    };
    let mut processes: BTreeSet<u32> =
        seats.iter().filter(is_listed).flat_map(|seat| host.tasks_in(seat)).collect();
    let known = scene.membership.into_iter().flat_map(|membership| membership.of(host, &look.named));
    // a zombie stays in its v2 group until it is reaped
    let lives: Vec<u32> = known.filter(|pid| !processes.contains(pid) && !is_dead(host, *pid)).collect();
    processes.extend(lives);
    look.at_processes(&processes);
    processes.extend(look.instances.iter().flat_map(|(_, place)| in_unit(look.performer, place)));
    let Look { named, drift, settings, elastic, ranges, places, instances, .. } = look;
    let comm = |pid: &u32| {
        let text = host.kernel().outside(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
        Task { pid: *pid, comm: text.trim_end_matches('\n').to_owned() }
    };
    let actual = |setting: &str| value_in(host, &seats, setting);
    let has_cpus = decided.writes.keys().any(|(_, file, _)| file == plan::CPUS);
    let cpus = |setting: &str| match actual(setting) {
        Some(Value::Cpus(cpus)) if has_cpus => Some(cpus),
        _ => None,
    };
    let frozen_by = scene.freezers.borrow_mut().by(&named);
    let is_elsewhere = drift.iter().any(|drift| matches!(drift, Drift::Elsewhere { .. }));
    let unit = |drop_in: &DropIn| UnitStatus {
        name: drop_in.unit.clone(),
        runs: is_elsewhere || scene.exists(&drop_in.place),
        instances: instances.iter().map(|(name, _)| name.clone()).collect(),
    };
    let places = places.into_iter().chain(instances.iter().map(|(_, place)| place));
    GroupStatus {
        unit: decided.drop_in.as_ref().map(unit),
        directories: places.map(|place| scene.performer.directory(place).into()).collect(),
        generation: decided.generation,
        settings,
        owners,
        memory: actual("memory.current").as_ref().and_then(amount),
        cpu_usec: actual("cpuacct.usage").as_ref().and_then(amount),
        cpus: cpus("cpuset.cpus.effective").or_else(|| cpus(plan::CPUS)),
        elastic,
        ranges: ranges.iter().filter_map(|range| RangeStatus::of(host, range)).collect(),
        frozen: frozen_by.is_some(),
        running: if frozen_by.is_some() { running(scene, &processes) } else { Vec::new() },
        frozen_by,
        tasks: processes.iter().map(comm).collect(),
        knobs: Vec::new(),
        drift,
        group,
    }
}

/// A group, and what was found of it so far.
struct Look<'l, 's> {
    scene: &'l Scene<'s>,
    performer: &'l Performer<'l>,
    group: &'l str,
    decided: &'l Decided,
    /// The group of a unit is where systemd has it.
    named: GroupName,
    /// Its own: its parents were made for its sake, but are others.
    places: Vec<&'l Place>,
    /// How many CPUs it may have, if they change with its load.
    elastic: Option<Bounds>,
    /// Its settings that follow its load.
    ranges: Vec<&'l plan::Range>,
    /// Of a template: the units that run and have their limits of it, each with where it is.
    instances: Vec<(String, Place)>,
    drift: Vec<Drift>,
    settings: Vec<SettingStatus>,
}

impl<'l, 's> Look<'l, 's> {
    fn new(scene: &'l Scene<'s>, group: &'l str, decided: &'l Decided) -> Look<'l, 's> {
        let performer = scene.performer;
        let of_systemd =
            decided.drop_in.as_ref().and_then(|unit| GroupName::new(&format!("/{}", unit.place.path)).ok());
        // one in a unit is where that is
        let in_unit = || decided.places.iter().find(|place| service_above(performer.host(), place).is_some());
        let in_unit = || GroupName::new(&format!("/{}", in_unit()?.path)).ok();
        let named = of_systemd.or_else(in_unit).unwrap_or_else(|| name(group));
        let instances = decided.drop_in.as_ref().filter(|drop_in| is_template(drop_in)).map(|of| {
            let files = performer.system().unit_files();
            running_units(performer.host(), (&of.unit, &of.place), files)
        });
        let path = |place: &Place| Some(named.below(performer.host().base(performer.at(place)?).path()));
        let is_its_own = |place: &&Place| path(place).is_none_or(|path| path == place.path);
        Look {
            scene,
            performer,
            group,
            decided,
            places: decided.places.iter().filter(is_its_own).collect(),
            elastic: Bounds::find(scene.elastic, group),
            ranges: scene.ranges.iter().filter(|range| range.group == group).collect(),
            instances: instances.unwrap_or_default(),
            drift: Vec::new(),
            settings: Vec::new(),
            named,
        }
    }

    fn directory(&self, place: &Place) -> PathBuf {
        self.performer.directory(place).into()
    }

    fn at_directories(&mut self) {
        let unit = self.decided.drop_in.as_ref();
        let runs = |place: &Place| {
            service_above(self.performer.host(), place).is_none_or(|unit| self.scene.exists(&unit))
        };
        for &place in self.places.iter().filter(|place| runs(place)) {
            let directory = self.directory(place);
            if let Some(to) = self.scene.renamed.get(place) {
                let (to, is_there) = (self.directory(to), self.scene.exists(place));
                self.drift.push(Drift::Renamed { directory: directory.clone(), to, is_there });
            } else if !self.scene.exists(place) && unit.is_none_or(|unit| unit.place != *place) {
                let alike = self.scene.alike(self.group, place, self.decided);
                self.drift.push(Drift::Gone { directory: directory.clone(), alike });
            }
            if let Some(&generation) = self.decided.stayed.get(place) {
                let populated = is_populated(self.performer, place);
                self.drift.push(Drift::Stayed { directory, generation, populated });
            }
        }
    }

    fn at_drop_in(&mut self) {
        let Some(drop_in) = &self.decided.drop_in else { return };
        let now = self.performer.system().unit_files().read(&drop_in.path);
        if now.as_ref() != Some(&drop_in.text) {
            self.drift.push(Drift::DropIn { file: drop_in.path.clone(), is_there: now.is_some() });
        }
        self.drift.extend(by_systemd(self.scene, drop_in));
    }

    fn at_device_rules(&mut self) {
        for (place, rules) in self.decided.rules.iter().filter(|(place, _)| self.scene.exists(place)) {
            let Some((requested, actual)) = device_rules(self.performer, place, rules) else { continue };
            let (file, as_requested) = (self.directory(place).join(DEVICES_V1), requested == actual);
            if !as_requested {
                let in_order = |list: &str| {
                    let mut lines: Vec<&str> = list.lines().collect();
                    lines.sort_unstable();
                    lines.join("; ")
                };
                let (requested, actual) = (in_order(&requested), Some(in_order(&actual)));
                self.drift.push(Drift::Changed { file: file.clone(), requested, actual });
            }
            self.settings.push(SettingStatus { file, requested, actual: Some(actual), as_requested });
        }
    }

    fn at_values(&mut self) {
        let Look { scene, performer, decided, .. } = *self;
        let follows = self.elastic.clone().or_else(|| Bounds::above(self.scene.elastic, self.group));
        let is_rule =
            |place: &Place, file: &str| file.starts_with("devices.") && decided.rules.contains_key(place);
        let present = decided
            .writes
            .iter()
            .filter(|((place, file, _), _)| scene.exists(place) && !is_rule(place, file));
        for ((place, name, key), (text, actual_then)) in present {
            let actual = performer.content(place, name);
            let of_load = follows.as_ref().and_then(|bounds| bounds.allow(name, actual.as_deref()?));
            let of_load = of_load.or_else(|| self.is_within(place, name).filter(|within| *within));
            let as_requested = of_load.unwrap_or_else(|| {
                let (now, then) = (actual.as_deref(), actual_then.as_deref());
                self.is_suspended(place, name)
                    || is_as_requested(performer, self.group, (place, name, text), now, then)
            });
            let actual = actual.map(|actual| line_of(actual, key));
            let file = self.directory(place).join(name);
            match &actual {
                Some(state) if name == "cpuset.cpus.partition" && settings::partition(state).1.is_some() => {
                    self.drift.push(Drift::InvalidPartition { state: state.clone() });
                }
                Some(list) if as_requested => self.drift.extend(unavailable(performer, place, name, list)),
                _ if as_requested => {}
                _ => self.drift.push(Drift::Changed {
                    file: file.clone(),
                    requested: text.clone(),
                    actual: actual.clone(),
                }),
            }
            let resized = actual.clone().filter(|_| of_load == Some(true));
            let requested = resized.unwrap_or_else(|| text.clone());
            self.settings.push(SettingStatus { file, requested, actual, as_requested });
        }
        self.at_instances();
    }

    /// What a template's units have otherwise.
    fn at_instances(&mut self) {
        let Look { performer, decided, group, .. } = *self;
        let Some(drop_in) = &decided.drop_in else { return };
        let of_unit = decided.writes.iter().filter(|((place, ..), _)| *place == drop_in.place);
        for ((_, name, key), (text, _)) in of_unit {
            for (_, place) in &self.instances {
                let actual = performer.content(place, name);
                let is_so = is_as_requested(performer, group, (place, name, text), actual.as_deref(), None);
                if let (Some(actual), false) = (actual, is_so) {
                    let file = PathBuf::from(performer.directory(place)).join(name);
                    let actual = Some(line_of(actual, key));
                    self.drift.push(Drift::Changed { file, requested: text.clone(), actual });
                }
            }
        }
    }

    /// Is a setting that follows the load between its bounds? `None` of any other.
    fn is_within(&self, place: &Place, name: &str) -> Option<bool> {
        let found = settings::lookup(name).filter(|_| !self.ranges.is_empty())?;
        let value = found.decode(place.version, &|file: &str| self.performer.content(place, file)).ok()?;
        self.ranges.iter().find_map(|range| range.allows(&found, &value))
    }

    /// Does another value of the group keep this one from being in force?
    fn is_suspended(&self, place: &Place, name: &str) -> bool {
        self.decided.writes.iter().any(|((of, file, _), (text, _))| {
            of == place && settings::suspends(place.version, file, text).contains(&name)
        })
    }

    fn at_not_restored(&mut self) {
        for ((place, name), (before, generation)) in &self.decided.not_restored {
            let Some(actual) = self.performer.content(place, name) else { continue };
            let (file, before) = (self.directory(place).join(name), before.clone());
            self.drift.push(Drift::NotRestored { file, before, actual, generation: *generation });
        }
    }

    fn at_owners(&mut self) -> Vec<SettingStatus> {
        let given = self.decided.owners.iter().filter(|(place, _)| self.scene.exists(place));
        let owners: Vec<SettingStatus> =
            given.flat_map(|(place, access)| owners_of(self.performer, place, access)).collect();
        self.drift.extend(owners.iter().filter(|owner| !owner.as_requested).map(|owner| Drift::Owner {
            file: owner.file.clone(),
            requested: owner.requested.clone(),
            actual: owner.actual.clone().unwrap_or_default(),
        }));
        owners
    }

    /// Are all its processes in each of its directories, and in no other group elsewhere?
    fn at_processes(&mut self, processes: &BTreeSet<u32>) {
        let (host, membership) = (self.performer.host(), self.scene.membership);
        let of = membership.map_or(0, |membership| membership.of(host, &self.named).len());
        let threads = threads(host, processes);
        // by the other group and the hierarchy
        let mut others: BTreeMap<(String, usize), Vec<u32>> = BTreeMap::new();
        for place in self.places.iter().filter(|place| self.scene.exists(place)) {
            let outside = membership.map(|membership| membership.outside(host, &self.named, place));
            let outside = outside.unwrap_or_default();
            let split = self.scene.split(place, &threads);
            let is_split = |pid: &u32| split.iter().any(|split| split.process == *pid);
            let whole = outside.into_iter().filter(|(pid, _)| !is_split(pid));
            let (of_none, of_others): (Vec<_>, Vec<_>) =
                whole.partition(|(_, path)| may_leave(host, path, place));
            let processes: Vec<u32> = of_none.into_iter().map(|(pid, _)| pid).collect();
            if !processes.is_empty() || !split.is_empty() {
                let directory = self.directory(place);
                self.drift.push(Drift::Outside { directory, processes, of, split });
            }
            self.add_others(place, of_others, &mut others);
        }
        if let Some(membership) = membership.filter(|_| of > 0) {
            self.where_it_is_not(membership, &mut others);
        }
        let mut together: BTreeMap<(String, Vec<u32>), Vec<String>> = BTreeMap::new();
        for ((group, hierarchy), processes) in others {
            together
                .entry((group, processes))
                .or_default()
                .extend(host.hierarchies().get(hierarchy).map(Hierarchy::label));
        }
        let drift = |((group, processes), controllers)| Drift::InOther { controllers, group, processes, of };
        self.drift.extend(together.into_iter().map(drift));
    }

    /// Where the group has no setting, groups of systemd and of container managers are left out.
    fn add_others(
        &self,
        place: &Place,
        outside: Vec<(u32, String)>,
        others: &mut BTreeMap<(String, usize), Vec<u32>>,
    ) {
        let Some(at) = self.performer.at(place) else { return };
        let has_settings = self.decided.writes.keys().any(|(of, ..)| of == place);
        let counts = |path: &str| has_settings || is_chosen(self.performer.host(), at, path);
        for (pid, path) in outside.into_iter().filter(|(_, path)| counts(path)) {
            others.entry((self.performer.host().named(at, &path), at.id)).or_default().push(pid);
        }
    }

    /// Its processes that are in other groups of v1 hierarchies in which it has no directory. A group that lacks one of the shared
    /// hierarchies is skipped: libcgroup's files, or a rule for some controllers, share its processes with others on purpose.
    fn where_it_is_not(&self, membership: &Membership, others: &mut BTreeMap<(String, usize), Vec<u32>>) {
        let host = self.performer.host();
        let is_in = |at: &Hierarchy| self.places.iter().any(|place| place.hierarchy == at.id);
        let mut shared = host.hierarchies().iter().filter(|at| self.scene.shared.contains(&at.id));
        if self.decided.drop_in.is_some() || self.scene.shared.is_empty() || !shared.all(is_in) {
            return;
        }
        let of_v1 = |at: &&Hierarchy| at.version == Version::V1 && !at.controllers.is_empty();
        for at in host.hierarchies().iter().filter(of_v1).filter(|at| !is_in(at)) {
            let path = self.named.below(host.base(at).path());
            let place = Place { hierarchy: at.id, path, version: at.version };
            if self.scene.exists(&place) {
                continue;
            }
            let mut outside = membership.outside(host, &self.named, &place);
            outside.retain(|(_, path)| !may_leave(host, path, &place));
            self.add_others(&place, outside, others);
        }
    }
}

/// Those with a thread that no frozen group stops.
fn running(scene: &Scene<'_>, processes: &BTreeSet<u32>) -> Vec<u32> {
    let host = scene.performer.host();
    let mut freezers = scene.freezers.borrow_mut();
    let mut runs = |pid: &u32| {
        let threads = host.kernel().threads(*pid).unwrap_or_default();
        threads.into_iter().any(|thread| freezers.stopping(thread).is_none())
    };
    processes.iter().copied().filter(|pid| runs(pid)).collect()
}

fn is_template(drop_in: &DropIn) -> bool {
    UnitName::of_file_name(&drop_in.unit).is_ok_and(|unit| unit.is_pattern())
}

/// The processes of a unit, in its group and below.
fn in_unit(performer: &Performer<'_>, place: &Place) -> Vec<u32> {
    let Some(at) = performer.at(place) else { return Vec::new() };
    let below = performer.host().kernel().descendants(at, &place.path).unwrap_or_default();
    let paths = std::iter::once(place.path.clone()).chain(below);
    paths.flat_map(|path| performer.host().tasks_in(&Seat { at, path })).collect()
}

/// Is a process in the group itself, or a group in it?
fn is_populated(performer: &Performer<'_>, place: &Place) -> bool {
    let Some(at) = performer.at(place) else { return false };
    let has_groups = performer.host().kernel().children(at, &place.path).is_ok_and(|below| !below.is_empty());
    has_groups || !performer.host().tasks_in(&Seat { at, path: place.path.clone() }).is_empty()
}

/// In the setting's own unit.
fn amount(value: &Value) -> Option<u64> {
    match value {
        Value::Bytes(Limit::At(bytes)) => Some(bytes.0),
        Value::Micros(Limit::At(micros)) => Some(micros.0),
        Value::Count(Limit::At(count)) => Some(*count),
        Value::CpuTime(time) => Some(time.to_micros().0),
        Value::Number(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}
