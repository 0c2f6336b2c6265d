//! The groups that a cpuset matters to, as the tree they form in the hierarchy that holds it: those of the layout, and
//! the parents that are only part of a name; with what the kernel holds for each.

use std::collections::HashMap;

use layout::{Assigned, Demands, Group, Origin};
use settings::{Controller, GroupName, NoMachine, Value, Version};
use units::{CpuSet, NodeSet, group_path};

use crate::{Observed, Place, Problem, SeenGroup, homes::Home};

/// How far a group's CPUs are its own by the kernel's keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exclusive {
    /// Not.
    No,
    /// Other groups can't have them.
    Root,
    /// Nor does the scheduler balance tasks over them (v2).
    Isolated,
}

/// A group of the tree.
#[derive(Debug)]
pub(crate) struct Branch<'d> {
    pub name: GroupName,
    pub place: Place,
    pub parent: Option<usize>,
    /// The layout's group; `None` if it is only part of the name of one below.
    pub group: Option<&'d Group>,
    /// What the kernel is to do for the group itself.
    pub exclusive: Exclusive,
    /// What the layout says of v1's flag alone, which forbids siblings to name its CPUs: tasks above it may go on using
    /// them.
    pub flag: Option<bool>,
    /// Is a group below it exclusive? Then its own CPUs are nobody else's either, as the kernel demands.
    pub holds_exclusive: bool,
    /// What it has now, or had before earlier layouts changed it for those below it; empty where it is not there or has
    /// nothing.
    pub cpus: CpuSet,
    pub mems: NodeSet,
    /// Was it elastic before? Then its CPUs stay as far as they can.
    pub was_elastic: bool,
}

/// The tree; parents before their children, else in the layout's order.
#[derive(Debug, Default)]
pub(crate) struct Tree<'d> {
    pub branches: Vec<Branch<'d>>,
    by_path: HashMap<String, usize>,
    by_name: HashMap<GroupName, usize>,
}

impl Branch<'_> {
    pub(crate) fn demands(&self) -> Option<&Demands> {
        self.group.map(|group| &group.demands)
    }

    /// Are its CPUs its own, by its own wish or for the sake of a group below it?
    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive > Exclusive::No || self.holds_exclusive
    }

    /// May no group beside it have its CPUs, by the kernel's keeping?
    pub(crate) fn keeps_siblings_off(&self) -> bool {
        self.is_exclusive() || self.flag == Some(true)
    }

    /// What the layout says of v1's `cpuset.mem_exclusive`.
    pub(crate) fn mem_flag(&self) -> Option<bool> {
        let is_it = |assigned: &&Assigned| assigned.found.setting.name == "cpuset.mem_exclusive";
        let assigned = self.demands()?.settings.iter().find(is_it)?;
        match assigned.found.parse(&assigned.text, &NoMachine) {
            Ok(Value::Flag(on)) if self.place.version == Version::V1 => Some(on),
            _ => None,
        }
    }

    /// Where to point at.
    pub(crate) fn origin(&self) -> Origin {
        let of_group = |group: &Group| match &group.demands.cpus {
            Some(cpus) => cpus.origin.clone(),
            None => group.origin.clone(),
        };
        self.group.map_or_else(|| Origin::outside_files("<part of a name>"), of_group)
    }
}

