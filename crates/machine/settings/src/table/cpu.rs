//! Settings of the cpu controller.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Cpu,
    at_root: true,
    source: "scheduler/sched-bwc.rst, Management",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Cpu,
    since: "4.15",
    source: "admin-guide/cgroup-v2.rst, CPU Interface Files",
    ..BINDING
};
/// `max_bw_quota_period_us` and `min_bw_quota_period_us` in `kernel/sched`: 44 bits of microseconds.
const QUOTA: Range = between(1_000, 17_592_186_044_415);
const RT: Binding = Binding {
    source: "scheduler/sched-rt-group.rst, section 2",
    since: "2.6.25",
    codec: MINUS_ONE,
    reach: BUDGET,
    ..V1
};
const NO_RT: Side = lacks(
    "v2 has no real-time budgets: give real-time tasks CPUs of their own with cpuset.cpus and cpuset.cpus.partition",
);
/// Percent with two decimals, by the same code on both versions.
const UCLAMP: Binding = Binding {
    since: "5.4",
    codec: Codec::Percent,
    range: between(0, 100),
    read_back: ReadBack::Rounded("to two decimals"),
    ..V2
};

const BUDGET: Reach =
    Reach::Beside("the group above divides its real-time budget: what one group has the others lack");
const BOOST: Reach = Reach::Beside("the group's tasks go before others to the fastest CPUs");

