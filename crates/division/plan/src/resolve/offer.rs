//! What one node has to give, and which of its CPUs are taken when it is known how many: whole L3 groups and idle,
//! whole cores first.

use std::cmp::Reverse;

use layout::{Placement, Smt};
use units::CpuSet;

use super::{
    core_sizes::CoreSizes,
    cost::Wish,
    field::{Field, Round},
    landscape::Landscape,
};

/// A core's free CPUs.
struct Core {
    free: Vec<usize>,
    /// Are all its online CPUs free?
    whole: bool,
    /// How many groups have them already.
    busy: u32,
}

/// A node's free CPUs, by L3 group.
pub(super) struct Offer {
    l3: Vec<Vec<Core>>,
    /// By L3 group, the sizes of its cores, where only whole ones are taken.
    sizes: Option<Vec<CoreSizes>>,
}

impl Offer {
    pub(super) fn new(
        land: &Landscape,
        node: usize,
        free: &CpuSet,
        field: &Field<'_>,
        smt: Option<Smt>,
    ) -> Offer {
        let ground = &land.nodes[node];
        if ground.cpus.is_disjoint(free) {
            return Offer { l3: Vec::new(), sizes: None };
        }
        let core = |core: &usize| {
            let all = &land.cores[*core];
            let free: Vec<usize> = all.iter().copied().filter(|cpu| free.contains(*cpu)).collect();
            let busy = free.iter().map(|cpu| field.busy(*cpu)).sum();
            Core { whole: free.len() == all.len(), free, busy }
        };
        let usable = |core: &Core| !core.free.is_empty() && (core.whole || smt != Some(Smt::WholeCores));
        let group =
            |(_, cores): &(usize, Vec<usize>)| cores.iter().map(core).filter(usable).collect::<Vec<Core>>();
        let l3: Vec<Vec<Core>> = ground.l3.iter().map(group).filter(|cores| !cores.is_empty()).collect();
        let of_group = |cores: &Vec<Core>| CoreSizes::of(cores.iter().map(|core| core.free.len()));
        let sizes = (smt == Some(Smt::WholeCores)).then(|| l3.iter().map(of_group).collect());
        Offer { l3, sizes }
    }

    /// How many CPUs can be taken.
    pub(super) fn room(&self, round: Round) -> usize {
        let of = |core: &Core| match round {
            Round::Whole if !core.whole => 0,
            Round::One => 1,
            Round::Whole | Round::All => core.free.len(),
        };
        self.l3.iter().flatten().map(of).sum()
    }

    /// The least that can be taken besides `taken` CPUs.
    pub(super) fn step(&self, taken: usize) -> usize {
        let Some(sizes) = &self.sizes else { return 1 };
        let all = CoreSizes::of(sizes.iter().flat_map(CoreSizes::each));
        all.above(taken + 1).map_or(usize::MAX, |next| next - taken)
    }

    /// How many CPUs of an L3 group can be taken, at most `most`.
    fn fit(&self, group: usize, room: usize, most: usize) -> usize {
        let most = most.min(room);
        self.sizes.as_ref().map_or(most, |sizes| sizes[group].below(most))
    }

    /// Takes `count` CPUs of the node; fewer where whole cores have no such number.
    pub(super) fn take(&self, count: usize, wish: &Wish) -> CpuSet {
        let of_core = if wish.smt == Some(Smt::Threads) { 1 } else { usize::MAX };
        let mut set = CpuSet::new();
        for (group, some) in self.divide(count, wish, of_core) {
            let parts = self.sizes.as_ref().and_then(|sizes| sizes[group].split(some));
            fill(&mut set, &self.l3[group], some, wish.smt, (of_core, parts));
        }
        if set.len() < count && self.sizes.is_none() {
            // threads: there are no more cores
            let all = self.l3.iter().flatten().flat_map(|core| core.free.iter().copied());
            let more: Vec<usize> = all.filter(|cpu| !set.contains(*cpu)).take(count - set.len()).collect();
            more.into_iter().for_each(|cpu| {
                set.insert(cpu);
            });
        }
        set
    }

    /// After `count` CPUs were taken evenly: how many the L3 group has from which the next one comes.
    pub(super) fn emptiest(&self, count: usize, wish: &Wish) -> usize {
        let of_core = if wish.smt == Some(Smt::Threads) { 1 } else { usize::MAX };
        let division = self.divide(count, wish, of_core);
        let taken =
            |group: usize| division.iter().find(|(of, _)| *of == group).map_or(0, |(_, count)| *count);
        let room =
            |group: &usize| self.l3[*group].iter().map(|core| core.free.len()).sum::<usize>() > taken(*group);
        (0..self.l3.len()).filter(room).map(taken).min().unwrap_or(usize::MAX)
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
            let step = |group: usize| match wish.placement {
                Placement::Pack => self.fit(group, room[group], taken[group] + rest) - taken[group],
                Placement::Spread => {
                    let sizes = self.sizes.as_ref().map(|sizes| &sizes[group]);
                    let next = sizes.map_or(Some(taken[group] + 1), |sizes| sizes.above(taken[group] + 1));
                    next.map_or(0, |next| next - taken[group])
                }
            };
            let open = (0..self.l3.len()).filter(|group| {
                let some = if taken[*group] < room[*group] { step(*group) } else { 0 };
                some > 0 && some <= rest
            });
            let next = match wish.placement {
                Placement::Spread => open.min_by_key(|group| (taken[*group], Reverse(idle(*group)), *group)),
                Placement::Pack => open.min_by_key(|group| {
                    let (room, idle) = (room[*group], idle(*group));
                    let fits = |room: usize| {
                        let less = self.fit(*group, room, rest) < rest;
                        (less, if less { usize::MAX - room } else { room - rest })
                    };
                    (fits(idle), fits(room), *group)
                }),
            };
            let Some(group) = next else { break };
            let some = step(group);
            taken[group] += some;
            rest -= some;
        }
        taken.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }
}

/// Takes CPUs of an L3 group: idle cores before busy ones, whole cores before the rest of broken ones.
/// `parts`: how many cores of each size, where only whole ones are taken.
fn fill(
    set: &mut CpuSet,
    cores: &[Core],
    count: usize,
    smt: Option<Smt>,
    (of_core, mut parts): (usize, Option<Vec<(usize, usize)>>),
) {
    let mut order: Vec<&Core> = cores.iter().collect();
    match smt {
        Some(Smt::Any) => order.sort_by_key(|core| (core.busy, core.free.first().copied())),
        _ => order.sort_by_key(|core| (core.busy, !core.whole, core.free.first().copied())),
    }
    let mut rest = count;
    for core in order {
        if let Some(parts) = &mut parts {
            let part = parts.iter_mut().find(|(size, left)| *size == core.free.len() && *left > 0);
            let Some((_, left)) = part else { continue };
            *left -= 1;
        }
        for cpu in core.free.iter().take(rest.min(of_core)) {
            set.insert(*cpu);
            rest -= 1;
        }
    }
}
