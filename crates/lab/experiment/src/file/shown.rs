//! What is said of the runs: comparisons, what others published, charts and tables.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two conditions that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Comparison {
    /// Of this measure.
    pub measure: String,
    /// What is compared with.
    pub baseline: String,
    /// What is compared.
    pub condition: String,
    /// Both under this load.
    pub load: Option<String>,
    /// A ratio whose interval lies within 1 ± this is `equivalent`, no relevant difference, also where it is more than chance
    /// (default 0.05).
    #[serde(default = "five_percent")]
    pub margin: f64,
    /// A warning that belongs to it, such as why it is unfair.
    pub note: Option<String>,
    /// The ratio's interval is to end at this or below: the verdict says whether it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// What each verdict means, as a sentence behind it.
    #[serde(default, skip_serializing_if = "Meaning::is_empty")]
    pub meaning: Meaning,
}

/// What each verdict of a comparison means, in words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Meaning {
    /// The condition is better than the baseline.
    pub better: Option<String>,
    /// It is worse.
    pub worse: Option<String>,
    /// It is as good.
    pub equivalent: Option<String>,
    /// The runs can't say it.
    pub inconclusive: Option<String>,
}

impl Meaning {
    fn is_empty(&self) -> bool {
        *self == Meaning::default()
    }
}

fn five_percent() -> f64 {
    0.05
}

/// What others measured on their machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Of this measure; or, with a baseline, its ratio.
    pub measure: String,
    /// In this condition.
    pub condition: String,
    /// Under this load.
    pub load: Option<String>,
    /// The figure.
    pub value: f64,
    /// The value is the ratio to this condition.
    pub baseline: Option<String>,
    /// Where it was published.
    pub source: String,
}

/// A chart of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chart {
    /// What it says.
    pub title: String,
    /// How it is drawn.
    pub kind: ChartKind,
    /// Which measures (`bars`, `stacked`, `slopes`, `heat`), series (`time`: `load.tps`, `GROUP.cpu`) or latencies
    /// (`histogram`: `load.latency`).
    pub of: Vec<String>,
    /// Only these conditions; none named: all.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// A logarithmic axis of values.
    #[serde(default)]
    pub log: bool,
    /// Values that are marked by a line: what was requested, with a label.
    #[serde(default)]
    pub line: Vec<Line>,
    /// Bars: what would be if the figure grew as the CPUs do.
    pub ideal: Option<Ideal>,
}

/// Ideal scaling: as many times one condition's median as there are more CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ideal {
    /// The condition that it starts from.
    pub from: String,
    /// Condition → the named set of CPUs that it has.
    pub cpus: BTreeMap<String, String>,
}

/// A marked value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Line {
    /// The value.
    pub at: f64,
    /// Behind it.
    pub label: String,
    /// Only where this condition is drawn.
    pub condition: Option<String>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// A bar per condition (its median), every run a dot, published values dashed.
    Bars,
    /// As bars, each of several measures one on top of the other.
    Stacked,
    /// A line per block from one condition to the next.
    Slopes,
    /// Values over the time of one run per condition (the one with the middle figure), events marked.
    Time,
    /// Condition × load, the median in each field.
    Heat,
    /// Latencies over each other from the median to the longest, both axes logarithmic.
    Histogram,
    /// A row per task over the time of one run, the CPU that it ran on last as its colour.
    Tasks,
}

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Table {
    /// What it says.
    pub title: String,
    /// What is in it.
    pub kind: TableKind,
    /// A workload (`load-profile`, `top-events`) or a measure (`ranking`).
    pub of: String,
    /// Only these conditions; none named: all.
    #[serde(default)]
    pub conditions: Vec<String>,
}

/// What is in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Per condition: DB Time, DB CPU, logical reads and so on, each per second, transaction, execution and call.
    LoadProfile,
    /// Per condition: on what DB Time was spent, the longest first.
    TopEvents,
    /// The conditions, the best first, beside the published order.
    Ranking,
}
