//! The page: one file without scripts and without anything from elsewhere; a policy in its head makes the browser
//! keep to that, whatever the names in an experiment's file contain. Everything is escaped by maud.

pub mod panels; // a page of panels
mod requested; // tables of the experiment; published ratios
mod settings; // environment, design, differences
mod tables; // cells, runs, latencies
mod verdicts; // what came out

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::{Chart, palette, text};
use crate::svg;
use crate::takeaway::takeaway;
use crate::view::View;
use experiment::number;

/// The report.
pub fn page(view: View<'_>, verdicts: Option<&Chart>, charts: &[Chart]) -> String {
    let results = view.results;
    let experiment = &results.experiment;
    let asked_for = crate::tables::all(view);
    // the first chart is the one that the experiment's author wants to be seen
    let (main, rest) = charts.split_first().map_or((None, charts), |(main, rest)| (Some(main), rest));
    let body = html! {
        header {
            h1 { (experiment.title) }
            p.meta { (summary_line(view)) }
            nav {
                a href="#verdicts" { "Results" }
                a href="#charts" { "Charts" }
                @if !asked_for.is_empty() { a href="#tables" { "Tables" } }
                a href="#settings" { "Settings" }
                a href="#figures" { "Figures" }
                a href="#runs" { "Every run" }
                a href="#environment" { "Machine" }
                a href="#reading" { "How to read this" }
            }
        }
        main {
            section id="takeaway" {
                div.card { p.takeaway { (takeaway(view)) } }
                @if let Some(main) = main { (figure(main)) }
            }
            (verdicts::section(view, verdicts))
            (requested::published(view))
            (about(view))
            @if !rest.is_empty() {
                section id="charts" {
                    h2 { "Charts" }
                    @for chart in rest { (figure(chart)) }
                }
            }
            (requested::tables(&asked_for))
            (settings::difference(view))
            (tables::cells(view))
            (tables::latencies(view))
            (tables::runs(view))
            (settings::environment(view))
            (reading())
        }
        footer {
            "Drawn from results.json, which has every figure; runs.csv and samples.csv have the same for other programs. \
             Redraw it with "
            code { "ringfence lab report DIR" }
            "."
        }
    };
    document(&experiment.title, &body)
}

fn summary_line(view: View<'_>) -> String {
    let results = view.results;
    let rejected = results.runs.iter().filter(|run| run.rejected.is_some()).count();
    let counted = results.runs.len() - rejected;
    let quick = if results.design.quick { " · quick" } else { "" };
    format!(
        "{} · {} · {counted} runs count, {rejected} rejected · took {}{quick}",
        results.experiment.name,
        results.environment.began,
        number::duration(results.design.took)
    )
}

/// What was requested, and what a reader must know.
fn about(view: View<'_>) -> Markup {
    let about = view.results.experiment.about.trim();
    html! {
        @if !view.results.notes.is_empty() {
            section {
                h2 { "Notes" }
                div.card { ul.notes { @for note in &view.results.notes { li { (note.to_string()) } } } }
            }
        }
        @if !about.is_empty() {
            section {
                h2 { "The question" }
                div.card { @for paragraph in about.split("\n\n") { p { (paragraph) } } }
            }
        }
    }
}

/// A chart with its title and what to look at.
pub(super) fn figure(chart: &Chart) -> Markup {
    html! {
        figure.card {
            h3 { (chart.title) }
            @match &chart.drawn {
                Some(drawn) => {
                    div.wide { (PreEscaped(svg::inline(&drawn.wide))) }
                    div.narrow { (PreEscaped(svg::inline(&drawn.narrow))) }
                    figcaption { (chart.caption) }
                }
                None => { p.second { "Nothing to draw: no run that counts has these figures." } }
            }
        }
    }
}

fn reading() -> Markup {
    let words = [
        ("median", "Half of the runs lie above it, half below. One odd run hardly moves it."),
        (
            "interval",
            "Where more runs would probably put the median or the ratio (bootstrap). A 95 % interval covers it in about \
             95 of 100 experiments like this one; fewer than 6 runs allow only a 93, 87 or 75 % interval, which is said.",
        ),
        (
            "ratio",
            "The median of one condition divided by that of the other. 1 is equal, 2 is twice as much.",
        ),
        (
            "better, worse",
            "By more than chance explains: p below 0.05 (exact Mann-Whitney test, Holm's correction). p is how often runs \
             that are equal in truth would differ as much.",
        ),
        (
            "no relevant difference",
            "The whole interval of the ratio lies within the margin that the experiment calls equal.",
        ),
        (
            "inconclusive",
            "Neither can be said. It is not the same as equal: there may be a difference that so few or \
             so uneven runs can't show.",
        ),
        (
            "gate, rejected",
            "During each run the lab looks whether anything else used the machine. A run that was disturbed is \
             rejected, made again, and still shown.",
        ),
        (
            "block",
            "One run of every condition in a random order, so that what changes over time meets all of them.",
        ),
        ("steady", "Whether the rate had stopped climbing or falling when the run began to count."),
        ("variation", "Standard deviation of the runs divided by their mean."),
        ("published", "What others measured on their machine: shown beside, never part of a verdict."),
    ];
    html! {
        section id="reading" {
            h2 { "How to read this" }
            div.card { dl.facts { @for (word, meaning) in words { dt { (word) } dd { (meaning) } } } }
        }
    }
}

/// A page with the report's style.
fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; font-src data:";
                title { (title) }
                style { (PreEscaped(style())) }
            }
            body { (body) }
        }
    };
    // a name's control characters are no part of any page
    let whole = page.into_string();
    whole
        .chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect()
}

fn style() -> String {
    let font = |bytes: &[u8], weight: u32| {
        format!(
            "@font-face{{font-family:Roboto;font-weight:{weight};src:url(data:font/ttf;base64,{})}}",
            BASE64.encode(bytes)
        )
    };
    // colours by night only on a screen: paper is white
    format!(
        ":root{{color-scheme:light dark;{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}{}{}{}{}",
        palette::properties(false),
        palette::properties(true),
        font(text::REGULAR, 400),
        font(text::BOLD, 700),
        include_str!("style.css"),
        svg::classes()
    )
}
