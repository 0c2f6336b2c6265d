//! Settings of the memory controller: limits, protection, actions.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Memory,
    at_root: true,
    since: "2.6.25",
    source: "admin-guide/cgroup-v1/memory.rst, section 3",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Memory,
    since: "4.5",
    source: "admin-guide/cgroup-v2.rst, Memory Interface Files",
    ..BINDING
};
/// The kernel counts limits in pages, and from `PAGE_COUNTER_MAX` on (with the largest pages) there is none.
const LIMIT: Binding = Binding {
    range: between(0, 0x7fff_ffff_fffe_ffff),
    out_of_range: OutOfRange::Misread("the kernel takes a larger one as no limit"),
    read_back: ReadBack::Rounded("down to whole pages"),
    ..BINDING
};
const LIMIT_V1: Binding = Binding {
    codec: MINUS_ONE,
    range: LIMIT.range,
    out_of_range: LIMIT.out_of_range,
    read_back: LIMIT.read_back,
    ..V1
};
const LIMIT_V2: Binding = Binding {
    codec: MAX,
    range: LIMIT.range,
    out_of_range: LIMIT.out_of_range,
    read_back: LIMIT.read_back,
    ..V2
};
/// The largest number of whole pages.
const NO_LIMIT_V1: &str = "9223372036854771712";
const NO_PROTECTION: Side = lacks(
    "v1 can't protect memory: limit the other groups with memory.max, or memory.high (memory.soft_limit_in_bytes)",
);

/// A limit in bytes.
const PROTECTED: Reach = Reach::Beside("memory is reclaimed from all other groups in its place");

const fn limit(name: &'static str, doc: &'static str, example: &'static str, v1: Side, v2: Side) -> Setting {
    Setting {
        name,
        controller: Controller::Memory,
        doc,
        kind: Kind::Bytes,
        access: ReadWrite,
        example,
        v1,
        v2,
    }
}

