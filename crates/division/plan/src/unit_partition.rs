//! CPUs of a unit's own: a partition of its control group. systemd removes the group at each stop of a service, and with
//! the last unit that has CPUs the lists of the slices above, so that a line of our drop-in file makes both again at
//! each start. A slice's or scope's group stays as long as it runs, and nothing runs at its start.

use std::collections::{BTreeMap, BTreeSet};

use layout::UnitName;
use settings::{GroupName, Version};
use units::{CpuSet, group_path, shell_quote};

use crate::{
    Action, Observed, Place, Step,
    cpusets::{CPUS, EXCLUSIVE, MEMS, PARTITION},
    homes::Home,
    tree::{Exclusive, exclusive, list},
};

const MEMBER: &str = "member";
/// What a line begins with whose program runs as root, outside of what confines the service, and may fail.
const BEFORE_START: &str = "ExecStartPre=-+";
const ALLOWED_CPUS: &str = "AllowedCPUs=";
const ALLOWED_NODES: &str = "AllowedMemoryNodes=";

/// Is it a slice's list of CPUs for partitions below it? It goes with the slice's controllers, and whether it is right
/// shows at the partitions.
pub fn is_reserve(place: &Place, file: &str) -> bool {
    file == EXCLUSIVE && place.path.ends_with(".slice")
}

/// Is a group with this state a partition that the kernel has?
pub fn is_partition(state: &str) -> bool {
    matches!(state.trim(), "root" | "isolated")
}

/// What a new group's file for partitions contains.
pub fn no_partition(file: &str) -> Option<&'static str> {
    match file {
        PARTITION => Some(MEMBER),
        EXCLUSIVE => Some(""),
        _ => None,
    }
}

/// Does systemd run our line at the start of such a unit?
pub(crate) fn is_started(unit: &UnitName) -> bool {
    matches!(unit.section().as_str(), "Service" | "Socket")
}

/// The line that makes a partition of a unit's group at each start: the slices above get its CPUs in addition to those
/// that they reserve for others.
pub(crate) fn line(mount: &str, place: &Place, cpus: &str, kind: &str) -> String {
    let above = above(place).map(|slice| slice.path);
    let all: Vec<String> = above.chain([place.path.clone()]).map(|path| shell_quote(&path).into()).collect();
    let (mount, own) = (shell_quote(mount), shell_quote(&place.path));
    let script = format!(
        "cd {mount} && for d in {}; do f=$d/{EXCLUSIVE}; [ ! -e \"$f\" ] || {{ read -r l <\"$f\"; echo \"$l,{cpus}\" >\"$f\"; }}; done; \
         cd {own} && echo {kind} >{PARTITION} && grep -qx {kind} {PARTITION}",
        all.join(" ")
    );
    format!("{BEFORE_START}/bin/sh -c {}", systemd_quote(&script))
}

/// One word of a command line in a unit's file (systemd.service(5), "Command lines").
fn systemd_quote(word: &str) -> String {
    let escaped = word.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// The CPUs that a drop-in file of ours makes a partition of at each start.
fn of_text(text: &str) -> Option<CpuSet> {
    text.lines().find(|line| line.starts_with(BEFORE_START))?;
    list_of(text, ALLOWED_CPUS)
}

/// CPUs or memory nodes of a drop-in file.
fn list_of(text: &str, property: &str) -> Option<CpuSet> {
    text.lines().rev().find_map(|line| line.strip_prefix(property))?.parse().ok()
}

/// What is so where a unit's drop-in file ends.
pub struct UnitScene<'s> {
    /// The content of a group's file.
    pub read: &'s dyn Fn(&Place, &str) -> Option<String>,
    /// The groups in a slice, which have or reserve CPUs.
    pub children: &'s dyn Fn(&Place) -> Vec<Place>,
    /// Has systemd read what the file says?
    pub is_in_force: &'s dyn Fn() -> bool,
}

