//! Latencies as results hold them, from whatever a tool says: single values, or bins with counts. A quantile is never
//! reported shorter than it was: it is the upper end of the bin that it falls in.

use experiment::results::Latency;
use hdrhistogram::Histogram;

use crate::Error;

/// Bins of results are at most this much wider than the one before: 16 for each doubling, some hundreds at most.
const GROWTH: f64 = 1.044_273_782_427_413_8; // 2^(1/16)

/// Single values, in whole units (microseconds, nanoseconds). Count, sum and extremes are exact, quantiles to three
/// digits.
pub(crate) struct Distribution {
    histogram: Histogram<u64>,
    sum: u128,
    least: u64,
    longest: u64,
}

impl Distribution {
    /// # Errors
    /// No memory.
    pub fn new() -> Result<Distribution, Error> {
        let histogram = Histogram::new(3).map_err(|error| Error::System {
            what: "cannot make a histogram",
            source: std::io::Error::other(error.to_string()),
        })?;
        Ok(Distribution { histogram, sum: 0, least: u64::MAX, longest: 0 })
    }

    pub fn record(&mut self, value: u64) {
        // it resizes itself: no latency is too long for it
        let _ = self.histogram.record(value);
        self.sum += u128::from(value);
        self.least = self.least.min(value);
        self.longest = self.longest.max(value);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// `None` without values. `unit` is in seconds.
    pub fn latency(&self, unit: f64, missed: u64) -> Option<Latency> {
        let end = |value: u64| self.histogram.highest_equivalent(value).min(self.longest);
        let bins = self.histogram.iter_recorded();
        let bins: Vec<(f64, u64)> =
            bins.map(|step| (end(step.value_iterated_to()) as f64 * unit, step.count_at_value())).collect();
        let mean = self.sum as f64 / self.count().max(1) as f64 * unit;
        let (min, max) = (self.least as f64 * unit, self.longest as f64 * unit);
        from_bins(Bins { bins: &bins, beyond: 0, mean, min, max, missed })
    }
}

/// What a tool says of latencies, in seconds.
pub(crate) struct Bins<'a> {
    /// Upper ends, ascending, with counts.
    pub bins: &'a [(f64, u64)],
    /// How many were longer than the last bin's end.
    pub beyond: u64,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub missed: u64,
}

/// A distribution of bins. `None` if all are empty, or if more than one of 100 is beyond the last: its quantiles are
/// not known then.
pub(crate) fn from_bins(reported: Bins<'_>) -> Option<Latency> {
    let Bins { bins, beyond, mean, min, max, missed } = reported;
    let count: u64 = bins.iter().map(|(_, count)| count).sum::<u64>() + beyond;
    let quantile = |share: f64| {
        let rank = (share * count as f64).ceil().max(1.0) as u64;
        let mut before = 0;
        let bin = bins.iter().find(|(_, count)| {
            before += count;
            before >= rank
        });
        bin.map(|(end, _)| end.min(max))
    };
    Some(Latency {
        count,
        mean,
        min,
        p50: quantile(0.5)?,
        p95: quantile(0.95)?,
        p99: quantile(0.99)?,
        p999: quantile(0.999).filter(|_| count >= 1000),
        max,
        // the longest is in the bin that ends with it
        bins: coarser(bins.iter().copied().chain([(max, beyond)])),
        missed,
    })
}

/// Joins bins that are closer together than [`GROWTH`].
fn coarser(bins: impl Iterator<Item = (f64, u64)>) -> Vec<(f64, u64)> {
    let mut joined: Vec<(f64, u64)> = Vec::new();
    let mut begun = 0.0;
    for (end, count) in bins.filter(|(_, count)| *count > 0) {
        match joined.last_mut() {
            Some(last) if end <= begun * GROWTH => *last = (end, last.1 + count),
            _ => {
                begun = end;
                joined.push((end, count));
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_single_values_are_those_of_the_sorted_list() {
        let mut values = Distribution::new().unwrap();
        (1..=2000_u64).rev().for_each(|value| values.record(value * 10));
        let reported = values.latency(1e-6, 3).unwrap();
        assert_eq!((reported.count, reported.missed), (2000, 3));
        assert!((reported.min - 10e-6).abs() < 1e-12 && (reported.max - 0.02).abs() < 1e-12, "{reported:?}");
        assert!((reported.mean - 10_005e-6).abs() < 1e-12, "{}", reported.mean);
        for (seen, exact) in [
            (reported.p50, 0.010),
            (reported.p95, 0.019),
            (reported.p99, 0.0198),
            (reported.p999.unwrap(), 0.01998),
        ] {
            assert!(seen >= exact && seen <= exact * 1.001, "{seen} for {exact}");
        }
        assert_eq!(reported.bins.iter().map(|(_, count)| count).sum::<u64>(), 2000);
        assert!(
            reported.bins.windows(2).all(|pair| pair[0].0 < pair[1].0) && reported.bins.len() < 200,
            "{:?}",
            reported.bins
        );
        assert_eq!(reported.bins.last().unwrap().0, reported.max);
    }

    fn reported(bins: &[(f64, u64)], beyond: u64) -> Option<Latency> {
        from_bins(Bins { bins, beyond, mean: 1.1, min: 0.9, max: 2.5, missed: 0 })
    }

    #[test]
    fn a_thousandth_is_not_told_of_fewer_than_a_thousand() {
        let few = reported(&[(1.0, 900), (3.0, 99)], 0).unwrap();
        assert_eq!((few.p50, few.p95, few.p999), (1.0, 2.5, None));
        assert!(reported(&[(1.0, 0)], 0).is_none());
    }

    #[test]
    fn a_quantile_beyond_the_last_bin_is_not_reported() {
        let one = reported(&[(1.0, 9_990)], 10).unwrap();
        assert_eq!((one.count, one.p99, one.p999, one.max), (10_000, 1.0, Some(1.0), 2.5));
        assert_eq!(one.bins, [(1.0, 9_990), (2.5, 10)]);
        let more = reported(&[(1.0, 9_989)], 11).unwrap();
        assert_eq!((more.p99, more.p999), (1.0, None));
        assert!(reported(&[(1.0, 98)], 2).is_none());
    }
}
