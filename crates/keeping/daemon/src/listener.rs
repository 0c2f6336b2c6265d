//! Listens to what happens to processes. An exec, or another user, is to be answered at once; births and ends only say
//! what to make of that, and are taken along with it or a moment later: they come by a second subscription, which wakes
//! nobody while there is traffic. That is half of the wake-ups of a machine on which programs start. Decides nothing.

use std::{
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use events::{Connector, Error, Event, Kinds, Received};

/// How long births and ends wait for company.
const TOGETHER: Duration = Duration::from_millis(20);

/// Both subscriptions.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Exec, uid, gid.
    urgent: Connector,
    /// Fork, exit.
    others: Connector,
    /// When the others are taken at the latest; `None` while there are none, and the first one wakes.
    due: Option<Instant>,
    /// Used again and again.
    gathered: Vec<Event>,
}

impl Listener {
    /// Listens from now on, with a receive buffer of `bytes` for each subscription.
    ///
    /// # Errors
    /// The kernel's refusals.
    pub fn open(buffer: usize) -> Result<Listener, Error> {
        Ok(Listener {
            others: Connector::open(Kinds::FORK | Kinds::EXIT, buffer)?,
            urgent: Connector::open(Kinds::EXEC | Kinds::UID | Kinds::GID, buffer)?,
            due: None,
            gathered: Vec::new(),
        })
    }

    /// What wakes: readable when [`Listener::recv`] has something to do before it is [`Listener::due`].
    pub fn fds(&self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        (self.urgent.fd(), self.due.is_none().then(|| self.others.fd()))
    }

    /// When there is something to do even if nothing wakes.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Is it time?
    pub fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Hands on what is queued, in the order in which it happened.
    ///
    /// # Errors
    /// The kernel's.
    pub fn recv(&mut self, f: impl FnMut(Event)) -> Result<Received, Error> {
        let mut gathered = std::mem::take(&mut self.gathered);
        // the others first, then all that is urgent: a batch with a fork then has the parent's earlier exec, too. Else the
        // child would be skipped while its parent was not yet to be moved
        let mut received = self.others.recv(|event| gathered.push(event))?;
        self.due = (received.events > 0).then(|| Instant::now() + TOGETHER);
        loop {
            let urgent = self.urgent.recv(|event| gathered.push(event))?;
            received.events += urgent.events;
            received.overrun |= urgent.overrun;
            if !urgent.more {
                break;
            }
        }
        // each CPU queues its own as it comes to it
        gathered.sort_by_key(|event| event.at);
        gathered.drain(..).for_each(f);
        // a burst must not hold its memory for good
        gathered.shrink_to(1024);
        self.gathered = gathered;
        Ok(received)
    }
}
