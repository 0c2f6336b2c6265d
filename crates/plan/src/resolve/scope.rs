//! Gives the CPUs of one scope to the groups that claim some. What is named goes first, then what is asked for whole
//! (nodes), then numbers; groups that want CPUs for themselves before those that share. What a group has it keeps,
//! unless it can't or another set is better by its own wish.

use units::CpuSet;

use super::{
    choose::{Field, choose},
    claim::{Amount, Asked, Claim},
    cost::{Wish, cost, is_best},
    explain,
    landscape::Landscape,
    ledger::Ledger,
};
use crate::Problem;

/// The CPUs of a branch that is resolved elsewhere, by its position in the tree.
pub(crate) type Elsewhere<'e> = &'e dyn Fn(usize) -> Option<CpuSet>;

/// The distances of nodes from what a claim is to be near to, so far as that is known. The CPUs of a branch come from
/// the function.
pub(crate) type Nearness<'n> = &'n dyn Fn(&Claim, &Amount, Elsewhere<'_>) -> Vec<Vec<u32>>;

/// One scope on its way to be settled.
pub(crate) struct Scope<'s> {
    pub land: &'s Landscape,
    /// Whose scope it is, in words: `the machine`, `group 'db'`.
    pub owner: &'s str,
    /// All its CPUs.
    pub whole: &'s CpuSet,
    /// Those of them that are kept for the rest of the system.
    pub reserve: &'s CpuSet,
    /// How many CPUs must be left that no group has for itself, for tasks outside the groups.
    pub keep: usize,
    pub claims: &'s [Claim],
    pub nearness: Nearness<'s>,
    pub elsewhere: Elsewhere<'s>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// By claim; `None` for those that are like another and those that went wrong.
    pub sets: Vec<Option<CpuSet>>,
    pub problems: Vec<Problem>,
}

/// The work in hand.
struct Work<'s> {
    scope: &'s Scope<'s>,
    /// What can be given.
    pool: CpuSet,
    ledger: Ledger,
    /// How many CPUs each claim of a number gets.
    counts: Vec<usize>,
    /// CPUs that nobody gets for himself, so that those who share have enough.
    earmarked: CpuSet,
    /// How many CPUs must be left that nobody has for himself.
    keep: usize,
    /// By claim: the claims of this scope that it wants to be near to, and those that want to be near to it.
    leans_on: Vec<Vec<usize>>,
    pulled_by: Vec<Vec<usize>>,
    done: Settled,
}

impl Scope<'_> {
    /// Gives every claim its CPUs.
    pub(crate) fn settle(&self) -> Settled {
        let first = self.attempt(false);
        if first.problems.is_empty() {
            return first;
        }
        // those who share may lack what those who don't could do without
        let second = self.attempt(true);
        if second.problems.is_empty() { second } else { first }
    }

    fn attempt(&self, earmark: bool) -> Settled {
        let leans_on: Vec<Vec<usize>> = self.claims.iter().map(|claim| self.leans_on(claim)).collect();
        let mut pulled_by = vec![Vec::new(); self.claims.len()];
        for (index, others) in leans_on.iter().enumerate() {
            others.iter().for_each(|other| pulled_by[*other].push(index));
        }
        let mut work = Work {
            scope: self,
            pool: self.whole.difference(self.reserve),
            ledger: Ledger::new(self.land),
            counts: vec![0; self.claims.len()],
            earmarked: CpuSet::new(),
            keep: 0,
            leans_on,
            pulled_by,
            done: Settled { sets: vec![None; self.claims.len()], ..Settled::default() },
        };
        work.named();
        work.nodes_apart();
        work.count();
        if work.done.problems.is_empty() {
            if earmark {
                work.earmark();
            }
            work.numbers(true);
            work.rest(true);
            work.numbers(false);
            work.rest(false);
        }
        if work.done.problems.is_empty() {
            work.improve();
            work.rest(false);
        }
        work.done
    }

    fn leans_on(&self, claim: &Claim) -> Vec<usize> {
        let Asked::Some(amount) = &claim.ask else { return Vec::new() };
        let groups = amount.near.iter().filter_map(|near| match near {
            layout::Near::Group(name) => Some(name.to_string()),
            _ => None,
        });
        groups.filter_map(|name| self.claims.iter().position(|claim| claim.name == name)).collect()
    }

    fn select(&self, is: impl Fn(&Claim) -> bool) -> Vec<usize> {
        (0..self.claims.len()).filter(|index| is(&self.claims[*index])).collect()
    }
}

