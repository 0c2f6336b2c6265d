//! A group's request for CPUs of its scope: the demand with its numbers worked out. A scope is the CPUs of the
//! nearest parent that requests some itself, or the machine.

use layout::{CpuAmount, CpuDemand, CpuSpec, Near, Origin, Pool, Smt};
use policy::Elastic;
use settings::Hundredths;
use units::{CpuSet, Limit, NodeSet, counted};

use super::{core_sizes::CoreSizes, landscape::Landscape};
use crate::tree::{Branch, Tree};

/// A demand in a scope.
#[derive(Debug)]
pub(crate) struct Claim {
    pub branch: usize,
    pub name: String,
    pub origin: Origin,
    /// May no other group of the scope have one of its CPUs?
    pub apart: bool,
    pub request: Requested,
    /// What the kernel has now.
    pub current: CpuSet,
    /// Memory that it may or shall have, in bytes.
    pub memory: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Requested {
    /// These very CPUs.
    These(CpuSet),
    /// All CPUs of these nodes, or all, that others leave.
    Rest(Option<NodeSet>),
    /// A number of CPUs.
    Some(Amount),
    /// The same as another branch.
    Like(usize),
}

/// A number of CPUs, with wishes as to which.
#[derive(Debug, Clone)]
pub(crate) struct Amount {
    pub min: usize,
    pub max: usize,
    pub nodes: Option<NodeSet>,
    pub near: Vec<Near>,
    pub placement: Option<layout::Placement>,
    pub smt: Option<Smt>,
    /// How many whole cores, where that is what is requested: then the bounds are those of the smallest and the largest.
    pub cores: Option<usize>,
    /// CPUs that groups below it request by number.
    pub must: CpuSet,
}

/// Numbers of a whole tree that claims are made with.
pub(crate) struct Numbers {
    /// By branch: how many CPUs the groups below it need at least.
    pub needed: Vec<usize>,
    /// By branch: the CPUs that groups below it name.
    pub named: Vec<CpuSet>,
    /// How many CPUs a per cent is of.
    pub whole: usize,
    /// The sizes of the machine's cores.
    pub sizes: CoreSizes,
    /// By branch: of how many CPUs an elastic group's units are.
    widths: Vec<usize>,
}

impl Numbers {
    pub(crate) fn of(tree: &Tree<'_>, land: &Landscape, whole: usize, widths: Vec<usize>) -> Numbers {
        let count = tree.branches.len();
        let (needed, named) = (vec![0; count], vec![CpuSet::new(); count]);
        let mut numbers = Numbers { needed, named, whole, sizes: land.core_sizes.clone(), widths };
        let mut shared = vec![0; count];
        for index in (0..count).rev() {
            let branch = &tree.branches[index];
            numbers.needed[index] += shared[index];
            let below = numbers.named[index].clone();
            let named = match demand(branch) {
                Some(CpuDemand::These(cpus)) => cpus.union(&below),
                _ => below,
            };
            numbers.named[index] = named;
            let Some(parent) = branch.parent else { continue };
            let least = numbers.least(branch, index);
            let named = numbers.named[index].clone();
            numbers.named[parent] = numbers.named[parent].union(&named);
            if is_apart(branch) {
                numbers.needed[parent] += least;
            } else {
                shared[parent] = shared[parent].max(least);
            }
        }
        numbers
    }

    /// The fewest CPUs that a branch can do with.
    fn least(&self, branch: &Branch<'_>, index: usize) -> usize {
        let own = match demand(branch) {
            None | Some(CpuDemand::Like(_)) => 0,
            Some(CpuDemand::All | CpuDemand::General | CpuDemand::OfNodes(_)) => 1,
            Some(CpuDemand::These(cpus)) => cpus.len(),
            // whichever cores it gets, a parent made for it has room
            Some(CpuDemand::Some(spec @ CpuSpec { amount: CpuAmount::Cores(_), .. })) => self.bounds(spec).1,
            Some(CpuDemand::Some(spec)) => self.in_units(index, self.bounds(spec).0),
        };
        own.max(self.needed[index]).max(self.named[index].len())
    }

    /// A number of CPUs in whole units of an elastic group.
    fn in_units(&self, index: usize, count: usize) -> usize {
        count.next_multiple_of(self.widths[index])
    }

