//! A distribution of values that are all known: exact in its figures. Its bins are the caller's.

use experiment::results::Latency;

/// Of ascending values in seconds; `None` without any. A quantile is a value that was seen, and a thousandth is not reported
/// of fewer than a thousand.
pub(super) fn of_sorted(seconds: &[f64], bins: Vec<(f64, u64)>, missed: u64) -> Option<Latency> {
    let (min, max) = (*seconds.first()?, *seconds.last()?);
    let count = seconds.len();
    // the value that this many of 1,000 are not longer than
    let at = |thousandths: usize| seconds[(count * thousandths).div_ceil(1000).clamp(1, count) - 1];
    Some(Latency {
        count: count as u64,
        mean: seconds.iter().sum::<f64>() / count as f64,
        min,
        p50: at(500),
        p95: at(950),
        p99: at(990),
        p999: (count >= 1000).then(|| at(999)),
        max,
        bins,
        missed,
    })
}
