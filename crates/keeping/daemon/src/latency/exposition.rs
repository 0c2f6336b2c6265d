//! Prometheus' text format, and OpenMetrics' where it is the same: the series of one metric, and a percentile of them.

use std::collections::BTreeMap;

use layout::{Selector, series};

use crate::latency::{Error, wait::Wait};

/// Distinct bounds of a histogram. Who exposes more is no program that measures: ten to thirty are usual.
const MOST_BUCKETS: usize = 1000;
/// Bytes of a line; a longer one is none of the format.
const LONGEST: usize = 64 << 10;
/// Lines between two looks at the clock.
const LINES_BETWEEN_LOOKS: usize = 64;

/// What a metric says at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Metric {
    /// Requests that took at most this many seconds, from the smallest bound on; the last bound is infinite.
    Histogram(Vec<(f64, f64)>),
    /// The 99th percentile; `None`: nothing was measured.
    Value(Option<f64>),
}

/// Why a metric says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    #[error("there is no {0} in the answer")]
    Metric(String),
    #[error("{0} is a summary without quantile 0.99")]
    Quantile(String),
    #[error("{0} is a histogram without a bucket le=\"+Inf\"")]
    Bucket(String),
    #[error("{0} is a histogram with more than {MOST_BUCKETS} buckets")]
    Buckets(String),
}

impl From<Missing> for Error {
    fn from(missing: Missing) -> Error {
        Error::Says(missing.to_string())
    }
}

const P99: f64 = 0.99;

/// Reads a metric out of an answer. The buckets of several series are added up; of several other values the largest counts.
/// Lines that are none of the format are passed over. Any user of the machine may have written the text.
///
/// # Errors
/// What it lacks; there is no time left.
pub(crate) fn metric(text: &str, selector: &Selector, wait: &Wait<'_>) -> Result<Metric, Error> {
    let bucket = format!("{}_bucket", selector.name());
    let mut buckets: BTreeMap<Bound, f64> = BTreeMap::new();
    let (mut worst, mut is_there, mut has_quantiles, mut has_p99) = (None::<f64>, false, false, false);
    let name_ends = |rest: &str| rest.starts_with(['{', ' ', '\t']) || rest.starts_with("_bucket");
    for (number_of_line, line) in text.lines().enumerate() {
        // also where millions of lines are others'
        if number_of_line % LINES_BETWEEN_LOOKS == 0 {
            wait.go_on()?;
        }
        let line = line.trim_start();
        // most lines of an answer are others
        if line.len() > LONGEST || !line.strip_prefix(selector.name()).is_some_and(name_ends) {
            continue;
        }
        let Some((name, labels, rest)) = series(line) else { continue };
        let Some(value) = rest.split_whitespace().next().and_then(number) else { continue };
        if !selector.fits(&labels) {
            continue;
        }
        let label =
            |wanted: &str| labels.iter().find(|(name, _)| name == wanted).map(|(_, value)| number(value));
        if name == bucket {
            let Some(Some(bound)) = label("le") else { continue };
            *buckets.entry(Bound(bound + 0.0)).or_default() += value;
            if buckets.len() > MOST_BUCKETS {
                return Err(Missing::Buckets(selector.to_string()).into());
            }
        } else if name == selector.name() {
            is_there = true;
            if let Some(quantile) = label("quantile") {
                has_quantiles = true;
                if quantile != Some(P99) {
                    continue;
                }
                has_p99 = true;
            }
            if value.is_finite() && value >= 0.0 {
                worst = Some(worst.map_or(value, |worst| worst.max(value)));
            }
        }
    }
    match buckets.last_key_value() {
        Some((Bound(f64::INFINITY), _)) => {
            Ok(Metric::Histogram(buckets.into_iter().map(|(bound, count)| (bound.0, count)).collect()))
        }
        Some(_) => Err(Missing::Bucket(selector.to_string()).into()),
        None if !is_there => Err(Missing::Metric(selector.to_string()).into()),
        None if has_quantiles && !has_p99 => Err(Missing::Quantile(selector.to_string()).into()),
        None => Ok(Metric::Value(worst)),
    }
}

/// A bound of a bucket, in the order of numbers.
#[derive(Debug, Clone, Copy)]
struct Bound(f64);

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Bound) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Bound) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A number as the format has it: `+Inf` and `NaN` among them.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// The requests between two answers; `None` where the counters began again, or the buckets are others.
pub(crate) fn between(before: &[(f64, f64)], after: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let same = before.len() == after.len() && before.iter().zip(after).all(|(one, other)| one.0 == other.0);
    let counts = before.iter().zip(after).map(|((_, before), (bound, after))| (*bound, after - before));
    let counts: Vec<(f64, f64)> = counts.collect();
    (same && counts.iter().all(|(_, count)| *count >= 0.0)).then_some(counts)
}

/// The 99th percentile as `histogram_quantile` has it: within a bucket the requests are taken to lie evenly. Above the
/// largest bound it is that bound. `None` without requests.
pub(crate) fn p99(buckets: &[(f64, f64)]) -> Option<f64> {
    let (_, all) = buckets.last().filter(|(_, all)| *all > 0.0)?;
    let rank = P99 * all;
    let place = buckets.iter().position(|(_, count)| *count >= rank)?;
    let (below, counted) = place.checked_sub(1).map_or((0.0, 0.0), |before| buckets[before]);
    let (bound, count) = buckets[place];
    if bound == f64::INFINITY {
        return Some(below);
    }
    Some(below.max(0.0) + (bound - below.max(0.0)) * (rank - counted) / (count - counted))
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::AsFd, unix::net::UnixStream},
        time::{Duration, Instant},
    };

    use super::*;

    const TEXT: &str = r#"
