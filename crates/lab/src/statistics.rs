//! Medians and ranges of a few runs. Few runs have no confidence interval worth printing: the range is told.

use serde::{Deserialize, Serialize};

/// The middle and the ends of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub lowest: f64,
    /// The largest.
    pub highest: f64,
}

impl Spread {
    /// How far the ends are apart, as a share of the median: 0.05 is 5 %. 0 if all are 0.
    pub fn relative(&self) -> f64 {
        let apart = self.highest - self.lowest;
        if apart == 0.0 { 0.0 } else { apart / self.median }
    }
}

/// Median and range; `None` without values.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    };
    Some(Spread { median, lowest, highest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_an_odd_and_the_mean_of_the_middle_two_of_an_even_count() {
        let median = |values: &[f64]| spread(values).map(|spread| spread.median);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[4.0]), Some(4.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 5.0, 4.0]), Some(4.5));
        let spread = spread(&[9.0, 1.0, 5.0]).unwrap();
        assert_eq!((spread.lowest, spread.highest), (1.0, 9.0));
    }

    #[test]
    fn a_relative_spread_is_a_share_of_the_median() {
        assert_eq!(spread(&[95.0, 100.0, 105.0]).unwrap().relative(), 0.1);
        assert_eq!(spread(&[0.0, 0.0]).unwrap().relative(), 0.0);
        assert_eq!(spread(&[0.0, 0.0, 1.0]).unwrap().relative(), f64::INFINITY);
    }
}
