//! What other threads request of the loop, as one closed list: a reload, whose error comes back to the caller, what the
//! loop knows, and what they found out. They wait for the loop, never the other way round.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
};

use apply::{Lock, State};

use crate::{
    Counters, Refused, division,
    signals::Waker,
    socket::{self, api::Classification},
};

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
    /// What was done for the layout; `None` if there is none, or it was not requested.
    pub applied: Option<crate::Applied>,
}

/// What the loop knows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The files of rules.
    pub files: Vec<PathBuf>,
    /// How many groups the layout has.
    pub groups: usize,
    /// How many rules are in force.
    pub rules: usize,
    /// What is wrong now.
    pub troubles: Vec<String>,
}

/// One request, which the loop carries out between two rounds.
pub(crate) enum Request {
    /// Read the configuration again, with the lock of the state if it may apply a layout, or why there is none.
    Reload { what: What, lock: Result<Option<Lock>, Refused>, answer: Sender<Result<Reloaded, Refused>> },
    /// Say what the loop knows.
    Known(Sender<Known>),
    /// Say where a process belongs.
    Classify { pid: u32, answer: Sender<Result<Classification, socket::Problem>> },
    /// Apply the layout: another change, which had the lock, has ended.
    Divide(Lock),
    /// Record why the layout is not applied.
    NotDivided(String),
    /// Look at the hierarchies again: a change was rolled back.
    LookAgain,
}

/// The way to the loop. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    requests: Sender<Request>,
    waker: Arc<Waker>,
    counters: Arc<Counters>,
    /// The history of changes; `None`: the daemon changes no groups.
    state: Option<State>,
}

impl Handle {
    pub(crate) fn new(
        requests: Sender<Request>,
        waker: Waker,
        counters: Arc<Counters>,
        state: Option<State>,
    ) -> Handle {
        Handle { requests, waker: Arc::new(waker), counters, state }
    }

    /// The state whose lock a reload needs: it may apply a layout.
    pub(crate) fn state_of(&self, what: What) -> Option<&State> {
        self.state.as_ref().filter(|_| what == What::All)
    }

    /// Reads the configuration again. The old one stays in force if the new one has errors. Waits for the state's lock
    /// here, not in the loop.
    ///
    /// # Errors
    /// [`Refused`] with every error; also if the daemon ends.
    pub fn reload(&self, what: What) -> Result<Reloaded, Refused> {
        let lock = self.state_of(what).map(division::lock).transpose();
        let ends = || Refused { summary: "the daemon is stopping".to_owned(), details: String::new() };
        self.request(|answer| Request::Reload { what, lock, answer }).unwrap_or_else(|| Err(ends()))
    }

    /// Waits for the answer; `None` if the daemon ends, or a defect kept it from answering.
    pub(crate) fn request<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Option<T> {
        let (answer, answered) = channel();
        self.send(request(answer));
        answered.recv().ok()
    }

    /// Does not wait.
    pub(crate) fn send(&self, request: Request) {
        // an error means that the daemon ends
        let _ = self.requests.send(request);
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
