//! CPUs that groups which no layout names have for themselves, by the kernel's keeping: no group beside them may name these.

use std::collections::HashSet;

use settings::Version;
use units::{CpuSet, group_path};

use crate::{
    Observed,
    cpuset_files::{CPUS, PARTITION},
    tree::{Tree, list},
};

/// Those groups.
pub(super) struct Foreign<'o>(Vec<(&'o str, CpuSet)>);

impl<'o> Foreign<'o> {
    pub(super) fn new(tree: &Tree<'_>, observed: &'o Observed) -> Foreign<'o> {
        let Some(at) =
            tree.branches.first().and_then(|first| observed.hierarchies.get(first.place.hierarchy))
        else {
            return Foreign(Vec::new());
        };
        let flag = match at.version {
            Version::V1 => "cpuset.cpu_exclusive",
            Version::V2 => PARTITION,
        };
        let ours: HashSet<&str> = tree.branches.iter().map(|branch| branch.place.path.as_str()).collect();
        let holds = |text: &String| matches!(text.trim(), "1" | "root" | "isolated");
        let foreign = at.groups.iter().filter(|(path, seen)| {
            !path.is_empty() && seen.files.get(flag).is_some_and(holds) && !ours.contains(path.as_str())
        });
        Foreign(foreign.map(|(path, seen)| (path.as_str(), list(Some(seen), CPUS))).collect())
    }

    /// What those have that are beside one of these groups, or beside a group above it.
    pub(super) fn beside(&self, paths: &[&str]) -> CpuSet {
        let is_beside = |path: &str| {
            let above = group_path::parent(path).unwrap_or_default();
            let is_near =
                |own: &&str| !group_path::is_at_or_below(own, path) && group_path::is_below(own, above);
            paths.iter().any(is_near)
        };
        let beside = self.0.iter().filter(|(path, _)| is_beside(path));
        beside.fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus))
    }
}
