//! What the records of a state directory say of the machine's groups, beside what the kernel shows. Only reads.

use std::{collections::BTreeMap, time::Duration};

use apply::{Again, Bounds, Controller, Failure, Following, Resizes, State, Target};
use kernel::{Error, GroupName};
use monitor::Files;
use units::{CpuSet, hint::Command};

use super::{
    facts::{ByLoad, Facts, Halt, Resized},
    gather::gather,
};

/// As [`gather`], with the isolated CPUs and the elastic groups of the layout in effect. Who may not read the history finds nothing
/// in it.
///
/// # Errors
/// As [`gather`].
pub fn gather_recorded<F: Files>(
    target: Target<'_>,
    files: F,
    group: &GroupName,
    state: &State,
    span: Duration,
) -> Result<Facts, Error> {
    let isolated = apply::isolated_cpus(state, target).unwrap_or_default();
    let facts = gather(target.host, files, group, &isolated, span)?;
    // as it is at the end, as other settings are
    let by_load = by_load(state, target).unwrap_or_default();
    Ok(Facts { by_load, bound: apply::bound(state, target).unwrap_or_default(), ..facts })
}

fn by_load(state: &State, target: Target<'_>) -> Result<ByLoad, Failure> {
    let Some(head) = apply::layout_in_effect(state, target)? else { return Ok(ByLoad::default()) };
    let following = apply::following(state, target)?;
    if following.is_empty() {
        return Ok(ByLoad::default());
    }
    let of_scopes = head.upkeep.elastic.iter().flat_map(|scope| scope.units.clone());
    let of_ranges =
        head.upkeep.ranges.iter().map(|range| (range.group.clone(), range.directory().to_owned()));
    let units: BTreeMap<String, String> = of_scopes.chain(of_ranges).collect();
    let groups = following.iter().map(|one| Resized {
        level: units.get(&one.group).unwrap_or(&one.group).clone(),
        free: one.bounds.as_ref().map(|bounds| free(bounds, &following)).unwrap_or_default(),
        group: one.clone(),
    });
    let resizes = Resizes::of(state);
    let again = apply::again(state, target);
    let halt = halt(&resizes, &again);
    let Controller { ended, left_alone, .. } = resizes.controller().unwrap_or_default();
    Ok(ByLoad { groups: groups.collect(), halt, ended, left_alone, again })
}

fn halt(resizes: &Resizes, again: &Again) -> Option<Halt> {
    let halt = |why: &str, command: Command| Halt { why: why.to_owned(), hint: Some(command.to_string()) };
    if resizes.is_paused() {
        return Some(halt("resizing is paused", again.resume()));
    }
    let Some(controller) = resizes.controller() else {
        return Some(halt("nobody resizes groups", again.start()));
    };
    let why = controller.stopped?;
    Some(Halt { why: format!("nothing is resized, and it is tried every second: {why}"), hint: None })
}

/// The CPUs that groups share and none of them has.
fn free(bounds: &Bounds, all: &[Following]) -> CpuSet {
    let beside = all.iter().filter(|one| one.bounds.as_ref().is_some_and(|of| of.pool == bounds.pool));
    beside.filter_map(|one| one.cpus.as_ref()).fold(bounds.pool.clone(), |free, cpus| free.difference(cpus))
}
