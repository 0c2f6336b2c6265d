//! Wakes the loop at a moment of the machine's clock, and when somebody sets that clock.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use jiff::Timestamp;
use rustix::{
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

/// A timer on `CLOCK_REALTIME`, which goes on while the machine sleeps. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Alarm(Arc<OwnedFd>);

/// Where there is none to wait for, it still wakes when the clock is set; in seconds since 1970.
const FAR: i64 = 1 << 33;

impl Alarm {
    /// # Errors
    /// The kernel's.
    pub fn new() -> std::io::Result<Alarm> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Alarm(Arc::new(timer)))
    }

    /// Wakes at this moment; one that has passed wakes at once. False: the clock was set since the last [`Alarm::take`].
    pub fn set(&self, at: Option<Timestamp>) -> std::io::Result<bool> {
        let (tv_sec, tv_nsec) =
            at.map_or((FAR, 0), |at| (at.as_second().max(0), i64::from(at.subsec_nanosecond())));
        // zero would disarm it
        let it_value = Timespec { tv_sec, tv_nsec: if tv_sec == 0 { 1 } else { tv_nsec.max(0) } };
        let timer = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        match timerfd_settime(&*self.0, flags, &timer) {
            Ok(_) => Ok(true),
            // the timer is armed all the same
            Err(Errno::CANCELED) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Readable when it is time, or the clock was set.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes that it woke.
    pub fn take(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.0, &mut count);
    }
}
