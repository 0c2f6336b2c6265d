//! Settings of the cpuset controller.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Cpuset,
    at_root: true,
    since: "2.6.24",
    source: "admin-guide/cgroup-v1/cpusets.rst, sections 1.3 to 1.9",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Cpuset,
    since: "5.0",
    source: "admin-guide/cgroup-v2.rst, Cpuset Interface Files",
    ..BINDING
};

const ALONE: Reach = Reach::Beside("no other group, and no task of root's, gets what the group has alone");
const CPUS_OF_ALL: Reach = Reach::Beside(
    "a list that overlaps what a group beside it has alone ends that or is in its way, and an exclusive group takes what its list names",
);
const NODES_OF_ALL: Reach = Reach::Beside("an exclusive group takes the nodes that its list names");
const DOMAINS: Reach =
    Reach::Machine("it changes how the scheduler balances CPUs that other groups have as well");

/// A flag that only v1 has.
const fn v1_flag(
    name: &'static str,
    files: &'static [&'static str],
    doc: &'static str,
    order: Option<Order>,
    reach: Reach,
    v2: Side,
) -> Setting {
    Setting {
        name,
        controller: Controller::Cpuset,
        doc,
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding { files, codec: Codec::Flag, order, reach, ..V1 }),
        v2,
    }
}

const CPUS: Option<Order> = at(Stage::Cpus, "after the memory nodes, before tasks");
const NODES: Option<Order> = at(Stage::Nodes, "memory nodes before CPUs, both before tasks");

