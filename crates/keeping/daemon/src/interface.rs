//! What the socket needs of the loop: answered in the loop's own thread, or from what it shares.

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    time::SystemTime,
};

use answers::{
    Problem,
    socket::{Classification, Counters, Reloaded, Status},
};
use apply::By;
use tracing::info;

use crate::{
    Handle, ReloadScope,
    handle::{Command, LoopStatus},
    socket::{Control, Rights},
};

/// Who may ask for what, as of the layout that holds now: set by the loop, read by the socket.
pub(crate) type Shared = Arc<Mutex<Arc<Rights>>>;

/// The loop, as the socket has it.
#[derive(Clone)]
pub(crate) struct Interface {
    handle: Handle,
    rights: Shared,
    since: SystemTime,
}

impl Interface {
    pub fn new(handle: Handle, rights: Shared) -> Interface {
        Interface { handle, rights, since: SystemTime::now() }
    }

    fn request<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, Problem> {
        self.handle
            .request(command)
            .ok_or_else(|| Problem::new(500, "the request failed in the daemon, or the daemon is stopping"))
    }
}

impl Control for Interface {
    fn rights(&self) -> Arc<Rights> {
        Arc::clone(&self.rights.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn status(&self) -> Result<Status, Problem> {
        let since = humantime::format_rfc3339_seconds(self.since).to_string();
        let LoopStatus { files, groups, rules, not_in_effect, troubles } = self.request(Command::Status)?;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            ready: true,
            since,
            files: files.iter().map(|file| file.display().to_string()).collect(),
            groups,
            rules,
            not_in_effect,
            troubles,
        })
    }

    fn counters(&self) -> Result<Counters, Problem> {
        let figures = self.handle.counters().figures();
        let mut counters: Counters =
            figures.counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        counters.insert("latency_sum_usec".to_owned(), figures.latency_sum);
        let below =
            figures.latency.into_iter().map(|(bound, count)| (format!("latency_below_{bound}_usec"), count));
        counters.extend(below);
        Ok(counters)
    }

    fn reload(&self, by: By) -> Result<Reloaded, Problem> {
        info!(uid = by.uid, pid = by.pid, "reload requested");
        let refused = |refused: crate::ConfigurationError| {
            Problem::new(422, format!("{refused}\n{}", refused.details).trim_end().to_owned())
        };
        let reloaded = self.handle.reload(ReloadScope::All).map_err(refused)?;
        let warnings = reloaded.applied.map(|applied| applied.warnings).unwrap_or_default();
        let groups = self.request(Command::Status)?.groups;
        Ok(Reloaded { groups, rules: reloaded.rules, warnings })
    }

    fn classify(&self, pid: u32) -> Result<Classification, Problem> {
        self.request(|answer| Command::Classify { pid, answer })?
    }
}
