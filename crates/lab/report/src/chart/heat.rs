//! Condition × load: the median in each field, the darker the more. Which way is better is said above; the number in
//! the field is what counts, the colour only finds it.

use experiment::file::{Better, Chart};

use super::frame;
use super::scale::Scale;
use super::scene::{Anchor, Area, Ink, LABEL, SMALL, Scene, Style};
use super::text;
use crate::view::View;
use experiment::number;

/// Draws it; `None` if no run counts.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let conditions = view.conditions(&chart.conditions);
    let loads = view.loads();
    let labels =
        conditions.iter().map(|condition| text::width(condition, LABEL.size, false)).fold(0.0, f64::max);
    let left = labels.min(width * 0.3) + 10.0;
    let per_part = (((width - left) / 66.0).floor() as usize).max(1);
    // parts of nearly the same number of loads
    let per_part = loads.len().div_ceil(loads.len().div_ceil(per_part));
    let mut top = 0.0;
    for measure in &chart.of {
        let unit = view.unit(measure);
        let medians = conditions.iter().flat_map(|condition| {
            loads.iter().filter_map(move |load| view.cell((condition, *load), measure)?.median)
        });
        let medians: Vec<f64> = medians.filter(|median| median.is_finite()).collect();
        if medians.is_empty() {
            continue;
        }
        let steps = steps(&medians, chart.log);
        let better = if view.better(measure) == Better::Higher { "more is better" } else { "less is better" };
        top = frame::heading(&mut scene, top, measure, better);
        for part in loads.chunks(per_part) {
            top = draw_part(
                &mut scene,
                top,
                left,
                &conditions,
                part,
                per_part.min(loads.len()),
                |condition, load| {
                    let median = view.cell((condition, load), measure)?.median?;
                    let step = (steps.at(median) * Ink::STEPS as f64).floor() as usize;
                    Some((number::with_unit(median, unit), step.min(Ink::STEPS - 1)))
                },
            );
        }
        top = key(&mut scene, top + 4.0, left, &steps, unit) + 14.0;
    }
    scene.height = top - 8.0;
    (top > 0.0).then_some(scene)
}

/// What the colours mean: a field of each, with the number at which it begins.
fn key(scene: &mut Scene, top: f64, left: f64, steps: &Scale, unit: &str) -> f64 {
    let each = ((scene.width - left) / Ink::STEPS as f64).min(86.0);
    for step in 0..Ink::STEPS {
        let x = left + each * step as f64;
        scene.rect(Area { x, y: top, width: each - 2.0, height: 9.0 }, Ink::Ramp(step), 1.0);
        let begins = number::with_unit(steps.value(step as f64 / Ink::STEPS as f64), unit);
        let words = text::fit(&begins, each - 4.0, SMALL.size, false);
        scene.text((x, top + 23.0), Anchor::Start, SMALL, words);
    }
    top + 26.0
}

/// Equal steps of the value or, when the chart says so or most values would share one step, of its logarithm.
fn steps(medians: &[f64], log: bool) -> Scale {
    let low = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let high = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low > 0.0 && (log || high / low > 8.0) {
        Scale::within_decades(low, high)
    } else {
        Scale::exactly(low, high)
    }
}

fn draw_part(
    scene: &mut Scene,
    top: f64,
    left: f64,
    conditions: &[&str],
    loads: &[Option<&str>],
    columns: usize,
    field: impl Fn(&str, Option<&str>) -> Option<(String, usize)>,
) -> f64 {
    let each = (scene.width - left) / columns as f64;
    let heads: Vec<Vec<String>> = loads
        .iter()
        .map(|load| text::wrap(load.unwrap_or("undisturbed"), each - 8.0, 3, SMALL.size, false))
        .collect();
    let lines = heads.iter().map(Vec::len).max().unwrap_or(1);
    for (column, head) in heads.iter().enumerate() {
        let middle = left + each * (column as f64 + 0.5);
        for (line, words) in head.iter().enumerate() {
            let y = top + 12.0 + 14.0 * (line + lines - head.len()) as f64;
            scene.text((middle, y), Anchor::Middle, SMALL, words.clone());
        }
    }
    let mut y = top + 14.0 * lines as f64 + 6.0;
    let begin = y;
    for condition in conditions {
        let words = text::wrap(condition, left - 10.0, 2, LABEL.size, false);
        for (line, word) in words.iter().enumerate() {
            let down = if words.len() == 1 { 22.0 } else { 15.0 + 15.0 * line as f64 };
            scene.text((0.0, y + down), Anchor::Start, LABEL, word.clone());
        }
        for (column, load) in loads.iter().enumerate() {
            let area = Area { x: left + each * column as f64, y, width: each - 2.0, height: 34.0 };
            let (words, step) = field(condition, *load).unwrap_or_else(|| ("–".to_owned(), 0));
            let tip = format!("{condition}, {}: {words}", load.unwrap_or("undisturbed"));
            scene.rect(area, Ink::Ramp(step), 1.0).data().tip(tip);
            let style = Style { size: 13.0, bold: true, ink: Ink::OnRamp(step) };
            let words = text::fit(&words, area.width - 6.0, style.size, true);
            scene.text((area.x + area.width / 2.0, y + 22.0), Anchor::Middle, style, words);
        }
        y += 36.0;
    }
    scene.plots.push(Area { x: left, y: begin, width: scene.width - left, height: y - begin });
    y + 6.0
}
