//! A machine as CPUs are chosen from it: which node, L3 group and core each online CPU is in, and how far nodes are
//! from each other. What the machine does not report is taken as even: one node, one L3 group a node, a core each CPU.

use std::collections::BTreeMap;

use layout::Smt;
use topology::Machine;
use units::{CpuSet, NodeSet};

use super::core_sizes::CoreSizes;

/// The default of a distance that the machine does not report (ACPI SLIT: 10 local, 20 remote by default).
const LOCAL: u32 = 10;
const REMOTE: u32 = 20;

/// Where one CPU is, as positions in [`Landscape`]'s lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub node: usize,
    pub l3: usize,
    pub core: usize,
}

/// A NUMA node with online CPUs.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The kernel's number; `None` if the machine does not report the nodes of its CPUs.
    pub id: Option<usize>,
    pub cpus: CpuSet,
    /// Its memory in bytes, where that is known.
    pub memory: Option<u64>,
    /// Its L3 groups, each with its cores; both as positions.
    pub l3: Vec<(usize, Vec<usize>)>,
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Landscape {
    pub online: CpuSet,
    pub nodes: Vec<Ground>,
    /// The CPUs of each core.
    pub cores: Vec<Vec<usize>>,
    /// How many L3 groups there are.
    pub l3_groups: usize,
    /// By CPU number.
    sites: Vec<Option<Site>>,
    /// By positions of nodes.
    distances: Vec<Vec<u32>>,
    /// The distance from each node that has a number (also those without CPUs) to each with CPUs.
    from_number: BTreeMap<usize, Vec<u32>>,
    /// All nodes that have memory, or might.
    pub with_memory: NodeSet,
    /// Are the SMT siblings of each CPU known?
    pub cores_known: bool,
    /// The sizes of all cores.
    pub core_sizes: CoreSizes,
}

impl Landscape {
    pub(crate) fn new(machine: &Machine) -> Landscape {
        let online = machine.online();
        let node_of = |cpu: usize| machine.node_of_cpu(cpu);
        let mut numbers: Vec<Option<usize>> = online.iter().map(node_of).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let position: BTreeMap<Option<usize>, usize> =
            numbers.iter().enumerate().map(|(index, number)| (*number, index)).collect();
        let mut nodes: Vec<Ground> = numbers.iter().map(|number| Ground::new(machine, *number)).collect();

        let mut sites = vec![None; online.last().map_or(0, |last| last + 1)];
        let mut cores: Vec<Vec<usize>> = Vec::new();
        let mut core_of: BTreeMap<usize, usize> = BTreeMap::new();
        let mut l3_of: BTreeMap<(usize, Option<usize>), usize> = BTreeMap::new();
        for cpu in online.iter() {
            let node = position[&node_of(cpu)];
            let own = machine.cpu(cpu);
            let groups = l3_of.len();
            let l3 = *l3_of.entry((node, own.and_then(|cpu| cpu.l3))).or_insert(groups);
            let siblings = own.and_then(|cpu| cpu.siblings.as_ref());
            let first = siblings.and_then(|siblings| siblings.iter().find(|cpu| online.contains(*cpu)));
            let core = *core_of.entry(first.unwrap_or(cpu)).or_insert_with(|| {
                cores.push(Vec::new());
                cores.len() - 1
            });
            cores[core].push(cpu);
            sites[cpu] = Some(Site { node, l3, core });
            nodes[node].cpus.insert(cpu);
            nodes[node].add(l3, core);
        }
        let distances = numbers.iter().map(|from| row(machine, *from, &numbers)).collect();
        let from_number =
            machine.nodes.iter().map(|node| (node.id, row(machine, Some(node.id), &numbers))).collect();
        let cores_known = online.iter().all(|cpu| machine.core_siblings(cpu).is_some());
        let has_memory = |node: &&topology::Node| node.memory_total.is_none_or(|memory| memory.0 > 0);
        Landscape {
            core_sizes: CoreSizes::of(cores.iter().map(Vec::len)),
            nodes,
            cores,
            l3_groups: l3_of.len(),
            sites,
            distances,
            from_number,
            with_memory: machine.nodes.iter().filter(has_memory).map(|node| node.id).collect(),
            cores_known,
            online,
        }
    }

    /// Where an online CPU is.
    pub(crate) fn site(&self, cpu: usize) -> Option<Site> {
        self.sites.get(cpu).copied().flatten()
    }

