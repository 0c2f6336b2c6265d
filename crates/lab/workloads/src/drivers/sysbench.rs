//! sysbench's tests of CPU, memory, threads or mutexes, with the user's arguments. Its text is read as version 1.0
//! writes it. It begins when the warm-up is over, as its histogram can't be emptied.

use std::time::Duration;

use experiment::{drivers::SYSBENCH, file, results::Latency};

use super::{
    delayed::Delayed,
    distribution::{Bins, from_bins},
    process::{PATIENCE, command},
    programs,
};
use crate::{Driver, Error, Failure, Outcome, Site, Span, Timing, files};

/// Half the width of a bin, as a ratio: its histogram has 1,024 of them from 0.001 ms to 100 s, each named by its middle
/// (sb_histogram.c).
const HALF_BIN: f64 = 1.009_05;

/// The longest that its histogram distinguishes, in seconds.
const LONGEST: f64 = 100.0;

pub(crate) struct Sysbench {
    arguments: Vec<String>,
    run: Option<Delayed>,
}

impl Sysbench {
    pub fn new(options: &file::Tool) -> Sysbench {
        Sysbench { arguments: options.arguments.clone(), run: None }
    }
}

impl Driver for Sysbench {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![("sysbench".to_owned(), programs::version(&programs::find(&SYSBENCH)?))])
    }

    fn prepare(&mut self, _: &Site<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, site: &Site<'_>, timing: Timing) -> Result<(), Error> {
        let mut tool = command(site.launch, site.group, &programs::find(&SYSBENCH)?, None, "KILL");
        // whole seconds are all it takes
        let seconds = timing.duration.as_secs_f64().ceil().max(1.0) as u64;
        // as often as there is time for
        tool.args(&self.arguments).args([
            "--histogram=on",
            "--events=0",
            &format!("--time={seconds}"),
            "run",
        ]);
        let patience = Duration::from_secs(seconds) + PATIENCE;
        self.run = Some(Delayed::ready(tool, "sysbench", site.directory, patience)?);
        Ok(())
    }

    fn begin(&mut self) {
        if let Some(run) = &self.run {
            run.begin();
        }
    }

    fn done(&mut self) -> Option<f64> {
        None
    }

    fn stop(&mut self, _: Span) -> Result<Outcome, Error> {
        let run = self.run.take().ok_or_else(|| Failure::unreadable("sysbench", "it was not started"))?;
        let process = run.finish()?.process;
        let path = process.output();
        let text = files::tool_text(path).map_err(Failure::file("read", path))?;
        let rate = rate(&text)
            .ok_or_else(|| Failure::unreadable("sysbench", "there are no events and no time in it"))?;
        Ok(Outcome {
            readings: [("rate".to_owned(), rate)].into_iter().collect(),
            latencies: latency(&text).map(|latency| ("latency".to_owned(), latency)).into_iter().collect(),
            files: vec![path.to_owned()],
            ..Outcome::default()
        })
    }

    fn clean_up(&mut self) {
        self.run = None;
    }
}

/// What stands behind a heading, as a number in seconds or without a unit.
fn number(text: &str, heading: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(heading))?;
    rest.trim().trim_end_matches('s').parse().ok()
}

/// Events per second: as it says them (cpu, memory), or over its whole time.
fn rate(text: &str) -> Option<f64> {
    let operations = || {
        let line = text.lines().find(|line| line.starts_with("Total operations:"))?;
        line.split_once('(')?.1.split_once(" per second")?.0.trim().parse().ok()
    };
    let whole = || Some(number(text, "total number of events:")? / number(text, "total time:")?);
    number(text, "events per second:").or_else(operations).or_else(whole)
}

fn latency(text: &str) -> Option<Latency> {
    const MILLISECOND: f64 = 1e-3;
    let bin = |line: &str| {
        let (value, rest) = line.split_once(" |")?;
        let count: u64 = rest.split_ascii_whitespace().last()?.parse().ok()?;
        Some((value.trim().parse::<f64>().ok()? * HALF_BIN * MILLISECOND, count))
    };
    let (within, beyond): (Vec<_>, Vec<_>) =
        text.lines().filter_map(bin).partition(|(end, _)| *end < LONGEST);
    let of = |heading| Some(number(text, heading)? * MILLISECOND);
    // it says two digits: with many short events their sum is more exact
    let count = within.iter().chain(&beyond).map(|(_, count)| *count as f64).sum::<f64>();
    let (mean, min, max) = (of("sum:")? / count.max(1.0), of("min:")?, of("max:")?);
    // so that no quantile is reported as shorter than the bin it is in
    let max = within.last().map_or(max, |(end, _)| max.max(end / HALF_BIN));
    let beyond = beyond.iter().map(|(_, count)| count).sum();
    from_bins(Bins { bins: &within, beyond, mean, min, max, missed: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of sysbench 1.0.20, shortened.
    const CPU: &str = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.374 |*******                                  302
       0.388 |**************************************** 1817
       4.407 |**                                       95
 
CPU speed:
    events per second:   547.66

General statistics:
    total time:                          3.0361s
    total number of events:              2214

Latency (ms):
         min:                                    0.36
         avg:                                    3.72
         max:                                    4.42
         95th percentile:                        0.39
         sum:                                 4057.30
";

    #[test]
    fn its_text_is_read() {
        assert_eq!(rate(CPU), Some(547.66));
        let reported = latency(CPU).unwrap();
        assert_eq!(reported.count, 2214);
        assert!(
            (reported.mean - 4.0573 / 2214.0).abs() < 1e-9 && (reported.min - 0.36e-3).abs() < 1e-9,
            "{reported:?}"
        );
        assert!(
            reported.p50 > 0.388e-3 && reported.p50 < 0.395e-3 && reported.p99 > 4.407e-3,
            "{reported:?}"
        );
        let memory = "Total operations: 7765915 (3876810.55 per second)\n";
        assert_eq!(rate(memory), Some(3_876_810.55));
        assert_eq!(rate("    total time:   2.0s\n    total number of events:    10\n"), Some(5.0));
        assert_eq!(rate("FATAL: unknown test"), None);
    }
}
