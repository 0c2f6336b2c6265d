//! What the loop shares with the recorder and the metrics: neither waits for the other longer than a pointer takes to copy.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use layout::{Desired, Rule};
use monitor::log::Recorded;

use crate::{Counters, loaded_rules::LoadedRules};

/// What is shared.
#[derive(Debug)]
pub(crate) struct Shared {
    pub counters: Arc<Counters>,
    /// Where the history is, if the layout is applied.
    pub state: Option<PathBuf>,
    followed: Mutex<Arc<Followed>>,
    /// Rises whenever hierarchies may be others.
    mounts: AtomicU64,
    /// What became of samples, and whether the last one was written.
    recorded: Mutex<Option<(Recorded, bool)>>,
}

/// The rules in force and what they are of.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub rules: Vec<Rule>,
    pub desired: Desired,
}

impl Shared {
    pub fn new(counters: Arc<Counters>, state: Option<PathBuf>) -> Shared {
        let (followed, recorded) = (Mutex::default(), Mutex::default());
        Shared { counters, state, followed, mounts: AtomicU64::new(0), recorded }
    }

    /// The loop follows these now.
    pub fn follow(&self, ruling: &LoadedRules) {
        let followed = Followed { rules: ruling.read.clone(), desired: ruling.desired.clone() };
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(followed);
    }

    pub fn followed(&self) -> Arc<Followed> {
        Arc::clone(&self.followed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The hierarchies may be others.
    pub fn look_again(&self) {
        self.mounts.fetch_add(1, Relaxed);
    }

    pub fn mounts(&self) -> u64 {
        self.mounts.load(Relaxed)
    }

    pub fn record(&self, recorded: Recorded, up: bool) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some((recorded, up));
    }

    /// `None` before the first sample.
    pub fn recorded(&self) -> Option<(Recorded, bool)> {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
