//! The figure of a measure, worked out of what a run recorded: sums, one quotient, quantiles of latencies, and means
//! over a part of the run. Never asks the machine and never guesses: what was not recorded is an error.

use std::time::Duration;

use crate::{
    file::Measure,
    results::{Latency, Run, Series},
    statistics,
    times::{seconds, within},
};

/// A measure as it is worked out: the sum of some figures, by the sum of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// `WORKLOAD.FIGURE`, `GROUP.FIGURE`, `WORKLOAD.latency.QUANTILE`.
    pub above: Vec<String>,
    /// Empty without a quotient.
    pub below: Vec<String>,
}

/// Why a measure has no figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// A part is not of the form `NAME.FIGURE`.
    #[error("measure '{measure}': '{part}' is not WORKLOAD.FIGURE or GROUP.FIGURE")]
    Part {
        /// Which measure.
        measure: String,
        /// As written.
        part: String,
    },
    /// More than one division.
    #[error("measure '{measure}': a measure divides once at most")]
    Quotients {
        /// Which measure.
        measure: String,
    },
    /// The run recorded no figure of that name.
    #[error("measure '{measure}': run {run} has no figure '{name}'")]
    Unknown {
        /// Which measure.
        measure: String,
        /// Which run.
        run: u32,
        /// As written.
        name: String,
        /// What it recorded under near names, or all of it if none is near.
        near: Vec<String>,
    },
    /// The figure is a distribution, of which one number is to be named.
    #[error("measure '{measure}': '{name}' is a distribution")]
    Distribution {
        /// Which measure.
        measure: String,
        /// As written.
        name: String,
    },
    /// The latency has no such quantile; `p999` needs 1,000 of them.
    #[error("measure '{measure}': run {run} has no '{quantile}' of {count} latencies")]
    Quantile {
        /// Which measure.
        measure: String,
        /// Which run.
        run: u32,
        /// As written.
        quantile: String,
        /// How many latencies there were.
        count: u64,
    },
    /// `between` needs values over time.
    #[error("measure '{measure}': '{name}' was not recorded over time")]
    NotOverTime {
        /// Which measure.
        measure: String,
        /// As written.
        name: String,
        /// What was.
        known: Vec<String>,
    },
    /// `between` holds no time at all, or is no time.
    #[error("measure '{measure}': {reason}")]
    Between {
        /// Which measure.
        measure: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no time after which it stayed at one level.
    #[error("measure '{measure}': '{name}' did not settle in run {run}: {why}")]
    Unsettled {
        /// Which measure.
        measure: String,
        /// Which run.
        run: u32,
        /// As written.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// What is divided by is 0, or the figure is no finite number.
    #[error("measure '{measure}': '{is}' is no number in run {run}, as what it divides by is 0")]
    NoNumber {
        /// Which measure.
        measure: String,
        /// As written.
        is: String,
        /// Which run.
        run: u32,
    },
}

impl MeasureError {
    /// What would fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            MeasureError::Part { .. } => Some("such as load.tps, server.cpu or load.latency.p99".to_owned()),
            MeasureError::Quotients { .. } => {
                Some("sums may stand on both sides: a.tps + b.tps / server.cpu".to_owned())
            }
            MeasureError::Unknown { near, .. } if near.is_empty() => {
                Some("the run recorded no figures".to_owned())
            }
            MeasureError::Unknown { near, .. } => Some(format!("it has {}", near.join(", "))),
            MeasureError::Distribution { name, .. } => {
                Some(format!("such as {name}.p99; known are {QUANTILES}"))
            }
            MeasureError::Quantile { quantile, .. } if quantile == "p999" => {
                Some("p999 needs at least 1,000 of them: a longer duration".to_owned())
            }
            MeasureError::Quantile { .. } => Some(format!("known are {QUANTILES}")),
            MeasureError::NotOverTime { known, .. } if known.is_empty() => {
                Some("nothing was sampled: see the key sample".to_owned())
            }
            MeasureError::NotOverTime { known, .. } => {
                Some(format!("over time there are {}", known.join(", ")))
            }
            MeasureError::Between { .. } | MeasureError::NoNumber { .. } | MeasureError::Unsettled { .. } => {
                None
            }
        }
    }
}

