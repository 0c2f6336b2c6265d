//! Settles one scope: who gets which of its CPUs. What a group has it keeps while that still is what it requests;
//! others are placed in what is free. Only where that fails groups let go of what they have, as few as can be. How one
//! attempt goes is said in `attempt`; what is decided here is who may keep what he has in it.

use units::CpuSet;

use super::{
    attempt::{Attempt, Outcome, Short},
    scope::{Scope, Settled, Start},
};

/// How often a result is settled again, until nobody gets more or nearer CPUs by what others gave up. Two or three
/// times are enough unless groups want to be near to each other in a circle.
const ROUNDS: usize = 8;

/// Up to this many groups that gave up CPUs are tried one by one: could they have stayed on them?
const SPARED_ONE_BY_ONE: usize = 32;

impl Scope<'_> {
    /// Gives every claim its CPUs. Settling what came of it once more changes nothing.
    pub(crate) fn settle(&self) -> Settled {
        let mut current: Vec<CpuSet> = self.claims.iter().map(|claim| claim.current.clone()).collect();
        let mut settled = self.round(&current);
        for _ in 0..ROUNDS {
            if !settled.problems.is_empty() || self.is_unchanged(&settled, &current) {
                break;
            }
            current = settled.sets.iter().map(|set| set.clone().unwrap_or_default()).collect();
            let next = self.round(&current);
            if !next.problems.is_empty() {
                break;
            }
            settled = next;
        }
        settled
    }

    fn is_unchanged(&self, settled: &Settled, current: &[CpuSet]) -> bool {
        settled.sets.iter().zip(current).all(|(set, current)| set.as_ref().is_none_or(|set| set == current))
    }

    fn round(&self, current: &[CpuSet]) -> Settled {
        let mut start = Start { current: current.to_vec(), released: vec![false; self.claims.len()] };
        let mut outcome = self.attempt(&start);
        // each time more, so that it comes to an end soon even if hundreds have to yield
        let mut more = 1;
        while !outcome.settled.problems.is_empty() {
            let yielding = self.in_the_way(&start, &outcome.shorts, more);
            if yielding.is_empty() {
                return self.afresh();
            }
            yielding.into_iter().for_each(|index| start.released[index] = true);
            outcome = self.attempt(&start);
            more *= 2;
        }
        self.spare(start, outcome).settled
    }

    /// The result if no claim had any CPUs; also what errors about demands that can't be satisfied speak of.
    fn afresh(&self) -> Settled {
        let count = self.claims.len();
        self.attempt(&Start { current: vec![CpuSet::new(); count], released: vec![false; count] }).settled
    }

    /// Of those who let go of what they have: lets everyone keep it without whom it works as well.
    fn spare(&self, mut start: Start, mut outcome: Outcome) -> Outcome {
        let released: Vec<usize> = (0..self.claims.len()).filter(|index| start.released[*index]).collect();
        if released.len() > SPARED_ONE_BY_ONE {
            return outcome;
        }
        for index in released {
            start.released[index] = false;
            let without = self.attempt(&start);
            if without.settled.problems.is_empty() {
                outcome = without;
            } else {
                start.released[index] = true;
            }
        }
        outcome
    }

    /// Sharers may lack what those who don't share could do without: if so, that is reserved for them first.
    fn attempt(&self, start: &Start) -> Outcome {
        let first = Attempt::new(self, start).run(false);
        if first.settled.problems.is_empty() || first.shorts.is_empty() {
            return first;
        }
        let second = Attempt::new(self, start).run(true);
        let failed = !second.settled.problems.is_empty();
        let settled = if failed { first.settled } else { second.settled };
        Outcome { settled, shorts: second.shorts }
    }

    /// Who has to let go of CPUs so that the first who is short of some can have them: the fewest, and those first who
    /// can go elsewhere.
    fn in_the_way(&self, start: &Start, shorts: &[Short], more: usize) -> Vec<usize> {
        let candidates = |short: &Short| -> Vec<usize> {
            let rivals = |other: &usize| {
                *other != short.claim && (self.claims[*other].apart || self.claims[short.claim].apart)
            };
            let holding = (0..self.claims.len()).filter(|index| {
                let holds =
                    self.amount(*index).is_some() && !start.current[*index].is_disjoint(&short.region);
                holds && !start.released[*index]
            });
            let others: Vec<usize> = holding.clone().filter(rivals).collect();
            // its own may be where it can't be added to
            if others.is_empty() { holding.filter(|index| *index == short.claim).collect() } else { others }
        };
        let Some((short, mut left)) =
            shorts.iter().map(|short| (short, candidates(short))).find(|(_, found)| !found.is_empty())
        else {
            return Vec::new();
        };
        let mut missing = short.missing.saturating_mul(more);
        let mut yielding = Vec::new();
        while missing > 0 && !left.is_empty() {
            let rank = |index: &usize| {
                let here = start.current[*index].intersection(&short.region).len();
                let bound = self.cpus_of(&self.amount(*index)?.nodes).is_subset(&short.region);
                let enough = here >= missing;
                Some((bound, !enough, if enough { here } else { usize::MAX - here }, *index))
            };
            let Some(next) = left.iter().copied().min_by_key(rank) else { break };
            left.retain(|index| *index != next);
            yielding.push(next);
            let still: CpuSet =
                left.iter().fold(CpuSet::new(), |all, index| all.union(&start.current[*index]));
            let freed = start.current[next].intersection(&short.region).difference(&still).len();
            missing = missing.saturating_sub(freed);
        }
        yielding
    }
}
