//! The recorder's thread: the loop of `ringfence record`, restarted where that would end.

use std::{ops::ControlFlow, os::unix::net::UnixStream, time::Duration};

use exporters::layout_units;
use kernel::{Host, Real};
use monitor::{
    Cadence, Groups, Options, Recorder, RecorderOptions, Sampler,
    log::{Recording, Turn},
};
use rustix::event::{PollFd, PollFlags, poll};
use tracing::{info, warn};

use super::{Shared, few};
use crate::{Record, failure_log::FailureLog, timespec::timespec};

/// Records until `stopped` becomes readable.
pub(super) fn run(record: &Record, shared: &Shared, stopped: &UnixStream, again: Duration) {
    let mut failures = FailureLog::new("nothing is recorded", "samples are recorded again");
    let mut recording = None;
    loop {
        let trouble = match &mut recording {
            None => match open(record) {
                Ok(opened) => {
                    recording = Some(opened);
                    continue;
                }
                Err(trouble) => trouble,
            },
            Some(recording) => match sampled(recording, record, shared, stopped, &mut failures) {
                Ok(true) => return,
                Ok(false) => continue,
                Err(trouble) => trouble,
            },
        };
        failures.fail(trouble);
        shared.record(recording.as_ref().map(Recording::counts).unwrap_or_default(), false);
        if is_stopped_within(stopped, again) {
            return;
        }
    }
}

fn open(record: &Record) -> Result<Recording, String> {
    let options = RecorderOptions { size: record.size, ..RecorderOptions::default() };
    let (recorder, torn) =
        Recorder::open(&record.directory, options).map_err(|error| match error.hint() {
            Some(hint) => format!("{error}; hint: {hint}"),
            None => error.to_string(),
        })?;
    torn.iter().for_each(|torn| warn!("{torn}"));
    info!("recording into {}", record.directory.display());
    Ok(Recording::new(recorder))
}

/// Samples of these hierarchies; true if it is to stop, false if they may be others now.
fn sampled(
    recording: &mut Recording,
    record: &Record,
    shared: &Shared,
    stopped: &UnixStream,
    failures: &mut FailureLog,
) -> Result<bool, String> {
    let mounts = shared.mounts();
    let host = Host::new(Box::new(Real::new())).map_err(|error| error.to_string())?;
    let mut sampler = Sampler::new(&host, few(), Options::every(record.interval, Groups::Ours), true);
    if let Some(state) = shared.state.clone() {
        sampler = sampler.also(layout_units(state));
    }
    let mut cadence =
        Cadence::new(record.interval).map_err(|errno| format!("no timer: {}", kernel::describe(errno)))?;
    let after = |recording: &Recording, turn| {
        match turn {
            Some(Turn::Lost(error)) => failures.fail(error),
            Some(Turn::Again) => failures.succeeded(),
            // it was the log or the groups that could not be opened
            None if recording.is_steady() => failures.succeeded(),
            None => {}
        }
        shared.record(recording.counts(), !recording.is_failing());
        if shared.mounts() == mounts { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let ended = recording.run(&host, &mut sampler, (&mut cadence, stopped), after);
    ended.map_err(|broken| broken.to_string())?;
    Ok(shared.mounts() == mounts || is_stopped_within(stopped, Duration::ZERO))
}

fn is_stopped_within(stopped: &UnixStream, time: Duration) -> bool {
    let mut ready = [PollFd::new(stopped, PollFlags::IN)];
    poll(&mut ready, Some(&timespec(time))).is_ok_and(|ready| ready > 0)
}
