//! One attempt at settling a scope: what is named goes first, then what is requested whole (nodes), then numbers (in
//! `numbers`), and last those who take what others leave. Never decides who must let go of what he has.

use units::{CpuSet, NodeSet};

use super::{
    choose::choose,
    claim::{Amount, Claim, Requested},
    cost::Wish,
    explain,
    field::{Field, Load},
    ledger::Ledger,
    scope::{Scope, Settled, Start},
};
use crate::Problem;

/// The attempt under way.
pub(super) struct Attempt<'s> {
    pub scope: &'s Scope<'s>,
    pub start: &'s Start,
    /// What can be given.
    pub pool: CpuSet,
    pub ledger: Ledger,
    /// How many CPUs each claim of a number gets at most.
    pub counts: Vec<usize>,
    /// CPUs that nobody gets for himself, so that those who share have enough.
    pub earmarked: CpuSet,
    /// How many CPUs must be left that nobody has for himself.
    pub keep: usize,
    /// Do requests for cores get the smallest, as the largest would leave too few CPUs for the others?
    pub smallest: bool,
    pub done: Settled,
    pub shorts: Vec<Short>,
}

/// A claim that was short of CPUs which others might let go.
#[derive(Debug)]
pub(super) struct Short {
    pub claim: usize,
    /// Where it needs them.
    pub region: CpuSet,
    pub missing: usize,
}

/// What an attempt comes to.
pub(super) struct Outcome {
    pub settled: Settled,
    /// Empty if nothing that others could let go would help.
    pub shorts: Vec<Short>,
}

impl<'s> Attempt<'s> {
    pub(super) fn new(scope: &'s Scope<'s>, start: &'s Start) -> Attempt<'s> {
        Attempt {
            scope,
            start,
            pool: scope.whole.difference(scope.reserve),
            ledger: Ledger::new(scope.land),
            counts: vec![0; scope.claims.len()],
            earmarked: CpuSet::new(),
            keep: 0,
            smallest: false,
            done: Settled { sets: vec![None; scope.claims.len()], ..Settled::default() },
            shorts: Vec::new(),
        }
    }

    pub(super) fn run(mut self, earmark: bool) -> Outcome {
        self.named();
        self.nodes_apart();
        self.count();
        if self.done.problems.is_empty() {
            self.numbers(earmark);
        }
        if self.done.problems.is_empty() {
            self.rest(true);
            self.rest(false);
        }
        Outcome { settled: self.done, shorts: self.shorts }
    }

    pub(super) fn claim(&self, index: usize) -> &'s Claim {
        &self.scope.claims[index]
    }