const QUANTILES: &str = "mean, min, p50, p95, p99, p999, max";

/// A measure's figure in one run, in the unit that it was recorded in.
///
/// # Errors
/// The run has not what the measure is worked out of.
pub fn figure(measure: &Measure, run: &Run) -> Result<f64, MeasureError> {
    let formula = formula(measure)?;
    let part = measure.between.as_ref().map(|between| part(measure, between, run)).transpose()?;
    let sum = |names: &[String]| -> Result<f64, MeasureError> {
        let value = |name: &str| match part {
            None => reading(measure, run, name),
            Some(part) => mean_within(measure, run, name, part),
        };
        names
            .iter()
            .map(|term| match extreme(term) {
                None => value(term),
                Some((pick, of)) => {
                    let values =
                        of.split(',').map(|name| value(name.trim())).collect::<Result<Vec<_>, _>>()?;
                    // an empty list is refused where the measure is taken apart
                    Ok(values.into_iter().reduce(pick).unwrap_or(f64::NAN))
                }
            })
            .sum()
    };
    let above = sum(&formula.above)?;
    let figure = if formula.below.is_empty() { above } else { above / sum(&formula.below)? };
    if figure.is_finite() {
        return Ok(figure);
    }
    Err(MeasureError::NoNumber { measure: measure.name.clone(), is: measure.is.clone(), run: run.number })
}

/// Takes [`Measure::is`] apart. A `/` divides where the figure before it is named in full (`load.tps / server.cpu`);
/// elsewhere it belongs to a group's name (`db/oltp.cpu`).
///
/// # Errors
/// A part is no figure, or there are two quotients.
pub fn formula(measure: &Measure) -> Result<Formula, MeasureError> {
    let terms = |side: &str| -> Result<Vec<String>, MeasureError> {
        let plain = |name: &str| name.split('.').count() > 1 && name.split('.').all(|part| !part.is_empty());
        let whole = |term: &str| match extreme(term) {
            Some((_, of)) => of.split(',').all(|name| plain(name.trim())),
            None => plain(term) && !term.contains(['(', ')', ',']),
        };
        side.split('+')
            .map(str::trim)
            .map(|term| match whole(term) {
                true => Ok(term.to_owned()),
                false => Err(MeasureError::Part { measure: measure.name.clone(), part: term.to_owned() }),
            })
            .collect()
    };
    match sides(&measure.is).as_slice() {
        [above] => Ok(Formula { above: terms(above)?, below: Vec::new() }),
        [above, below] => Ok(Formula { above: terms(above)?, below: terms(below)? }),
        _ => Err(MeasureError::Quotients { measure: measure.name.clone() }),
    }
}

/// One of two figures.
type Pick = fn(f64, f64) -> f64;

/// `min(a.tps, b.tps)`: the least or the most of some figures.
fn extreme(term: &str) -> Option<(Pick, &str)> {
    let (name, rest) = term.split_once('(')?;
    let of = rest.strip_suffix(')')?;
    match name.trim() {
        "min" => Some((f64::min, of)),
        "max" => Some((f64::max, of)),
        _ => None,
    }
}

/// Of one NUMA node where a figure ends in its number: `memory.node.anon.0` is `memory.node.anon` of node 0.
pub fn node(figure: &str) -> (&str, Option<u32>) {
    let of_node = figure.rsplit_once('.').and_then(|(all, node)| Some((all, node.parse().ok()?)));
    of_node.map_or((figure, None), |(all, node)| (all, Some(node)))
}

/// The figures that a measure names, as `WORKLOAD.FIGURE` and `GROUP.FIGURE`; of one that is no formula whatever stands
/// where they would.
pub fn names(is: &str) -> impl Iterator<Item = &str> {
    is.split(['+', '/']).map(str::trim).flat_map(|term| {
        let of = extreme(term).map_or(term, |(_, of)| of);
        of.split(',').map(str::trim)
    })
}

