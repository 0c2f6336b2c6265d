//! Charts whose values run from left to right, a row each: where labels, bands and the axis are. On a narrow page the
//! label stands above its band. Draws no value.

use super::scale::Scale;
use super::scene::{Anchor, Area, HEADING, Ink, LABEL, SMALL, Scene, Stroke, VALUE};
use super::text;
use experiment::number;

/// A row's words.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// What it is.
    pub label: String,
    /// Its value, at the right.
    pub value: String,
    /// Below the value, second to it.
    pub beside: String,
}

/// Rows under a heading.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Over them.
    pub heading: Option<String>,
    /// From top to bottom.
    pub rows: Vec<Row>,
}

/// Where everything is.
#[derive(Debug, Clone)]
pub struct Laid {
    /// A band per row, in order over all groups.
    pub bands: Vec<Area>,
    /// Left and right end of all bands.
    pub ends: (f64, f64),
    /// Below the last row.
    pub bottom: f64,
}

/// Below this a page is narrow.
const NARROW: f64 = 500.0;

/// Writes headings, labels and values from `top` on, and says where the bands are.
pub fn lay(scene: &mut Scene, top: f64, groups: &[Group], band: f64) -> Laid {
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let widest = |of: fn(&Row) -> &String, bold: bool, size: f64| {
        rows().map(|row| text::width(of(row), size, bold)).fold(0.0, f64::max)
    };
    let value = widest(|row| &row.value, true, VALUE.size);
    let beside = widest(|row| &row.beside, false, SMALL.size);
    let wide = scene.width >= NARROW;
    let right_column = if wide { value.max(beside) } else { 0.0 }.min(scene.width * 0.3);
    let left_column =
        if wide { widest(|row| &row.label, false, LABEL.size).min(scene.width * 0.28) } else { 0.0 };
    let from = if wide { left_column + 14.0 } else { 2.0 };
    let to = scene.width - if wide { right_column + 14.0 } else { 8.0 };

    // all rows alike: an uneven rhythm looks as if it meant something
    let two_lines =
        rows().any(|row| !row.beside.is_empty() || text::width(&row.label, LABEL.size, false) > left_column);
    let height = if two_lines { 36.0_f64 } else { 20.0 }.max(band + 6.0);

    let mut laid = Laid { bands: Vec::new(), ends: (from, to), bottom: top };
    for (index, group) in groups.iter().enumerate() {
        if let Some(heading) = &group.heading {
            laid.bottom += if index > 0 { 12.0 } else { 0.0 };
            let heading = text::fit(heading, scene.width, HEADING.size, true);
            scene.text((0.0, laid.bottom + 14.0), Anchor::Start, HEADING, heading);
            laid.bottom += 22.0;
        }
        for row in &group.rows {
            if wide {
                wide_row(scene, &mut laid, row, band, (left_column, right_column), height);
            } else {
                narrow_row(scene, &mut laid, row, band);
            }
        }
    }
    let bottom = laid.bottom;
    scene.plots.push(Area { x: from, y: top, width: to - from, height: bottom - top });
    laid
}

fn wide_row(scene: &mut Scene, laid: &mut Laid, row: &Row, band: f64, columns: (f64, f64), height: f64) {
    let lines = text::wrap(&row.label, columns.0, 2, LABEL.size, false);
    let beside = !row.beside.is_empty();
    let middle = laid.bottom + height / 2.0;
    for (index, line) in lines.iter().enumerate() {
        let down = if lines.len() == 1 { 4.5 } else { -3.0 + 15.0 * index as f64 };
        scene.text((0.0, middle + down), Anchor::Start, LABEL, line.clone());
    }
    let value = text::fit(&row.value, columns.1, VALUE.size, true);
    scene.text((scene.width, middle + if beside { -3.0 } else { 4.5 }), Anchor::End, VALUE, value);
    if beside {
        let beside = text::fit(&row.beside, columns.1, SMALL.size, false);
        scene.text((scene.width, middle + 12.0), Anchor::End, SMALL, beside);
    }
    let (from, to) = laid.ends;
    laid.bands.push(Area { x: from, y: middle - band / 2.0, width: to - from, height: band });
    laid.bottom += height;
}

fn narrow_row(scene: &mut Scene, laid: &mut Laid, row: &Row, band: f64) {
    let width = scene.width;
    let value = text::fit(&row.value, width * 0.45, VALUE.size, true);
    let room = width - text::width(&value, VALUE.size, true) - 10.0;
    let label = text::fit(&row.label, room, LABEL.size, false);
    scene.text((0.0, laid.bottom + 13.0), Anchor::Start, LABEL, label);
    scene.text((width, laid.bottom + 13.0), Anchor::End, VALUE, value);
    laid.bottom += 18.0;
    if !row.beside.is_empty() {
        let beside = text::fit(&row.beside, width, SMALL.size, false);
        scene.text((width, laid.bottom + 10.0), Anchor::End, SMALL, beside);
        laid.bottom += 15.0;
    }
    let (from, to) = laid.ends;
    laid.bands.push(Area { x: from, y: laid.bottom + 4.0, width: to - from, height: band });
    laid.bottom += band + 10.0;
}

/// Grid lines behind every band, and the axis below the last one.
pub fn axis(scene: &mut Scene, laid: &mut Laid, scale: &Scale, unit: &str) {
    let (from, to) = laid.ends;
    let (ticks, unit) = scale.ticks(if to - from < 420.0 { 4 } else { 6 }, unit);
    for (value, _) in &ticks {
        let x = scale.at(*value);
        for band in &laid.bands {
            scene.line((x, band.y - 3.0), (x, band.bottom() + 3.0), Stroke::solid(Ink::Grid, 1.0));
        }
    }
    let y = laid.bottom + 14.0;
    horizontal_numbers(scene, &ticks, scale, y, unit);
    laid.bottom += 22.0;
}

/// Numbers below an axis, those that have room; the unit behind the last.
pub fn horizontal_numbers(scene: &mut Scene, ticks: &[(f64, String)], scale: &Scale, y: f64, unit: &str) {
    let mut free_from = f64::NEG_INFINITY;
    let last = ticks.len().saturating_sub(1);
    for (index, (value, number)) in ticks.iter().enumerate() {
        let number = if index == last && !unit.is_empty() {
            text::fit(&number::join(number.clone(), unit), scene.width * 0.4, SMALL.size, false)
        } else {
            number.clone()
        };
        let width = text::width(&number, SMALL.size, false);
        let left = (scale.at(*value) - width / 2.0).min(scene.width - width).max(0.0);
        // the last one carries the unit, so the one before it gives way
        let reserved = if index == last { 0.0 } else { last_left(ticks, scale, scene.width, unit) };
        if left < free_from || (index != last && left + width + 8.0 > reserved) {
            continue;
        }
        scene.text((left, y), Anchor::Start, SMALL, number);
        free_from = left + width + 8.0;
    }
}

fn last_left(ticks: &[(f64, String)], scale: &Scale, room: f64, unit: &str) -> f64 {
    let Some((value, number)) = ticks.last() else { return room };
    let number = if unit.is_empty() {
        number.clone()
    } else {
        text::fit(&number::join(number.clone(), unit), room * 0.4, SMALL.size, false)
    };
    let width = text::width(&number, SMALL.size, false);
    (scale.at(*value) - width / 2.0).min(room - width)
}
