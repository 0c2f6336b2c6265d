//! Starts the process that answers execs and ends it when an answer is late: the kernel lets the waiting execs go on
//! once the last descriptor of the gate is closed, which a stopped or stuck process can't do itself. Knows nothing of
//! what the gate does with an exec.
//!
//! What it bounds: no exec waits longer than `period + answer` (and what the machine needs to run this thread and to
//! end a process), whatever happens to the gate: an end, a stop, a callback that hangs. If this process ends, the kernel
//! kills the gate. If this process is stopped or frozen the gate answers on, and a timer of the kernel's watches it
//! ([`Limits::unwatched`]): if both are stopped, or frozen on cgroup v2, no exec waits longer than twice that time. Only a
//! gate in an uninterruptible wait, or in a frozen group of cgroup v1's freezer, can't be killed until that ends; a
//! process that waits for it can be.
//! While no gate runs, execs do not wait: they then run where their parent is, and the caller finds them in other ways.

use std::{
    io,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
        socketpair,
    },
};

use crate::Error;

/// How long what may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Between two requests to the gate for a sign of life. Idle, this is the only wake-up of both processes.
    pub period: Duration,
    /// Until such a proof, that is, until every exec that waited when it was requested has its answer.
    pub answer: Duration,
    /// From the start of the gate's process until it holds execs.
    pub start: Duration,
    /// Between a gate's end and the next one's start: at first, and at most, as it doubles while gates end early. Long
    /// enough for every exec that waited to go on even on a busy machine: the kernel passes an exec from one gate to
    /// the next, so that one which has not would wait again.
    pub pause: (Duration, Duration),
}

impl Limits {
    /// How long the kernel lets a gate live that does not answer, whatever its watchdog does: longer than the watchdog
    /// waits, which knows why it ended a gate. An exec waits at most twice as long.
    pub fn unwatched(&self) -> Duration {
        (self.period + self.answer).max(self.answer * 2)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            period: Duration::from_millis(250),
            answer: Duration::from_millis(500),
            start: Duration::from_secs(10),
            pause: (Duration::from_millis(250), Duration::from_secs(10)),
        }
    }
}

/// What happened to the gate. Reported from the watchdog's thread, which waits for the listener: it must not block.
#[derive(Debug)]
pub enum Notice {
    /// It answers now, with this process ID.
    Serving(u32),
    /// It was killed, as it did not prove in time that it answers.
    Late(u32),
    /// It ended, by itself or by [`Notice::Late`].
    Ended(u32, ExitStatus),
    /// It was ended, as the watchdog was dropped.
    Stopped(u32),
    /// It could not be started.
    NotStarted(io::Error),
}