impl<'d> Tree<'d> {
    /// The tree; empty if no group needs one.
    pub(crate) fn new(homes: &[Home<'d>], observed: &Observed, problems: &mut Vec<Problem>) -> Tree<'d> {
        let mut tree = Tree::default();
        let hierarchy = observed.hierarchy_of(Controller::Cpuset);
        for home in homes.iter().filter(|home| home.has_cpuset) {
            let group = home.group;
            let Some(hierarchy) = hierarchy else {
                let (group, origin) = (group.name.to_string(), group.origin.clone());
                problems.push(Problem::NoController { group, controller: "cpuset".to_owned(), origin });
                continue;
            };
            let place = match home.is_systemds() {
                true => home.places.get(&hierarchy).cloned(),
                false => observed.place(hierarchy, &group.name),
            };
            if let Some(place) = place {
                tree.add(home, place, observed, problems);
            }
        }
        tree.mark();
        tree
    }

    fn add(&mut self, home: &Home<'d>, place: Place, observed: &Observed, problems: &mut Vec<Problem>) {
        let group = home.group;
        if let Some(other) = self.by_path.get(&place.path).map(|index| &self.branches[*index])
            && let Some(first) = other.group
        {
            problems.push(Problem::Contradiction {
                message: format!("groups '{}' and '{}' are the same directory", first.name, group.name),
                origin: group.origin.clone(),
                other: first.origin.clone(),
                hint: Some("keep one of them".to_owned()),
            });
            return;
        }
        let parent = match (&group.demands.unit, home.unit) {
            (Some(_), _) => None,
            (None, Some(_)) => {
                group_path::parent(&place.path).and_then(|above| self.by_path.get(above).copied())
            }
            (None, None) => self.parent(&group.name, observed, place.hierarchy),
        };
        let exclusive = exclusive(&group.demands, place.version);
        let flag = flag(&group.demands).filter(|_| place.version == Version::V1);
        let branch = Branch::new(group.name.clone(), place, parent, Some(group), exclusive, observed);
        self.push(Branch { flag, ..branch });
    }

    /// The branch that a group hangs on; made if it is only part of a name.
    fn parent(&mut self, name: &GroupName, observed: &Observed, hierarchy: usize) -> Option<usize> {
        let above = group_path::parent(name.path()).filter(|above| !above.is_empty())?;
        let above = if name.is_from_root() { format!("/{above}") } else { above.to_owned() };
        let above = GroupName::new(&above).ok()?;
        let place = observed.place(hierarchy, &above)?;
        if let Some(index) = self.by_path.get(&place.path) {
            return Some(*index);
        }
        let parent = self.parent(&above, observed, hierarchy);
        Some(self.push(Branch::new(above, place, parent, None, Exclusive::No, observed)))
    }

    fn push(&mut self, branch: Branch<'d>) -> usize {
        let index = self.branches.len();
        self.by_path.insert(branch.place.path.clone(), index);
        self.by_name.insert(branch.name.clone(), index);
        self.branches.push(branch);
        index
    }

    fn mark(&mut self) {
        for index in (0..self.branches.len()).rev() {
            let branch = &self.branches[index];
            if branch.is_exclusive()
                && let Some(parent) = branch.parent
            {
                self.branches[parent].holds_exclusive = true;
            }
        }
    }

    /// The branch of a group.
    pub(crate) fn find(&self, name: &GroupName) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// A branch's ancestors, nearest first.
    pub(crate) fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.branches[index].parent, |above| self.branches[*above].parent)
    }

    /// The version of the hierarchy; v2 where there is no tree.
    pub(crate) fn version(&self) -> Version {
        self.branches.first().map_or(Version::V2, |branch| branch.place.version)
    }
}

impl<'d> Branch<'d> {
    fn new(
        name: GroupName,
        place: Place,
        parent: Option<usize>,
        group: Option<&'d Group>,
        exclusive: Exclusive,
        observed: &Observed,
    ) -> Branch<'d> {
        let seen = observed.group(&place);
        let (cpus, mems) = (list_before(seen, "cpuset.cpus"), list_before(seen, "cpuset.mems"));
        let was_elastic = !observed.elastic.is_empty() && observed.elastic.contains(&name.to_string());
        let (flag, holds_exclusive) = (None, false);
        Branch { name, place, parent, group, exclusive, flag, holds_exclusive, cpus, mems, was_elastic }
    }
}

/// A list in a file that was seen; empty if it was not.
pub(crate) fn list<K>(seen: Option<&SeenGroup>, file: &str) -> units::IdSet<K> {
    let text = seen.and_then(|group| group.files.get(file));
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The same, as it was before earlier layouts.
fn list_before<K>(seen: Option<&SeenGroup>, file: &str) -> units::IdSet<K> {
    let before = seen.and_then(|group| group.lists_before.get(file));
    before.map_or_else(|| list(seen, file), |text| text.parse().unwrap_or_default())
}

/// What the kernel is to do for a group with these demands.
pub(crate) fn exclusive(demands: &Demands, version: Version) -> Exclusive {
    let partition = demands.settings.iter().find(|assigned| assigned.is_partition());
    let partition = partition.filter(|assigned| version == Version::V2 || !assigned.is_flag());
    match partition.and_then(|assigned| assigned.partition()).as_deref() {
        Some("isolated") => Exclusive::Isolated,
        Some("root") => Exclusive::Root,
        _ if demands.exclusive => Exclusive::Root,
        _ => Exclusive::No,
    }
}

/// What the demands say of v1's flag by its own name.
fn flag(demands: &Demands) -> Option<bool> {
    let flag = demands.settings.iter().find(|assigned| assigned.is_flag())?;
    flag.partition().map(|kind| kind == "root")
}
