//! What a planner reads of a [`Machine`]. Pure look-ups: `None` where the source lacks it.

use units::{Bytes, CpuSet, NodeSet};

use crate::{BlockDevice, Core, L3Group, LogicalCpu, Machine, Node, Package};

impl Machine {
    /// The CPU with this number.
    pub fn cpu(&self, id: usize) -> Option<&LogicalCpu> {
        self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok().map(|place| &self.cpus[place])
    }

    /// The CPUs that the kernel schedules on.
    pub fn online(&self) -> CpuSet {
        self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect()
    }

    /// The CPUs that are there but switched off.
    pub fn offline(&self) -> CpuSet {
        self.cpus.iter().filter(|cpu| !cpu.online).map(|cpu| cpu.id).collect()
    }

    /// The node with this number.
    pub fn node(&self, id: usize) -> Option<&Node> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok().map(|place| &self.nodes[place])
    }

    /// The numbers of all nodes, those without CPUs too.
    pub fn node_set(&self) -> NodeSet {
        self.nodes.iter().map(|node| node.id).collect()
    }

    /// A node's online CPUs. `None` if there is no such node.
    pub fn cpus_of_node(&self, id: usize) -> Option<&CpuSet> {
        self.node(id).map(|node| &node.cpus)
    }

    /// The online CPUs of all these nodes.
    pub fn cpus_of_nodes(&self, nodes: &NodeSet) -> CpuSet {
        let chosen = self.nodes.iter().filter(|node| nodes.contains(node.id));
        chosen.fold(CpuSet::new(), |all, node| all.union(&node.cpus))
    }

    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: usize) -> Option<usize> {
        self.cpu(cpu)?.node
    }

    /// The nodes that these CPUs are in; `None` if that is not known of one of them.
    pub fn nodes_of_cpus(&self, cpus: &CpuSet) -> Option<NodeSet> {
        cpus.iter().map(|cpu| self.node_of_cpu(cpu)).collect()
    }

    /// The distance from one node to another (10 is local).
    pub fn distance(&self, from: usize, to: usize) -> Option<u32> {
        let column = self.nodes.binary_search_by_key(&to, |node| node.id).ok()?;
        self.node(from)?.distances.as_ref()?.get(column).copied()
    }

    /// All nodes, nearest to `from` first (itself leads), equals by number.
    pub fn nearest_nodes(&self, from: usize) -> Option<Vec<usize>> {
        let distances = self.node(from)?.distances.as_ref()?;
        let mut near: Vec<(u32, bool, usize)> = (self.nodes.iter().zip(distances))
            .map(|(node, &distance)| (distance, node.id != from, node.id))
            .collect();
        near.sort_unstable();
        Some(near.into_iter().map(|(.., id)| id).collect())
    }

    /// The online CPUs of a CPU's core, itself among them.
    pub fn core_siblings(&self, cpu: usize) -> Option<&CpuSet> {
        self.cpu(cpu)?.siblings.as_ref()
    }

    /// `cpus` and all their SMT siblings; `None` if those of one are not known.
    pub fn with_siblings(&self, cpus: &CpuSet) -> Option<CpuSet> {
        cpus.iter().try_fold(CpuSet::new(), |all, cpu| Some(all.union(self.core_siblings(cpu)?)))
    }

    /// The cores with a CPU online, by first CPU; `None` unless they are known of every online CPU.
    pub fn cores(&self) -> Option<Vec<Core>> {
        let mut cores = Vec::new();
        for cpu in self.cpus.iter().filter(|cpu| cpu.online) {
            let siblings = cpu.siblings.as_ref()?;
            if siblings.first() == Some(cpu.id) {
                let cpus = siblings.clone();
                cores.push(Core { id: cpu.core, package: cpu.package, node: cpu.node, cpus });
            }
        }
        Some(cores)
    }

    /// The packages by number; `None` unless they are known of every online CPU.
    pub fn packages(&self) -> Option<Vec<Package>> {
        let mut packages: std::collections::BTreeMap<u32, CpuSet> = Default::default();
        for cpu in self.cpus.iter().filter(|cpu| cpu.online) {
            packages.entry(cpu.package?).or_default().insert(cpu.id);
        }
        Some(packages.into_iter().map(|(id, cpus)| Package { id, cpus }).collect())
    }

    /// The groups of CPUs that share an L3 cache; empty if there is none, `None` if that is not known.
    pub fn l3_groups(&self) -> Option<&[L3Group]> {
        self.l3.as_deref()
    }

    /// How many packages there are, counted or as stated.
    pub fn package_count(&self) -> Option<usize> {
        self.packages()
            .map(|packages| packages.len())
            .or_else(|| self.stated.packages.and_then(|n| n.try_into().ok()))
    }

    /// How many cores there are, counted or as stated for all packages.
    pub fn core_count(&self) -> Option<usize> {
        let stated = || self.stated.packages?.checked_mul(self.stated.cores_per_package?)?.try_into().ok();
        self.cores().map(|cores| cores.len()).or_else(stated)
    }

    /// The most online CPUs that one core has: 1 means that SMT is off or absent.
    pub fn threads_per_core(&self) -> Option<usize> {
        let widest = |cores: Vec<Core>| cores.iter().map(|core| core.cpus.len()).max();
        let stated = || self.stated.threads_per_core.and_then(|n| n.try_into().ok());
        self.cores().and_then(widest).or_else(stated)
    }

    /// Do CPUs share cores now?
    pub fn smt_active(&self) -> Option<bool> {
        self.threads_per_core().map(|threads| threads > 1)
    }

    /// The memory of all nodes; `None` unless it is known of each.
    pub fn memory_total(&self) -> Option<Bytes> {
        let sum = |all: u64, node: &Node| all.checked_add(node.memory_total?.0);
        (!self.nodes.is_empty()).then(|| self.nodes.iter().try_fold(0, sum)).flatten().map(Bytes)
    }

    /// The block device of this kernel name (`sda1`, also as `/dev/sda1`).
    pub fn block_device(&self, name: &str) -> Option<&BlockDevice> {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        self.block_devices.iter().flatten().find(|device| device.name == name)
    }

    /// The block device of this number.
    pub fn block_device_numbered(&self, major: u32, minor: u32) -> Option<&BlockDevice> {
        self.block_devices.iter().flatten().find(|device| (device.major, device.minor) == (major, minor))
    }

    /// The disk that a partition is of; any other device is its own. The kernel throttles whole disks only.
    pub fn whole_disk<'a>(&'a self, device: &'a BlockDevice) -> Option<&'a BlockDevice> {
        match &device.partition_of {
            Some(disk) => self.block_device(disk),
            None => Some(device),
        }
    }

    /// The whole disks at the bottom of a device: through partitions, device-mapper and RAID. The device's own
    /// disk if nothing is below.
    pub fn disks_below<'a>(&'a self, device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
        let mut seen: Vec<&BlockDevice> = Vec::new();
        let mut next: Vec<&BlockDevice> = self.whole_disk(device).into_iter().collect();
        while let Some(device) = next.pop() {
            // a listing may name devices in a circle
            if seen.iter().any(|other| other.name == device.name) {
                continue;
            }
            let below = device.made_of.iter().filter_map(|name| self.block_device(name));
            next.extend(below.filter_map(|device| self.whole_disk(device)));
            seen.push(device);
        }
        seen.retain(|device| device.made_of.is_empty());
        seen.sort_by_key(|device| (device.major, device.minor));
        seen
    }
}
