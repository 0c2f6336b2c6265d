//! The rules: grow at once, shrink slowly, undo what did harm, end safely.

use std::time::Duration;

use units::CpuSet;

use crate::elastic::{Sizes, sizes, static_sizes};
use crate::loans::Loans;
use crate::memory::{Memory, count_within};
use crate::share::{Claim, divide};
use crate::{
    Dealer, Decision, Division, Elastic, Error, GroupState, Live, Parameters, Pool, Reason, Refusals, Units,
};

/// The policy for some groups on a machine.
#[derive(Debug, Clone)]
pub struct Policy {
    names: Vec<String>,
    sizes: Vec<Sizes>,
    numbers: Parameters,
    pool: Pool,
    memories: Vec<Memory>,
    loans: Loans,
    last: Option<f64>,
    refusals: Refusals,
    stopped: bool,
}

/// What a group is to have, before what is free is known.
#[derive(Debug, Clone, Copy)]
struct Wish {
    /// In units, within its bounds; more than it has if it is to grow.
    size: usize,
    /// Why, if it is to grow.
    reason: Option<Reason>,
    /// May it lose units in this tick?
    may_lose: bool,
}

impl Policy {
    /// Starts with the static division: each group has its `min` and its weighted share of the rest, up to its `max`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn new(groups: &[Elastic], units: Units, numbers: Parameters) -> Result<Policy, Error> {
        let mut policy = Policy::empty(groups, units, numbers)?;
        for (group, size) in static_sizes(&policy.sizes, policy.pool.units().len()).into_iter().enumerate() {
            policy.pool.grow(group, size);
        }
        Ok(policy)
    }

    /// Starts with the sets that the groups have, in the groups' order.
    ///
    /// # Errors
    /// [`Error`]; a set that is not made of units, is out of the group's bounds, or overlaps another.
    pub fn with_sets(
        groups: &[Elastic],
        units: Units,
        numbers: Parameters,
        sets: &[CpuSet],
    ) -> Result<Policy, Error> {
        let mut policy = Policy::empty(groups, units, numbers)?;
        let none = CpuSet::new();
        // what borrowers have beside their own is others'
        let (owners, borrowers): (Vec<usize>, Vec<usize>) =
            (0..groups.len()).partition(|group| !policy.loans.borrows(*group));
        for group in owners.into_iter().chain(borrowers) {
            let Sizes { min, max, .. } = policy.sizes[group];
            let cpus = sets.get(group).unwrap_or(&none);
            let wrong =
                |reason| Error::Start { name: groups[group].name.clone(), cpus: cpus.clone(), reason };
            let found = policy.pool.units().find(cpus);
            let found =
                found.ok_or_else(|| wrong("these are not whole cores of the machine's elastic CPUs"))?;
            let borrows = policy.loans.borrows(group);
            if found.len() < min || (found.len() > max && !borrows) {
                return Err(wrong("that is below its min or above its max"));
            }
            let own = if borrows { policy.pool.first_free(&found, min) } else { found };
            if own.len() < min || !policy.pool.give(group, &own) {
                return Err(wrong("another group has some of them"));
            }
            policy.loans.restore(&policy.pool, group, cpus);
        }
        Ok(policy)
    }

    fn empty(groups: &[Elastic], units: Units, numbers: Parameters) -> Result<Policy, Error> {
        numbers.check()?;
        let mut sizes = sizes(groups, &units)?;
        let most = groups.iter().zip(&sizes).map(|(group, size)| group.borrows.then_some(size.max));
        let loans = Loans::new(most);
        for (size, _) in sizes.iter_mut().zip(groups).filter(|(_, group)| group.borrows) {
            size.max = size.min;
        }
        Ok(Policy {
            names: groups.iter().map(|group| group.name.clone()).collect(),
            sizes,
            numbers,
            pool: Pool::new(units, groups.len()),
            memories: vec![Memory::new(); groups.len()],
            loans,
            last: None,
            refusals: Refusals::default(),
            stopped: false,
        })
    }

    /// Does a group's latency decide in place of its waiting? `false` after `true`: its source has stopped.
    pub fn is_by_latency(&self, group: usize) -> bool {
        self.memories.get(group).is_some_and(|memory| memory.by_latency)
    }

    /// Resizes again.
    pub fn resume(&mut self) {
        self.stopped = false;
        self.refusals = Refusals::default();
        self.memories.iter_mut().for_each(|memory| *memory = Memory::new());
    }

    fn lend(&mut self, now: f64, states: &[GroupState], may_lend: bool) -> Vec<Decision> {
        let seen = (states, self.memories.as_slice());
        self.loans.tick(now, seen, (&self.pool, &self.names), (&self.numbers, may_lend))
    }

    /// Units of a use, where no more than this share of them may be used.
    fn units(&self, used: f64, full: f64) -> usize {
        let units = (used / full / self.pool.units().width() as f64 - 1e-9).ceil();
        if units > 0.0 { units as usize } else { 0 } // a huge figure becomes the largest number
    }

    fn wish(&self, group: usize, state: &GroupState, harmed: Option<usize>) -> Wish {
        let (Sizes { min, max, .. }, size) = (self.sizes[group], self.pool.size(group));
        let (numbers, memory) = (&self.numbers, &self.memories[group]);
        let busy = self.units(state.used, numbers.full);
        let waits = state.is_short(numbers) && state.throttled <= 0.0;
        let step = if waits { size + (size as f64 * numbers.growth).ceil().max(1.0) as usize } else { 0 };
        let wanted = busy.max(step).max(harmed.unwrap_or(0)).clamp(min, max);
        if wanted > size {
            let dwell = memory.dwell(numbers);
            let (waiting, baseline) = (state.waiting, memory.baseline);
            let reason = match (harmed, state.slack) {
                (Some(_), Some(slack)) => Reason::Slowed { slack, dwell },
                (Some(_), None) => Reason::Harm { waiting, baseline, dwell },
                (None, Some(slack)) if step > busy => Reason::Slow { slack },
                (None, None) if step > busy => Reason::Waits { waiting },
                (None, _) => Reason::Busy { used: state.used },
            };
            return Wish { size: wanted, reason: Some(reason), may_lose: harmed.is_none() };
        }
        let needed = self.units(memory.recent(), numbers.full).clamp(min, size.max(min));
        Wish { size: needed, reason: None, may_lose: true }
    }

    /// Growth in the groups' order, as far as units are free; says what each is short of, and each one's weighted share.
    fn grow(&mut self, wishes: &[Wish], decisions: &mut Vec<Decision>) -> (usize, Vec<usize>) {
        let claim =
            |(wish, size): (&Wish, &Sizes)| Claim { min: size.min, want: wish.size, weight: size.weight };
        let claims: Vec<Claim> = wishes.iter().zip(&self.sizes).map(claim).collect();
        let shares = divide(self.pool.units().len(), &claims);
        let missing = |pool: &Pool, group: usize, to: usize| to.saturating_sub(pool.size(group));
        let growing =
            || wishes.iter().enumerate().filter_map(|(group, wish)| Some((group, wish, wish.reason?)));
        let wanted: usize = growing().map(|(group, wish, _)| missing(&self.pool, group, wish.size)).sum();
        let enough = wanted <= self.pool.free();
        let mut short = 0;
        for (group, wish, reason) in growing() {
            let count = missing(&self.pool, group, if enough { wish.size } else { shares[group] });
            let from = self.pool.cpus(group);
            let given = self.pool.grow(group, count);
            short += count - given;
            if given > 0 {
                self.memories[group].quiet_since = None;
                decisions.push(Decision::of(&self.pool, group, &self.names[group], from, reason));
            }
        }
        (short, shares)
    }

    /// Shrinking, in the reverse order: what others are short of first, then what quiet groups have no use for.
    fn shrink(
        &mut self,
        now: f64,
        states: &[GroupState],
        wishes: &[Wish],
        short: usize,
        shares: &[usize],
    ) -> Vec<Decision> {
        let mut decisions = Vec::new();
        let mut short = short.saturating_sub(self.pool.returned());
        let width = self.pool.units().width();
        for group in (0..wishes.len()).rev().filter(|group| wishes[*group].may_lose) {
            let (size, wish, min) = (self.pool.size(group), &wishes[group], self.sizes[group].min);
            let memory = &self.memories[group];
            let surplus = size.saturating_sub(shares[group].max(min));
            let (count, reason) = if short > 0 && surplus > 0 {
                let busy = Reason::OverShare { share: shares[group] * width };
                let lends = Reason::Lends { recent: memory.recent() };
                (
                    surplus.min(short),
                    if wish.reason.is_some() || wish.size > shares[group] { busy } else { lends },
                )
            } else if wish.reason.is_none() {
                let dwell = memory.dwell(&self.numbers);
                if memory.quiet_since.is_none_or(|since| now - since < dwell) {
                    continue;
                }
                let target = self.units(memory.peak, self.numbers.spare).max(min);
                let peak = memory.peak;
                self.memories[group].restart(now, states[group].used);
                let gap = size.saturating_sub(target) as f64;
                if gap < size as f64 * self.numbers.least_gap {
                    continue;
                }
                ((gap * self.numbers.shrinking).ceil() as usize, Reason::Quiet { peak, dwell })
            } else {
                continue;
            };
            if count > 0 {
                short = short.saturating_sub(count);
                // who has more than its share waits by right
                if !matches!(reason, Reason::OverShare { .. }) {
                    self.memories[group].shrunk = Some((now, size));
                }
                decisions.push(self.shrink_one(group, count, reason));
            }
        }
        decisions
    }

    fn shrink_one(&mut self, group: usize, count: usize, reason: Reason) -> Decision {
        let from = self.pool.cpus(group);
        self.pool.shrink(group, count);
        Decision::of(&self.pool, group, &self.names[group], from, reason)
    }

    /// Towards the static division: groups that have less grow as far as units are free, then the others shrink.
    fn give_up(&mut self) -> Vec<Decision> {
        let sizes = static_sizes(&self.sizes, self.pool.units().len());
        let mut decisions = Vec::new();
        for (group, size) in sizes.iter().enumerate() {
            let from = self.pool.cpus(group);
            if self.pool.grow(group, size.saturating_sub(self.pool.size(group))) > 0 {
                decisions.push(Decision::of(&self.pool, group, &self.names[group], from, Reason::GivesUp));
            }
        }
        for (group, size) in sizes.iter().enumerate().rev() {
            let count = self.pool.size(group).saturating_sub(*size);
            if count > 0 {
                decisions.push(self.shrink_one(group, count, Reason::GivesUp));
            }
        }
        decisions
    }
}

