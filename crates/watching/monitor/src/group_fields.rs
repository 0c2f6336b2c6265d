//! The figures of groups, one row each. A row's files are rows of the settings table too; a test holds both
//! together.

use settings::Controller::{self, Core, Cpu, Cpuacct, Cpuset, Freezer, Io, Memory, Pids};

use crate::field::{
    Field, From, Kind, Pace, Per,
    Shape::{
        self, DeviceKey, DeviceOperation, Invalid, Is, Keyed, ListLength, Nodes, Number, Pressure, Word,
    },
    Side, Source, Unit,
};

const PAGE: u64 = 4096;
const MICRO: u64 = 1000;

/// Read with every sample.
const fn tick(controller: Controller, file: &'static str, shape: Shape, scale: u64) -> Option<Side> {
    Some(Side { controller, source: Source { file, shape, scale, pace: Pace::Tick } })
}

/// Read less often.
const fn slow(controller: Controller, file: &'static str, shape: Shape, scale: u64) -> Option<Side> {
    Some(Side { controller, source: Source { file, shape, scale, pace: Pace::Slow } })
}

/// Read least often.
const fn seldom(controller: Controller, file: &'static str, shape: Shape, scale: u64) -> Option<Side> {
    Some(Side { controller, source: Source { file, shape, scale, pace: Pace::Seldom } })
}

const fn row(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    help: &'static str,
    v1: Option<Side>,
    v2: Option<Side>,
) -> Field {
    Field { name, unit, kind, per: Per::One, help, from: From::Group { v1, v2 } }
}

const fn counter(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    v1: Option<Side>,
    v2: Option<Side>,
) -> Field {
    row(name, Kind::Counter, unit, help, v1, v2)
}

const fn gauge(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    v1: Option<Side>,
    v2: Option<Side>,
) -> Field {
    row(name, Kind::Gauge, unit, help, v1, v2)
}

const fn limit(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    v1: Option<Side>,
    v2: Option<Side>,
) -> Field {
    row(name, Kind::Limit, unit, help, v1, v2)
}

/// A figure of `memory.stat`, which on v1 counts the groups below under another key.
const fn stat(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    help: &'static str,
    v1: Option<&'static str>,
    v2: &'static str,
) -> Field {
    let v1 = match v1 {
        Some(key) => slow(Memory, "memory.stat", Keyed(key), 1),
        None => None,
    };
    row(name, kind, unit, help, v1, slow(Memory, "memory.stat", Keyed(v2), 1))
}

/// A figure of `memory.stat` that only v2 has.
const fn stat_v2(name: &'static str, help: &'static str, key: &'static str) -> Field {
    stat(name, Kind::Counter, Unit::Count, help, None, key)
}

/// Time in which some or all tasks waited; only v2 counts it by group. Each such file costs the kernel three others.
const fn pressure(name: &'static str, help: &'static str, v2: Option<Side>) -> Field {
    counter(name, Unit::Nanos, help, None, v2)
}

/// What a device did.
const fn device(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    v1: (&'static str, &'static str),
    v2: &'static str,
) -> Field {
    let v1 = tick(Io, v1.0, DeviceOperation(v1.1), 1);
    let v2 = tick(Io, "io.stat", DeviceKey(v2), 1);
    Field { per: Per::Device, ..counter(name, unit, help, v1, v2) }
}

const BYTES_V1: &str = "blkio.throttle.io_service_bytes_recursive";
const OPERATIONS_V1: &str = "blkio.throttle.io_serviced_recursive";

/// What kernels say behind `root invalid` and `isolated invalid` (`perr_strings` of `kernel/cgroup/cpuset.c`, 6.1 to
/// 6.18); others come behind these, as their numbers are metrics.
pub(crate) const INVALID_PARTITION: &[&str] = &[
    "Invalid cpu list in cpuset.cpus.exclusive",
    "Parent is an invalid partition root",
    "Parent is not a partition root",
    "Cpu list in cpuset.cpus not exclusive",
    "Parent unable to distribute cpu downstream",
    "No cpu available due to hotplug",
    "cpuset.cpus is empty",
    "cpuset.cpus and cpuset.cpus.exclusive are empty",
    "partition config conflicts with housekeeping setup",
    "Enable partition not permitted",
    "Have remote partition underneath",
];

