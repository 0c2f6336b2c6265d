//! The request to end: set once, by a signal handler, and looked at by everything that waits. Who can start a process
//! ([`crate::Launch`]) has it, so that no wait for a process is without it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::Error;

/// Ctrl-C or SIGTERM, as all parts of an experiment see it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// The caller's flag, which its signal handler sets.
    pub fn new(flag: Arc<AtomicBool>) -> Stop {
        Stop(flag)
    }

    /// Was it requested?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`Error::Interrupted`] once it was requested.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// For a wait that takes a flag.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