    pub(super) fn amount(&self, index: usize) -> Option<&'s Amount> {
        self.scope.amount(index)
    }

    pub(super) fn give(&mut self, index: usize, set: CpuSet) {
        let claim = &self.scope.claims[index];
        self.ledger.give(self.scope.land, claim.apart, &set, claim.memory);
        self.done.sets[index] = Some(set);
    }

    pub(super) fn take_back(&mut self, index: usize) -> Option<CpuSet> {
        let claim = &self.scope.claims[index];
        let set = self.done.sets[index].take()?;
        self.ledger.take_back(self.scope.land, claim.apart, &set, claim.memory);
        Some(set)
    }

    pub(super) fn short(&mut self, claim: usize, region: CpuSet, missing: usize, problem: Problem) {
        self.done.problems.push(problem);
        self.shorts.push(Short { claim, region, missing });
    }

    pub(super) fn within(&self, nodes: &Option<NodeSet>) -> CpuSet {
        self.scope.cpus_of(nodes).intersection(&self.pool)
    }

    /// CPUs given by number.
    fn named(&mut self) {
        let these = self.scope.select(|claim| matches!(claim.request, Requested::These(_)));
        let set = |index: &usize| match &self.scope.claims[*index].request {
            Requested::These(cpus) => cpus.clone(),
            _ => CpuSet::new(),
        };
        let named: Vec<(usize, CpuSet)> = these.iter().map(|index| (*index, set(index))).collect();
        for (index, cpus) in &named {
            let claim = self.claim(*index);
            if !cpus.is_subset(&self.pool) {
                self.done.problems.push(explain::not_there(self.scope, claim, cpus));
            }
            let rivals = named.iter().filter(|(other, theirs)| {
                let first = !self.claim(*other).apart || index < other;
                claim.apart && other != index && first && !theirs.is_disjoint(cpus)
            });
            let rivals: Vec<(&Claim, CpuSet)> =
                rivals.map(|(other, theirs)| (self.claim(*other), theirs.intersection(cpus))).collect();
            if !rivals.is_empty() {
                self.done.problems.push(explain::overlap(claim, &rivals));
            }
        }
        for (index, cpus) in named {
            let cpus = cpus.intersection(&self.pool);
            self.give(index, cpus);
        }
    }

    /// Whole nodes for one group alone.
    fn nodes_apart(&mut self) {
        for index in
            self.scope.select(|claim| claim.apart && matches!(claim.request, Requested::Rest(Some(_))))
        {
            let Requested::Rest(nodes) = &self.claim(index).request else { continue };
            let all = self.within(nodes);
            let others = self
                .scope
                .select(|claim| matches!(claim.request, Requested::These(_) | Requested::Rest(Some(_))));
            let rivals = others.into_iter().filter_map(|other| {
                let claim = self.claim(other);
                let yields = claim.apart && matches!(claim.request, Requested::These(_));
                let theirs = self.done.sets[other].as_ref().filter(|_| other != index && !yields)?;
                (!theirs.is_disjoint(&all)).then(|| (claim, theirs.intersection(&all)))
            });
            let rivals: Vec<(&Claim, CpuSet)> = rivals.collect();
            let left = all.difference(&self.ledger.apart);
            if !rivals.is_empty() {
                self.done.problems.push(explain::overlap(self.claim(index), &rivals));
            } else if left.is_empty() {
                let problem = explain::nothing_left(self.scope, self.claim(index), &self.done.sets);
                self.done.problems.push(problem);
            } else {
                self.give(index, left);
            }
        }
    }

    /// All that is left: for those who take what others leave.
    fn rest(&mut self, apart: bool) {
        for index in
            self.scope.select(|claim| claim.apart == apart && matches!(claim.request, Requested::Rest(_)))
        {
            let Requested::Rest(nodes) = &self.claim(index).request else { continue };
            if apart && nodes.is_some() {
                continue; // had its turn
            }
            let region = self.within(nodes);
            self.take_back(index);
            let mut left = region.difference(&self.ledger.apart);
            if apart {
                left = left.difference(&self.ledger.shared);
                left = left.difference(&self.to_keep(&left));
            }
            if left.is_empty() {
                let problem = explain::nothing_left(self.scope, self.claim(index), &self.done.sets);
                self.short(index, region, 1, problem);
            } else if apart {
                self.give(index, left);
            } else {
                // who takes what others leave is no reason for anybody to yield
                self.done.sets[index] = Some(left);
            }
        }
    }

    /// What of `left` nobody may have for himself: as much as tasks without CPUs of their own need, and one CPU of the
    /// nodes of each group that takes what others leave.
    fn to_keep(&self, left: &CpuSet) -> CpuSet {
        let open = self.pool.difference(&self.ledger.apart).difference(left);
        let some = |count: usize, of: &CpuSet| {
            let field = Field { free: of, busy: &[], load: &Load::default() };
            choose(self.scope.land, &Wish::of(count), &field).unwrap_or_else(|| of.clone())
        };
        let mut reserved = some(self.keep.saturating_sub(open.len()), left);
        for claim in self.scope.claims.iter().filter(|claim| !claim.apart) {
            let Requested::Rest(nodes) = &claim.request else { continue };
            let within = self.within(nodes);
            if within.is_disjoint(&open.union(&reserved)) {
                reserved = reserved.union(&some(1, &within.intersection(left)));
            }
        }
        reserved
    }
}
