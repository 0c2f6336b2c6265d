//! Checks for drift: at intervals, and after each change of the machine's CPUs, memory or devices, compares the division
//! with what was applied; reports each drift once, and repairs the groups whose layout or option says so.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use apply::Lock;
use kernel::Host;
use tracing::{error, info, warn};

use crate::{ConfigurationError, Counters, Division, Keep, division::Repaired};

/// After a change of the machine: mostly several come at once, and a device has its names a little later.
const SETTLE: Duration = Duration::from_millis(300);

/// After a repair, the next one waits this many times as long as it took.
const REST: u32 = 10;

/// While another change has the lock, it is tried again after this time.
const LOCKED: Duration = Duration::from_secs(1);

/// What another change may have done so far is reported after this time all the same.
const LONG: Duration = Duration::from_secs(30);

/// When and how the division is looked at.
pub(crate) struct DriftMonitor {
    keep: Keep,
    every: Duration,
    next: Option<Instant>,
    /// When a change of the machine is to be looked at.
    settled: Option<Instant>,
    machine: String,
    /// The drift that was reported and is still there; whether it is to be repaired.
    reported: HashMap<String, bool>,
    /// Since when new drift may be another change's that is under way.
    waits: Option<Instant>,
    /// Repairs rest until then: who changes his group all the time must not have the history's lock taken all the time.
    rests: Option<Instant>,
    /// Why it can't be looked at or repaired, and what the last change of the machine left to be done.
    failed: Option<String>,
    left: Vec<String>,
}

/// Why the division is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is time again.
    Time,
    /// The machine changed.
    Machine,
}

impl DriftMonitor {
    /// `every`: zero means only when the machine changes.
    pub fn new(keep: Keep, every: Duration) -> DriftMonitor {
        let next = (!every.is_zero()).then(|| Instant::now() + every);
        let (machine, reported) = (Division::machine(), HashMap::new());
        DriftMonitor {
            keep,
            every,
            next,
            settled: None,
            machine,
            reported,
            waits: None,
            rests: None,
            failed: None,
            left: Vec::new(),
        }
    }

