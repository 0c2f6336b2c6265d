//! The loads as a driver sees them: figures of what they took, reported and never compared.

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use experiment::file;

use super::LoadReport;
use crate::{
    Error, Outcome, Site, Timing,
    built_in::{Workload, by, readings},
};

/// Of the next writers: each have a directory of their own, also on the same device.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A built-in load.
pub struct Load {
    kind: Kind,
    threads: String,
    /// Where writers write; what is theirs in it is removed also after they were killed.
    directory: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Busy,
    Sleepers,
    /// On this device, or in this directory; else in the site's.
    Writers(Option<String>),
    IdlePoll,
}

impl Load {
    /// Threads that never sleep.
    pub fn busy(options: file::Busy) -> Load {
        Load::new(Kind::Busy, options.threads)
    }

    /// Threads that sleep for a microsecond each round.
    pub fn sleepers(options: file::Busy) -> Load {
        Load::new(Kind::Sleepers, options.threads)
    }

    /// Threads that open a file, write 4 KB, sync it and sleep for a microsecond each round.
    pub fn writers(options: file::Writers) -> Load {
        Load::new(Kind::Writers(options.device), options.threads)
    }

    /// Threads that take the time that nobody else wants.
    pub fn idle_poll(options: file::Busy) -> Load {
        Load::new(Kind::IdlePoll, options.threads)
    }

    fn new(kind: Kind, threads: String) -> Load {
        Load { kind, threads, directory: None }
    }
}

impl Workload for Load {
    type Report = LoadReport;
    const SUBCOMMAND: &'static str = "load";

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Busy => "busy threads",
            Kind::Sleepers => "sleeping threads",
            Kind::Writers(_) => "writing threads",
            Kind::IdlePoll => "polling threads",
        }
    }

    fn words(&mut self, site: &Site<'_>, _: Timing) -> Result<Vec<OsString>, Error> {
        let kind = match &self.kind {
            Kind::Busy => "busy",
            Kind::Sleepers => "sleepers",
            Kind::Writers(_) => "writers",
            Kind::IdlePoll => "idle-poll",
        };
        let mut words: Vec<OsString> = vec!["--kind".into(), kind.into()];
        words.extend(["--threads".into(), self.threads.clone().into()]);
        if let Kind::Writers(device) = &self.kind {
            let within = match device {
                Some(name) => site.devices.get(name).cloned().unwrap_or_else(|| PathBuf::from(name)),
                None => site.directory.to_owned(),
            };
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let own = within.join(format!("rf-writers-{}-{number}", std::process::id()));
            fs::create_dir_all(&own)
                .map_err(|source| Error::System { what: "cannot make the writers' directory", source })?;
            words.extend(["--directory".into(), own.clone().into()]);
            self.directory = Some(own);
        }
        Ok(words)
    }

    fn outcome(&self, report: LoadReport) -> Outcome {
        let readings = readings([
            ("rate", by(report.rounds, report.seconds)),
            ("cpus", by(report.cpu_seconds, report.seconds)),
            ("fairness", report.fairness),
        ]);
        Outcome { readings, ..Outcome::default() }
    }

    fn clean_up(&mut self) {
        if let Some(directory) = self.directory.take() {
            let _ = fs::remove_dir_all(directory); // gone already is as good
        }
    }
}
