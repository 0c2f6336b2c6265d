//! What the kernel allows in a state of the tree (`validate_change` in `kernel/cgroup/cpuset.c`, and for partitions
//! cgroup-v2.rst, "Cpuset"). Where v2 would take a write and let a group fall back to its parent's set, or mark a
//! partition invalid, this forbids it.

use std::cell::Cell as Switch;

use units::CpuSet;

use super::{Flag, Model};

/// Which rules.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    kind: Kind,
    /// v2: may a child have what its parent lacks? The kernel lets it; it is allowed only when nothing else helps.
    loose: Switch<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// v1, both kinds of sets.
    V1,
    /// v2's CPUs; with `remote`, a partition's parent need not be one (Linux 6.7).
    V2 { remote: bool },
    /// v2's memory nodes: never exclusive.
    V2Nodes,
}

impl Rules {
    pub(crate) fn v1() -> Rules {
        Rules { kind: Kind::V1, loose: Switch::new(false) }
    }

    pub(crate) fn v2_cpus(remote: bool) -> Rules {
        Rules { kind: Kind::V2 { remote }, loose: Switch::new(false) }
    }

    pub(crate) fn v2_nodes() -> Rules {
        Rules { kind: Kind::V2Nodes, loose: Switch::new(false) }
    }

    /// Allows what only order forbids; false if that is so already.
    pub(crate) fn relax(&self) -> bool {
        self.kind != Kind::V1 && !self.loose.replace(true)
    }
}

impl Model {
    /// What a group without a set of its own has on v2: its parent's.
    fn effective(&self, cell: usize) -> &CpuSet {
        let own = &self.cells[cell];
        match own.parent {
            Some(parent) if own.now.is_empty() && self.rules.kind != Kind::V1 => self.effective(parent),
            _ => &own.now,
        }
    }

    /// May the cell's set become `to`?
    pub(super) fn may_set(&self, cell: usize, to: &CpuSet) -> bool {
        let own = &self.cells[cell];
        let Some(parent) = own.parent else { return false };
        let emptied = to.is_empty() && !own.now.is_empty() && own.populated;
        !emptied
            && self.fits_above(cell, parent, to)
            && self.fits_below(cell, to)
            && self.fits_beside(cell, to)
            && self.leaves_some(cell, to)
    }

    fn fits_above(&self, cell: usize, parent: usize, to: &CpuSet) -> bool {
        let above = self.effective(parent);
        // on v2 what did not fit before may go on not fitting
        let bound = self.rules.kind == Kind::V1 || self.cells[cell].now.is_subset(above);
        to.is_subset(above) || !bound || (self.rules.loose.get() && !self.cells[cell].flag.holds())
    }

    fn fits_below(&self, cell: usize, to: &CpuSet) -> bool {
        let now = self.effective(cell);
        let to = if to.is_empty() && self.rules.kind != Kind::V1 {
            self.cells[cell].parent.map_or(to, |parent| self.effective(parent))
        } else {
            to
        };
        self.children[cell].iter().all(|child| {
            let child = &self.cells[*child];
            let bound = self.rules.kind == Kind::V1 || child.now.is_subset(now);
            child.now.is_subset(to) || !bound || (self.rules.loose.get() && !child.flag.holds())
        })
    }

    fn fits_beside(&self, cell: usize, to: &CpuSet) -> bool {
        let own = self.cells[cell].flag.holds();
        self.siblings(cell).all(|other| {
            let other = &self.cells[other];
            !(own || other.flag.holds()) || other.now.is_disjoint(to)
        })
    }

    /// v2: a partition that others depend on keeps CPUs for its own tasks and for groups that are no partitions.
    fn leaves_some(&self, cell: usize, to: &CpuSet) -> bool {
        if !matches!(self.rules.kind, Kind::V2 { .. }) {
            return true;
        }
        let own = &self.cells[cell];
        let as_parent = !self.depends(cell) || !self.left(cell, to, None).is_empty();
        let as_child = !own.flag.holds()
            || own.parent.is_none_or(|parent| {
                !self.depends(parent)
                    || !self.left(parent, self.effective(parent), Some((cell, to))).is_empty()
            });
        as_parent && as_child
    }

    /// Are there tasks that need CPUs of the cell which none of its partitions has?
    fn depends(&self, cell: usize) -> bool {
        let holds = |child: &usize| self.cells[*child].flag.holds();
        let (partitions, members): (Vec<usize>, Vec<usize>) =
            self.children[cell].iter().copied().partition(holds);
        let populated = members.iter().any(|child| self.cells[*child].populated);
        let root = self.cells[cell].parent.is_none();
        (root || !partitions.is_empty()) && (root || self.cells[cell].tasks || populated)
    }

    /// What of `set` no partition below the cell has, with one of them as it would become.
    fn left(&self, cell: usize, set: &CpuSet, with: Option<(usize, &CpuSet)>) -> CpuSet {
        let changed = with.map(|(child, _)| child);
        let partitions = self.children[cell]
            .iter()
            .filter(|child| Some(**child) != changed && self.cells[**child].flag.holds());
        let sets = partitions.map(|child| &self.cells[*child].now).chain(with.map(|(_, to)| to));
        sets.fold(set.clone(), |left, taken| left.difference(taken))
    }

    /// May the cell's flag go off?
    pub(super) fn may_open(&self, cell: usize) -> bool {
        self.cells[cell].parent.is_some()
            && !self.children[cell].iter().any(|child| self.cells[*child].flag.holds())
    }

    /// May the cell's flag go on?
    pub(super) fn may_close(&self, cell: usize) -> bool {
        let own = &self.cells[cell];
        let Some(parent) = own.parent else { return false };
        if self.goal_flag(cell) == Some(Flag::Off) {
            return self.may_open(cell);
        }
        let above = match self.rules.kind {
            Kind::V2 { remote: true } => true,
            Kind::V2 { remote: false } | Kind::V1 => self.cells[parent].flag.holds(),
            Kind::V2Nodes => false,
        };
        let beside = self.siblings(cell).all(|other| self.cells[other].now.is_disjoint(&own.now));
        let there = match self.rules.kind {
            Kind::V1 => true,
            _ => {
                let left = self.left(parent, self.effective(parent), Some((cell, &own.now)));
                let needs = self.cells[parent].parent.is_none() || self.needs_own(parent, cell);
                !own.now.is_empty() && (!needs || !left.is_empty())
            }
        };
        above && beside && there
    }

    /// Would the parent's own tasks, or members beside the cell, need CPUs if it became a partition?
    fn needs_own(&self, parent: usize, cell: usize) -> bool {
        let member = |other: usize| !self.cells[other].flag.holds() && self.cells[other].populated;
        self.cells[parent].tasks || self.siblings(cell).any(member)
    }
}
