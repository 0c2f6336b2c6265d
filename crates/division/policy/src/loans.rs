//! CPUs that are lent: a group whose tasks run only where nobody else wants to (`cpu.idle`) has, beside its own units, those
//! that are free and those of owners that lend them. They stay in the owner's set, whose tasks pre-empt the borrower's at once, so
//! that nothing has to be decided when the owner needs them.

use std::collections::BTreeSet;

use units::CpuSet;

use crate::{Decision, GroupState, Parameters, Pool, Reason, memory::Memory};

/// Who lends and what is borrowed.
#[derive(Debug, Clone)]
pub(crate) struct Loans {
    /// By group; `None` of one that borrows.
    owners: Vec<Option<Loan>>,
    /// By group: the most units that a borrower has, and those beside its own.
    borrowers: Vec<Option<Borrower>>,
}

/// An owner's readiness.
#[derive(Debug, Clone, Copy)]
struct Loan {
    /// Since when it lends.
    since: Option<f64>,
    /// Until when it does not, after harm.
    blocked: f64,
    /// How many times longer than at first it is blocked.
    caution: f64,
}

#[derive(Debug, Clone)]
struct Borrower {
    most: usize,
    borrowed: BTreeSet<usize>,
}

/// What ended loans in a tick.
type Harm = Option<Reason>;

impl Loans {
    /// `most`: the units that a group may have, if it borrows.
    pub fn new(most: impl Iterator<Item = Option<usize>>) -> Loans {
        let most: Vec<Option<usize>> = most.collect();
        let loan = Loan { since: None, blocked: 0.0, caution: 1.0 };
        let borrower = |most| Borrower { most, borrowed: BTreeSet::new() };
        Loans {
            owners: most.iter().map(|most| most.is_none().then_some(loan)).collect(),
            borrowers: most.into_iter().map(|most| most.map(borrower)).collect(),
        }
    }

    /// Does a group borrow?
    pub fn borrows(&self, group: usize) -> bool {
        self.borrowers[group].is_some()
    }

    /// All CPUs of a group, those that it borrows among them.
    pub fn cpus(&self, pool: &Pool, group: usize) -> CpuSet {
        match &self.borrowers[group] {
            Some(Borrower { borrowed, .. }) => {
                let units: Vec<usize> = pool.own(group).iter().chain(borrowed).copied().collect();
                pool.units().cpus(&units)
            }
            None => pool.cpus(group),
        }
    }

    /// A borrower has these CPUs: what is not its own is borrowed.
    pub fn restore(&mut self, pool: &Pool, group: usize, cpus: &CpuSet) {
        let (Some(borrower), Some(units)) = (&mut self.borrowers[group], pool.units().find(cpus)) else {
            return;
        };
        borrower.borrowed = units.into_iter().filter(|unit| !pool.own(group).contains(unit)).collect();
    }

    /// The changes of borrowers' sets, after those of the owners.
    pub fn tick(
        &mut self,
        now: f64,
        (states, memories): (&[GroupState], &[Memory]),
        (pool, names): (&Pool, &[String]),
        (numbers, may_lend): (&Parameters, bool),
    ) -> Vec<Decision> {
        if self.borrowers.iter().all(Option::is_none) {
            return Vec::new();
        }
        let mut harm: Harm = None;
        for (group, loan) in self.owners.iter_mut().enumerate() {
            let Some(loan) = loan else { continue };
            harm = harm.or(loan.step(now, &states[group], &memories[group], numbers));
            if !may_lend {
                loan.since = None;
            }
        }
        let lends = |group: usize| self.owners[group].is_some_and(|loan| loan.since.is_some());
        let lent: Vec<usize> = (0..names.len()).rev().filter(|group| lends(*group)).collect();
        let mut decisions = Vec::new();
        for (group, name) in names.iter().enumerate() {
            let from = self.cpus(pool, group);
            let Some(borrower) = &mut self.borrowers[group] else { continue };
            let room = borrower.most.saturating_sub(pool.size(group));
            let units = pool.nobodys().chain(lent.iter().flat_map(|owner| pool.own(*owner).iter().copied()));
            let wanted: BTreeSet<usize> = units.take(room).collect();
            let reason = if borrower.borrowed.is_subset(&wanted) {
                borrower.borrowed = wanted;
                Reason::Borrows { units: borrower.borrowed.len() * pool.units().width() }
            } else {
                // first what goes, so that a set only adds or only takes
                borrower.borrowed = borrower.borrowed.intersection(&wanted).copied().collect();
                harm.unwrap_or(Reason::Returns)
            };
            let to = self.cpus(pool, group);
            if from != to {
                decisions.push(Decision { group, name: name.clone(), from, to, reason });
            }
        }
        decisions
    }
}

impl Loan {
    /// Ends a loan that did harm, and begins one when it may.
    fn step(&mut self, now: f64, state: &GroupState, memory: &Memory, numbers: &Parameters) -> Harm {
        let Some(since) = self.since else {
            self.since = (now >= self.blocked).then_some(now);
            return None;
        };
        if now - since > numbers.harm_within {
            self.caution = 1.0;
            return None;
        }
        if !memory.is_harm(state, numbers) {
            return None;
        }
        let dwell = (numbers.dwell * self.caution).min(numbers.longest_dwell);
        (self.since, self.blocked, self.caution) = (None, now + dwell, self.caution * 2.0);
        Some(match state.slack {
            Some(slack) => Reason::LoanSlowed { slack, dwell },
            None => Reason::LoanDidHarm { waiting: state.waiting, baseline: memory.baseline, dwell },
        })
    }
}
