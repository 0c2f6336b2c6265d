//! Ends what other processes left behind in the history: a change that nobody confirmed in time and whose reverting
//! process was killed, or one that was interrupted. On a thread of its own, asleep while there is nothing to wait for, so
//! that the loop never waits for the history's lock or its disk. How it is ended is decided by [`apply::recover`].

use std::{
    io::Write,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use apply::{Failure, Running, State, Target, Watch};
use kernel::{Host, Real};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use tracing::{error, info, warn};

use crate::{
    Counters, Division, Error, Handle, handle::Command, history_events, timespec::timespec, watching,
};

/// How long the process that is to revert a change may take before it is given up.
const GRACE: Duration = Duration::from_millis(500);
/// How often a process is looked at that still makes its change.
const LOOK: Duration = Duration::from_secs(1);
/// After a failure it is tried again: at first, and at most, as the time doubles.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long a try waits for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread; it ends when this is dropped.
pub(crate) struct Takeover {
    /// A byte makes it look now, and its end ends it.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Takeover {
    /// Starts the thread. `handle`: to have the loop look at the hierarchies again.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(state: State, handle: Handle, counters: Arc<Counters>) -> Result<Takeover, Error> {
        let failed = Error::of("the thread for unconfirmed changes");
        let (woken, wake) = UnixStream::pair().map_err(&failed)?;
        woken.set_nonblocking(true).map_err(&failed)?;
        wake.set_nonblocking(true).map_err(&failed)?;
        let watcher = Watcher { state, handle, counters, woken, pause: AGAIN.0, failure: None, watch: None };
        let thread = watching::thread("unconfirmed", move || watcher.run());
        Ok(Takeover { wake: Some(wake), thread: Some(thread.map_err(&failed)?) })
    }

    /// Has it look now.
    pub fn look(&self) {
        // a full pipe wakes it as well
        let _ = self.wake.as_ref().map(|mut wake| wake.write(&[1]));
    }
}

impl Drop for Takeover {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // one that panicked has ended as well
        }
    }
}

struct Watcher {
    state: State,
    handle: Handle,
    counters: Arc<Counters>,
    woken: UnixStream,
    /// Until the next try after a failure.
    pause: Duration,
    /// What was logged last, until a try succeeds.
    failure: Option<String>,
    /// Shows that this takes over; none as long as nothing is recorded.
    watch: Option<Watch>,
}

impl Watcher {
    fn run(mut self) {
        let changes = history_events::watch(&self.state);
        if let Err(errno) = &changes {
            // the loop's drift check makes us look now and then
            warn!("changes of the history are noticed late: inotify: {errno}");
        }
        loop {
            let wait = self.step();
            if self.is_over(changes.as_ref().ok(), wait) {
                return;
            }
        }
    }

    /// Waits for a change, a wake-up or the time. True at the end.
    fn is_over(&self, events: Option<&OwnedFd>, wait: Option<Duration>) -> bool {
        let changes = events.map_or(self.woken.as_fd(), AsFd::as_fd);
        let mut both =
            [PollFd::from_borrowed_fd(changes, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        let wait = wait.map(timespec);
        let _ = poll(&mut both, wait.as_ref()); // interrupted: it looks once more
        let is_changed = both[0].revents().contains(PollFlags::IN);
        if let Some(events) = events.filter(|_| is_changed) {
            history_events::drain(events);
        }
        let mut bytes = [0; 64];
        loop {
            match rustix::io::read(&self.woken, &mut bytes) {
                Ok(0) => return true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Looks, and recovers what is left behind. How long nothing is to be done if nothing changes.
    fn step(&mut self) -> Option<Duration> {
        if self.watch.is_none() {
            self.watch = self.state.watch().ok();
        }
        let host = match Host::new(Box::new(Real::new())) {
            Ok(host) => host,
            Err(error) => return Some(self.failed(error.to_string())),
        };
        match next(&self.state, &host) {
            Ok(Next::Nothing) => {
                self.succeeded();
                None
            }
            Ok(Next::In(time)) => Some(time),
            Ok(Next::Now) => match self.recover(&host) {
                Ok(()) => {
                    self.succeeded();
                    // whatever else is there
                    Some(Duration::ZERO)
                }
                Err(failure) => Some(self.failed(failure.to_string())),
            },
            Err(failure) => Some(self.failed(failure.to_string())),
        }
    }

    fn recover(&self, host: &Host) -> Result<(), Failure> {
        let lock = self.state.lock(PATIENCE)?;
        let recovered = Division::recover(&lock, host)?;
        drop(lock);
        for one in &recovered {
            Counters::count(&self.counters.takeovers);
            warn!("{one}");
        }
        if !recovered.is_empty() {
            self.handle.send(Command::RereadHierarchies);
        }
        Ok(())
    }

    /// A failure that lasts is logged once; the next try is later each time.
    fn failed(&mut self, text: String) -> Duration {
        let text =
            format!("an unfinished or unconfirmed change could not be rolled back, trying again: {text}");
        if self.failure.as_ref() != Some(&text) {
            error!("{text}");
            self.failure = Some(text);
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(AGAIN.1);
        pause
    }

    fn succeeded(&mut self) {
        self.pause = AGAIN.0;
        if self.failure.take().is_some() {
            info!("the history is in order again");
        }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    In(Duration),
    Now,
}

fn next(state: &State, host: &Host) -> Result<Next, Failure> {
    let running = Running::new();
    let target = Target { host, system: &running };
    if let Some(unfinished) = apply::unfinished(state, target)? {
        return Ok(if unfinished.lives { Next::In(LOOK) } else { Next::Now });
    }
    Ok(match apply::pending(state, target)? {
        None => Next::Nothing,
        Some(pending) if !pending.overdue => Next::In(pending.remaining + GRACE),
        Some(_) => {
            // just over: the process that reverts it may be at it, and then the lock says so
            std::thread::sleep(GRACE);
            match apply::pending(state, target)? {
                Some(pending) if pending.overdue => Next::Now,
                _ => Next::In(Duration::ZERO),
            }
        }
    })
}
