//! Keeps the division: now and then compares it with what was applied, and with the CPUs and memory that the machine
//! then had; tells each difference once, and repairs where that is asked.

use std::{
    collections::HashSet,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use kernel::Host;
use tracing::{error, info, warn};

use crate::{Counters, Division, Keep, Refused};

/// When and how the division is looked at.
pub(crate) struct Keeping {
    keep: Keep,
    every: Duration,
    next: Option<Instant>,
    machine: String,
    /// What was told and still holds.
    told: HashSet<String>,
}

impl Keeping {
    /// `every`: zero means never.
    pub fn new(keep: Keep, every: Duration) -> Keeping {
        let next = (!every.is_zero()).then(|| Instant::now() + every);
        Keeping { keep, every, next, machine: Division::machine(), told: HashSet::new() }
    }

    /// What is not as it was applied.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        self.told.iter().cloned()
    }

    /// When it is to be looked at next.
    pub fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Is it time? The next time is set then.
    pub fn is_time(&mut self) -> bool {
        let now = Instant::now();
        let due = self.next.is_some_and(|next| next <= now);
        if due {
            self.next = Some(now + self.every);
        }
        due
    }

    /// Looks, and repairs. True if something was written: the hierarchies may be others then.
    pub fn look(&mut self, division: &Division, host: &Host, counters: &Counters) -> bool {
        let machine = Division::machine();
        let other_machine = machine != self.machine;
        if other_machine {
            info!("the machine's CPUs or memory are others than before");
            self.machine = machine;
        }
        let drifts = match division.drift(host) {
            Ok(drifts) => drifts,
            Err(failure) => {
                self.tell_once(format!("the division can't be looked at: {failure}"));
                return false;
            }
        };
        let now: HashSet<String> =
            drifts.iter().map(|(group, drift)| format!("group {group}: {drift}")).collect();
        for new in now.iter().filter(|drift| !self.told.contains(*drift)) {
            Counters::count(&counters.drifts);
            warn!("not as it was applied: {new}");
        }
        let wrong = !now.is_empty() || other_machine;
        self.told = now;
        wrong && self.keep == Keep::Repair && self.repair(division, host, counters)
    }

    fn repair(&mut self, division: &Division, host: &Host, counters: &Counters) -> bool {
        match division.apply(host) {
            Ok(applied) if applied.steps > 0 => {
                counters.repairs.fetch_add(1, Relaxed);
                info!(steps = applied.steps, "made as the layout asks again");
                // a difference that comes back is told again
                self.told.clear();
                true
            }
            Ok(_) => false,
            Err(Refused { summary, .. }) => {
                self.tell_once(format!("it can't be made as the layout asks: {summary}"));
                false
            }
        }
    }

    fn tell_once(&mut self, text: String) {
        if !self.told.contains(&text) {
            error!("{text}");
            self.told.insert(text);
        }
    }
}
