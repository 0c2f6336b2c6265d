//! Power saving needs CPUs that general groups can have.

use layout::Desired;
use units::CpuSet;

use crate::{
    Problem,
    resolve::{Landscape, Resolved},
    tree::Tree,
};

/// The floor is at most what groups with CPUs for themselves leave.
pub(crate) fn check(
    desired: &Desired,
    land: &Landscape,
    tree: &Tree<'_>,
    resolved: &Resolved,
    problems: &mut Vec<Problem>,
) {
    let Some(floor) = &desired.power.floor else { return };
    let apart = (0..tree.branches.len()).filter(|index| resolved.sets[*index].apart);
    let taken = apart
        .filter_map(|index| resolved.sets[index].cpus.as_ref())
        .fold(CpuSet::new(), |all, cpus| all.union(cpus));
    let there = land.online.difference(&taken).len();
    if floor.value > there {
        let message =
            format!("the floor of power saving is {} CPUs, and general groups have {there}", floor.value);
        let (origin, missing) = (floor.origin.clone(), floor.value - there);
        let hint = format!("set it from 1 to {there}");
        problems.push(Problem::Unsatisfied { message, origin, against: Vec::new(), missing, hint });
    }
}
