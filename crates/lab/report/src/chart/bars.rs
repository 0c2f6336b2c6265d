//! A bar per condition up to its median, every run a dot, rejected ones crosses, what was published or requested
//! dashed. On a logarithmic axis there is no bar: its length would mean nothing.

use experiment::file::{Chart, Line};
use experiment::results::{Cell, Run};

use super::legend::{self, Symbol};
use super::rows::{self, Group, Row};
use super::scale::Scale;
use super::scene::{Area, Dash, Ink, Scene, Stroke};
use crate::view::{Place, View};
use experiment::number;

/// A mark further than this many times the longest bar would make the bars too small to compare: it is reported in words.
const FURTHEST: f64 = 2.5;

struct Bar<'a> {
    place: Place<'a>,
    measure: &'a str,
    cell: Option<&'a Cell>,
    rejected: Vec<(&'a Run, f64)>,
    lines: Vec<&'a Line>,
    /// What it would be if it grew as the CPUs do.
    ideal: Option<f64>,
    colour: usize,
}

/// Bars under a heading.
type Bars<'a> = (Option<String>, Vec<Bar<'a>>);

/// Draws it; `None` if no run has any of the figures.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let panels =
        by_unit(view, &chart.of).into_iter().map(|(unit, measures)| (unit, groups(view, chart, &measures)));
    let panels: Vec<(&str, Vec<Bars<'_>>)> = panels.filter(|(_, groups)| has_figures(groups)).collect();
    if panels.is_empty() {
        return None;
    }
    let all = panels.iter().flat_map(|(_, groups)| groups.iter().flat_map(|(_, bars)| bars));
    let mut top = legend::draw(&mut scene, 0.0, &entries(chart, all));
    for (unit, groups) in &panels {
        let bars = || groups.iter().flat_map(|(_, bars)| bars);
        let words = groups.iter().map(|(heading, bars)| Group {
            heading: heading.clone(),
            rows: bars.iter().map(|bar| row(bar, unit)).collect(),
        });
        let words: Vec<Group> = words.collect();
        let mut laid = rows::lay(&mut scene, top, &words, 22.0);
        let scale = scale(chart, bars()).between(laid.ends.0, laid.ends.1);
        let bands = laid.bands.clone();
        rows::axis(&mut scene, &mut laid, &scale, unit);
        for (bar, band) in bars().zip(&bands) {
            draw_bar(&mut scene, bar, band, &scale, unit);
        }
        let mut done = 0;
        for (_, bars) in groups {
            draw_ideal(&mut scene, bars, &bands[done..done + bars.len()], &scale, unit);
            done += bars.len();
        }
        top = laid.bottom + 14.0;
    }
    scene.height = top - 8.0;
    Some(scene)
}

fn has_figures(groups: &[Bars<'_>]) -> bool {
    let mut bars = groups.iter().flat_map(|(_, bars)| bars);
    bars.any(|bar| bar.cell.is_some_and(|cell| cell.median.is_some()) || !bar.rejected.is_empty())
}

/// Measures of one unit share an axis.
fn by_unit<'a>(view: View<'a>, of: &'a [String]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for measure in of {
        let unit = view.unit(measure);
        match found.iter_mut().find(|(one, _)| *one == unit) {
            Some((_, measures)) => measures.push(measure),
            None => found.push((unit, vec![measure])),
        }
    }
    found
}

fn groups<'a>(view: View<'a>, chart: &'a Chart, measures: &[&'a str]) -> Vec<Bars<'a>> {
    let loads = view.loads();
    let mut groups = Vec::new();
    for measure in measures {
        for load in &loads {
            let heading = match (measures.len() > 1 || chart.of.len() > 1, load) {
                (true, Some(load)) => Some(format!("{measure} · {load}")),
                (true, None) => Some((*measure).to_owned()),
                (false, Some(load)) => Some((*load).to_owned()),
                (false, None) => None,
            };
            let bars = view.conditions(&chart.conditions).into_iter().map(|condition| {
                let place = (condition, *load);
                let rejected =
                    view.rejected(place).filter_map(|run| Some((run, *run.figures.get(*measure)?)));
                let requested = chart
                    .line
                    .iter()
                    .filter(|line| line.condition.as_deref().is_none_or(|one| one == condition));
                let cell = view.cell(place, measure);
                let results = view.results;
                let ideal = chart.ideal.as_ref().zip(cell);
                Bar {
                    place,
                    measure,
                    cell,
                    ideal: ideal.and_then(|(requested, cell)| {
                        experiment::ideal(requested, &results.design, &results.cells, cell)
                    }),
                    rejected: rejected.filter(|(_, figure)| figure.is_finite()).collect(),
                    lines: requested.collect(),
                    colour: view.index(condition),
                }
            });
            groups.push((heading, bars.collect()));
        }
    }
    groups
}

