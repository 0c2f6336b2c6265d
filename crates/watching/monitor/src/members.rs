//! What figures lack on cgroup v1, where a group is a directory in each of several hierarchies: tasks that are in only some
//! of them, and CPU time that is counted in a hierarchy that the group is not in. Never changes anything.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{GroupName, Host};
use settings::{Controller, Version};
use units::{group_path, hint::Command};

use crate::tasks::numbers;

/// The tasks of a group and of those below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    all: BTreeSet<u32>,
    /// By the label of each hierarchy that has the group.
    by_hierarchy: BTreeMap<String, BTreeSet<u32>>,
}

impl Members {
    /// The tasks that are in the group in at least one hierarchy.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// `cpu 10, cpuset 0`: where hierarchies differ.
    pub fn differences(&self) -> Option<String> {
        let differs = self.by_hierarchy.values().any(|tasks| tasks.len() != self.all.len());
        let counts = self.by_hierarchy.iter().map(|(label, tasks)| format!("{label} {}", tasks.len()));
        differs.then(|| counts.collect::<Vec<_>>().join(", "))
    }

    fn add(&mut self, other: &Members) {
        self.all.extend(&other.all);
        for (label, tasks) in &other.by_hierarchy {
            // a hierarchy that only a group below is in has none of this one's tasks to lack
            if let Some(own) = self.by_hierarchy.get_mut(label) {
                own.extend(tasks);
            }
        }
    }
}

/// The tasks of these groups, each with those below it that are also named here. Empty on a machine with one hierarchy,
/// where there is nothing to compare.
pub fn members(host: &Host, groups: &[&str]) -> BTreeMap<String, Members> {
    if host.hierarchies().len() < 2 {
        return BTreeMap::new();
    }
    let own: Vec<(&str, Members)> =
        groups.iter().filter_map(|group| Some((*group, own(host, group)?))).collect();
    let whole = |group: &str, members: &Members| {
        let mut sum = members.clone();
        own.iter()
            .filter(|(other, _)| group_path::is_below(other, group))
            .for_each(|(_, below)| sum.add(below));
        sum
    };
    own.iter().map(|(group, members)| ((*group).to_owned(), whole(group, members))).collect()
}

/// `None` for the root, which has all other tasks.
fn own(host: &Host, group: &str) -> Option<Members> {
    let name = GroupName::new(group).ok().filter(|name| !name.path().is_empty())?;
    let mut members = Members::default();
    for seat in host.seats(&name) {
        let tasks: BTreeSet<u32> =
            numbers(host, seat.at, &seat.path).unwrap_or_default().into_iter().collect();
        members.all.extend(&tasks);
        members.by_hierarchy.insert(seat.at.label(), tasks);
    }
    Some(members)
}

/// Is the CPU time of this group counted nowhere, as it is in the hierarchy of cpu and not in that of cpuacct?
pub fn is_uncounted(host: &Host, group: &str) -> bool {
    let Ok(name) = GroupName::new(group) else { return false };
    let (Some(cpu), Some(counts)) =
        (host.hierarchy_of(Controller::Cpu), host.hierarchy_of(Controller::Cpuacct))
    else {
        return false;
    };
    let has = |at| host.kernel().exists(at, &host.seat_in(at, &name).path);
    counts.version == Version::V1 && cpu.id != counts.id && has(cpu) && !has(counts)
}

/// The command that has a group's CPU time counted: its processes come along.
pub fn counting(group: &str) -> String {
    Command::ringfence("create --controllers cpuacct").group(group).to_string()
}
