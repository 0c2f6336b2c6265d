//! What was requested of each group by the generations in effect, what the kernel holds, what is used, and where the
//! two differ. Only reads.

mod scene;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use kernel::{Freezers, GroupName, Host, Seat};
use layout::UnitName;
use plan::Place;
use serde::Serialize;
use settings::Value;
use units::{CpuSet, Limit};

use crate::{
    Bounds, Drift, Failure, State, Target,
    act::{Act, Before},
    in_effect::{Decided, DropIn, Groups, add, drop_undecided},
    isolation::{self, KnobStatus},
    lasting,
    made::renamed,
    membership::{Membership, threads},
    performer::{DEVICES_V1, Performer, name},
    ranges::RangeStatus,
    reading::get,
    record::{Head, Kind, Summary},
    unavailable::unavailable,
};
use scene::{Scene, by_systemd};
pub use values::SettingStatus;
use values::{device_rules, is_as_requested, line_of, owners_of};

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupStatus {
    /// As the user writes it.
    pub group: String,
    /// The unit of systemd that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitStatus>,
    /// Its directories, those that are gone among them.
    pub directories: Vec<PathBuf>,
    /// The last generation that changed it.
    pub generation: u32,
    /// What was requested, file by file.
    pub settings: Vec<SettingStatus>,
    /// Owners and modes, where they were requested: of its directories, of the files that take tasks, and of all others
    /// that are not as decided.
    pub owners: Vec<SettingStatus>,
    /// Memory in use, in bytes, if memory is counted for it.
    pub memory: Option<u64>,
    /// CPU time used so far, in microseconds, if it is counted.
    pub cpu_usec: Option<u64>,
    /// The CPUs that its tasks may run on; only of a group that was given CPUs.
    pub cpus: Option<CpuSet>,
    /// How many it may have, if they change with its load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<Bounds>,
    /// Its settings that follow its load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeStatus>,
    /// It, or a group above it, is frozen: nothing in it runs but `running`.
    pub frozen: bool,
    /// Which of them.
    pub frozen_by: Option<String>,
    /// Its processes that run although it is frozen, ascending: on v1 those that are in another group of the freezer's
    /// hierarchy.
    pub running: Vec<u32>,
    /// The processes in the group itself, ascending.
    pub tasks: Vec<Task>,
    /// What is kept off its CPUs beside tasks, place by place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<KnobStatus>,
    /// Where it is not as requested; empty if it is.
    pub drift: Vec<Drift>,
}

/// The unit that a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitStatus {
    /// Its name.
    pub name: String,
    /// Does it run? If not, its settings come into force when it starts.
    pub runs: bool,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Task {
    /// Its number.
    pub pid: u32,
    /// The kernel's name of it, at most 15 bytes; empty if it has just ended.
    pub comm: String,
}

