//! Pools: which CPUs elastic groups share, and what stays as the daemon divided it.

use std::collections::BTreeMap;

use layout::{CpuAmount, CpuDemand, CpuSpec};
use policy::{Parameters, Policy, Scope, Units};
use topology::Machine;
use units::CpuSet;

use super::{
    claim::{demand, elastic, is_apart},
    landscape::Landscape,
};
use crate::tree::{Branch, Tree};

/// The elastic groups, as places of the tree, with the CPUs that they share, by the group above that gives them: its CPUs but for
/// those that another group names, or has for itself. `cpus`: what each branch gets.
pub(crate) fn scopes(
    tree: &Tree<'_>,
    cpus: &[Option<CpuSet>],
    reserved: &CpuSet,
    land: &Landscape,
) -> Vec<(Vec<usize>, Scope)> {
    let mut members: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (index, branch) in tree.branches.iter().enumerate() {
        if elastic(branch).is_some() {
            let above = tree.ancestors(index).find(|above| cpus[*above].is_some());
            members.entry(above).or_default().push(index);
        }
    }
    let rest = land.online.difference(reserved);
    let scope = |(above, members): (Option<usize>, Vec<usize>)| {
        let all = above.map_or_else(|| rest.clone(), |above| cpus[above].clone().unwrap_or_default());
        let scope = scope(tree, cpus, &all, &members);
        (members, scope)
    };
    members.into_iter().map(scope).collect()
}

fn scope(tree: &Tree<'_>, cpus: &[Option<CpuSet>], all: &CpuSet, members: &[usize]) -> Scope {
    let union =
        |all: CpuSet, index: usize| cpus[index].as_ref().map_or_else(|| all.clone(), |own| all.union(own));
    let is_above = |one: usize, other: usize| tree.ancestors(other).any(|above| above == one);
    let beside = (0..tree.branches.len()).filter(|other| {
        let branch = &tree.branches[*other];
        let related =
            |member: &usize| other == member || is_above(*other, *member) || is_above(*member, *other);
        let has_own = is_apart(branch) || is_named(branch);
        has_own && elastic(branch).is_none() && !members.iter().any(related)
    });
    let others = beside.fold(CpuSet::new(), union);
    let own = members.iter().copied().fold(CpuSet::new(), union);
    let groups = members.iter().filter_map(|member| elastic(&tree.branches[*member])).collect();
    let units = units(tree, members.iter().copied());
    Scope { pool: all.difference(&others).union(&own), groups, units, saving: None, frequency: false }
}

/// By branch, of how many CPUs an elastic group's units are: the daemon gives and takes whole cores where the CPUs that the
/// elastic groups share are whole cores of one size. 1 for all other branches.
pub(crate) fn widths(
    tree: &Tree<'_>,
    cpus: &[Option<CpuSet>],
    reserved: &CpuSet,
    (land, machine): (&Landscape, &Machine),
) -> Vec<usize> {
    let mut widths = vec![1; tree.branches.len()];
    for (members, scope) in scopes(tree, cpus, reserved, land) {
        let width = Units::of(machine, &scope.pool).map_or(1, |units| units.width());
        members.into_iter().for_each(|member| widths[member] = width);
    }
    widths
}

/// What the daemon gave elastic groups, and lends them, stays where it is a division by its own rules; else the daemon would
/// change it again, and each plan would be another change.
pub(crate) fn stays(
    tree: &Tree<'_>,
    cpus: &mut [Option<CpuSet>],
    scopes: Vec<(Vec<usize>, Scope)>,
    machine: &Machine,
) {
    let online = machine.online();
    for (members, scope) in scopes {
        let has = |member: &usize| {
            let Branch { was_elastic, cpus: has, .. } = &tree.branches[*member];
            let given = cpus[*member].clone().unwrap_or_default();
            // on v2 a list has its CPUs also while they are offline
            let has = has.intersection(&online);
            if *was_elastic && !has.is_empty() { has } else { given }
        };
        let sets: Vec<CpuSet> = members.iter().map(has).collect();
        let is_within = |(set, group): (&CpuSet, &policy::Elastic)| set.len() <= group.max;
        let are_legal = Units::of(machine, &scope.pool)
            .and_then(|units| Policy::with_sets(&scope.groups, units, Parameters::default(), &sets))
            .is_ok();
        if are_legal && sets.iter().zip(&scope.groups).all(is_within) {
            members.into_iter().zip(sets).for_each(|(member, set)| cpus[member] = Some(set));
        }
    }
}

/// The control groups of those that are units of systemd, by the names of the groups.
pub(crate) fn units(tree: &Tree<'_>, of: impl Iterator<Item = usize>) -> BTreeMap<String, String> {
    let units = of.map(|member| &tree.branches[member]).filter(|branch| is_unit(branch));
    units.map(|branch| (branch.name.to_string(), format!("/{}", branch.place.path))).collect()
}

fn is_unit(branch: &Branch<'_>) -> bool {
    branch.demands().is_some_and(|demands| demands.unit.is_some())
}

/// Does a group request these CPUs, or this many?
fn is_named(branch: &Branch<'_>) -> bool {
    match demand(branch) {
        Some(CpuDemand::These(_)) => true,
        Some(CpuDemand::Some(CpuSpec { amount, .. })) => !matches!(amount, CpuAmount::Between { .. }),
        _ => false,
    }
}
