//! In which order the runs of an experiment are made: randomised complete blocks. Every block runs every cell, a
//! condition under a load, once, so that what changes slowly (heat, a neighbour) meets all of them alike.

use crate::{Experiment, file::Order, statistics};

/// A condition under a load.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellKey {
    /// Which condition.
    pub condition: String,
    /// Under which load; `None`: the experiment has no loads.
    pub load: Option<String>,
}

/// A run that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// From 1.
    pub block: u32,
    /// What is run.
    pub cell: CellKey,
}

/// The cells of an experiment as its file has them: each condition, under each load in turn.
pub fn cells(experiment: &Experiment) -> Vec<CellKey> {
    let loads: Vec<Option<String>> = match experiment.load.as_slice() {
        [] => vec![None],
        loads => loads.iter().map(|load| Some(load.name.clone())).collect(),
    };
    let of = |condition: &str| {
        let condition = condition.to_owned();
        loads.iter().map(move |load| CellKey { condition: condition.clone(), load: load.clone() })
    };
    experiment.condition.iter().flat_map(|condition| of(&condition.name).collect::<Vec<_>>()).collect()
}

/// All runs in their order. The same seed gives the same order in every version; with more repetitions the first blocks
/// stay as they are.
pub fn order(experiment: &Experiment, order: Order, seed: u64, repetitions: u32) -> Vec<Planned> {
    let cells = cells(experiment);
    let blocks = match order {
        Order::Randomised => statistics::order(seed, repetitions as usize, cells.len()),
        Order::AsWritten => vec![(0..cells.len()).collect(); repetitions as usize],
    };
    (1..)
        .zip(blocks)
        .flat_map(|(block, places)| {
            let cells = &cells;
            places.into_iter().map(move |place| Planned { block, cell: cells[place].clone() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn names(planned: &[Planned]) -> Vec<(u32, String)> {
        let name = |key: &CellKey| format!("{}/{}", key.condition, key.load.as_deref().unwrap_or("-"));
        planned.iter().map(|planned| (planned.block, name(&planned.cell))).collect()
    }

    #[test]
    fn as_written_is_the_order_of_the_file() {
        let mut experiment = fixture::experiment(&["one", "all"]);
        let seen = names(&order(&experiment, Order::AsWritten, 1, 2));
        let name = |block, name: &str| (block, name.to_owned());
        assert_eq!(seen, [name(1, "one/-"), name(1, "all/-"), name(2, "one/-"), name(2, "all/-")]);
        experiment.load = fixture::loads(&["calm", "storm"]);
        let seen = names(&order(&experiment, Order::AsWritten, 1, 1));
        assert_eq!(
            seen,
            [name(1, "one/calm"), name(1, "one/storm"), name(1, "all/calm"), name(1, "all/storm")]
        );
    }

    /// The order of seed 42 is part of the records of experiments: it never changes.
    #[test]
    fn a_seed_gives_the_same_order_for_ever() {
        let experiment = fixture::experiment(&["a", "b", "c", "d"]);
        let planned = order(&experiment, Order::Randomised, 42, 3);
        let letters: String = planned.iter().map(|planned| planned.cell.condition.as_str()).collect();
        assert_eq!(letters, "cadbcdbaadcb");
        assert_eq!(order(&experiment, Order::Randomised, 42, 2)[..], planned[..8]);
    }

    #[test]
    fn every_block_runs_every_cell_once() {
        let mut experiment = fixture::experiment(&["a", "b", "c"]);
        experiment.load = fixture::loads(&["calm", "storm"]);
        let planned = order(&experiment, Order::Randomised, 7, 10);
        for block in 1..=10 {
            let mut seen: Vec<CellKey> =
                planned.iter().filter(|one| one.block == block).map(|one| one.cell.clone()).collect();
            let mut all = cells(&experiment);
            seen.sort();
            all.sort();
            assert_eq!(seen, all);
        }
    }
}