/// The figures of one term.
pub(crate) fn extreme_names(term: &str) -> impl Iterator<Item = &str> {
    extreme(term).map_or(term, |(_, of)| of).split(',').map(str::trim)
}

fn sides(is: &str) -> Vec<String> {
    let (mut sides, mut side) = (Vec::new(), String::new());
    for piece in is.split('/') {
        side.push_str(piece);
        if side.rsplit('+').next().is_some_and(|term| term.contains('.')) {
            sides.push(std::mem::take(&mut side));
        } else {
            side.push('/');
        }
    }
    // what ends without a figure is reported as it stands, without the '/' that was put behind it
    if side.pop().is_some() {
        sides.push(side);
    }
    sides
}

/// Behind a figure: how long it took to settle after the run's first event.
pub(crate) const SETTLE: &str = "settle";

/// A figure of the whole run.
fn reading(measure: &Measure, run: &Run, name: &str) -> Result<f64, MeasureError> {
    if let Some((of, SETTLE)) = name.rsplit_once('.') {
        let series = series(measure, run, of)?;
        let unsettled = |why| MeasureError::Unsettled {
            measure: measure.name.clone(),
            run: run.number,
            name: of.to_owned(),
            why,
        };
        let Some(event) = run.events.first() else { return Err(unsettled("nothing was changed in it")) };
        return statistics::settle(&series.points, event.at)
            .ok_or_else(|| unsettled("it did not stay at one level, or the run was too short"));
    }
    if let Some(reading) = run.readings.get(name) {
        return Ok(*reading);
    }
    if run.latencies.contains_key(name) {
        return Err(MeasureError::Distribution { measure: measure.name.clone(), name: name.to_owned() });
    }
    let Some((latency, quantile)) = name
        .rsplit_once('.')
        .and_then(|(of, quantile)| run.latencies.get(of).map(|latency| (latency, quantile)))
    else {
        return Err(unknown(measure, run, name));
    };
    of_latency(latency, quantile).ok_or_else(|| MeasureError::Quantile {
        measure: measure.name.clone(),
        run: run.number,
        quantile: quantile.to_owned(),
        count: latency.count,
    })
}

fn of_latency(latency: &Latency, quantile: &str) -> Option<f64> {
    if latency.count == 0 {
        return None;
    }
    match quantile {
        "mean" => Some(latency.mean),
        "min" => Some(latency.min),
        "p50" => Some(latency.p50),
        "p95" => Some(latency.p95),
        "p99" => Some(latency.p99),
        "p999" => latency.p999,
        "max" => Some(latency.max),
        _ => None,
    }
}

fn unknown(measure: &Measure, run: &Run, name: &str) -> MeasureError {
    let known: Vec<&str> = run.readings.keys().chain(run.latencies.keys()).map(String::as_str).collect();
    let near = units::nearest(name, known.iter().copied());
    let near = if near.is_empty() { known } else { near };
    MeasureError::Unknown {
        measure: measure.name.clone(),
        run: run.number,
        name: name.to_owned(),
        near: near.into_iter().map(str::to_owned).collect(),
    }
}

/// From and to, in seconds since what counts began.
fn part(measure: &Measure, between: &[String; 2], run: &Run) -> Result<(f64, f64), MeasureError> {
    let wrong = |reason: String| MeasureError::Between { measure: measure.name.clone(), reason };
    // a run is seldom as long as it was meant to be to the millisecond: a time behind its end is its end
    let time = |text: &str| {
        let span = Duration::from_secs_f64(run.seconds.max(0.0));
        let time = if text.contains('%') { within(text, span) } else { seconds(text) };
        time.map(|time| time.min(span).as_secs_f64()).map_err(wrong)
    };
    let (from, to) = (time(&between[0])?, time(&between[1])?);
    if from >= to {
        return Err(wrong(format!("nothing lies between {} and {}", between[0], between[1])));
    }
    Ok((from, to))
}

