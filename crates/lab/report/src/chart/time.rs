//! Values over the time of one run per condition: the run whose figure is the middle one. Changes are upright lines,
//! what was requested dotted ones, the warm-up shaded.

use experiment::file::Chart;
use experiment::results::{Run, Series};

use super::frame::{self, Frame};
use super::legend::{self, Symbol};
use super::scale::Scale;
use super::scene::{Anchor, Area, Dash, Ink, SMALL, Scene, Stroke};
use super::text;
use crate::view::{Place, View, place_name};
use experiment::number::Unit;

struct Panel<'a> {
    place: Place<'a>,
    run: &'a Run,
    unit: &'a str,
    series: Vec<(usize, &'a Series)>,
}

/// Draws it; `None` if no run has any of the series.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let panels = panels(view, chart);
    if panels.is_empty() {
        return None;
    }
    let across = across(&panels);
    let units: Vec<&str> = panels.iter().fold(Vec::new(), |mut units, panel| {
        if !units.contains(&panel.unit) {
            units.push(panel.unit);
        }
        units
    });
    let scales: Vec<(&str, Scale)> = units.into_iter().map(|unit| (unit, up(&panels, chart, unit))).collect();
    let gutter = frame::gutter(scales.iter().map(|(unit, scale)| (scale, *unit)));
    let mut top = legend::draw(&mut scene, 0.0, &entries(chart, &panels));
    let height = if panels.len() > 3 { 110.0 } else { 150.0 };
    for panel in &panels {
        let Some((_, up)) = scales.iter().find(|(unit, _)| *unit == panel.unit) else { continue };
        let unit = if up.is_log() { "" } else { unit_name(up, panel.unit) };
        top = frame::heading(&mut scene, top, &heading(panel), unit);
        top = event_labels(&mut scene, top, panel, &across, gutter);
        let frame = frame::open(&mut scene, top, (gutter, height), (&across, up), panel.unit);
        warm_up(&mut scene, &frame);
        draw_panel(&mut scene, panel, &frame, chart);
        top = frame::numbers_below(&mut scene, &frame, "s") + 16.0;
    }
    scene.height = top - 10.0;
    Some(scene)
}

fn panels<'a>(view: View<'a>, chart: &'a Chart) -> Vec<Panel<'a>> {
    let mut panels = Vec::new();
    for condition in view.conditions(&chart.conditions) {
        for load in view.loads() {
            let Some(run) = view.middle((condition, load)) else { continue };
            let mut of_run: Vec<Panel<'_>> = Vec::new();
            for (index, name) in chart.of.iter().enumerate() {
                let Some(series) = run.series.iter().find(|series| series.name == *name) else { continue };
                if !series.points.iter().any(finite) {
                    continue;
                }
                match of_run.iter_mut().find(|panel| panel.unit == series.unit) {
                    Some(panel) => panel.series.push((index, series)),
                    None => of_run.push(Panel {
                        place: (condition, load),
                        run,
                        unit: &series.unit,
                        series: vec![(index, series)],
                    }),
                }
            }
            panels.extend(of_run);
        }
    }
    panels
}

fn finite((time, value): &(f64, f64)) -> bool {
    time.is_finite() && value.is_finite()
}

fn across(panels: &[Panel<'_>]) -> Scale {
    let times = panels.iter().flat_map(|panel| panel.series.iter().flat_map(|(_, series)| &series.points));
    let (low, high) = times
        .filter(|point| finite(point))
        .fold((0.0_f64, 0.0_f64), |(low, high), (time, _)| (low.min(*time), high.max(*time)));
    Scale::exactly(low.max(-1e9), high.min(1e9))
}

fn up(panels: &[Panel<'_>], chart: &Chart, unit: &str) -> Scale {
    let of_unit = || panels.iter().filter(|panel| panel.unit == unit);
    let points = of_unit().flat_map(|panel| panel.series.iter().flat_map(|(_, series)| &series.points));
    let values: Vec<f64> = points.filter(|point| finite(point)).map(|(_, value)| *value).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let lines = chart.line.iter().map(|line| line.at).filter(|at| chart.log || *at <= most * 2.5);
    Scale::new(chart.log, values.iter().copied().chain(lines), 4)
}

fn unit_name<'a>(scale: &Scale, unit: &'a str) -> &'a str {
    scale.ticks(4, unit).1
}

fn heading(panel: &Panel<'_>) -> String {
    let run = format!("{} · run {}", place_name(panel.place), panel.run.number);
    match &panel.series[..] {
        [(_, only)] => format!("{run} · {}", only.name),
        _ => run,
    }
}

