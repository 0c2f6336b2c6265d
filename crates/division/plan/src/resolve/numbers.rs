//! Claims of a number of CPUs in one attempt: how many each gets, what of its CPUs it keeps, where the others are
//! placed, and who gains by moving to CPUs that are free. Never moves a claim that has what it requests, unless it was
//! released for the sake of another one or gets nearer.

use std::cmp::Reverse;

use layout::{Placement, Smt};
use units::CpuSet;

use super::{
    attempt::Attempt,
    choose::choose,
    claim::{Amount, Requested},
    cores::choose_cores,
    cost::{Wish, distance_cost, is_nearest},
    explain,
    field::Field,
    landscape::Landscape,
};
use crate::Problem;

/// A claim of a number, by its position.
type Counted<'s> = (usize, &'s Amount);

/// How the CPUs of a claim compare with its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Enough,
    TooFew,
    TooMany,
}

impl<'s> Attempt<'s> {
    /// Gives each its number of CPUs.
    pub(super) fn numbers(&mut self, earmark: bool) {
        let order = self.order();
        self.hold(&order);
        if earmark {
            self.earmark();
        }
        let (yielding, staying): (Vec<usize>, Vec<usize>) =
            order.iter().partition(|index| self.start.released[**index]);
        for apart in [true, false] {
            for index in staying.iter().chain(&yielding) {
                if self.claim(*index).apart == apart {
                    self.place(*index);
                }
            }
            if apart {
                self.seat_the_greedy();
            }
        }
        if self.done.problems.is_empty() {
            self.improve(&order);
        }
    }

    /// How many CPUs each claim of a number gets: its least, and of what is then left an even part.
    pub(super) fn count(&mut self) {
        let all = 0..self.scope.claims.len();
        let numbers: Vec<Counted<'s>> = all.filter_map(|index| Some((index, self.amount(index)?))).collect();
        for (index, amount) in &numbers {
            self.counts[*index] = amount.min;
            self.done.problems.extend(self.misfit(*index, amount));
        }
        let (apart, shared): (Vec<_>, Vec<_>) =
            numbers.into_iter().partition(|(index, _)| self.claim(*index).apart);
        let in_cores = apart.iter().chain(&shared).any(|(_, amount)| amount.cores.is_some());
        let room = self.room(&apart, &shared, false);
        let room = if room.is_err() && in_cores { self.room(&apart, &shared, true) } else { room };
        match room {
            Ok(extra) => self.grow(&apart, &shared, extra),
            Err(missing) => {
                self.done.problems.push(explain::too_many(self.scope, missing, &self.done.sets));
            }
        }
    }

    /// Why no whole cores are what is requested, or what the groups in it need.
    fn misfit(&self, index: usize, amount: &Amount) -> Option<Problem> {
        let (land, claim) = (self.scope.land, self.claim(index));
        if amount.cores.is_some() && !land.cores_known {
            return Some(explain::unknown_cores(claim));
        }
        if let Some(number) = amount.cores {
            let region = self.within(&amount.nodes);
            let there = land.sizes_of(&region).each().count();
            if there < number {
                let sets = &self.done.sets;
                return Some(explain::few_cores(self.scope, claim, number, (&region, &region), sets));
            }
        }
        if amount.smt == Some(Smt::WholeCores) && amount.cores.is_none() {
            let sizes = match &amount.nodes {
                Some(nodes) => land.sizes_of(&land.cpus_of(nodes)),
                None => land.core_sizes.clone(),
            };
            // more than there are is said elsewhere
            if sizes.below(amount.min) != amount.min && sizes.above(amount.min).is_some() {
                return Some(explain::odd(claim, amount.min, &sizes));
            }
        }
        let is_narrow = amount.max < amount.must.len() || amount.max < amount.min;
        let lacks = amount.cores.is_none() && amount.min < amount.must.len();
        (is_narrow || lacks).then(|| explain::too_narrow(claim, amount))
    }

