//! Groups, their figures and settings, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{machine::Bounds, value::Value};

/// A group, without its figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GroupInfo {
    /// Its name, such as db/oltp1; / is the root.
    pub group: String,
    /// The name's last part.
    pub label: String,
    /// The group above it.
    pub parent: Option<String>,
    /// How many groups are above it.
    pub depth: usize,
    /// The unit of systemd whose group it is.
    pub unit: Option<String>,
    /// Controllers of v1 hierarchies, or `unified`.
    pub hierarchies: Vec<String>,
    /// CPUs as the kernel lists them, such as 0-3,8; may be empty.
    pub cpus: Option<String>,
    /// Its bounds, if its CPUs change with its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<Bounds>,
}

/// The groups as a tree, in its order: a group comes before those below it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Groups {
    /// As Sample.groups_version.
    pub version: u64,
    /// The groups.
    pub groups: Vec<GroupInfo>,
}

/// A column of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// As ringfence fields lists it, such as cpu.usage.
    pub name: String,
    /// Of its numbers.
    pub unit: ColumnUnit,
    /// What it is.
    pub help: String,
}

/// A group's figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GroupRow {
    /// The group.
    pub group: String,
    /// One for each column.
    pub values: Vec<Value>,
}

/// A node's memory now, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NodeMemory {
    /// Its number.
    pub id: usize,
    /// All.
    pub total: Option<f64>,
    /// Unused.
    pub free: Option<f64>,
    /// Caches of files.
    pub file: Option<f64>,
}

/// Share of the time in which some task waited, 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pressure {
    /// For a CPU.
    pub cpu: Option<f64>,
    /// For memory.
    pub memory: Option<f64>,
    /// For I/O.
    pub io: Option<f64>,
}

/// The machine's figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MachineSample {
    /// Busy share of each CPU, 0 to 1, in the order of Machine.cpus.
    pub cpus: Vec<Option<f64>>,
    /// Interrupts per second of each CPU, in the same order.
    pub interrupts: Vec<Option<f64>>,
    /// By NUMA node.
    pub nodes: Vec<NodeMemory>,
    /// Tasks that run or wait, averaged over a minute.
    pub load: Option<f64>,
    /// Bytes.
    pub memory_total: Option<f64>,
    /// Bytes.
    pub memory_available: Option<f64>,
    /// Swap space in bytes.
    pub swap_total: Option<f64>,
    /// Unused swap space in bytes.
    pub swap_free: Option<f64>,
    /// Waiting.
    pub pressure: Pressure,
}

/// One moment: the running kernel's, or the log's.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Sample {
    /// Counts samples; 0 of the log.
    pub seq: u64,
    /// When it was taken; milliseconds since 1970 by the host's clock.
    pub at_ms: Option<u64>,
    /// Milliseconds since 1970 by the host's clock.
    pub now_ms: u64,
    /// From where.
    pub source: SampleSource,
    /// Time between live samples.
    pub interval_ms: u64,
    /// Changes when somebody has other CPUs: get /api/owners again.
    pub owners_version: u64,
    /// Changes when groups come or go: get /api/groups again.
    pub groups_version: u64,
    /// The machine.
    pub machine: MachineSample,
    /// What the values are.
    pub columns: Vec<Column>,
    /// As a tree, in its order.
    pub rows: Vec<GroupRow>,
    /// What the figures do not say.
    pub notes: Vec<String>,
    /// Of the log: what is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_problem: Option<String>,
}

/// A setting on one version of cgroups.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// The files.
    pub files: Vec<String>,
    /// In words.
    pub range: Option<String>,
    /// What a new group has.
    pub default: Option<String>,
    /// How it differs from the setting's meaning.
    pub fidelity: Option<String>,
}

/// A setting of a group and its value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SettingInfo {
    /// Its name.
    pub name: String,
    /// As ringfence get shows it and set takes it.
    pub value: String,
    /// Which controller it belongs to.
    pub controller: String,
    /// Such as bytes, cpus, flag, share.
    pub kind: String,
    /// What it does.
    pub help: String,
    /// A value that it takes.
    pub example: String,
    /// Of the value, if it is a number.
    pub unit: Option<String>,
    /// In words, on the version that this group has.
    pub range: Option<String>,
    /// The words that it takes, if it takes only these.
    pub choices: Vec<String>,
    /// Can it be changed.
    pub can_set: bool,
    /// The file that has it.
    pub file: String,
    /// On cgroup v1.
    pub v1: Option<Side>,
    /// On cgroup v2.
    pub v2: Option<Side>,
}

/// A task (a thread) of the group or of those below it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Task {
    /// The thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// R, S, D, ….
    pub state: String,
    /// Of scheduling, such as other, fifo 50.
    pub policy: String,
    /// That it ran on last.
    pub cpu: usize,
    /// At the looks before this one, the oldest first.
    pub cpus_before: Vec<usize>,
    /// Share of the time since the last look.
    pub running: Option<f64>,
    /// Share of the time in which it waited for a CPU.
    pub waiting: Option<f64>,
    /// The group.
    pub group: String,
}

/// How often a limit was met since the group was made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitCount {
    /// Its name.
    pub name: String,
    /// What that means.
    pub meaning: String,
    /// How often.
    pub count: u64,
}