# HELP http_seconds Time of a request.
# TYPE http_seconds histogram
http_seconds_bucket{handler="/",le="0.1"} 50
http_seconds_bucket{handler="/",le="0.2"} 90
http_seconds_bucket{handler="/",le="+Inf"} 100 1700000000 # {trace="a"} 0.3
http_seconds_bucket{handler="/api",le="0.1"} 7
http_seconds_bucket{handler="/api",le="0.2"} 7
http_seconds_bucket{handler="/api",le="+Inf"} 7
http_seconds_sum{handler="/"} 9
http_seconds_count{handler="/"} 100
# TYPE rpc_seconds summary
rpc_seconds{quantile="0.5"} 0.01
rpc_seconds{quantile="0.99",kind="a"} 0.04
rpc_seconds{quantile="0.990",kind="b"} 0.05
rpc_seconds_count 10
half_seconds{quantile="0.5"} 0.01
idle_seconds{quantile="0.99"} NaN
slow_seconds{host="a"} 1.5e-2
slow_seconds{host="b"} 2e-2
slow_seconds_other 9
broken{ 1
open_bucket{le="0.1"} 4
"#;

    fn read(selector: &str) -> Result<Metric, Error> {
        read_of(TEXT, selector, Duration::from_secs(600), false)
    }

    fn read_of(text: &str, selector: &str, time: Duration, stops: bool) -> Result<Metric, Error> {
        let (stopped, stop) = UnixStream::pair().unwrap();
        let stop = (!stops).then_some(stop);
        let wait = Wait { stopped: stopped.as_fd(), until: Instant::now() + time };
        let said = metric(text, &Selector::new(selector).unwrap(), &wait);
        drop(stop);
        said
    }

    #[test]
    fn a_histogram_of_endlessly_many_buckets_is_refused_and_no_text_holds_up_the_end() {
        let many: String =
            (0..500_000).map(|bound| format!("x_bucket{{le=\"{bound}\"}} 1\n")).collect::<String>()
                + "x_bucket{le=\"+Inf\"} 1\n";
        let said = read_of(&many, "x", Duration::from_secs(600), false);
        assert_eq!(said.unwrap_err().to_string(), "x is a histogram with more than 1000 buckets");
        let same = "x_bucket{le=\"1\"} 1\n".repeat(2000) + "x_bucket{le=\"+Inf\"} 2000\n";
        assert_eq!(
            read_of(&same, "x", Duration::from_secs(600), false),
            Ok(Metric::Histogram(vec![(1.0, 2000.0), (f64::INFINITY, 2000.0)]))
        );
        assert_eq!(read_of(&same, "x", Duration::from_secs(600), true), Err(Error::Stopped));
        assert_eq!(read_of(&same, "x", Duration::ZERO, false), Err(Error::Late));
        let long = format!("x{{a=\"{}\"}} 1\nx 2\n", "y".repeat(LONGEST));
        assert_eq!(read_of(&long, "x", Duration::from_secs(600), false), Ok(Metric::Value(Some(2.0))));
    }

    #[test]
    fn a_metric_is_a_histogram_a_summary_or_a_gauge() {
        let infinite = f64::INFINITY;
        assert_eq!(
            read("http_seconds"),
            Ok(Metric::Histogram(vec![(0.1, 57.0), (0.2, 97.0), (infinite, 107.0)]))
        );
        let api = read(r#"http_seconds{handler="/api"}"#);
        assert_eq!(api, Ok(Metric::Histogram(vec![(0.1, 7.0), (0.2, 7.0), (infinite, 7.0)])));
        assert_eq!(read("rpc_seconds"), Ok(Metric::Value(Some(0.05))), "the slowest");
        assert_eq!(read(r#"rpc_seconds{kind="a"}"#), Ok(Metric::Value(Some(0.04))));
        assert_eq!(read("idle_seconds"), Ok(Metric::Value(None)));
        assert_eq!(read("slow_seconds"), Ok(Metric::Value(Some(0.02))));
    }

    #[test]
    fn what_a_metric_lacks_is_named() {
        for (selector, expected) in [
            ("http", "there is no http in the answer"),
            (r#"http_seconds{handler="/x"}"#, r#"there is no http_seconds{handler="/x"} in the answer"#),
            ("half_seconds", "half_seconds is a summary without quantile 0.99"),
            ("open", "open is a histogram without a bucket le=\"+Inf\""),
            ("broken", "there is no broken in the answer"),
        ] {
            assert_eq!(read(selector).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn the_percentile_of_a_histogram_is_that_of_the_requests_between_two_answers() {
        let infinite = f64::INFINITY;
        let before = [(0.1, 1000.0), (0.2, 1000.0), (infinite, 1000.0)];
        let after = [(0.1, 1090.0), (0.2, 1100.0), (infinite, 1100.0)];
        let new = between(&before, &after).unwrap();
        assert!((p99(&new).unwrap() - 0.19).abs() < 1e-9, "nine tenths of the way from 0.1 to 0.2");
        assert_eq!(p99(&[(0.1, 0.0), (infinite, 5.0)]), Some(0.1), "above all bounds");
        assert_eq!(p99(&between(&before, &before).unwrap()), None, "no request");
        assert_eq!(between(&after, &before), None, "the counters began again");
        assert_eq!(between(&before[1..], &after), None);
        assert_eq!(p99(&[]), None);
    }
}
