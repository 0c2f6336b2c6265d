//! A tool that knows no warm-up: it is started when what counts begins, by a thread that stays until the tool's end
//! (it would die with the thread), and takes its time from start to end.

use std::{
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::process::{Process, Tool};
use crate::{Error, Span, Stop, urgent};

/// How soon it ends after the request.
const NOTICE: Duration = Duration::from_millis(100);

/// Ended when dropped.
pub(crate) struct Delayed {
    /// A message starts the tool; its end says the thread to end.
    wanted: Option<Sender<()>>,
    stop: Stop,
    thread: Option<JoinHandle<Result<Ran, Error>>>,
    /// What the thread said, once it was waited for.
    ended: Option<Result<Ran, Error>>,
}

/// What has ended well.
pub(crate) struct Ran {
    pub process: Process,
    /// From its start to its end.
    pub span: Span,
}

impl Delayed {
    /// Makes ready to start `command` at [`Delayed::begin`]; it must end by itself within `patience` of its start.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn ready(
        command: Tool,
        name: &'static str,
        directory: &Path,
        patience: Duration,
    ) -> Result<Delayed, Error> {
        let stop = command.stop();
        let (wanted, unwanted) = channel();
        let directory = directory.to_owned();
        let work = move || {
            if unwanted.recv().is_err() {
                return Err(Error::Interrupted);
            }
            let from = Instant::now();
            let mut process = Process::start(command, name, &directory)?;
            wait(&mut process, &unwanted, from + patience)?;
            Ok(Ran { process, span: Span { from, to: Instant::now() } })
        };
        let thread = urgent::spawn(&format!("wait-{name}"), work);
        let thread = thread.map_err(|source| Error::System { what: "cannot start a thread", source })?;
        Ok(Delayed { wanted: Some(wanted), stop, thread: Some(thread), ended: None })
    }

    /// Starts it.
    pub fn begin(&self) {
        if let Some(wanted) = &self.wanted {
            let _ = wanted.send(()); // a thread that has ended says why at the end
        }
    }

    /// From its start to its end, once it has ended; of one that failed, nothing at the present time.
    pub fn span(&mut self) -> Option<Span> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            let joined = self.thread.take().map(JoinHandle::join);
            self.ended = Some(joined.and_then(Result::ok).unwrap_or(Err(Error::Interrupted)));
        }
        let now = Instant::now();
        self.ended.as_ref().map(|ended| ended.as_ref().map_or(Span { from: now, to: now }, |ran| ran.span))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It could not be started, ended badly, or not in time; [`Error::Interrupted`] as soon as a stop is requested, or if
    /// it never began.
    pub fn finish(mut self) -> Result<Ran, Error> {
        while self.span().is_none() {
            if self.stop.is_set() {
                self.wanted = None;
            }
            std::thread::sleep(super::process::POLL);
        }
        self.ended.take().unwrap_or(Err(Error::Interrupted))
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
