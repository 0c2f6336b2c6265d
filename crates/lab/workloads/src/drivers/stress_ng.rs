//! stress-ng as a load. What it counts (its bogus operations) is reported, and is no measure of anything: its makers say
//! so.

use std::{fs, path::PathBuf};

use experiment::{drivers::STRESS_NG, file};
use rustix::process::Signal;

use super::{
    process::{PATIENCE, Process, command},
    programs,
};
use crate::{Driver, Error, Failure, Outcome, Site, Span, Timing, files};

pub(crate) struct StressNg {
    arguments: Vec<String>,
    run: Option<Run>,
}

struct Run {
    process: Process,
    report: PathBuf,
}

impl StressNg {
    pub fn new(options: &file::Tool) -> StressNg {
        StressNg { arguments: options.arguments.clone(), run: None }
    }
}

impl Driver for StressNg {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![("stress-ng".to_owned(), programs::version(&programs::find(&STRESS_NG)?))])
    }

    fn prepare(&mut self, _: &Site<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, site: &Site<'_>, _: Timing) -> Result<(), Error> {
        // its children end when it ends, also by SIGKILL
        let mut tool = command(site.launch, site.group, &programs::find(&STRESS_NG)?, None, "KILL");
        let report = site.directory.join("stress-ng.yaml");
        tool.args(&self.arguments).args(["--timeout", "0", "--metrics", "--yaml"]).arg(&report);
        let process = Process::start(tool, "stress-ng", site.directory)?;
        let run = self.run.insert(Run { process, report });
        run.process.wait_until(|process| has_children(process.pid()))
    }

    fn done(&mut self) -> Option<f64> {
        None
    }

    fn stop(&mut self, _: Span) -> Result<Outcome, Error> {
        let Some(Run { mut process, report }) = self.run.take() else {
            return Err(Failure::unreadable("stress-ng", "it was not started").into());
        };
        if let Some(status) = process.ended()? {
            return Err(process.failure(status));
        }
        process.signal(Signal::INT);
        process.finish(PATIENCE)?;
        let text = files::tool_text(&report).map_err(Failure::file("read", &report))?;
        let rate = rate(&text).ok_or_else(|| Failure::unreadable("stress-ng", "there is no rate in it"))?;
        let readings = [("rate".to_owned(), rate)].into_iter().collect();
        Ok(Outcome { readings, files: vec![report], ..Outcome::default() })
    }

    fn clean_up(&mut self) {
        self.run = None;
    }
}

fn has_children(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).is_ok_and(|all| !all.trim().is_empty())
}

/// Bogus operations per second of all its stressors.
fn rate(yaml: &str) -> Option<f64> {
    let rates = yaml.lines().filter_map(|line| line.trim().strip_prefix("bogo-ops-per-second-real-time:"));
    let rates: Vec<f64> = rates.map(|rate| rate.trim().parse()).collect::<Result<_, _>>().ok()?;
    (!rates.is_empty()).then(|| rates.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_of_all_stressors_are_added() {
        // of stress-ng 0.15.06, shortened
        let yaml = "---\nmetrics:\n    - stressor: cpu\n      bogo-ops: 1608\n      \
            bogo-ops-per-second-usr-sys-time: 1618.636058\n      bogo-ops-per-second-real-time: 1603.310065\n    \
            - stressor: vm\n      bogo-ops-per-second-real-time: 0.500000\n...\n";
        assert_eq!(rate(yaml), Some(1603.810065));
        assert_eq!(rate("---\nmetrics:\n...\n"), None);
    }
}
