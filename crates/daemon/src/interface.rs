//! What the socket asks of the loop: each question is answered in the loop's own thread, or from what it shares.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use apply::By;
use classify::{How, Placer};
use system::ProcessReader;
use tracing::info;

use crate::{
    Daemon, Handle, What,
    socket::{Classification, Control, Refused, Reloaded, Rights, Status},
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

    fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Daemon) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        self.handle
            .call(what)
            .ok_or_else(|| Refused::new(500, "the request failed in the daemon, or the daemon is stopping"))
    }
}

impl Control for Interface {
    fn rights(&self) -> Arc<Rights> {
        Arc::clone(&self.rights.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn status(&self) -> Result<Status, Refused> {
        let since = humantime::format_rfc3339_seconds(self.since).to_string();
        self.ask(move |daemon| {
            let (rules, desired) = daemon.rules();
            let files = daemon.options().files.files().map(|files| files.rules).unwrap_or_default();
            Status {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                ready: true,
                since,
                files: files.iter().map(|file| file.display().to_string()).collect(),
                groups: desired.groups.len(),
                rules: rules.len(),
                troubles: daemon.troubles(),
            }
        })
    }

    fn counters(&self) -> Result<BTreeMap<String, u64>, Refused> {
        let figures = self.handle.counters().figures();
        let mut counters: BTreeMap<String, u64> =
            figures.counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        counters.insert("latency_sum_usec".to_owned(), figures.latency_sum);
        let below =
            figures.latency.into_iter().map(|(bound, count)| (format!("latency_below_{bound}_usec"), count));
        counters.extend(below);
        Ok(counters)
    }

    fn reload(&self, by: By) -> Result<Reloaded, Refused> {
        info!(uid = by.uid, pid = by.pid, "reload requested");
        let refused = |refused: crate::Refused| {
            Refused::new(422, format!("{refused}\n{}", refused.details).trim_end().to_owned())
        };
        let reloaded = self.handle.reload(What::All).map_err(refused)?;
        let warnings = reloaded.applied.map(|applied| applied.told).unwrap_or_default();
        let groups = self.ask(|daemon| daemon.rules().1.groups.len())?;
        Ok(Reloaded { groups, rules: reloaded.rules, warnings })
    }

    fn classify(&self, pid: u32) -> Result<Classification, Refused> {
        self.ask(move |daemon| {
            let gone = |gone: system::Gone| Refused::new(404, gone.to_string());
            let ruling = daemon.ruling();
            let placer = Placer::new(daemon.host(), &ruling.desired, &ruling.accounts);
            let mut reader = ProcessReader::new();
            let mut process = reader.process(pid).map_err(gone)?;
            let how = How { dry_run: true, heed_hands: true };
            let told = placer.classify(&ruling.rules, &mut process, how).map_err(gone)?;
            Ok(Classification::of(&told, &ruling.rules))
        })?
    }
}