/// While the first says what it said before, a sample leaves the second out: a device that moved no byte did nothing but
/// flush.
pub(crate) const MOVE_TOGETHER: (&str, &str) = (BYTES_V1, OPERATIONS_V1);

/// Every figure of a group, by resource; those of one file in the kernel's order, so that one pass finds them.
pub static GROUP_FIELDS: &[Field] = &[
    // CPU
    counter(
        "cpu.usage",
        Unit::Nanos,
        "CPU time used by the group and those below it",
        tick(Cpuacct, "cpuacct.usage", Number, 1),
        tick(Core, "cpu.stat", Keyed("usage_usec"), MICRO),
    ),
    counter(
        "cpu.user",
        Unit::Nanos,
        "CPU time used in programs, as most kernels count it: by what runs at a tick",
        slow(Cpuacct, "cpuacct.usage_user", Number, 1),
        tick(Core, "cpu.stat", Keyed("user_usec"), MICRO),
    ),
    counter(
        "cpu.system",
        Unit::Nanos,
        "CPU time used in the kernel, by ticks too",
        slow(Cpuacct, "cpuacct.usage_sys", Number, 1),
        tick(Core, "cpu.stat", Keyed("system_usec"), MICRO),
    ),
    Field {
        per: Per::Cpu,
        ..counter(
            "cpu.percpu",
            Unit::Nanos,
            "CPU time used on each CPU; v2 does not count it",
            slow(Cpuacct, "cpuacct.usage_percpu", Shape::CpuList, 1),
            None,
        )
    },
    counter(
        "cpu.periods",
        Unit::Count,
        "Periods of the quota in which the group wanted to run",
        tick(Cpu, "cpu.stat", Keyed("nr_periods"), 1),
        tick(Core, "cpu.stat", Keyed("nr_periods"), 1),
    ),
    counter(
        "cpu.throttled.periods",
        Unit::Count,
        "Periods in which the quota stopped the group",
        tick(Cpu, "cpu.stat", Keyed("nr_throttled"), 1),
        tick(Core, "cpu.stat", Keyed("nr_throttled"), 1),
    ),
    counter(
        "cpu.throttled.time",
        Unit::Nanos,
        "Time for which the quota stopped the group, summed over CPUs",
        tick(Cpu, "cpu.stat", Keyed("throttled_time"), 1),
        tick(Core, "cpu.stat", Keyed("throttled_usec"), MICRO),
    ),
    counter(
        "cpu.throttled.inherited",
        Unit::Nanos,
        "Time for which its quota or that of a group above stopped it, summed over CPUs; since Linux 6.6",
        slow(Cpu, "cpu.stat.local", Keyed("throttled_time"), 1),
        slow(Core, "cpu.stat.local", Keyed("throttled_usec"), MICRO),
    ),
    pressure(
        "cpu.pressure.some",
        "Time in which some task waited for a CPU",
        slow(Core, "cpu.pressure", Pressure("some"), MICRO),
    ),
    pressure(
        "cpu.pressure.full",
        "Time in which all tasks waited for a CPU",
        slow(Core, "cpu.pressure", Pressure("full"), MICRO),
    ),
    limit(
        "cpu.max.quota",
        Unit::Nanos,
        "CPU time that the group may use in each period",
        seldom(Cpu, "cpu.cfs_quota_us", Number, MICRO),
        seldom(Cpu, "cpu.max", Word(0), MICRO),
    ),
    gauge(
        "cpu.max.period",
        Unit::Nanos,
        "Period of the quota",
        seldom(Cpu, "cpu.cfs_period_us", Number, MICRO),
        seldom(Cpu, "cpu.max", Word(1), MICRO),
    ),
    gauge(
        "cpuset.cpus",
        Unit::Count,
        "How many CPUs the group's tasks may use now",
        seldom(Cpuset, "cpuset.effective_cpus", ListLength, 1),
        seldom(Cpuset, "cpuset.cpus.effective", ListLength, 1),
    ),
    gauge(
        "cpuset.mems",
        Unit::Count,
        "How many NUMA nodes the group's tasks may take memory of now",
        seldom(Cpuset, "cpuset.effective_mems", ListLength, 1),
        seldom(Cpuset, "cpuset.mems.effective", ListLength, 1),
    ),
    gauge(
        "cpuset.partition",
        Unit::Flag,
        "Is the group a valid partition: are its CPUs its own?",
        seldom(Cpuset, "cpuset.cpu_exclusive", Is(&["1"]), 1),
        slow(Cpuset, "cpuset.cpus.partition", Is(&["root", "isolated"]), 1),
    ),
    gauge(
        "cpuset.partition.invalid",
        Unit::Count,
        "Why the group is no valid partition though it was set to be one: in the kernel's words, or as the reason's \
         number; 0 where it is valid, or is none",
        None,
        slow(Cpuset, "cpuset.cpus.partition", Invalid(INVALID_PARTITION), 1),
    ),
    // memory
    gauge(
        "memory.current",
        Unit::Bytes,
        "Memory that the group and those below it use",
        tick(Memory, "memory.usage_in_bytes", Number, 1),
        tick(Memory, "memory.current", Number, 1),
    ),
    gauge(
        "memory.swap",
        Unit::Bytes,
        "Swap space that the group and those below it use",
        slow(Memory, "memory.stat", Keyed("total_swap"), 1),
        tick(Memory, "memory.swap.current", Number, 1),
    ),
    gauge(
        "memory.kernel",
        Unit::Bytes,
        "Memory that the kernel uses for the group",
        slow(Memory, "memory.kmem.usage_in_bytes", Number, 1),
        slow(Memory, "memory.stat", Keyed("kernel"), 1),
    ),
    stat("memory.anon", Kind::Gauge, Unit::Bytes, "Memory of programs", Some("total_rss"), "anon"),
    stat("memory.file", Kind::Gauge, Unit::Bytes, "Memory that caches files", Some("total_cache"), "file"),
    stat("memory.shmem", Kind::Gauge, Unit::Bytes, "Shared memory and tmpfs", Some("total_shmem"), "shmem"),
    stat(
        "memory.mapped",
        Kind::Gauge,
        Unit::Bytes,
        "Cached files that are mapped",
        Some("total_mapped_file"),
        "file_mapped",
    ),
    stat(
        "memory.dirty",
        Kind::Gauge,
        Unit::Bytes,
        "Cached files that wait to be written",
        Some("total_dirty"),
        "file_dirty",
    ),
    stat(
        "memory.writeback",
        Kind::Gauge,
        Unit::Bytes,
        "Cached files that are being written",
        Some("total_writeback"),
        "file_writeback",
    ),
    stat("memory.faults", Kind::Counter, Unit::Count, "Page faults", Some("total_pgfault"), "pgfault"),
    stat(
        "memory.faults.major",
        Kind::Counter,
        Unit::Count,
        "Page faults that waited for a disk",
        Some("total_pgmajfault"),
        "pgmajfault",
    ),
    stat(
        "memory.refaults.anon",
        Kind::Counter,
        Unit::Count,
        "Pages of programs that were needed again soon after they were swapped out",
        Some("total_workingset_refault_anon"),
        "workingset_refault_anon",
    ),
    stat(
        "memory.refaults.file",
        Kind::Counter,
        Unit::Count,
        "Pages of files that were needed again soon after they were dropped",
        Some("total_workingset_refault_file"),
        "workingset_refault_file",
    ),
    stat_v2("memory.scanned", "Pages that reclaim looked at", "pgscan"),
    stat_v2("memory.reclaimed", "Pages that reclaim took", "pgsteal"),
    Field {
        per: Per::Node,
        ..gauge(
            "memory.node.anon",
            Unit::Bytes,
            "Memory of programs on each NUMA node",
            slow(Memory, "memory.numa_stat", Nodes("hierarchical_anon"), PAGE),
            slow(Memory, "memory.numa_stat", Nodes("anon"), 1),
        )
    },
    Field {
        per: Per::Node,
        ..gauge(
            "memory.node.file",
            Unit::Bytes,
            "Memory that caches files on each NUMA node",
            slow(Memory, "memory.numa_stat", Nodes("hierarchical_file"), PAGE),
            slow(Memory, "memory.numa_stat", Nodes("file"), 1),
        )
    },
    counter(
        "memory.events.high",
        Unit::Count,
        "How often memory.high slowed tasks down to reclaim memory",
        None,
        slow(Memory, "memory.events", Keyed("high"), 1),
    ),
    counter(
        "memory.events.max",
        Unit::Count,
        "How often usage met the limit; v1 counts this group alone",
        slow(Memory, "memory.failcnt", Number, 1),
        slow(Memory, "memory.events", Keyed("max"), 1),
    ),
    counter(
        "memory.events.oom",
        Unit::Count,
        "How often reclaim could not bring usage below the limit",
        None,
        slow(Memory, "memory.events", Keyed("oom"), 1),
    ),
    counter(
        "memory.events.oom_kill",
        Unit::Count,
        "Processes killed for want of memory; v1 counts this group alone",
        slow(Memory, "memory.oom_control", Keyed("oom_kill"), 1),
        slow(Memory, "memory.events", Keyed("oom_kill"), 1),
    ),
    counter(
        "memory.swap.events.max",
        Unit::Count,
        "How often usage met the limit of swap; v1 counts memory plus swap of this group alone",
        slow(Memory, "memory.memsw.failcnt", Number, 1),
        slow(Memory, "memory.swap.events", Keyed("max"), 1),
    ),
    pressure(
        "memory.pressure.some",
        "Time in which some task waited for memory",
        slow(Core, "memory.pressure", Pressure("some"), MICRO),
    ),
    pressure(
        "memory.pressure.full",
        "Time in which all tasks waited for memory",
        slow(Core, "memory.pressure", Pressure("full"), MICRO),
    ),
    limit(
        "memory.max",
        Unit::Bytes,
        "Limit of memory",
        seldom(Memory, "memory.limit_in_bytes", Number, 1),
        seldom(Memory, "memory.max", Number, 1),
    ),
    limit(
        "memory.high",
        Unit::Bytes,
        "Memory above which tasks are slowed down to reclaim memory",
        None,
        seldom(Memory, "memory.high", Number, 1),
    ),
    limit(
        "memory.swap.max",
        Unit::Bytes,
        "Limit of swap; v1 limits memory plus swap only",
        None,
        seldom(Memory, "memory.swap.max", Number, 1),
    ),
    // I/O
    // v1 of Linux 6.1 counts operations only of groups that a limit of I/O holds for
    device(
        "io.rbytes",
        Unit::Bytes,
        "Bytes read; on v1 some kernels (6.1) count only where a limit of I/O holds",
        (BYTES_V1, "Read"),
        "rbytes",
    ),
    device("io.wbytes", Unit::Bytes, "Bytes written; on v1 as io.rbytes", (BYTES_V1, "Write"), "wbytes"),
    device("io.rios", Unit::Count, "Read operations; on v1 as io.rbytes", (OPERATIONS_V1, "Read"), "rios"),
    device("io.wios", Unit::Count, "Write operations; on v1 as io.rbytes", (OPERATIONS_V1, "Write"), "wios"),
    device("io.dbytes", Unit::Bytes, "Bytes discarded", (BYTES_V1, "Discard"), "dbytes"),
    device("io.dios", Unit::Count, "Discard operations", (OPERATIONS_V1, "Discard"), "dios"),
    Field {
        per: Per::Device,
        ..counter(
            "io.cost.wait",
            Unit::Nanos,
            "Time that operations waited for io.cost's budget, where that is on",
            None,
            tick(Io, "io.stat", DeviceKey("cost.wait"), MICRO),
        )
    },
    pressure(
        "io.pressure.some",
        "Time in which some task waited for I/O; v1 counts no wait by group or device",
        slow(Core, "io.pressure", Pressure("some"), MICRO),
    ),
    pressure(
        "io.pressure.full",
        "Time in which all tasks waited for I/O",
        slow(Core, "io.pressure", Pressure("full"), MICRO),
    ),
    // tasks
    gauge(
        "pids.current",
        Unit::Count,
        "Tasks in the group and those below it",
        tick(Pids, "pids.current", Number, 1),
        tick(Pids, "pids.current", Number, 1),
    ),
    limit(
        "pids.max",
        Unit::Count,
        "Limit of tasks",
        seldom(Pids, "pids.max", Number, 1),
        seldom(Pids, "pids.max", Number, 1),
    ),
    counter(
        "pids.events.max",
        Unit::Count,
        "Forks that failed by the limit",
        slow(Pids, "pids.events", Keyed("max"), 1),
        slow(Pids, "pids.events", Keyed("max"), 1),
    ),
    gauge(
        "frozen",
        Unit::Flag,
        "Are all tasks stopped?",
        slow(Freezer, "freezer.state", Is(&["FROZEN"]), 1),
        slow(Core, "cgroup.events", Keyed("frozen"), 1),
    ),
];
