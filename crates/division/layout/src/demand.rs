//! A group's requests for CPUs and memory nodes: intents that a planner resolves against a machine, or the sets
//! themselves. Knows no machine.

use settings::GroupName;
use settings::Hundredths;
use units::{Bytes, CpuSet, Limit, NodeSet};

use crate::reader::Word;

/// Which CPUs a group is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuDemand {
    /// All CPUs that the parent group has (`"all"`).
    All,
    /// These very CPUs, never empty (`"0-7"`; a number in quotes is a CPU's number, not how many).
    These(CpuSet),
    /// All CPUs of these NUMA nodes, never empty (`{ node = 0 }`, `{ node = "0-1" }`).
    OfNodes(NodeSet),
    /// A number of CPUs, with wishes as to which (`8`, `"25%"`, `{ count = 8, near = "node:0" }`).
    Some(CpuSpec),
    /// The same CPUs as another group (`{ like = "oltp2" }`): shared with it, also when that group's change. Such
    /// chains have no cycle, and the group named is in the layout and requests CPUs.
    Like(GroupName),
    /// All CPUs that no group has for itself, and fewer while it uses little. No layout says it of a group: it is what power
    /// saving requests for general groups.
    General,
}

/// A number of CPUs, with wishes as to which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuSpec {
    /// How many logical CPUs (SMT siblings count one each).
    pub amount: CpuAmount,
    /// Only of these NUMA nodes (`node`); a must.
    pub nodes: Option<NodeSet>,
    /// As near to these as can be, the first counting most; a wish.
    pub near: Vec<Near>,
    /// On few nodes or on many; the planner's choice where not said.
    pub placement: Option<Placement>,
    /// How SMT siblings are dealt with; the planner's choice where not said.
    pub smt: Option<Smt>,
    /// Whether other groups may be given the same CPUs; [`Pool::Shared`] where not said, [`Pool::Exclusive`] in an
    /// exclusive group.
    pub pool: Option<Pool>,
    /// From 1; only with [`CpuAmount::Between`], and then the pool is [`Pool::Exclusive`]: the group is elastic, and this is its
    /// share beside other elastic groups.
    pub weight: Option<u32>,
}

impl CpuDemand {
    /// The minimum, maximum and weight of an elastic group.
    pub fn elastic(&self) -> Option<(usize, Limit<usize>, u32)> {
        match self {
            CpuDemand::Some(CpuSpec {
                amount: CpuAmount::Between { min, max },
                weight: Some(weight),
                ..
            }) => Some((*min, *max, *weight)),
            _ => None,
        }
    }
}

/// How many CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuAmount {
    /// Exactly this many, at least 1.
    Count(usize),
    /// The CPUs of so many whole cores, at least 1: all SMT siblings of each, however many it has.
    Cores(usize),
    /// A share of those not reserved, in per cent above 0 to 100, rounded down but at least one.
    Percent(Hundredths),
    /// As many as can be had: at least `min` (from 1), at most `max` (not below `min`).
    Between {
        /// The least.
        min: usize,
        /// The most.
        max: Limit<usize>,
    },
}

/// What CPUs are to be near to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Near {
    /// A NUMA node (`node:0`).
    Node(usize),
    /// The node a block device is attached to, by path or number (`device:/dev/nvme0n1`, `device:8:16`).
    Device(String),
    /// Another group's CPUs (`group:oltp1`). The group named is in the layout and requests CPUs; together with `like`,
    /// such wishes have no cycle.
    Group(GroupName),
}

/// On how many NUMA nodes and L3 groups CPUs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// `pack`: as few as can be, for short ways.
    Pack,
    /// `spread`: evenly over all, for memory bandwidth and cache.
    Spread,
}

impl Word for Placement {
    const WORDS: &'static [(&'static str, Placement)] =
        &[("pack", Placement::Pack), ("spread", Placement::Spread)];
}

/// How SMT siblings (hyper-threads) are dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Smt {
    /// `whole-cores`: all siblings of a core or none; an amount that is no multiple of them is an error.
    WholeCores,
    /// `threads`: each CPU on a core of its own while there are any; its siblings are left to others.
    Threads,
    /// `any`: as it comes.
    Any,
}

impl Word for Smt {
    const WORDS: &'static [(&'static str, Smt)] =
        &[("whole-cores", Smt::WholeCores), ("threads", Smt::Threads), ("any", Smt::Any)];
}

/// Whether CPUs are shared with other groups of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// `shared`: from the CPUs that no group has for itself; other groups may be given the same.
    Shared,
    /// `exclusive`: the planner gives them to no other group. The kernel enforces it only if the group is
    /// `exclusive` too.
    Exclusive,
}

impl Word for Pool {
    const WORDS: &'static [(&'static str, Pool)] =
        &[("shared", Pool::Shared), ("exclusive", Pool::Exclusive)];
}

/// Which NUMA nodes a group's memory is to come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemDemand {
    /// The nodes its CPUs are on (`"local"`).
    Local,
    /// These nodes, never empty (`"0-1"`).
    These(NodeSet),
    /// All nodes that the parent group has (`"all"`).
    All,
    /// The same nodes as another group (`{ like = "oltp2" }`), on the same terms as [`CpuDemand::Like`].
    Like(GroupName),
}

/// An amount of memory of a machine that is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAmount {
    /// So much (`"4G"`).
    Bytes(Bytes),
    /// A share of the machine's memory, above 0 to 100 per cent (`"10%"`).
    Percent(Hundredths),
}
