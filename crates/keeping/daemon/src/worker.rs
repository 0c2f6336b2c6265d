//! A thread that goes on until it is to end.

use std::{os::unix::net::UnixStream, thread::JoinHandle};

use crate::watching::thread;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker<T> {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts it. What the body gets becomes readable when it is to end.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(
        name: &str,
        body: impl FnOnce(&UnixStream) -> T + Send + 'static,
    ) -> std::io::Result<Worker<T>> {
        let (stopped, stop) = UnixStream::pair()?;
        let thread = thread(name, move || body(&stopped))?;
        Ok(Worker { stop: Some(stop), thread: Some(thread) })
    }
}

impl<T> Worker<T> {
    /// Ends it, and waits for what came of it; `None` if it panicked.
    pub fn end(mut self) -> Option<T> {
        self.join()
    }

    fn join(&mut self) -> Option<T> {
        drop(self.stop.take());
        self.thread.take()?.join().ok()
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.join();
    }
}