const BURST: &str = "the burst is never above the quota";
const IDLE: Option<Order> = switch(
    "0",
    (Stage::NotIdle, "an idle group has no weight to set"),
    (Stage::Deny, "it takes the weight's place"),
);

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "cpu.weight",
        controller: Controller::Cpu,
        doc: "Share of CPU time relative to sibling groups while CPUs are short, 100 by default. A minimum, not a cap",
        kind: Kind::Weight,
        access: ReadWrite,
        example: "200",
        v1: Has(Binding {
            reach: SHARE,
            files: &["cpu.shares"],
            codec: Codec::WeightScaled { default: 1024 },
            initial: &["1024"],
            range: between(2, 262_144),
            out_of_range: OutOfRange::Clamped,
            read_back: ReadBack::Rescaled("1024 shares are a weight of 100"),
            since: "2.6.24",
            source: "scheduler/sched-design-CFS.rst, section 7; kernel/sched/fair.c, MIN_SHARES and MAX_SHARES",
            ..V1
        }),
        v2: Has(Binding {
            reach: SHARE,
            files: &["cpu.weight"],
            codec: Codec::Weight,
            range: between(1, 10_000),
            read_back: ReadBack::Rounded("to a whole weight; 0 while cpu.idle is 1"),
            initial: &["100"],
            unit_property: same("CPUWeight"),
            ..V2
        }),
    },
    Setting {
        name: "cpu.weight.nice",
        controller: Controller::Cpu,
        doc: "The weight as the nice value whose share is nearest; another way to write cpu.weight",
        kind: Kind::Number,
        access: ReadWrite,
        example: "-5",
        v1: lacks("set cpu.weight: one nice step is a factor of 1.25, nice 0 is 100"),
        v2: Has(Binding {
            reach: SHARE,
            files: &["cpu.weight.nice"],
            codec: Codec::Number,
            range: between(-20, 19),
            read_back: ReadBack::Rounded("to the nice value nearest to the weight"),
            initial: &["0"],
            changes: &["cpu.weight"],
            ..V2
        }),
    },
    Setting {
        name: "cpu.max",
        controller: Controller::Cpu,
        doc: "CPU time that the group may use in each period, over all CPUs together, as QUOTA PERIOD; no cap is max",
        kind: Kind::CpuMax,
        access: ReadWrite,
        example: "50ms/100ms",
        v1: Has(Binding {
            files: &["cpu.cfs_quota_us", "cpu.cfs_period_us"],
            codec: Codec::CpuQuota,
            range: QUOTA,
            since: "3.2",
            initial: &["-1", "100000"],
            pair: pair(
                Law::Share,
                "cpu.cfs_period_us",
                "this order never gives more than the old or the new quota",
            ),
            ..V1
        }),
        v2: Has(Binding {
            files: &["cpu.max"],
            codec: Codec::CpuMax,
            range: QUOTA,
            initial: &["max 100000"],
            unit_property: Some(UnitProperty { name: "CPUQuota", form: Form::Quota }),
            ..V2
        }),
    },
    Setting {
        name: "cpu.max.burst",
        controller: Controller::Cpu,
        doc: "Unused CPU time that the group may save up and use above its quota later; at most the quota",
        kind: Kind::Micros,
        access: ReadWrite,
        example: "20ms",
        v1: Has(Binding {
            files: &["cpu.cfs_burst_us"],
            codec: NUMBER,
            range: between(0, 17_592_186_044_415),
            since: "5.14",
            initial: &["0"],
            pair: pair(Law::AtMost, "cpu.cfs_quota_us", BURST),
            ..V1
        }),
        v2: Has(Binding {
            files: &["cpu.max.burst"],
            codec: NUMBER,
            range: between(0, 17_592_186_044_415),
            since: "5.14",
            initial: &["0"],
            pair: pair(Law::AtMost, "cpu.max", BURST),
            ..V2
        }),
    },
    Setting {
        name: "cpu.idle",
        controller: Controller::Cpu,
        doc: "Makes the whole group SCHED_IDLE: it runs only when no other group wants the CPU. While set, the weight can't be",
        kind: Kind::Flag,
        access: ReadWrite,
        example: "1",
        v1: Has(Binding {
            reach: SHARE,
            files: &["cpu.idle"],
            codec: Codec::Flag,
            since: "5.15",
            order: IDLE,
            initial: &["0"],
            changes: &["cpu.shares"],
            source: "admin-guide/cgroup-v2.rst, CPU Interface Files; kernel/sched/core.c, cpu_legacy_files",
            ..V1
        }),
        v2: Has(Binding {
            reach: SHARE,
            files: &["cpu.idle"],
            codec: Codec::Flag,
            since: "5.15",
            order: IDLE,
            initial: &["0"],
            changes: &["cpu.weight"],
            ..V2
        }),
    },
    Setting {
        name: "cpu.uclamp.min",
        controller: Controller::Cpu,
        doc: "Utilization in percent that the frequency governor takes the group's tasks to have at least",
        kind: Kind::Percent,
        access: ReadWrite,
        example: "25%",
        v1: Has(Binding { reach: BOOST, files: &["cpu.uclamp.min"], initial: &["0.00"], ..UCLAMP }),
        v2: Has(Binding { reach: BOOST, files: &["cpu.uclamp.min"], initial: &["0.00"], ..UCLAMP }),
    },
    Setting {
        name: "cpu.uclamp.max",
        controller: Controller::Cpu,
        doc: "Utilization in percent that the frequency governor takes the group's tasks to have at most",
        kind: Kind::Percent,
        access: ReadWrite,
        example: "75%",
        v1: Has(Binding { files: &["cpu.uclamp.max"], initial: &["max"], ..UCLAMP }),
        v2: Has(Binding { files: &["cpu.uclamp.max"], initial: &["max"], ..UCLAMP }),
    },
    Setting {
        name: "cpu.rt_runtime_us",
        controller: Controller::Cpu,
        doc: "Time in each cpu.rt_period_us that real-time tasks of the group may run; while 0, the group takes no real-time task",
        kind: Kind::Micros,
        access: ReadWrite,
        example: "95ms",
        v1: Has(Binding {
            files: &["cpu.rt_runtime_us"],
            initial: &["0"],
            pair: pair(
                Law::Share,
                "cpu.rt_period_us",
                "this order never gives more than the old or the new real-time share",
            ),
            ..RT
        }),
        v2: NO_RT,
    },
    Setting {
        name: "cpu.rt_period_us",
        controller: Controller::Cpu,
        doc: "Period of cpu.rt_runtime_us",
        kind: Kind::Micros,
        access: ReadWrite,
        example: "1s",
        v1: Has(Binding {
            files: &["cpu.rt_period_us"],
            codec: NUMBER,
            range: between(1, 18_446_744_073_709_551),
            initial: &["1000000"],
            ..RT
        }),
        v2: NO_RT,
    },
    text(
        "cpu.stat",
        Controller::Cpu,
        "CPU time used, and how often and how long the quota stopped the group",
        Has(Binding {
            files: &["cpu.stat"],
            since: "3.2",
            fidelity: Fidelity::Approximate(
                "no usage (cpuacct.usage has it), and throttled_time in nanoseconds in place of throttled_usec",
            ),
            ..V1
        }),
        Has(Binding { files: &["cpu.stat"], controller: Controller::Core, at_root: true, ..V2 }),
    ),
    text(
        "cpu.stat.local",
        Controller::Cpu,
        "How long the group was stopped by its own quota or that of a group above it",
        Has(Binding {
            files: &["cpu.stat.local"],
            since: "6.6",
            fidelity: Fidelity::Approximate("throttled_time in nanoseconds in place of throttled_usec"),
            source: "kernel/sched/core.c, cpu_legacy_files",
            ..V1
        }),
        Has(Binding {
            files: &["cpu.stat.local"],
            controller: Controller::Core,
            at_root: true,
            since: "6.6",
            ..V2
        }),
    ),
    text(
        "cpu.pressure",
        Controller::Cpu,
        "Share of time in which some or all tasks of the group waited for a CPU",
        lacks("pressure is counted per v2 group only; /proc/pressure/cpu shows the whole machine's"),
        Has(Binding {
            files: &["cpu.pressure"],
            controller: Controller::Core,
            since: "4.20",
            at_root: true,
            source: "accounting/psi.rst, Cgroup2 interface",
            ..V2
        }),
    ),
];
