//! What was measured: every run with its figures, gates, settings and series as they were, and what is said of
//! them. Written as `results.json`; reports are drawn from it at any time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    file::Experiment,
    note::{Note, Warning},
    statistics,
};

/// The version of this shape.
pub const SCHEMA: u32 = 1;

/// Everything of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was requested, as its file had it.
    pub experiment: Experiment,
    /// On which machine, how it was set, with which programs.
    pub environment: Environment,
    /// How the runs were ordered and how long they were.
    pub design: Design,
    /// Every run, also those that were rejected, in the order in which they were made.
    pub runs: Vec<Run>,
    /// Measure → over which time of a run its figure is taken, in words.
    #[serde(default)]
    pub spans: BTreeMap<String, String>,
    /// A summary per condition, load and measure, in the file's order.
    pub cells: Vec<Cell>,
    /// What the comparisons say.
    pub comparisons: Vec<Comparison>,
    /// How close figures came to what their conditions ask for.
    #[serde(default)]
    pub targets: Vec<TargetReached>,
    /// What a reader must know: rescaling, what can't be shown here and why, gates that were off.
    pub notes: Vec<Note>,
    /// All runs that were requested are there.
    pub complete: bool,
}

/// What can change a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// When the experiment began, RFC 3339 in UTC.
    pub began: String,
    /// Heading → value, in the order of importance: kernel, command line, CPU model, CPUs, nodes, memory, swap,
    /// mitigations, governor, SMT, turbo, transparent huge pages, clock source, hypervisor, cgroup version,
    /// mounts, versions of tools.
    pub facts: Vec<(String, String)>,
}

/// How the runs were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// Of the order in each block.
    pub seed: u64,
    /// Blocks.
    pub repetitions: u32,
    /// Of what counts in each run, in seconds.
    pub duration: f64,
    /// Before it, at least, in seconds.
    pub warm_up: f64,
    /// `--quick` was given.
    pub quick: bool,
    /// Named sets of CPUs as they were here: name, what the study had, the CPUs here.
    pub cpus: Vec<(String, String, String)>,
    /// Whole time, in seconds.
    pub took: f64,
}

/// One run of one condition under one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// From 1, in the order in which they were made.
    pub number: u32,
    /// Of which block, from 1.
    pub block: u32,
    /// From 1; later ones repeat a rejected run.
    pub attempt: u32,
    /// Which condition.
    pub condition: String,
    /// Under which load.
    pub load: Option<String>,
    /// When what counts began, RFC 3339 in UTC.
    pub began: String,
    /// How long that was, in seconds.
    pub seconds: f64,
    /// Workload or group → from when to when it was measured, in seconds since what counts began; those that are not here
    /// over all of it.
    #[serde(default)]
    pub spans: BTreeMap<String, (f64, f64)>,
    /// What was before it, in seconds.
    pub warm_up: f64,
    /// `None`: the rate is not one that could be steady. Else whether it was when the run began to count.
    pub steady: Option<bool>,
    /// Why it does not count; `None`: it does.
    pub rejected: Option<String>,
    /// What was looked at for that.
    pub gates: Vec<Gate>,
    /// Measure → figure; a measure that could not be had is missing.
    pub figures: BTreeMap<String, f64>,
    /// `WORKLOAD.FIGURE` and `GROUP.FIGURE` → number: what measures are worked out of.
    pub readings: BTreeMap<String, f64>,
    /// `WORKLOAD.latency` → its distribution.
    pub latencies: BTreeMap<String, Latency>,
    /// Values over time.
    pub series: Vec<Series>,
    /// What was set, where, and what the kernel made of it.
    pub settings: Vec<Setting>,
    /// What was changed in its middle.
    pub events: Vec<EventDone>,
    /// Tasks and the CPU that each ran on last, over time.
    pub tasks: Vec<TaskSeen>,
    /// Programs of others that used the most, and how many CPUs; reported if that is why it was rejected.
    #[serde(default)]
    pub busiest: Vec<(String, f64)>,
    /// The kernel's threads that used the most, and how many CPUs, where the gate `kernel threads` is recorded.
    #[serde(default)]
    pub kernel_threads: Vec<(String, f64)>,
    /// The tools' own logs and reports, as paths below the directory of the results.
    #[serde(default)]
    pub files: Vec<String>,
    /// What a reader must know of this run: what a workload requested and could not have.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// What a gate saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// `foreign CPU`, `kernel threads`, `steal`, `late end`.
    pub name: String,
    /// What was seen, as a share.
    pub seen: f64,
    /// What is allowed; `None`: it rejects no run here.
    pub at_most: Option<f64>,
    /// Why it has no limit here, and what stands in its place.
    #[serde(default)]
    pub instead: Option<String>,
}

/// A distribution of latencies, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The shortest.
    pub min: f64,
    /// Half are not longer.
    pub p50: f64,
    /// 95 of 100 are not longer.
    pub p95: f64,
    /// 99 of 100 are not longer.
    pub p99: f64,
    /// 999 of 1,000 are not longer; `None` with fewer than 1,000.
    pub p999: Option<f64>,
    /// The longest.
    pub max: f64,
    /// Upper end of a bin and how many fell in it, ascending.
    pub bins: Vec<(f64, u64)>,
    /// Cycles that were missed, transactions that were skipped.
    pub missed: u64,
}