    /// The distance between two nodes with CPUs.
    pub(crate) fn distance(&self, from: usize, to: usize) -> u32 {
        self.distances[from][to]
    }

    /// The distance of every node with CPUs from the node of that number; `None` if there is no such node.
    pub(crate) fn distances_from_node(&self, number: usize) -> Option<Vec<u32>> {
        self.from_number.get(&number).cloned()
    }

    /// The distance of every node from the nearest of these CPUs.
    pub(crate) fn distances_from_cpus(&self, cpus: &CpuSet) -> Option<Vec<u32>> {
        let near = self.positions(cpus);
        (!near.is_empty()).then(|| {
            let nearest =
                |to: usize| near.iter().map(|from| self.distance(*from, to)).min().unwrap_or(REMOTE);
            (0..self.nodes.len()).map(nearest).collect()
        })
    }

    /// The positions of the nodes that these CPUs are in, ascending.
    pub(crate) fn positions(&self, cpus: &CpuSet) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| !self.nodes[*node].cpus.is_disjoint(cpus)).collect()
    }

    /// The online CPUs of the nodes of these numbers.
    pub(crate) fn cpus_of(&self, numbers: &NodeSet) -> CpuSet {
        let chosen = self.nodes.iter().filter(|node| node.id.is_some_and(|id| numbers.contains(id)));
        chosen.fold(CpuSet::new(), |all, node| all.union(&node.cpus))
    }

    /// Why a wish for siblings is ignored, in words, where it is: it is not known which CPUs share a core.
    pub(crate) fn unknown_cores(&self, smt: Option<Smt>) -> Option<&'static str> {
        let why = match smt? {
            Smt::WholeCores => "which CPUs share a core is unknown; `smt = \"whole-cores\"` is ignored",
            Smt::Threads => "which CPUs share a core is unknown; `smt = \"threads\"` is ignored",
            Smt::Any => return None,
        };
        (!self.cores_known).then_some(why)
    }

    /// The sizes of the cores that are wholly among these CPUs.
    pub(crate) fn sizes_of(&self, cpus: &CpuSet) -> CoreSizes {
        let whole = |core: &&Vec<usize>| core.iter().all(|cpu| cpus.contains(*cpu));
        CoreSizes::of(self.cores.iter().filter(whole).map(Vec::len))
    }

    /// How many cores these CPUs are in.
    pub(crate) fn count_cores(&self, cpus: &CpuSet) -> usize {
        let mut cores: Vec<usize> =
            cpus.iter().filter_map(|cpu| self.site(cpu)).map(|site| site.core).collect();
        cores.sort_unstable();
        cores.dedup();
        cores.len()
    }

    /// The most CPUs that a core has.
    pub(crate) fn threads(&self) -> usize {
        self.cores.iter().map(Vec::len).max().unwrap_or(1)
    }

    /// All CPUs of the cores that these are in.
    pub(crate) fn with_siblings(&self, cpus: &CpuSet) -> CpuSet {
        let cores = cpus.iter().filter_map(|cpu| self.site(cpu)).map(|site| site.core);
        cores.flat_map(|core| self.cores[core].iter().copied()).collect()
    }

    /// Those of these CPUs whose whole core is among them.
    pub(crate) fn whole_cores(&self, cpus: &CpuSet) -> CpuSet {
        let whole = |cpu: &usize| {
            let core = self.site(*cpu).map(|site| &self.cores[site.core]);
            core.is_some_and(|core| core.iter().all(|cpu| cpus.contains(*cpu)))
        };
        cpus.iter().filter(whole).collect()
    }
}

impl Ground {
    fn new(machine: &Machine, id: Option<usize>) -> Ground {
        let memory = id.and_then(|id| machine.node(id)).and_then(|node| node.memory_total);
        Ground { id, cpus: CpuSet::new(), memory: memory.map(|memory| memory.0), l3: Vec::new() }
    }

    fn add(&mut self, l3: usize, core: usize) {
        let place = self.l3.iter().position(|(group, _)| *group == l3).unwrap_or_else(|| {
            self.l3.push((l3, Vec::new()));
            self.l3.len() - 1
        });
        let cores = &mut self.l3[place].1;
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
}

fn row(machine: &Machine, from: Option<usize>, to: &[Option<usize>]) -> Vec<u32> {
    let distance = |to: &Option<usize>| {
        let known = from.zip(*to).and_then(|(from, to)| machine.distance(from, to));
        known.unwrap_or(if from == *to { LOCAL } else { REMOTE })
    };
    to.iter().map(distance).collect()
}
