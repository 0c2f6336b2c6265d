//! A thread that looks once a second whether units are active: systemd may take its time to answer, and the loop must not
//! wait for it. It ends with what it answers to.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use tracing::{error, warn};

use crate::{
    handle::{Command, Handle},
    watching,
};

const EVERY: Duration = Duration::from_secs(1);

/// The thread's reason to go on.
#[derive(Debug)]
pub(crate) struct UnitStates {
    /// Its end ends the thread.
    _alive: Arc<()>,
}

impl UnitStates {
    /// Starts to look at these units; every change of an answer is sent to the loop.
    pub fn of(units: Vec<String>, handle: Handle) -> Option<UnitStates> {
        if units.is_empty() {
            return None;
        }
        let alive = Arc::new(());
        let weak = Arc::downgrade(&alive);
        let started = watching::thread("units", move || look(&units, &weak, &handle));
        started.inspect_err(|error| error!("units are not watched: {error}")).ok()?;
        Some(UnitStates { _alive: alive })
    }
}

fn look(units: &[String], alive: &Weak<()>, handle: &Handle) {
    let names: Vec<&str> = units.iter().map(String::as_str).collect();
    let (mut before, mut failed) = (BTreeMap::new(), false);
    while alive.strong_count() > 0 {
        match systemd::active(&names) {
            Ok(active) => {
                let now: BTreeMap<String, bool> = units.iter().cloned().zip(active).collect();
                if now != before {
                    handle.send(Command::UnitStates(now.clone()));
                    before = now;
                }
                failed = false;
            }
            Err(error) if !failed => {
                warn!("schedules of units wait: {error}");
                failed = true;
            }
            Err(_) => {}
        }
        std::thread::sleep(EVERY);
    }
}
