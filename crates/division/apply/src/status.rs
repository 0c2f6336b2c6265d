//! What was requested of each group by the generations in effect, what the kernel holds, what is used, and where the
//! two differ. Only reads.

mod applied;
mod look;
mod scene;
mod values;

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf};

use kernel::{Freezers, Hierarchy, Listing};
use layout::UnitName;
use plan::Place;
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::{
    Bounds, Drift, Failure, State, Target,
    isolation::{self, KnobStatus},
    made::renamed,
    membership::Membership,
    observe::is_closed,
    performer::Performer,
    ranges::RangeStatus,
    record::{Head, Summary},
};
use applied::Applied;
use scene::Scene;
pub use values::SettingStatus;

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// As the user writes it.
    pub group: String,
    /// The unit of systemd that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(rename = "memory_bytes")]
    pub memory: Option<u64>,
    /// CPU time used so far, in microseconds, if it is counted.
    pub cpu_usec: Option<u64>,
    /// The CPUs that its tasks may run on; only of a group that was given CPUs.
    pub cpus: Option<CpuSet>,
    /// How many it may have, if they change with its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<Bounds>,
    /// Its settings that follow its load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<KnobStatus>,
    /// Where it is not as requested; empty if it is.
    pub drift: Vec<Drift>,
}

/// The unit that a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// Its name.
    pub name: String,
    /// Does it run? If not, its settings come into force when it starts.
    pub runs: bool,
    /// Of a template: the units that run and have their settings of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
    let Applied { decided, layout, records, left, .. } = Applied::read(state, &performer)?;
    // with one hierarchy nobody can be in a part of a group only
    let several = target.host.hierarchies().len() > 1 && !decided.is_empty();
    let membership = several.then(|| Membership::scan(target.host));
    let applied: BTreeSet<Place> = decided.values().flat_map(|decided| decided.places.clone()).collect();
    let units =
        decided.values().filter_map(|decided| UnitName::of_directory(&decided.drop_in.as_ref()?.unit).ok());
    let units: Vec<UnitName> = units.collect();
    let known = target.system.unit_files().units(&units.iter().collect::<Vec<_>>());
    let is_shared =
        |at: &&Hierarchy| plan::is_shared(at.version, &at.controllers) && !is_closed(target.host, at);
    let scene = Scene {
        performer: &performer,
        shared: target.host.hierarchies().iter().filter(is_shared).map(|at| at.id).collect(),
        listing: Listing::new(target.host),
        freezers: RefCell::new(Freezers::new(target.host)),
        membership: membership.as_ref(),
        applied: &applied,
        renamed: &renamed(&records, target),
        elastic: layout.as_ref().map_or(&[], |head| &head.upkeep.elastic),
        ranges: layout.as_ref().map_or(&[], |head| &head.upkeep.ranges),
        // without an answer the files are compared
        units: &known.unwrap_or_default(),
    };
    let isolation = layout.as_ref().and_then(|head| head.upkeep.isolation.as_ref());
    let isolated = isolation.map(|isolation| isolation::status(target, isolation, &records));
    let isolated = isolated.unwrap_or_default();
    let all = decided.into_iter().map(|(group, decided)| {
        let own = isolated.iter().filter(|(of, _)| *of == group).map(|(_, knob)| knob.clone());
        let knobs: Vec<KnobStatus> = own.collect();
        let mut status = look::status(&scene, group, &decided);
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

/// The groups that generations in effect decide about, by name. Looks at none of them.
pub(crate) fn applied_groups(state: &State, target: Target<'_>) -> Result<BTreeSet<String>, Failure> {
    let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
    Ok(Applied::read(state, &performer)?.decided.into_keys().collect())
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
    let isolation = layout_in_effect(state, target)?.and_then(|head| head.upkeep.isolation);
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