fn scale<'a>(chart: &Chart, bars: impl Iterator<Item = &'a Bar<'a>>) -> Scale {
    let (mut measured, mut marks) = (Vec::new(), Vec::new());
    for bar in bars {
        if let Some(cell) = bar.cell {
            measured.extend(cell.values.iter().chain(&cell.median).copied());
            measured.extend(cell.interval.iter().flat_map(|(low, high)| [*low, *high]));
            marks.extend(cell.published.iter().map(|(value, _)| *value));
        }
        measured.extend(bar.rejected.iter().map(|(_, figure)| *figure));
        marks.extend(bar.lines.iter().map(|line| line.at).chain(bar.ideal));
    }
    let furthest = measured.iter().copied().fold(0.0, f64::max) * FURTHEST;
    let marks = marks.into_iter().filter(|mark| chart.log || *mark <= furthest);
    Scale::new(chart.log, measured.iter().copied().chain(marks), 6)
}

fn row(bar: &Bar<'_>, unit: &str) -> Row {
    let median = bar.cell.and_then(|cell| cell.median);
    let published = bar.cell.and_then(|cell| cell.published.as_ref());
    // what does not run in a condition has no figure there
    let none = if bar.rejected.is_empty() { "not measured" } else { "no run counts" };
    Row {
        label: bar.place.0.to_owned(),
        value: median.map_or_else(|| none.to_owned(), |median| number::with_unit(median, unit)),
        beside: match (published, bar.lines.iter().find(|line| line.condition.is_some()), bar.ideal) {
            (Some((value, _)), ..) => format!("published {}", number::with_unit(*value, unit)),
            (None, Some(line), _) => line.label.clone(),
            (None, None, Some(ideal)) => format!("ideal {}", number::with_unit(ideal, unit)),
            (None, None, None) => String::new(),
        },
    }
}

fn entries<'a>(chart: &Chart, bars: impl Iterator<Item = &'a Bar<'a>> + Clone) -> Vec<(Symbol, String)> {
    let mut entries = vec![(Symbol::Dot(Ink::Muted), "a run".to_owned())];
    let form = if chart.log { Symbol::Upright(Ink::Muted, Dash::None) } else { Symbol::Field(Ink::Body(6)) };
    entries.push((form, "median".to_owned()));
    let cells = || bars.clone().filter_map(|bar| bar.cell);
    let covers = cells().filter(|cell| cell.interval.is_some()).map(|cell| cell.coverage());
    if let Some(covers) = covers.reduce(f64::min) {
        let words = format!("its {} interval", number::coverage(covers));
        entries.push((Symbol::Line(Ink::Text, Dash::None), words));
    }
    if cells().any(|cell| cell.published.is_some()) {
        entries.push((Symbol::Upright(Ink::Target, Dash::Dashed), "published".to_owned()));
    }
    let dotted = Symbol::Upright(Ink::Target, Dash::Dotted);
    if bars.clone().any(|bar| bar.ideal.is_some()) {
        entries.push((Symbol::Line(IDEAL.ink, IDEAL.dash), "ideal scaling".to_owned()));
    }
    let everywhere = chart.line.iter().filter(|line| line.condition.is_none());
    entries.extend(everywhere.map(|line| (dotted, line.label.clone())));
    if chart.line.iter().any(|line| line.condition.is_some()) {
        entries.push((dotted, "named at its row".to_owned()));
    }
    if bars.clone().any(|bar| !bar.rejected.is_empty()) {
        entries.push((Symbol::Cross(Ink::Rejected), "rejected run".to_owned()));
    }
    entries
}

