//! The types a machine is described by. Data only: reading, checking and asking are other modules' work.

use serde::{Deserialize, Serialize};
use units::{Bytes, CpuSet};

use crate::bounded;

/// One more than the largest CPU number that is read: the largest `CONFIG_NR_CPUS` of any architecture
/// (x86-64, `arch/x86/Kconfig`). A bound keeps a hostile listing from asking for gigabytes.
pub const MAX_CPUS: usize = 8192;

/// One more than the largest node number that is read: `CONFIG_NODES_SHIFT` is at most 10.
pub const MAX_NODES: usize = 1024;

/// One machine. Every reader hands it out checked: CPUs, nodes and L3 groups ascend, no CPU is in two nodes or
/// two L3 groups, and each CPU's `node` and `l3` agree with the lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Where this comes from, in the order in which it was merged.
    #[serde(deserialize_with = "bounded::list::<_, _, 64>")]
    pub sources: Vec<Source>,
    /// The processor's name (`model name` of `/proc/cpuinfo`); those of a machine with two kinds of CPU with ` + `
    /// between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Every CPU that is there, online or not, ascending by number.
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_CPUS>")]
    pub cpus: Vec<LogicalCpu>,
    /// NUMA nodes, ascending by number. Empty if the source lacks them; a running machine has at least one.
    #[serde(
        default,
        deserialize_with = "bounded::list::<_, _, MAX_NODES>",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub nodes: Vec<Node>,
    /// The groups of CPUs that share an L3 cache, ascending by first CPU. `Some` and empty: there is no L3.
    #[serde(
        default,
        deserialize_with = "bounded::some_list::<_, _, MAX_CPUS>",
        skip_serializing_if = "Option::is_none"
    )]
    pub l3: Option<Vec<L3Group>>,
    /// What the source says of the machine as a whole, without saying which CPU is where.
    #[serde(default, skip_serializing_if = "Stated::is_empty")]
    pub stated: Stated,
    /// How SMT is switched: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`
    /// (`/sys/devices/system/cpu/smt/control`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt_control: Option<String>,
    /// CPUs taken out of scheduling domains at boot (`isolcpus=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<CpuSet>,
    /// CPUs without a periodic tick while one task runs (`nohz_full=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nohz_full: Option<CpuSet>,
    /// Block devices: each whole disk before its partitions.
    #[serde(
        default,
        deserialize_with = "bounded::some_list::<_, _, 65536>",
        skip_serializing_if = "Option::is_none"
    )]
    pub block_devices: Option<Vec<BlockDevice>>,
    /// The widths of the `numactl --hardware` listing that was read, so that it prints as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numactl_style: Option<NumactlStyle>,
}

/// Where a description comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What kind of source it is.
    pub kind: SourceKind,
    /// The file or directory, as it was named to the reader.
    pub name: String,
}

/// The kinds of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// `/sys` and `/proc`.
    Sysfs,
    /// `numactl --hardware`.
    Numactl,
    /// `lscpu`: its summary, or its table of CPUs.
    Lscpu,
    /// The per-CPU table of physical ids, siblings and core ids.
    CpuListing,
    /// `lstopo --of xml`.
    Hwloc,
    /// The tree that `lstopo` and `hwloc-ls` print as text. Its sizes are rounded.
    Lstopo,
}

/// A logical CPU: what the kernel schedules on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogicalCpu {
    /// The kernel's number.
    pub id: usize,
    /// Does the kernel schedule on it now? Of an offline CPU nothing else is known as a rule.
    pub online: bool,
    /// The package (socket), by the kernel's `physical_package_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<u32>,
    /// The kernel's `core_id`: neither consecutive nor unique beyond one package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// The NUMA node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// The L3 group: its position in [`Machine::l3`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3: Option<usize>,
    /// The online CPUs of the same core, itself among them (`core_cpus_list`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<CpuSet>,
    /// The highest frequency in MHz (`cpufreq/cpuinfo_max_freq`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_mhz: Option<u32>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The kernel's number.
    pub id: usize,
    /// Its online CPUs; none for a node of memory only.
    pub cpus: CpuSet,
    /// All its memory (`MemTotal` of the node's `meminfo`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_total: Option<Bytes>,
    /// What of it no one uses (`MemFree`), when it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_free: Option<Bytes>,
    /// The distance to each node in [`Machine::nodes`]' order: 10 to itself, 20 twice as far (ACPI SLIT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distances: Option<Vec<u32>>,
}

/// The CPUs that share one L3 cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L3Group {
    /// Its online CPUs.
    pub cpus: CpuSet,
    /// The cache's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// The kernel's cache id, as resctrl numbers its domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_id: Option<u32>,
}

/// Counts that a listing states without naming CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// Packages in the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<u32>,
    /// Cores in each package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_per_package: Option<u32>,
    /// Logical CPUs in each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_core: Option<u32>,
    /// The size of one L3 cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3_size: Option<Bytes>,
    /// How many L3 caches there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3_count: Option<u32>,
}

impl Stated {
    /// Does it state nothing?
    pub fn is_empty(&self) -> bool {
        *self == Stated::default()
    }
}

/// A block device: a whole disk, a partition, or one made of others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockDevice {
    /// The kernel's name, without `/dev/`.
    pub name: String,
    /// The device number's first part.
    pub major: u32,
    /// The device number's second part.
    pub minor: u32,
    /// Its size; 0 for one that holds nothing (an unused loop device).
    pub size: Bytes,
    /// Does it turn (`queue/rotational`)? For a partition, its disk's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// The I/O scheduler in use (`queue/scheduler`). For a partition, its disk's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The whole disk that this is a partition of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_of: Option<String>,
    /// The device-mapper name (LVM's `group-volume`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapper_name: Option<String>,
    /// The devices that this one is made of (device-mapper, RAID): their kernel names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_of: Vec<String>,
    /// The file behind a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_file: Option<String>,
}

/// The widths of a `numactl --hardware` distance table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumactlStyle {
    /// Up to numactl 2.0.18, and what is printed when nothing else is known.
    #[default]
    Classic,
    /// From numactl 2.0.19: a column wider.
    Wide,
    /// As listings are often passed on: a blank less, none at the line's end.
    Narrow,
}

/// A package (socket), as requested from [`Machine::packages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The kernel's `physical_package_id`.
    pub id: u32,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

/// A physical core, as requested from [`Machine::cores`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// The kernel's `core_id`; not unique beyond one package.
    pub id: Option<u32>,
    /// Its package.
    pub package: Option<u32>,
    /// Its NUMA node.
    pub node: Option<usize>,
    /// Its online CPUs (SMT siblings).
    pub cpus: CpuSet,
}