    /// What is not as it was applied.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        self.reported.keys().chain(&self.failed).chain(&self.left).cloned()
    }

    /// When it is to be looked at next.
    pub fn due(&self) -> Option<Instant> {
        self.next.into_iter().chain(self.settled).min()
    }

    /// CPUs, memory or devices came or went.
    pub fn machine_changed(&mut self) {
        self.settled.get_or_insert_with(|| Instant::now() + SETTLE);
    }

    /// Is it time? The next time is set then.
    pub fn is_time(&mut self) -> Option<Why> {
        let now = Instant::now();
        if self.settled.is_some_and(|settled| settled <= now) {
            self.settled = None;
            return Some(Why::Machine);
        }
        let due = self.next.is_some_and(|next| next <= now);
        due.then(|| {
            self.next = Some(now + self.every);
            Why::Time
        })
    }

    /// Looks, and repairs. True if something was written: the hierarchies may be others then.
    pub fn look(&mut self, division: &mut Division, why: Why, host: &Host, counters: &Counters) -> bool {
        let machine = Division::machine();
        let other_machine = machine != self.machine;
        if other_machine {
            info!("the machine's CPUs or memory nodes changed");
            self.machine = machine;
        }
        let changed = other_machine || why == Why::Machine;
        if changed && !division.is_applied() {
            let Some(lock) = self.lock(division, changed) else { return false };
            return self.apply(division, &lock, host);
        }
        let stamp = division.stamp();
        let drifts = match division.drift(host) {
            Ok(drifts) => drifts,
            Err(failure) => {
                self.fail(format!("drift cannot be checked: {failure}"));
                return false;
            }
        };
        let missing = division.missing().into_iter();
        // who is in another group by somebody's choice stays there
        let may_be_repaired = |drift: &apply::Drift| drift.in_other().is_none();
        let all =
            drifts.into_iter().map(|(group, drift)| ((group, drift.to_string()), may_be_repaired(&drift)));
        let all = all.chain(missing.map(|one| (one, false)));
        let all = all.map(|((group, what), may)| (self.keep_of(division, &group), (group, what, may)));
        let all: Vec<_> = all.filter(|(keep, _)| *keep != layout::Keep::Off).collect();
        let is_new = |(_, (group, what, _)): &(_, (String, String, bool))| {
            !self.reported.contains_key(&format!("group {group}: {what}"))
        };
        // what is half done is no drift
        if all.iter().any(is_new) && (division.is_changing() || stamp != division.stamp()) {
            let since = *self.waits.get_or_insert_with(Instant::now);
            if since.elapsed() < LONG {
                self.soon(changed);
                return false;
            }
        }
        self.waits = None;
        let mut now = HashMap::new();
        for (keep, (group, what, may_be_repaired)) in all {
            let text = format!("group {group}: {what}");
            if !self.reported.contains_key(&text) {
                Counters::count(&counters.drifts);
                warn!(group, "drift: {text}");
            }
            now.insert(text, may_be_repaired && keep == layout::Keep::Repair);
        }
        if now.is_empty() && !changed {
            self.failed = None;
        }
        let wrong = changed || now.values().any(|repaired| *repaired);
        self.reported = now;
        let rests = self.rests.is_some_and(|until| until > Instant::now()) && !changed;
        if !wrong || rests {
            return false;
        }
        let start = Instant::now();
        let repaired = self.repair(division, changed, host, counters);
        self.rests = Some(Instant::now() + start.elapsed() * REST);
        repaired
    }

    fn keep_of(&self, division: &Division, group: &str) -> layout::Keep {
        division.keep(group).unwrap_or(match self.keep {
            Keep::Repair => layout::Keep::Repair,
            Keep::Report => layout::Keep::Report,
        })
    }

    /// What could not be applied before, perhaps can be on the machine that this is now.
    fn apply(&mut self, division: &mut Division, lock: &Lock, host: &Host) -> bool {
        match division.apply(lock, host) {
            Ok(applied) => {
                applied.warnings.iter().for_each(|warning| warn!("{warning}"));
                info!(generation = applied.generation, steps = applied.steps, "the layout is applied");
                self.failed = None;
                applied.steps > 0
            }
            Err(refused) => {
                self.fail(format!("the layout still is not applied: {refused}"));
                false
            }
        }
    }

    fn repair(&mut self, division: &Division, changed: bool, host: &Host, counters: &Counters) -> bool {
        let wanted = |group: &str| self.keep_of(division, group) == layout::Keep::Repair;
        let Repaired { applied, left } = match division.repair(host, wanted) {
            Ok(Some(repaired)) => repaired,
            Ok(None) => {
                self.locked_out(changed);
                return false;
            }
            Err(ConfigurationError { summary, .. }) => {
                self.fail(format!("drift cannot be repaired: {summary}"));
                return false;
            }
        };
        self.failed = None;
        if changed {
            self.report_left(division, left);
        }
        applied.warnings.iter().for_each(|warning| warn!("{warning}"));
        if applied.steps == 0 {
            return false;
        }
        counters.repairs.fetch_add(1, Relaxed);
        info!(
            generation = applied.generation,
            steps = applied.steps,
            "repaired: the machine matches the layout again"
        );
        // drift that comes back is reported again
        self.reported.retain(|_, repaired| !*repaired);
        true
    }

    /// The lock, if nobody else has it: the loop waits for no other change, but comes back soon.
    fn lock(&mut self, division: &Division, changed: bool) -> Option<Lock> {
        match division.try_lock() {
            Ok(Some(lock)) => return Some(lock),
            Ok(None) => self.locked_out(changed),
            Err(failure) => {
                self.fail(format!("drift cannot be repaired: {failure}"));
                self.soon(changed);
            }
        }
        None
    }

    /// Another change is under way.
    fn locked_out(&mut self, changed: bool) {
        self.fail("drift is not repaired while another change is under way".to_owned());
        self.soon(changed);
    }

    fn soon(&mut self, changed: bool) {
        let soon = Instant::now() + LOCKED;
        if changed {
            self.settled.get_or_insert(soon);
        } else {
            self.next = self.next.map(|next| next.min(soon));
        }
    }

    fn report_left(&mut self, division: &Division, left: BTreeMap<String, usize>) {
        let left =
            left.into_iter().filter(|(group, _)| self.keep_of(division, group) == layout::Keep::Report);
        let report = |(group, steps): (String, usize)| {
            let text = format!("group {group}: as the machine is now, the layout asks for {steps} change(s)");
            warn!(group, "{text}");
            text
        };
        self.left = left.map(report).collect();
    }

    /// Logs a lasting failure once.
    fn fail(&mut self, text: String) {
        if self.failed.as_ref() != Some(&text) {
            error!("{text}");
            self.failed = Some(text);
        }
    }
}
