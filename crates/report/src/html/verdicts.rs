//! What came out, on top of the page: a card per comparison, in words.

use experiment::results::Comparison;
use maud::{Markup, PreEscaped, html};

use crate::chart::{self, Chart};
use crate::number;
use crate::svg;
use crate::view::View;
use crate::words;

/// The verdicts; without comparisons, the medians of the first measure.
pub fn section(view: View<'_>, ratios: Option<&Chart>) -> Markup {
    let comparisons = &view.results.comparisons;
    html! {
        section id="verdicts" {
            h2 { "What came out" }
            @if !view.results.complete { (incomplete(view)) }
            @for comparison in comparisons { (card(view, comparison)) }
            @if comparisons.len() > 1 { @if let Some(chart) = ratios { (super::figure(chart)) } }
            @if comparisons.is_empty() { (medians(view)) }
        }
    }
}

fn incomplete(view: View<'_>) -> Markup {
    let made = view.results.runs.iter().filter(|run| run.rejected.is_none()).count();
    let conditions = view.results.experiment.condition.len() * view.loads().len();
    let asked = conditions * usize::try_from(view.results.design.repetitions).unwrap_or(0);
    html! {
        div.card.warning {
            h3 { "This experiment is not complete" }
            p { (made) " of " (asked) " runs are there. Go on with " code { "ringfence lab run --resume DIR" } "." }
        }
    }
}

fn card(view: View<'_>, comparison: &Comparison) -> Markup {
    let said = words::say(view, comparison);
    html! {
        article class={ "card verdict " (said.verdict) } {
            div {
                h3 { span.badge { (said.verdict) } (said.headline) }
                p { (said.size) }
                p.second { (said.sure) " " (said.runs) }
                @if !comparison.because.is_empty() { p.second { "Why this word: " (comparison.because) } }
                @if let Some(published) = &said.published { p.second { (published) } }
                @if let Some(note) = &comparison.note { p { span.bad { "Mind: " } (note) } }
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
            p { "No comparison was asked for. Medians of " strong { (measure.name) } ":" }
            dl.facts {
                @for cell in cells {
                    dt { (crate::view::place_name((&cell.condition, cell.load.as_deref()))) }
                    dd { (cell.median.map_or_else(|| "no run counts".to_owned(), |median| number::with_unit(median, &measure.unit))) }
                }
            }
        }
    }
}