    /// At least and at most this many CPUs.
    pub(crate) fn bounds(&self, spec: &CpuSpec) -> (usize, usize) {
        match spec.amount {
            CpuAmount::Count(count) => (count, count),
            CpuAmount::Cores(count) => self.sizes.of_some(count),
            CpuAmount::Percent(percent) => {
                let count = share(self.whole, percent);
                (count, count)
            }
            // elastic: it gets more as its load wants it
            CpuAmount::Between { min, .. } if spec.weight.is_some() => (min, min),
            CpuAmount::Between { min, max } => (min, max.at().unwrap_or(usize::MAX)),
        }
    }
}

/// A share of CPUs, rounded down but at least one.
pub(crate) fn share(whole: usize, percent: Hundredths) -> usize {
    let whole = u64::try_from(whole).unwrap_or(u64::MAX);
    let part = whole.saturating_mul(percent.0) / 10_000;
    usize::try_from(part).unwrap_or(usize::MAX).max(1)
}

/// What it requests of its scope. Power saving's groups request nothing of it: they have what is left.
pub(crate) fn demand<'b>(branch: &'b Branch<'_>) -> Option<&'b CpuDemand> {
    branch.demands()?.cpus.as_ref().map(|cpus| &cpus.value).filter(|cpus| **cpus != CpuDemand::General)
}

/// What an elastic branch may have.
pub(crate) fn elastic(branch: &Branch<'_>) -> Option<Elastic> {
    let (min, max, weight) = demand(branch)?.elastic()?;
    let max = max.at().unwrap_or(usize::MAX).max(min);
    let borrows = branch.demands().is_some_and(layout::Demands::is_idle);
    Some(Elastic { name: branch.name.to_string(), min, max, weight, borrows })
}

/// Does a branch have CPUs of its own to give, so that the groups below it choose among these?
pub(crate) fn is_scope(branch: &Branch<'_>) -> bool {
    demand(branch).is_some() || branch.is_exclusive()
}

/// Are a branch's CPUs nobody else's, by its own wish or for the sake of a group below it?
pub(crate) fn is_apart(branch: &Branch<'_>) -> bool {
    let pool = match demand(branch) {
        Some(CpuDemand::Some(CpuSpec { pool: Some(pool), .. })) => *pool,
        _ => Pool::Shared,
    };
    branch.keeps_siblings_off() || pool == Pool::Exclusive
}

impl Claim {
    /// What a branch claims; only of one that [`is_scope`].
    pub(crate) fn new(tree: &Tree<'_>, index: usize, numbers: &Numbers, land: &Landscape) -> Claim {
        let branch = &tree.branches[index];
        let (needed, named) = (numbers.needed[index], numbers.named[index].clone());
        let amount = |spec: &CpuSpec, (min, max): (usize, usize)| Amount {
            min,
            max,
            nodes: spec.nodes.clone(),
            near: spec.near.clone(),
            placement: spec.placement,
            smt: spec.smt,
            cores: match spec.amount {
                CpuAmount::Cores(count) => Some(count),
                _ => None,
            },
            must: named.clone(),
        };
        let request = match demand(branch) {
            Some(CpuDemand::These(cpus)) => Requested::These(cpus.clone()),
            Some(CpuDemand::OfNodes(nodes)) => Requested::Rest(Some(nodes.clone())),
            Some(CpuDemand::All | CpuDemand::General) => Requested::Rest(None),
            Some(CpuDemand::Like(name)) => match tree.find(name) {
                Some(other) => Requested::Like(other),
                None => Requested::Rest(None),
            },
            Some(CpuDemand::Some(spec)) => {
                let (min, max) = match elastic(branch).filter(|_| branch.was_elastic) {
                    Some(Elastic { min, max, .. }) => (min, branch.cpus.len().clamp(min, max)),
                    None => numbers.bounds(spec),
                };
                let min = numbers.in_units(index, min);
                let max = numbers.in_units(index, max).max(min);
                let (min, max) = match spec.amount {
                    // between: room for the groups below is made
                    CpuAmount::Between { .. } => (min.max(needed).max(named.len()).min(max), max),
                    _ => (min, max),
                };
                let mut amount = amount(spec, whole_cores(spec, (min, max), land));
                if numbers.widths[index] > 1 {
                    amount.smt = Some(Smt::WholeCores);
                }
                Requested::Some(amount)
            }
            // a parent without a wish of its own, for the sake of an exclusive group below it
            None => {
                let least = needed.max(named.len()).max(1);
                Requested::Some(amount(&of_children(tree, index), (least, least)))
            }
        };
        Claim {
            branch: index,
            name: branch.name.to_string(),
            origin: origin(tree, index),
            apart: is_apart(branch),
            request,
            current: branch.cpus.clone(),
            memory: branch.group.map_or(0, |group| memory(&group.demands)),
        }
    }

