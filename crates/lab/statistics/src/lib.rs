//! What the figures of a few runs say: medians with their intervals, exact tests, the word of a comparison; when a rate
//! is steady; and in which order runs are made. Pure arithmetic on slices: no I/O, no clock, and no randomness but
//! the order's, from a given seed. Figures are finite numbers: what could not be measured is left out by the caller.

mod bootstrap; // how sure a median, and a ratio of medians, is
mod holm; // many tests at once
mod order;
mod quantile; // one sample: its middle, its spread
mod rank; // two samples: are they apart, and how far?
mod settle; // how long a change takes
mod steady; // when a run may begin to count
mod verdict; // what all that says of a comparison // in which order runs are made

#[cfg(test)]
mod noise;

pub use bootstrap::{Interval, median_coverage, median_interval, ratio_coverage, ratio_interval};
pub use holm::holm;
pub use order::{SplitMix64, order};
pub use quantile::{mean, median, quantile, variation};
pub use rank::{MannWhitney, hodges_lehmann, mann_whitney, smallest_p};
pub use settle::settle;
pub use steady::{Steady, steady};
pub use verdict::{Compared, LEAST_RUNS, LEVEL, Limits, Reason, Word, compare, verdict};
