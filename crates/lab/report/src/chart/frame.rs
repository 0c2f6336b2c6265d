//! Plots whose values run upwards: heading, numbers at the left, grid, numbers below. Draws no value.

use super::rows::horizontal_numbers;
use super::scale::Scale;
use super::scene::{Anchor, Area, HEADING, Ink, SMALL, Scene, Stroke};
use super::text;

/// A plot with its scales, both in the plot's places.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Where data may be.
    pub plot: Area,
    /// To the right.
    pub across: Scale,
    /// Upwards.
    pub up: Scale,
}

/// A heading over a plot, with the unit at its right; gives where it ends.
pub fn heading(scene: &mut Scene, top: f64, words: &str, unit: &str) -> f64 {
    let unit = if unit == "1/s" { "per second" } else { unit };
    let unit = text::fit(unit, scene.width * 0.35, SMALL.size, false);
    let room = scene.width - text::width(&unit, SMALL.size, false) - 10.0;
    let words = text::fit(words, room, HEADING.size, true);
    scene.text((0.0, top + 13.0), Anchor::Start, HEADING, words);
    if !unit.is_empty() {
        scene.text((scene.width, top + 13.0), Anchor::End, SMALL, unit);
    }
    top + 27.0
}

/// A unit may be a sentence: its numbers are cut.
const MOST: f64 = 76.0;

/// How much room the numbers at the left of these scales need: one for all plots of a chart, so that they line up.
pub fn gutter<'a>(scales: impl Iterator<Item = (&'a Scale, &'a str)>) -> f64 {
    let widths = scales.flat_map(|(scale, unit)| {
        let (ticks, _) = scale.ticks(4, unit);
        ticks.into_iter().map(|(_, number)| text::width(&number, SMALL.size, false))
    });
    widths.fold(20.0, f64::max).min(MOST) + 8.0
}

/// The plot from `top` on, with grid and numbers at the left.
pub fn open(scene: &mut Scene, top: f64, size: (f64, f64), scales: (&Scale, &Scale), unit: &str) -> Frame {
    let (gutter, height) = size;
    let plot = Area { x: gutter, y: top, width: scene.width - gutter - 6.0, height };
    let up = scales.1.between(plot.bottom(), plot.y);
    let across = scales.0.between(plot.x, plot.right());
    let (ticks, _) = up.ticks(4, unit);
    let mut free_below = f64::INFINITY;
    for (value, number) in ticks {
        let y = up.at(value);
        scene.line((plot.x, y), (plot.right(), y), Stroke::solid(Ink::Grid, 1.0));
        if y + SMALL.size / 2.0 < free_below {
            let number = text::fit(&number, gutter - 8.0, SMALL.size, false);
            scene.text((plot.x - 6.0, y + 4.0), Anchor::End, SMALL, number);
            free_below = y - SMALL.size / 2.0 - 2.0;
        }
    }
    scene.plots.push(plot);
    Frame { plot, across, up }
}

/// Numbers below the plot; gives where they end.
pub fn numbers_below(scene: &mut Scene, frame: &Frame, unit: &str) -> f64 {
    let (ticks, unit) = frame.across.ticks(if frame.plot.width < 420.0 { 4 } else { 7 }, unit);
    let base = frame.plot.bottom();
    for (value, _) in &ticks {
        let x = frame.across.at(*value);
        scene.line((x, base), (x, base + 4.0), Stroke::solid(Ink::Grid, 1.0));
    }
    horizontal_numbers(scene, &ticks, &frame.across, base + 17.0, unit);
    base + 24.0
}
