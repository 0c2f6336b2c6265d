//! Elastic groups: what can't be beside them.

use std::collections::BTreeMap;

use layout::Latency;
use policy::{Scope, Units};
use topology::Machine;

use crate::{
    Against, Problem,
    resolve::{demand, elastic},
    tree::{Branch, Tree},
};

/// The latencies of elastic groups, by their names.
pub(crate) fn latencies(tree: &Tree<'_>) -> BTreeMap<String, Latency> {
    let latency = |branch: &Branch<'_>| {
        let latency = branch.demands()?.latency.as_ref().filter(|_| elastic(branch).is_some())?;
        Some((branch.name.to_string(), latency.value.clone()))
    };
    tree.branches.iter().filter_map(latency).collect()
}

/// An elastic group that shares CPUs with a borrower that is not beside it.
fn borrows_elsewhere(tree: &Tree<'_>, index: usize) -> Option<String> {
    let own = elastic(&tree.branches[index])?;
    let parent = tree.branches[index].parent;
    let other = tree.branches.iter().enumerate().find_map(|(other, branch)| {
        let elastic = elastic(branch).filter(|_| branch.parent != parent && other != index)?;
        (own.borrows && !elastic.borrows).then_some(elastic)
    })?;
    Some(format!("it borrows CPUs (cpu.idle = 1) of group '{}', which is not beside it", other.name))
}

/// Where all cores have the same number of CPUs, whole ones are given and taken: a min is rounded up to them.
pub(crate) fn check_cores(tree: &Tree<'_>, machine: &Machine, scopes: &[Scope], problems: &mut Vec<Problem>) {
    for scope in scopes {
        let Ok(units) = Units::of(machine, &scope.pool) else { continue };
        let (width, there) = (units.width(), units.len());
        let cores: Vec<usize> = scope.groups.iter().map(|group| group.min.div_ceil(width)).collect();
        let wanted: usize = cores.iter().sum();
        if width == 1 || wanted <= there {
            continue;
        }
        let branch = |name: &str| tree.branches.iter().find(|branch| branch.name.to_string() == name);
        let each = scope.groups.iter().zip(&cores).filter_map(|(group, cores)| {
            let needed = units::counted(*cores, "core");
            let what = format!("'{}' needs {needed} for its min of {}", group.name, group.min);
            Some((*cores, Against { origin: Some(branch(&group.name)?.origin()), what }))
        });
        let mut each: Vec<(usize, Against)> = each.collect();
        let largest = each.iter().enumerate().max_by_key(|(_, (cores, _))| *cores).map(|(index, _)| index);
        let Some((_, Against { origin: Some(origin), what })) = largest.map(|index| each.remove(index))
        else {
            continue;
        };
        let message = format!(
            "elastic groups have whole cores of {width} CPUs and need {wanted} for their min, but share {there}: {what}"
        );
        let against = each.into_iter().map(|(_, against)| against).collect();
        let missing = (wanted - there) * width;
        let hint =
            format!("lower min, so that all together need {there} cores: a part of a core counts as one");
        problems.push(Problem::Unsatisfied { message, origin, against, missing, hint });
    }
}

/// A group with CPUs below an elastic one would have to follow it, and no partition ends in between.
pub(crate) fn check(tree: &Tree<'_>, problems: &mut Vec<Problem>) {
    let is_elastic = |index: usize| elastic(&tree.branches[index]).is_some();
    for (index, branch) in tree.branches.iter().enumerate().filter(|(_, branch)| demand(branch).is_some()) {
        let above = tree.ancestors(index).find(|above| is_elastic(*above));
        let (message, hint) = match above {
            Some(above) => (
                format!("it requests CPUs below the elastic group '{}'", tree.branches[above].name),
                "remove these CPUs, so that it shares what the group above has, or give that one a count",
            ),
            None => match borrows_elsewhere(tree, index) {
                Some(message) => (
                    message,
                    "put both below the same group, or remove cpu.idle: the kernel weighs only groups beside each other",
                ),
                None => continue,
            },
        };
        let (group, origin, hint) = (branch.name.to_string(), branch.origin(), Some(hint.to_owned()));
        problems.push(Problem::Value { group, message, origin, hint });
    }
}
