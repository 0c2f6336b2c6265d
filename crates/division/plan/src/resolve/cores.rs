//! A number of cores (`cores = 3`) where cores differ in size: which of them, and how many CPUs they have. Of equally
//! near ones the largest are taken.

use units::CpuSet;

use super::{
    choose::choose,
    cost::{Wish, cost},
    field::Field,
    landscape::Landscape,
};

/// The best `cores` whole cores, those of `wish.must` among them; `None` if fewer are free. `smallest`: small ones before
/// large ones, as too few CPUs are left for the large ones.
pub(crate) fn choose_cores(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    (cores, smallest): (usize, bool),
) -> Option<CpuSet> {
    let whole = land.whole_cores(&field.free.union(&wish.must));
    // all of the machine, or a single node: what is large may be far away
    let nodes = land.nodes.iter().map(|node| node.cpus.intersection(&whole).union(&wish.must));
    let places = std::iter::once(whole.clone()).chain(nodes);
    let sets = places.filter_map(|place| of_place(land, wish, field, &place, (cores, smallest)));
    sets.min_by_key(|set| {
        let of_core_count = 1;
        let mut rank = cost(land, wish, set);
        rank.truncate(rank.len() - of_core_count);
        (rank, if smallest { set.len() } else { usize::MAX - set.len() })
    })
}

/// The largest cores of a place, or the smallest; which of one size, `choose` decides.
fn of_place(
    land: &Landscape,
    wish: &Wish,
    field: &Field<'_>,
    place: &CpuSet,
    (cores, smallest): (usize, bool),
) -> Option<CpuSet> {
    let mut rest = cores.checked_sub(land.count_cores(&wish.must))?;
    let mut must = wish.must.clone();
    let open = place.difference(&must);
    let mut sizes: Vec<usize> = land.sizes_of(&open).each().collect();
    sizes.dedup();
    if smallest {
        sizes.reverse();
    }
    for size in sizes {
        let of_size: CpuSet = open
            .iter()
            .filter(|cpu| land.site(*cpu).is_some_and(|site| land.cores[site.core].len() == size))
            .collect();
        let there = of_size.len() / size;
        if there < rest {
            must = must.union(&of_size);
            rest -= there;
            continue;
        }
        let count = must.len() + rest * size;
        let free = must.union(&of_size);
        return choose(land, &Wish { count, must, ..wish.clone() }, &Field { free: &free, ..*field });
    }
    (rest == 0).then_some(must)
}
