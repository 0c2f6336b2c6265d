//! How a group comes to its CPUs, in words.

use units::CpuSet;

use super::{
    claim::{Requested, cpus},
    landscape::Landscape,
};
use crate::tree::Tree;

/// A sentence's part for the plan.
pub(crate) fn why(
    land: &Landscape,
    tree: &Tree<'_>,
    index: usize,
    set: Option<&CpuSet>,
    requested: Option<&Requested>,
) -> String {
    let branch = &tree.branches[index];
    let Some(set) = set else { return "the layout says nothing of its CPUs".to_owned() };
    let own = match requested {
        None if branch.group.is_some() => {
            "asks for no CPUs: all CPUs of its parent that no other group has exclusively".to_owned()
        }
        None => "for the groups in it: all CPUs of its parent that no group has exclusively".to_owned(),
        Some(Requested::These(_)) => "as given".to_owned(),
        Some(Requested::Rest(None)) => format!("all {} that it may have", cpus(set.len())),
        Some(Requested::Rest(Some(nodes))) => {
            let missing = land.cpus_of(nodes).difference(set);
            let less = if missing.is_empty() {
                String::new()
            } else {
                format!(" but {missing}, which are reserved or taken")
            };
            format!("all CPUs of node {nodes}{less}")
        }
        Some(Requested::Like(other)) => format!("the same as '{}'", tree.branches[*other].name),
        Some(Requested::Some(_)) if branch.group.is_none_or(|group| group.demands.cpus.is_none()) => {
            format!("{} for the groups in it", cpus(set.len()))
        }
        Some(Requested::Some(_)) => {
            format!("{}{}{}", cpus(set.len()), on_nodes(land, set), in_cores(land, set))
        }
    };
    match () {
        () if branch.cpus.is_empty() || branch.cpus == *set => own,
        () => format!("{own}, before {}", branch.cpus),
    }
}

fn on_nodes(land: &Landscape, set: &CpuSet) -> String {
    let nodes: Option<units::NodeSet> = land.positions(set).iter().map(|node| land.nodes[*node].id).collect();
    match nodes {
        Some(nodes) if nodes.len() == 1 => format!(" on node {nodes}"),
        Some(nodes) => format!(" on nodes {nodes}"),
        None => String::new(),
    }
}

/// Of which cores they are, where those are whole: of cores that differ, how many of each size.
fn in_cores(land: &Landscape, set: &CpuSet) -> String {
    let whole = land.threads() > 1 && land.with_siblings(set) == *set;
    let of_set = land.sizes_of(set);
    match (whole, land.core_sizes.are_mixed()) {
        (false, _) => String::new(),
        (true, false) => ", whole cores".to_owned(),
        (true, true) => {
            let parts = of_set.split(set.len()).unwrap_or_default();
            let parts = parts.into_iter().filter(|(_, count)| *count > 0);
            let parts: Vec<String> =
                parts.map(|(size, count)| format!("{count} of {}", cpus(size))).collect();
            format!(", whole cores: {}", parts.join(" and "))
        }
    }
}
