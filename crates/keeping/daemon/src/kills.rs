//! Writes down which processes the kernel kills for want of memory: its log is a ring, and ends with the boot. A thread that sleeps
//! until the kernel logs something; what was logged before its start is read then.

use std::{
    os::unix::net::UnixStream,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use apply::State;
use kernel::{Host, Real};
use monitor::{KernelLog, Kill};
use rustix::event::{PollFd, PollFlags, poll};
use system::Accounts;
use tracing::{error, info, warn};
use why::kill_log;

use crate::{Counters, Error, failure_log::FailureLog, timespec::timespec, worker::Worker};

/// The kernel logs a kill in several lines.
const SETTLE: Duration = Duration::from_millis(200);
/// A kill's own time is named if it was earlier.
const RECENT: Duration = Duration::from_secs(2);
/// A log that failed is read again after this time.
const AGAIN: Duration = Duration::from_secs(60);

/// Starts the thread.
///
/// # Errors
/// No thread or descriptor is available.
pub(crate) fn start(state: State, counters: Arc<Counters>) -> Result<Worker<()>, Error> {
    let worker = Worker::start("kills", move |stopped| run(&state, &counters, stopped));
    worker.map_err(Error::of("the thread for kills"))
}

fn run(state: &State, counters: &Counters, stopped: &UnixStream) {
    let mut log = match KernelLog::open() {
        Ok(log) => log,
        Err(error) => {
            return warn!(
                "kills for want of memory are not recorded: /dev/kmsg: {error}; with systemctl edit ringfenced: ProtectKernelLogs=no, CapabilityBoundingSet=CAP_SYSLOG, DeviceAllow=/dev/kmsg r"
            );
        }
    };
    counters.kills_are_read.store(1, Relaxed);
    let written = kill_log(state);
    let before: Vec<Kill> = written.all().unwrap_or_else(|failure| {
        error!("earlier kills: {failure}");
        Vec::new()
    });
    let mut failures = FailureLog::new("a kill is not recorded", "kills are recorded again");
    loop {
        let mut pause = Duration::ZERO;
        match log.kills() {
            Ok(kills) => {
                for kill in kills.iter().filter(|kill| !is_among(&before, kill)) {
                    count(counters, kill);
                    say(kill);
                    match written.add(kill) {
                        Ok(()) => failures.succeeded(),
                        Err(failure) => failures.fail(failure),
                    }
                }
            }
            Err(error) => {
                failures.fail(format!("/dev/kmsg: {error}"));
                pause = AGAIN;
            }
        }
        if is_stopped(stopped, &log, pause) {
            return;
        }
    }
}

/// Was it written down by an earlier daemon?
fn is_among(before: &[Kill], kill: &Kill) -> bool {
    before.iter().any(|one| one.number == kill.number && one.boot == kill.boot)
}

/// Waits for the next record; true if it is to end.
fn is_stopped(stopped: &UnixStream, log: &KernelLog, pause: Duration) -> bool {
    let within = |more: Option<Duration>, log: Option<&KernelLog>| {
        let mut ready = vec![PollFd::new(stopped, PollFlags::IN)];
        ready.extend(log.map(|log| PollFd::new(log, PollFlags::IN)));
        let _ = poll(&mut ready, more.map(timespec).as_ref()); // a signal wakes it as well
        !ready[0].revents().is_empty()
    };
    if pause.is_zero() {
        within(None, Some(log)) || within(Some(SETTLE), None)
    } else {
        within(Some(pause), None)
    }
}

fn count(counters: &Counters, kill: &Kill) {
    let by = match (&kill.limited, &kill.group) {
        (Some(_), _) => &counters.killed_at_a_limit,
        (None, Some(_)) => &counters.killed_on_the_machine,
        (None, None) => &counters.killed_unknown,
    };
    Counters::count(by);
}

fn say(kill: &Kill) {
    let Ok(host) = Host::new(Box::new(Real::new())) else { return };
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(kill.at);
    // what was logged before the daemon's start has another time than the line
    let when = match at.elapsed() {
        Ok(ago) if ago > RECENT => format!("{}: ", humantime::format_rfc3339_seconds(at)),
        _ => String::new(),
    };
    info!("{when}{}", why::sentence(&host, kill, &Accounts::new()));
}