impl Division for Policy {
    fn tick(&mut self, now: Duration, states: &[GroupState]) -> Vec<Decision> {
        self.pool.settle();
        let now = now.as_secs_f64();
        let since = self.last.replace(now).map(|last| now - last);
        if self.stopped {
            let mut decisions = self.give_up();
            decisions.extend(self.lend(now, &vec![GroupState::default(); self.names.len()], false));
            return decisions;
        }
        let (period, late) = (self.numbers.period, self.numbers.late);
        let late = since.is_some_and(|since| !(0.0..=period * late).contains(&since));
        let mut wishes = Vec::with_capacity(self.names.len());
        let mut seen = Vec::with_capacity(self.names.len());
        for group in 0..self.names.len() {
            let Some(state) = states.get(group).filter(|state| state.is_sound()) else {
                seen.push(GroupState::default());
                wishes.push(Wish { size: self.pool.size(group), reason: None, may_lose: false });
                continue;
            };
            let memory = &mut self.memories[group];
            memory.observe(state, now, late, &self.numbers);
            let harmed = memory.harmed(state, now, &self.numbers);
            let undone = count_within(&mut memory.reversals, now, self.numbers.given_up_within);
            self.stopped |= undone as f64 >= self.numbers.reversals;
            wishes.push(self.wish(group, state, harmed));
            seen.push(*state);
        }
        let mut decisions = Vec::new();
        let (short, shares) = self.grow(&wishes, &mut decisions);
        if !late {
            let grown: Vec<usize> = decisions.iter().map(|decision| decision.group).collect();
            for group in grown {
                wishes[group].may_lose = false;
            }
            decisions.extend(self.shrink(now, &seen, &wishes, short, &shares));
        }
        decisions.extend(self.lend(now, &seen, true));
        decisions
    }

    fn cpus(&self, group: usize) -> CpuSet {
        self.loans.cpus(&self.pool, group)
    }
}

impl Dealer for Policy {
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Live for Policy {
    fn withdraw(&mut self, decision: &Decision) {
        let group = decision.group;
        if group >= self.names.len() {
            return;
        }
        if self.loans.borrows(group) {
            return self.loans.restore(&self.pool, group, &decision.from);
        }
        self.pool.take_back(group, &decision.from);
        self.memories[group].shrunk = None;
    }

    fn refused(&mut self, now: Duration, decision: &Decision) {
        self.withdraw(decision);
        self.stopped |= self.refusals.add(now, self.numbers.refusals, self.numbers.given_up_within);
    }

    /// The static division stays until [`Policy::resume`].
    fn has_stopped(&self) -> bool {
        self.stopped
    }
}
