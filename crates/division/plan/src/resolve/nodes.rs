//! How many CPUs of which node: on as few nodes as can be, each near to the others, or evenly over all.

use layout::Smt;
use units::CpuSet;

use super::{
    core_sizes::CoreSizes,
    cost::Wish,
    field::{Field, Round, rounds},
    landscape::Landscape,
    offer::Offer,
};

/// How many CPUs of which nodes, ascending.
pub(super) type Division = Vec<(usize, usize)>;

/// How many CPUs can be taken of a node.
pub(super) struct Rooms {
    by_node: Vec<Room>,
}

struct Room {
    all: usize,
    /// Only whole cores.
    whole: usize,
    /// Only one CPU of each core.
    one: usize,
    /// The sizes of the whole cores, where only those are taken.
    sizes: Option<CoreSizes>,
}

impl Rooms {
    pub(super) fn of(land: &Landscape, free: &CpuSet, smt: Option<Smt>, rest: usize) -> Rooms {
        let mut by_node: Vec<Room> = Vec::with_capacity(land.nodes.len());
        by_node.extend(land.nodes.iter().map(|ground| {
            let all = ground.cpus.intersection(free).len();
            Room { all, whole: all, one: all, sizes: None }
        }));
        // cores are counted only where they matter, as that takes a while
        if matches!(smt, None | Some(Smt::Any)) && by_node.iter().any(|room| room.all >= rest) {
            return Rooms { by_node };
        }
        for (room, ground) in by_node.iter_mut().zip(&land.nodes) {
            let cores = ground.l3.iter().flat_map(|(_, cores)| cores);
            let counts = cores.map(|core| {
                let core = &land.cores[*core];
                (core.len(), core.iter().filter(|cpu| free.contains(**cpu)).count())
            });
            let counts: Vec<(usize, usize)> = counts.collect();
            room.whole = counts.iter().filter(|(all, free)| all == free).map(|(all, _)| all).sum();
            room.one = counts.iter().filter(|(_, free)| *free > 0).count();
            if smt == Some(Smt::WholeCores) {
                room.all = room.whole;
                let whole = counts.iter().filter(|(all, free)| all == free).map(|(all, _)| *all);
                room.sizes = Some(CoreSizes::of(whole));
            }
        }
        Rooms { by_node }
    }

    pub(super) fn room(&self, node: usize, round: Round) -> usize {
        match round {
            Round::Whole => self.by_node[node].whole,
            Round::One => self.by_node[node].one,
            Round::All => self.by_node[node].all,
        }
    }
}

impl Rooms {
    /// How many CPUs of a node can be taken, at most `most`.
    fn fit(&self, node: usize, round: Round, most: usize) -> usize {
        let most = most.min(self.room(node, round));
        self.by_node[node].sizes.as_ref().map_or(most, |sizes| sizes.below(most))
    }

    /// Are so many CPUs to be had of this node alone?
    fn has(&self, node: usize, count: usize) -> bool {
        self.fit(node, Round::All, count) == count
    }
}

/// From every node on; where one node is enough there is but one way from it.
pub(super) fn ways<'r>(wish: &Wish, rooms: &'r Rooms, rest: usize) -> impl Iterator<Item = Way> + use<'r> {
    let room = |node: usize| rooms.room(node, Round::All);
    let starts: Vec<Option<usize>> = match wish.must.is_empty() {
        true => (0..rooms.by_node.len()).filter(|node| room(*node) > 0).map(Some).collect(),
        false => vec![None],
    };
    // one node is nearer than two: if it is enough, no other start is needed
    let enough = starts.iter().flatten().any(|start| rooms.has(*start, rest));
    let alone = wish.near.is_empty() && enough;
    let has = move |start: &Option<usize>| start.is_some_and(|start| rooms.has(start, rest));
    starts.into_iter().filter(move |start| !alone || has(start)).flat_map(move |start| {
        let enough = has(&start);
        Way::all(start).into_iter().take(if enough { 1 } else { 4 })
    })
}

/// How the next node is looked for when one is not enough; which is better shows only in the end.
#[derive(Clone, Copy)]
pub(super) struct Way {
    start: Option<usize>,
    /// The roomiest node before the nearest.
    by_room: bool,
    /// Whole cores of all nodes before the rest of broken ones.
    whole_first: bool,
}

impl Way {
    fn all(start: Option<usize>) -> [Way; 4] {
        [(false, false), (true, false), (false, true), (true, true)].map(|(by_room, whole_first)| Way {
            start,
            by_room,
            whole_first,
        })
    }
}

/// How many CPUs of each node, on as few as can be.
pub(super) fn packed(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    rooms: &Rooms,
    count: usize,
    way: Way,
) -> Option<Division> {
    if let Some(start) = way.start
        && wish.near.is_empty()
        && rooms.has(start, count)
        && rounds(wish, way.whole_first) == [Round::All]
    {
        return Some(vec![(start, count)]);
    }
    let nodes = rooms.by_node.len();
    let mut taken = vec![0_usize; nodes];
    let mut used = land.positions(&wish.must);
    let mut rest = count;
    for round in rounds(wish, way.whole_first) {
        loop {
            let room = |node: usize| {
                rooms.fit(node, *round, taken[node].saturating_add(rest)).saturating_sub(taken[node])
            };
            let left = |node: usize| rooms.room(node, *round).saturating_sub(taken[node]);
            let open = (0..nodes).filter(|node| room(*node) > 0);
            let next = open.min_by_key(|node| {
                let fits = room(*node) >= rest;
                let distance = used.iter().map(|from| land.distance(*from, *node)).sum::<u32>();
                (
                    near(wish, *node),
                    used.is_empty() && way.start.is_some_and(|start| start != *node),
                    (if way.by_room { 0 } else { distance }, !used.contains(node)),
                    (!fits, if fits { left(*node) - rest } else { usize::MAX - left(*node) }),
                    distance,
                    field.load.cpus.get(*node).copied().unwrap_or(0),
                    *node,
                )
            });
            let Some(node) = next.filter(|_| rest > 0) else { break };
            let some = room(node);
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

/// How many CPUs of each node, as evenly as can be; of nodes that are even, the one whose L3 groups are the emptier.
pub(super) fn even(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    offers: &[Offer],
    count: usize,
) -> Option<Division> {
    let before: Vec<usize> = land.nodes.iter().map(|node| node.cpus.intersection(&wish.must).len()).collect();
    let mut taken = vec![0; offers.len()];
    let mut emptiest: Vec<usize> = offers.iter().map(|offer| offer.emptiest(0, wish)).collect();
    let mut rest = count;
    for round in rounds(wish, false) {
        while rest > 0 {
            let room = |node: usize| offers[node].room(*round) - taken[node];
            let open =
                (0..offers.len()).filter(|node| room(*node) > 0 && offers[*node].step(taken[*node]) <= rest);
            let load = |node: usize| field.load.cpus.get(node).copied().unwrap_or(0);
            let rank = |node: &usize| {
                (before[*node] + taken[*node], near(wish, *node), emptiest[*node], load(*node), *node)
            };
            let Some(node) = open.min_by_key(rank) else { break };
            let some = offers[node].step(taken[node]).min(room(node));
            taken[node] += some;
            emptiest[node] = offers[node].emptiest(taken[node], wish);
            rest -= some;
        }
    }
    (rest == 0).then(|| taken.into_iter().enumerate().filter(|(_, count)| *count > 0).collect())
}
