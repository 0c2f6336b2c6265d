//! What is in the way of a layout's sets and can't be moved: groups that no layout names.

use layout::Origin;
use settings::Version;
use units::CpuSet;

use super::cells::{Field, Lane};
use crate::{Problem, sequence::Cell, tree::Tree};

/// All of them.
pub(super) fn find(lane: Lane, field: &Field, cells: &[Cell], tree: &Tree<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let Some(branch) = field.seats[index].branch.map(|branch| &tree.branches[branch]) else { continue };
        let refused = |message: String, mend: String| {
            let message = format!("group '{}' {message}", branch.name);
            Problem::Refused { message, origin: shown(branch.origin(), tree), mend, version: field.version }
        };
        let set = cell.goal.as_ref().unwrap_or(&cell.now);
        let kept = cell.goal_flag.unwrap_or(cell.flag).holds();
        for (other, theirs) in
            cells.iter().enumerate().filter(|(other, _)| field.seats[*other].branch.is_none())
        {
            let path = format!("/{}", field.seats[other].place.path);
            let common = theirs.now.intersection(set);
            let rival =
                theirs.parent == cell.parent && cell.parent.is_some() && (kept || theirs.flag.holds());
            if rival && !common.is_empty() {
                let own = if kept { "has them for itself" } else { "may not share them" };
                problems.push(refused(
                    format!("{own}: {} {common}, but the group {path}, which the layout does not name, has them, too", lane.file()),
                    format!("ringfence set {path} {}={}, or name it in the layout", lane.file(), words(&theirs.now.difference(set))),
                ));
            }
            let orphan =
                theirs.parent == Some(index) && field.version == Version::V1 && !theirs.now.is_subset(set);
            if orphan {
                problems.push(refused(
                    format!("is to have {} {}, but the group {path} in it, which the layout does not name, has {}", lane.file(), words(set), theirs.now),
                    format!("ringfence set {path} {}={}, or name it in the layout", lane.file(), words(&theirs.now.intersection(set))),
                ));
            }
        }
        if kept && let Some(above) = cell.parent {
            problems.extend(unkept(field, cells, above).map(|path| refused(
                format!("is to have its CPUs for itself, but the group /{path} above it, which the layout does not name, does not"),
                match field.version {
                    Version::V1 => format!("ringfence set /{path} cpuset.cpu_exclusive=1"),
                    Version::V2 => format!(
                        "make /{path} a partition (ringfence set /{path} cpuset.cpus=… cpuset.cpus.partition=root), give \
                         the group a name from the root (\"/{}\"), or use Linux 6.7 or later",
                        branch.name.path()
                    ),
                },
            )));
        }
    }
    problems
}

/// A group above ours that would have to be exclusive, and is not.
fn unkept(field: &Field, cells: &[Cell], above: usize) -> Option<String> {
    let foreign = field.seats[above].branch.is_none() && !cells[above].flag.holds();
    let needs = field.version == Version::V1 || !field.names_exclusive;
    (foreign && needs).then(|| field.seats[above].place.path.clone())
}

fn words(set: &CpuSet) -> String {
    if set.is_empty() { "…".to_owned() } else { set.to_string() }
}

/// What is only part of a name is shown where the first group of the layout is.
fn shown(origin: Origin, tree: &Tree<'_>) -> Origin {
    let first = tree.branches.iter().find(|branch| branch.group.is_some());
    if origin.file.starts_with('<') { first.map_or(origin, |branch| branch.origin()) } else { origin }
}

/// No order was found, for reasons that [`find`] does not know.
pub(super) fn stuck(lane: Lane, field: &Field, open: &[usize], tree: &Tree<'_>) -> Problem {
    let branches =
        open.iter().filter_map(|cell| field.seats[*cell].branch).map(|branch| &tree.branches[branch]);
    let names: Vec<String> = branches.clone().take(5).map(|branch| format!("'{}'", branch.name)).collect();
    let origin =
        branches.map(|branch| branch.origin()).next().unwrap_or_else(|| Origin::outside_files("<layout>"));
    Problem::Refused {
        message: format!(
            "no order of writes to {} was found that the kernel takes, for {}",
            lane.file(),
            names.join(", ")
        ),
        origin: shown(origin, tree),
        mend:
            "look at the groups with ringfence tree; groups that the layout does not name may be in the way"
                .to_owned(),
        version: field.version,
    }
}
