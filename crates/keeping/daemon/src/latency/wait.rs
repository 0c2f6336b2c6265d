//! Waits for a descriptor, for a time, and no longer than the caller goes on.

use std::{
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::latency::Error;

/// How long one look at a source may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait<'s> {
    /// Becomes readable when the caller ends.
    pub stopped: BorrowedFd<'s>,
    /// The end of its time.
    pub until: Instant,
}

impl Wait<'_> {
    /// Between two pieces of work: is there time left?
    ///
    /// # Errors
    /// [`Error::Late`], [`Error::Stopped`].
    pub fn go_on(&self) -> Result<(), Error> {
        if Instant::now() >= self.until {
            return Err(Error::Late);
        }
        let mut stopped = [PollFd::from_borrowed_fd(self.stopped.as_fd(), PollFlags::IN)];
        match poll(&mut stopped, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => Err(Error::Stopped),
            Err(errno) => Err(Error::failed(errno.into())),
        }
    }

    /// Until something of these is there; which of them.
    ///
    /// # Errors
    /// [`Error::Late`], [`Error::Stopped`].
    pub fn ready<const N: usize>(
        &self,
        wanted: [(BorrowedFd<'_>, PollFlags); N],
    ) -> Result<[bool; N], Error> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Late);
            }
            let time = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut all: Vec<PollFd<'_>> =
                wanted.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
            all.push(PollFd::from_borrowed_fd(self.stopped.as_fd(), PollFlags::IN));
            match poll(&mut all, Some(&time)) {
                Ok(0) => return Err(Error::Late),
                Ok(_) if !all[N].revents().is_empty() => return Err(Error::Stopped),
                Ok(_) => return Ok(std::array::from_fn(|index| !all[index].revents().is_empty())),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::failed(errno.into())),
            }
        }
    }
}
