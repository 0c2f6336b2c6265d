//! What the memory controller counts.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Memory,
    at_root: true,
    since: "2.6.25",
    source: "admin-guide/cgroup-v1/memory.rst, section 5",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Memory,
    since: "4.5",
    source: "admin-guide/cgroup-v2.rst, Memory Interface Files",
    ..BINDING
};
const RESET_V1: Binding =
    Binding { codec: RESET.codec, range: RESET.range, read_back: RESET.read_back, ..V1 };
/// How `memory.stat` and `memory.events` serve a v1 counter.
const fn field(file: &'static [&'static str], key: &'static str, since: &'static str) -> Binding {
    Binding { files: file, codec: Codec::StatField { key, scale: 1 }, since, ..V2 }
}

/// A counter; one that v1 can reset is named with the value that does it.
const fn counter(name: &'static str, kind: Kind, doc: &'static str, v1: Side, v2: Side) -> Setting {
    let resets = matches!(v1, Has(Binding { codec: Codec::Reset, .. }));
    let (access, example) = if resets { (ReadWrite, "0") } else { (Read, "") };
    Setting { name, controller: Controller::Memory, doc, kind, access, example, v1, v2 }
}

pub(super) const ROWS: &[Setting] = &[
    counter(
        "memory.current",
        Kind::Bytes,
        "Memory that the group and those below it use now",
        Has(Binding { files: &["memory.usage_in_bytes"], ..V1 }),
        Has(Binding { files: &["memory.current"], ..V2 }),
    ),
    counter(
        "memory.peak",
        Kind::Bytes,
        "The most memory used so far; 0 starts it again on v1",
        Has(Binding { files: &["memory.max_usage_in_bytes"], ..RESET_V1 }),
        Has(Binding { files: &["memory.peak"], since: "5.19", ..V2 }),
    ),
    counter(
        "memory.swap.current",
        Kind::Bytes,
        "Swap space that the group and those below it use now",
        Has(Binding {
            files: &["memory.memsw.usage_in_bytes", "memory.usage_in_bytes"],
            codec: Codec::MemoryPlusSwap,
            fidelity: Fidelity::Approximate("the difference of two files read one after the other"),
            ..V1
        }),
        Has(Binding { files: &["memory.swap.current"], ..V2 }),
    ),
    counter(
        "memory.memsw.usage_in_bytes",
        Kind::Bytes,
        "Memory plus swap that the group and those below it use now",
        Has(Binding { files: &["memory.memsw.usage_in_bytes"], ..V1 }),
        Has(Binding {
            files: &["memory.swap.current", "memory.current"],
            codec: Codec::SwapAlone,
            fidelity: Fidelity::Approximate("the sum of two files read one after the other"),
            ..V2
        }),
    ),
    counter(
        "memory.memsw.max_usage_in_bytes",
        Kind::Bytes,
        "The most memory plus swap used so far; 0 starts it again",
        Has(Binding { files: &["memory.memsw.max_usage_in_bytes"], ..RESET_V1 }),
        lacks("read memory.peak and memory.swap.peak, which need not have been at the same time"),
    ),
    counter(
        "memory.swap.peak",
        Kind::Bytes,
        "The most swap space used so far",
        lacks("read memory.memsw.max_usage_in_bytes, which counts memory too"),
        Has(Binding { files: &["memory.swap.peak"], since: "6.5", ..V2 }),
    ),
    counter(
        "memory.zswap.current",
        Kind::Bytes,
        "Memory that the group's compressed swap takes",
        lacks("v1 does not count compressed swap by group; /proc/meminfo has Zswap for all"),
        Has(Binding { files: &["memory.zswap.current"], since: "5.19", ..V2 }),
    ),
    counter(
        "memory.failcnt",
        Kind::Count,
        "How often usage met the limit; 0 starts it again on v1",
        Has(Binding { files: &["memory.failcnt"], ..RESET_V1 }),
        Has(Binding {
            fidelity: Fidelity::Approximate(
                "the field max of memory.events, which counts the groups below too",
            ),
            ..field(&["memory.events"], "max", "4.5")
        }),
    ),
    counter(
        "memory.memsw.failcnt",
        Kind::Count,
        "How often usage met the limit of memory plus swap; 0 starts it again on v1",
        Has(Binding { files: &["memory.memsw.failcnt"], ..RESET_V1 }),
        Has(Binding {
            fidelity: Fidelity::Approximate("the field max of memory.swap.events, which counts swap alone"),
            ..field(&["memory.swap.events"], "max", "4.18")
        }),
    ),
    counter(
        "memory.kmem.usage_in_bytes",
        Kind::Bytes,
        "Memory that the kernel uses for the group",
        Has(Binding { files: &["memory.kmem.usage_in_bytes"], since: "3.8", ..V1 }),
        Has(Binding { at_root: true, ..field(&["memory.stat"], "kernel", "5.18") }),
    ),
    counter(
        "memory.kmem.max_usage_in_bytes",
        Kind::Bytes,
        "The most memory that the kernel used for the group; 0 starts it again",
        Has(Binding { files: &["memory.kmem.max_usage_in_bytes"], since: "3.8", ..RESET_V1 }),
        lacks("v2 keeps the highest of all memory only, in memory.peak"),
    ),
    counter(
        "memory.kmem.failcnt",
        Kind::Count,
        "How often the limit of the kernel's memory was met; 0 starts it again",
        Has(Binding { files: &["memory.kmem.failcnt"], since: "3.8", ..RESET_V1 }),
        lacks("read memory.events: the kernel's memory counts in memory.max"),
    ),
    counter(
        "memory.kmem.tcp.usage_in_bytes",
        Kind::Bytes,
        "Memory in TCP buffers",
        Has(Binding { files: &["memory.kmem.tcp.usage_in_bytes"], since: "3.3", ..V1 }),
        Has(Binding {
            fidelity: Fidelity::Approximate("the field sock of memory.stat, which counts all sockets"),
            at_root: true,
            ..field(&["memory.stat"], "sock", "4.5")
        }),
    ),
    counter(
        "memory.kmem.tcp.max_usage_in_bytes",
        Kind::Bytes,
        "The most memory in TCP buffers; 0 starts it again",
        Has(Binding { files: &["memory.kmem.tcp.max_usage_in_bytes"], since: "3.3", ..RESET_V1 }),
        lacks("v2 keeps the highest of all memory only, in memory.peak"),
    ),
    counter(
        "memory.kmem.tcp.failcnt",
        Kind::Count,
        "How often the limit of TCP buffers was met; 0 starts it again",
        Has(Binding { files: &["memory.kmem.tcp.failcnt"], since: "3.3", ..RESET_V1 }),
        lacks("read memory.events: TCP buffers count in memory.max"),
    ),
    text(
        "memory.kmem.slabinfo",
        Controller::Memory,
        "The kernel's caches for the group; empty since kernel 5.9",
        Has(Binding { files: &["memory.kmem.slabinfo"], since: "3.8", ..V1 }),
        lacks("read slab_reclaimable and slab_unreclaimable in memory.stat"),
    ),
    text(
        "memory.stat",
        Controller::Memory,
        "What the group's memory is: of programs, of files, of the kernel; and what was moved, reclaimed, faulted",
        Has(Binding {
            files: &["memory.stat"],
            fidelity: Fidelity::Approximate(
                "other names (rss, cache), and total_ for those that count the groups below",
            ),
            ..V1
        }),
        Has(Binding { files: &["memory.stat"], at_root: true, ..V2 }),
    ),
    text(
        "memory.numa_stat",
        Controller::Memory,
        "What the group's memory is, by NUMA node",
        Has(Binding {
            files: &["memory.numa_stat"],
            since: "3.1",
            fidelity: Fidelity::Approximate("other names, in pages in place of bytes"),
            ..V1
        }),
        Has(Binding { files: &["memory.numa_stat"], since: "5.10", at_root: true, ..V2 }),
    ),
    text(
        "memory.events",
        Controller::Memory,
        "How often each limit of the group, and of those below it, was met, and how often something was killed",
        lacks("read memory.failcnt, and oom_kill in memory.oom_control"),
        Has(Binding { files: &["memory.events"], ..V2 }),
    ),
    text(
        "memory.events.local",
        Controller::Memory,
        "As memory.events, of this group alone",
        lacks("read memory.failcnt, and oom_kill in memory.oom_control"),
        Has(Binding { files: &["memory.events.local"], since: "5.3", ..V2 }),
    ),
    text(
        "memory.swap.events",
        Controller::Memory,
        "How often the group met its limits of swap, or found none left",
        lacks("read memory.memsw.failcnt"),
        Has(Binding { files: &["memory.swap.events"], since: "4.18", ..V2 }),
    ),
    text(
        "memory.pressure",
        Controller::Memory,
        "Share of time in which some or all tasks of the group waited for memory",
        lacks("pressure is counted per v2 group only; /proc/pressure/memory shows the whole machine's"),
        Has(Binding {
            files: &["memory.pressure"],
            controller: Controller::Core,
            since: "4.20",
            at_root: true,
            source: "accounting/psi.rst, Cgroup2 interface",
            ..V2
        }),
    ),
];