fn entries(chart: &Chart, panels: &[Panel<'_>]) -> Vec<(Symbol, String)> {
    let mut entries: Vec<(Symbol, String)> = Vec::new();
    for (index, name) in chart.of.iter().enumerate() {
        if panels.iter().any(|panel| panel.series.iter().any(|(one, _)| *one == index)) {
            entries.push((Symbol::Line(Ink::Series(index), Dash::of(index)), name.clone()));
        }
    }
    if panels.iter().any(|panel| !panel.run.events.is_empty()) {
        entries.push((Symbol::Upright(Ink::Text, Dash::Dashed), "a change of settings".to_owned()));
    }
    if !chart.line.is_empty() {
        entries.push((Symbol::Line(Ink::Target, Dash::Dotted), "target".to_owned()));
    }
    entries
}

/// Above the plot, in as many lines as keep them apart.
fn event_labels(scene: &mut Scene, top: f64, panel: &Panel<'_>, across: &Scale, gutter: f64) -> f64 {
    let across = across.between(gutter, scene.width - 6.0);
    let mut lines: Vec<f64> = Vec::new();
    for event in &panel.run.events {
        let label = text::fit(&event.label, scene.width * 0.6, SMALL.size, false);
        if label.is_empty() {
            continue;
        }
        let width = text::width(&label, SMALL.size, false);
        let left = (across.at(event.at) - width / 2.0).clamp(0.0, (scene.width - width).max(0.0));
        let line = lines.iter().position(|taken| *taken + 8.0 <= left).unwrap_or(lines.len());
        let y = top + 6.0 + 15.0 * line as f64;
        scene.text((left, y), Anchor::Start, SMALL, label);
        match lines.get_mut(line) {
            Some(taken) => *taken = left + width,
            None => lines.push(left + width),
        }
    }
    top + 15.0 * lines.len() as f64 + if lines.is_empty() { 0.0 } else { 2.0 }
}

fn warm_up(scene: &mut Scene, frame: &Frame) {
    let begin = frame.across.at(0.0);
    let area =
        Area { x: frame.plot.x, y: frame.plot.y, width: begin - frame.plot.x, height: frame.plot.height };
    if area.width < 1.0 {
        return;
    }
    scene.rect(area, Ink::Grid, 0.5).tip("warm-up: does not count");
}

fn draw_panel(scene: &mut Scene, panel: &Panel<'_>, frame: &Frame, chart: &Chart) {
    let plot = frame.plot;
    for event in &panel.run.events {
        let x = frame.across.at(event.at);
        let took = Unit::fitting("s", event.took);
        let tip = format!(
            "{} at {:.2} s, written in {:.3} {}",
            event.label,
            event.at,
            event.took / took.by,
            took.name
        );
        scene.line((x, plot.y), (x, plot.bottom()), Stroke::dashed(Ink::Text, 1.4)).data().tip(tip);
    }
    for (index, series) in &panel.series {
        let points = thinned(series, frame);
        let stroke = Stroke { ink: Ink::Series(*index), width: 1.8, dash: Dash::of(*index) };
        if let [only] = points[..] {
            scene.dot(only, 3.0, Ink::Series(*index)).data();
        } else if !points.is_empty() {
            scene.path(points, stroke).data().tip(series.name.clone());
        }
    }
    let mut taken: Vec<f64> = Vec::new();
    let shown =
        chart.line.iter().filter(|line| line.condition.as_deref().is_none_or(|one| one == panel.place.0));
    for line in shown.filter(|line| frame.up.reaches(line.at)) {
        let y = frame.up.at(line.at);
        let pen = Stroke { ink: Ink::Target, width: 1.8, dash: Dash::Dotted };
        scene.line((plot.x, y), (plot.right(), y), pen).data().tip(format!("{}: {}", line.label, line.at));
        let label = text::fit(&line.label, plot.width * 0.6, SMALL.size, false);
        let base = if y - 16.0 > plot.y { y - 4.0 } else { y + 13.0 };
        if label.is_empty() || taken.iter().any(|other| (other - base).abs() < 14.0) {
            continue;
        }
        taken.push(base);
        let width = text::width(&label, SMALL.size, false);
        let paper = Area { x: plot.right() - width - 8.0, y: base - 11.0, width: width + 6.0, height: 14.0 };
        scene.rect(paper, Ink::Surface, 0.8);
        scene.text((plot.right() - 5.0, base), Anchor::End, SMALL, label);
    }
}

/// Of many points in one column of pixels the least and the greatest: what is drawn looks the same.
fn thinned(series: &Series, frame: &Frame) -> Vec<(f64, f64)> {
    let places = series.points.iter().filter(|point| finite(point));
    let places: Vec<(f64, f64)> =
        places.map(|(time, value)| (frame.across.at(*time), frame.up.at(*value))).collect();
    let mut out: Vec<(f64, f64)> = Vec::new();
    for column in places.chunk_by(|one, other| one.0.floor() == other.0.floor()) {
        let by_height = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
        let (Some(least), Some(most)) = (column.iter().min_by(by_height), column.iter().max_by(by_height))
        else {
            continue;
        };
        let mut chosen = if column.len() > 2 { vec![*least, *most] } else { column.to_vec() };
        chosen.sort_by(|one, other| one.0.total_cmp(&other.0));
        out.extend(chosen);
    }
    out
}
