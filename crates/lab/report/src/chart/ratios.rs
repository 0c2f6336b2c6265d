//! The comparisons at a glance: each ratio with its interval, the margin within which it would be as good as equal
//! shaded, what was published dashed.

use experiment::file::Better;
use experiment::results::{Comparison, Verdict};

use super::legend::{self, Symbol};
use super::rows::{self, Group, Row};
use super::scale::Scale;
use super::scene::{Area, Dash, Ink, SMALL, Scene, Stroke};
use super::text;
use crate::view::{View, pair};
use experiment::number;

/// Draws these; `None` if none has a ratio.
pub fn draw(view: View<'_>, comparisons: &[&Comparison], width: f64, with_legend: bool) -> Option<Scene> {
    let drawn: Vec<&Comparison> = comparisons.iter().copied().filter(|one| one.ratio.is_some()).collect();
    if drawn.is_empty() {
        return None;
    }
    let mut scene = Scene::new(width, "ratios of the comparisons with their intervals");
    let mut top = 0.0;
    if with_legend {
        top = legend::draw(&mut scene, top, &entries(&drawn));
    }
    let groups = groups(&drawn, with_legend);
    let mut laid = rows::lay(&mut scene, top, &groups, 20.0);
    let scale = scale(&view.results.comparisons).between(laid.ends.0, laid.ends.1);
    let bands = laid.bands.clone();
    margins(&mut scene, &drawn, &bands, &scale);
    rows::axis(&mut scene, &mut laid, &scale, "");
    for (comparison, band) in drawn.iter().zip(&bands) {
        draw_ratio(&mut scene, comparison, band, &scale, colour(view, comparison));
    }
    scene.height = laid.bottom + 2.0;
    let sides = "left of 1: less, right of 1: more";
    if with_legend && text::width(sides, SMALL.size, false) < width {
        scene.text((0.0, scene.height + 12.0), super::scene::Anchor::Start, SMALL, sides);
        scene.height += 18.0;
    }
    Some(scene)
}

fn entries(drawn: &[&Comparison]) -> Vec<(Symbol, String)> {
    let covers = drawn.iter().filter(|one| one.interval.is_some()).map(|one| one.coverage());
    let covers = covers.reduce(f64::min).unwrap_or(0.95);
    let mut entries = vec![
        (Symbol::Dot(Ink::Text), "ratio of the medians".to_owned()),
        (Symbol::Line(Ink::Text, Dash::None), format!("{} interval", number::coverage(covers))),
        (Symbol::Field(Ink::Grid), "no relevant difference".to_owned()),
    ];
    if drawn.iter().any(|one| one.published.is_some()) {
        entries.push((Symbol::Upright(Ink::Target, Dash::Dashed), "published".to_owned()));
    }
    entries
}

fn groups(drawn: &[&Comparison], with_labels: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut measure = None;
    for comparison in drawn {
        if measure != Some(&comparison.measure) {
            measure = Some(&comparison.measure);
            let heading = with_labels.then(|| comparison.measure.clone());
            groups.push(Group { heading, rows: Vec::new() });
        }
        let label = if with_labels { pair(comparison) } else { String::new() };
        let value = comparison.ratio.map_or_else(String::new, |ratio| format!("× {}", number::ratio(ratio)));
        if let Some(group) = groups.last_mut() {
            group.rows.push(Row { label, value, beside: String::new() });
        }
    }
    groups
}

/// The same for all, so that strips can be compared; around 1, which is always seen.
fn scale(all: &[Comparison]) -> Scale {
    let mut values = vec![0.9, 1.1];
    for one in all {
        values.extend(one.ratio);
        values.extend(one.interval.iter().flat_map(|(low, high)| [*low, *high]));
        values.extend([1.0 - one.margin, 1.0 + one.margin]);
    }
    let (low, high) =
        values.iter().fold((1.0_f64, 1.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let published = all.iter().filter_map(|one| Some(one.published.as_ref()?.0));
    let near = published.filter(|value| *value > low / 4.0 && *value < high * 4.0);
    let wide = high > 8.0 || low < 0.05;
    let shown = values.iter().copied().chain(near);
    if wide { Scale::logarithmic(shown) } else { Scale::linear(shown, 5) }
}

fn margins(scene: &mut Scene, drawn: &[&Comparison], bands: &[Area], scale: &Scale) {
    for (comparison, band) in drawn.iter().zip(bands) {
        let (from, to) = (scale.at(1.0 - comparison.margin), scale.at(1.0 + comparison.margin));
        let area = Area { x: from, width: to - from, y: band.y - 3.0, height: band.height + 6.0 };
        scene.rect(area, Ink::Grid, 1.0).data().tip(format!("1 ± {}", number::percent(comparison.margin)));
    }
}

fn colour(view: View<'_>, comparison: &Comparison) -> Ink {
    match (comparison.verdict, view.better(&comparison.measure)) {
        (Verdict::Faster, Better::Higher | Better::Lower) => Ink::Series(0),
        (Verdict::Slower, _) => Ink::Series(1),
        (Verdict::Equivalent, _) => Ink::Series(2),
        (Verdict::Inconclusive, _) => Ink::Muted,
    }
}

fn draw_ratio(scene: &mut Scene, comparison: &Comparison, band: &Area, scale: &Scale, ink: Ink) {
    let middle = band.y + band.height / 2.0;
    let one = scale.at(1.0);
    scene.line((one, band.y - 3.0), (one, band.bottom() + 3.0), Stroke::solid(Ink::Muted, 1.4)).data();
    if let Some((low, high)) = comparison.interval {
        let tip = format!(
            "{} interval: {} to {}",
            number::coverage(comparison.coverage()),
            number::ratio(low),
            number::ratio(high)
        );
        let pen = Stroke::solid(ink, 2.6);
        scene.line((scale.at(low), middle), (scale.at(high), middle), pen).data().tip(tip);
        for end in [scale.at(low), scale.at(high)] {
            scene.line((end, middle - 5.0), (end, middle + 5.0), Stroke { width: 2.0, ..pen }).data();
        }
    }
    if let Some(ratio) = comparison.ratio {
        scene.dot((scale.at(ratio), middle), 5.0, ink).data().tip(format!("ratio {}", number::ratio(ratio)));
    }
    if let Some((published, source)) = &comparison.published
        && scale.reaches(*published)
    {
        let x = scale.at(*published);
        let tip = format!("published: {} ({source})", number::ratio(*published));
        let pen = Stroke::dashed(Ink::Target, 2.0);
        scene.line((x, band.y - 2.0), (x, band.bottom() + 2.0), pen).data().tip(tip);
    }
}
