//! What latency a source reports: a program's answer, lines of a log, a metric. A look at a source ends within its time, and at
//! once when the caller ends; nothing is decided from what it says.

mod amount; // a number with its unit
mod exposition; // Prometheus' text
mod window; // requests of the last seconds

mod answer; // what a look comes to
mod wait; // until there is something to read

mod command;
mod http;
mod log;
mod metric;

mod source; // one of these

pub use answer::{Answer, Error};
pub use source::Source;

use std::time::Duration;

/// Whose requests count: of this time, or of the time between two looks where that is longer.
const WINDOW: Duration = Duration::from_secs(10);
