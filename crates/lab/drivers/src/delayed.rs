//! A tool that knows no warm-up: it is started when the warm-up is over, by a thread that stays until the tool's end
//! (it would die with the thread), and takes its time from start to end.

use std::{
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::process::{Process, Tool};
use workloads::{Error, Stop, urgent};

/// How soon it ends after the request.
const NOTICE: Duration = Duration::from_millis(100);

/// Ended when dropped.
pub(crate) struct Delayed {
    /// Its end says the thread to end.
    wanted: Option<Sender<()>>,
    stop: Stop,
    thread: Option<JoinHandle<Result<Ran, Error>>>,
}

/// What has ended well.
pub(crate) struct Ran {
    pub process: Process,
    /// From its start to its end.
    pub took: Duration,
}

impl Delayed {
    /// Starts `command` after `delay`; it must end by itself within `patience` of its start.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(
        command: Tool,
        name: &'static str,
        directory: &Path,
        delay: Duration,
        patience: Duration,
    ) -> Result<Delayed, Error> {
        let stop = command.stop();
        let (wanted, unwanted) = channel();
        let directory = directory.to_owned();
        let work = move || {
            if unwanted.recv_timeout(delay) != Err(RecvTimeoutError::Timeout) {
                return Err(Error::Interrupted);
            }
            let begun = Instant::now();
            let mut process = Process::start(command, name, &directory)?;
            wait(&mut process, &unwanted, begun + patience)?;
            Ok(Ran { process, took: begun.elapsed() })
        };
        let thread = urgent::spawn(&format!("wait-{name}"), work);
        let thread = thread.map_err(|source| Error::System { what: "cannot start a thread", source })?;
        Ok(Delayed { wanted: Some(wanted), stop, thread: Some(thread) })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It could not be started, ended badly, or not in time; [`Error::Interrupted`] as soon as a stop is requested.
    pub fn finish(mut self) -> Result<Ran, Error> {
        let joined = self.thread.take().map(|thread| {
            // before the tool is started nothing else looks at it
            while !thread.is_finished() {
                if self.stop.is_set() {
                    self.wanted = None;
                }
                std::thread::sleep(super::process::POLL);
            }
            thread.join()
        });
        joined.and_then(Result::ok).unwrap_or(Err(Error::Interrupted))
    }
}

/// Waits until it ends, well or badly, or isn't wanted any more.
fn wait(process: &mut Process, unwanted: &Receiver<()>, until: Instant) -> Result<(), Error> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || process.end_within(left.min(NOTICE))?.is_some() {
            return process.finish(Duration::ZERO);
        }
        if unwanted.recv_timeout(Duration::ZERO) != Err(RecvTimeoutError::Timeout) {
            return Err(Error::Interrupted);
        }
    }
}

impl Drop for Delayed {
    fn drop(&mut self) {
        self.wanted = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it ends the tool
        }
    }
}