pub(super) const ROWS: &[Setting] = &[
    limit(
        "memory.max",
        "Hard limit of memory: what can't be reclaimed above it is met by the out-of-memory killer",
        "8G",
        Has(Binding {
            files: &["memory.limit_in_bytes"],
            initial: &[NO_LIMIT_V1],
            pair: pair(Law::AtMost, "memory.memsw.limit_in_bytes", "memory plus swap is never below memory"),
            usage: Some("memory.usage_in_bytes"),
            ..LIMIT_V1
        }),
        Has(Binding {
            files: &["memory.max"],
            initial: &["max"],
            usage: Some("memory.current"),
            unit_property: same("MemoryMax"),
            ..LIMIT_V2
        }),
    ),
    limit(
        "memory.high",
        "Soft limit: above it the group's tasks are slowed down and must reclaim; nothing is killed",
        "6G",
        Has(Binding {
            files: &["memory.soft_limit_in_bytes"],
            initial: &[NO_LIMIT_V1],
            fidelity: Fidelity::Approximate(
                "v1's soft limit slows nothing: it only says where to reclaim first when the whole machine is short",
            ),
            since: "2.6.32",
            source: "admin-guide/cgroup-v1/memory.rst, section 7",
            ..LIMIT_V1
        }),
        Has(Binding {
            files: &["memory.high"],
            initial: &["max"],
            unit_property: same("MemoryHigh"),
            ..LIMIT_V2
        }),
    ),
    limit(
        "memory.low",
        "Memory that is reclaimed only when nothing unprotected is left",
        "2G",
        NO_PROTECTION,
        Has(Binding {
            files: &["memory.low"],
            reach: PROTECTED,
            initial: &["0"],
            unit_property: same("MemoryLow"),
            ..LIMIT_V2
        }),
    ),
    limit(
        "memory.min",
        "Memory that is never reclaimed",
        "1G",
        NO_PROTECTION,
        Has(Binding {
            files: &["memory.min"],
            reach: PROTECTED,
            since: "4.18",
            initial: &["0"],
            unit_property: same("MemoryMin"),
            ..LIMIT_V2
        }),
    ),
    limit(
        "memory.swap.max",
        "Hard limit of swap space, apart from memory",
        "1G",
        Has(Binding {
            files: &["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"],
            codec: Codec::MemoryPlusSwap,
            read_back: ReadBack::Rescaled("memory plus swap"),
            fidelity: Fidelity::Approximate(
                "v1 limits the sum of memory and swap; unused memory.max may be used as swap. Set it again when you change memory.max",
            ),
            source: "admin-guide/cgroup-v1/memory.rst, section 2.4",
            ..LIMIT_V1
        }),
        Has(Binding {
            files: &["memory.swap.max"],
            initial: &["max"],
            pair: pair(
                Law::Spill,
                "memory.max",
                "what a lower memory.max takes away goes to swap only as far as it may",
            ),
            unit_property: same("MemorySwapMax"),
            ..LIMIT_V2
        }),
    ),
    limit(
        "memory.memsw.limit_in_bytes",
        "Hard limit of memory plus swap; at least memory.limit_in_bytes",
        "10G",
        Has(Binding {
            files: &["memory.memsw.limit_in_bytes"],
            initial: &[NO_LIMIT_V1],
            usage: Some("memory.memsw.usage_in_bytes"),
            source: "admin-guide/cgroup-v1/memory.rst, section 2.4",
            ..LIMIT_V1
        }),
        Has(Binding {
            files: &["memory.swap.max", "memory.max"],
            codec: Codec::SwapAlone,
            read_back: ReadBack::Rescaled("swap alone"),
            fidelity: Fidelity::Approximate(
                "v2 limits swap apart from memory; memory.swap.max is the sum less memory.max. Set it again when you change memory.max",
            ),
            ..LIMIT_V2
        }),
    ),
    limit(
        "memory.swap.high",
        "Swap space above which the group's tasks are slowed down, so that something can act before memory.swap.max",
        "512M",
        lacks("set memory.swap.max, or memory.swappiness for less swapping"),
        Has(Binding { files: &["memory.swap.high"], since: "5.8", initial: &["max"], ..LIMIT_V2 }),
    ),
    limit(
        "memory.zswap.max",
        "Hard limit of compressed swap in memory",
        "256M",
        lacks(
            "v1 does not limit compressed swap by group; /sys/module/zswap/parameters/max_pool_percent limits it for all",
        ),
        Has(Binding {
            files: &["memory.zswap.max"],
            since: "5.19",
            initial: &["max"],
            unit_property: same("MemoryZSwapMax"),
            ..LIMIT_V2
        }),
    ),
    Setting {
        name: "memory.zswap.writeback",
        controller: Controller::Memory,
        doc: "Compressed swap may be written to the swap device",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "0",
        v1: lacks("set memory.swap.max=0 to keep a group from the swap device"),
        v2: Has(Binding {
            files: &["memory.zswap.writeback"],
            codec: Codec::Flag,
            unit_property: same("MemoryZSwapWriteback"),
            since: "6.8",
            at_root: true,
            ..V2
        }),
    },
    Setting {
        name: "memory.oom.group",
        controller: Controller::Memory,
        doc: "The out-of-memory killer kills all of the group or nothing of it",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: lacks("v1 kills single processes; memory.oom_control=1 stops the group instead of killing"),
        v2: Has(Binding {
            files: &["memory.oom.group"],
            codec: Codec::Flag,
            since: "4.19",
            initial: &["0"],
            ..V2
        }),
    },
    Setting {
        name: "memory.oom_control",
        controller: Controller::Memory,
        doc: "1 switches the out-of-memory killer off: a task that needs memory above the limit sleeps until some is free",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding {
            files: &["memory.oom_control"],
            codec: Codec::FlagInStat("oom_kill_disable"),
            read_back: ReadBack::Rescaled("as the line oom_kill_disable, beside under_oom and oom_kill"),
            since: "2.6.34",
            source: "admin-guide/cgroup-v1/memory.rst, section 10",
            ..V1
        }),
        v2: lacks(
            "v2 can't switch the killer off: set memory.high below memory.max, so that the group is slowed down first",
        ),
    },
    Setting {
        name: "memory.swappiness",
        controller: Controller::Memory,
        doc: "How readily memory of programs is swapped out compared with dropping files from the cache: 0 hardly, 100 alike, 200 rather",
        kind: Kind::Count,
        access: ReadWrite,
        example: "10",
        v1: Has(Binding {
            files: &["memory.swappiness"],
            codec: NUMBER,
            range: between(0, 200),
            since: "2.6.29",
            source: "admin-guide/cgroup-v1/memory.rst, section 5.3",
            ..V1
        }),
        v2: lacks(
            "sysctl vm.swappiness holds for the whole machine; memory.swap.max=0 keeps one group from swapping",
        ),
    },
    Setting {
        name: "memory.reclaim",
        controller: Controller::Memory,
        doc: "Reclaims so much memory of the group now; max reclaims all that can be. The kernel may reclaim more or less",
        kind: Kind::Bytes,
        access: Write,
        example: "1G",
        v1: Has(Binding {
            files: &["memory.force_empty"],
            codec: Codec::ReclaimAll,
            order: ACTION,
            read_back: ReadBack::Never,
            fidelity: Fidelity::Approximate("v1 reclaims all it can, whatever the amount"),
            source: "admin-guide/cgroup-v1/memory.rst, section 5.1",
            ..V1
        }),
        v2: Has(Binding {
            files: &["memory.reclaim", "memory.current"],
            codec: Codec::Reclaim,
            order: ACTION,
            read_back: ReadBack::Never,
            since: "5.19",
            at_root: true,
            ..V2
        }),
    },
    Setting {
        name: "memory.use_hierarchy",
        controller: Controller::Memory,
        doc: "Memory of the groups below counts here too; always so since kernel 5.11",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding {
            files: &["memory.use_hierarchy"],
            reach: Reach::Beside(
                "what groups below use need not count here: then no limit of the group holds for it",
            ),
            codec: Codec::Flag,
            source: "admin-guide/cgroup-v1/memory.rst, section 6",
            ..V1
        }),
        v2: lacks("v2 always counts the groups below"),
    },
    Setting {
        name: "memory.move_charge_at_immigrate",
        controller: Controller::Memory,
        doc: "What a moved task's memory takes along: 1 its own, 2 mapped files, 3 both. Refused but for 0 since kernel 6.13",
        kind: Kind::Count,
        access: ReadWrite,
        example: "0",
        v1: Has(Binding {
            files: &["memory.move_charge_at_immigrate"],
            codec: NUMBER,
            range: between(0, 3),
            since: "2.6.34",
            source: "admin-guide/cgroup-v1/memory.rst, section 8",
            ..V1
        }),
        v2: lacks(
            "memory stays charged where it was taken: start the program in the group with `ringfence run`",
        ),
    },
    limit(
        "memory.kmem.limit_in_bytes",
        "Limit of the kernel's memory for the group; refused from kernel 5.16 to 6.5 (EOPNOTSUPP), accepted without effect since",
        "512M",
        Has(Binding {
            files: &["memory.kmem.limit_in_bytes"],
            read_back: ReadBack::Rounded("down to whole pages; as no limit where it has no effect"),
            since: "3.8",
            source: "admin-guide/cgroup-v1/memory.rst, section 2.7",
            ..LIMIT_V1
        }),
        lacks("the kernel's memory counts in memory.max"),
    ),
    limit(
        "memory.kmem.tcp.limit_in_bytes",
        "Limit of memory for TCP buffers",
        "64M",
        Has(Binding {
            files: &["memory.kmem.tcp.limit_in_bytes"],
            since: "3.3",
            source: "admin-guide/cgroup-v1/memory.rst, section 2.7",
            ..LIMIT_V1
        }),
        lacks("TCP buffers count in memory.max"),
    ),
];