/// The mean of a series' points behind `from` and up to `to`: a rate is reported at the end of the time that it is of.
fn mean_within(
    measure: &Measure,
    run: &Run,
    name: &str,
    (from, to): (f64, f64),
) -> Result<f64, MeasureError> {
    let within: Vec<f64> = series(measure, run, name)?
        .points
        .iter()
        .filter(|(time, _)| from < *time && *time <= to)
        .map(|(_, value)| *value)
        .collect();
    statistics::mean(&within).ok_or_else(|| MeasureError::Between {
        measure: measure.name.clone(),
        reason: format!("'{name}' has no sample between {from} s and {to} s"),
    })
}

fn series<'r>(measure: &Measure, run: &'r Run, name: &str) -> Result<&'r Series, MeasureError> {
    run.series.iter().find(|series| series.name == name).ok_or_else(|| {
        let known: Vec<&str> = run.series.iter().map(|series| series.name.as_str()).collect();
        let near = units::nearest(name, known.iter().copied());
        let known = if near.is_empty() { known } else { near };
        MeasureError::NotOverTime {
            measure: measure.name.clone(),
            name: name.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{file::Better, results::EventDone};

    fn measure(is: &str) -> Measure {
        let is = is.to_owned();
        Measure {
            name: "m".to_owned(),
            is,
            unit: String::new(),
            better: Better::Higher,
            between: None,
            target: BTreeMap::new(),
        }
    }

    fn between(is: &str, from: &str, to: &str) -> Measure {
        Measure { between: Some([from.to_owned(), to.to_owned()]), ..measure(is) }
    }

    fn run() -> Run {
        let readings = [
            ("load.tps", 40_000.0),
            ("a.tps", 10.0),
            ("b.tps", 30.0),
            ("server.cpu", 1.6),
            ("db/a.cpu", 0.5),
        ];
        let latency =
            Latency { count: 500, mean: 0.002, p50: 0.001, p99: 0.012, max: 0.3, ..Latency::default() };
        let points = (0..=10).map(|time| (f64::from(time) - 1.0, f64::from(time) * 100.0)).collect();
        Run {
            number: 3,
            seconds: 8.98,
            readings: readings.map(|(name, value)| (name.to_owned(), value)).into(),
            latencies: [("load.latency".to_owned(), latency)].into(),
            series: vec![Series { name: "load.tps".to_owned(), unit: "1/s".to_owned(), points }],
            ..Run::default()
        }
    }

    fn figure_of(is: &str) -> Result<f64, MeasureError> {
        figure(&measure(is), &run())
    }

    #[test]
    fn sums_and_one_quotient_are_worked_out() {
        assert_eq!(figure_of("load.tps"), Ok(40_000.0));
        assert_eq!(figure_of(" a.tps + b.tps "), Ok(40.0));
        assert_eq!(figure_of("load.tps / server.cpu"), Ok(25_000.0));
        assert_eq!(figure_of("a.tps+b.tps/server.cpu + db/a.cpu"), Ok(40.0 / 2.1));
        assert_eq!(figure_of("db/a.cpu"), Ok(0.5));
        assert_eq!(figure_of("db/a.cpu/db/a.cpu"), Ok(1.0));
    }

    #[test]
    fn the_least_and_the_most_of_figures_are_terms_too() {
        assert_eq!(figure_of("min(a.tps, b.tps, load.tps) / max(a.tps, b.tps)"), Ok(10.0 / 30.0));
        assert_eq!(figure_of("max(a.tps) + server.cpu"), Ok(11.6));
        let named: Vec<&str> = names("min(a.tps, b.tps) / max(a.tps,b.tps) + server.cpu").collect();
        assert_eq!(named, ["a.tps", "b.tps", "a.tps", "b.tps", "server.cpu"]);
        for wrong in ["min()", "min(a.tps", "least(a.tps, b.tps)", "min(a.tps,)", "a.tps, b.tps"] {
            assert!(matches!(figure_of(wrong), Err(MeasureError::Part { .. })), "{wrong}");
        }
        let within = figure(&between("min(load.tps, load.tps)", "0s", "2s"), &run());
        assert_eq!(within, Ok(250.0));
    }

    #[test]
    fn a_latency_is_asked_for_by_a_quantile() {
        assert_eq!(figure_of("load.latency.p99"), Ok(0.012));
        assert_eq!(figure_of("load.latency.max"), Ok(0.3));
        assert!(matches!(figure_of("load.latency"), Err(MeasureError::Distribution { .. })));
        let few = figure_of("load.latency.p999").unwrap_err();
        assert_eq!(few.to_string(), "measure 'm': run 3 has no 'p999' of 500 latencies");
        assert!(few.hint().unwrap().contains("1,000"));
        assert!(figure_of("load.latency.p98").unwrap_err().hint().unwrap().contains("p95"));
    }

    #[test]
    fn an_unknown_name_is_told_with_near_ones() {
        let error = figure_of("load.tsp").unwrap_err();
        assert_eq!(error.to_string(), "measure 'm': run 3 has no figure 'load.tsp'");
        assert_eq!(error.hint().unwrap(), "it has load.tps");
        let error = figure_of("wholly.different").unwrap_err();
        assert!(error.hint().unwrap().contains("server.cpu"), "{:?}", error.hint());
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        for wrong in ["", "tps", "load.", ".tps", "load.tps +", "load.tps /"] {
            assert!(matches!(figure_of(wrong), Err(MeasureError::Part { .. })), "{wrong}");
        }
        assert!(matches!(figure_of("a.tps / b.tps / a.tps"), Err(MeasureError::Quotients { .. })));
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let mut run = run();
        run.readings.insert("server.cpu".to_owned(), 0.0);
        let error = figure(&measure("load.tps / server.cpu"), &run).unwrap_err();
        assert!(matches!(error, MeasureError::NoNumber { run: 3, .. }));
    }

    #[test]
    fn a_part_of_a_run_is_the_mean_of_its_samples() {
        // samples at -1, 0, … 9 s with 0, 100, … 1000: the warm-up's and that of its end don't count
        assert_eq!(figure(&between("load.tps", "0s", "2s"), &run()), Ok(250.0));
        assert_eq!(figure(&between("load.tps", "50%", "100%"), &run()), Ok(750.0));
        assert_eq!(figure(&between("load.tps", "5s", "9s"), &run()), Ok(800.0)); // the run ended 20 ms before 9 s
        assert_eq!(figure(&between("load.tps / load.tps", "0%", "100%"), &run()), Ok(1.0));
    }

    #[test]
    fn the_time_to_settle_begins_with_the_first_event() {
        let points = (0..40).map(|place| f64::from(place) * 0.5).map(|time| {
            let rate = if time < 10.0 { 100.0 } else { (20.0 * (time - 5.0)).min(200.0) };
            (time, rate)
        });
        let event = EventDone { at: 10.0, took: 0.001, label: String::new(), settings: Vec::new() };
        let mut run = run();
        run.series[0].points = points.collect();
        let error = figure(&measure("load.tps.settle"), &run).unwrap_err();
        assert!(matches!(error, MeasureError::Unsettled { .. }), "{error}");
        run.events = vec![event];
        let took = figure(&measure("load.tps.settle"), &run).unwrap();
        assert!((3.5..=5.0).contains(&took), "{took}");
        let error = figure(&measure("server.cpu.settle"), &run).unwrap_err();
        assert!(matches!(error, MeasureError::NotOverTime { .. }), "{error}");
    }

    #[test]
    fn a_part_needs_samples_and_an_order() {
        let error = figure(&between("server.cpu", "0%", "50%"), &run()).unwrap_err();
        assert_eq!(error.hint().unwrap(), "over time there are load.tps");
        for (from, to) in [("5s", "5s"), ("60%", "50%"), ("soon", "5s"), ("0s", "200ms"), ("0%", "120%")] {
            assert!(matches!(
                figure(&between("load.tps", from, to), &run()),
                Err(MeasureError::Between { .. })
            ));
        }
    }
}
