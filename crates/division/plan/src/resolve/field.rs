//! The CPUs that a choice has, what others have of them, and in which rounds they are taken.

use layout::Smt;
use units::CpuSet;

use super::cost::Wish;

/// What there is to choose from.
#[derive(Clone, Copy)]
pub(crate) struct Field<'f> {
    /// CPUs that may be taken.
    pub free: &'f CpuSet,
    /// How many groups have each CPU already, by its number; for groups that share.
    pub busy: &'f [u32],
    /// What others have of each node.
    pub load: &'f Load,
}

impl Field<'_> {
    pub(super) fn busy(&self, cpu: usize) -> u32 {
        self.busy.get(cpu).copied().unwrap_or(0)
    }
}

/// What groups have of each node, by its position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load {
    pub cpus: Vec<usize>,
    /// In bytes, as far as it is said.
    pub memory: Vec<u64>,
}

/// What of cores is taken, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Whole cores.
    Whole,
    /// One CPU of each.
    One,
    /// All CPUs.
    All,
}

/// Threads have a CPU of each core first, and siblings only when there are no more cores.
pub(super) fn rounds(wish: &Wish, whole_first: bool) -> &'static [Round] {
    match wish.smt {
        Some(Smt::Threads) => &[Round::One, Round::All],
        None if whole_first => &[Round::Whole, Round::All],
        _ => &[Round::All],
    }
}