fn draw_bar(scene: &mut Scene, bar: &Bar<'_>, band: &Area, scale: &Scale, unit: &str) {
    let middle = band.y + band.height / 2.0;
    let written = |value: f64| number::with_unit(value, unit);
    if let Some(median) = bar.cell.and_then(|cell| cell.median) {
        let (base, end) = (scale.base(), scale.at(median));
        let (left, right) = (base.min(end), base.max(end));
        if !scale.is_log() {
            let body = Area { x: left, width: right - left, y: band.y + 1.0, height: band.height - 2.0 };
            scene.rect(body, Ink::Body(bar.colour), 1.0).data().tip(format!("median {}", written(median)));
        }
        let pen = Stroke::solid(Ink::Series(bar.colour), 3.0);
        scene
            .line((end, band.y), (end, band.bottom()), pen)
            .data()
            .tip(format!("median {}", written(median)));
    }
    if let Some((cell, (low, high))) = bar.cell.and_then(|cell| Some((cell, cell.interval?))) {
        let pen = Stroke::solid(Ink::Text, 1.4);
        let (from, to) = (scale.at(low), scale.at(high));
        let tip = format!(
            "{} interval of the median: {} to {}",
            number::coverage(cell.coverage()),
            written(low),
            written(high)
        );
        scene.line((from, middle), (to, middle), pen).data().tip(tip);
        for end in [from, to] {
            scene.line((end, middle - 3.5), (end, middle + 3.5), pen).data();
        }
    }
    let runs = bar.cell.map_or(&[][..], |cell| &cell.values).iter().filter(|value| value.is_finite());
    for (index, value) in runs.enumerate() {
        let at = (scale.at(*value), middle + spread(index, band.height));
        scene.dot(at, 3.4, Ink::Series(bar.colour)).data().tip(format!(
            "{}: {}",
            bar.measure,
            written(*value)
        ));
    }
    for (index, (run, figure)) in bar.rejected.iter().enumerate() {
        let reason = run.rejected.as_deref().unwrap_or_default();
        let tip = format!("run {}, rejected: {reason}: {}", run.number, written(*figure));
        let from = scene.marks.len();
        let (left, right) = (band.x + 3.2, band.right() - 3.2);
        let at = (scale.at(*figure).clamp(left, right), middle + spread(index, band.height));
        scene.cross(at, 3.2, Ink::Rejected, Some(tip));
        scene.marks[from..].iter_mut().for_each(|mark| mark.role = super::scene::Role::Data);
    }
    let published = bar.cell.and_then(|cell| cell.published.as_ref());
    let published = published.map(|(value, source)| (*value, format!("published: {source}"), Dash::Dashed));
    let requested = bar.lines.iter().map(|line| (line.at, line.label.clone(), Dash::Dotted));
    for (value, tip, dash) in published.into_iter().chain(requested) {
        if scale.reaches(value) {
            let (x, pen) = (scale.at(value), Stroke { ink: Ink::Target, width: 2.0, dash });
            let ends = ((x, band.y - 2.5), (x, band.bottom() + 2.5));
            scene.line(ends.0, ends.1, pen).data().tip(format!("{tip}: {}", written(value)));
        }
    }
}

const IDEAL: Stroke = Stroke { ink: Ink::Muted, width: 1.8, dash: Dash::Dotted };

/// A mark at each bar, joined from one to the next.
fn draw_ideal(scene: &mut Scene, bars: &[Bar<'_>], bands: &[Area], scale: &Scale, unit: &str) {
    let mut before: Option<(f64, f64)> = None;
    for (bar, band) in bars.iter().zip(bands) {
        let Some(ideal) = bar.ideal.filter(|ideal| scale.reaches(*ideal)) else { continue };
        let x = scale.at(ideal);
        if let Some(from) = before {
            scene.line(from, (x, band.y - 2.5), IDEAL).data();
        }
        let ends = ((x, band.y - 2.5), (x, band.bottom() + 2.5));
        scene
            .line(ends.0, ends.1, IDEAL)
            .data()
            .tip(format!("ideal scaling: {}", number::with_unit(ideal, unit)));
        before = Some(ends.1);
    }
}

/// Up and down from the middle, so that equal figures do not hide one another; the same each time it is drawn.
pub fn spread(index: usize, height: f64) -> f64 {
    [0.0, -0.26, 0.26, -0.13, 0.13][index % 5] * height
}
