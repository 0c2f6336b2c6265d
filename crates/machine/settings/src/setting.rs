//! The shape of a row of the table: a setting, its two sides (cgroup v1 and v2), and how a side's files hold its
//! value. Data only; what the codecs mean is in `encode` and `decode`.

use std::fmt;

use crate::laws::{Order, Pair};

/// A version of the cgroup interface. A host may have both at once (hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// One hierarchy per controller or set of controllers.
    V1,
    /// The unified hierarchy.
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::V1 => "v1",
            Version::V2 => "v2",
        })
    }
}

/// What divides one resource; `Core` stands for the files every group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the kernel's names; `name` gives them, `doc` says what each does")]
pub enum Controller {
    Core,
    Cpu,
    Cpuacct,
    Cpuset,
    Memory,
    /// Called `blkio` on v1.
    Io,
    Pids,
    Devices,
    Freezer,
    Hugetlb,
    NetCls,
    NetPrio,
    PerfEvent,
    Rdma,
    Misc,
}

impl Controller {
    /// All, in the order of the documentation.
    pub const ALL: [Controller; 15] = [
        Controller::Cpu,
        Controller::Cpuset,
        Controller::Cpuacct,
        Controller::Memory,
        Controller::Io,
        Controller::Pids,
        Controller::Devices,
        Controller::Freezer,
        Controller::Hugetlb,
        Controller::NetCls,
        Controller::NetPrio,
        Controller::PerfEvent,
        Controller::Rdma,
        Controller::Misc,
        Controller::Core,
    ];

    /// The kernel's name: as mounted on v1, as listed in `cgroup.controllers` on v2. `None` where that version
    /// has no such controller: on v2 freezing, CPU accounting, device access and perf events belong to every
    /// group, and network classes are matched by nftables.
    pub fn name(self, version: Version) -> Option<&'static str> {
        let v1_only = |name| (version == Version::V1).then_some(name);
        match self {
            Controller::Core => None,
            Controller::Cpu => Some("cpu"),
            Controller::Cpuset => Some("cpuset"),
            Controller::Memory => Some("memory"),
            Controller::Io if version == Version::V1 => Some("blkio"),
            Controller::Io => Some("io"),
            Controller::Pids => Some("pids"),
            Controller::Hugetlb => Some("hugetlb"),
            Controller::Rdma => Some("rdma"),
            Controller::Misc => Some("misc"),
            Controller::Cpuacct => v1_only("cpuacct"),
            Controller::Devices => v1_only("devices"),
            Controller::Freezer => v1_only("freezer"),
            Controller::NetCls => v1_only("net_cls"),
            Controller::NetPrio => v1_only("net_prio"),
            Controller::PerfEvent => v1_only("perf_event"),
        }
    }

    /// What it divides, in a line; where a version has none, how that version does it.
    pub fn doc(self) -> &'static str {
        match self {
            Controller::Cpu => "CPU time: shares, quotas, real-time budgets (v1)",
            Controller::Cpuset => {
                "CPUs and NUMA nodes: which ones the group's tasks may use, alone or with others"
            }
            Controller::Cpuacct => "CPU time used; on v2 every group counts it in cpu.stat",
            Controller::Memory => "Memory and swap: limits, protection, what it is used for",
            Controller::Io => "Block devices: limits, weights, latency targets; called blkio on v1",
            Controller::Pids => "The number of tasks",
            Controller::Devices => "Access to devices; on v2 by a BPF program on the group",
            Controller::Freezer => "Stopping all tasks; on v2 every group can",
            Controller::Hugetlb => {
                "Huge pages, by size; <size> stands for 2MB, 1GB or another size the machine has"
            }
            Controller::NetCls => "Class of network packets; on v2 nftables matches the group itself",
            Controller::NetPrio => "Priority of network packets; on v2 nftables sets it for the group itself",
            Controller::PerfEvent => {
                "Lets `perf stat -G` count events by group. It has no settings; on v2 every group can be counted"
            }
            Controller::Rdma => "Handles and objects of RDMA devices",
            Controller::Misc => "Resources that are merely counted",
            Controller::Core => "What every group has",
        }
    }

    /// The controller that either version calls `name`.
    pub fn from_name(name: &str) -> Option<Controller> {
        Controller::ALL.into_iter().find(|controller| {
            [Version::V1, Version::V2].iter().any(|&version| controller.name(version) == Some(name))
        })
    }
}

/// One thing that can be set on or read from a group.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Setting {
    /// The kernel's v2 name; the v1 name where only v1 has it. `<size>` stands for a huge page size (`2MB`).
    pub name: &'static str,
    /// What it belongs to, for people; [`Binding::controller`] says which controller has it in a version.
    pub controller: Controller,
    /// What it does, one or two sentences without the last full stop.
    pub doc: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What can be done with it.
    pub access: Access,
    /// A value that may be given; empty if it can't be set.
    pub example: &'static str,
    /// On cgroup v1.
    pub v1: Side,
    /// On cgroup v2.
    pub v2: Side,
}

