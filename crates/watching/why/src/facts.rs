//! What is known of a group and its surroundings over a span of time: differences of counters, levels at its end,
//! and settings. Data only. A figure that the kernel does not report is `None`, never 0.

use std::time::Duration;

use apply::{Again, Bound, Ended, Following, LeftAlone};
use monitor::interruptions::Interrupted;
use settings::{DeviceNumber, Version};
use units::{CpuSet, Limit, NodeSet};

/// Everything that [`super::why`] judges by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The group, as users write it.
    pub group: String,
    /// How long it was looked at.
    pub span: Duration,
    /// Tasks in it and below at the end.
    pub tasks: usize,
    /// Frozen groups that stop some of its tasks, beside those in `levels`.
    pub frozen_parts: Vec<FrozenPart>,
    /// Groups at whose limit of memory some of its tasks stand still: itself, one above it, or one below it.
    pub memory_stops: Vec<MemoryStop>,
    /// The group, then those above it up to but without the root: what is set there holds for it too.
    pub levels: Vec<Level>,
    /// CPU time.
    pub cpu: CpuFacts,
    /// Memory.
    pub memory: MemoryFacts,
    /// Block devices.
    pub io: IoFacts,
    /// Its real-time tasks, if it has any.
    pub realtime: Option<RealtimeFacts>,
    /// What interrupted its isolated CPUs, if it has any.
    pub interrupted: Option<Interrupted>,
    /// What ringfenced changes of it and of the groups above it with their load.
    pub by_load: ByLoad,
    /// The layout in effect, with its groups that are units of systemd.
    pub bound: Bound,
}

/// Settings that follow the load of groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ByLoad {
    /// The groups of the layout in effect that have some.
    pub groups: Vec<Resized>,
    /// Why they stay as they are now, if they do.
    pub halt: Option<Halt>,
    /// Of which settings resizing has ended by itself.
    pub ended: Vec<Ended>,
    /// Groups that nobody resizes until the next apply.
    pub left_alone: Vec<LeftAlone>,
    /// What changes that.
    pub again: Again,
}

/// A group of which something follows its load.
#[derive(Debug, Clone, PartialEq)]
pub struct Resized {
    /// Its name as that of a level: of a unit of systemd its control group.
    pub level: String,
    /// What it has, and its bounds.
    pub group: Following,
    /// CPUs that it shares with others and none of them has.
    pub free: CpuSet,
}

/// Nobody resizes groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// Why.
    pub why: String,
    /// The command that changes it, where one is known.
    pub hint: Option<String>,
}

/// A group whose settings hold for the group in question: itself, or one above it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Level {
    /// Its name.
    pub group: String,
    /// `cpu.weight`, 100 by default.
    pub weight: Option<u64>,
    /// `cpu.max`.
    pub quota: Option<Quota>,
    /// Periods in which it wanted to run.
    pub periods: u64,
    /// Periods in which its quota stopped it.
    pub throttled_periods: u64,
    /// How long its quota stopped it, summed over CPUs.
    pub throttled: Duration,
    /// The CPUs that its tasks may use.
    pub cpus: Option<CpuSet>,
    /// Its own list of CPUs; empty where it has those of the group above (v2).
    pub own_cpus: Option<CpuSet>,
    /// CPUs that it can't share with groups beside it, as one of the two is exclusive (v1).
    pub taken: CpuSet,
    /// The NUMA nodes that they may take memory of.
    pub mems: Option<NodeSet>,
    /// `cpuset.cpus.partition` where the kernel keeps it invalid; v2 only.
    pub invalid_partition: Option<InvalidPartition>,
    /// Bytes.
    pub memory_max: Option<Limit<u64>>,
    /// Bytes; v2 only, as v1's soft limit slows nothing.
    pub memory_high: Option<Limit<u64>>,
    /// Bytes of memory and swap together; v1 only.
    pub memsw_max: Option<Limit<u64>>,
    /// Bytes that it and those below use, in memory and in swap.
    pub memory: u64,
    /// How often usage met `memory.max`.
    pub met_max: u64,
    /// How often tasks were throttled by `memory.high`.
    pub met_high: u64,
    /// How often usage met the limit of swap.
    pub met_swap_max: u64,
    /// Processes killed for want of memory.
    pub oom_kills: u64,
    /// `pids.max`.
    pub pids_max: Option<Limit<u64>>,
    /// Tasks in it and below.
    pub pids: u64,
    /// Forks that failed by a limit.
    pub failed_forks: u64,
    /// Was it frozen at the begin, and at the end?
    pub frozen: (bool, bool),
    /// `io.max`.
    pub io_max: Vec<Throttle>,
    /// `cpu.rt_runtime_us` and `cpu.rt_period_us`, where the kernel has such budgets.
    pub realtime: Option<(Limit<Duration>, Duration)>,
}

/// A frozen group that stops some of the group's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenPart {
    /// The frozen group.
    pub group: String,
    /// Is it below the group? Else it is in another subtree of the freezer's hierarchy, which only v1 has.
    pub is_below: bool,
    /// How many of the group's tasks it stops, or stopped.
    pub tasks: usize,
    /// Was it frozen at the begin, and at the end?
    pub frozen: (bool, bool),
}

/// A group whose memory is used up, and whose tasks the kernel stops in place of killing one (v1's `memory.oom_control`).
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryStop {
    /// The group.
    pub level: Level,
    /// How many of the tasks in it wait.
    pub tasks: usize,
    /// Was it so at the begin, and at the end?
    pub stopped: (bool, bool),
}

