//! cyclictest of rt-tests: how late a thread is woken. Figures come from its JSON; what its histogram does not hold
//! is counted as beyond it, not dropped as its own percentiles would have it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use experiment::{drivers::CYCLICTEST, file, results::Latency};
use serde::Deserialize;

use super::{
    delayed::Delayed,
    distribution::{Bins, from_bins},
    process::{PATIENCE, command},
    programs,
};
use crate::{Driver, Error, Failure, Outcome, Site, Span, Timing, files};

/// Bins of its histogram, a microsecond each: the most that it takes.
const BINS: u64 = 1_000_000;

/// Cycles at the beginning and the end that the duration may have room for and no thread makes.
const AT_THE_ENDS: u64 = 2;

pub(crate) struct Cyclictest {
    options: file::Cyclic,
    run: Option<Run>,
}

struct Run {
    tool: Delayed,
    report: PathBuf,
    /// Cycles for which each thread had time.
    cycles: u64,
}

/// What of its report (`--json`) is read.
#[derive(Deserialize)]
struct Report {
    thread: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct Thread {
    /// Microseconds → how many; none: the key is missing.
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
}

impl Cyclictest {
    pub fn new(options: &file::Cyclic) -> Result<Cyclictest, Error> {
        let wrong = |option, value: u32, reason: &str| Failure::Option {
            option,
            value: value.to_string(),
            reason: reason.to_owned(),
        };
        for (option, value) in [("interval-us", options.interval_us), ("threads", options.threads)] {
            if value == 0 {
                return Err(wrong(option, 0, "it is at least 1").into());
            }
        }
        if options.priority > 99 {
            return Err(wrong("priority", options.priority, "it is from 0 to 99").into());
        }
        Ok(Cyclictest { options: options.clone(), run: None })
    }
}

impl Driver for Cyclictest {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        // it has no --version: its help begins with it
        Ok(vec![("cyclictest".to_owned(), programs::first_line(&programs::find(&CYCLICTEST)?, "--help"))])
    }

    fn prepare(&mut self, _: &Site<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, site: &Site<'_>, timing: Timing) -> Result<(), Error> {
        let mut tool = command(site.launch, site.group, &programs::find(&CYCLICTEST)?, None, "KILL");
        // whole seconds are all it takes
        let seconds = timing.duration.as_secs_f64().ceil().max(1.0) as u64;
        let report = site.directory.join("cyclictest.json");
        tool.args(["-q", "-m", "-d", "0", "--histfile=/dev/null"]);
        tool.args([
            "-D",
            &seconds.to_string(),
            "-h",
            &BINS.to_string(),
            "-i",
            &self.options.interval_us.to_string(),
        ]);
        tool.arg(format!("-t{}", self.options.threads));
        match self.options.priority {
            0 => tool.arg("--policy=other"),
            priority => tool.arg(format!("-p{priority}")),
        };
        tool.arg(format!("--json={}", report.display()));
        let patience = Duration::from_secs(seconds) + PATIENCE;
        let tool = Delayed::ready(tool, "cyclictest", site.directory, patience)?;
        let cycles = seconds * 1_000_000 / u64::from(self.options.interval_us);
        self.run = Some(Run { tool, report, cycles });
        Ok(())
    }

    fn begin(&mut self) {
        if let Some(Run { tool, .. }) = &self.run {
            tool.begin();
        }
    }

    fn done(&mut self) -> Option<f64> {
        None
    }

    fn stop(&mut self, _: Span) -> Result<Outcome, Error> {
        let Some(Run { tool, report, cycles }) = self.run.take() else {
            return Err(Failure::unreadable("cyclictest", "it was not started").into());
        };
        tool.finish()?;
        let text = files::tool_text(&report).map_err(Failure::file("read", &report))?;
        let reported: Report = serde_json::from_str(&text)
            .map_err(|error| Failure::unreadable("cyclictest", error.to_string()))?;
        Ok(Outcome { files: vec![report], ..outcome(&reported, cycles) })
    }

    fn clean_up(&mut self) {
        self.run = None;
    }
}

fn outcome(report: &Report, expected: u64) -> Outcome {
    let threads = || report.thread.values();
    let cycles: u64 = threads().map(|thread| thread.cycles).sum();
    let latency = latency(report, expected).map(|latency| ("latency".to_owned(), latency));
    Outcome {
        readings: [("cycles".to_owned(), cycles as f64)].into_iter().collect(),
        latencies: latency.into_iter().collect(),
        ..Outcome::default()
    }
}

/// Of all threads. Missed are the cycles for which there was time and which were not made.
fn latency(report: &Report, expected: u64) -> Option<Latency> {
    const MICROSECOND: f64 = 1e-6;
    let threads = || report.thread.values().filter(|thread| thread.cycles > 0);
    let cycles: u64 = threads().map(|thread| thread.cycles).sum();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (place, count) in threads().flat_map(|thread| &thread.histogram) {
        *counts.entry(place.parse().ok()?).or_default() += count;
    }
    // a bin holds what is at least as long as its name, and less than a microsecond longer
    let bins: Vec<(f64, u64)> =
        counts.into_iter().map(|(place, count)| ((place + 1) as f64 * MICROSECOND, count)).collect();
    let beyond = cycles.saturating_sub(bins.iter().map(|(_, count)| count).sum());
    let mean = threads().map(|thread| thread.avg * thread.cycles as f64).sum::<f64>() / cycles.max(1) as f64;
    let (min, max) = (threads().map(|thread| thread.min).min()?, threads().map(|thread| thread.max).max()?);
    let missed = threads().map(|thread| expected.saturating_sub(thread.cycles + AT_THE_ENDS)).sum();
    let (mean, min, max) = (mean * MICROSECOND, min as f64 * MICROSECOND, max as f64 * MICROSECOND);
    from_bins(Bins { bins: &bins, beyond, mean, min, max, missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of cyclictest 2.40 with `-h 10`, shortened.
    fn report(histogram: &str, cycles: u64) -> Report {
        let text = format!(
            r#"{{"file_version": 1, "cmdline:": "cyclictest", "num_threads": 1, "thread": {{"0": {{
            "histogram": {histogram}, "cycles": {cycles}, "min": 3, "max": 1117, "avg": 19.61, "cpu": 0, "node": 0}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn cycles_beyond_its_histogram_are_counted() {
        let outcome = outcome(&report(r#"{"3": 900, "7": 97}"#, 999), 1000);
        assert_eq!(outcome.readings["cycles"], 999.0);
        let latency = &outcome.latencies["latency"];
        assert_eq!((latency.count, latency.missed, latency.p999), (999, 0, None));
        assert!((latency.p50 - 4e-6).abs() < 1e-12 && (latency.p99 - 8e-6).abs() < 1e-12, "{latency:?}");
        assert!((latency.max - 1117e-6).abs() < 1e-12 && (latency.mean - 19.61e-6).abs() < 1e-12);
        assert_eq!(latency.bins.last().unwrap().1, 2);
    }

    #[test]
    fn percentiles_beyond_its_histogram_are_refused_and_missed_cycles_reported() {
        assert!(outcome(&report("{}", 1000), 1000).latencies.is_empty());
        assert_eq!(outcome(&report(r#"{"3": 900}"#, 900), 1000).latencies["latency"].missed, 98);
    }
}
