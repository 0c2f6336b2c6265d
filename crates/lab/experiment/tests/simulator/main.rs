//! The policy's figures with every kind of load, beside others' rules, and the model by itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod figures;
mod model;
mod recorded;

use experiment::simulator::{Kind, Load};
use policy::{Elastic, Sizes, Units, static_sizes};

fn machine(nodes: usize, cores: usize, width: usize) -> Units {
    Units::regular(nodes, cores, width).unwrap()
}

fn group(name: &str, min: usize, max: usize, weight: u32) -> Elastic {
    Elastic { name: name.to_owned(), min, max, weight, borrows: false }
}

fn loads(groups: &[Elastic], units: &Units, kinds: &[Kind]) -> Vec<Load> {
    let sizes: Vec<Sizes> = groups.iter().map(|group| group.sizes(units).unwrap()).collect();
    let shares = static_sizes(&sizes, units.len());
    let share = |(share, group): (usize, &Elastic)| ((share * units.width()) as f64, group.max as f64);
    let shares: Vec<(f64, f64)> = shares.into_iter().zip(groups).map(share).collect();
    kinds.iter().map(|kind| kind.load(&shares, (units.len() * units.width()) as f64, 1)).collect()
}