/// Keeps a gate's process running, and in time. Dropping it ends both.
///
/// To hold other executables without a gap, start a second one and drop the first once the second is
/// [`Notice::Serving`]: until then each exec waits for both, one after the other, and the limits add up.
#[derive(Debug)]
pub struct Watchdog {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts `gate`'s process, and starts it again whenever it ends. `gate` gives the command, whose standard input
    /// becomes the line to the watchdog ([`Control::of_gate`](crate::Control::of_gate)).
    ///
    /// # Errors
    /// [`Error::Call`] if the thread can't be started; what happens to the gate is a [`Notice`].
    pub fn start(
        limits: Limits,
        gate: impl FnMut() -> Command + Send + 'static,
        notice: impl FnMut(Notice) + Send + 'static,
    ) -> Result<Watchdog, Error> {
        let (stop, stopped) = pair()?;
        // the gate's processes are this thread's children, so that its end is theirs
        let thread = thread::Builder::new()
            .name("gate watchdog".into())
            .spawn(move || Watch { limits, gate, notice, stopped }.run())
            .map_err(|error| Error::Call {
                call: "clone",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
            })?;
        Ok(Watchdog { stop, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = shutdown(&self.stop, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watch<G, N> {
    limits: Limits,
    gate: G,
    notice: N,
    stopped: OwnedFd,
}

/// Why waiting for the gate is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The time is up.
    Late,
    /// The gate's end of the line is closed.
    Closed,
    /// The watchdog is to end.
    Stop,
}

impl<G: FnMut() -> Command, N: FnMut(Notice)> Watch<G, N> {
    fn run(mut self) {
        let (first, most) = self.limits.pause;
        let mut pause = first;
        loop {
            let since = Instant::now();
            match self.start() {
                Ok((child, line)) => {
                    if self.watch(child, &line) == Over::Stop {
                        return;
                    }
                }
                Err(error) => (self.notice)(Notice::NotStarted(error)),
            }
            // one that served for a while may come back at once
            pause = if since.elapsed() > most { first } else { pause };
            if self.wait(None, pause) == Over::Stop {
                return;
            }
            pause = (pause * 2).min(most);
        }
    }

    fn start(&mut self) -> io::Result<(Child, OwnedFd)> {
        let (line, theirs) = pair().map_err(|error| io::Error::other(error.to_string()))?;
        let child = (self.gate)().stdin(Stdio::from(theirs)).spawn()?;
        Ok((child, line))
    }

    /// Watches one gate until its end.
    fn watch(&mut self, mut child: Child, line: &OwnedFd) -> Over {
        let pid = child.id();
        let over = self.attend(pid, line);
        // kill(2) of a process that ended and is not reaped does nothing; a stopped one dies of it too
        let _ = child.kill();
        if over == Over::Late {
            (self.notice)(Notice::Late(pid));
        }
        if let Ok(status) = child.wait() {
            (self.notice)(if over == Over::Stop { Notice::Stopped(pid) } else { Notice::Ended(pid, status) });
        }
        over
    }

    /// Asks for proof after proof, until one is missing.
    fn attend(&mut self, pid: u32, line: &OwnedFd) -> Over {
        if let Err(over) = self.heard(line, self.limits.start) {
            return over;
        }
        let mut serving = false;
        loop {
            // a line that can't take a byte is as good as a missing proof
            if send(line, b".", SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_err() {
                return Over::Closed;
            }
            if let Err(over) = self.heard(line, self.limits.answer) {
                return over;
            }
            if !serving {
                serving = true;
                (self.notice)(Notice::Serving(pid));
            }
            match self.wait(Some(line), self.limits.period) {
                Over::Late => {}
                over => return over,
            }
        }
    }

    /// Waits for a byte of the gate.
    fn heard(&self, line: &OwnedFd, within: Duration) -> Result<(), Over> {
        let end = Instant::now() + within;
        loop {
            let mut both = [PollFd::new(line, PollFlags::IN), PollFd::new(&self.stopped, PollFlags::IN)];
            let left = end.saturating_duration_since(Instant::now());
            let polled = poll(&mut both, Some(&timespec(left)));
            if !both[1].revents().is_empty() {
                return Err(Over::Stop);
            }
            match polled {
                Ok(0) => return Err(Over::Late),
                Ok(_) => {
                    let mut bytes = [0; 16];
                    return match recv(line, &mut bytes, RecvFlags::DONTWAIT) {
                        Ok((_, 1..)) => Ok(()),
                        _ => Err(Over::Closed),
                    };
                }
                Err(_) => {} // interrupted
            }
        }
    }

    /// Lets time pass: [`Over::Late`] when it has.
    fn wait(&self, line: Option<&OwnedFd>, time: Duration) -> Over {
        let end = Instant::now() + time;
        loop {
            let line = line.unwrap_or(&self.stopped);
            let mut both = [PollFd::new(&self.stopped, PollFlags::IN), PollFd::new(line, PollFlags::empty())];
            let left = end.saturating_duration_since(Instant::now());
            let polled = poll(&mut both, Some(&timespec(left)));
            if !both[0].revents().is_empty() {
                return Over::Stop;
            }
            match polled {
                Ok(0) => return Over::Late,
                Ok(_) => return Over::Closed,
                Err(_) => {} // interrupted
            }
        }
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd), Error> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(Error::of("socketpair"))
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}
