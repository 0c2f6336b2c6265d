//! The beat of a command that runs until Ctrl-C, SIGTERM or SIGHUP.

use std::{os::unix::net::UnixStream, time::Duration};

use kernel::describe;
use monitor::{Beat, Cadence};
use rustix::io::Errno;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};

use crate::failure::Failure;

pub struct Beats {
    cadence: Cadence,
    /// Becomes readable with the first signal.
    stopped: UnixStream,
}

impl Beats {
    /// The first beat is at once.
    pub fn new(interval: Duration) -> Result<Beats, Failure> {
        let failed = |error: std::io::Error| Failure::new(format!("signals can't be caught: {error}"));
        let (stopped, sender) = UnixStream::pair().map_err(failed)?;
        let hangup = (!ignores_hangup()).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            pipe::register(signal, sender.try_clone().map_err(failed)?).map_err(failed)?;
        }
        Ok(Beats { cadence: Cadence::new(interval).map_err(no_beat)?, stopped })
    }

    /// Waits for the next beat; `None`: it is to end.
    pub fn next(&mut self) -> Result<Option<Beat>, Failure> {
        self.cadence.until(&self.stopped).map_err(no_beat)
    }

    /// The timer and what becomes readable with the first signal, for a loop that waits itself.
    pub fn parts(&mut self) -> (&mut Cadence, &UnixStream) {
        (&mut self.cadence, &self.stopped)
    }
}

fn no_beat(errno: Errno) -> Failure {
    Failure::new(format!("there is no timer: {}", describe(errno)))
}

/// As nohup(1) has it: then it goes on without its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}
