//! Experiments and simulations, as JSON.

use answers::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabResult {
    /// For the path.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Last written.
    pub at_ms: Option<u64>,
    /// Are all of its runs finished.
    pub complete: bool,
    /// That are finished.
    pub runs: usize,
    /// How many are planned.
    pub planned: Option<usize>,
    /// Runs are being added now.
    pub running: bool,
    /// The report's first sentence.
    pub headline: Option<String>,
    /// Is there a report to open.
    pub has_report: bool,
}

/// An experiment that comes with the program.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// How long, in seconds.
    pub seconds: f64,
    /// How long with --quick.
    pub quick_seconds: f64,
    /// CPUs that it needs.
    pub needs_cpus: usize,
    /// NUMA nodes that it needs.
    pub needs_nodes: usize,
    /// Tools that it measures with.
    pub tools: Vec<String>,
}

/// Results and studies.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Lab {
    /// Where results are looked for.
    pub directory: String,
    /// The newest first.
    pub results: Vec<LabResult>,
    /// Experiments that come with the program.
    pub studies: Vec<Study>,
    /// Why there is nothing.
    pub problem: Option<String>,
}

/// What to simulate.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Simulate {
    /// The layout.
    pub text: String,
    /// Loads by formula; none: all.
    #[serde(default)]
    pub synthetic: Vec<Synthetic>,
    /// Rules to compare with; none: all.
    #[serde(default)]
    pub against: Vec<Against>,
    /// Also the load that the recorder's log has.
    #[serde(default)]
    pub trace: bool,
    /// What random loads begin with.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// CPUs from a time on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Seconds from the start.
    pub at: f64,
    /// Of each group.
    pub cpus: Vec<usize>,
}

/// A load with a rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SimulatedLoad {
    /// Tasks that run or wait, averaged over a minute.
    pub load: String,
    /// The rule.
    pub rule: String,
    /// How long, in seconds.
    pub seconds: f64,
    /// Work that was not served in time, in % of the work.
    pub lost_percent: f64,
    /// CPU time that nobody used while work waited, in % of the machine.
    pub stranded_percent: f64,
    /// CPU time that groups had and did not use, in % of what they had.
    pub unused_percent: f64,
    /// Written CPU sets.
    pub changes: usize,
    /// The most of one group.
    pub most_changes: usize,
    /// CPUs that groups had in turn beyond the most at once.
    pub walk: usize,
    /// Only where they change.
    pub points: Vec<Point>,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Simulated {
    /// What is wrong with the layout.
    pub diagnostics: Vec<Diagnostic>,
    /// The groups.
    pub groups: Vec<String>,
    /// What came out.
    pub outcomes: Vec<SimulatedLoad>,
    /// What to know.
    pub warnings: Vec<String>,
    /// The command that does the same.
    pub command: String,
}

/// A load by formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Synthetic {
    /// The same all the time.
    Constant,
    /// Slowly up and down again.
    Ramp,
    /// Low and high in turns.
    Square,
    /// Bursts.
    Pareto,
    /// A day within ten minutes.
    Diurnal,
}

/// Another rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// Each group's min and weighted share.
    Static,
    /// koordinator's suppression.
    Koordinator,
    /// scx_layered's sizes of layers.
    ScxLayered,
    /// intel-lpmd's low-power mode.
    Lpmd,
    /// Who knows the load in advance.
    Clairvoyant,
}
