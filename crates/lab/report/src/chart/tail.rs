//! The tails of the conditions' latencies over each other, from the median to the longest: how long the slowest half,
//! tenth, hundredth and so on took. Both axes are logarithmic. Bins are those of a twentieth of a decade, so that runs
//! and tools with bins of their own can lie over each other.

use std::collections::BTreeMap;

use experiment::file::Chart;

use super::frame;
use super::legend::{self, Symbol};
use super::rows::horizontal_numbers;
use super::scale::Scale;
use super::scene::{Dash, Ink, Scene, Stroke};
use crate::view::View;
use experiment::number;

/// Bins per power of ten.
const PER_DECADE: f64 = 20.0;

/// Where curves begin: one in two takes longer than the median.
const MEDIAN: f64 = 2.0;

/// How far the axis reaches at least: P99.9.
const LEAST: f64 = 1_000.0;

/// Of the axis: one in how many took longer, and what that quantile is called.
const QUANTILES: [(f64, &str); 8] = [
    (MEDIAN, "P50"),
    (1e1, "P90"),
    (1e2, "P99"),
    (1e3, "P99.9"),
    (1e4, "P99.99"),
    (1e5, "P99.999"),
    (1e6, "P99.9999"),
    (1e7, "P99.99999"),
];

struct Curve<'a> {
    condition: &'a str,
    index: usize,
    /// One in how many took longer than a latency in seconds; at the last one, how many there were.
    points: Vec<(f64, f64)>,
}

/// Draws it; `None` if no run has such a latency.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let mut panels: Vec<(String, Vec<Curve<'_>>)> = Vec::new();
    for name in &chart.of {
        for load in view.loads() {
            let conditions = view.conditions(&chart.conditions).into_iter();
            let curves: Vec<Curve<'_>> =
                conditions.filter_map(|condition| curve(view, condition, load, name)).collect();
            if !curves.is_empty() {
                let words = load.map_or_else(|| name.clone(), |load| format!("{name} · {load}"));
                panels.push((words, curves));
            }
        }
    }
    if panels.is_empty() {
        return None;
    }
    let points = || panels.iter().flat_map(|(_, curves)| curves.iter().flat_map(|curve| &curve.points));
    let rarest = points().map(|(rarity, _)| *rarity).fold(LEAST, f64::max);
    let across = Scale::within_decades(MEDIAN, rarest);
    let up = Scale::logarithmic(points().map(|(_, latency)| *latency));
    let gutter = frame::gutter([(&up, "s")].into_iter());
    let mut top = legend::draw(&mut scene, 0.0, &entries(&panels));
    for (words, curves) in &panels {
        top = frame::heading(&mut scene, top, words, "less is better");
        let frame = frame::open(&mut scene, top, (gutter, 170.0), (&across, &up), "s");
        let ticks = quantiles(&mut scene, &frame);
        for curve in curves {
            draw_curve(&mut scene, &frame, curve);
        }
        horizontal_numbers(&mut scene, &ticks, &frame.across, frame.plot.bottom() + 17.0, "");
        top = frame.plot.bottom() + 38.0;
    }
    scene.height = top - 8.0;
    Some(scene)
}

/// A line at each quantile that the axis reaches.
fn quantiles(scene: &mut Scene, frame: &frame::Frame) -> Vec<(f64, String)> {
    let reached = QUANTILES.iter().filter(|(rarity, _)| frame.across.reaches(*rarity));
    let ticks: Vec<(f64, String)> = reached.map(|(rarity, name)| (*rarity, (*name).to_owned())).collect();
    for (rarity, _) in &ticks {
        let x = frame.across.at(*rarity);
        scene.line((x, frame.plot.y), (x, frame.plot.bottom()), Stroke::solid(Ink::Grid, 1.0));
    }
    ticks
}

