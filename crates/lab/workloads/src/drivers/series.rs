//! Rates over the time of a run, from the moments at which something was done.

use experiment::results::Series;

/// With fewer a second than this, seconds are counted: a fifth of a second holds too few to be a rate.
const FEW: f64 = 500.0;

/// How long the intervals are for this many events a second.
pub(crate) fn interval(per_second: f64) -> f64 {
    if per_second < FEW { 1.0 } else { 0.2 }
}

/// Events per second in each whole interval, at its middle; `at` is in seconds since the span's beginning, the warm-up
/// before it, `seconds` the span's length. Intervals begin with the span.
pub(crate) fn rate(name: &str, at: impl Iterator<Item = f64>, seconds: f64) -> Series {
    weighted(name, "1/s", at.map(|at| (at, 1.0)).collect(), seconds, None)
}

/// The same with an amount each; the length of the intervals may be given.
pub(crate) fn weighted(
    name: &str,
    unit: &str,
    amounts: Vec<(f64, f64)>,
    seconds: f64,
    interval_seconds: Option<f64>,
) -> Series {
    let within = amounts.iter().filter(|(at, _)| (0.0..seconds).contains(at)).count();
    let length = interval_seconds.unwrap_or_else(|| interval(within as f64 / seconds));
    let place = |at: f64| (at / length).floor() as i64;
    // the first interval of all is cut short by the beginning
    let first = amounts.iter().map(|(at, _)| place(*at) + 1).min().unwrap_or(0).min(0);
    let end = (seconds / length + 1e-9).floor() as i64;
    let count = usize::try_from(end - first).unwrap_or(0);
    let mut sums = vec![0.0; count];
    for (at, amount) in amounts {
        if let Some(sum) = usize::try_from(place(at) - first).ok().and_then(|place| sums.get_mut(place)) {
            *sum += amount;
        }
    }
    let middle = |number: i64| (number as f64 + 0.5) * length;
    let points = (first..).zip(sums).map(|(number, sum)| (middle(number), sum / length)).collect();
    Series { name: name.to_owned(), unit: unit.to_owned(), points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_begin_with_the_span_and_the_cut_ones_are_left_out() {
        let at = [-1.3, -0.9, -0.1, 0.0, 0.5, 0.99, 1.0, 2.4, 2.6];
        let reported = rate("tps", at.into_iter(), 2.5);
        assert_eq!(reported.points, [(-0.5, 2.0), (0.5, 3.0), (1.5, 1.0)]);
        let many: Vec<f64> = (0..2000).map(|number| f64::from(number) / 1000.0).collect();
        let reported = rate("tps", many.into_iter(), 2.0);
        assert_eq!(reported.points.len(), 10);
        assert!(
            reported.points.iter().all(|(_, rate)| (990.0..=1010.0).contains(rate)),
            "{:?}",
            reported.points
        );
        assert!(rate("tps", std::iter::empty(), 1.0).points.iter().all(|(_, rate)| *rate == 0.0));
    }
}
