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

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/method.md says what a verdict rests on.
    #[test]
    fn the_page_on_the_method_has_these_numbers() {
        let page = include_str!("../../../../docs/method.md");
        let percent = |share: f64| format!("{:.0} %", (share * 100.0).round());
        for said in [
            format!("more than {} at 3\nruns, {} at 4, 94 % at 5", percent(median_coverage(3)), "87 %"),
            format!("{} at 4)", percent(ratio_coverage(4))),
            format!("below {LEVEL}"),
            format!("fewer than {LEAST_RUNS} runs"),
            format!(
                "{:.1} at 3 runs a side, {:.3} at 4 and {:.4} at 6",
                smallest_p(3, 3),
                smallest_p(4, 4),
                smallest_p(6, 6)
            ),
        ] {
            assert!(page.contains(&said), "'{said}' is not on it");
        }
        let (of_four, of_five) = (median_coverage(4), median_coverage(5));
        assert!((0.87..0.88).contains(&of_four) && (0.93..0.94).contains(&of_five), "{of_four} {of_five}");
        // twelve comparisons need six runs
        assert!(smallest_p(5, 5) * 12.0 > LEVEL && smallest_p(6, 6) * 12.0 < LEVEL);
    }
}
