//! What is in the way of a layout's sets and can't be moved: groups that no layout names.

use layout::{Origin, UnitName};
use settings::Version;
use units::{
    CpuSet, group_path,
    hint::{Command, toml},
};

use super::cells::{Field, Lane};
use crate::{
    Problem,
    sequence::{Cell, Flag},
    tree::Tree,
    unit_place,
};

/// All of them.
pub(super) fn find(lane: Lane, field: &Field, cells: &[Cell], tree: &Tree<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let Some(branch) = field.seats[index].branch.map(|branch| &tree.branches[branch]) else { continue };
        let refused = |message: String, hint: String| {
            let message = format!("group '{}' {message}", branch.name);
            Problem::Refused { message, origin: shown(branch.origin(), tree), hint, version: field.version }
        };
        let unit = branch.demands().and_then(|demands| Some(&demands.unit.as_ref()?.value));
        let set = cell.goal.as_ref().unwrap_or(&cell.now);
        let is_exclusive = cell.goal_flag.unwrap_or(cell.flag).holds();
        for (other, theirs) in
            cells.iter().enumerate().filter(|(other, _)| field.seats[*other].branch.is_none())
        {
            let path = &format!("/{}", field.seats[other].place.path);
            let common = theirs.now.intersection(set);
            if is_rival(cell, theirs) && !common.is_empty() {
                let what = lane.file();
                let message = match is_exclusive {
                    true => format!(
                        "has exclusive CPUs, but group {path}, which the layout does not name, also has {what} {common}"
                    ),
                    false => format!(
                        "gets {what} {common}, but group {path}, which the layout does not name, has these for itself"
                    ),
                };
                problems.push(refused(message, instead(path, lane, &room(other, field, cells))));
            }
            let orphan =
                theirs.parent == Some(index) && field.version == Version::V1 && !theirs.now.is_subset(set);
            if orphan {
                problems.push(refused(
                    format!(
                        "gets {} {}, but group {path} in it, which the layout does not name, has {}",
                        lane.file(),
                        words(set),
                        theirs.now
                    ),
                    instead(path, lane, &room(other, field, cells)),
                ));
            }
        }
        if cell.goal_flag == Some(Flag::On)
            && let Some(own) = cell.parent.and_then(|above| without_flag(field, cells, above, tree))
        {
            let message = format!("gets {}, which needs it of group '{own}' too", flag_of(lane, field));
            let hint = format!("add {} = 1 to group '{own}'", flag_of(lane, field));
            problems.push(refused(message, hint));
        }
        if is_exclusive && let Some(above) = cell.parent {
            problems.extend(non_exclusive(field, cells, above).map(|path| refused(
                format!("gets exclusive CPUs, but group /{path} above it, which the layout does not name, does not have them exclusively"),
                match field.version {
                    Version::V1 => {
                        Command::ringfence("set").group(format!("/{path}")).arg("cpuset.cpu_exclusive=1").into()
                    }
                    Version::V2 if let Some(unit) = unit => slice_at_the_top(unit, &field.seats[index].place.path),
                    Version::V2 => {
                        // the kernel makes a partition only below another
                        let can_be = cells[above].parent.is_some_and(|parent| cells[parent].flag.holds());
                        let partition = can_be.then(|| format!(
                            "make /{path} a partition ({} cpuset.cpus=… cpuset.cpus.partition=root), ",
                            Command::ringfence("set").group(format!("/{path}")),
                        ));
                        let from_root = from_the_root(&branch.origin().file, branch.name.path());
                        format!("{}{from_root}, or use Linux 6.7 or later", partition.unwrap_or_default())
                    }
                },
            )));
        }
    }
    problems
}

/// libcgroup's files have no such name: a slash before it means nothing there.
fn from_the_root(file: &str, path: &str) -> String {
    let name = format!("give the group a name from the root (\"/{path}\")");
    if file.ends_with(".toml") {
        return name;
    }
    let import = Command::ringfence("import").arg(file);
    format!("as {file} has no names from the root, {import} > layout.toml and {name} there")
}

fn flag_of(lane: Lane, field: &Field) -> &'static str {
    lane.flag_file(field.version).unwrap_or_default()
}

/// v1: a group of the layout above ours that would have to have the same flag, and will not.
fn without_flag(field: &Field, cells: &[Cell], above: usize, tree: &Tree<'_>) -> Option<String> {
    let branch = field.seats[above].branch.filter(|_| field.version == Version::V1)?;
    let holds = cells[above].goal_flag.unwrap_or(cells[above].flag).holds();
    (!holds).then(|| tree.branches[branch].name.to_string())
}

/// A group above ours that would have to be exclusive, and is not.
fn non_exclusive(field: &Field, cells: &[Cell], above: usize) -> Option<String> {
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
        hint:
            "look at the groups with ringfence tree; groups that the layout does not name may be in the way"
                .to_owned(),
        version: field.version,
    }
}

/// May two groups beside each other have no CPU in common, as one of them is exclusive?
fn is_rival(cell: &Cell, other: &Cell) -> bool {
    let is_exclusive = cell.goal_flag.unwrap_or(cell.flag).holds();
    cell.parent.is_some() && other.parent == cell.parent && (is_exclusive || other.flag.holds())
}

/// What the layout leaves a group that it does not name. All of its reasons are looked at together: hints of one
/// answer agree.
fn room(other: usize, field: &Field, cells: &[Cell]) -> CpuSet {
    let theirs = &cells[other];
    let goal = |cell: usize| cells[cell].goal.as_ref().unwrap_or(&cells[cell].now);
    let named = (0..cells.len()).filter(|cell| field.seats[*cell].branch.is_some());
    let rivals = named.filter(|cell| is_rival(&cells[*cell], theirs));
    let left = rivals.fold(theirs.now.clone(), |left, cell| left.difference(goal(cell)));
    match theirs.parent.filter(|above| field.seats[*above].branch.is_some()) {
        Some(above) if field.version == Version::V1 => left.intersection(goal(above)),
        _ => left,
    }
}

/// What frees the way: the group in it gets what is left for it, or the layout decides about it.
fn instead(path: &str, lane: Lane, room: &CpuSet) -> String {
    if room.is_empty() {
        return format!(
            "the layout leaves nothing of {} for {path}: name it in the layout, or delete it",
            lane.file()
        );
    }
    let set = Command::ringfence("set").group(path).arg(format!("{}={room}", lane.file()));
    format!("{set}, or name it in the layout")
}

/// For a kernel that makes partitions below others only: a slice at the top can be one, and a service be in it.
fn slice_at_the_top(unit: &UnitName, path: &str) -> String {
    let way = if unit.as_str().ends_with(".service") {
        unit_place::own_slice(unit)
    } else {
        let top = group_path::names(path).next().unwrap_or_default();
        format!("the slice at the top can be a partition: unit = {} in the layout", toml(top))
    };
    format!("{way}; or use Linux 6.7 or later")
}

#[cfg(test)]
mod tests {
    use super::from_the_root;

    #[test]
    fn a_name_from_the_root_is_one_of_a_layout() {
        let name = "give the group a name from the root (\"/db\")";
        assert_eq!(from_the_root("/etc/l.toml", "db"), name);
        let conf = from_the_root("/etc/cgconfig.conf", "db");
        let import = "ringfence import /etc/cgconfig.conf > layout.toml";
        assert_eq!(
            conf,
            format!("as /etc/cgconfig.conf has no names from the root, {import} and {name} there")
        );
    }
}
