//! Which CPUs fit a wish best, of those that are free: nodes first (`nodes`), L3 groups and cores within them
//! (`offer`). Deterministic: of equals, the lowest number.

use layout::{Placement, Smt};
use units::CpuSet;

use super::{
    cost::{Wish, cost},
    field::Field,
    landscape::Landscape,
    nodes::{Division, Rooms, even, packed, ways},
    offer::Offer,
};

/// The best set of `wish.count` CPUs; `None` if fewer are free. Among sets of the same cost, the one that fewest
/// groups have already: load never makes a set worse by its own wish.
pub(crate) fn choose(land: &Landscape, wish: &Wish, field: &Field<'_>) -> Option<CpuSet> {
    let rest = wish.count.checked_sub(wish.must.len())?;
    let free = field.free.difference(&wish.must);
    if rest == 0 || free.len() < rest {
        return (rest == 0).then(|| wish.must.clone());
    }
    let idle = free.iter().all(|cpu| field.busy(cpu) == 0);
    let blind = Field { busy: &[], ..*field };
    let mut best: Option<(Vec<u64>, CpuSet)> = None;
    for seen in std::iter::once(field).chain((!idle).then_some(&blind)) {
        let found = ranked(land, wish, seen, field, &free, rest);
        best = [best, found].into_iter().flatten().min_by(|one, other| one.0.cmp(&other.0));
        if best.as_ref().is_some_and(|(rank, set)| is_ideal(land, wish, field, rank, set)) {
            break;
        }
    }
    best.map(|(_, set)| set)
}

/// The best set as found with the load of `seen`, and its rank by the load of `whole`.
fn ranked(
    land: &Landscape,
    wish: &Wish,
    seen: &Field<'_>,
    whole: &Field<'_>,
    free: &CpuSet,
    rest: usize,
) -> Option<(Vec<u64>, CpuSet)> {
    let offer = |node| Offer::new(land, node, free, seen, wish.smt);
    let mut divisions: Vec<Division> = match wish.placement {
        Placement::Spread => {
            let offers: Vec<Offer> = (0..land.nodes.len()).map(offer).collect();
            even(land, wish, whole, &offers, rest).into_iter().collect()
        }
        Placement::Pack => {
            let rooms = Rooms::of(land, free, wish.smt, rest);
            ways(wish, &rooms, rest).filter_map(|way| packed(land, wish, whole, &rooms, rest, way)).collect()
        }
    };
    divisions.sort();
    divisions.dedup();
    let by_nodes = |division: &Division| node_cost(land, wish, division);
    let least = divisions.iter().map(by_nodes).min()?;
    divisions.retain(|division| by_nodes(division) == least);
    // the most promising first, so that no other one has to be looked at if it is as good as can be
    divisions.sort_by_cached_key(|division| node_rank(land, wish, whole, division));
    let mut best: Option<(Vec<u64>, CpuSet)> = None;
    for division in divisions {
        let parts = division.iter().map(|(node, count)| offer(*node).take(*count, wish));
        let set = parts.fold(wish.must.clone(), |all, part| all.union(&part));
        if set.len() != wish.count {
            continue;
        }
        let rank = rank(land, wish, whole, &division, &set);
        if best.as_ref().is_none_or(|(least, _)| rank < *least) {
            let ideal = is_ideal(land, wish, whole, &rank, &set);
            best = Some((rank, set));
            if ideal {
                break;
            }
        }
    }
    best
}

/// Can nothing be better but by where its nodes are?
fn is_ideal(land: &Landscape, wish: &Wish, field: &Field<'_>, rank: &[u64], set: &CpuSet) -> bool {
    let caches_and_cores = match wish.smt {
        None | Some(Smt::WholeCores) => set.len().div_ceil(land.threads()) as u64,
        Some(Smt::Threads | Smt::Any) => 0,
    };
    // L3 groups and cores are the last of the cost, what speaks against siblings is the first
    let of_cost = rank.len().saturating_sub(RANK_BESIDE_COST);
    wish.placement == Placement::Pack
        && rank[..of_cost].ends_with(&[1, caches_and_cores])
        && rank[0] == 0
        && set.iter().all(|cpu| field.busy(cpu) == 0)
}

/// What of the cost is known from the nodes alone.
fn node_cost(land: &Landscape, wish: &Wish, division: &Division) -> Vec<u64> {
    if wish.placement == Placement::Spread {
        return Vec::new();
    }
    let near = wish.near.iter().map(|distances| {
        division.iter().map(|(node, count)| u64::from(distances[*node]) * *count as u64).sum::<u64>()
    });
    let mut nodes = land.positions(&wish.must);
    nodes.extend(division.iter().map(|(node, _)| *node));
    nodes.sort_unstable();
    nodes.dedup();
    let pairs = nodes.iter().enumerate();
    let between: u64 = pairs
        .map(|(index, from)| {
            nodes[index + 1..].iter().map(|to| u64::from(land.distance(*from, *to))).sum::<u64>()
        })
        .sum();
    near.chain([nodes.len() as u64, between]).collect()
}

/// What of the rank is known from the nodes alone, but for the cost.
fn node_rank(land: &Landscape, wish: &Wish, field: &Field<'_>, division: &Division) -> [u64; 4] {
    let share = wish.memory / division.len().max(1) as u64;
    let node_load = |node: usize| {
        let of = |part: u64, whole: u64| (part * 1000).checked_div(whole).unwrap_or(0);
        let ground = &land.nodes[node];
        let memory = field.load.memory.get(node).copied().unwrap_or(0);
        let cpus = field.load.cpus.get(node).copied().unwrap_or(0) as u64;
        let cpus = of(cpus, ground.cpus.len() as u64);
        // in parts of 4 KiB, so that the product fits
        ground.memory.map_or(cpus, |all| cpus.max(of(memory >> 12, all >> 12)))
    };
    let lacking = |node: usize| {
        let ground = &land.nodes[node];
        let used = field.load.memory.get(node).copied().unwrap_or(0);
        ground.memory.map_or(0, |all| used.saturating_add(share).saturating_sub(all).min(share))
    };
    let nodes = || division.iter().map(|(node, _)| *node);
    [
        nodes().map(lacking).sum(),
        wish.pulled.iter().flat_map(|far| nodes().map(|node| u64::from(far[node]))).sum(),
        nodes().map(node_load).max().unwrap_or(0),
        nodes().map(|node| land.nodes[node].cpus.intersection(field.free).len() as u64).sum(),
    ]
}

/// How many numbers of a rank are not its cost.
const RANK_BESIDE_COST: usize = 5;

/// The cost, and among equals: memory that nodes do not have, load, CPUs that others have too, others' wishes, and how
/// little is left of the nodes.
fn rank(land: &Landscape, wish: &Wish, field: &Field<'_>, division: &Division, set: &CpuSet) -> Vec<u64> {
    let mut rank = cost(land, wish, set);
    let [lacking, pulled, load, left] = node_rank(land, wish, field, division);
    let busy = set.iter().map(|cpu| u64::from(field.busy(cpu))).sum();
    rank.extend([lacking, busy, pulled, load, left]);
    rank
}
