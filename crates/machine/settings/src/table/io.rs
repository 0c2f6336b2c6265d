//! Settings of the io controller, called blkio on v1.

use super::*;

const V1: Binding = Binding {
    controller: Controller::Io,
    at_root: true,
    source: "admin-guide/cgroup-v1/blkio-controller.rst, Details of cgroup files",
    ..BINDING
};
const V2: Binding = Binding {
    controller: Controller::Io,
    since: "4.5",
    source: "admin-guide/cgroup-v2.rst, IO Interface Files",
    ..BINDING
};
/// Only the root group has it, for each device.
const COST: Binding = Binding {
    codec: Codec::Keyed,
    reach: Reach::Machine("it holds for all groups on the device"),
    since: "5.4",
    at_root: true,
    ..V2
};

const fn key(name: &'static str, unit: Unit, max: u64) -> Key {
    Key { name, unit, max }
}

/// The kernel keeps bytes in 64 bits and operations in 32; all ones are no limit, and more operations are cut to
/// 32 bits without a word (seen on 6.18: 4294967296 became 0).
const OPERATIONS: u64 = u32::MAX as u64 - 1;
const THROTTLE: &[Key] = &[
    key("rbps", Unit::Bytes, u64::MAX - 1),
    key("wbps", Unit::Bytes, u64::MAX - 1),
    key("riops", Unit::Count, OPERATIONS),
    key("wiops", Unit::Count, OPERATIONS),
];
const LATENCY: &[Key] = &[key("target", Unit::Micros, u64::MAX / 1_000)];
const QOS: &[Key] = &[
    key("enable", Unit::Word(&["0", "1"]), 1),
    key("ctrl", Unit::Word(&["auto", "user"]), 1),
    key("rpct", Unit::Percent, 100),
    key("rlat", Unit::Micros, u32::MAX as u64),
    key("wpct", Unit::Percent, 100),
    key("wlat", Unit::Micros, u32::MAX as u64),
    key("min", Unit::Percent, 10_000),
    key("max", Unit::Percent, 10_000),
];
const MODEL: &[Key] = &[
    key("ctrl", Unit::Word(&["auto", "user"]), 1),
    key("model", Unit::Word(&["linear"]), 1),
    key("rbps", Unit::Bytes, u64::MAX - 1),
    key("rseqiops", Unit::Count, u64::MAX - 1),
    key("rrandiops", Unit::Count, u64::MAX - 1),
    key("wbps", Unit::Bytes, u64::MAX - 1),
    key("wseqiops", Unit::Count, u64::MAX - 1),
    key("wrandiops", Unit::Count, u64::MAX - 1),
];
const PRIO: Binding = Binding {
    codec: Codec::Word,
    reach: Reach::Machine("requests of the real-time class go before those of all other groups"),
    since: "5.14",
    source: "admin-guide/cgroup-v2.rst, IO Priority",
    ..V2
};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "io.max",
        controller: Controller::Io,
        doc: "Most bytes (rbps, wbps) and operations (riops, wiops) per second that the group may read and write, by block device; for a partition the whole disk is meant",
        kind: Kind::PerDevice(THROTTLE),
        access: ReadWrite,
        example: "8:16 riops=10 wbps=1M",
        v1: Has(Binding {
            files: &[
                "blkio.throttle.read_bps_device",
                "blkio.throttle.write_bps_device",
                "blkio.throttle.read_iops_device",
                "blkio.throttle.write_iops_device",
            ],
            codec: Codec::DeviceFiles,
            out_of_range: OutOfRange::Misread("the kernel cuts larger numbers off, and reads 1M as 1"),
            fidelity: Fidelity::Approximate(
                "writes through the page cache escape v1's limits; direct and synchronous ones do not",
            ),
            since: "2.6.37",
            ..V1
        }),
        v2: Has(Binding {
            files: &["io.max"],
            codec: Codec::DeviceKeys,
            unit_property: by_key(
                "IOReadBandwidthMax",
                &[
                    ("rbps", "IOReadBandwidthMax"),
                    ("wbps", "IOWriteBandwidthMax"),
                    ("riops", "IOReadIOPSMax"),
                    ("wiops", "IOWriteIOPSMax"),
                ],
            ),
            out_of_range: OutOfRange::Misread(
                "the kernel takes more operations than 32 bits hold as no limit",
            ),
            ..V2
        }),
    },
    Setting {
        name: "io.weight",
        controller: Controller::Io,
        doc: "Share of a device's time relative to sibling groups, 100 by default. Without effect unless the device has iocost (io.cost.qos enable=1) or, on old kernels, CFQ",
        kind: Kind::Weights,
        access: ReadWrite,
        example: "200; 8:16 50",
        v1: Has(Binding {
            reach: SHARE,
            files: &["blkio.weight", "blkio.weight_device"],
            codec: Codec::WeightFiles { default: 500, min: 10, max: 1000 },
            range: between(10, 1000),
            read_back: ReadBack::Rescaled("500 is a weight of 100"),
            fidelity: Fidelity::Approximate(
                "with the CFQ scheduler, which left in kernel 5.0, and 20 to 1 at most; io.bfq.weight has taken its place",
            ),
            since: "2.6.33",
            at_root: false,
            ..V1
        }),
        v2: Has(Binding {
            reach: SHARE,
            files: &["io.weight"],
            codec: Codec::Weights,
            unit_property: Some(UnitProperty {
                name: "IOWeight",
                form: Form::Weights { device: "IODeviceWeight" },
            }),
            range: between(1, 10_000),
            read_back: ReadBack::Rounded("to a whole weight"),
            ..V2
        }),
    },
    Setting {
        name: "io.bfq.weight",
        controller: Controller::Io,
        doc: "Share of a device's time relative to sibling groups, 100 by default, on devices with the BFQ scheduler",
        kind: Kind::Weights,
        access: ReadWrite,
        example: "200; 8:16 50",
        v1: Has(Binding {
            reach: SHARE,
            files: &["blkio.bfq.weight", "blkio.bfq.weight_device"],
            codec: Codec::WeightFiles { default: 100, min: 1, max: 1000 },
            range: between(1, 1000),
            read_back: ReadBack::Rounded("to a whole weight"),
            since: "4.12",
            at_root: false,
            source: "block/bfq-iosched.rst, section 4; block/bfq-cgroup.c",
            ..V1
        }),
        v2: Has(Binding {
            reach: SHARE,
            files: &["io.bfq.weight"],
            codec: Codec::Weights,
            range: between(1, 1000),
            read_back: ReadBack::Rounded("to a whole weight"),
            since: "4.12",
            source: "block/bfq-iosched.rst, section 4; block/bfq-cgroup.c",
            ..V2
        }),
    },
    Setting {
        name: "io.latency",
        controller: Controller::Io,
        doc: "Time in which the group's operations on a device shall be done; sibling groups with a longer target are slowed down while they are not",
        kind: Kind::PerDevice(LATENCY),
        access: ReadWrite,
        example: "8:16 target=10ms",
        v1: lacks("limit the other groups with io.max"),
        v2: Has(Binding {
            reach: Reach::Beside("groups beside it are slowed down until the target is met"),
            files: &["io.latency"],
            codec: Codec::DeviceKeys,
            unit_property: by_key("IODeviceLatencyTargetSec", &[("target", "IODeviceLatencyTargetSec")]),
            since: "4.19",
            source: "admin-guide/cgroup-v2.rst, IO Latency Interface Files",
            ..V2
        }),
    },
    Setting {
        name: "io.prio.class",
        controller: Controller::Io,
        doc: "How the I/O priority class of the group's requests is changed",
        kind: Kind::Word(&["no-change", "promote-to-rt", "restrict-to-be", "idle", "none-to-rt"]),
        access: ReadWrite,
        example: "idle",
        v1: Has(Binding { files: &["blkio.prio.class"], ..PRIO }),
        v2: Has(Binding { files: &["io.prio.class"], ..PRIO }),
    },
    Setting {
        name: "io.cost.qos",
        controller: Controller::Io,
        doc: "Switches io.weight on for a device (enable=1) and says when it is saturated; in the root group only",
        kind: Kind::Keyed(QOS),
        access: ReadWrite,
        example: "8:16 enable=1 ctrl=user rpct=95 rlat=75ms wpct=95 wlat=150ms",
        v1: lacks("v1 has no iocost: use io.bfq.weight with the BFQ scheduler"),
        v2: Has(Binding { files: &["io.cost.qos"], ..COST }),
    },
    Setting {
        name: "io.cost.model",
        controller: Controller::Io,
        doc: "What operations cost on a device, for io.cost.qos; in the root group only",
        kind: Kind::Keyed(MODEL),
        access: ReadWrite,
        example: "8:16 ctrl=user model=linear rbps=500M rseqiops=50000 rrandiops=40000 wbps=400M wseqiops=40000 wrandiops=30000",
        v1: lacks("v1 has no iocost: use io.bfq.weight with the BFQ scheduler"),
        v2: Has(Binding { files: &["io.cost.model"], ..COST }),
    },
];