impl Setting {
    /// Is it a count that can be set to zero and to nothing else?
    pub fn is_counter(&self) -> bool {
        [&self.v1, &self.v2]
            .iter()
            .filter_map(|side| side.binding())
            .any(|binding| binding.codec == Codec::Reset)
    }

    /// The property of a systemd unit that means the same.
    pub fn unit_property(&self) -> Option<&'static str> {
        let property = |side: &Side| side.binding()?.unit_property;
        [&self.v2, &self.v1].into_iter().find_map(property).map(|property| property.name)
    }

    /// Can it be read and given another value?
    pub fn can_be_set(&self) -> bool {
        self.access == Access::ReadWrite && !self.is_counter()
    }

    /// What `version` has of it.
    pub fn side(&'static self, version: Version) -> &'static Side {
        match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        }
    }
}

/// What can be done with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read only.
    Read,
    /// Write only: an action, such as killing.
    Write,
    /// Both.
    ReadWrite,
    /// Read; changed by what this names, not by setting it.
    Command(&'static str),
}

/// What a setting's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// On or off.
    Flag,
    /// A whole number that may be negative.
    Number,
    /// A number of things, or `max`.
    Count,
    /// An amount of memory or data, or `max`.
    Bytes,
    /// A duration, or `max`.
    Micros,
    /// CPU time used, in nanoseconds.
    CpuTime,
    /// A percentage with at most two decimals, or `max`.
    Percent,
    /// A share relative to siblings, 100 by default.
    Weight,
    /// CPU time per period.
    CpuMax,
    /// A list of CPUs.
    Cpus,
    /// A list of NUMA nodes.
    Nodes,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Limits per block device, under these keys.
    PerDevice(&'static [Key]),
    /// A weight, and other weights for single block devices.
    Weights,
    /// Device access rules.
    Rules,
    /// A network class, `major:minor` in hexadecimal.
    ClassId,
    /// A table by name (of a resource, a device, an interface), each with one value (key `""`) or these keys.
    Keyed(&'static [Key]),
    /// Text of the kernel, as it is.
    Text,
}

/// One key of a keyed value (`rbps=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Key {
    /// The kernel's name of it on v2.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The largest number below "no limit".
    pub max: u64,
}

/// What the number of a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes, or bytes per second.
    Bytes,
    /// Microseconds.
    Micros,
    /// Per cent with at most two decimals.
    Percent,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// What one version has of a setting.
#[derive(Debug, Clone, Copy, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "rows are constants, and nothing moves one")]
pub enum Side {
    /// It is there.
    Has(Binding),
    /// It is not.
    Lacks {
        /// What to use instead, in words, with the setting's name.
        instead: &'static str,
    },
}

impl Side {
    /// The binding, if this version has the setting.
    pub const fn binding(&self) -> Option<&Binding> {
        match self {
            Side::Has(binding) => Some(binding),
            Side::Lacks { .. } => None,
        }
    }
}

/// How one version holds a setting.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Binding {
    /// The files that hold it, the main one first. `<size>` as in [`Setting::name`].
    pub files: &'static [&'static str],
    /// How they hold it; of no concern to programs that read the table as JSON.
    #[serde(skip)]
    pub codec: Codec,
    /// The controller whose files they are on this version.
    pub controller: Controller,
    /// The numbers the kernel documents for the main file, in that file's unit.
    pub range: Range,
    /// What the kernel does with other numbers.
    pub out_of_range: OutOfRange,
    /// How a written value reads back.
    pub read_back: ReadBack,
    /// The first kernel that has it (`5.14`).
    pub since: &'static str,
    /// Whether it does what the setting's documentation says.
    pub fidelity: Fidelity,
    /// Does the hierarchy's root group have the files too?
    pub at_root: bool,
    /// What the files of a new group have, where that is the same on every machine.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub initial: &'static [&'static str],
    /// When they are written among the others of a group, where that matters.
    #[serde(skip)]
    pub order: Option<Order>,
    /// The kernel's rule between the main file and another one.
    #[serde(skip)]
    pub pair: Option<Pair>,
    /// Files that a write changes as well, so that putting the written one back is not enough.
    #[serde(skip)]
    pub changes: &'static [&'static str],
    /// The file with the use that has to fall before this limit can be lower.
    #[serde(skip)]
    pub usage: Option<&'static str>,
    /// Whose resources a write changes.
    pub reach: Reach,
    /// The property of a systemd unit that means the same (systemd.resource-control(5)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_property: Option<UnitProperty>,
    /// Kernel document and section, or source file.
    pub source: &'static str,
}

