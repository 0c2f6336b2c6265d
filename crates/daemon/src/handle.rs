//! What other threads may ask of the loop: a reload, whose error comes back to the caller; the counters; anything that
//! is to be done between two rounds of the loop. Waits for the loop, never the other way round.

use std::sync::{
    Arc,
    mpsc::{Sender, channel},
};

use crate::{Counters, Daemon, Refused, signals::Waker};

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

    /// Reads the configuration anew. What was in force stays if it has errors.
    ///
    /// # Errors
    /// [`Refused`] with every error; also if the daemon ends.
    pub fn reload(&self, what: What) -> Result<Reloaded, Refused> {
        let ends = || Refused { summary: "the daemon ends".to_owned(), details: String::new() };
        self.call(move |daemon| daemon.reload(what)).unwrap_or_else(|| Err(ends()))
    }

    /// Does something in the loop's thread, between two rounds: it must be short. `None` if the daemon ends.
    pub fn call<T: Send + 'static>(&self, what: impl FnOnce(&mut Daemon) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = channel();
        let request: Request = Box::new(move |daemon| {
            // nobody waits any more: the caller gave up
            let _ = answer.send(what(daemon));
        });
        self.requests.send(request).ok()?;
        self.waker.wake();
        answered.recv().ok()
    }

    /// What the daemon counts of itself.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}
