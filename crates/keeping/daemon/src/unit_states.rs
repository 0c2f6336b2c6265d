//! A thread that looks once a second whether units are active, or which ones fit a pattern: systemd may take its time to answer, and
//! the loop must not wait for it. It ends with what it answers to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kernel::UnitError;
use tracing::error;

use crate::{
    failure_log::FailureLog,
    handle::{Command, Handle},
    watching,
};

const EVERY: Duration = Duration::from_secs(1);
/// How often the loop looks at units that it could not bind.
const RARELY: Duration = Duration::from_secs(60);

/// The thread's reason to go on.
#[derive(Debug)]
pub(crate) struct UnitStates {
    /// Its end ends the thread.
    _alive: Arc<()>,
}

impl UnitStates {
    /// Starts to look at these units; every change of an answer is sent to the loop.
    pub fn of(units: Vec<String>, handle: Handle) -> Option<UnitStates> {
        let ask = |units: &[&str]| {
            let active = systemd::active(units)?;
            Ok(units.iter().map(|unit| (*unit).to_owned()).zip(active).collect::<BTreeMap<String, bool>>())
        };
        let tell = move |before: &_, now: &BTreeMap<String, bool>| {
            if now != before {
                handle.send(Command::UnitStates(now.clone()));
            }
        };
        UnitStates::start(units, "schedules of units wait", ask, tell)
    }

    /// Starts to look for units that fit one of these patterns; notifies the loop of new ones.
    pub fn of_patterns(patterns: Vec<String>, handle: Handle) -> Option<UnitStates> {
        let ask =
            |patterns: &[&str]| Ok(systemd::fitting(patterns)?.into_iter().collect::<BTreeSet<String>>());
        // at once, and again in longer and longer times: a change that was under way, or systemd, may have been in the way
        let again = Mutex::new((Instant::now(), EVERY));
        let tell = move |before: &BTreeSet<String>, now: &BTreeSet<String>| {
            let mut again = again.lock().unwrap_or_else(PoisonError::into_inner);
            if !now.is_subset(before) {
                *again = (Instant::now(), EVERY);
            }
            let (at, pause) = *again;
            if at <= Instant::now() {
                *again = (Instant::now() + pause, (pause * 2).min(RARELY));
                handle.send(Command::UnitsCame);
            }
        };
        UnitStates::start(patterns, "units that come are not bound", ask, tell)
    }

    /// `ask` answers about the names; `tell` gets the answer before and each one.
    fn start<T: Default + PartialEq + Send + 'static>(
        names: Vec<String>,
        failed: &'static str,
        ask: impl Fn(&[&str]) -> Result<T, UnitError> + Send + 'static,
        tell: impl Fn(&T, &T) + Send + 'static,
    ) -> Option<UnitStates> {
        if names.is_empty() {
            return None;
        }
        let alive = Arc::new(());
        let weak = Arc::downgrade(&alive);
        let look = move || {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (mut before, mut failures) = (T::default(), FailureLog::new(failed, "systemd answers again"));
            while weak.strong_count() > 0 {
                match ask(&names) {
                    Ok(now) => {
                        tell(&before, &now);
                        before = now;
                        failures.succeeded();
                    }
                    Err(error) => failures.fail(error),
                }
                std::thread::sleep(EVERY);
            }
        };
        let started = watching::thread("units", look);
        started.inspect_err(|error| error!("units are not watched: {error}")).ok()?;
        Some(UnitStates { _alive: alive })
    }
}
