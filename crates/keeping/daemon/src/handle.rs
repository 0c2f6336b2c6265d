//! What other threads have the loop do, as one closed list: a reload, whose error comes back to the caller, questions, and
//! what they found out. They wait for the loop, never the other way round.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
};

use answers::socket::Classification;
use apply::{Lock, State};

use crate::{
    ConfigurationError, Counters, division,
    signals::{ReloadScope, Waker},
};

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadResult {
    /// How many rules are active.
    pub rules: usize,
    /// How many templates.
    pub templates: usize,
    /// What was done for the layout; `None` if there is none, or it was not requested.
    pub applied: Option<crate::Applied>,
}

/// The loop's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoopStatus {
    /// The files of rules.
    pub files: Vec<PathBuf>,
    /// How many groups the layout has.
    pub groups: usize,
    /// How many rules are active.
    pub rules: usize,
    /// Why what the files say is not in effect.
    pub not_in_effect: Vec<String>,
    /// What is wrong now, that included.
    pub troubles: Vec<String>,
}

/// What another thread has the loop do.
pub(crate) enum Command {
    /// Reload the configuration, with the lock of the state if that may apply a layout, or why there is none.
    Reload {
        scope: ReloadScope,
        lock: Result<Option<Lock>, ConfigurationError>,
        answer: Sender<Result<ReloadResult, ConfigurationError>>,
    },
    /// Answer the loop's status.
    Status(Sender<LoopStatus>),
    /// Answer where a process belongs.
    Classify { pid: u32, answer: Sender<Result<Classification, answers::Problem>> },
    /// Apply the layout: another change, which had the lock, has ended.
    ApplyLayout(Lock),
    /// Record why the layout is not applied.
    LayoutNotApplied(String),
    /// Take which of the units that schedules wait for are active.
    UnitStates(BTreeMap<String, bool>),
    /// Bind units that came after the apply.
    UnitsCame,
    /// Read the hierarchies again: a change was rolled back.
    RereadHierarchies,
}

/// The way to the loop. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    counters: Arc<Counters>,
    /// The history of changes; `None`: the daemon changes no groups.
    state: Option<State>,
}

impl Handle {
    pub(crate) fn new(
        commands: Sender<Command>,
        waker: Waker,
        counters: Arc<Counters>,
        state: Option<State>,
    ) -> Handle {
        Handle { commands, waker: Arc::new(waker), counters, state }
    }

    /// The state whose lock a reload needs: it may apply a layout.
    pub(crate) fn state_of(&self, scope: ReloadScope) -> Option<&State> {
        self.state.as_ref().filter(|_| scope == ReloadScope::All)
    }

    /// Reloads the configuration; if it has errors, the old one stays active. Waits for the state's lock here, not in the
    /// loop.
    ///
    /// # Errors
    /// [`ConfigurationError`] with every error; also if the daemon ends.
    pub fn reload(&self, scope: ReloadScope) -> Result<ReloadResult, ConfigurationError> {
        let lock = self.state_of(scope).map(division::lock).transpose();
        let ends =
            || ConfigurationError { summary: "the daemon is stopping".to_owned(), details: String::new() };
        self.request(|answer| Command::Reload { scope, lock, answer }).unwrap_or_else(|| Err(ends()))
    }

    /// Waits for the answer; `None` if the daemon ends, or a defect prevented the answer.
    pub(crate) fn request<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (answer, answered) = channel();
        self.send(command(answer));
        answered.recv().ok()
    }

    /// Does not wait.
    pub(crate) fn send(&self, command: Command) {
        // an error means that the daemon ends
        let _ = self.commands.send(command);
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
