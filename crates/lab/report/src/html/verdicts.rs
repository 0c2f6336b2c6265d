//! What came out: how close targets were, and a card per comparison, in words.

use std::path::Path;

use experiment::results::Comparison;
use maud::{Markup, PreEscaped, html};
use units::hint::Command;

use crate::chart::{self, Chart};
use crate::svg;
use crate::view::View;
use crate::words;
use experiment::number;

/// The verdicts; without comparisons, the medians of the first measure.
pub fn section(view: View<'_>, ratios: Option<&Chart>) -> Markup {
    let comparisons = &view.results.comparisons;
    html! {
        section id="verdicts" {
            h2 { "Results" }
            @if !view.results.complete { (incomplete(view)) }
            @if !view.results.targets.is_empty() { (targets(view)) }
            @if comparisons.len() > 1 { @if let Some(chart) = ratios { (super::figure(chart)) } }
            @for comparison in comparisons { (card(view, comparison)) }
            @if comparisons.is_empty() && view.results.targets.is_empty() { (medians(view)) }
        }
    }
}

fn incomplete(view: View<'_>) -> Markup {
    let made = view.results.runs.iter().filter(|run| run.rejected.is_none()).count();
    let conditions = view.results.experiment.condition.len() * view.loads().len();
    let requested = conditions * usize::try_from(view.results.design.repetitions).unwrap_or(0);
    html! {
        div.card.warning {
            h3 { "This experiment is not complete" }
            p { (made) " of " (requested) " runs count." }
            @if let Some(directory) = view.directory {
                p { "Continue with " code { (resume(directory)) } "." }
            }
        }
    }
}

/// The command that makes the missing runs.
fn resume(directory: &Path) -> String {
    Command::ringfence("lab run --resume").arg(directory.display().to_string()).to_string()
}

fn targets(view: View<'_>) -> Markup {
    html! {
        div.card {
            h3 { "Targets" }
            ul.notes { @for reached in &view.results.targets { li { (words::target(view, reached)) } } }
        }
    }
}

fn card(view: View<'_>, comparison: &Comparison) -> Markup {
    let said = words::say(view, comparison);
    html! {
        article class={ "card verdict " (said.verdict) } {
            div {
                h3 { span.badge { (said.badge) } (said.headline) }
                p { (said.size) }
                p.second { (said.sure) }
                @for more in [&said.published, &said.note].into_iter().flatten() { p.second { (more) } }
            }
            @if let Some(strip) = chart::strip(view, comparison) {
                div.strip { (PreEscaped(svg::inline(&strip))) }
            }
        }
    }
}

fn medians(view: View<'_>) -> Markup {
    let Some(measure) = view.results.experiment.measure.first() else {
        return html! { div.card { p { "Nothing was measured." } } };
    };
    let cells = view.results.cells.iter().filter(|cell| cell.measure == measure.name);
    html! {
        div.card {
            p { "There is no comparison. Medians of " strong { (measure.name) } ":" }
            dl.facts {
                @for cell in cells {
                    dt { (crate::view::place_name((&cell.condition, cell.load.as_deref()))) }
                    dd { (cell.median.map_or_else(|| "no run counts".to_owned(), |median| number::with_unit(median, &measure.unit))) }
                }
            }
        }
    }
}
