//! The measurement as a driver sees it: its options as an experiment has them, its report as figures.

use std::{ffi::OsString, time::Duration};

use experiment::file;

use super::{CyclicReport, NAME};
use crate::{
    Error, Outcome, Site, Timing,
    built_in::{Workload, given, readings},
};

/// A run may be waited for so much longer than it lasts: room for its cycles is made beforehand.
const SPARE: Duration = Duration::from_secs(20);

/// The built-in cyclic latency measurement, with its options.
pub struct Cyclic(pub file::Cyclic);

impl Cyclic {
    fn options(&self, timing: Timing) -> Vec<OsString> {
        let file::Cyclic { interval_us, priority, threads } = self.0;
        let longest = timing.steady_within.max(timing.warm_up) + timing.duration + SPARE;
        let cycles = longest.as_micros() / u128::from(interval_us.max(1));
        given([
            ("--interval-us", Some(interval_us.to_string())),
            ("--priority", Some(priority.to_string())),
            ("--threads", Some(threads.to_string())),
            ("--cycles", Some(cycles.clamp(1, 100_000_000).to_string())),
        ])
    }
}

impl Workload for Cyclic {
    type Report = CyclicReport;
    const SUBCOMMAND: &'static str = "cyclic";
    const FINDS_ITS_RATE: bool = false;
    const REPORT_FILE: Option<&'static str> = Some("cyclic.json");

    fn name(&self) -> &'static str {
        NAME
    }

    fn words(&mut self, _: &Site<'_>, timing: Timing) -> Result<Vec<OsString>, Error> {
        Ok(self.options(timing))
    }

    fn outcome(&self, report: CyclicReport) -> Outcome {
        let readings = readings([
            ("cycles", Some(report.cycles as f64)),
            ("missed", Some(report.missed as f64)),
            ("priority", Some(f64::from(report.priority))),
        ]);
        let latencies = report.latency.map(|latency| ("latency".to_owned(), latency)).into_iter().collect();
        Outcome { readings, latencies, notes: report.warnings, ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_for_the_longest_run() {
        let options = file::Cyclic { interval_us: 500, ..file::Cyclic::default() };
        let seconds = Duration::from_secs;
        let timing = Timing { warm_up: seconds(1), steady_within: seconds(4), duration: seconds(10) };
        let words = Cyclic(options).options(timing);
        assert!(words.ends_with(&["--cycles".into(), "68000".into()]), "{words:?}");
    }
}
