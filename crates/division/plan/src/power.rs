//! Power saving: which groups are general, and which CPUs they have together.

use std::borrow::Cow;

use layout::{CpuDemand, Desired, Group, Spanned};
use policy::{Elastic, Scope};
use units::{CpuSet, group_path};

use crate::{
    Lint, LintKind, Problem,
    resolve::{Landscape, Resolved, elastic, units_of},
    tree::{Branch, Tree},
};

/// CPUs that general groups have where the layout has no floor.
pub const FLOOR: usize = 1;

/// A layout's general groups: those without CPUs of their own, with none above or below that has some, and with none above that
/// is general itself.
pub fn general(desired: &Desired) -> Vec<&Group> {
    let requests =
        |group: &&Group| group.demands.cpus.as_ref().is_some_and(|cpus| cpus.value != CpuDemand::General);
    let path = |group: &Group| group.name.path().to_owned();
    let owners: Vec<String> = desired.groups.iter().filter(requests).map(path).collect();
    let related = |one: &str, other: &str| {
        group_path::is_at_or_below(one, other) || group_path::is_at_or_below(other, one)
    };
    let is_free = |group: &&Group| !owners.iter().any(|owner| related(owner, group.name.path()));
    let free: Vec<&Group> = desired.groups.iter().filter(is_free).collect();
    let is_top =
        |group: &&Group| !free.iter().any(|above| group_path::is_below(group.name.path(), above.name.path()));
    free.iter().copied().filter(is_top).collect()
}

/// The layout in which general groups request all CPUs that nobody has for itself, if it saves power.
pub fn with_general(desired: &Desired) -> Cow<'_, Desired> {
    let names: Vec<_> = match desired.power.saving {
        true => general(desired).into_iter().map(|group| group.name.clone()).collect(),
        false => Vec::new(),
    };
    if names.is_empty() {
        return Cow::Borrowed(desired);
    }
    let mut desired = desired.clone();
    for group in desired.groups.iter_mut().filter(|group| names.contains(&group.name)) {
        group.demands.cpus = Some(Spanned::new(CpuDemand::General, group.origin.clone()));
    }
    Cow::Owned(desired)
}

/// The general groups of the tree, by their places there.
fn members<'t>(tree: &'t Tree<'_>) -> impl Iterator<Item = usize> + use<'t> {
    (0..tree.branches.len()).filter(|index| is_general(&tree.branches[*index]))
}

fn is_general(branch: &Branch<'_>) -> bool {
    let requested = branch.demands().and_then(|demands| demands.cpus.as_ref());
    requested.is_some_and(|cpus| cpus.value == CpuDemand::General)
}

fn union<'r>(resolved: &'r Resolved, of: impl Iterator<Item = usize>) -> CpuSet {
    let sets = of.filter_map(|index| resolved.sets[index].cpus.as_ref());
    sets.fold(CpuSet::new(), |all, cpus: &'r CpuSet| all.union(cpus))
}

/// What general groups share, with the CPUs of all other groups.
pub(crate) fn scope(desired: &Desired, tree: &Tree<'_>, resolved: &Resolved, pool: CpuSet) -> Option<Scope> {
    let named = union(resolved, (0..tree.branches.len()).filter(|index| !is_general(&tree.branches[*index])));
    let floor = desired.power.floor.as_ref().map_or(FLOOR, |floor| floor.value.get());
    let one = |branch: &Branch<'_>| Elastic {
        name: branch.name.to_string(),
        min: floor,
        max: pool.len(),
        weight: 1,
        borrows: false,
    };
    let groups: Vec<Elastic> = members(tree).map(|index| one(&tree.branches[index])).collect();
    let units = units_of(tree, members(tree));
    let frequency = desired.power.frequency.is_some();
    (!groups.is_empty()).then_some(Scope { pool, groups, units, saving: Some(named), frequency })
}

/// Gives them all CPUs but those that other groups have for themselves; elastic groups share theirs with them. The sets that
/// power saving gave them stay as they are. On v1 the groups below have the same.
pub(crate) fn settle(land: &Landscape, tree: &Tree<'_>, resolved: &mut Resolved) -> CpuSet {
    let is_apart = |index: &usize| resolved.sets[*index].apart && elastic(&tree.branches[*index]).is_none();
    let apart = union(resolved, (0..tree.branches.len()).filter(is_apart));
    let all = land.online.difference(&resolved.reserved).difference(&apart);
    for index in members(tree).collect::<Vec<usize>>() {
        let branch = &tree.branches[index];
        let stays = branch.was_elastic && !branch.cpus.is_empty() && branch.cpus.is_subset(&all);
        let set = if stays { branch.cpus.clone() } else { all.clone() };
        let below =
            (0..tree.branches.len()).filter(|other| tree.ancestors(*other).any(|above| above == index));
        for other in below.collect::<Vec<usize>>() {
            if resolved.sets[other].cpus.is_some() {
                resolved.sets[other].cpus = Some(set.clone());
            }
        }
        resolved.sets[index].cpus = Some(set).filter(|set| !set.is_empty());
    }
    all
}

/// The floor is at most what they have where each other group has what the plan gives it.
pub(crate) fn check(
    desired: &Desired,
    general: &CpuSet,
    tree: &Tree<'_>,
    resolved: &Resolved,
    problems: &mut Vec<Problem>,
) {
    let Some(floor) = &desired.power.floor else { return };
    let apart = (0..tree.branches.len()).filter(|index| resolved.sets[*index].apart);
    let there = general.difference(&union(resolved, apart)).len();
    let least = floor.value.get();
    if least > there {
        let message = format!("the floor of power saving is {least} CPUs, and general groups have {there}");
        let (origin, missing) = (floor.origin.clone(), least - there);
        let hint = format!("set it from 1 to {there}");
        problems.push(Problem::Unsatisfied { message, origin, against: Vec::new(), missing, hint });
    }
}

/// Only the daemon saves power, and of general groups only.
pub(crate) fn lints(desired: &Desired, tree: &Tree<'_>, lints: &mut Vec<Lint>) {
    if !desired.power.saving {
        return;
    }
    let mut new = members(tree).map(|index| &tree.branches[index]).filter(|branch| !branch.was_elastic);
    if members(tree).next().is_none() {
        let message =
            "[power] saves nothing: every group has CPUs of its own, or has such a group above or below it";
        let hint =
            "add a group without cpus for what may use fewer CPUs, such as one with unit = \"system.slice\"";
        lints.push(Lint::new(LintKind::Elastic, None, message.to_owned()).hint(hint));
    } else if let Some(first) = new.next() {
        let names: Vec<String> =
            std::iter::once(first).chain(new).map(|branch| format!("'{}'", branch.name)).collect();
        let message =
            format!("general groups have all CPUs until ringfenced saves power: {}", names.join(", "));
        let lint = Lint::new(LintKind::Elastic, Some(&first.name), message).at(&first.origin());
        lints.push(
            lint.hint("start ringfenced, if it does not run; see what it would do: ringfence simulate"),
        );
    }
}
