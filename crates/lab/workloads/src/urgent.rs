//! The lab goes before what it measures: with all CPUs in use it waited for seconds, above all after a change of their
//! sets, ended spans and made events late, and missed what tools print. Niceness does not help where each session is a
//! group of its own (autogroup), so its threads are real-time ones of the lowest priority; what they start is not.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread::{Builder, JoinHandle},
};

use kernel::threads;

/// Does an experiment run now?
static IS_URGENT: AtomicBool = AtomicBool::new(false);

/// While this is there.
pub struct Urgent;

impl Urgent {
    /// For the calling thread, and those that it starts by [`spawn`] from now on. Without the right to it nothing
    /// changes: a late end rejects the run.
    pub fn now() -> Urgent {
        IS_URGENT.store(threads::set_urgent().is_ok(), Ordering::Relaxed);
        Urgent
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if IS_URGENT.swap(false, Ordering::Relaxed) {
            // lowering is always allowed
            let _ = threads::set_other();
        }
    }
}

/// A thread that waits for a tool or reads what it prints, as urgent as the lab.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        if IS_URGENT.load(Ordering::Relaxed) {
            // it was allowed for the lab's own thread; without it the thread is late, as any other
            let _ = threads::set_urgent();
        }
        work()
    })
}
