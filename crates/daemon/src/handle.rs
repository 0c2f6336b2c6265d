//! What other threads may ask of the loop: a reload, whose error comes back to the caller; the counters; anything that
//! is to be done between two rounds of the loop. Waits for the loop, never the other way round.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
};

use tracing::error;

use crate::{Counters, Daemon, Refused, division, signals::Waker};

/// What is read anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Layout, rules and templates (SIGHUP).
    All,
    /// Rules and templates (SIGUSR2).
    Rules,
    /// Templates (SIGUSR1).
    Templates,
}

/// What came of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// How many rules are in force.
    pub rules: usize,
    /// How many templates.
    pub templates: usize,
    /// What was done for the layout; `None` if there is none, or it was not asked for.
    pub applied: Option<crate::Applied>,
}

/// Something to do with the daemon in its own thread.
pub(crate) type Request = Box<dyn FnOnce(&mut Daemon) + Send>;

/// The way to the loop. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    requests: Sender<Request>,
    waker: Arc<Waker>,
    counters: Arc<Counters>,
}

impl Handle {
    pub(crate) fn new(requests: Sender<Request>, waker: Waker, counters: Arc<Counters>) -> Handle {
        Handle { requests, waker: Arc::new(waker), counters }
    }

    /// Reads the configuration again. The old one stays in force if the new one has errors. Waits for the state's lock
    /// here, not in the loop.
    ///
    /// # Errors
    /// [`Refused`] with every error; also if the daemon ends.
    pub fn reload(&self, what: What) -> Result<Reloaded, Refused> {
        let ends = || Refused { summary: "the daemon is stopping".to_owned(), details: String::new() };
        let state = self.call(move |daemon| daemon.state_of(what)).ok_or_else(ends)?;
        let lock = state.map(|state| division::lock(&state)).transpose();
        self.call(move |daemon| daemon.reload(what, lock)).unwrap_or_else(|| Err(ends()))
    }

    /// Does something in the loop's thread, between two rounds: it must be short. `None` if the daemon ends.
    pub fn call<T: Send + 'static>(&self, what: impl FnOnce(&mut Daemon) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = channel();
        let request: Request = Box::new(move |daemon| {
            // a defect in one request does not end the loop; its caller gets no answer
            match catch_unwind(AssertUnwindSafe(|| what(daemon))) {
                // an error: nobody waits any more
                Ok(answered) => _ = answer.send(answered),
                Err(_) => error!("a request failed by a defect of ringfenced; please report it"),
            }
        });
        self.requests.send(request).ok()?;
        self.waker.wake();
        answered.recv().ok()
    }

    /// As [`Handle::call`], but does not wait for it.
    pub(crate) fn call_later(&self, what: impl FnOnce(&mut Daemon) + Send + 'static) {
        // an error means that the daemon ends
        let _ = self.requests.send(Box::new(what));
        self.waker.wake();
    }

    /// What the daemon counts of itself.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}
