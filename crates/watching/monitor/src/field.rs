//! What a figure is: its name, its unit, and the file, key and scale that give it on cgroup v1 and v2. Data only;
//! the rows are in `group_fields` and `machine_fields`, what a shape means to a reader in `parse`.

use settings::{Controller, DeviceNumber, Version};

/// One figure of a group or of the machine. The rows feed sampling, rates, dump, metrics, the log and
/// `docs/fields.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Field {
    /// Its name, `resource.figure`; the kernel's word where there is one.
    pub name: &'static str,
    /// What the stored number counts.
    pub unit: Unit,
    /// Whether it only grows, is as it is, or bounds something.
    pub kind: Kind,
    /// Whether there are several of it.
    pub per: Per,
    /// What it is, one or two sentences without the last full stop.
    pub help: &'static str,
    /// Where it is read.
    pub from: From,
}

impl Field {
    /// The file that gives it for a group on `version`; `None` for the machine's figures.
    pub fn side(&self, version: Version) -> Option<&Side> {
        match (&self.from, version) {
            (From::Group { v1, .. }, Version::V1) => v1.as_ref(),
            (From::Group { v2, .. }, Version::V2) => v2.as_ref(),
            (From::Machine(_), _) => None,
        }
    }

    /// What its number says in words, for a figure that is one of several reasons; `None` where nothing is wrong, and for
    /// other fields.
    pub fn reason(&self, number: u64) -> Option<&'static str> {
        let From::Group { v2: Some(side), .. } = &self.from else { return None };
        let Shape::Invalid(reasons) = side.source.shape else { return None };
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        Some(
            reasons.get(place).copied().unwrap_or("invalid, and this version of Ringfence does not know why"),
        )
    }

    /// Is it the machine's?
    pub fn is_of_machine(&self) -> bool {
        matches!(self.from, From::Machine(_))
    }
}

/// What a stored number counts. Numbers are whole: a kernel's microseconds or pages are multiplied, never divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Hundredths of a thing, as the kernel prints the load.
    Hundredths,
    /// 0 or 1.
    Flag,
}

/// How a number behaves over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It only grows, unless it is set back: a difference of two readings has a meaning.
    Counter,
    /// It is what it is now.
    Gauge,
    /// A bound that was set, or none.
    Limit,
}

/// What distinguishes the figures of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// There is one.
    One,
    /// One per CPU.
    Cpu,
    /// One per NUMA node.
    Node,
    /// One per block device that was used.
    Device,
}

/// How often a figure is read. The numbers are the log's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// With every sample, by a descriptor that stays open.
    Tick = 0,
    /// Less often than [`Pace::Slow`], by opening the file: it costs the kernel more.
    Slow = 1,
    /// With every sixth of those: it changes only when somebody changes it.
    Seldom = 2,
}

impl Per {
    /// The name of the label that distinguishes them; `None` where there is one.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Per::One => None,
            Per::Cpu => Some("cpu"),
            Per::Node => Some("node"),
            Per::Device => Some("device"),
        }
    }
}

/// Where a figure is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// In a group's directory.
    Group {
        /// On cgroup v1, if that has it.
        v1: Option<Side>,
        /// On cgroup v2, if that has it.
        v2: Option<Side>,
    },
    /// In a file outside of cgroups; `<N>` stands for a node's number.
    Machine(Source),
}

/// What one version has of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Side {
    /// The controller whose file it is on this version.
    pub controller: Controller,
    /// The file.
    pub source: Source,
}

/// A figure's place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Source {
    /// The file's name, or its path for the machine's.
    pub file: &'static str,
    /// Where in it.
    pub shape: Shape,
    /// What the file's number is multiplied by to have the field's unit.
    pub scale: u64,
    /// How often it is read.
    pub pace: Pace,
}

/// Where in a file a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// The file is the number, or a word or number for no limit.
    Number,
    /// This word of the first line, from 0.
    Word(usize),
    /// This word of the first line, with two decimals.
    Decimal(usize),
    /// `key value`, one a line.
    Keyed(&'static str),
    /// `Node 0 key value`, one a line.
    NodeKeyed(&'static str),
    /// `some avg10=… total=N`: the total of the line that starts so, in microseconds.
    Pressure(&'static str),
    /// `8:16 key=value …`, one device a line.
    DeviceKey(&'static str),
    /// `8:16 Operation value`, one a line.
    DeviceOperation(&'static str),
    /// `key N0=value N1=value`, one key a line; v1 writes `key=total N0=…`.
    Nodes(&'static str),
    /// Numbers of all CPUs in one line.
    CpuList,
    /// `cpuN` and numbers: this one of them, from 0.
    CpuLine(usize),
    /// A table with a column per CPU, named in the first line: each column's sum.
    CpuColumns,
    /// How many numbers a list such as `0-3,8` names.
    ListLength,
    /// 1 if the first line begins with one of these words and does not say `invalid`.
    Is(&'static [&'static str]),
    /// Of `word invalid (reason)`: which of these reasons it is, from 1; one more than there are for any other; 0 where
    /// nothing is invalid.
    Invalid(&'static [&'static str]),
}

impl Shape {
    /// The key, for people.
    pub fn key(&self) -> String {
        match self {
            Shape::Number => String::new(),
            Shape::Word(index) | Shape::Decimal(index) => format!("word {}", index + 1),
            Shape::Keyed(key)
            | Shape::NodeKeyed(key)
            | Shape::DeviceKey(key)
            | Shape::DeviceOperation(key) => (*key).to_owned(),
            Shape::Nodes(key) => format!("{key} N<N>"),
            Shape::Pressure(line) => format!("{line} total"),
            Shape::CpuList => "by CPU".to_owned(),
            Shape::CpuLine(index) => format!("cpu<N>, number {}", index + 1),
            Shape::CpuColumns => "sum of a CPU's column".to_owned(),
            Shape::ListLength => "how many".to_owned(),
            Shape::Is(words) => words.join(" or "),
            Shape::Invalid(_) => "invalid (reason)".to_owned(),
        }
    }
}

/// Which of several figures of one field it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instance {
    /// The only one.
    One,
    /// A CPU's.
    Cpu(u32),
    /// A NUMA node's.
    Node(u32),
    /// A block device's.
    Device(DeviceNumber),
}

impl Instance {
    /// What a label of it is called; `None` for the only one.
    pub fn label(&self) -> Option<&'static str> {
        match self {
            Instance::One => None,
            Instance::Cpu(_) => Some("cpu"),
            Instance::Node(_) => Some("node"),
            Instance::Device(_) => Some("device"),
        }
    }
}

impl std::fmt::Display for Instance {
    /// Empty for the only one; else the number, `8:16` for a device.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Instance::One => Ok(()),
            Instance::Cpu(id) | Instance::Node(id) => id.fmt(f),
            Instance::Device(number) => number.fmt(f),
        }
    }
}
