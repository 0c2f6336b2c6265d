//! Which CPUs fit a wish best, of those that are free: nodes first, L3 groups and cores within them. Tries every node
//! as the first one; the rest follows by distance. Deterministic: of equals, the lowest number.

use std::cmp::Reverse;

use layout::{Placement, Smt};
use units::CpuSet;

use super::{
    cost::{Wish, cost},
    landscape::Landscape,
};

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

/// What groups have of each node, by its position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load {
    pub cpus: Vec<usize>,
    /// In bytes, as far as it is said.
    pub memory: Vec<u64>,
}

/// A core's free CPUs.
struct Core {
    free: Vec<usize>,
    /// Are all its online CPUs free?
    whole: bool,
    /// How many groups have them already.
    busy: u32,
}

/// A node's free CPUs, by L3 group.
struct Offer {
    l3: Vec<Vec<Core>>,
}

/// The best set of `wish.count` CPUs; `None` if there are not so many. Among sets of the same cost, the one that fewest
/// groups have already: load never makes a set worse by its own wish.
pub(crate) fn choose(land: &Landscape, wish: &Wish, field: &Field<'_>) -> Option<CpuSet> {
    let idle = field.busy.iter().all(|count| *count == 0);
    let blind = Field { busy: &[], ..*field };
    let both = [Some(&blind), (!idle).then_some(field)];
    let sets = both.into_iter().flatten().filter_map(|heeded| ranked(land, wish, heeded, field));
    sets.min().map(|(_, set)| set)
}

/// The best set, with the load that is heeded on the way, and its rank by the whole load.
fn ranked(
    land: &Landscape,
    wish: &Wish,
    heeded: &Field<'_>,
    whole: &Field<'_>,
) -> Option<(Vec<u64>, CpuSet)> {
    let rest = wish.count.checked_sub(wish.must.len())?;
    let free = heeded.free.difference(&wish.must);
    if rest == 0 || free.len() < rest {
        return (rest == 0).then(|| (Vec::new(), wish.must.clone()));
    }
    let offer = |node| Offer::new(land, node, &free, heeded, wish.smt);
    let offers: Vec<Offer> = (0..land.nodes.len()).map(offer).collect();
    let starts = (0..offers.len()).filter(|node| offers[*node].room(wish.smt, usize::MAX) > 0);
    let from = |start| packed(land, wish, whole, &offers, rest, start);
    let mut divisions: Vec<Vec<(usize, usize)>> = match wish.placement {
        Placement::Spread => even(land, wish, whole, &offers, rest).into_iter().collect(),
        Placement::Pack if !wish.must.is_empty() => from(None).into_iter().collect(),
        Placement::Pack => starts.filter_map(|start| from(Some(start))).collect(),
    };
    divisions.sort();
    divisions.dedup();
    let by_nodes = |division: &Vec<(usize, usize)>| node_cost(land, wish, division);
    let least = divisions.iter().map(by_nodes).min()?;
    let best = divisions.iter().filter(|division| by_nodes(division) == least);
    let sets = best.map(|division| {
        let parts = division.iter().map(|(node, count)| offers[*node].take(*count, wish));
        let set = parts.fold(wish.must.clone(), |all, part| all.union(&part));
        (rank(land, wish, whole, division, &set), set)
    });
    sets.filter(|(_, set)| set.len() == wish.count).min()
}

/// What of the cost is known from the nodes alone.
fn node_cost(land: &Landscape, wish: &Wish, division: &[(usize, usize)]) -> Vec<u64> {
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

/// The cost, and among equals: memory that nodes do not have, load, CPUs that others have too, others' wishes, and how
/// little is left of the nodes.
fn rank(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    division: &[(usize, usize)],
    set: &CpuSet,
) -> Vec<u64> {
    let mut rank = cost(land, wish, set);
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
        let held = field.load.memory.get(node).copied().unwrap_or(0);
        ground.memory.map_or(0, |all| held.saturating_add(share).saturating_sub(all).min(share))
    };
    let nodes = || division.iter().map(|(node, _)| *node);
    let busy = |cpu: usize| u64::from(field.busy.get(cpu).copied().unwrap_or(0));
    rank.push(nodes().map(lacking).sum());
    rank.push(set.iter().map(busy).sum());
    rank.push(wish.pulled.iter().flat_map(|far| nodes().map(|node| u64::from(far[node]))).sum());
    rank.push(nodes().map(node_load).max().unwrap_or(0));
    rank.push(nodes().map(|node| land.nodes[node].cpus.intersection(field.free).len() as u64).sum());
    rank
}

