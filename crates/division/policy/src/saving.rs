//! Power saving: groups without CPUs of their own are confined to fewer of them while they use little, so that whole cores,
//! and packages where that is enough, stay idle. They grow at once with their load, and shrink after a quiet time.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use topology::Machine;
use units::CpuSet;

use crate::parameters::parameters;
use crate::{Error, GroupState, Reason, Units};

parameters! {
    /// The numbers of power saving; [`SAVING`] has their units, defaults and ranges.
    Numbers, SAVING;
    period: 0.1 "s", 0.01 to 60.0, "The time between two samples.";
    late: 3.0 "periods", 1.5 to 100.0, "A sample that comes later than this after the one before is late: no CPU is taken then.";
    full: 0.8 "of their CPUs", 0.1 to 1.0, "General groups that use more than this share of their CPUs grow at once.";
    waiting: 0.02 "of the time", 0.001 to 1.0, "General groups that wait more than this grow at once, too.";
    growth: 1.0 "of their CPUs", 0.1 to 16.0, "How much they grow by, at least to use / spare.";
    spare: 0.5 "of their CPUs", 0.1 to 1.0, "They shrink to their peak / spare; below full, so that they do not grow back at once.";
    least_gap: 0.25 "of their CPUs", 0.0 to 1.0, "A smaller gap to that size changes nothing.";
    dwell: 10.0 "s", 0.1 to 3600.0, "How long they have to be quiet before they shrink; their peak of this time decides.";
    refusals: 3.0 "times", 1.0 to 1000.0, "This many refused writes end power saving: they have all their CPUs.";
    given_up_within: 60.0 "s", 1.0 to 3600.0, "The time in which these are counted.";
}

/// The CPUs of general groups.
#[derive(Debug, Clone)]
pub struct Saving {
    units: Units,
    /// The unit that is used first in front.
    order: Vec<usize>,
    floor: usize,
    size: usize,
    numbers: Numbers,
    last: Option<f64>,
    /// Since when they had enough, and the most CPUs used since then.
    quiet: Option<(f64, f64)>,
}

/// The general groups' new CPU set. It adds to the old one or takes from it, never both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What they had.
    pub from: CpuSet,
    /// What they get.
    pub to: CpuSet,
    /// Why.
    pub reason: Reason,
}

impl Saving {
    /// Starts with all units. `units`: what general groups can have; `named`: the CPUs of groups that have their own, from
    /// which general groups stay as far away as they can; `floor`: CPUs that they always have.
    ///
    /// # Errors
    /// The floor is 0 or more than there is; a number is out of its range.
    pub fn new(
        machine: &Machine,
        units: Units,
        named: &CpuSet,
        floor: usize,
        numbers: Numbers,
    ) -> Result<Saving, Error> {
        numbers.check()?;
        let there = units.len() * units.width();
        if !(1..=there).contains(&floor) {
            return Err(Error::Floor { floor, there });
        }
        let order = farthest(machine, &units, named);
        let (floor, size) = (floor.div_ceil(units.width()), units.len());
        Ok(Saving { units, order, floor, size, numbers, last: None, quiet: None })
    }

    /// Starts with these CPUs. False, with nothing changed: power saving makes no such set.
    pub fn start(&mut self, cpus: &CpuSet) -> bool {
        let sizes = self.floor..=self.units.len();
        let size = sizes.into_iter().find(|size| self.units.cpus(&self.order[..*size]) == *cpus);
        self.size = size.unwrap_or(self.size);
        size.is_some()
    }

    /// The numbers that it follows.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The CPUs of general groups now.
    pub fn cpus(&self) -> CpuSet {
        self.units.cpus(&self.order[..self.size])
    }

    /// The units that nobody uses now.
    pub fn unused(&self) -> usize {
        self.units.len() - self.size
    }

    /// What CPUs are given and taken in.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// The change that follows from what all general groups used together. Figures that are no numbers change nothing.
    pub fn tick(&mut self, now: Duration, state: &GroupState) -> Option<Change> {
        let now = now.as_secs_f64();
        let since = self.last.replace(now).map(|last| now - last);
        let longest = self.numbers.period * self.numbers.late;
        if since.is_some_and(|since| !(0.0..=longest).contains(&since)) {
            self.quiet = None;
        }
        if !state.is_sound() {
            self.quiet = None;
            return None;
        }
        let (size, reason) = self.wanted(now, state)?;
        if size == self.size {
            return None;
        }
        let from = self.cpus();
        self.size = size;
        self.quiet = Some((now, state.used));
        Some(Change { from, to: self.cpus(), reason })
    }

    /// All units at once: saving ends.
    pub fn end(&mut self) -> Option<Change> {
        let from = self.cpus();
        (self.size, self.quiet) = (self.units.len(), None);
        let to = self.cpus();
        (from != to).then_some(Change { from, to, reason: Reason::GivesUp })
    }

    fn wanted(&mut self, now: f64, state: &GroupState) -> Option<(usize, Reason)> {
        let Numbers { full, waiting, growth, least_gap, dwell, .. } = self.numbers;
        let has = (self.size * self.units.width()) as f64;
        let busy = state.used > has * full;
        let waits = state.waiting > waiting && state.throttled <= 0.0;
        if busy || waits {
            self.quiet = None;
            let step = (self.size as f64 * growth).ceil().max(1.0) as usize;
            let size = self.enough(state.used).max(self.size + step).min(self.units.len());
            let reason = if busy {
                Reason::Busy { used: state.used }
            } else {
                Reason::Waits { waiting: state.waiting }
            };
            return Some((size, reason));
        }
        let (since, peak) = self.quiet.unwrap_or((now, 0.0));
        let peak = peak.max(state.used);
        self.quiet = Some((since, peak));
        if now - since < dwell {
            return None;
        }
        self.quiet = Some((now, state.used));
        let size = self.enough(peak).max(self.floor);
        let gap = self.size.saturating_sub(size) as f64;
        let is_worth_it = gap > 0.0 && gap >= self.size as f64 * least_gap;
        is_worth_it.then_some((size, Reason::Quiet { peak, dwell: now - since }))
    }

    /// Units of which a use takes no more than `spare`.
    fn enough(&self, used: f64) -> usize {
        let units = (used / self.numbers.spare / self.units.width() as f64 - 1e-9).ceil();
        (units.max(0.0) as usize).min(self.units.len()) // a huge figure becomes the largest number
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { from, to, reason } = self;
        write!(f, "general groups: {} to {} CPUs ({to}): {reason}", from.len(), to.len())
    }
}

/// The units, those farthest from `named` first: by the distance of their nodes where it is known, else those on another
/// node; among equals those of the last node with the highest numbers.
fn farthest(machine: &Machine, units: &Units, named: &CpuSet) -> Vec<usize> {
    let nodes = named.iter().filter_map(|cpu| machine.node_of_cpu(cpu));
    let nodes: Vec<usize> = nodes.collect::<std::collections::BTreeSet<usize>>().into_iter().collect();
    let away = |node: usize, other: usize| {
        machine.distance(node, other).unwrap_or(if node == other { 10 } else { 20 })
    };
    let distance = |unit: &usize| {
        let unit = &units.all()[*unit];
        match unit.cpus.is_disjoint(named) {
            true => nodes.iter().map(|node| away(*node, unit.node)).min().unwrap_or(u32::MAX),
            false => 0,
        }
    };
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_cached_key(|unit| Reverse((distance(unit), *unit)));
    order
}
