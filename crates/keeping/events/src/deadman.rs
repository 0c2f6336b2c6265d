//! A timer of the kernel's that kills this process unless it is put off in time. It works while the process can't run:
//! SIGKILL ends a stopped process and one that cgroup v2's freezer froze. It can't end one that cgroup v1's freezer
//! froze, or one in an uninterruptible wait. Knows nothing of execs.

use std::time::Duration;

use nix::{
    sys::{
        signal::{SigEvent, SigevNotify, Signal},
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};

use crate::{Error, error::of_nix};

/// The timer. Dropping it disarms it.
#[derive(Debug)]
pub(crate) struct Deadman {
    timer: Timer,
    within: Duration,
}

impl Deadman {
    /// Kills this process after `within`, unless [`postpone`](Deadman::postpone) is called before.
    pub fn start(within: Duration) -> Result<Deadman, Error> {
        let notify = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
        let timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify));
        let timer = timer.map_err(|errno| Error::of("timer_create")(of_nix(errno)))?;
        let mut deadman = Deadman { timer, within };
        deadman.postpone()?;
        Ok(deadman)
    }

    /// Starts the time again.
    pub fn postpone(&mut self) -> Result<(), Error> {
        let set = self.timer.set(Expiration::OneShot(self.within.into()), TimerSetTimeFlags::empty());
        set.map_err(|errno| Error::of("timer_settime")(of_nix(errno)))
    }

    /// How long a process that waits for events may sleep before it puts the timer off again.
    pub fn rest(&self) -> Duration {
        self.within * 3 / 4
    }
}
