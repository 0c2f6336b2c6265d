//! The figures of the machine, one row each: what a group's share is a share of.

use crate::field::{
    Field, From, Kind, Pace, Per,
    Shape::{self, CpuColumns, CpuLine, Decimal, Keyed, NodeKeyed, Pressure},
    Source, Unit,
};

/// A tick of `/proc/stat`: `USER_HZ` is 100 on every architecture that has cpusets (`include/asm-generic/param.h`).
const JIFFY: u64 = 10_000_000;
const KIB: u64 = 1024;
const MICRO: u64 = 1000;

const fn row(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    per: Per,
    help: &'static str,
    source: (&'static str, Shape, u64),
) -> Field {
    let (file, shape, scale) = source;
    Field {
        name,
        unit,
        kind,
        per,
        help,
        from: From::Machine(Source { file, shape, scale, pace: Pace::Tick }),
    }
}

const fn cpu(name: &'static str, help: &'static str, number: usize) -> Field {
    row(name, Kind::Counter, Unit::Nanos, Per::Cpu, help, ("/proc/stat", CpuLine(number), JIFFY))
}

const fn stat(name: &'static str, kind: Kind, help: &'static str, key: &'static str) -> Field {
    row(name, kind, Unit::Count, Per::One, help, ("/proc/stat", Keyed(key), 1))
}

const fn vm(name: &'static str, help: &'static str, key: &'static str) -> Field {
    row(name, Kind::Counter, Unit::Count, Per::One, help, ("/proc/vmstat", Keyed(key), 1))
}

const fn memory(name: &'static str, help: &'static str, key: &'static str) -> Field {
    row(name, Kind::Gauge, Unit::Bytes, Per::One, help, ("/proc/meminfo", Keyed(key), KIB))
}

const fn node(name: &'static str, help: &'static str, key: &'static str) -> Field {
    let file = "/sys/devices/system/node/node<N>/meminfo";
    row(name, Kind::Gauge, Unit::Bytes, Per::Node, help, (file, NodeKeyed(key), KIB))
}

const fn numastat(name: &'static str, help: &'static str, key: &'static str) -> Field {
    let file = "/sys/devices/system/node/node<N>/numastat";
    row(name, Kind::Counter, Unit::Count, Per::Node, help, (file, Keyed(key), 1))
}

const fn pressure(name: &'static str, help: &'static str, file: &'static str, line: &'static str) -> Field {
    row(name, Kind::Counter, Unit::Nanos, Per::One, help, (file, Pressure(line), MICRO))
}

const fn slow(field: Field) -> Field {
    match field.from {
        From::Machine(source) => {
            Field { from: From::Machine(Source { pace: Pace::Slow, ..source }), ..field }
        }
        From::Group { .. } => field,
    }
}

/// Every figure of the machine.
pub static MACHINE_FIELDS: &[Field] = &[
    cpu("cpu.user", "Time in programs", 0),
    cpu("cpu.nice", "Time in programs of a positive nice value", 1),
    cpu("cpu.system", "Time in the kernel", 2),
    cpu("cpu.idle", "Time with nothing to run", 3),
    cpu("cpu.iowait", "Time with nothing to run while a task that ran here waits for I/O", 4),
    cpu("cpu.irq", "Time in interrupts", 5),
    cpu("cpu.softirq", "Time in deferred interrupts", 6),
    cpu("cpu.steal", "Time in which the hypervisor ran something else", 7),
    stat("cpu.switches", Kind::Counter, "Context switches", "ctxt"),
    stat("forks", Kind::Counter, "Tasks started", "processes"),
    stat("tasks.running", Kind::Gauge, "Tasks that run or wait for a CPU", "procs_running"),
    stat("tasks.blocked", Kind::Gauge, "Tasks that wait for I/O", "procs_blocked"),
    row(
        "load",
        Kind::Gauge,
        Unit::Hundredths,
        Per::One,
        "Tasks that run, or wait for a CPU or I/O, averaged over a minute",
        ("/proc/loadavg", Decimal(0), 1),
    ),
    slow(row(
        "interrupts",
        Kind::Counter,
        Unit::Count,
        Per::Cpu,
        "Interrupts taken by each CPU",
        ("/proc/interrupts", CpuColumns, 1),
    )),
    memory("memory.total", "Memory", "MemTotal:"),
    memory("memory.free", "Unused memory", "MemFree:"),
    memory("memory.available", "Memory that programs could take without swapping", "MemAvailable:"),
    memory("memory.dirty", "Cached files that wait to be written", "Dirty:"),
    memory("swap.total", "Swap space", "SwapTotal:"),
    memory("swap.free", "Unused swap space", "SwapFree:"),
    node("memory.node.total", "Memory of each NUMA node", "MemTotal:"),
    node("memory.node.free", "Unused memory of each NUMA node", "MemFree:"),
    node("memory.node.file", "Memory of each NUMA node that caches files", "FilePages:"),
    node("memory.node.anon", "Memory of programs on each NUMA node", "AnonPages:"),
    numastat("memory.node.local", "Pages taken on the node by tasks that ran there", "local_node"),
    numastat("memory.node.remote", "Pages taken on the node by tasks that ran on another", "other_node"),
    numastat("memory.node.miss", "Pages taken on the node as the wanted one had none", "numa_miss"),
    vm("swap.in", "Pages read from swap", "pswpin"),
    vm("swap.out", "Pages written to swap", "pswpout"),
    vm("memory.faults", "Page faults", "pgfault"),
    vm("memory.faults.major", "Page faults that waited for a disk", "pgmajfault"),
    vm(
        "memory.refaults.anon",
        "Pages of programs needed again soon after they were swapped out",
        "workingset_refault_anon",
    ),
    vm(
        "memory.refaults.file",
        "Pages of files needed again soon after they were dropped",
        "workingset_refault_file",
    ),
    vm(
        "memory.refaults.forgotten",
        "Nodes of 64 dropped pages that the kernel forgot: what is needed again of them is not counted as such",
        "workingset_nodereclaim",
    ),
    vm("memory.scanned.kswapd", "Pages that reclaim in the background looked at", "pgscan_kswapd"),
    vm("memory.scanned.direct", "Pages that tasks that wanted memory looked at", "pgscan_direct"),
    vm("memory.migrated", "Pages moved to another NUMA node or place", "pgmigrate_success"),
    vm("memory.oom_kill", "Processes killed for want of memory", "oom_kill"),
    pressure("cpu.pressure.some", "Time in which some task waited for a CPU", "/proc/pressure/cpu", "some"),
    pressure(
        "memory.pressure.some",
        "Time in which some task waited for memory",
        "/proc/pressure/memory",
        "some",
    ),
    pressure(
        "memory.pressure.full",
        "Time in which all tasks waited for memory",
        "/proc/pressure/memory",
        "full",
    ),
    pressure("io.pressure.some", "Time in which some task waited for I/O", "/proc/pressure/io", "some"),
    pressure("io.pressure.full", "Time in which all tasks waited for I/O", "/proc/pressure/io", "full"),
];
