//! A bar per condition that is made of several measures, one behind the other; the sum of each run is a dot.

use experiment::file::Chart;

use super::bars::spread;
use super::legend::{self, Symbol};
use super::rows::{self, Group, Row};
use super::scale::Scale;
use super::scene::{Area, Ink, Scene, Stroke};
use super::text;
use crate::view::{Place, View};
use experiment::number;

struct Bar<'a> {
    place: Place<'a>,
    /// Which of the chart's measures, its name, its median.
    parts: Vec<(usize, &'a str, f64)>,
    sums: Vec<(u32, f64)>,
}

/// Draws it; `None` if no run counts.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let unit = chart.of.first().map_or("", |measure| view.unit(measure));
    let groups: Vec<(Option<&str>, Vec<Bar<'_>>)> =
        view.loads().into_iter().map(|load| (load, bars(view, chart, load))).collect();
    let bars = || groups.iter().flat_map(|(_, bars)| bars);
    if bars().all(|bar| bar.parts.is_empty()) {
        return None;
    }
    let named = chart
        .of
        .iter()
        .enumerate()
        .map(|(index, measure)| (Symbol::Field(Ink::Series(index)), measure.clone()));
    let entries: Vec<(Symbol, String)> =
        named.chain([(Symbol::Dot(Ink::Text), "sum of a run".to_owned())]).collect();
    let top = legend::draw(&mut scene, 0.0, &entries);
    let words = groups.iter().map(|(load, bars)| Group {
        heading: load.map(str::to_owned),
        rows: bars.iter().map(|bar| row(bar, unit)).collect(),
    });
    let words: Vec<Group> = words.collect();
    let mut laid = rows::lay(&mut scene, top, &words, 24.0);
    let ends = bars().flat_map(|bar| bar.sums.iter().map(|(_, sum)| *sum).chain([total(bar)]));
    let scale = Scale::from_zero(ends, 6).between(laid.ends.0, laid.ends.1);
    let bands = laid.bands.clone();
    rows::axis(&mut scene, &mut laid, &scale, unit);
    for (bar, band) in bars().zip(&bands) {
        draw_bar(&mut scene, bar, band, &scale, unit);
    }
    scene.height = laid.bottom + 2.0;
    Some(scene)
}

fn bars<'a>(view: View<'a>, chart: &'a Chart, load: Option<&'a str>) -> Vec<Bar<'a>> {
    let conditions = view.conditions(&chart.conditions).into_iter();
    let bar = |condition: &'a str| {
        let place = (condition, load);
        let median = |(index, measure): (usize, &'a String)| {
            Some((index, measure.as_str(), view.cell(place, measure)?.median?))
        };
        let sum = |figures: &std::collections::BTreeMap<String, f64>| {
            chart.of.iter().map(|measure| figures.get(measure).copied()).sum::<Option<f64>>()
        };
        Bar {
            place,
            parts: chart.of.iter().enumerate().filter_map(median).collect(),
            sums: view.counted(place).filter_map(|run| Some((run.number, sum(&run.figures)?))).collect(),
        }
    };
    conditions.map(bar).collect()
}

fn total(bar: &Bar<'_>) -> f64 {
    bar.parts.iter().map(|(_, _, value)| value.max(0.0)).sum()
}

fn row(bar: &Bar<'_>, unit: &str) -> Row {
    let value =
        if bar.parts.is_empty() { "no run counts".to_owned() } else { number::with_unit(total(bar), unit) };
    Row { label: bar.place.0.to_owned(), value, beside: String::new() }
}

fn draw_bar(scene: &mut Scene, bar: &Bar<'_>, band: &Area, scale: &Scale, unit: &str) {
    let mut from = 0.0;
    for (index, measure, value) in &bar.parts {
        let (left, right) = (scale.at(from), scale.at(from + value.max(0.0)));
        let area = Area { x: left, width: right - left, y: band.y, height: band.height };
        let said = number::with_unit(*value, unit);
        scene.rect(area, Ink::Series(*index), 1.0).data().tip(format!("{measure}: {said}"));
        // a gap of paper between parts: they differ without colours
        scene.line((right, band.y), (right, band.bottom()), Stroke::solid(Ink::Surface, 1.0)).data();
        if text::width(&said, 12.0, true) + 10.0 < right - left {
            let style = super::scene::Style { size: 12.0, bold: true, ink: Ink::Surface };
            let at = (left + 5.0, band.y + band.height / 2.0 + 4.0);
            scene.text(at, super::scene::Anchor::Start, style, said);
        }
        from += value.max(0.0);
    }
    for (index, (run, sum)) in bar.sums.iter().enumerate() {
        let at = (scale.at(*sum), band.y + band.height / 2.0 + spread(index, band.height));
        scene.dot(at, 3.2, Ink::Text).data().tip(format!("run {run}: {}", number::with_unit(*sum, unit)));
    }
}
