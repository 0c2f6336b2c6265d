//! A thin line per block from one condition to the next, and a thick one through the medians: whether all blocks go
//! the same way.

use experiment::file::Chart;

use super::frame::{self, Frame};
use super::legend::{self, Symbol};
use super::scale::Scale;
use super::scene::{Anchor, Dash, Ink, SMALL, Scene, Stroke};
use super::text;
use crate::view::View;
use experiment::number;

/// Draws it; `None` if no run counts.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let conditions = view.conditions(&chart.conditions);
    let mut top = legend::draw(
        &mut scene,
        0.0,
        &[
            (Symbol::Line(Ink::Muted, Dash::None), "a block".to_owned()),
            (Symbol::Line(Ink::Series(0), Dash::None), "medians".to_owned()),
        ],
    );
    let begin = top;
    for measure in &chart.of {
        for load in view.loads() {
            let medians: Vec<Option<f64>> =
                conditions.iter().map(|condition| view.cell((condition, load), measure)?.median).collect();
            let blocks = blocks(view, &conditions, load, measure);
            if medians.iter().all(Option::is_none) {
                continue;
            }
            let unit = view.unit(measure);
            let values = || blocks.iter().chain([&medians]).flatten().flatten().copied();
            let up = if chart.log { Scale::logarithmic(values()) } else { Scale::linear(values(), 4) };
            let name = if up.is_log() { "" } else { up.ticks(4, unit).1 };
            let words = load.map_or_else(|| measure.clone(), |load| format!("{measure} · {load}"));
            top = frame::heading(&mut scene, top, &words, name);
            let across = Scale::exactly(-0.5, conditions.len() as f64 - 0.5);
            let gutter = frame::gutter([(&up, unit)].into_iter());
            let frame = frame::open(&mut scene, top, (gutter, 190.0), (&across, &up), unit);
            for block in &blocks {
                line(&mut scene, &frame, block, Stroke::solid(Ink::Muted, 1.2), 2.4, unit);
            }
            line(&mut scene, &frame, &medians, Stroke::solid(Ink::Series(0), 3.0), 4.5, unit);
            top = names(&mut scene, &frame, &conditions);
            top = ratio(&mut scene, top, view, measure, &conditions, load) + 12.0;
        }
    }
    scene.height = top - 6.0;
    (top > begin).then_some(scene)
}

fn blocks(view: View<'_>, conditions: &[&str], load: Option<&str>, measure: &str) -> Vec<Vec<Option<f64>>> {
    let runs = view.results.runs.iter().filter(|run| run.rejected.is_none() && run.load.as_deref() == load);
    let runs: Vec<_> = runs.collect();
    let mut numbers: Vec<u32> = runs.iter().map(|run| run.block).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let figure = |block: u32, condition: &str| {
        let run = runs.iter().find(|run| run.block == block && run.condition == condition)?;
        run.figures.get(measure).copied().filter(|figure| figure.is_finite())
    };
    numbers
        .iter()
        .map(|block| conditions.iter().map(|condition| figure(*block, condition)).collect())
        .collect()
}

/// From each condition to the next that has a value.
fn line(scene: &mut Scene, frame: &Frame, values: &[Option<f64>], stroke: Stroke, radius: f64, unit: &str) {
    let place = |(index, value): (usize, &Option<f64>)| {
        value.map(|value| ((frame.across.at(index as f64), frame.up.at(value)), value))
    };
    let places: Vec<((f64, f64), f64)> = values.iter().enumerate().filter_map(place).collect();
    for pair in places.windows(2) {
        scene.line(pair[0].0, pair[1].0, stroke).data();
    }
    for (at, value) in places {
        scene.dot(at, radius, stroke.ink).data().tip(number::with_unit(value, unit));
    }
}

fn names(scene: &mut Scene, frame: &Frame, conditions: &[&str]) -> f64 {
    let room = frame.plot.width / conditions.len().max(1) as f64 - 10.0;
    let mut most = 0;
    // of very many conditions every so-manyeth is named, so that names stay apart
    let every = (24.0 / (room + 10.0)).ceil().max(1.0);
    let room = (room + 10.0) * every - 10.0;
    for (index, condition) in conditions.iter().enumerate().step_by(every as usize) {
        let lines = text::wrap(condition, room, 3, SMALL.size, false);
        for (line, words) in lines.iter().enumerate() {
            let at = (frame.across.at(index as f64), frame.plot.bottom() + 16.0 + 14.0 * line as f64);
            scene.text(at, Anchor::Middle, SMALL, words.clone());
        }
        most = most.max(lines.len());
    }
    frame.plot.bottom() + 10.0 + 14.0 * most as f64
}

fn ratio(
    scene: &mut Scene,
    top: f64,
    view: View<'_>,
    measure: &str,
    conditions: &[&str],
    load: Option<&str>,
) -> f64 {
    let mut top = top;
    for pair in conditions.windows(2) {
        let Some(comparison) = view.comparison(measure, (pair[0], pair[1]), load) else { continue };
        let (Some(ratio), Some((low, high))) = (comparison.ratio, comparison.interval) else { continue };
        let words = format!(
            "{} : {} = {} ({} to {})",
            comparison.condition,
            comparison.baseline,
            number::ratio(ratio),
            number::ratio(low),
            number::ratio(high)
        );
        let words = text::fit(&words, scene.width, SMALL.size, false);
        scene.text((0.0, top + 14.0), Anchor::Start, SMALL, words);
        top += 16.0;
    }
    top
}
