//! Packages, nodes, L3 caches and cores as regions inside each other, by their CPUs alone: on one machine a
//! package holds several nodes, on another a node several packages, and an L3 may span nodes or split them.
//! A region that would cut through another is left out. Knows nothing of drawing.

use units::CpuSet;

use crate::Machine;

/// What a region stands for. Of regions with the same CPUs the one named first here is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Machine,
    Package(u32),
    /// By position in [`Machine::nodes`].
    Node(usize),
    /// By position in [`Machine::l3`].
    L3(usize),
    /// By the kernel's core id.
    Core(Option<u32>),
}

/// A set of CPUs with the smaller ones in it.
#[derive(Debug)]
pub(super) struct Region {
    pub kind: Kind,
    pub cpus: CpuSet,
    pub inside: Vec<Region>,
    /// The CPUs of all regions inside.
    covered: CpuSet,
}

impl Region {
    fn new(kind: Kind, cpus: CpuSet) -> Self {
        Region { kind, cpus, inside: Vec::new(), covered: CpuSet::new() }
    }

    /// The CPUs in no smaller region.
    pub fn loose(&self) -> CpuSet {
        self.cpus.difference(&self.covered)
    }

    /// Puts a region, smaller than all before, where it belongs.
    fn place(&mut self, region: Region) {
        let first = region.cpus.first();
        let holds = |outer: &&mut Region| {
            // the first CPU rules out nearly all without comparing whole sets
            first.is_some_and(|cpu| outer.cpus.contains(cpu)) && region.cpus.is_subset(&outer.cpus)
        };
        if let Some(outer) = self.inside.iter_mut().find(holds) {
            outer.place(region);
        } else if self.covered.is_disjoint(&region.cpus) {
            self.covered = self.covered.union(&region.cpus);
            self.inside.push(region);
        }
    }

    /// Regions in the order of their first CPUs; those without CPUs (nodes of memory only) last.
    fn sort(&mut self) {
        self.inside.sort_by_key(|region| (region.cpus.first().unwrap_or(usize::MAX), region.kind));
        self.inside.iter_mut().for_each(Region::sort);
    }
}

/// The whole machine as nested regions. Offline CPUs lie loose in the outermost.
pub(super) fn nest(machine: &Machine) -> Region {
    let mut regions: Vec<Region> = Vec::new();
    let packages = machine.packages().unwrap_or_default();
    regions.extend(packages.into_iter().map(|package| Region::new(Kind::Package(package.id), package.cpus)));
    let nodes = machine.nodes.iter().enumerate();
    regions.extend(nodes.map(|(index, node)| Region::new(Kind::Node(index), node.cpus.clone())));
    let groups = machine.l3_groups().unwrap_or_default().iter().enumerate();
    regions.extend(groups.map(|(index, group)| Region::new(Kind::L3(index), group.cpus.clone())));
    let cores = machine.cores().unwrap_or_default();
    regions.extend(cores.into_iter().map(|core| Region::new(Kind::Core(core.id), core.cpus)));
    regions.sort_by_key(|region| (std::cmp::Reverse(region.cpus.len()), region.kind));

    let mut whole = Region::new(Kind::Machine, machine.online().union(&machine.offline()));
    regions.into_iter().for_each(|region| whole.place(region));
    whole.sort();
    whole
}