/// Every group that a generation in effect changed, or that an undo had to leave, by name.
///
/// # Errors
/// [`Failure::State`].
pub fn status(state: &State, target: Target<'_>) -> Result<Vec<GroupStatus>, Failure> {
    let last = lasting::last(state, target)?;
    let in_effect = last.as_ref().map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let mut decided: Groups = BTreeMap::new();
    let (mut dropped, mut records) = (None, Vec::new());
    for generation in in_effect {
        let Some(record) = lasting::record(state, target, generation)? else { continue };
        // by hand: `status` compares what a layout decides with what the kernel has, without regard to the writer
        if record.head.kind == Kind::Set {
            continue;
        }
        add(&record, target, &mut decided);
        dropped = Some(record.head.clone()).filter(|head| head.layout).or(dropped);
        records.push(record);
    }
    let renamed = renamed(&records, target);
    if let Some(head) = &dropped {
        drop_undecided(head, target, &mut decided);
    }
    let adopted =
        dropped.iter().flat_map(|head| head.dropped.adopted.iter().filter_map(head.here(target.host)));
    let adopted: BTreeSet<Place> = adopted.collect();
    let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
    let mut left: BTreeMap<String, Vec<Drift>> = BTreeMap::new();
    for stayed in last.iter().flat_map(Summary::stayed) {
        let Some(entry) = stayed.here(target) else { continue };
        if let Some(drift) = isolation::not_restored(target, &stayed) {
            left.entry(entry.group.clone()).or_default().push(drift);
        }
        let Some(place) = entry.act.place().cloned() else { continue };
        // a group above may have been made for the sake of the one that the step is about
        let name = target.host.named(&target.host.hierarchies()[place.hierarchy], &place.path);
        match (&entry.act, &entry.before) {
            (Act::CreateGroup { .. }, _) if adopted.contains(&place) => {
                decided.entry(name).or_default().places.insert(place);
            }
            (Act::CreateGroup { .. }, _) => {
                let group = decided.entry(name).or_default();
                group.generation = group.generation.max(stayed.generation);
                group.places.insert(place.clone());
                group.stayed.insert(place, stayed.generation);
            }
            (Act::Write { file, .. }, before) => {
                let Some((_, before)) =
                    before.files().unwrap_or_default().iter().find(|(name, _)| name == file)
                else {
                    continue;
                };
                if performer.content(&place, file).is_none_or(|actual| actual.trim() == before.trim()) {
                    continue;
                }
                let group = decided.entry(name).or_default();
                // what a generation in effect writes is compared with that
                if !group.writes.keys().any(|(of, name, _)| *of == place && name == file) {
                    group.generation = group.generation.max(stayed.generation);
                    group.places.insert(place.clone());
                    let before = (before.clone(), stayed.generation);
                    group.not_restored.entry((place, file.clone())).or_insert(before);
                }
            }
            (Act::WriteDropIn { path, unit, .. }, Before::DropIn(before)) => {
                // what a generation in effect writes is compared with that
                let is_of_layout = |of: &Decided| of.drop_in.as_ref().is_some_and(|of| of.path == *path);
                if decided.values().any(is_of_layout) {
                    continue;
                }
                let is_written = target.system.unit_files().read(path) != *before;
                let (file, unit, generation) = (path.clone(), unit.clone(), stayed.generation);
                let drift = Drift::DropInStays { file, unit, generation, is_written };
                left.entry(entry.group.clone()).or_default().push(drift);
            }
            _ => {}
        }
    }
    decided.retain(|_, decided| {
        !decided.places.is_empty() || !decided.writes.is_empty() || !decided.owners.is_empty()
    });
    for group in left.keys() {
        decided.entry(group.clone()).or_default();
    }
    // with one hierarchy nobody can be in a part of a group only
    let several = target.host.hierarchies().len() > 1 && !decided.is_empty();
    let membership = several.then(|| Membership::scan(target.host));
    let applied: BTreeSet<Place> = decided.values().flat_map(|decided| decided.places.clone()).collect();
    let units = decided.values().filter_map(|decided| UnitName::new(&decided.drop_in.as_ref()?.unit).ok());
    let units: Vec<UnitName> = units.collect();
    let known = target.system.unit_files().units(&units.iter().collect::<Vec<_>>());
    let scene = Scene {
        performer: &performer,
        membership: membership.as_ref(),
        applied: &applied,
        renamed: &renamed,
        elastic: dropped.as_ref().map_or(&[], |head| &head.elastic),
        ranges: dropped.as_ref().map_or(&[], |head| &head.ranges),
        // without an answer the files are compared
        units: &known.unwrap_or_default(),
    };
    let isolation = dropped.as_ref().and_then(|head| head.isolation.as_ref());
    let isolated = isolation.map(|isolation| isolation::status(target, isolation, &records));
    let isolated = isolated.unwrap_or_default();
    let all = decided.into_iter().map(|(group, decided)| {
        let own = isolated.iter().filter(|(of, _)| *of == group).map(|(_, knob)| knob.clone());
        let knobs: Vec<KnobStatus> = own.collect();
        let mut status = of(&scene, group, decided);
        status.drift.extend(knobs.iter().filter_map(KnobStatus::drift));
        status.drift.extend(left.get(&status.group).cloned().into_iter().flatten());
        GroupStatus { knobs, ..status }
    });
    // what was taken back and is not there is nobody's
    let is_there = |group: &GroupStatus| {
        !group.directories.is_empty() || !group.settings.is_empty() || !group.drift.is_empty()
    };
    Ok(all.filter(is_there).collect())
}

