//! What the runner asks of a workload, whichever program does the work. Drivers start processes through
//! [`Launch`] alone, so that each is in its group before its first instruction; they never touch settings.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use experiment::results::{Latency, Series};

use crate::{Error, Stop};

/// How a process is started in a group.
pub trait Launch {
    /// A command whose program begins in this group (`None`: where the lab runs). It can be given arguments, pipes
    /// and so on as any; it replaces itself by the program, so its number is the program's.
    fn command(&self, group: Option<&str>, program: &OsStr) -> Command;

    /// Ends every wait for a process that was started.
    fn stop(&self) -> Stop;
}

/// Where a workload lives for the time of an experiment.
pub struct Site<'a> {
    /// A directory of its own, which is removed at the end.
    pub directory: &'a Path,
    /// The experiment's devices by name, as paths of block devices or of a mounted file system's directory.
    pub devices: &'a BTreeMap<String, PathBuf>,
    /// How processes are started.
    pub launch: &'a dyn Launch,
    /// The group of the server, or of the workload itself.
    pub group: Option<&'a str>,
    /// The group of its clients.
    pub clients_group: Option<&'a str>,
}

/// How long a run is.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Before what counts. A driver that [ends its warm-up itself](experiment::file::Driver::has_own_clock) keeps to it; for the others
    /// it is the least.
    pub warm_up: Duration,
    /// At most so long until what counts begins.
    pub steady_within: Duration,
    /// Of what counts.
    pub duration: Duration,
}

/// What counts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

/// What a workload did within a span.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Figure → number, as the experiment file lists them for the driver (`tps`).
    pub readings: BTreeMap<String, f64>,
    /// `latency` → its distribution.
    pub latencies: BTreeMap<String, Latency>,
    /// Values over time, by the figure's name; times in seconds since the span's beginning.
    pub series: Vec<Series>,
    /// The tool's own files (its log, its JSON) that are copied to the results, in the site's directory.
    pub files: Vec<PathBuf>,
    /// What a reader must know of these figures: what was requested and is missing.
    pub notes: Vec<String>,
}

/// A server whose processes have groups by their roles. Who calls moves them.
#[derive(Debug, Clone, Copy)]
pub struct Divided<'d> {
    /// Its first process, which starts all others.
    pub server: u32,
    /// Role → group; processes of other roles stay where they began.
    pub roles: &'d BTreeMap<String, String>,
}

/// A workload's program.
pub trait Driver: Send {
    /// The programs that it needs and their versions, for the record.
    ///
    /// # Errors
    /// One is missing: the hint is the command that installs it.
    fn versions(&self) -> Result<Vec<(String, String)>, Error>;

    /// Makes its data, once per experiment.
    ///
    /// # Errors
    /// A program failed: what it said.
    fn prepare(&mut self, site: &Site<'_>) -> Result<(), Error>;

    /// Starts a run. It works from here, or from [`Driver::begin`] on, until [`Driver::stop`] or until its own clock ends it.
    ///
    /// # Errors
    /// A program failed: what it said.
    fn start(&mut self, site: &Site<'_>, timing: Timing) -> Result<(), Error>;

    /// Waits until it works, where [`Driver::start`] returns before that: what begins together is waited for once.
    ///
    /// # Errors
    /// A program failed: what it said; or it takes too long.
    fn wait(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// What counts begins now: a tool that knows no warm-up starts. What it fails with [`Driver::stop`] says.
    fn begin(&mut self) {}

    /// Of a program that runs to its end ([`runs_to_its_end`](experiment::file::Driver::runs_to_its_end)): from its start to
    /// its end, once it has ended.
    fn own_span(&mut self) -> Option<Span> {
        None
    }

    /// How much it has done since the start (transactions, units), for finding the steady state; `None` if that can't
    /// be reported.
    fn done(&mut self) -> Option<f64>;

    /// Ends the run and says what it did in the span. With its own clock it has ended, or does so soon.
    ///
    /// # Errors
    /// It ended early, or badly: what it said.
    fn stop(&mut self, span: Span) -> Result<Outcome, Error>;

    /// A server that is the user's and was there before: it, and all its children as they are now. Who calls moves them
    /// into the workload's group, asks again until there is no new one, and puts them back at the end.
    fn running_server(&self) -> Vec<u32> {
        Vec::new()
    }

    /// A running server of the workload's own whose processes have groups by their roles.
    fn divided(&self) -> Option<Divided<'_>> {
        None
    }

    /// Ends whatever runs and removes what was made outside the site's directory. Also after errors.
    fn clean_up(&mut self);
}