/// The writes that end what a drop-in file made, once it says `then` in place of `was`: the partition, and the confinement
/// of processes to CPUs and memory nodes.
pub fn ends(
    place: &Place,
    (was, then): (Option<&str>, Option<&str>),
    UnitScene { read, children, is_in_force }: &UnitScene<'_>,
) -> Vec<(Place, &'static str, String)> {
    let list_in = |place: &Place, file: &str| -> Option<CpuSet> { read(place, file)?.trim().parse().ok() };
    let list = |place: &Place| list_in(place, EXCLUSIVE);
    let mut writes = Vec::new();
    let partition = was.and_then(of_text).filter(|_| then.and_then(of_text).is_none());
    if partition.is_some() {
        if read(place, PARTITION).is_some_and(|state| state.trim() != MEMBER) {
            writes.push((place.clone(), PARTITION, MEMBER.to_owned()));
        }
        if list(place).is_some_and(|list| !list.is_empty()) {
            writes.push((place.clone(), EXCLUSIVE, "\n".to_owned()));
        }
    }
    // systemd takes the controller off the group, and on Linux 6.12 and 7.2 a task keeps the CPUs and nodes that it had
    let around = group_path::parent(&place.path).unwrap_or_default();
    let around = Place { path: around.to_owned(), ..place.clone() };
    for (property, file) in [(ALLOWED_CPUS, CPUS), (ALLOWED_NODES, MEMS)] {
        let Some(said) = was.and_then(|was| list_of(was, property)) else { continue };
        let goes = then.is_none_or(|then| list_of(then, property).is_none());
        // the list may be another one by now: the daemon's, which resizes, or somebody's; or it is another file's of the unit
        let is_ended = |now: &CpuSet| goes && !now.is_empty() && (*now == said || is_in_force());
        let now = list_in(place, file).filter(is_ended);
        let Some(now) = now else { continue };
        if let Some(around) = list_in(&around, &format!("{file}.effective")) {
            writes.push((place.clone(), file, around.union(&said).union(&now).to_string()));
        }
    }
    let Some(cpus) = partition else { return writes };
    let mut ended = place.clone();
    for slice in above(place).collect::<Vec<_>>().into_iter().rev() {
        let others = children(&slice).into_iter().filter(|child| *child != ended);
        let others = others.filter_map(|child| list(&child));
        let gone = others.fold(cpus.clone(), |gone, theirs| gone.difference(&theirs));
        if let Some(reserved) = list(&slice).filter(|reserved| !reserved.is_disjoint(&gone)) {
            let left = reserved.difference(&gone);
            let text = if left.is_empty() { "\n".to_owned() } else { left.to_string() };
            writes.push((slice.clone(), EXCLUSIVE, text));
        }
        ended = slice;
    }
    writes
}

/// The groups above, from the top down: of a unit's group its slices.
pub(crate) fn above(place: &Place) -> impl Iterator<Item = Place> + '_ {
    let mut paths: Vec<&str> = group_path::branch(&place.path).skip(1).collect();
    paths.reverse();
    paths.into_iter().map(|path| Place { path: path.to_owned(), ..place.clone() })
}

