//! What is seen outside the hierarchies, in `/proc` and `/sys`.

use std::collections::BTreeMap;

use units::{Bytes, CpuSet, Limit, Micros, NodeSet};

/// Real-time scheduling.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Realtime {
    /// How long real-time tasks may run per period, all together (`/proc/sys/kernel/sched_rt_runtime_us`).
    pub runtime: Option<Limit<Micros>>,
    /// The period (`/proc/sys/kernel/sched_rt_period_us`).
    pub period: Option<Micros>,
    /// v1's budgets, if the kernel has them.
    pub root: Option<RealtimeRoot>,
}

/// The v1 root group's real-time budget, which its children's come out of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RealtimeRoot {
    /// `cpu.rt_runtime_us`.
    pub runtime: Limit<Micros>,
    /// `cpu.rt_period_us`.
    pub period: Micros,
    /// Its children with a budget.
    pub held: Vec<GroupBudget>,
}

/// A group's real-time budget.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GroupBudget {
    /// Its path from the mount, with a leading slash.
    pub group: String,
    /// `cpu.rt_runtime_us`.
    pub runtime: Limit<Micros>,
    /// `cpu.rt_period_us`.
    pub period: Micros,
}

/// Pressure stall information of the whole machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// The files of `/proc/pressure` that can be read: `cpu`, `io`, `memory`, `irq`.
    pub readable: Vec<String>,
}

/// Swap, huge pages, NUMA.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Swap in use or at hand (`/proc/swaps`).
    pub swaps: Vec<Swap>,
    /// `/proc/sys/vm/swappiness`.
    pub swappiness: Option<u32>,
    /// The huge page sizes that the kernel has, ascending.
    pub huge_pages: Vec<HugePages>,
    /// Nodes with memory (`/sys/devices/system/node/has_memory`).
    pub nodes: Option<NodeSet>,
    /// `/proc/sys/kernel/numa_balancing`: 0 off, 1 on, 2 between tiers of memory.
    pub numa_balancing: Option<u32>,
}

/// A swap area.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Swap {
    /// Device or file.
    pub name: String,
    /// Its size.
    pub size: Bytes,
    /// How much of it is in use.
    pub used: Bytes,
}

/// Huge pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HugePages {
    /// The size of one.
    pub size: Bytes,
    /// How many are reserved (`nr_hugepages`).
    pub pages: u64,
}

/// CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Cpus {
    /// CPUs that the kernel schedules on.
    pub online: Option<CpuSet>,
    /// `/sys/devices/system/cpu/smt/control`: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt_control: Option<String>,
    /// Some core runs more than one CPU (`smt/active`).
    pub smt_active: Option<bool>,
    /// Outside the scheduling domains since boot, or by an isolated partition.
    pub isolated: Option<CpuSet>,
    /// Without a periodic tick while one task runs.
    pub nohz_full: Option<CpuSet>,
    /// The frequency governors in use with their CPUs; empty where the guest or firmware sets the clock.
    pub governors: BTreeMap<String, CpuSet>,
    /// The idle states of the first CPU; empty where the machine shows none.
    pub idle_states: Vec<String>,
    /// What the processor counts the energy of (RAPL); empty where there is no such count.
    pub energy: Vec<String>,
}

/// A whole disk that holds something.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Disk {
    /// The kernel's name, without `/dev/`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// The I/O scheduler in use; absent for devices that pass requests on (device-mapper, RAID).
    pub scheduler: Option<String>,
    /// The I/O schedulers that can be chosen now; a module that is not loaded is not among them.
    pub offered: Vec<String>,
    /// Its partitions' names.
    pub partitions: Vec<String>,
    /// iocost is switched on for it.
    pub iocost: bool,
}