/// The first line of the record of the layout in effect: its rules' file and its elastic groups are there.
///
/// # Errors
/// [`Failure::State`].
pub fn layout_in_effect(state: &State, target: Target<'_>) -> Result<Option<Head>, Failure> {
    let last = state.last()?.filter(|last| last.head.boot == target.system.boot());
    for &generation in last.iter().flat_map(Summary::in_effect).rev() {
        if !state.is_there(generation) {
            continue;
        }
        let head = state.summary(generation)?.head;
        // of one of an earlier boot at most drop-in files are left
        if head.layout && head.boot == target.system.boot() {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// The CPUs that the layout in effect isolates; none without one.
///
/// # Errors
/// [`Failure::State`].
pub fn isolated_cpus(state: &State, target: Target<'_>) -> Result<CpuSet, Failure> {
    let isolation = layout_in_effect(state, target)?.and_then(|head| head.isolation);
    let requests = isolation.into_iter().flat_map(|isolation| isolation.requests);
    Ok(requests.fold(CpuSet::new(), |all, request| all.union(&request.cpus)))
}

/// The generations in effect whose records were moved away: what they changed is not known.
///
/// # Errors
/// [`Failure::State`].
pub fn unknown(state: &State, target: Target<'_>) -> Result<Vec<u32>, Failure> {
    let last = state.last()?.filter(|last| last.head.boot == target.system.boot());
    let in_effect = last.iter().flat_map(Summary::in_effect).copied();
    Ok(in_effect.filter(|generation| !state.is_there(*generation)).collect())
}

fn of(scene: &Scene<'_>, group: String, decided: Decided) -> GroupStatus {
    let &Scene { performer, membership, .. } = scene;
    let directory = |place: &Place| PathBuf::from(performer.directory(place));
    let host = performer.host();
    // the group of a unit is where systemd has it
    let of_unit = decided.drop_in.as_ref();
    let of_systemd = of_unit.and_then(|drop_in| GroupName::new(&format!("/{}", drop_in.place.path)).ok());
    let named = of_systemd.unwrap_or_else(|| name(&group));
    let is_its_own =
        |place: &&Place| performer.at(place).is_none_or(|at| named.below(host.base(at).path()) == place.path);
    // its parents were made for its sake, but are others
    let places: Vec<&Place> = decided.places.iter().filter(is_its_own).collect();
    let (mut drift, mut settings) = (Vec::new(), Vec::new());
    for place in &places {
        if let Some(to) = scene.renamed.get(*place) {
            let is_there = performer.exists(place);
            drift.push(Drift::Renamed { directory: directory(place), to: directory(to), is_there });
        } else if !performer.exists(place) && of_unit.is_none_or(|drop_in| drop_in.place != **place) {
            let alike = scene.alike(&group, place, &decided);
            drift.push(Drift::Gone { directory: directory(place), alike });
        }
        if let Some(&generation) = decided.stayed.get(*place) {
            let populated = is_populated(performer, place);
            drift.push(Drift::Stayed { directory: directory(place), generation, populated });
        }
    }
    if let Some(drop_in) = of_unit {
        let now = performer.system().unit_files().read(&drop_in.path);
        if now.as_ref() != Some(&drop_in.text) {
            drift.push(Drift::DropIn { file: drop_in.path.clone(), is_there: now.is_some() });
        }
        drift.extend(by_systemd(scene, drop_in));
    }
    for (place, rules) in decided.rules.iter().filter(|(place, _)| performer.exists(place)) {
        let Some((requested, actual)) = device_rules(performer, place, rules) else { continue };
        let (file, as_requested) = (directory(place).join(DEVICES_V1), requested == actual);
        if !as_requested {
            let in_order = |list: &str| {
                let mut lines: Vec<&str> = list.lines().collect();
                lines.sort_unstable();
                lines.join("; ")
            };
            let (requested, actual) = (in_order(&requested), Some(in_order(&actual)));
            drift.push(Drift::Changed { file: file.clone(), requested, actual });
        }
        settings.push(SettingStatus { file, requested, actual: Some(actual), as_requested });
    }
    let is_rule =
        |place: &Place, file: &str| file.starts_with("devices.") && decided.rules.contains_key(place);
    let present = decided
        .writes
        .iter()
        .filter(|((place, file, _), _)| performer.exists(place) && !is_rule(place, file));
    let elastic = Bounds::find(scene.elastic, &group);
    let follows = elastic.clone().or_else(|| Bounds::above(scene.elastic, &group));
    let ranges: Vec<&plan::Range> = scene.ranges.iter().filter(|range| range.group == group).collect();
    let within = |place: &Place, name: &str| {
        let found = settings::lookup(name).filter(|_| !ranges.is_empty())?;
        let value = found.decode(place.version, &|file: &str| performer.content(place, file)).ok()?;
        ranges.iter().find_map(|range| range.allows(&found, &value))
    };
    let is_suspended = |place: &Place, name: &str| {
        decided.writes.iter().any(|((of, file, _), (text, _))| {
            of == place && settings::suspends(place.version, file, text).contains(&name)
        })
    };
    for ((place, name, key), (text, actual_then)) in present {
        let actual = performer.content(place, name);
        let of_load = follows.as_ref().and_then(|bounds| bounds.allow(name, actual.as_deref()?));
        let of_load = of_load.or_else(|| within(place, name).filter(|within| *within));
        let as_requested = of_load.unwrap_or_else(|| {
            let now = actual.as_deref();
            is_suspended(place, name)
                || is_as_requested(performer, &group, (place, name, text), now, actual_then.as_deref())
        });
        let actual = actual.map(|actual| line_of(actual, key));
        let file = directory(place).join(name);
        match &actual {
            Some(state) if name == "cpuset.cpus.partition" && state.contains("invalid") => {
                drift.push(Drift::InvalidPartition { state: state.clone() });
            }
            Some(list) if as_requested => drift.extend(unavailable(performer, place, name, list)),
            _ if as_requested => {}
            _ => drift.push(Drift::Changed {
                file: file.clone(),
                requested: text.clone(),
                actual: actual.clone(),
            }),
        }
        let resized = actual.clone().filter(|_| of_load == Some(true));
        let requested = resized.unwrap_or_else(|| text.clone());
        settings.push(SettingStatus { file, requested, actual, as_requested });
    }
    for ((place, name), (before, generation)) in &decided.not_restored {
        let Some(actual) = performer.content(place, name) else { continue };
        let (file, before) = (directory(place).join(name), before.clone());
        drift.push(Drift::NotRestored { file, before, actual, generation: *generation });
    }
    let mut owners = Vec::new();
    for (place, access) in decided.owners.iter().filter(|(place, _)| performer.exists(place)) {
        owners.extend(owners_of(performer, place, access));
    }
    drift.extend(owners.iter().filter(|owner| !owner.as_requested).map(|owner| Drift::Owner {
        file: owner.file.clone(),
        requested: owner.requested.clone(),
        actual: owner.actual.clone().unwrap_or_default(),
    }));
    let processes: BTreeSet<u32> = host.seats(&named).iter().flat_map(|seat| host.tasks_in(seat)).collect();
    let of = membership.map_or(0, |membership| membership.of(host, &named).len());
    let threads = threads(host, &processes);
    for place in places.iter().filter(|place| performer.exists(place)) {
        let outside =
            membership.map(|membership| membership.outside(host, &named, place)).unwrap_or_default();
        let split = scene.split(place, &threads);
        let is_split = |pid: &u32| split.iter().any(|split| split.process == *pid);
        let processes: Vec<u32> =
            outside.into_iter().map(|(pid, _)| pid).filter(|pid| !is_split(pid)).collect();
        if !processes.is_empty() || !split.is_empty() {
            drift.push(Drift::Outside { directory: directory(place), processes, of, split });
        }
    }
    let comm = |pid: u32| {
        let text = host.kernel().outside(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
        Task { pid, comm: text.trim_end_matches('\n').to_owned() }
    };
    let actual = |setting: &str| Some(get(host, &named, &settings::lookup(setting)?).ok()?.value);
    let has_cpus = decided.writes.keys().any(|(_, file, _)| file == plan::CPUS);
    let cpus = |setting: &str| match actual(setting) {
        Some(Value::Cpus(cpus)) if has_cpus => Some(cpus),
        _ => None,
    };
    let ranges = ranges.iter().filter_map(|range| RangeStatus::of(host, range)).collect();
    let frozen_by = host.frozen_by(&named);
    let is_elsewhere = drift.iter().any(|drift| matches!(drift, Drift::Elsewhere { .. }));
    let runs = |drop_in: &DropIn| is_elsewhere || performer.exists(&drop_in.place);
    GroupStatus {
        unit: of_unit.map(|drop_in| UnitStatus { name: drop_in.unit.clone(), runs: runs(drop_in) }),
        directories: places.into_iter().map(directory).collect(),
        generation: decided.generation,
        settings,
        owners,
        memory: actual("memory.current").as_ref().and_then(amount),
        cpu_usec: actual("cpuacct.usage").as_ref().and_then(amount),
        cpus: cpus("cpuset.cpus.effective").or_else(|| cpus(plan::CPUS)),
        elastic,
        ranges,
        frozen: frozen_by.is_some(),
        running: if frozen_by.is_some() { running(host, &processes) } else { Vec::new() },
        frozen_by,
        tasks: processes.into_iter().map(comm).collect(),
        knobs: Vec::new(),
        drift,
        group,
    }
}

/// Those with a thread that no frozen group stops.
fn running(host: &Host, processes: &BTreeSet<u32>) -> Vec<u32> {
    let mut freezers = Freezers::new(host);
    let mut runs = |pid: &u32| {
        let threads = host.kernel().threads(*pid).unwrap_or_default();
        threads.into_iter().any(|thread| freezers.stopping(thread).is_none())
    };
    processes.iter().copied().filter(|pid| runs(pid)).collect()
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
