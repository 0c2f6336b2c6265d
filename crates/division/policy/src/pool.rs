//! Who has which units. A group keeps its units: it grows into those that it had before, then next to its own, and
//! gives back first what is on another node than most of its own, then what came last.

use std::collections::BTreeSet;

use units::CpuSet;

use crate::Units;

/// The units of a machine with their owners. A unit is free or one group's.
#[derive(Debug, Clone)]
pub struct Pool {
    units: Units,
    /// Per node, in the order of the nodes' numbers.
    free: Vec<BTreeSet<usize>>,
    /// Given back since the last [`Pool::settle`].
    returned: Vec<usize>,
    /// Per unit, the place of its node in `free`.
    node: Vec<usize>,
    groups: Vec<Holdings>,
}

/// A group's units.
#[derive(Debug, Clone, Default)]
struct Holdings {
    /// In the order in which they came.
    own: Vec<usize>,
    /// Those that it gave back, the last ones at the end.
    former: Vec<usize>,
}

impl Pool {
    /// All free; for `groups` groups.
    pub fn new(units: Units, groups: usize) -> Pool {
        let mut numbers: Vec<usize> = units.all().iter().map(|unit| unit.node).collect();
        numbers.dedup(); // units are in the order of nodes
        let place = |node: usize| numbers.binary_search(&node).unwrap_or(0);
        let node: Vec<usize> = units.all().iter().map(|unit| place(unit.node)).collect();
        let mut free = vec![BTreeSet::new(); numbers.len()];
        for (unit, node) in node.iter().enumerate() {
            free[*node].insert(unit);
        }
        Pool { units, free, returned: Vec::new(), node, groups: vec![Holdings::default(); groups] }
    }

    /// What is dealt out.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// Of how many groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// A group's units, in the order in which they came.
    pub fn own(&self, group: usize) -> &[usize] {
        &self.groups[group].own
    }

    /// How many units a group has.
    pub fn size(&self, group: usize) -> usize {
        self.groups[group].own.len()
    }

    /// A group's CPUs.
    pub fn cpus(&self, group: usize) -> CpuSet {
        self.units.cpus(self.own(group))
    }

    /// Units that can be given now.
    pub fn free(&self) -> usize {
        self.free.iter().map(BTreeSet::len).sum()
    }

    /// All units that are nobody's, given back or not.
    pub fn nobodys(&self) -> impl Iterator<Item = usize> + '_ {
        self.free.iter().flatten().chain(&self.returned).copied()
    }

    /// Units that can be given after the next [`Pool::settle`].
    pub fn returned(&self) -> usize {
        self.returned.len()
    }

    /// What was given back can be given from now on: never in the tick in which its owner still ran there.
    pub fn settle(&mut self) {
        for unit in std::mem::take(&mut self.returned) {
            self.free[self.node[unit]].insert(unit);
        }
    }

    /// Gives a group up to `count` more units, and returns how many it got.
    pub fn grow(&mut self, group: usize, count: usize) -> usize {
        let mut given = 0;
        while given < count {
            let Some(unit) = self.next(group) else { break };
            self.free[self.node[unit]].remove(&unit);
            let holdings = &mut self.groups[group];
            holdings.former.retain(|former| *former != unit);
            holdings.own.push(unit);
            given += 1;
        }
        given
    }

    /// Takes `count` units from a group.
    pub fn shrink(&mut self, group: usize, count: usize) {
        for _ in 0..count.min(self.size(group)) {
            let home = self.home(group);
            let holdings = &mut self.groups[group];
            let away = holdings.own.iter().rposition(|unit| Some(self.node[*unit]) != home);
            let unit = holdings.own.remove(away.unwrap_or(holdings.own.len() - 1));
            holdings.former.push(unit);
            self.returned.push(unit);
        }
    }

    /// The first of these units that are free.
    pub fn first_free(&self, units: &[usize], count: usize) -> Vec<usize> {
        let is_free = |unit: &&usize| self.free[self.node[**unit]].contains(unit);
        units.iter().filter(is_free).take(count).copied().collect()
    }

    /// Gives a group these very units, if all of them are free.
    pub fn give(&mut self, group: usize, units: &[usize]) -> bool {
        if !units.iter().all(|unit| self.free[self.node[*unit]].contains(unit)) {
            return false;
        }
        for unit in units {
            self.free[self.node[*unit]].remove(unit);
        }
        self.groups[group].own.extend(units);
        true
    }

    /// Makes it as it was before a change of this tick that the kernel refused.
    pub fn take_back(&mut self, group: usize, before: &CpuSet) {
        let Some(before) = self.units.find(before) else { return };
        let now = std::mem::take(&mut self.groups[group].own);
        self.returned.extend(now.iter().filter(|unit| !before.contains(unit)));
        self.returned.retain(|unit| !before.contains(unit));
        let (mut own, new): (Vec<usize>, Vec<usize>) =
            (now.into_iter().filter(|unit| before.contains(unit)).collect(), before);
        let back: Vec<usize> = new.into_iter().filter(|unit| !own.contains(unit)).collect();
        own.extend(&back);
        self.groups[group].former.retain(|unit| !own.contains(unit));
        self.groups[group].own = own;
    }

    /// The unit that a group gets next.
    fn next(&self, group: usize) -> Option<usize> {
        let holdings = &self.groups[group];
        let is_free = |unit: &&usize| self.free[self.node[**unit]].contains(unit);
        if let Some(unit) = holdings.former.iter().rev().find(is_free) {
            return Some(*unit);
        }
        let near = self.home(group).filter(|node| !self.free[*node].is_empty());
        let emptiest = || (0..self.free.len()).max_by_key(|node| (self.free[*node].len(), usize::MAX - node));
        let free = &self.free[near.or_else(emptiest)?];
        let last = holdings.own.last().copied().unwrap_or(0);
        free.range(last..).next().or_else(|| free.first()).copied()
    }

    /// The node with most of a group's units.
    fn home(&self, group: usize) -> Option<usize> {
        let mut counts = vec![0_usize; self.free.len()];
        self.own(group).iter().for_each(|unit| counts[self.node[*unit]] += 1);
        let most = (0..counts.len()).max_by_key(|node| (counts[*node], usize::MAX - node))?;
        (counts[most] > 0).then_some(most)
    }
}
