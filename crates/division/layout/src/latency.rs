//! Where a group's latency comes from, and what it is to be. Data only: nothing is run or opened here.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Micros;

use crate::reader::Word;
use crate::selector::Selector;

/// The target of a group's latency, and the source that reports it. A record of a layout has it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Who reports it.
    #[serde(flatten)]
    pub source: LatencySource,
    /// What the 99th percentile is not to exceed, above 0.
    pub p99: Micros,
    /// How often the source is looked at, and within which time it has to answer: from [`LEAST_EVERY`] to [`MOST_EVERY`].
    pub every: Micros,
    /// What a number without a unit is in.
    #[serde(default)]
    pub unit: LatencyUnit,
}

/// The shortest time between two looks at a source.
pub const LEAST_EVERY: Micros = Micros(100_000);
/// The longest.
pub const MOST_EVERY: Micros = Micros(60_000_000);
/// Where nothing is said.
pub const EVERY: Micros = Micros(1_000_000);

/// Who reports a latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LatencySource {
    /// The first line that a program prints is the 99th percentile.
    Command {
        /// Never empty; the program is a path from the root.
        command: Vec<String>,
    },
    /// Each new line of a file that fits is one request.
    Log {
        /// The file, a path from the root.
        log: String,
        /// A regular expression whose first group is the latency.
        pattern: String,
    },
    /// A metric in the text that an address answers with.
    Prometheus {
        /// `http://ADDRESS:PORT/PATH`.
        prometheus: String,
        /// A histogram, a summary or a gauge.
        metric: Selector,
    },
}

/// The unit of a number that has none with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum LatencyUnit {
    /// `s`, as Prometheus' metrics are.
    #[default]
    #[serde(rename = "s")]
    Seconds,
    /// `ms`.
    #[serde(rename = "ms")]
    Milliseconds,
    /// `us`.
    #[serde(rename = "us")]
    Microseconds,
    /// `ns`.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl Word for LatencyUnit {
    const WORDS: &'static [(&'static str, LatencyUnit)] = &[
        ("s", LatencyUnit::Seconds),
        ("ms", LatencyUnit::Milliseconds),
        ("us", LatencyUnit::Microseconds),
        ("ns", LatencyUnit::Nanoseconds),
    ];
}

impl LatencyUnit {
    /// How many of it are a second.
    pub fn per_second(self) -> f64 {
        match self {
            LatencyUnit::Seconds => 1.0,
            LatencyUnit::Milliseconds => 1e3,
            LatencyUnit::Microseconds => 1e6,
            LatencyUnit::Nanoseconds => 1e9,
        }
    }

    /// Its name in a layout.
    pub fn name(self) -> &'static str {
        LatencyUnit::WORDS.iter().find(|(_, unit)| *unit == self).map_or("s", |(name, _)| name)
    }
}

impl fmt::Display for LatencySource {
    /// `command /usr/local/bin/p99`, `log /var/log/x.log`, `prometheus http://127.0.0.1:9100/metrics`. A command's arguments
    /// may be nobody else's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LatencySource::Command { command } => {
                write!(f, "command {}", command.first().map_or("", String::as_str))
            }
            LatencySource::Log { log, .. } => write!(f, "log {log}"),
            LatencySource::Prometheus { prometheus, metric } => write!(f, "prometheus {prometheus} {metric}"),
        }
    }
}