impl<'s> Work<'s> {
    fn claim(&self, index: usize) -> &'s Claim {
        &self.scope.claims[index]
    }

    fn give(&mut self, index: usize, set: CpuSet) {
        let claim = &self.scope.claims[index];
        self.ledger.give(self.scope.land, claim.apart, &set, claim.memory);
        self.done.sets[index] = Some(set);
    }

    fn take_back(&mut self, index: usize) {
        let claim = &self.scope.claims[index];
        if let Some(set) = self.done.sets[index].take() {
            self.ledger.take_back(self.scope.land, claim.apart, &set, claim.memory);
        }
    }

    /// CPUs given by number.
    fn named(&mut self) {
        let these = self.scope.select(|claim| matches!(claim.ask, Asked::These(_)));
        let set = |index: &usize| match &self.scope.claims[*index].ask {
            Asked::These(cpus) => cpus.clone(),
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
        for index in self.scope.select(|claim| claim.apart && matches!(claim.ask, Asked::Rest(Some(_)))) {
            let Asked::Rest(Some(nodes)) = &self.claim(index).ask else { continue };
            let all = self.scope.land.cpus_of(nodes).intersection(&self.pool);
            let others =
                self.scope.select(|claim| matches!(claim.ask, Asked::These(_) | Asked::Rest(Some(_))));
            let rivals = others.into_iter().filter_map(|other| {
                let claim = self.claim(other);
                let yields = claim.apart && matches!(claim.ask, Asked::These(_));
                let theirs = self.done.sets[other].as_ref().filter(|_| other != index && !yields)?;
                (!theirs.is_disjoint(&all)).then(|| (claim, theirs.intersection(&all)))
            });
            let rivals: Vec<(&Claim, CpuSet)> = rivals.collect();
            let left = all.difference(&self.ledger.apart);
            if !rivals.is_empty() {
                self.done.problems.push(explain::overlap(self.claim(index), &rivals));
            } else if left.is_empty() {
                self.done.problems.push(explain::nothing_left(
                    self.scope,
                    self.claim(index),
                    &self.done.sets,
                ));
            } else {
                self.give(index, left);
            }
        }
    }

    /// How many CPUs each claim of a number gets: its least, and of what is then left an even part.
    fn count(&mut self) {
        let land = self.scope.land;
        let all = 0..self.scope.claims.len();
        let numbers: Vec<(usize, &Amount)> =
            all.filter_map(|index| Some((index, self.amount(index)?))).collect();
        for (index, amount) in &numbers {
            self.counts[*index] = amount.min;
            let odd = amount.smt == Some(layout::Smt::WholeCores) && amount.min % land.threads() != 0;
            if odd {
                self.done.problems.push(explain::odd(self.claim(*index), amount.min, land.threads()));
            }
            if amount.min < amount.must.len() || amount.max < amount.min {
                self.done.problems.push(explain::too_narrow(self.claim(*index), amount));
            }
        }
        let (apart, shared): (Vec<_>, Vec<_>) =
            numbers.into_iter().partition(|(index, _)| self.claim(*index).apart);
        let free = self.pool.difference(&self.ledger.apart).difference(&self.ledger.shared).len();
        let most_shared = shared.iter().map(|(_, amount)| amount.min).max().unwrap_or(0);
        let rests = self.scope.claims.iter().any(|claim| !claim.apart && matches!(claim.ask, Asked::Rest(_)));
        self.keep = most_shared.max(usize::from(rests)).max(self.scope.keep);
        let keep = self.keep.saturating_sub(self.ledger.shared.len());
        let least: usize = apart.iter().map(|(_, amount)| amount.min).sum();
        let Some(mut extra) = free.checked_sub(keep + least) else {
            let missing = keep + least - free;
            self.done.problems.push(explain::too_many(self.scope, missing, &self.done.sets));
            return;
        };
        loop {
            let room =
                |(index, amount): &&(usize, &Amount)| amount.max - self.counts[*index] >= unit(land, amount);
            let growing = apart.iter().filter(room).filter(|(_, amount)| unit(land, amount) <= extra);
            let Some((index, amount)) =
                growing.min_by_key(|(index, amount)| (self.counts[*index] - amount.min, *index))
            else {
                break;
            };
            self.counts[*index] += unit(land, amount);
            extra -= unit(land, amount);
        }
    }

    /// Keeps CPUs from those who want some for themselves, so that those who share have as many as they need where
    /// they need them.
    fn earmark(&mut self) {
        let mut shared = self.scope.select(|claim| !claim.apart);
        shared.sort_by_key(|index| std::cmp::Reverse(self.counts[*index]));
        for index in shared {
            let (nodes, count) = match &self.claim(index).ask {
                Asked::Some(amount) => (amount.nodes.clone(), self.counts[index]),
                Asked::Rest(nodes) => (nodes.clone(), 1),
                Asked::These(_) | Asked::Like(_) => continue,
            };
            let within = self.within(&nodes).difference(&self.ledger.apart);
            let ours = within.intersection(&self.earmarked.union(&self.ledger.shared));
            let mut wish = Wish::of(count.saturating_sub(ours.len()));
            wish.smt = Some(layout::Smt::Any);
            let free = within.difference(&ours);
            if let Some(more) = choose(self.scope.land, &wish, &self.ledger.field(&free)) {
                self.earmarked = self.earmarked.union(&more);
            }
        }
    }

    fn within(&self, nodes: &Option<units::NodeSet>) -> CpuSet {
        match nodes {
            Some(nodes) => self.scope.land.cpus_of(nodes).intersection(&self.pool),
            None => self.pool.clone(),
        }
    }

    /// So many CPUs each: those that have what they ask for first, then the others.
    fn numbers(&mut self, apart: bool) {
        let order = self.order(apart);
        let all_shared = self.kept_by_sharers(apart);
        for index in &order {
            let Some(amount) = self.amount(*index) else { continue };
            let free = self.free(*index, amount);
            let held = self.held(*index, amount, &free);
            let count = self.count_of(*index, amount, &free);
            if held.len() == count && amount.must.is_subset(&held) {
                self.give(*index, held);
            }
        }
        for index in order {
            let Some(amount) = self.amount(index).filter(|_| self.done.sets[index].is_none()) else {
                continue;
            };
            let free = self.free(index, amount);
            let mut wish = self.wish(index, amount);
            wish.count = self.count_of(index, amount, &free);
            let held = self.held(index, amount, &free);
            // what is there is added to or taken from; sharers are not driven out while there is room elsewhere
            let gentle = free.difference(&all_shared).union(&held);
            let set = [gentle, free.clone()].into_iter().find_map(|free| {
                if held.len() >= wish.count {
                    let within = held.union(&wish.must);
                    return choose(self.scope.land, &wish, &self.ledger.field(&within));
                }
                let must = wish.must.union(&held);
                let grown = Wish { must, ..wish.clone() };
                let grown = choose(self.scope.land, &grown, &self.ledger.field(&free));
                grown.or_else(|| choose(self.scope.land, &wish, &self.ledger.field(&free)))
            });
            match set {
                Some(set) => self.give(index, set),
                None => {
                    let problem = explain::short(
                        self.scope,
                        self.claim(index),
                        amount,
                        wish.count,
                        &free,
                        &self.done.sets,
                    );
                    self.done.problems.push(problem);
                }
            }
        }
    }

    /// What sharers have and may keep; nothing when it is their own turn.
    fn kept_by_sharers(&self, apart: bool) -> CpuSet {
        let sharers = self.scope.claims.iter().filter(|claim| apart && !claim.apart);
        let numbered = sharers.filter_map(|claim| match &claim.ask {
            Asked::Some(amount) if claim.held.len() <= amount.max => Some(&claim.held),
            _ => None,
        });
        numbered.fold(CpuSet::new(), |all, held| all.union(held))
    }

    fn amount(&self, index: usize) -> Option<&'s Amount> {
        match &self.claim(index).ask {
            Asked::Some(amount) => Some(amount),
            _ => None,
        }
    }

    /// CPUs that a claim may be given now; its own do not count as taken.
    fn free(&self, index: usize, amount: &Amount) -> CpuSet {
        let own = self.done.sets[index].clone().unwrap_or_default();
        let free = self.within(&amount.nodes).difference(&self.ledger.apart.difference(&own));
        if self.claim(index).apart {
            free.difference(&self.ledger.shared).difference(&self.earmarked)
        } else {
            free
        }
    }

    fn count_of(&self, index: usize, amount: &Amount, free: &CpuSet) -> usize {
        let most = free.len() / unit(self.scope.land, amount) * unit(self.scope.land, amount);
        match self.claim(index).apart {
            true => self.counts[index].min(most.max(amount.min)),
            false => amount.max.min(most.max(amount.min)),
        }
    }

    /// What the kernel holds, as far as it may stay.
    fn held(&self, index: usize, amount: &Amount, free: &CpuSet) -> CpuSet {
        let held = self.claim(index).held.intersection(free);
        if amount.smt != Some(layout::Smt::WholeCores) {
            return held;
        }
        let broken = |cpu: usize| {
            let core = CpuSet::from_iter([cpu]);
            !self.scope.land.with_siblings(&core).is_subset(&held)
        };
        held.iter().filter(|cpu| !broken(*cpu)).collect()
    }

    /// The order in which numbers are served: who is bound to nodes or has wishes first, then the larger; who wants
    /// to be near to another one after that.
    fn order(&self, apart: bool) -> Vec<usize> {
        let mut order =
            self.scope.select(|claim| claim.apart == apart && matches!(claim.ask, Asked::Some(_)));
        let rank = |index: &usize| {
            let amount = self.amount(*index);
            (
                amount.is_none_or(|amount| amount.nodes.is_none()),
                amount.is_none_or(|amount| amount.must.is_empty()),
                amount.is_none_or(|amount| amount.near.is_empty()),
                std::cmp::Reverse(self.counts[*index]),
            )
        };
        order.sort_by_cached_key(rank);
        let mut sorted: Vec<usize> = Vec::with_capacity(order.len());
        while !order.is_empty() {
            let waits = |index: &usize| {
                self.leans_on[*index].iter().any(|other| other != index && order.contains(other))
            };
            let next = order.iter().position(|index| !waits(index)).unwrap_or(0);
            sorted.push(order.remove(next));
        }
        sorted
    }

    fn wish(&self, index: usize, amount: &Amount) -> Wish {
        let resolved = |branch: usize| match self.scope.claims.iter().position(|claim| claim.branch == branch)
        {
            Some(here) => self.done.sets[here].clone(),
            None => (self.scope.elsewhere)(branch),
        };
        let near = (self.scope.nearness)(self.claim(index), amount, &resolved);
        let pulled = self.pulled_by[index].iter().filter_map(|other| self.done.sets[*other].as_ref());
        let must = match amount.smt {
            Some(layout::Smt::WholeCores) => self.scope.land.with_siblings(&amount.must),
            _ => amount.must.clone(),
        };
        let pulled = pulled.filter_map(|set| self.scope.land.distances_from_cpus(set));
        Wish {
            count: self.counts[index],
            smt: amount.smt,
            placement: amount.placement.unwrap_or(layout::Placement::Pack),
            near,
            pulled: pulled.collect(),
            must: must.intersection(&self.pool),
            memory: self.claim(index).memory,
        }
    }

    /// Whatever is there: of those who take what others leave.
    fn rest(&mut self, apart: bool) {
        for index in self.scope.select(|claim| claim.apart == apart && matches!(claim.ask, Asked::Rest(_))) {
            let Asked::Rest(nodes) = &self.claim(index).ask else { continue };
            if apart && nodes.is_some() {
                continue; // had its turn
            }
            let mut left = self.within(nodes).difference(&self.ledger.apart);
            if apart {
                left = left.difference(&self.ledger.shared).difference(&self.earmarked);
                left = left.difference(&self.to_keep(&left));
            }
            if left.is_empty() {
                let problem = explain::nothing_left(self.scope, self.claim(index), &self.done.sets);
                self.done.problems.push(problem);
            } else if apart {
                self.give(index, left);
            } else {
                // who takes what others leave is no reason for anybody to yield
                self.done.sets[index] = Some(left);
            }
        }
    }

    /// What of `left` nobody may have for himself.
    fn to_keep(&self, left: &CpuSet) -> CpuSet {
        let open = self.pool.difference(&self.ledger.apart).difference(left).len();
        let wish = Wish::of(self.keep.saturating_sub(open));
        choose(self.scope.land, &wish, &self.ledger.field(left)).unwrap_or_else(|| left.clone())
    }

    /// Moves claims of a number to CPUs that are better by their own wish, until none gains by it.
    fn improve(&mut self) {
        let order: Vec<usize> = [true, false].into_iter().flat_map(|apart| self.order(apart)).collect();
        // every move lowers what it counts; wishes to be near to each other could go round for ever
        for _ in 0..32 {
            let moved = order.iter().filter(|index| self.improve_one(**index)).count();
            if moved == 0 {
                return;
            }
        }
    }

    fn improve_one(&mut self, index: usize) -> bool {
        let Some((amount, own)) = self.amount(index).zip(self.done.sets[index].clone()) else { return false };
        let land = self.scope.land;
        let wish = Wish { count: own.len(), ..self.wish(index, amount) };
        if is_best(land, &wish, &own) {
            return false;
        }
        let free = self.free(index, amount);
        // what others have is no gain: nobody is moved for that
        let unladen = Field { busy: &[], ..self.ledger.field(&free) };
        let gains = |set: &CpuSet| cost(land, &wish, set) < cost(land, &wish, &own);
        if !choose(land, &wish, &unladen).is_some_and(|set| gains(&set)) {
            return false;
        }
        let Some(better) = choose(land, &wish, &self.ledger.field(&free)).filter(gains) else { return false };
        self.take_back(index);
        self.give(index, better);
        true
    }
}

/// In which steps an amount grows.
fn unit(land: &Landscape, amount: &Amount) -> usize {
    if amount.smt == Some(layout::Smt::WholeCores) { land.threads() } else { 1 }
}
