//! CPUs and memory nodes that a v2 group was given and that its processes can't use: the list stays as it was written
//! when a CPU goes offline or a group above loses it, only the effective list shrinks. v1 changes the list itself.

use std::path::Path;

use plan::Place;
use settings::Version;
use units::{CpuSet, group_path};

use crate::{Drift, performer::Performer};

/// Where the CPUs that are online are listed.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// What of the list in this file is not in effect; `None` if all of it is.
pub(crate) fn unavailable(performer: &Performer<'_>, place: &Place, file: &str, list: &str) -> Option<Drift> {
    if place.version == Version::V1 || !matches!(file, "cpuset.cpus" | "cpuset.mems") {
        return None;
    }
    let applied: CpuSet = list.trim().parse().ok()?;
    let now = effective(performer, place, file)?;
    let missing = applied.difference(&now);
    // what a partition below has is not in the list above
    let missing =
        if missing.is_empty() { missing } else { missing.difference(&in_partitions(performer, place)) };
    if missing.is_empty() {
        return None;
    }
    let reason = reason(performer, place, file, &missing);
    let file = Path::new(&performer.directory(place)).join(file);
    Some(Drift::Unavailable { file, requested: list.trim().to_owned(), effective: now.to_string(), reason })
}

fn effective(performer: &Performer<'_>, place: &Place, file: &str) -> Option<CpuSet> {
    performer.content(place, &format!("{file}.effective"))?.trim().parse().ok()
}

fn in_partitions(performer: &Performer<'_>, place: &Place) -> CpuSet {
    let Some(at) = performer.at(place) else { return CpuSet::new() };
    let below = performer.host().kernel().descendants(at, &place.path).unwrap_or_default();
    let cpus = below.into_iter().filter_map(|path| {
        let below = Place { path, ..place.clone() };
        let state = performer.content(&below, plan::PARTITION)?;
        plan::is_partition(&state).then_some(())?;
        performer.content(&below, plan::CPUS)?.trim().parse::<CpuSet>().ok()
    });
    cpus.fold(CpuSet::new(), |all, cpus| all.union(&cpus))
}

/// Offline, or the highest group above that lacks them.
fn reason(performer: &Performer<'_>, place: &Place, file: &str, missing: &CpuSet) -> String {
    let (one, several) = if file == plan::CPUS { ("CPU", "CPUs") } else { ("memory node", "memory nodes") };
    let (what, are) = if missing.len() == 1 { (one, "is") } else { (several, "are") };
    let online = performer.host().kernel().outside(Path::new(ONLINE));
    let online = online.ok().and_then(|online| online.trim().parse::<CpuSet>().ok());
    if file == plan::CPUS && online.is_some_and(|online| missing.is_disjoint(&online)) {
        return format!("{what} {missing} {are} offline");
    }
    let lacks = |path: &&str| {
        let above = Place { path: (*path).to_owned(), ..place.clone() };
        effective(performer, &above, file).is_some_and(|has| !missing.is_subset(&has))
    };
    match group_path::ancestors(&place.path).filter(|path| !path.is_empty()).filter(lacks).last() {
        Some(above) => format!("group '/{above}' above it does not have {what} {missing}"),
        None => format!("{what} {missing} {are} not available to it"),
    }
}
