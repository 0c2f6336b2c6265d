//! The memory nodes of every group, derived from its CPUs where it says "local". Always among its parent's, and never
//! nodes without memory.

use layout::{MemDemand, Origin};
use settings::Version;
use units::{CpuSet, NodeSet};

use super::landscape::Landscape;
use crate::{
    Observed, Problem,
    tree::{Branch, Tree},
};

/// By branch; `None` where nothing is written.
pub(crate) fn nodes(
    land: &Landscape,
    tree: &Tree<'_>,
    observed: &Observed,
    cpus: &[Option<CpuSet>],
    problems: &mut Vec<Problem>,
) -> Vec<Option<NodeSet>> {
    let top = top(land, observed, tree);
    let mut mems: Vec<Option<NodeSet>> = vec![None; tree.branches.len()];
    let mut like: Vec<(usize, usize)> = Vec::new();
    for (index, branch) in tree.branches.iter().enumerate() {
        let above = above(tree, index, &mems, &top);
        let demand = branch.demands().and_then(|demands| demands.mems.as_ref());
        mems[index] = match demand.map(|mems| (&mems.value, &mems.origin)) {
            Some((MemDemand::All, _)) => Some(above),
            Some((MemDemand::These(nodes), origin)) => {
                Some(these(branch, nodes, &above, &top, origin, problems))
            }
            Some((MemDemand::Local, origin)) => {
                let own = std::iter::once(index)
                    .chain(tree.ancestors(index))
                    .find_map(|index| cpus[index].as_ref());
                local(land, branch, own, &above, origin, problems)
            }
            Some((MemDemand::Like(name), _)) => {
                like.extend(tree.find(name).map(|other| (index, other)));
                None
            }
            None => without_request(branch, above),
        };
    }
    let ends = super::ends(&like);
    for (index, other) in &like {
        mems[*index] = ends.get(index).and_then(|end| mems[*end].clone());
        let above = above(tree, *index, &mems, &top);
        let lacking = mems[*index].as_ref().map_or_else(NodeSet::new, |nodes| nodes.difference(&above));
        if !lacking.is_empty() {
            let branch = &tree.branches[*index];
            let other = &tree.branches[*other].name;
            let message = format!(
                "group '{}' asks for the memory nodes of '{other}', of which its parent does not have {lacking}",
                branch.name
            );
            problems.push(problem(
                message,
                &branch.origin(),
                lacking.len(),
                format!("its parent has {above}"),
            ));
        }
    }
    mems
}

fn problem(message: String, origin: &Origin, missing: usize, hint: String) -> Problem {
    Problem::Unsatisfied { message, origin: origin.clone(), against: Vec::new(), missing, hint }
}

/// All nodes that can be had.
fn top(land: &Landscape, observed: &Observed, tree: &Tree<'_>) -> NodeSet {
    let at = tree.branches.first().and_then(|branch| observed.hierarchies.get(branch.place.hierarchy));
    let bound = at.and_then(|at| super::bound::<units::Node>(at, tree, "cpuset.mems"));
    match bound {
        Some(bound) if land.with_memory.is_empty() => bound,
        Some(bound) => land.with_memory.intersection(&bound),
        None => land.with_memory.clone(),
    }
}

/// What the nearest parent has for which something is written.
fn above(tree: &Tree<'_>, index: usize, mems: &[Option<NodeSet>], top: &NodeSet) -> NodeSet {
    tree.ancestors(index).find_map(|above| mems[above].clone()).unwrap_or_else(|| top.clone())
}

/// v1 takes no task without memory nodes; a current set that fits stays.
fn without_request(branch: &Branch<'_>, above: NodeSet) -> Option<NodeSet> {
    let stays = !branch.mems.is_empty() && branch.mems.is_subset(&above);
    match branch.place.version {
        Version::V2 => None,
        Version::V1 if stays && branch.group.is_some() => Some(branch.mems.clone()),
        Version::V1 => Some(above),
    }
}

fn these(
    branch: &Branch<'_>,
    nodes: &NodeSet,
    above: &NodeSet,
    top: &NodeSet,
    origin: &Origin,
    problems: &mut Vec<Problem>,
) -> NodeSet {
    let lacking = nodes.difference(above);
    // a listing without nodes can't say that there are none
    if !lacking.is_empty() && !top.is_empty() {
        let whose = if lacking.is_subset(top) {
            "its parent does not have"
        } else {
            "this machine does not have memory on"
        };
        let message = format!("group '{}' asks for memory of node {lacking}, which {whose}", branch.name);
        problems.push(problem(message, origin, lacking.len(), format!("there is memory on {above}")));
    }
    nodes.clone()
}

/// The nodes that the CPUs are on; for a node without memory, the nearest that has some.
fn local(
    land: &Landscape,
    branch: &Branch<'_>,
    cpus: Option<&CpuSet>,
    above: &NodeSet,
    origin: &Origin,
    problems: &mut Vec<Problem>,
) -> Option<NodeSet> {
    let cpus = cpus.unwrap_or(&land.online);
    let on: Vec<usize> = land.positions(cpus);
    if on.iter().any(|node| land.nodes[*node].id.is_none()) {
        let message =
            format!("group '{}' asks for local memory, but the nodes of its CPUs are not known", branch.name);
        problems.push(problem(
            message,
            origin,
            0,
            "name the nodes, or give a listing that has them".to_owned(),
        ));
        return None;
    }
    let here: NodeSet = on.iter().filter_map(|node| land.nodes[*node].id).collect();
    let local = here.intersection(above);
    if !local.is_empty() {
        return Some(local);
    }
    let distance = |to: usize| {
        let row = land.distances_from_node(to).unwrap_or_default();
        on.iter().filter_map(|from| row.get(*from)).min().copied().unwrap_or(u32::MAX)
    };
    let nearest = above.iter().min_by_key(|to| (distance(*to), *to));
    Some(nearest.into_iter().collect())
}
