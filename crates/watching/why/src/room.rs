//! Which CPUs a hint may add to those of a group: CPUs of the groups above, near its memory, that no group beside it has for
//! itself. Pure.

use units::CpuSet;

use super::facts::{Facts, Level};

/// What a group could have more, and where that has to be set.
pub(crate) struct Room<'f> {
    /// The groups to be changed, the highest first: those above that have no more CPUs either, and the group.
    pub levels: Vec<&'f Level>,
    /// The CPUs.
    pub more: CpuSet,
    /// Why there are not more of them, to follow a sentence; may be empty.
    pub limit: String,
}

impl<'f> Room<'f> {
    /// `None`: its CPUs are not its own to set.
    pub fn of(facts: &'f Facts) -> Option<Room<'f>> {
        let cpu = &facts.cpu;
        facts.levels.first()?.cpus.as_ref()?;
        let alike = facts.levels.iter().take_while(|level| level.cpus.as_ref() == Some(&cpu.cpus));
        let alike: Vec<&Level> = alike.collect();
        let above = facts.levels.get(alike.len()).and_then(|level| level.cpus.as_ref());
        let others = above.unwrap_or(&cpu.online).difference(&cpu.cpus);
        let taken = alike.iter().fold(CpuSet::new(), |all, level| all.union(&level.taken));
        let free = others.difference(&taken);
        let near = near(facts);
        let more = near.as_ref().map_or_else(|| free.clone(), |near| free.intersection(near));
        let limit = match (more.is_empty(), free.is_empty(), others.is_empty()) {
            (false, ..) => String::new(),
            (true, false, _) => ", which are all on the NUMA nodes of its memory and CPUs".to_owned(),
            (true, true, false) => ", and groups beside it have the others for themselves".to_owned(),
            (true, true, true) => ", which are all there are".to_owned(),
        };
        // on v2 a group without a list of its own follows the one above it
        let follows = |level: &&Level| level.own_cpus.as_ref().is_some_and(CpuSet::is_empty);
        let (below, top) = alike.split_at(alike.len().saturating_sub(1));
        let levels = top.iter().chain(below.iter().rev().filter(|level| !follows(level))).copied();
        Some(Room { levels: levels.collect(), more, limit })
    }
}

/// The CPUs of the nodes that it may take memory of, and of those that it runs on already; `None` on a machine without nodes.
/// A task on another node has all of its memory far away.
fn near(facts: &Facts) -> Option<CpuSet> {
    let nodes = &facts.cpu.nodes;
    let mems = facts.levels.iter().find_map(|level| level.mems.as_ref());
    let is_near = |(node, cpus): &&(u32, CpuSet)| {
        !cpus.is_disjoint(&facts.cpu.cpus) || mems.is_none_or(|mems| mems.contains(*node as usize))
    };
    let near = nodes.iter().filter(is_near).fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
    (!nodes.is_empty()).then_some(near)
}