/// A partition that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPartition {
    /// `root` or `isolated`: what it shall be.
    pub wanted: String,
    /// Why it is not, in the kernel's words; empty before Linux 6.1.
    pub reason: String,
    /// Groups beside it that name some of its CPUs, each with its own others.
    pub overlapping: Vec<(String, CpuSet)>,
    /// Does the group above share its CPUs, so that none of them can be its own?
    pub is_below_member: bool,
}

/// CPU time per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// What may be used in each period.
    pub quota: Limit<Duration>,
    /// The period.
    pub period: Duration,
}

/// One limit of `io.max`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttle {
    /// The device.
    pub device: DeviceNumber,
    /// `rbps`, `wbps`, `riops` or `wiops`.
    pub key: &'static str,
    /// Bytes or operations per second.
    pub limit: u64,
    /// Bytes or operations of the tasks that it holds for, over the span.
    pub done: u64,
}

/// Who had CPU time that the group's tasks might have had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// A group; `/` for the root's tasks.
    pub group: String,
    /// CPU time of its tasks that ran last on the group's CPUs.
    pub ran: Duration,
    /// The task that ran most, as `name (number)`.
    pub task: String,
    /// The place in [`Facts::levels`] of the group whose weight counts against this one: the highest that the two do not
    /// have in common.
    pub meets: usize,
    /// The group that stands beside that one, above this one or the same, with its `cpu.weight`; `None` for tasks that lie
    /// directly in a group above both.
    pub rival: Option<(String, u64)>,
}

/// CPU time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CpuFacts {
    /// Used by the group.
    pub used: Duration,
    /// Time in which its tasks could have run and had no CPU, summed over tasks, real-time ones left out.
    pub waited: Option<Duration>,
    /// CPUs that its tasks may use.
    pub cpus: CpuSet,
    /// CPUs of the machine.
    pub online: CpuSet,
    /// The CPUs of each NUMA node; empty where the kernel lists no nodes.
    pub nodes: Vec<(u32, CpuSet)>,
    /// What the group's CPUs did for others, in all.
    pub foreign: Duration,
    /// The part of it that the hypervisor took.
    pub steal: Duration,
    /// Who they were, the largest first.
    pub others: Vec<Other>,
    /// How to have the kernel count the group's CPU time, where it does not: then `used` is what its tasks ran that are still
    /// there.
    pub uncounted: Option<String>,
    /// CPUs of the machine that idled for at least half of the span.
    pub idle: CpuSet,
}

/// Memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryFacts {
    /// Whose settings it has.
    pub version: Option<Version>,
    /// Is the group's memory counted?
    pub is_counted: bool,
    /// Bytes used at the end.
    pub current: u64,
    /// Bytes in swap at the end.
    pub swap: u64,
    /// Pages of files that were needed again soon after they were dropped.
    pub refaults_file: u64,
    /// Pages of programs that were needed again soon after they were swapped out.
    pub refaults_anon: u64,
    /// Dropped pages, of the whole machine and an upper bound, that the kernel forgot: those needed again are missing in
    /// the two counts above.
    pub forgotten: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// Time in which some task of the group waited for memory, where the kernel counts it by group.
    pub pressure: Option<Duration>,
    /// The same of the whole machine: at least the group's.
    pub machine_pressure: Option<Duration>,
    /// CPU time of the group in the kernel: what reclaim takes is part of it.
    pub system: Option<Duration>,
    /// Bytes on each NUMA node, with what it takes to get there.
    pub nodes: Vec<NodeFacts>,
}

/// A NUMA node as the group sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its number.
    pub node: u32,
    /// The group's memory there.
    pub bytes: u64,
    /// The distance of it from the nearest of the group's CPUs, 10 for local (ACPI SLIT).
    pub distance: u32,
}

/// Block devices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IoFacts {
    /// Time in which some task of the group waited for I/O, where the kernel counts it by group.
    pub pressure: Option<Duration>,
    /// Time that its tasks spent in uninterruptible sleep, summed over tasks, from samples of their states; looked at
    /// only without `pressure`.
    pub blocked: Option<Duration>,
    /// The devices that it used.
    pub devices: Vec<DeviceFacts>,
    /// The device of the machine that was waited for most, by whomever.
    pub busiest: Option<Busiest>,
}

/// What all groups together did with a device (`/proc/diskstats`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busiest {
    /// The device's name.
    pub name: String,
    /// Reads and writes.
    pub operations: u64,
}

/// What the group and others did with a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The device.
    pub device: DeviceNumber,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Bytes read.
    pub rbytes: u64,
    /// Bytes written.
    pub wbytes: u64,
    /// Reads.
    pub rios: u64,
    /// Writes.
    pub wios: u64,
    /// What an operation took at the device itself, by whomever it was; waiting for `io.max` comes before that.
    pub service: Option<Duration>,
    /// Other groups' operations on it, the largest first.
    pub others: Vec<(String, u64)>,
}

/// The group's real-time tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RealtimeFacts {
    /// How many.
    pub tasks: usize,
    /// What they ran, on the CPU where that was most.
    pub ran_most: Duration,
    /// That CPU.
    pub cpu: u32,
    /// Time in which they could have run and had no CPU.
    pub waited: Duration,
}