const fn exclusive(off: &'static str) -> Option<Order> {
    switch(
        off,
        (Stage::Release, "no longer exclusive before its sets change"),
        (Stage::Exclusive, "exclusive only once the sets are its own"),
    )
}

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "cpuset.cpus",
        controller: Controller::Cpuset,
        doc: "CPUs that the group's tasks may run on. Empty means the parent's on v2; on v1 an empty group takes no task",
        kind: Kind::Cpus,
        access: ReadWrite,
        example: "0-3,8",
        v1: Has(Binding {
            reach: CPUS_OF_ALL,
            files: &["cpuset.cpus"],
            codec: Codec::List,
            order: CPUS,
            ..V1
        }),
        v2: Has(Binding {
            reach: CPUS_OF_ALL,
            files: &["cpuset.cpus"],
            codec: Codec::List,
            order: CPUS,
            unit_property: list("AllowedCPUs"),
            ..V2
        }),
    },
    Setting {
        name: "cpuset.mems",
        controller: Controller::Cpuset,
        doc: "NUMA nodes that the group's tasks take memory from. Empty means the parent's on v2; on v1 an empty group takes no task",
        kind: Kind::Nodes,
        access: ReadWrite,
        example: "0-1",
        v1: Has(Binding {
            reach: NODES_OF_ALL,
            files: &["cpuset.mems"],
            codec: Codec::List,
            order: NODES,
            fidelity: Fidelity::Approximate(
                "memory taken before a change stays where it is unless cpuset.memory_migrate is 1",
            ),
            ..V1
        }),
        v2: Has(Binding {
            files: &["cpuset.mems"],
            codec: Codec::List,
            order: NODES,
            unit_property: list("AllowedMemoryNodes"),
            ..V2
        }),
    },
    Setting {
        name: "cpuset.cpus.effective",
        controller: Controller::Cpuset,
        doc: "CPUs that the group really has, after its parents and the CPUs that are offline",
        kind: Kind::Cpus,
        access: Read,
        example: "",
        v1: Has(Binding { files: &["cpuset.effective_cpus"], codec: Codec::List, since: "3.17", ..V1 }),
        v2: Has(Binding { files: &["cpuset.cpus.effective"], codec: Codec::List, at_root: true, ..V2 }),
    },
    Setting {
        name: "cpuset.mems.effective",
        controller: Controller::Cpuset,
        doc: "NUMA nodes that the group really has, after its parents and the nodes that are offline",
        kind: Kind::Nodes,
        access: Read,
        example: "",
        v1: Has(Binding { files: &["cpuset.effective_mems"], codec: Codec::List, since: "3.17", ..V1 }),
        v2: Has(Binding { files: &["cpuset.mems.effective"], codec: Codec::List, at_root: true, ..V2 }),
    },
    Setting {
        name: "cpuset.cpus.partition",
        controller: Controller::Cpuset,
        doc: "Whether the group's CPUs are its own: member shares them, root has them alone, isolated also keeps the scheduler from balancing them",
        kind: Kind::Word(&["member", "root", "isolated"]),
        access: ReadWrite,
        example: "root",
        v1: Has(Binding {
            reach: ALONE,
            files: &["cpuset.cpu_exclusive"],
            codec: Codec::WordFlag { off: "member", on: "root" },
            order: exclusive("0"),
            read_back: ReadBack::Rescaled("0 is member, 1 is root"),
            fidelity: Fidelity::Approximate(
                "cpu_exclusive keeps sibling groups off the CPUs, but not tasks of the groups above; isolated is root with cpuset.sched_load_balance=0 in the group and all above",
            ),
            source: "admin-guide/cgroup-v1/cpusets.rst, section 1.4",
            ..V1
        }),
        v2: Has(Binding {
            reach: ALONE,
            files: &["cpuset.cpus.partition"],
            codec: Codec::Word,
            order: exclusive("member"),
            changes: &["cpuset.cpus.exclusive"],
            read_back: ReadBack::Rescaled("with the reason where the partition is invalid: root invalid (…)"),
            ..V2
        }),
    },
    Setting {
        name: "cpuset.cpus.exclusive",
        controller: Controller::Cpuset,
        doc: "CPUs reserved for a partition of this group or one below it, so that no sibling can take them",
        kind: Kind::Cpus,
        access: ReadWrite,
        example: "2-3",
        v1: lacks("set cpuset.cpus and cpuset.cpus.partition=root (cpuset.cpu_exclusive)"),
        v2: Has(Binding {
            reach: ALONE,
            files: &["cpuset.cpus.exclusive"],
            codec: Codec::List,
            since: "6.7",
            order: at(Stage::ExclusiveCpus, "after the CPUs that it is a part of"),
            ..V2
        }),
    },
    Setting {
        name: "cpuset.cpus.exclusive.effective",
        controller: Controller::Cpuset,
        doc: "CPUs that the group could make a partition of",
        kind: Kind::Cpus,
        access: Read,
        example: "",
        v1: lacks("read cpuset.cpus.effective where cpuset.cpus.partition is root"),
        v2: Has(Binding {
            files: &["cpuset.cpus.exclusive.effective"],
            codec: Codec::List,
            since: "6.7",
            ..V2
        }),
    },
    Setting {
        name: "cpuset.cpus.isolated",
        controller: Controller::Cpuset,
        doc: "All CPUs of isolated partitions; in the root group only",
        kind: Kind::Cpus,
        access: Read,
        example: "",
        v1: lacks(
            "v1 has no isolated partitions; /sys/devices/system/cpu/isolated lists the CPUs isolated at boot",
        ),
        v2: Has(Binding {
            files: &["cpuset.cpus.isolated"],
            codec: Codec::List,
            since: "6.7",
            at_root: true,
            ..V2
        }),
    },
    v1_flag(
        "cpuset.mem_exclusive",
        &["cpuset.mem_exclusive"],
        "Sibling groups may not name the same NUMA nodes; implies cpuset.mem_hardwall",
        exclusive("0"),
        ALONE,
        lacks("give each group other nodes in cpuset.mems; v2 does not enforce it"),
    ),
    v1_flag(
        "cpuset.mem_hardwall",
        &["cpuset.mem_hardwall"],
        "Memory that the kernel takes for the group's tasks also comes from the group's nodes only",
        None,
        Reach::Own,
        lacks("cpuset.mems covers the memory of tasks; v2 has no switch for the kernel's own"),
    ),
    v1_flag(
        "cpuset.memory_migrate",
        &["cpuset.memory_migrate"],
        "A change of cpuset.mems, or a move into the group, moves the memory that tasks already have",
        None,
        Reach::Own,
        lacks("v2 always migrates when cpuset.mems changes"),
    ),
    v1_flag(
        "cpuset.sched_load_balance",
        &["cpuset.sched_load_balance"],
        "The scheduler moves tasks between the group's CPUs to even the load",
        None,
        DOMAINS,
        lacks("set cpuset.cpus.partition=isolated for CPUs without load balancing"),
    ),
    Setting {
        name: "cpuset.sched_relax_domain_level",
        controller: Controller::Cpuset,
        doc: "How far away the scheduler looks for an idle CPU at wake-up: -1 as the system does, 0 not at all, 1 siblings, 2 the package, 3 the node, 4 near nodes, 5 all; the machine may have fewer levels",
        kind: Kind::Number,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding {
            reach: DOMAINS,
            files: &["cpuset.sched_relax_domain_level"],
            codec: Codec::Number,
            range: between(-1, 5),
            since: "2.6.26",
            source: "admin-guide/cgroup-v1/cpusets.rst, section 1.8",
            ..V1
        }),
        v2: lacks(
            "v2 has no such level; cpuset.cpus.partition=root gives the group a scheduling domain of its own",
        ),
    },
    v1_flag(
        "cpuset.memory_spread_page",
        &["cpuset.memory_spread_page"],
        "Spreads the page cache evenly over the group's nodes",
        None,
        Reach::Own,
        lacks("set an interleaving policy where the program is started: numactl --interleave"),
    ),
    v1_flag(
        "cpuset.memory_spread_slab",
        &["cpuset.memory_spread_slab"],
        "Spread inode and dentry caches evenly over the group's nodes; without effect since kernel 6.8",
        None,
        Reach::Own,
        lacks("v2 has no such setting, and v1's has no effect since kernel 6.8"),
    ),
    Setting {
        name: "cpuset.memory_pressure",
        controller: Controller::Cpuset,
        doc: "Rate at which the group's tasks must reclaim memory themselves, per second times 1000",
        kind: Kind::Count,
        access: Read,
        example: "",
        v1: Has(Binding {
            files: &["cpuset.memory_pressure"],
            source: "admin-guide/cgroup-v1/cpusets.rst, section 1.5",
            ..V1
        }),
        v2: lacks("read memory.pressure"),
    },
    Setting {
        name: "cpuset.memory_pressure_enabled",
        controller: Controller::Cpuset,
        doc: "Whether cpuset.memory_pressure is counted, for all groups; in the root group only",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding {
            reach: Reach::Machine("it holds for all groups"),
            files: &["cpuset.memory_pressure_enabled"],
            codec: Codec::Flag,
            source: "admin-guide/cgroup-v1/cpusets.rst, section 1.5",
            ..V1
        }),
        v2: lacks("memory.pressure is counted unless cgroup.pressure is 0"),
    },
];