/// A change of an elastic group's CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Resize {
    /// Milliseconds since 1970 by the host's clock.
    pub at_ms: u64,
    /// In words.
    pub sentence: String,
}

/// A process of the group, or of one below it, that the kernel killed for want of memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Kill {
    /// Milliseconds since 1970 by the host's clock.
    pub at_ms: u64,
    /// In words.
    pub sentence: String,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// The group.
    pub group: String,
    /// The unit of systemd that it is.
    pub unit: Option<String>,
    /// Where it is: the controllers of v1 hierarchies, or `unified`.
    pub hierarchies: Vec<String>,
    /// All that can be set.
    pub settings: Vec<SettingInfo>,
    /// How often its limits were met.
    pub limits: Vec<LimitCount>,
    /// At most 500.
    pub tasks: Vec<Task>,
    /// How many there are.
    pub tasks_total: usize,
    /// The last ones, the newest last.
    pub resizes: Vec<Resize>,
    /// The last processes that were killed for want of memory, the newest last.
    pub kills: Vec<Kill>,
}

/// A figure behind a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// Its name.
    pub name: String,
    /// With its unit.
    pub text: String,
}

/// One thing that slowed the group down.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cause {
    /// As ringfence why --help lists them.
    pub kind: String,
    /// The group whose setting or work it is.
    pub at: String,
    /// In words.
    pub sentence: String,
    /// Part of all that the tasks used and lost, 0 to 1.
    pub share: Option<f64>,
    /// The figures behind it.
    pub numbers: Vec<Number>,
    /// The command that changes it.
    pub hint: Option<String>,
    /// Where equals contend: commands, of which at most one is carried out.
    pub choices: Vec<String>,
}

/// What did not slow it down now, and would with other work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhyNote {
    /// In words.
    pub sentence: String,
    /// What would change it.
    pub hint: Option<String>,
}

/// What slowed a group down.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Why {
    /// The group.
    pub group: String,
    /// How long, in seconds.
    pub seconds: f64,
    /// How many tasks it has.
    pub tasks: usize,
    /// What it used.
    pub used: Vec<Number>,
    /// The worst first; empty: nothing did.
    pub causes: Vec<Cause>,
    /// What to know beside.
    pub notes: Vec<WhyNote>,
    /// All of it as ringfence why prints it.
    pub text: String,
    /// The command that answers the same.
    pub command: String,
}

/// Settings to change, and what the page showed before.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Values by setting, as ringfence set takes them.
    pub set: BTreeMap<String, String>,
    /// Values that the page showed: another value now is a conflict (409), and nothing is changed.
    #[serde(default)]
    pub expected: BTreeMap<String, String>,
    /// ChangePlan.generation: another one is in the history now: conflict (409), and nothing is changed.
    #[serde(default)]
    pub expected_generation: Option<u32>,
}

/// One write to a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Write {
    /// The file.
    pub file: String,
    /// The text.
    pub text: String,
    /// Why.
    pub why: Option<String>,
}

/// What a change would write.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangePlan {
    /// The group.
    pub group: String,
    /// In order.
    pub writes: Vec<Write>,
    /// What to know of it before.
    pub notes: Vec<String>,
    /// The values now: send them back as `expected`.
    pub before: BTreeMap<String, String>,
    /// The newest one in the history: send it back as expected_generation; null for who may not read it.
    pub generation: Option<u32>,
    /// That does the same.
    pub command: String,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// The group.
    pub group: String,
    /// Who wrote it.
    pub by: ChangedBy,
    /// The values now.
    pub values: BTreeMap<String, String>,
    /// What is written, in order.
    pub writes: Vec<Write>,
    /// What the kernel made of it.
    pub notes: Vec<String>,
    /// That ringfence undo takes back; null where none was recorded.
    pub generation: Option<u32>,
    /// The command that does the same.
    pub command: String,
}

/// The recorder's log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Log {
    /// Where.
    pub directory: String,
    /// Milliseconds since 1970 by the host's clock.
    pub begins_ms: Option<u64>,
    /// Milliseconds since 1970 by the host's clock.
    pub ends_ms: Option<u64>,
    /// Why there is none to read, or what is damaged in it.
    pub problem: Option<String>,
    /// Such as ringfence record.
    pub hint: Option<String>,
}

/// Figures over time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// When; milliseconds since 1970 by the host's clock.
    pub at_ms: Vec<u64>,
    /// A list for each figure, as long as at_ms.
    pub values: BTreeMap<String, Vec<Value>>,
    /// What the values are.
    pub columns: Vec<Column>,
    /// What of the log is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// From where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleSource {
    /// The running kernel.
    Live,
    /// The recorder's log.
    Log,
}

/// Who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    /// This program itself.
    Ringfence,
    /// The daemon, as the user lacks the right.
    Ringfenced,
}

/// What a column's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnUnit {
    /// CPUs: 1 is one CPU.
    Cpus,
    /// Shares, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Things per second.
    PerSecond,
    /// Things.
    Count,
    /// Seconds.
    Seconds,
    /// 0 or 1.
    Flag,
    /// Words.
    Reason,
}
