//! Panels of steps over time: a value holds until the next one.

use super::frame::{self, Frame};
use super::legend::{self, Symbol};
use super::scale::Scale;
use super::scene::{Dash, Ink, Scene, Stroke};
use crate::panels::{Line, Panels};

/// Of a wide and of a narrow page.
pub const WIDTHS: (f64, f64) = (super::WIDE, super::NARROW);

/// Draws them.
pub fn draw(panels: &Panels, width: f64) -> Scene {
    let mut scene = Scene::new(width, &panels.title);
    let mut names: Vec<&str> = Vec::new();
    for line in panels.panels.iter().flat_map(|panel| &panel.lines) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    let entry =
        |(index, name): (usize, &&str)| (Symbol::Line(Ink::Series(index), Dash::None), (*name).to_owned());
    let entries: Vec<(Symbol, String)> = names.iter().enumerate().map(entry).collect();
    let mut top = legend::draw(&mut scene, 0.0, &entries);
    let lines = panels.panels.iter().flat_map(|panel| &panel.lines);
    let values = lines.flat_map(|line| line.steps.iter().chain(&line.beside)).map(|(_, value)| *value);
    let up = Scale::new(false, values, 4);
    let gutter = frame::gutter([(&up, panels.unit.as_str())].into_iter());
    for panel in &panels.panels {
        top = frame::heading(&mut scene, top, &panel.heading, &panels.unit);
        let across = Scale::exactly(0.0, panel.seconds);
        let frame = frame::open(&mut scene, top, (gutter, 110.0), (&across, &up), &panels.unit);
        for line in &panel.lines {
            let index = names.iter().position(|name| *name == line.name).unwrap_or(0);
            draw_line(&mut scene, line, index, panel.seconds, &frame);
        }
        top = frame::numbers_below(&mut scene, &frame, "s") + 16.0;
    }
    scene.height = top;
    scene
}

fn draw_line(scene: &mut Scene, line: &Line, index: usize, end: f64, frame: &Frame) {
    for (points, dash, width) in [(&line.beside, Dash::Dotted, 1.0), (&line.steps, Dash::None, 1.8)] {
        let path = corners(points, end, frame);
        if !path.is_empty() {
            scene.path(path, Stroke { ink: Ink::Series(index), width, dash }).data().tip(line.name.clone());
        }
    }
}

/// The corners of a line of steps; of many in one column of pixels the least and the greatest.
fn corners(points: &[(f64, f64)], end: f64, frame: &Frame) -> Vec<(f64, f64)> {
    let place = |(time, value): &(f64, f64)| (frame.across.at(*time), frame.up.at(*value));
    let places: Vec<(f64, f64)> = points.iter().map(place).collect();
    let mut out: Vec<(f64, f64)> = Vec::new();
    for column in places.chunk_by(|one, other| one.0.floor() == other.0.floor()) {
        let (Some(first), Some(last)) = (column.first(), column.last()) else { continue };
        if let Some(before) = out.last().copied() {
            out.push((first.0, before.1));
        }
        let heights = || column.iter().map(|(_, height)| *height);
        let (low, high) = (heights().fold(f64::MAX, f64::min), heights().fold(f64::MIN, f64::max));
        out.extend([(first.0, low), (first.0, high), *last]);
    }
    out.dedup();
    out.extend(out.last().map(|last| (frame.across.at(end), last.1)));
    out
}
