//! What came out.

use serde::Serialize;

/// Of one load with one rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The load.
    pub load: String,
    /// The rule.
    pub rule: String,
    /// CPU time that was requested and not served in time, in per cent of what was requested.
    pub lost_percent: f64,
    /// CPU time that nobody used while work waited that could have, in per cent of the machine's CPU time.
    pub stranded_percent: f64,
    /// CPU time that groups had and did not use, in per cent of what they had.
    pub unused_percent: f64,
    /// Written CPU sets.
    pub changes: usize,
    /// The most changes of one group.
    pub most_changes: usize,
    /// CPUs that groups had in the course of time beyond the most that they had at once: 0 if each always grows into the same.
    pub walk: usize,
    /// The groups' CPUs over time; only where they change.
    pub points: Vec<Point>,
    /// How long it was, in seconds.
    pub seconds: f64,
}

/// What groups have from a time on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Seconds from the start.
    pub at: f64,
    /// CPUs of each group.
    pub cpus: Vec<usize>,
}
