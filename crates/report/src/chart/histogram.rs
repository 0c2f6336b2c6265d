//! Latencies of the conditions over each other, both axes logarithmic: how large a share of all took how long. Bins
//! are those of a tenth of a decade, so that runs and tools with bins of their own can lie over each other.

use std::collections::BTreeMap;

use experiment::file::Chart;

use super::frame;
use super::legend::{self, Symbol};
use super::scale::Scale;
use super::scene::{Dash, Ink, Scene, Stroke};
use crate::number;
use crate::view::View;

/// Bins per power of ten.
const PER_DECADE: f64 = 10.0;

struct Curve<'a> {
    condition: &'a str,
    index: usize,
    /// Latency in seconds, and its share of all.
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
    let across = Scale::logarithmic(points().map(|(latency, _)| *latency));
    let up = Scale::logarithmic(points().map(|(_, share)| *share));
    let gutter = frame::gutter([(&up, "")].into_iter());
    let mut top = legend::draw(&mut scene, 0.0, &entries(&panels));
    for (words, curves) in &panels {
        top = frame::heading(&mut scene, top, words, "share of all");
        let frame = frame::open(&mut scene, top, (gutter, 170.0), (&across, &up), "");
        for curve in curves {
            let places =
                curve.points.iter().map(|(latency, share)| (frame.across.at(*latency), frame.up.at(*share)));
            let places: Vec<(f64, f64)> = places.collect();
            let dash = Dash::of(curve.index);
            if places.len() > 1 {
                let pen = Stroke { ink: Ink::Series(curve.index), width: 2.0, dash };
                scene.path(places.clone(), pen).data().tip(curve.condition);
            }
            for (place, (latency, share)) in places.iter().zip(&curve.points) {
                let tip = format!(
                    "{}: {} took up to {}",
                    curve.condition,
                    number::percent(*share),
                    number::with_unit(*latency, "s")
                );
                scene.dot(*place, 2.2, Ink::Series(curve.index)).data().tip(tip);
            }
        }
        top = frame::numbers_below(&mut scene, &frame, "s") + 14.0;
    }
    scene.height = top - 8.0;
    Some(scene)
}

fn curve<'a>(view: View<'a>, condition: &'a str, load: Option<&'a str>, name: &str) -> Option<Curve<'a>> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for run in view.counted((condition, load)) {
        for (upper, count) in run.latencies.get(name).iter().flat_map(|latency| &latency.bins) {
            if upper.is_finite() && *count > 0 {
                // a latency of 0 is below what any clock here tells apart
                let bin = (upper.max(1e-9).log10() * PER_DECADE - 1e-9).ceil() as i64;
                *counts.entry(bin).or_default() += count;
            }
        }
    }
    let all: u64 = counts.values().sum();
    let upper = |bin: i64| 10f64.powf(bin as f64 / PER_DECADE);
    let points = counts.iter().map(|(bin, count)| (upper(*bin), *count as f64 / all as f64));
    let curve = Curve { condition, index: view.index(condition), points: points.collect() };
    (all > 0).then_some(curve)
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
