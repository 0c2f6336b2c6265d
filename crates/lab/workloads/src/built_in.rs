//! A built-in workload as a driver: its process is started in its group, read, asked for its report, and never left behind. What
//! its options are and what its report says is each workload's own matter.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf};

use serde::de::DeserializeOwned;

use super::process::Process;
use crate::{Driver, Error, Outcome, Program, Site, Span, Timing};

/// A workload that is a hidden subcommand of this program.
pub trait Workload {
    /// What its process reports of a span.
    type Report: DeserializeOwned;

    /// The word that its process is started by.
    const SUBCOMMAND: &'static str;

    /// Does its rate say when it is steady? Not where the rate is given.
    const FINDS_ITS_RATE: bool = true;

    /// The file that the whole report is written to, beside the results.
    const REPORT_FILE: Option<&'static str> = None;

    /// What it is called, in messages and, as `built-in NAME`, in the record.
    fn name(&self) -> &'static str;

    /// The options of its process. What is made for it is removed by [`Workload::clean_up`].
    ///
    /// # Errors
    /// Something that it needs can't be made.
    fn words(&mut self, site: &Site<'_>, timing: Timing) -> Result<Vec<OsString>, Error>;

    /// The report as figures.
    fn outcome(&self, report: Self::Report) -> Outcome;

    /// Removes what [`Workload::words`] made, also after the process was killed.
    fn clean_up(&mut self) {}
}

/// The driver of any of them.
pub struct BuiltIn<W> {
    program: Program,
    workload: W,
    running: Option<Running>,
}

struct Running {
    process: Process,
    /// Where its report goes.
    report: Option<PathBuf>,
}

impl<W: Workload> BuiltIn<W> {
    /// `program` is this program with the hidden subcommand of workloads; `{name}` of the workload's options is filled
    /// in already.
    pub fn new(program: Program, workload: W) -> BuiltIn<W> {
        BuiltIn { program, workload, running: None }
    }
}

impl<W: Workload + Send> Driver for BuiltIn<W> {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![(format!("built-in {}", self.workload.name()), env!("CARGO_PKG_VERSION").to_owned())])
    }

    fn prepare(&mut self, _: &Site<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self, site: &Site<'_>, timing: Timing) -> Result<(), Error> {
        let words = self.workload.words(site, timing)?;
        let process = Process::start(self.workload.name(), &self.program, W::SUBCOMMAND, words, site)?;
        let report = W::REPORT_FILE.map(|name| site.directory.join(name));
        self.running = Some(Running { process, report });
        Ok(())
    }

    fn done(&mut self) -> Option<f64> {
        let running = self.running.as_ref().filter(|_| W::FINDS_ITS_RATE);
        running.map(|running| running.process.done())
    }

    fn stop(&mut self, span: Span) -> Result<Outcome, Error> {
        let Running { process, report: path } = self.running.take().ok_or(Error::Interrupted)?;
        let (line, report) = process.request::<W::Report>(span)?;
        self.workload.clean_up();
        let mut outcome = self.workload.outcome(report);
        if let Some(path) = path {
            fs::write(&path, line).map_err(Error::file("write", &path))?;
            outcome.files.push(path);
        }
        Ok(outcome)
    }

    fn clean_up(&mut self) {
        self.running = None;
        self.workload.clean_up();
    }
}

/// Those options that have a value.
pub(super) fn given<const N: usize>(options: [(&str, Option<String>); N]) -> Vec<OsString> {
    let given = options.into_iter().filter_map(|(name, value)| Some([name.into(), value?.into()]));
    given.flatten().collect()
}

/// Those figures that can be reported.
pub(super) fn readings<const N: usize>(figures: [(&str, Option<f64>); N]) -> BTreeMap<String, f64> {
    figures.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number?))).collect()
}

/// A number by something that there may be none of.
pub(super) fn by(number: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| number / of)
}