    /// How many CPUs are left beyond what all claims need at least, or how many are missing.
    fn room(
        &mut self,
        apart: &[Counted<'s>],
        shared: &[Counted<'s>],
        smallest: bool,
    ) -> Result<usize, usize> {
        self.smallest = smallest;
        self.count_cores(apart, shared);
        let free = self.pool.difference(&self.ledger.apart).difference(&self.ledger.shared).len();
        let most_shared = shared.iter().map(|(index, _)| self.counts[*index]).max().unwrap_or(0);
        let rests =
            self.scope.claims.iter().any(|claim| !claim.apart && matches!(claim.request, Requested::Rest(_)));
        self.keep = most_shared.max(usize::from(rests)).max(self.scope.keep);
        let keep = self.keep.saturating_sub(self.ledger.shared.len());
        let least: usize = apart.iter().map(|(index, _)| self.counts[*index]).sum();
        free.checked_sub(keep + least).ok_or_else(|| keep + least - free)
    }

    /// How many CPUs the cores have that are requested by number: those of one claim after the other, as sharers take
    /// theirs of all.
    fn count_cores(&mut self, apart: &[Counted<'s>], shared: &[Counted<'s>]) {
        let land = self.scope.land;
        let mut open = self.pool.difference(&self.ledger.apart);
        for (claims, is_apart) in [(apart, true), (shared, false)] {
            for (index, amount) in claims {
                let Some(cores) = amount.cores else { continue };
                let free = open.intersection(&self.within(&amount.nodes));
                let wish = Wish { must: self.must(amount), smt: amount.smt, ..Wish::of(0) };
                let field = Field { busy: &[], ..self.ledger.field(&free) };
                let set = choose_cores(land, &wish, &field, (cores, self.smallest));
                self.counts[*index] = set.as_ref().map_or(amount.min, CpuSet::len);
                if let Some(set) = set.filter(|_| is_apart) {
                    open = open.difference(&set);
                }
            }
        }
    }

    /// Gives those who can have more an even part of what is left.
    fn grow(&mut self, apart: &[Counted<'s>], shared: &[Counted<'s>], mut extra: usize) {
        let land = self.scope.land;
        // who takes what is left for himself needs one at least
        let greedy = self.greedy().is_some();
        extra = extra.saturating_sub(usize::from(greedy));
        for (index, amount) in shared.iter().filter(|(_, amount)| amount.cores.is_none()) {
            self.counts[*index] = if greedy { amount.min } else { amount.max };
        }
        loop {
            let room = |(index, amount): &&Counted<'s>| {
                amount.cores.is_none() && amount.max - self.counts[*index] >= unit(land, amount)
            };
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

    /// Does somebody take all that is left for himself?
    fn greedy(&self) -> Option<usize> {
        self.scope
            .claims
            .iter()
            .position(|claim| claim.apart && matches!(claim.request, Requested::Rest(None)))
    }

    /// One CPU for who takes all that is left for himself, so that sharers leave some: one that it has, if it can be.
    fn seat_the_greedy(&mut self) {
        let Some(index) = self.greedy() else { return };
        let taken = self.ledger.apart.union(&self.ledger.shared).union(&self.earmarked);
        let free = self.pool.difference(&taken);
        let own = self.start.current[index].intersection(&free);
        let from = if own.is_empty() { free } else { own };
        let field = Field { busy: &[], ..self.ledger.field(&from) };
        if let Some(seat) = choose(self.scope.land, &Wish::of(1), &field) {
            self.give(index, seat);
        }
    }

    /// The order in which numbers are served: who is bound to nodes or has wishes first, then the larger; who wants
    /// to be near to another one after that.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<(usize, &Amount)> =
            (0..self.scope.claims.len()).filter_map(|index| Some((index, self.amount(index)?))).collect();
        order.sort_by_cached_key(|(index, amount)| {
            let least = Reverse(if self.claim(*index).apart { self.counts[*index] } else { amount.min });
            let parts = amount.cores.is_none();
            (amount.nodes.is_none(), amount.must.is_empty(), amount.near.is_empty(), parts, least)
        });
        let mut waiting: Vec<usize> = order.into_iter().map(|(index, _)| index).collect();
        let mut sorted: Vec<usize> = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let waits = |index: &usize| {
                let mut others = self.scope.ties.leans_on[*index].iter();
                others.any(|other| other != index && waiting.contains(other))
            };
            let next = waiting.iter().position(|index| !waits(index)).unwrap_or(0);
            sorted.push(waiting.remove(next));
        }
        sorted
    }

    /// Everyone stays on his CPUs, so far as he requests them. Where two have the same CPUs and one of them wants
    /// them for himself now, who has just enough comes first.
    fn hold(&mut self, order: &[usize]) {
        let (apart, shared): (Vec<usize>, Vec<usize>) = order
            .iter()
            .filter(|index| !self.start.released[**index])
            .partition(|index| self.claim(**index).apart);
        for fit in [Fit::Enough, Fit::TooFew, Fit::TooMany] {
            apart.iter().chain(&shared).for_each(|index| self.hold_if(*index, fit));
        }
    }

    fn hold_if(&mut self, index: usize, fit: Fit) {
        let Some(amount) = self.amount(index).filter(|_| self.done.sets[index].is_none()) else { return };
        let own = self.usable(index, amount, &self.free(index, amount));
        if own.is_empty() || self.fit(index, amount, &own) != fit {
            return;
        }
        let set = if fit == Fit::TooMany { self.fewer(index, amount, &own) } else { Some(own) };
        if let Some(set) = set {
            self.give(index, set);
        }
    }

    /// What it has and may keep.
    fn usable(&self, index: usize, amount: &Amount, free: &CpuSet) -> CpuSet {
        self.fitting(amount, &self.start.current[index].intersection(free))
    }

    /// In whole cores, if that is requested.
    fn fitting(&self, amount: &Amount, set: &CpuSet) -> CpuSet {
        match amount.smt {
            Some(Smt::WholeCores) => self.scope.land.whole_cores(set),
            _ => set.clone(),
        }
    }

    fn fit(&self, index: usize, amount: &Amount, own: &CpuSet) -> Fit {
        if let Some(cores) = amount.cores {
            return match self.scope.land.count_cores(own) {
                count if count > cores => Fit::TooMany,
                count if count < cores || !self.must(amount).is_subset(own) => Fit::TooFew,
                _ => Fit::Enough,
            };
        }
        match own.len() {
            count if count > self.counts[index] => Fit::TooMany,
            count if count < amount.min || !self.must(amount).is_subset(own) => Fit::TooFew,
            _ => Fit::Enough,
        }
    }

    /// The best of what it has.
    fn fewer(&self, index: usize, amount: &Amount, own: &CpuSet) -> Option<CpuSet> {
        let wish = self.wish(index, amount);
        let elsewhere = if amount.cores.is_some() { 0 } else { wish.must.difference(own).len() };
        let wish = Wish {
            count: self.counts[index].checked_sub(elsewhere)?,
            must: wish.must.intersection(own),
            ..wish
        };
        self.best(amount, &wish, &self.ledger.field(own))
    }

    /// The best CPUs of a field.
    fn best(&self, amount: &Amount, wish: &Wish, field: &Field<'_>) -> Option<CpuSet> {
        match amount.cores {
            Some(cores) => choose_cores(self.scope.land, wish, field, (cores, self.smallest)),
            None => choose(self.scope.land, wish, field),
        }
    }

    /// Holds back enough CPUs per node for shared claims before exclusive ones are served.
    fn earmark(&mut self) {
        let least = |index: usize| match &self.claim(index).request {
            Requested::Some(amount) => Some((amount.min, &amount.nodes, amount.smt, self.must(amount))),
            Requested::Rest(nodes) => Some((1, nodes, None, CpuSet::new())),
            Requested::These(_) | Requested::Like(_) => None,
        };
        let shared = self.scope.select(|claim| !claim.apart);
        let mut shared: Vec<_> = shared.into_iter().filter_map(least).collect();
        shared.sort_by_key(|(count, ..)| Reverse(*count));
        for (count, nodes, smt, must) in shared {
            let within = self.within(nodes).difference(&self.ledger.apart);
            let mut ours = within.intersection(&self.earmarked.union(&self.ledger.shared));
            ours = ours.union(&must.intersection(&within));
            let whole = smt == Some(Smt::WholeCores);
            let there = if whole { self.scope.land.whole_cores(&ours).len() } else { ours.len() };
            let smt = if whole { smt } else { Some(Smt::Any) };
            let wish = Wish { smt, ..Wish::of(count.saturating_sub(there)) };
            let free = within.difference(&ours);
            let more = choose(self.scope.land, &wish, &Field { busy: &[], ..self.ledger.field(&free) });
            let must = must.intersection(&within);
            self.earmarked = self.earmarked.union(&must).union(&more.unwrap_or_default());
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

    /// As many as it gets at most, or as there are.
    fn count_of(&self, index: usize, amount: &Amount, free: &CpuSet) -> usize {
        let count = self.counts[index];
        let most = match amount.smt {
            Some(Smt::WholeCores) => self.scope.land.sizes_of(free).below(count),
            _ => free.len(),
        };
        count.min(most.max(amount.min))
    }

    /// What must be among its CPUs for the groups in it.
    fn must(&self, amount: &Amount) -> CpuSet {
        let must = match amount.smt {
            Some(Smt::WholeCores) => self.scope.land.with_siblings(&amount.must),
            _ => amount.must.clone(),
        };
        must.intersection(&self.pool)
    }

    fn wish(&self, index: usize, amount: &Amount) -> Wish {
        let of_branch =
            |branch: usize| match self.scope.claims.iter().position(|claim| claim.branch == branch) {
                Some(here) => self.done.sets[here].clone(),
                None => (self.scope.elsewhere)(branch),
            };
        let near = match amount.near.is_empty() {
            true => Vec::new(),
            false => (self.scope.nearness)(self.claim(index), amount, &of_branch),
        };
        let pulled =
            self.scope.ties.pulled_by[index].iter().filter_map(|other| self.done.sets[*other].as_ref());
        let pulled = pulled.filter_map(|set| self.scope.land.distances_from_cpus(set));
        Wish {
            count: self.counts[index],
            smt: amount.smt,
            placement: amount.placement.unwrap_or(Placement::Pack),
            near,
            pulled: pulled.collect(),
            must: self.must(amount),
            memory: self.claim(index).memory,
        }
    }

    /// Adds to what it has until it is enough. Where that can't be, chooses again from the start.
    fn place(&mut self, index: usize) {
        let Some(amount) = self.amount(index) else { return };
        let free = self.free(index, amount);
        let own = self.take_back(index).unwrap_or_else(|| self.usable(index, amount, &free));
        let wish = Wish { count: self.count_of(index, amount, &free), ..self.wish(index, amount) };
        let grown = Wish { must: wish.must.union(&own), ..wish.clone() };
        let candidates = own.union(&wish.must).intersection(&free);
        let field = |free| self.ledger.field(free);
        let set = (self.best(amount, &grown, &field(&free)))
            .or_else(|| self.best(amount, &wish, &field(&candidates)))
            .or_else(|| self.best(amount, &wish, &field(&free)))
            .filter(|set| set.is_subset(&free));
        if let Some(set) = set {
            return self.give(index, set);
        }
        let (claim, sets) = (self.claim(index), &self.done.sets);
        let problem = explain::short(self.scope, claim, amount, wish.count, &free, sets);
        let lacking = wish.must.difference(&free);
        let (region, missing) = match lacking.len() {
            0 => (self.within(&amount.nodes), wish.count.saturating_sub(self.fitting(amount, &free).len())),
            count => (lacking, count),
        };
        self.short(index, region, missing.max(1), problem);
    }

    /// Moves claims to free CPUs that are nearer, until none gains by it.
    fn improve(&mut self, order: &[usize]) {
        // every move lowers what it counts; wishes to be near to each other could go round for ever
        for _ in 0..32 {
            let moved = order.iter().filter(|index| self.improve_one(**index)).count();
            if moved == 0 {
                return;
            }
        }
    }

    fn improve_one(&mut self, index: usize) -> bool {
        let Some((amount, own)) = self.amount(index).zip(self.done.sets[index].as_ref()) else {
            return false;
        };
        let land = self.scope.land;
        let wish = Wish { count: own.len(), ..self.wish(index, amount) };
        if is_nearest(land, &wish, own) {
            return false;
        }
        let free = self.free(index, amount);
        // what others have is no gain: nobody is moved for that
        let unladen = Field { busy: &[], ..self.ledger.field(&free) };
        let least = distance_cost(land, &wish, own);
        let gains = |set: &CpuSet| distance_cost(land, &wish, set) < least;
        if !self.best(amount, &wish, &unladen).is_some_and(|set| gains(&set)) {
            return false;
        }
        let better = self.best(amount, &wish, &self.ledger.field(&free)).filter(gains);
        let Some(better) = better else { return false };
        self.take_back(index);
        self.give(index, better);
        true
    }
}

/// In which steps an amount grows.
fn unit(land: &Landscape, amount: &Amount) -> usize {
    if amount.smt == Some(Smt::WholeCores) { land.core_sizes.smallest() } else { 1 }
}
