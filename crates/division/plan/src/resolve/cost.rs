//! How good a set of CPUs is for a wish, as numbers to compare: the first that differs decides, less is better. What
//! depends on other groups' load is not in it: nobody is moved for that.

use layout::{Placement, Smt};
use units::CpuSet;

use super::landscape::Landscape;

/// A number of CPUs, and which would be best.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// How many; those of `must` count.
    pub count: usize,
    /// How SMT siblings are dealt with; `None` prefers whole cores without insisting.
    pub smt: Option<Smt>,
    pub placement: Placement,
    /// The distances of nodes from what it is to be near to, the first counting most.
    pub near: Vec<Vec<u32>>,
    /// Distances of nodes from groups that are to be near to it: a wish of others, used where nothing else decides.
    pub pulled: Vec<Vec<u32>>,
    /// CPUs that must be among them.
    pub must: CpuSet,
    /// Memory that it may or shall have, in bytes; 0 where nothing is said.
    pub memory: u64,
}

impl Wish {
    pub(crate) fn of(count: usize) -> Wish {
        let (near, pulled) = (Vec::new(), Vec::new());
        Wish { count, smt: None, placement: Placement::Pack, near, pulled, must: CpuSet::new(), memory: 0 }
    }
}

/// How far a set is from what is wished.
pub(crate) fn cost(land: &Landscape, wish: &Wish, set: &CpuSet) -> Vec<u64> {
    let tally = Tally::of(land, set);
    let near = wish.near.iter().map(|distances| tally.near(distances));
    let mut cost = vec![tally.against_smt(land, wish.smt)];
    match wish.placement {
        Placement::Pack => {
            cost.extend(near);
            cost.extend([tally.nodes() as u64, tally.between_nodes(land), tally.l3_groups() as u64]);
        }
        Placement::Spread => {
            let nodes = land.nodes.len();
            cost.push(unevenness(&tally.by_node, nodes));
            cost.extend(near);
            cost.push(unevenness(&tally.by_l3, land.l3_groups));
        }
    }
    cost.push(if wish.smt.is_none_or(|smt| smt == Smt::WholeCores) { tally.cores() as u64 } else { 0 });
    cost
}

/// The part of the cost that is worth moving a group for: how its CPUs are on cores where it said so, what it is near
/// to, its nodes and their distances. For caches and cores alone nobody is moved.
pub(crate) fn distance_cost(land: &Landscape, wish: &Wish, set: &CpuSet) -> Vec<u64> {
    let mut cost = cost(land, wish, set);
    cost.truncate(cost.len() - OF_CACHES);
    cost
}

/// How many of the last numbers of a cost speak of L3 groups and cores.
const OF_CACHES: usize = 2;

/// Can no set of that size have a lower [`distance_cost`]?
pub(crate) fn is_nearest(land: &Landscape, wish: &Wish, set: &CpuSet) -> bool {
    if wish.placement == Placement::Spread {
        return false;
    }
    let tally = Tally::of(land, set);
    let nearest = |distances: &Vec<u32>| {
        let least = distances.iter().min().copied().unwrap_or(0);
        tally.near(distances) == u64::from(least) * set.len() as u64
    };
    tally.against_smt(land, wish.smt) == 0 && wish.near.iter().all(nearest) && tally.nodes() == 1
}

/// How many CPUs of a set are in each node, L3 group and core, those with none left out.
struct Tally {
    by_node: Vec<(usize, usize)>,
    by_l3: Vec<(usize, usize)>,
    by_core: Vec<(usize, usize)>,
}

impl Tally {
    fn of(land: &Landscape, set: &CpuSet) -> Tally {
        let sites: Vec<_> = set.iter().filter_map(|cpu| land.site(cpu)).collect();
        let count = |part: fn(&super::landscape::Site) -> usize| {
            let mut places: Vec<usize> = sites.iter().map(part).collect();
            places.sort_unstable();
            let runs = places.chunk_by(|one, next| one == next);
            runs.map(|run| (run[0], run.len())).collect::<Vec<(usize, usize)>>()
        };
        Tally {
            by_node: count(|site| site.node),
            by_l3: count(|site| site.l3),
            by_core: count(|site| site.core),
        }
    }

    fn nodes(&self) -> usize {
        self.by_node.len()
    }

    fn l3_groups(&self) -> usize {
        self.by_l3.len()
    }

    fn cores(&self) -> usize {
        self.by_core.len()
    }

    fn near(&self, distances: &[u32]) -> u64 {
        self.by_node.iter().map(|(node, count)| u64::from(distances[*node]) * *count as u64).sum()
    }

    /// The distances between all pairs of its nodes.
    fn between_nodes(&self, land: &Landscape) -> u64 {
        let pairs = self.by_node.iter().enumerate().flat_map(|(index, (from, _))| {
            self.by_node[index + 1..].iter().map(move |(to, _)| u64::from(land.distance(*from, *to)))
        });
        pairs.sum()
    }

    /// CPUs that are placed against what is said of siblings.
    fn against_smt(&self, land: &Landscape, smt: Option<Smt>) -> u64 {
        let wrong = |(core, count): &(usize, usize)| match smt {
            Some(Smt::Threads) => *count - 1,
            Some(Smt::WholeCores) => land.cores[*core].len() - *count,
            Some(Smt::Any) | None => 0,
        };
        self.by_core.iter().map(|place| wrong(place) as u64).sum()
    }
}

/// How far the counts are from being the same everywhere, times the number of places.
fn unevenness(counts: &[(usize, usize)], places: usize) -> u64 {
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let from_even = |count: usize| (count * places).abs_diff(all) as u64;
    counts.iter().map(|(_, count)| from_even(*count)).sum::<u64>()
        + from_even(0) * (places - counts.len()) as u64
}
