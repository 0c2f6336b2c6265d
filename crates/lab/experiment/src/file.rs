//! The experiment file: workloads, the groups they run in, the conditions and loads that are compared, what is
//! measured, and how often. Times are written as people write them (`30s`, `2min`); names are the user's.

mod drivers; // which program a workload is
mod shown; // what is said of the runs

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use drivers::{
    Busy, Command, Cyclic, Driver, Fio, LogicalIo, Oltp, Pgbench, Read, Rtla, Tool, Workload, Writers,
};
pub use shown::{Chart, ChartKind, Comparison, Ideal, Line, Meaning, Published, Table, TableKind};

/// An experiment as its file says it (TOML). Unknown keys are errors ([`crate::read`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")] // serde can't refuse unknown keys beside `flatten`: `read` does
#[schemars(deny_unknown_fields)]
pub struct Experiment {
    /// Letters, digits and `-`: the result directory is named after it.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What is requested, what is expected, and where it was published; blank lines separate paragraphs.
    #[serde(default)]
    pub about: String,
    /// How often and how long.
    #[serde(flatten)]
    pub lengths: Lengths,
    /// Instead of these with `--quick`.
    #[serde(default)]
    pub quick: Lengths,
    /// When a run counts.
    #[serde(default)]
    pub gates: Gates,
    /// The machine that the study had: CPU counts are rescaled from it to this machine.
    pub machine: Option<StudyMachine>,
    /// Sets of CPUs by name: `{name}` in a setting's value stands for the set.
    #[serde(default)]
    pub cpus: BTreeMap<String, Cpus>,
    /// What all runs need beside groups: a loop device, a swap file.
    #[serde(default)]
    pub device: BTreeMap<String, Device>,
    /// Groups that the lab makes and removes, with the settings that hold in every condition.
    #[serde(default)]
    pub group: BTreeMap<String, Settings>,
    /// The group whose CPUs the rest of the system's processes are moved to, with `--move-others`, while another group
    /// has CPUs of its own (`cpuset.cpus.partition`).
    pub others: Option<String>,
    /// What is measured, by name.
    pub workload: BTreeMap<String, Workload>,
    /// What is compared.
    pub condition: Vec<Condition>,
    /// Disturbances; without any, every condition is run undisturbed alone.
    #[serde(default)]
    pub load: Vec<Load>,
    /// Changes of settings in the middle of runs.
    #[serde(default)]
    pub event: Vec<Event>,
    /// The figures; the first is the one that the summary opens with.
    pub measure: Vec<Measure>,
    /// Which conditions are compared.
    #[serde(default)]
    pub comparison: Vec<Comparison>,
    /// What others published, shown beside, never compared by a test.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Charts of the report, in order.
    #[serde(default)]
    pub chart: Vec<Chart>,
    /// Tables of the report beside those that each has, in order.
    #[serde(default)]
    pub table: Vec<Table>,
}

/// Setting name (v1 or v2) → value, as `ringfence set` takes them. `{name}` stands for a named set of CPUs or a
/// device's path.
pub type Settings = BTreeMap<String, String>;

/// Option of a driver → value, of the shape that the driver's own option has ([`crate::options`]).
pub type Options = BTreeMap<String, Value>;

/// How often and how long; what is not given is as at the top of the file, and there the default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Lengths {
    /// How many times every condition (with every load) runs, once per block (default 6).
    pub repetitions: Option<u32>,
    /// Of each run, after it is ready (default `30s`). A `command` that runs to its end takes as long as it takes.
    pub duration: Option<String>,
    /// At least so long before what counts (default `5s`).
    pub warm_up: Option<String>,
    /// At most so long until the rate is steady (default: four times the warm-up).
    pub steady_within: Option<String>,
    /// How often groups are sampled (default `200ms`); `0s`: not at all.
    pub sample: Option<String>,
    /// Of the order of conditions within a block; without one, one is drawn and recorded.
    pub seed: Option<u64>,
    /// `randomised` (default) or `as-written`.
    pub order: Option<Order>,
}

/// Of the cells of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Shuffled, each block again.
    Randomised,
    /// As the file has them.
    AsWritten,
}

/// When a run counts. Shares are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gates {
    /// CPU time of everything but the experiment's own groups, of all CPUs' time. In runs that do I/O (see `io`) it is that
    /// of other programs alone.
    pub foreign_cpu: f64,
    /// CPU time that the hypervisor took, of all CPUs' time.
    pub steal: f64,
    /// Coefficient of variation of a cell's runs that is warned of.
    pub variation_warn: f64,
    /// Beyond this a comparison names the noise. It decides nothing: the interval and the test know it.
    pub variation: f64,
    /// How many times a rejected run is made again.
    pub retries: u32,
    /// The workloads do I/O, as fio, `read` and `writers` always do: CPU time of the kernel's threads and of interrupts may
    /// be theirs, so it is recorded as `kernel threads` without a limit. `foreign-cpu` limits other programs all the same.
    pub io: bool,
}

impl Default for Gates {
    fn default() -> Gates {
        Gates { foreign_cpu: 0.05, steal: 0.05, variation_warn: 0.05, variation: 0.10, retries: 3, io: false }
    }
}

/// The study's machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StudyMachine {
    /// CPUs (hardware threads) it had.
    pub cpus: u32,
    /// NUMA nodes it had.
    #[serde(default = "one")]
    pub nodes: u32,
    /// NUMA nodes that the experiment needs here at least.
    #[serde(default = "one")]
    pub needs_nodes: u32,
    /// CPUs that the experiment needs here at least.
    #[serde(default = "one")]
    pub needs_cpus: u32,
}

/// Does what is limited to some conditions apply in this one? None named are all.
pub fn applies(only: &[String], condition: &str) -> bool {
    only.is_empty() || only.iter().any(|name| name == condition)
}