/// Takes out of the steps those that make partitions of units, which come behind the drop-in files: systemd brings
/// about the controllers that they need, and an undo ends the partitions before it takes these back. What comes behind the
/// first of them stays behind it. Of a unit that does not run, its start makes the partition.
pub(crate) fn split(steps: Vec<Step>, homes: &[Home<'_>], observed: &Observed) -> (Vec<Step>, Vec<Step>) {
    let units = homes.iter().filter(|home| home.group.demands.unit.is_some());
    let exclusive = units.filter(|home| exclusive(&home.group.demands, Version::V2) > Exclusive::No);
    let own: Vec<&Place> = exclusive.filter_map(|home| home.places.values().next()).collect();
    let of = |place: &Place| -> Vec<&&Place> {
        let is_in = |unit: &&&Place| {
            unit.hierarchy == place.hierarchy && group_path::is_at_or_below(&unit.path, &place.path)
        };
        own.iter().filter(is_in).collect()
    };
    let runs = |place: &Place| of(place).into_iter().any(|unit| observed.group(unit).is_some());
    let is_idle = |place: &Place| !of(place).is_empty() && !runs(place);
    let closes = |step: &Step| match &step.action {
        Action::Write { place, file, text, .. } => {
            let closes = match file.as_str() {
                PARTITION => text != MEMBER,
                EXCLUSIVE => !text.trim().is_empty(),
                _ => false,
            };
            closes && !of(place).is_empty()
        }
        _ => false,
    };
    let slices: BTreeSet<Place> =
        own.iter().flat_map(|unit| above(unit)).filter(|slice| runs(slice)).collect();
    let narrowed = narrowed(&slices, &steps, observed);
    let first = steps.iter().position(closes).unwrap_or(steps.len());
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for (index, step) in steps.into_iter().enumerate() {
        match &step.action {
            Action::Write { place, file, .. } if index >= first && file.starts_with("cpuset.") => {
                if !is_idle(place) {
                    behind.push(step);
                }
            }
            _ => before.push(step),
        }
    }
    behind.extend(narrowed);
    (before, behind)
}

/// Slices give up what no group in them reserves any more, once the steps are done.
fn narrowed(slices: &BTreeSet<Place>, steps: &[Step], observed: &Observed) -> Vec<Step> {
    let mut lists: BTreeMap<Place, CpuSet> = BTreeMap::new();
    for step in steps {
        if let Action::Write { place, file, text, .. } = &step.action
            && file == EXCLUSIVE
        {
            lists.insert(place.clone(), text.trim().parse().unwrap_or_default());
        }
    }
    let mut narrowed = Vec::new();
    let deepest_first = slices.iter().rev();
    for slice in deepest_first {
        let seen = |place: &Place| list(observed.group(place), EXCLUSIVE);
        let Some(at) = observed.hierarchies.get(slice.hierarchy) else { continue };
        let is_child = |path: &&str| group_path::parent(path) == Some(&slice.path);
        let written = lists.keys().map(|place| place.path.as_str());
        let children: BTreeSet<&str> =
            at.groups.keys().map(String::as_str).chain(written).filter(is_child).collect();
        let of_child = |path: &str| {
            let place = Place { path: path.to_owned(), ..slice.clone() };
            lists.get(&place).cloned().unwrap_or_else(|| seen(&place))
        };
        let needed = children.into_iter().fold(CpuSet::new(), |all, path| all.union(&of_child(path)));
        let has = lists.get(slice).cloned().unwrap_or_else(|| seen(slice));
        let left = has.intersection(&needed);
        let Ok(group) = GroupName::new(&format!("/{}", slice.path)) else { continue };
        if left != has {
            let text = if left.is_empty() { "\n".to_owned() } else { left.to_string() };
            let before = observed.file(slice, EXCLUSIVE).map(str::to_owned);
            let action = Action::Write { place: slice.clone(), file: EXCLUSIVE.to_owned(), text };
            narrowed.push(Step::new(group, action, "no group in it reserves the rest any more").was(before));
            lists.insert(slice.clone(), left);
        }
    }
    narrowed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn place(path: &str) -> Place {
        Place { hierarchy: 0, path: path.to_owned(), version: Version::V2 }
    }

    #[test]
    fn the_line_is_quoted_for_systemd_and_the_shell() {
        let made = line("/m", &place(r"a.slice/x\x2d1.service"), "2-3", "isolated");
        assert_eq!(
            made,
            "ExecStartPre=-+/bin/sh -c \"cd /m && for d in a.slice 'a.slice/x\\\\x2d1.service'; do \
             f=$$d/cpuset.cpus.exclusive; [ ! -e \\\"$$f\\\" ] || { read -r l <\\\"$$f\\\"; echo \\\"$$l,2-3\\\" >\\\"$$f\\\"; }; done; \
             cd 'a.slice/x\\\\x2d1.service' && echo isolated >cpuset.cpus.partition && grep -qx isolated cpuset.cpus.partition\""
        );
    }

    #[test]
    fn what_the_line_made_ends_with_it_and_what_others_reserve_stays() {
        let (unit, other) = ("system.slice/x.service", "system.slice/y.service");
        let lists = BTreeMap::from([("system.slice", "1-3"), (unit, "1-2"), (other, "2-3")]);
        let read = |place: &Place, file: &str| match file {
            PARTITION => Some("root".to_owned()),
            "cpuset.cpus.effective" => Some("0,4-7".to_owned()),
            CPUS => Some("1-2".to_owned()),
            "cpuset.mems.effective" => Some("0-1".to_owned()),
            MEMS => Some("1".to_owned()),
            _ => lists.get(place.path.as_str()).map(|list| (*list).to_owned()),
        };
        let children = |_: &Place| vec![place(unit), place(other)];
        let text = format!("AllowedCPUs=1-2\n{}", line("/m", &place(unit), "1-2", "root"));
        let ended = |then: Option<&str>| {
            ends(
                &place(unit),
                (Some(text.as_str()), then),
                &UnitScene { read: &read, children: &children, is_in_force: &|| true },
            )
        };
        assert_eq!(ended(Some(&text)), []);
        assert_eq!(
            ended(None),
            [
                (place(unit), PARTITION, MEMBER.to_owned()),
                (place(unit), EXCLUSIVE, "\n".to_owned()),
                (place(unit), CPUS, "0-2,4-7".to_owned()),
                (place("system.slice"), EXCLUSIVE, "2-3".to_owned()),
            ]
        );
    }

    #[test]
    fn processes_get_back_the_cpus_and_nodes_around_them() {
        let unit = place("system.slice/x.service");
        let read = |place: &Place, file: &str| match (place.path.as_str(), file) {
            ("system.slice", "cpuset.cpus.effective") => Some("0-7".to_owned()),
            ("system.slice", "cpuset.mems.effective") => Some("0-3".to_owned()),
            ("system.slice/x.service", CPUS) => Some("2-3".to_owned()),
            ("system.slice/x.service", MEMS) => Some("1".to_owned()),
            _ => None,
        };
        let was = "AllowedCPUs=2-3\nAllowedMemoryNodes=1\n";
        let ended = |then: Option<&str>| {
            ends(
                &unit,
                (Some(was), then),
                &UnitScene { read: &read, children: &|_| Vec::new(), is_in_force: &|| true },
            )
        };
        let (cpus, nodes) = ((unit.clone(), CPUS, "0-7".to_owned()), (unit.clone(), MEMS, "0-3".to_owned()));
        assert_eq!(ended(Some(was)), []);
        assert_eq!(ended(Some("AllowedCPUs=4\n")), std::slice::from_ref(&nodes));
        assert_eq!(ended(None), [cpus, nodes]);
    }

    #[test]
    fn processes_get_back_the_cpus_around_them_whatever_their_list_is_by_now() {
        let unit = place("system.slice/x.service");
        let read = |place: &Place, file: &str| match (place.path.as_str(), file) {
            ("system.slice", "cpuset.cpus.effective") => Some("0-7".to_owned()),
            ("system.slice/x.service", CPUS) => Some("0-1".to_owned()),
            _ => None,
        };
        let ended = ends(
            &unit,
            (Some("AllowedCPUs=0\n"), None),
            &UnitScene { read: &read, children: &|_| Vec::new(), is_in_force: &|| true },
        );
        assert_eq!(ended, [(unit.clone(), CPUS, "0-7".to_owned())]);
        // another file of the unit gave it that
        let ended = ends(
            &unit,
            (Some("AllowedCPUs=0\n"), None),
            &UnitScene { read: &read, children: &|_| Vec::new(), is_in_force: &|| false },
        );
        assert_eq!(ended, []);
    }
}