/// The property of a unit that means the same (systemd.resource-control(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitProperty {
    /// As a unit's file has it.
    pub name: &'static str,
    /// How it says the value.
    pub form: Form,
}

/// How a property says a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the file does, with `infinity` for `max`.
    Same,
    /// The file's list; systemd adds up those of several lines, and takes them back at an empty one.
    List,
    /// A share of one CPU, with a second property for the period.
    Quota,
    /// The default as the file does, and each device's weight by another property.
    Weights {
        /// That property.
        device: &'static str,
    },
    /// A property for each key of a device's line.
    Devices(&'static [(&'static str, &'static str)]),
}

impl serde::Serialize for UnitProperty {
    /// Its name.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

/// The numbers that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Range {
    /// All that the kind allows.
    Any,
    /// From `min` to `max`, both included; "no limit" is not counted.
    Between {
        /// The smallest.
        min: i64,
        /// The largest.
        max: u64,
    },
}

/// What the kernel does with a number out of the range, if it were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutOfRange {
    /// The write fails.
    Refused,
    /// It takes the nearest number without a word. Under the name of such a file, any number is accepted here too.
    Clamped,
    /// It takes another number without a word, as this text says.
    Misread(&'static str),
}

/// How a written value reads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBack {
    /// As it was written.
    Same,
    /// Rounded, as this text says.
    Rounded(&'static str),
    /// In another scale than the setting's own, as this text says.
    Rescaled(&'static str),
    /// Not at all.
    Never,
}

/// Whether a version does what the setting's documentation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// It does.
    Exact,
    /// Nearly; the difference in words.
    Approximate(&'static str),
}

/// Whose resources a write changes. It decides which files of a group its `admin` gets, and what he may change over the
/// daemon's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The group's and those of groups below it: what the groups above allow them bounds it.
    Own,
    /// It divides what the group above has: the groups beside it get more or less. The text says how.
    Beside(&'static str),
    /// Those of any task of the machine. The text says how.
    Machine(&'static str),
}

/// How files hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// The kernel's own text or number; can't be written.
    Text,
    /// A line of text.
    Line,
    /// For programs that register an eventfd; neither read nor written here.
    Eventfd,
    /// `io.stat`, made of v1's bytes in the first file and operations in the second.
    IoStat,
    /// `0` or `1`.
    Flag,
    /// Two words for off and on.
    FlagWords {
        /// Off.
        off: &'static str,
        /// On.
        on: &'static str,
    },
    /// A flag in a file of `key value` lines, written alone.
    FlagInStat(&'static str),
    /// A whole number.
    Number,
    /// A number in the kind's unit, or a word for no limit.
    Amount {
        /// The word.
        unlimited: &'static str,
    },
    /// Zero resets it, nothing else can be written.
    Reset,
    /// A percentage with two decimals, or `max`.
    Percent,
    /// A whole number of the setting's own scale.
    Weight,
    /// A whole number of another scale: `default` there for 100 here.
    WeightScaled {
        /// 100 on that scale.
        default: u64,
    },
    /// `QUOTA PERIOD` in one file.
    CpuMax,
    /// Quota (`-1` for no limit) and period in a file each.
    CpuQuota,
    /// A list of CPUs or nodes.
    List,
    /// A word.
    Word,
    /// A flag for two of the words; the others are not possible.
    WordFlag {
        /// The word for `0`.
        off: &'static str,
        /// The word for `1`.
        on: &'static str,
    },
    /// `MAJOR:MINOR key=value …`, one device a line.
    DeviceKeys,
    /// `MAJOR:MINOR value`, one device a line, a file per key in the kind's order; `0` for no limit.
    DeviceFiles,
    /// `default W` and `MAJOR:MINOR W` in one file.
    Weights,
    /// A default weight in the first file, devices in the second; 100 is `default` there.
    WeightFiles {
        /// 100 on that scale.
        default: u64,
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// The file holds memory plus swap, the setting swap alone; the second file is the memory limit.
    MemoryPlusSwap,
    /// The setting is memory plus swap, the file holds swap alone; the second file is the memory limit.
    SwapAlone,
    /// What to reclaim, in bytes; the second file has the use.
    Reclaim,
    /// Any write reclaims all it can.
    ReclaimAll,
    /// One field of a `key value` file, multiplied.
    StatField {
        /// The key.
        key: &'static str,
        /// What to multiply by.
        scale: u64,
    },
    /// The user and system times of `cpu.stat`, as v1 printed them in `cpuacct.stat`.
    UserSystem,
    /// One device access rule a write.
    DeviceRules,
    /// No file: a BPF program attached to the group (`BPF_CGROUP_DEVICE`). Nothing here can encode it.
    DeviceProgram,
    /// A 32-bit number, `0xMMMMmmmm`.
    ClassId,
    /// `name value` or `name key=value …`, one name a line.
    Keyed,
}