/// How many CPUs of each node, on as few as can be, from `start` on.
fn packed(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    offers: &[Offer],
    count: usize,
    start: Option<usize>,
) -> Option<Vec<(usize, usize)>> {
    let mut taken = vec![0; offers.len()];
    let mut used = land.positions(&wish.must);
    let mut rest = count;
    // threads: a CPU of each core first, siblings only when there are no more cores
    let rounds: &[usize] = if wish.smt == Some(Smt::Threads) { &[1, usize::MAX] } else { &[usize::MAX] };
    for round in rounds {
        loop {
            let room = |node: usize| offers[node].room(wish.smt, *round) - taken[node];
            let open = (0..offers.len()).filter(|node| room(*node) > 0);
            let next = open.min_by_key(|node| {
                let fits = room(*node) >= rest;
                (
                    near(wish, *node),
                    used.is_empty() && start.is_some_and(|start| start != *node),
                    used.iter().map(|from| land.distance(*from, *node)).sum::<u32>(),
                    !used.contains(node),
                    !fits,
                    if fits { room(*node) - rest } else { usize::MAX - room(*node) },
                    field.load.cpus.get(*node).copied().unwrap_or(0),
                    *node,
                )
            });
            let Some(node) = next.filter(|_| rest > 0) else { break };
            let some = room(node).min(rest);
            taken[node] += some;
            rest -= some;
            if !used.contains(&node) {
                used.push(node);
            }
        }
    }
    (rest == 0).then(|| taken.into_iter().enumerate().filter(|(_, count)| *count > 0).collect())
}

fn near(wish: &Wish, node: usize) -> Vec<u32> {
    wish.near.iter().map(|distances| distances[node]).collect()
}

/// How many CPUs of each node, as evenly as can be.
fn even(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    offers: &[Offer],
    count: usize,
) -> Option<Vec<(usize, usize)>> {
    let unit = if wish.smt == Some(Smt::WholeCores) { land.threads() } else { 1 };
    let before: Vec<usize> = land.nodes.iter().map(|node| node.cpus.intersection(&wish.must).len()).collect();
    let mut taken = vec![0; offers.len()];
    let mut rest = count;
    let rounds: &[usize] = if wish.smt == Some(Smt::Threads) { &[1, usize::MAX] } else { &[usize::MAX] };
    for round in rounds {
        while rest > 0 {
            let room = |node: usize| offers[node].room(wish.smt, *round) - taken[node];
            let open = (0..offers.len()).filter(|node| room(*node) > 0);
            let load = |node: usize| field.load.cpus.get(node).copied().unwrap_or(0);
            let Some(node) =
                open.min_by_key(|node| (before[*node] + taken[*node], near(wish, *node), load(*node), *node))
            else {
                break;
            };
            let some = unit.min(rest).min(room(node));
            taken[node] += some;
            rest -= some;
        }
    }
    (rest == 0).then(|| taken.into_iter().enumerate().filter(|(_, count)| *count > 0).collect())
}

