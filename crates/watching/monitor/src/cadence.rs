//! A fixed beat without drift: an absolute timer of the kernel, so that the time that a sample takes does not move
//! the next one. Late and missed beats are counted and never made up for.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
        timerfd_create, timerfd_settime,
    },
};

/// One beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Beat {
    /// How much later than it was due it was taken.
    pub late: Duration,
    /// How many were due before it and not taken.
    pub missed: u64,
}

/// The beat. Its descriptor becomes readable when one is due.
#[derive(Debug)]
pub struct Cadence {
    timer: OwnedFd,
    period: Duration,
    /// When the beat after the last one taken is due.
    due: Duration,
    missed: u64,
    latest: Duration,
}

impl Cadence {
    /// The shortest period.
    pub const SHORTEST: Duration = Duration::from_millis(1);

    /// Beats every `period` (at least [`Cadence::SHORTEST`]) from now on, the first at once.
    ///
    /// # Errors
    /// The kernel's errno: no descriptor left.
    pub fn new(period: Duration) -> Result<Cadence, Errno> {
        let period = period.max(Cadence::SHORTEST);
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let due = now();
        let value = Itimerspec { it_interval: timespec(period), it_value: timespec(due) };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &value)?;
        Ok(Cadence { timer, period, due, missed: 0, latest: Duration::ZERO })
    }

    /// The beat that is due, if one is.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn take(&mut self) -> Result<Option<Beat>, Errno> {
        let mut expired = [0; 8];
        match rustix::io::read(&self.timer, &mut expired) {
            Ok(_) => Ok(Some(self.account(u64::from_ne_bytes(expired), now()))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Sleeps until a beat is due.
    ///
    /// # Errors
    /// The kernel's errno; `EINTR` if a signal came first.
    pub fn wait(&mut self) -> Result<Beat, Errno> {
        loop {
            if let Some(beat) = self.take()? {
                return Ok(beat);
            }
            let mut ready = [PollFd::new(&self.timer, PollFlags::IN)];
            poll(&mut ready, None)?;
        }
    }

    /// Sleeps until a beat is due, or until `stopped` becomes readable: then there is none any more.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn until(&mut self, stopped: &impl AsFd) -> Result<Option<Beat>, Errno> {
        loop {
            let mut ready =
                [stopped.as_fd(), self.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            if !ready[0].revents().is_empty() {
                return Ok(None);
            }
            if let Some(beat) = self.take()? {
                return Ok(Some(beat));
            }
        }
    }

    /// Beats missed so far.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The most that a beat was late.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    fn account(&mut self, expired: u64, now: Duration) -> Beat {
        let missed = expired.saturating_sub(1);
        let last = self.due + times(self.period, missed);
        self.due = last + self.period;
        let late = now.saturating_sub(last);
        self.missed += missed;
        self.latest = self.latest.max(late);
        Beat { late, missed }
    }
}

impl AsFd for Cadence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// The monotonic clock that samples' times are on.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    // the clock starts at 0 and its nanoseconds are below a second
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn times(period: Duration, count: u64) -> Duration {
    Duration::from_nanos((period.as_nanos() as u64).saturating_mul(count))
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_beats_are_counted_and_later_ones_stay_in_step() {
        let mut cadence = Cadence::new(Duration::from_secs(3600)).unwrap();
        let start = cadence.due;
        let hour = Duration::from_secs(3600);
        let late = Duration::from_millis(3);
        assert_eq!(cadence.account(1, start + late), Beat { late, missed: 0 });
        assert_eq!(cadence.account(3, start + 3 * hour + 2 * late), Beat { late: 2 * late, missed: 2 });
        assert_eq!(cadence.account(1, start + 4 * hour), Beat::default());
        assert_eq!((cadence.missed(), cadence.latest()), (2, 2 * late));
    }

    #[test]
    fn the_first_beat_is_at_once() {
        let mut cadence = Cadence::new(Duration::from_secs(3600)).unwrap();
        assert_eq!(cadence.wait().unwrap().missed, 0);
        assert_eq!(cadence.take().unwrap(), None);
    }
}