    /// The request in words.
    pub(crate) fn words(&self) -> String {
        let own = if self.apart { " of its own" } else { "" };
        let nodes = |nodes: &NodeSet| format!("{} {nodes}", if nodes.len() == 1 { "node" } else { "nodes" });
        match &self.request {
            Requested::These(cpus) => {
                format!("the CPUs {cpus}{}", if self.apart { " for itself" } else { "" })
            }
            Requested::Rest(Some(of)) => {
                format!("the CPUs of {}{}", nodes(of), if self.apart { " for itself" } else { "" })
            }
            Requested::Rest(None) => format!("all CPUs{}", if self.apart { " for itself" } else { "" }),
            Requested::Some(amount) => {
                let least = if amount.max > amount.min && amount.cores.is_none() { "at least " } else { "" };
                let of = amount.nodes.as_ref().map_or(String::new(), |of| format!(" of {}", nodes(of)));
                let what = amount.cores.map_or_else(|| cpus(amount.min), cores);
                format!("{least}{what}{own}{of}")
            }
            Requested::Like(_) => "the CPUs of another group".to_owned(),
        }
    }
}

/// `1 CPU`, `2 CPUs`.
pub(crate) fn cpus(count: usize) -> String {
    counted(count, "CPU")
}

/// `1 core`, `2 cores`.
pub(crate) fn cores(count: usize) -> String {
    counted(count, "core")
}

/// Whole cores: bounds become numbers of CPUs that cores have where an amount may vary or is a per cent.
pub(super) fn whole_cores(spec: &CpuSpec, (min, max): (usize, usize), land: &Landscape) -> (usize, usize) {
    let sizes = &land.core_sizes;
    let above = |count: usize| sizes.above(count).unwrap_or(count);
    match (spec.smt, spec.amount) {
        (Some(Smt::WholeCores), CpuAmount::Percent(_)) => {
            let count = sizes.below(min).max(sizes.smallest());
            (count, count)
        }
        (Some(Smt::WholeCores), CpuAmount::Between { max: limit, .. }) => {
            let max = if spec.weight.is_some() { above(max) } else { max };
            let max = if limit == Limit::Max { max } else { sizes.below(max) };
            (above(min), max)
        }
        _ => (min, max),
    }
}

/// Where what groups below wish is, for a parent that wishes nothing.
fn of_children(tree: &Tree<'_>, index: usize) -> CpuSpec {
    let below =
        (index + 1..tree.branches.len()).filter(|other| tree.ancestors(*other).any(|above| above == index));
    let mut nodes = Some(NodeSet::new());
    let mut near = Vec::new();
    for demand in below.filter_map(|other| demand(&tree.branches[other])) {
        let of = match demand {
            CpuDemand::OfNodes(of) => Some(of),
            CpuDemand::Some(spec) => {
                let inside = |near: &&Near| !matches!(near, Near::Group(_));
                near.extend(spec.near.iter().filter(inside).cloned());
                spec.nodes.as_ref()
            }
            _ => None,
        };
        nodes = nodes.zip(of).map(|(all, of)| all.union(of));
    }
    let amount = CpuAmount::Count(1);
    CpuSpec {
        amount,
        nodes: nodes.filter(|nodes| !nodes.is_empty()),
        near,
        placement: None,
        smt: None,
        pool: None,
        weight: None,
    }
}

/// Where a branch was requested; of a part of a name, where the first group below it was.
fn origin(tree: &Tree<'_>, index: usize) -> Origin {
    let below = (index..tree.branches.len()).find(|other| {
        tree.branches[*other].group.is_some()
            && (*other == index || tree.ancestors(*other).any(|above| above == index))
    });
    tree.branches[below.unwrap_or(index)].origin()
}

/// What it may have of memory, or shall have, in bytes: so far as it is an amount. Who asks for memory of his own nodes uses some,
/// however much.
fn memory(demands: &layout::Demands) -> u64 {
    const SOME: u64 = 1 << 20;
    let bytes = |name: &str| {
        let assigned = demands.settings.iter().find(|assigned| assigned.found.setting.name == name)?;
        assigned.text.parse::<units::Bytes>().ok().map(|bytes| bytes.0)
    };
    let is_local = demands.mems.as_ref().is_some_and(|mems| mems.value == layout::MemDemand::Local);
    let unsaid = if is_local { SOME } else { 0 };
    ["memory.max", "memory.high", "memory.min", "memory.low"].into_iter().find_map(bytes).unwrap_or(unsaid)
}
