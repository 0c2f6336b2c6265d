//! Signals as data: each sets a flag and wakes the loop.

use std::{
    io::Read,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2};

use crate::Error;

/// What is reloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadScope {
    /// Layout, rules and templates (SIGHUP).
    All,
    /// Rules and templates (SIGUSR2).
    Rules,
    /// Templates (SIGUSR1).
    Templates,
}

/// The signals that came since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PendingSignals {
    /// TERM or INT: end, and leave groups as they are.
    pub end: bool,
    /// HUP, USR2 or USR1; the widest of them.
    pub reload: Option<ReloadScope>,
}

/// The signals, and the pipe by which they and other threads wake the loop.
#[derive(Debug)]
pub(crate) struct Signals {
    flags: [(i32, Arc<AtomicBool>); 5],
    woken: UnixStream,
    wake: UnixStream,
}

/// Wakes the loop from another thread.
#[derive(Debug)]
pub(crate) struct Waker(UnixStream);

impl Signals {
    /// Installs the handlers.
    pub fn new() -> Result<Signals, Error> {
        let failed = Error::of("signals");
        let (woken, wake) = UnixStream::pair().map_err(&failed)?;
        woken.set_nonblocking(true).map_err(&failed)?;
        wake.set_nonblocking(true).map_err(&failed)?;
        let flags = [SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGUSR1]
            .map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        for (signal, flag) in &flags {
            // the flag first: it is to be seen once the loop wakes
            signal_hook::flag::register(*signal, Arc::clone(flag)).map_err(&failed)?;
            let wake = wake.try_clone().map_err(&failed)?;
            signal_hook::low_level::pipe::register(*signal, wake).map_err(&failed)?;
        }
        // a client or a log that goes away is an error of a write, and no end
        signal_hook::flag::register(SIGPIPE, Arc::new(AtomicBool::new(false))).map_err(&failed)?;
        Ok(Signals { flags, woken, wake })
    }

    /// Readable when there is something to look at.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// For another thread.
    pub fn waker(&self) -> Result<Waker, Error> {
        Ok(Waker(self.wake.try_clone().map_err(Error::of("signals"))?))
    }

    /// The signals that came; does not wait.
    pub fn pending(&mut self) -> PendingSignals {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(1..)) {}
        let taken = |wanted: i32| {
            self.flags.iter().any(|(signal, flag)| *signal == wanted && flag.swap(false, Ordering::SeqCst))
        };
        // both are taken, whichever comes
        let (term, int) = (taken(SIGTERM), taken(SIGINT));
        let scopes = [
            (taken(SIGHUP), ReloadScope::All),
            (taken(SIGUSR2), ReloadScope::Rules),
            (taken(SIGUSR1), ReloadScope::Templates),
        ];
        let reload = scopes.into_iter().find_map(|(came, scope)| came.then_some(scope));
        PendingSignals { end: term || int, reload }
    }
}

impl Waker {
    /// Wakes it; a full pipe wakes it too.
    pub fn wake(&self) {
        use std::io::Write;
        let _ = (&self.0).write(&[0]);
    }
}