impl Offer {
    fn new(land: &Landscape, node: usize, free: &CpuSet, field: &Field<'_>, smt: Option<Smt>) -> Offer {
        let ground = &land.nodes[node];
        if ground.cpus.is_disjoint(free) {
            return Offer { l3: Vec::new() };
        }
        let core = |core: &usize| {
            let all = &land.cores[*core];
            let free: Vec<usize> = all.iter().copied().filter(|cpu| free.contains(*cpu)).collect();
            let busy = free.iter().map(|cpu| field.busy.get(*cpu).copied().unwrap_or(0)).sum();
            Core { whole: free.len() == all.len(), free, busy }
        };
        let usable = |core: &Core| !core.free.is_empty() && (core.whole || smt != Some(Smt::WholeCores));
        let group =
            |(_, cores): &(usize, Vec<usize>)| cores.iter().map(core).filter(usable).collect::<Vec<Core>>();
        Offer { l3: ground.l3.iter().map(group).filter(|cores| !cores.is_empty()).collect() }
    }

    /// How many CPUs can be taken, at most so many of a core.
    fn room(&self, smt: Option<Smt>, of_core: usize) -> usize {
        let of_core = if smt == Some(Smt::Threads) { of_core } else { usize::MAX };
        self.l3.iter().flatten().map(|core| core.free.len().min(of_core)).sum()
    }

    /// So many CPUs of the node.
    fn take(&self, count: usize, wish: &Wish) -> CpuSet {
        let of_core = if wish.smt == Some(Smt::Threads) { 1 } else { usize::MAX };
        let mut set = CpuSet::new();
        for (group, some) in self.divide(count, wish, of_core) {
            fill(&mut set, &self.l3[group], some, wish.smt, of_core);
        }
        if set.len() < count {
            // threads: there are no more cores
            let all = self.l3.iter().flatten().flat_map(|core| core.free.iter().copied());
            let more: Vec<usize> = all.filter(|cpu| !set.contains(*cpu)).take(count - set.len()).collect();
            more.into_iter().for_each(|cpu| {
                set.insert(cpu);
            });
        }
        set
    }

    /// How many of each L3 group: whole ones first, or evenly.
    fn divide(&self, count: usize, wish: &Wish, of_core: usize) -> Vec<(usize, usize)> {
        let room: Vec<usize> =
            self.l3.iter().map(|cores| cores.iter().map(|core| core.free.len().min(of_core)).sum()).collect();
        let idle = |group: usize| -> usize {
            let idle = self.l3[group].iter().filter(|core| core.busy == 0);
            idle.map(|core| core.free.len().min(of_core)).sum()
        };
        let mut taken = vec![0; self.l3.len()];
        let mut rest = count.min(room.iter().sum());
        while rest > 0 {
            let open = (0..self.l3.len()).filter(|group| taken[*group] < room[*group]);
            let next = match wish.placement {
                Placement::Spread => open.min_by_key(|group| (taken[*group], Reverse(idle(*group)), *group)),
                Placement::Pack => open.min_by_key(|group| {
                    let (room, idle) = (room[*group], idle(*group));
                    let fits = |room: usize| {
                        (room < rest, if room < rest { usize::MAX - room } else { room - rest })
                    };
                    (fits(idle), fits(room), *group)
                }),
            };
            let Some(group) = next else { break };
            let unit = match wish.placement {
                Placement::Pack => usize::MAX,
                Placement::Spread if wish.smt == Some(Smt::Threads) => 1,
                Placement::Spread => self.l3[group].first().map_or(1, |core| core.free.len()),
            };
            let some = unit.min(rest).min(room[group] - taken[group]);
            taken[group] += some;
            rest -= some;
        }
        taken.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }
}

/// Takes CPUs of an L3 group: idle cores before busy ones, whole cores before the rest of broken ones.
fn fill(set: &mut CpuSet, cores: &[Core], count: usize, smt: Option<Smt>, of_core: usize) {
    let mut order: Vec<&Core> = cores.iter().collect();
    match smt {
        Some(Smt::Any) => order.sort_by_key(|core| (core.busy, core.free.first().copied())),
        _ => order.sort_by_key(|core| (core.busy, !core.whole, core.free.first().copied())),
    }
    let mut rest = count;
    for core in order {
        if smt == Some(Smt::WholeCores) && core.free.len() > rest {
            continue;
        }
        for cpu in core.free.iter().take(rest.min(of_core)) {
            set.insert(*cpu);
            rest -= 1;
        }
    }
}
