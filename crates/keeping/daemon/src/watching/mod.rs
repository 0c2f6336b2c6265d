//! The recorder and the metrics of the daemon. They have threads, descriptors and a look at the hierarchies of their own:
//! the loop that classifies and the gate of strict rules never wait for them, and what fails here ends nothing. None of it
//! runs unless it is requested.

// in the order of the data's way: what is shared, samples into the log, figures into text, text to who asks
mod shared;

mod recorder;

mod collector;
mod misplaced;
mod own;

mod endpoint;

use std::{
    os::unix::net::UnixStream,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

use rustix::process::{getpriority_process, setpriority_process};
use tracing::warn;

use crate::{
    http::Server,
    options::{Paces, Watching},
};
use collector::Scrape;
pub(crate) use shared::{Followed, Shared};

/// The threads; they end when this is dropped, the recorder after the record that it is writing.
#[derive(Default)]
pub(crate) struct Running {
    /// Its other end becomes readable when this is closed.
    stop: Option<UnixStream>,
    endpoint: Option<Server>,
    requests: Option<Sender<Scrape>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watching {
    /// Is there anything to do?
    pub fn is_any(&self) -> bool {
        self.record.is_some() || self.metrics.is_some() || self.textfile.is_some()
    }

    /// Starts what is requested.
    ///
    /// # Errors
    /// No thread or descriptor is available. Other failures are logged and retried.
    pub(crate) fn start(&self, shared: &Arc<Shared>) -> std::io::Result<Running> {
        // as its unit allows it: without the files of 1,000 groups open each scrape opens 10,000
        let _ = monitor::Descriptors::allow_more();
        let mut running = Running::default();
        if let Some(record) = &self.record {
            let (stopped, stop) = UnixStream::pair()?;
            running.stop = Some(stop);
            let (record, shared, again) = (record.clone(), Arc::clone(shared), self.paces.again);
            let thread = thread("recorder", move || recorder::run(&record, &shared, &stopped, again));
            running.threads.push(thread?);
        }
        if self.metrics.is_some() || self.textfile.is_some() {
            let (requests, requested) = channel();
            let (watching, shared) = (self.clone(), Arc::clone(shared));
            let thread = thread("metrics", move || collector::run(&watching, shared, &requested));
            running.threads.push(thread?);
            if let Some(address) = self.metrics {
                if !address.ip().is_loopback() {
                    warn!("anyone who can reach {address} can read the metrics: there is no password");
                }
                running.endpoint = Some(endpoint::serve(address, requests.clone(), self.paces.again)?);
            }
            running.requests = Some(requests);
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        drop(self.endpoint.take());
        drop(self.requests.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // one that panicked has ended as well
        }
    }
}

/// A thread that takes no turn from the loop: its nice value is not the loop's.
pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        // on Linux a nice value is a thread's
        if getpriority_process(None).is_ok_and(|nice| nice < 0) {
            let _ = setpriority_process(None, 0);
        }
        body()
    })
}

/// Files that one sampler of the daemon may keep open: a part of what it may have, which leaves most for rules' groups,
/// clients and the other sampler.
pub(crate) fn few() -> monitor::Descriptors {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    monitor::Descriptors::few(limit / 4)
}