fn one() -> u32 {
    1
}

/// A set of CPUs of the study. Here it has as large a share of the machine, at least one CPU; reported in the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cpus {
    /// How many of the study's; without, all.
    pub count: Option<u32>,
    /// Counted from the machine's first CPU, its last, or behind or before another named set.
    #[serde(default)]
    pub from: CpusFrom,
    /// The other set, with `from = "after"`.
    pub after: Option<String>,
    /// The other set, with `from = "before"`.
    pub before: Option<String>,
    /// Only of this node of the study's; where there are fewer, but more than one, nodes are taken in turn.
    pub node: Option<u32>,
    /// Of this other set instead of the machine: as large a share of its CPUs as the study's had.
    pub within: Option<String>,
    /// As many CPUs as the study's had, if this machine has them: for a load that does not grow with the machine.
    #[serde(default)]
    pub as_many: bool,
}

/// From where CPUs are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpusFrom {
    /// The machine's first.
    #[default]
    First,
    /// The machine's last.
    Last,
    /// Those behind another set.
    After,
    /// Those before another set, next to it.
    Before,
}

/// A thing that the lab makes for the time of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum Device {
    /// A loop device on a file of its own; or, with `--device PATH`, the user's (read only).
    #[serde(rename_all = "kebab-case")]
    Loop {
        /// Of its file.
        size: String,
        /// The I/O scheduler that it gets (`bfq`); else as it is.
        scheduler: Option<String>,
        /// Makes this file system on it and mounts it (`ext4`).
        file_system: Option<String>,
    },
    /// A swap file, if the machine has less swap than that.
    #[serde(rename_all = "kebab-case")]
    Swap {
        /// Its size.
        size: String,
    },
}

/// One way of dividing the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Condition {
    /// As reports name it.
    pub name: String,
    /// Group → settings.
    #[serde(default)]
    pub settings: BTreeMap<String, Settings>,
    /// Workload → options of its driver that are others here than at the workload; a table replaces the workload's whole table. A
    /// load's workloads have none.
    #[serde(default)]
    #[schemars(extend("x-options-of-workloads" = true))]
    // `read` looks by it for the driver's own options
    pub options: BTreeMap<String, Options>,
    /// Group → bounds of its CPUs, which follow its load during a run, as those of an elastic group of a layout do. All that
    /// are named share the machine's CPUs; one with `cpu.idle = 1` borrows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub elastic: BTreeMap<String, ElasticCpus>,
    /// Group → `cpus`, `quiet` or `full`: during a run its CPUs are isolated from interrupts, queues of work and threads of
    /// the kernel, as `isolate` of a layout's group does it. They are put back after each run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub isolate: BTreeMap<String, String>,
    /// Rows of the whole machine, as those of `[isolate]` of a layout: `true` for the usual value, or the value. They need
    /// a group in `isolate`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub isolate_machine: BTreeMap<String, String>,
    /// A layout file (its path from the experiment's file): what it plans for its groups on this machine is set for the
    /// run and put back after it. Workloads name its groups, which are made below the experiment's own; its rules move
    /// no process.
    pub layout: Option<String>,
    /// With less CPUs than that here it is left out, which the report says.
    pub needs_cpus: Option<u32>,
}

/// How many CPUs a group has at least and at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ElasticCpus {
    /// At least; `{name}`: as many as a named set has.
    pub min: String,
    /// At most; `{name}` as above.
    pub max: String,
    /// Its share where several groups want what is left (default 100).
    #[serde(default = "hundred")]
    pub weight: u32,
}

fn hundred() -> u32 {
    100
}

/// What else runs during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Load {
    /// As reports name it.
    pub name: String,
    /// Workloads that run beside the measured ones and are not measured.
    #[serde(default)]
    pub workload: Vec<Workload>,
}

/// A change in the middle of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Event {
    /// After the beginning of what counts: a time (`10s`) or a share of the duration (`50%`).
    pub at: String,
    /// Only in these conditions; none named: in all.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// Group → settings.
    pub settings: BTreeMap<String, Settings>,
    /// As the charts mark it.
    #[serde(default)]
    pub label: String,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Measure {
    /// As reports name it.
    pub name: String,
    /// What it is worked out of: `WORKLOAD.FIGURE` (`load.tps`, `load.latency.p99`), `GROUP.cpu` (CPUs used, from
    /// the group's own accounting), `GROUP.cpu-on.SET` (the same, on a named set of CPUs), `GROUP.memory`, …,
    /// `machine.FIGURE` (`machine.memory.free`), of one NUMA node with its number behind (`GROUP.memory.node.anon.0`);
    /// sums of these (`a.tps + b.tps`), the least or the most (`min(a.tps, b.tps)`), and one quotient
    /// (`load.tps / server.cpu`). `load.tps.settle`: seconds from the run's first event until the rate stays where it is
    /// afterwards.
    pub is: String,
    /// What the figure is converted to: `ns`, `us`, `ms`, `s`, `min` of times, `bytes`, `KiB`, `MB`, … of amounts,
    /// either per time (`MiB/s`, `1/min`), `%` of shares; a word for what is counted stays as it is (`CPUs`, `reads/s`).
    #[serde(default)]
    pub unit: String,
    /// Which way is better.
    #[serde(default)]
    pub better: Better,
    /// Only from this time of the run on, and up to that (of rates over time): `["50%", "100%"]`.
    pub between: Option<[String; 2]>,
    /// Condition → the value that it requests, in the measure's unit: the report says how close the figure comes.
    #[serde(default)]
    pub target: BTreeMap<String, f64>,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Rates.
    #[default]
    Higher,
    /// Times.
    Lower,
}
