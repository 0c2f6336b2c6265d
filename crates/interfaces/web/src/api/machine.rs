//! The machine and who owns its CPUs, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Node {
    /// Its number.
    pub id: usize,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub cpus: String,
    /// All its memory.
    pub memory_total_bytes: Option<u64>,
}

/// A socket.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Package {
    /// Its number.
    pub id: usize,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub cpus: String,
}

/// CPUs that share an L3 cache.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct L3 {
    /// Position in the list; the kernel has no number for it.
    pub id: usize,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub cpus: String,
    /// The cache's size.
    pub size_bytes: Option<u64>,
}

/// A logical CPU. Those with the same `core` index are threads of one core.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MachineCpu {
    /// The kernel's number.
    pub id: usize,
    /// Does the kernel schedule on it now?
    pub online: bool,
    /// The socket, by the kernel's number.
    pub package: Option<u32>,
    /// The NUMA node.
    pub node: Option<usize>,
    /// Id in `l3`.
    pub l3: Option<usize>,
    /// Index that is the same for the threads of one core, machine-wide.
    pub core: Option<u32>,
    /// The highest frequency.
    pub max_mhz: Option<usize>,
}

/// What the machine consists of; changes seldom.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// The machine's name.
    pub hostname: String,
    /// The processor's name.
    pub model: Option<String>,
    /// Sockets.
    pub packages: Vec<Package>,
    /// By NUMA node.
    pub nodes: Vec<Node>,
    /// L3 caches.
    pub l3: Vec<L3>,
    /// Ascending by number; samples list CPUs in this order.
    pub cpus: Vec<MachineCpu>,
    /// CPUs taken out of scheduling domains at boot (isolcpus=).
    pub isolated_at_boot: String,
    /// CPUs without a periodic tick while one task runs (nohz_full=).
    pub nohz_full: String,
}

/// CPUs of an elastic group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bounds {
    /// Never fewer.
    pub min: usize,
    /// Never more.
    pub max: usize,
}

/// A group that has CPUs of its own or fewer than all.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Owner {
    /// The group.
    pub group: String,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub cpus: String,
    /// A partition: nobody else has these CPUs.
    pub exclusive: bool,
    /// Its bounds, if its CPUs change with its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<Bounds>,
    /// Has others' CPUs on loan as well (cpu.idle): listed in CpuOwners.borrowers.
    pub borrows: bool,
    /// What is kept off its CPUs (rows of the table of knobs).
    pub isolate: Vec<String>,
}

/// Who has a CPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CpuOwners {
    /// Its number.
    pub id: usize,
    /// Indexes into `owners`, the deepest groups only; empty: every group may use it; several: shared.
    pub owners: Vec<usize>,
    /// Indexes into `owners` of groups that have it on loan: hatched.
    pub borrowers: Vec<usize>,
    /// Interrupts, work queues or kernel threads are kept off it by a layout, or it was isolated at boot: ringed.
    pub isolated: bool,
}

/// Who owns which CPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Owners {
    /// Milliseconds since 1970 by the host's clock.
    pub at_ms: u64,
    /// From where.
    pub source: OwnersSource,
    /// As Sample.owners_version.
    pub version: u64,
    /// The groups; a group comes before those below it.
    pub owners: Vec<Owner>,
    /// In the order of Machine.cpus.
    pub cpus: Vec<CpuOwners>,
}

/// From where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnersSource {
    /// The running kernel.
    Live,
    /// A plan.
    Plan,
}
