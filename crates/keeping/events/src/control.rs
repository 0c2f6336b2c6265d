//! The line between a process that answers execs and the one that watches it: a byte each way, over the socket that
//! the watchdog gives the gate's process as its standard input. Knows nothing of fanotify.

use std::{
    io::stdin,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    io::Errno,
    mm::{MlockAllFlags, mlockall},
    net::{RecvFlags, SendFlags, recv, send},
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
        set_parent_process_death_signal, setpriority_process, setrlimit, setsid,
    },
};

use crate::Error;

/// The gate's end. Closing the other end ends the gate.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
    /// How long the kernel lets this process live without an answer; `None` for a gate inside another program.
    within: Option<Duration>,
}

/// What the watchdog wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// An answer, once every exec that waits now has its own.
    Proof,
    /// The end.
    End,
}

impl Control {
    /// Makes this process a gate: in a session of its own (a stop from a terminal or of the daemon's process group
    /// does not reach it), killed when the watchdog's thread ends, without core dumps while execs wait, its memory
    /// never paged out, before all others of ordinary scheduling, and with room for the descriptors of execs. To be
    /// called first, with one thread.
    ///
    /// `within` ([`crate::Limits::unwatched`]): once execs wait, the kernel kills this process if it has not answered
    /// them in that time, also while it and the watchdog's process are both stopped or frozen.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn of_gate(within: Duration) -> Result<Control, Error> {
        let socket = stdin().as_fd().try_clone_to_owned().map_err(|error| Error::Call {
            call: "dup of the standard input",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::BADF),
        })?;
        let _ = setsid(); // a process that leads its group already may be started by hand
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(Error::of("prctl(PR_SET_PDEATHSIG)"))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Error::of("prctl(PR_SET_DUMPABLE)"))?;
        let room = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: room, maximum: room })
            .map_err(Error::of("setrlimit(RLIMIT_NOFILE)"))?;
        // best effort: on a busy machine execs would wait for a gate that waits for a CPU, and the watchdog would end it
        let _ = setpriority_process(None, -20);
        // best effort: without it a page read from disk only delays an answer, which the watchdog bounds
        let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
        Ok(Control { socket, within: Some(within) })
    }

    /// The gate's end of a socket pair, for a gate inside this process: without a watchdog, and never killed.
    pub fn new(socket: OwnedFd) -> Control {
        Control { socket, within: None }
    }

    /// How long the kernel lets this process live without an answer.
    pub(crate) fn within(&self) -> Option<Duration> {
        self.within
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends the watchdog a sign of life. A failure is ignored: the watchdog then ends this process, or is gone.
    pub(crate) fn send_sign_of_life(&self) {
        let _ = send(&self.socket, b".", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// What the watchdog wants, if anything.
    pub(crate) fn wish(&self) -> Option<Wish> {
        let mut bytes = [0; 16];
        match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 1..)) => Some(Wish::Proof),
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok((_, 0)) | Err(_) => Some(Wish::End),
        }
    }
}
