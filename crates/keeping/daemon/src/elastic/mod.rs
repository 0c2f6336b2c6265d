//! Resizes the elastic groups of the layout in effect with their load: figures of groups, the policy's decisions, writes.
//! On a thread of its own; what it changes it changes under the history's lock, without ever waiting for it. When it ends,
//! groups have what they had last, which is within their bounds.

// in the order of the data's way
mod part;

mod contents;

mod online;

mod members;

mod pool;

mod undivided;

mod quotas;

mod memory;

mod states;

mod latencies;

mod controller;

mod alone;

use std::{collections::BTreeMap, os::unix::net::UnixStream, sync::Arc, time::Duration};

use apply::{Controller as Said, Resizing, State};
use kernel::{Host, Real};
use tracing::{info, warn};

use crate::{Counters, Error, failure_log::FailureLog, history_events, worker::Worker};
pub use alone::{Resized, Resizer};
use controller::{Controller, End};
use latencies::Latencies;

/// How often it tries again while another change is under way, or something prevents resizing.
const LOOK: Duration = Duration::from_secs(1);

/// Starts the thread.
///
/// # Errors
/// No thread or descriptor is available.
pub(crate) fn start(state: State, counters: Arc<Counters>) -> Result<Worker<()>, Error> {
    let worker = Worker::start("elastic", move |stopped| run(&state, &counters, stopped));
    worker.map_err(Error::of("the thread for elastic groups"))
}

fn run(state: &State, counters: &Counters, stopped: &UnixStream) {
    let mut failures = FailureLog::new("elastic groups are not resized", "elastic groups are resized again");
    let mut resizing: Option<Resizing> = None;
    let mut latencies = Latencies::default();
    let mut left_alone: Vec<String> = Vec::new();
    let events = history_events::watch(state);
    let events = events.inspect_err(|errno| warn!("elastic layouts are noticed late: inotify: {errno}")).ok();
    loop {
        let ended = round(state, counters, stopped, &mut resizing, (&mut latencies, &mut left_alone));
        let time = match &ended {
            Ok(End::Stopped) => return,
            Ok(End::Changed) => Some(Duration::ZERO),
            Ok(End::Nothing) if events.is_some() => None,
            Ok(End::Nothing | End::Later) | Err(_) => Some(LOOK),
        };
        match ended {
            Ok(_) => failures.succeeded(),
            Err(why) => {
                if let Some(resizing) = &mut resizing {
                    let (pid, latencies) = (std::process::id(), latencies.measured());
                    resizing.say(&Said { pid, latencies, stopped: Some(why.clone()), ..Said::default() });
                }
                failures.fail(why);
            }
        }
        if history_events::is_stopped_within(stopped, events.as_ref(), time) {
            return;
        }
    }
}

/// One layout, from when it is found until another is in effect.
fn round(
    state: &State,
    counters: &Counters,
    stopped: &UnixStream,
    resizing: &mut Option<Resizing>,
    (latencies, left_alone): (&mut Latencies, &mut Vec<String>),
) -> Result<End, String> {
    let host = Host::even_without_hierarchies(Box::new(Real::new())).map_err(|error| error.to_string())?;
    let mut controller = match Controller::find(state, &host, counters, resizing)? {
        Ok(controller) => controller,
        Err(End::Nothing) => {
            latencies.follow(&BTreeMap::new());
            return Ok(idle(resizing));
        }
        Err(end) => return Ok(end),
    };
    let Some(resizing) = resizing else { return Ok(End::Later) };
    let generation = controller.generation();
    match controller.is_paused() {
        true => info!(generation, "resizing is paused"),
        false => info!(generation, "resizing {}", controller.names()),
    }
    latencies.follow(controller.latencies());
    // each of them once, whatever begins a round
    let mut left: Vec<String> = controller.left_alone().iter().map(ToString::to_string).collect();
    left.dedup(); // one that is gone has none of its settings
    for left in left.iter().filter(|left| !left_alone.contains(left)) {
        warn!("{left}: it is not resized: {}", controller.again().apply());
    }
    *left_alone = left;
    controller.run(counters, stopped, resizing, latencies)
}

/// Nobody is resized any more.
fn idle(resizing: &mut Option<Resizing>) -> End {
    if resizing.take().is_some() {
        info!("no layout in effect has elastic groups");
    }
    End::Nothing
}