fn draw_curve(scene: &mut Scene, frame: &frame::Frame, curve: &Curve<'_>) {
    let place = |(rarity, latency): &(f64, f64)| (frame.across.at(*rarity), frame.up.at(*latency));
    let places: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
    if places.len() > 1 {
        let pen = Stroke { ink: Ink::Series(curve.index), width: 2.0, dash: Dash::of(curve.index) };
        scene.path(places.clone(), pen).data().tip(curve.condition);
    }
    for (index, (place, (rarity, latency))) in places.iter().zip(&curve.points).enumerate() {
        let (rarity, latency) = (number::rounded(*rarity), number::with_unit(*latency, "s"));
        let tip = match index + 1 == places.len() {
            true => format!("{}: the longest of {rarity} took up to {latency}", curve.condition),
            false => format!("{}: 1 in {rarity} took longer than {latency}", curve.condition),
        };
        scene.dot(*place, 1.8, Ink::Series(curve.index)).data().tip(tip);
    }
}

fn curve<'a>(view: View<'a>, condition: &'a str, load: Option<&'a str>, name: &str) -> Option<Curve<'a>> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for run in view.counted((condition, load)) {
        for (upper, count) in run.latencies.get(name).iter().flat_map(|latency| &latency.bins) {
            if upper.is_finite() && *count > 0 {
                // a latency of 0 is below what any clock here distinguishes
                let bin = (upper.max(1e-9).log10() * PER_DECADE - 1e-9).ceil() as i64;
                *counts.entry(bin).or_default() += count;
            }
        }
    }
    let points = tail(&counts);
    (!points.is_empty()).then(|| Curve { condition, index: view.index(condition), points })
}

/// From the median on: one in how many took longer than each bin's upper end.
fn tail(counts: &BTreeMap<i64, u64>) -> Vec<(f64, f64)> {
    let all: u64 = counts.values().sum();
    let mut longer = all;
    let points = counts.iter().map(|(bin, count)| {
        longer -= count;
        (all as f64 / longer.max(1) as f64, 10f64.powf(*bin as f64 / PER_DECADE))
    });
    let mut points: Vec<(f64, f64)> = points.filter(|(rarity, _)| *rarity >= MEDIAN).collect();
    // nearly all may be in one bin
    match points.first() {
        Some((rarity, latency)) if *rarity > MEDIAN => points.insert(0, (MEDIAN, *latency)),
        _ => {}
    }
    if points.is_empty() && all > 0 {
        let longest = counts.last_key_value().map_or(1e-9, |(bin, _)| 10f64.powf(*bin as f64 / PER_DECADE));
        points.push((MEDIAN, longest)); // of one latency, all that is known
    }
    points
}

fn entries(panels: &[(String, Vec<Curve<'_>>)]) -> Vec<(Symbol, String)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for curve in panels.iter().flat_map(|(_, curves)| curves) {
        if !found.contains(&(curve.index, curve.condition)) {
            found.push((curve.index, curve.condition));
        }
    }
    let entry =
        |(index, name): (usize, &str)| (Symbol::Line(Ink::Series(index), Dash::of(index)), name.to_owned());
    found.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_at_the_median_and_ends_at_the_longest() {
        // 900 of about 1 ms, 90 of 10 ms, 9 of 100 ms, 1 of a second
        let counts = BTreeMap::from([(-60, 900), (-40, 90), (-20, 9), (0, 1)]);
        let points = tail(&counts);
        let near = |found: &(f64, f64), expected: (f64, f64)| {
            (found.0 / expected.0 - 1.0).abs() < 1e-9 && (found.1 / expected.1 - 1.0).abs() < 1e-9
        };
        let expected = [(2.0, 1e-3), (10.0, 1e-3), (100.0, 1e-2), (1000.0, 0.1), (1000.0, 1.0)];
        assert_eq!(points.len(), expected.len(), "{points:?}");
        assert!(points.iter().zip(expected).all(|(found, expected)| near(found, expected)), "{points:?}");
        assert_eq!(tail(&BTreeMap::new()), []);
        assert_eq!(tail(&BTreeMap::from([(0, 1)])).len(), 1);
    }
}