/// Values over the time of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// `WORKLOAD.FIGURE` or `GROUP.FIGURE`, or `machine.FIGURE`.
    pub name: String,
    /// `1/s`, `CPUs`, `bytes`.
    pub unit: String,
    /// Seconds since what counts began (the warm-up has negative ones), and the value.
    pub points: Vec<(f64, f64)>,
}

/// A setting during a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// The group as the experiment names it; of an option, the workload.
    pub group: String,
    /// `cpu.max`; or an option of the workload's driver.
    pub name: String,
    /// As it was requested, after rescaling.
    pub requested: String,
    /// What was written where, and what the kernel made of it if that differs.
    pub written: Vec<String>,
}

/// A change in the middle of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventDone {
    /// Seconds since what counts began.
    pub at: f64,
    /// How long its writes took, in seconds.
    pub took: f64,
    /// As charts mark it.
    pub label: String,
    /// What was set.
    pub settings: Vec<Setting>,
}

/// Where a task ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSeen {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its group, as the experiment names it.
    pub group: String,
    /// Seconds since what counts began, and the CPU that it ran on last.
    pub cpus: Vec<(f64, u32)>,
}

/// A condition under a load, in one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Which condition.
    pub condition: String,
    /// Under which load.
    pub load: Option<String>,
    /// Which measure.
    pub measure: String,
    /// The figures of the runs that count, in their order.
    pub values: Vec<f64>,
    /// Runs that were rejected.
    pub rejected: u32,
    /// Their figures, in their order: they decide nothing.
    #[serde(default)]
    pub rejected_values: Vec<f64>,
    /// Median; `None` without values.
    pub median: Option<f64>,
    /// Interval of the median (bootstrap, 95 % at 6 or more values: [`Cell::coverage`]); `None` with fewer than three.
    pub interval: Option<(f64, f64)>,
    /// Coefficient of variation.
    pub variation: Option<f64>,
    /// What was published for it, with its source.
    pub published: Option<(f64, String)>,
    /// What a reader must know of this cell: `no steady state`, `varies by 12 %`.
    pub warnings: Vec<Warning>,
}

/// A figure beside the value that its condition requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetReached {
    /// Which measure.
    pub measure: String,
    /// Which condition.
    pub condition: String,
    /// Under which load.
    pub load: Option<String>,
    /// What the condition requests, in the measure's unit.
    pub target: f64,
    /// The median of the runs that count; `None` if none does.
    pub median: Option<f64>,
    /// The median's distance from the target, as a share of the target: -0.003 is 0.3 % below it.
    pub off: Option<f64>,
    /// That of the run that is farthest from it.
    pub farthest: Option<f64>,
    /// Runs that count.
    pub runs: u32,
}

impl Cell {
    /// How surely its interval covers the median that more runs would have: 0.95, or less with few runs.
    pub fn coverage(&self) -> f64 {
        statistics::median_coverage(self.values.len())
    }
}

impl Comparison {
    /// How surely its interval covers the ratio that more runs would have: 0.95, or less with few runs.
    pub fn coverage(&self) -> f64 {
        statistics::ratio_coverage(self.runs.0.min(self.runs.1) as usize)
    }
}

/// What a comparison says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Of this measure.
    pub measure: String,
    /// What is compared with.
    pub baseline: String,
    /// What is compared.
    pub condition: String,
    /// Both under this load.
    pub load: Option<String>,
    /// Medians of both; `None` without values.
    pub medians: Option<(f64, f64)>,
    /// Median of the condition by that of the baseline.
    pub ratio: Option<f64>,
    /// Its interval (bootstrap, 95 % at 5 or more runs of each: [`Comparison::coverage`]).
    pub interval: Option<(f64, f64)>,
    /// Hodges-Lehmann shift, in the measure's unit.
    pub shift: Option<f64>,
    /// Exact Mann-Whitney, two-sided.
    pub p: Option<f64>,
    /// The same after Holm's correction over all comparisons of the experiment.
    pub p_holm: Option<f64>,
    /// Runs of both that count.
    pub runs: (u32, u32),
    /// Runs of both that were rejected.
    pub rejected: (u32, u32),
    /// Ratios within 1 ± this are as good as equal.
    pub margin: f64,
    /// The word.
    pub verdict: Verdict,
    /// Why it is that word, in one sentence with numbers.
    pub because: String,
    /// The published ratio, with its source.
    pub published: Option<(f64, String)>,
    /// A warning that belongs to it.
    pub note: Option<String>,
}

/// The word of a comparison. Not significant is never said to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better by more than chance, and not wholly within the margin.
    Faster,
    /// Worse by more than chance, and not wholly within the margin.
    Slower,
    /// The interval of the ratio lies within the margin: no relevant difference, be it chance or not.
    Equivalent,
    /// Neither can be said.
    Inconclusive,
}
