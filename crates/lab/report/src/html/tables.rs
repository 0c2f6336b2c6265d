//! Every number: the summary of each cell, each run with its gates, each run's latencies. On a narrow page a row is a
//! block of lines.

use experiment::results::{Cell, Gate, Run};
use maud::{Markup, html};

use crate::view::View;
use crate::words;
use experiment::number;

/// The cells.
pub fn cells(view: View<'_>) -> Markup {
    let cells = &view.results.cells;
    let loads = cells.iter().any(|cell| cell.load.is_some());
    let published = cells.iter().any(|cell| cell.published.is_some());
    let warned = cells.iter().any(|cell| !cell.warnings.is_empty());
    html! {
        section id="figures" {
            h2 { "Figures" }
            div.card.long {
                div.scroll {
                    table.stack {
                        thead {
                            tr {
                                th { "measure" }
                                th { "condition" }
                                @if loads { th { "load" } }
                                th.number { "median" }
                                th.number { "interval" }
                                th.number { "variation" }
                                th.number { "runs" }
                                @if published { th { "published" } }
                                @if warned { th { "notes" } }
                            }
                        }
                        tbody { @for cell in cells { (cell_row(view, cell, [loads, published, warned])) } }
                    }
                }
            }
        }
    }
}

/// With the columns that some cell needs.
fn cell_row(view: View<'_>, cell: &Cell, [loads, published, warned]: [bool; 3]) -> Markup {
    let unit = view.unit(&cell.measure);
    let reported = |value: f64| number::long_with_unit(value, unit);
    let rejected = match cell.rejected {
        0 => String::new(),
        rejected => match ends_of(&cell.rejected_values) {
            Some((low, high)) => format!(", {rejected} rejected: {} to {}", reported(low), reported(high)),
            None => format!(", {rejected} rejected"),
        },
    };
    html! {
        tr {
            td data-label="measure" { (cell.measure) }
            td data-label="condition" { (cell.condition) }
            @if loads { td data-label="load" { (cell.load.as_deref().unwrap_or("undisturbed")) } }
            td.number data-label="median" { strong { (cell.median.map_or_else(|| "–".to_owned(), reported)) } }
            td.number data-label="interval" {
                @match cell.interval {
                    None => "–",
                    Some((low, high)) => {
                        (reported(low)) " to " (reported(high))
                        @if cell.coverage() < 0.95 { " (" (number::coverage(cell.coverage())) ")" }
                    }
                }
            }
            td.number data-label="variation" { (cell.variation.map_or_else(|| "–".to_owned(), number::percent)) }
            td.number data-label="runs" { (cell.values.len()) (rejected) }
            @if published { td data-label="published" { (published_words(cell, unit)) } }
            @if warned { td data-label="notes" { (words::warnings(cell)) } }
        }
    }
}

/// The lowest and the highest.
fn ends_of(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().reduce(f64::max)?))
}

fn published_words(cell: &Cell, unit: &str) -> String {
    let Some((value, source)) = &cell.published else { return String::new() };
    let here = match cell.median {
        Some(median) if *value != 0.0 => format!("; here {} times that", number::ratio(median / value)),
        _ => String::new(),
    };
    format!("{} ({source}){here}", number::long_with_unit(*value, unit))
}

/// Every run.
pub fn runs(view: View<'_>) -> Markup {
    let runs = &view.results.runs;
    let loads = runs.iter().any(|run| run.load.is_some());
    let files = runs.iter().any(|run| !run.files.is_empty());
    let measures: Vec<&str> =
        view.results.experiment.measure.iter().map(|measure| measure.name.as_str()).collect();
    html! {
        section id="runs" {
            h2 { "Every run" }
            div.card.long {
                p.second { "In the order in which they were made. A rejected run does not count." }
                div.scroll {
                    table.stack {
                        thead {
                            tr {
                                th.number { "run" }
                                th.number { "block" }
                                th { "condition" }
                                @if loads { th { "load" } }
                                @for measure in &measures { th.number { (measure) } }
                                th { "gates" }
                                th { "steady" }
                                th { "counts" }
                                @if files { th { "tools' own files" } }
                            }
                        }
                        tbody { @for run in runs { (run_row(view, run, [loads, files], &measures)) } }
                    }
                }
            }
        }
    }
}

fn run_row(view: View<'_>, run: &Run, [loads, files]: [bool; 2], measures: &[&str]) -> Markup {
    let figure = |measure: &str| match run.figures.get(measure) {
        Some(figure) => number::long_with_unit(*figure, view.unit(measure)),
        None => "–".to_owned(),
    };
    let again = if run.attempt > 1 { format!(" (attempt {})", run.attempt) } else { String::new() };
    html! {
        tr.rejected[run.rejected.is_some()] {
            td.number data-label="run" { (run.number) }
            td.number data-label="block" { (run.block) (again) }
            td data-label="condition" { (run.condition) }
            @if loads { td data-label="load" { (run.load.as_deref().unwrap_or("undisturbed")) } }
            @for measure in measures { td.number data-label=(measure) { (figure(measure)) } }
            td data-label="gates" { (gates(&run.gates)) }
            td data-label="steady" { (match run.steady { None => "–", Some(true) => "yes", Some(false) => "no" }) }
            td data-label="counts" {
                @match &run.rejected {
                    None => "yes",
                    Some(reason) => span { span.bad { "✗ rejected" } ": " (reason) },
                }
            }
            @if files {
                td data-label="tools' own files" {
                    @for (index, path) in run.files.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href=(path) { (path.rsplit('/').next().unwrap_or(path)) }
                    }
                }
            }
        }
    }
}

fn gates(gates: &[Gate]) -> Markup {
    html! {
        span {
            @for (index, gate) in gates.iter().enumerate() {
                @if index > 0 { ", " }
                @let beyond = gate.at_most.is_some_and(|most| gate.seen > most);
                span.bad[beyond] {
                    (gate.name) " " (number::percent(gate.seen))
                    @match gate.at_most {
                        Some(most) if beyond => { " > " (number::percent(most)) }
                        Some(_) => {}
                        None => " (no limit)",
                    }
                }
            }
        }
    }
}

/// Latencies of every run, the longest included: a maximum is never averaged.
pub fn latencies(view: View<'_>) -> Markup {
    let runs: Vec<&Run> = view.results.runs.iter().filter(|run| !run.latencies.is_empty()).collect();
    let heads = ["count", "mean", "P50", "P95", "P99", "P99.9", "longest", "missed"];
    html! {
        @if !runs.is_empty() {
            section id="latencies" {
                h2 { "Latencies of every run" }
                div.card.long {
                    div.scroll {
                        table.stack {
                            thead {
                                tr {
                                    th.number { "run" }
                                    th { "condition" }
                                    th { "latency" }
                                    @for head in heads { th.number { (head) } }
                                }
                            }
                            tbody { @for run in runs { (latency_rows(run, &heads)) } }
                        }
                    }
                }
            }
        }
    }
}

fn latency_rows(run: &Run, heads: &[&str]) -> Markup {
    let time = |value: f64| number::long_with_unit(value, "s");
    html! {
        @for (name, latency) in &run.latencies {
            tr.rejected[run.rejected.is_some()] {
                td.number data-label="run" { (run.number) @if run.rejected.is_some() { " (rejected)" } }
                td data-label="condition" { (crate::view::place_name((&run.condition, run.load.as_deref()))) }
                td data-label="latency" { (name) }
                @let values = [
                    number::long(latency.count as f64), time(latency.mean), time(latency.p50), time(latency.p95),
                    time(latency.p99), latency.p999.map_or_else(|| "too few".to_owned(), time), time(latency.max),
                    number::long(latency.missed as f64),
                ];
                @for (head, value) in heads.iter().zip(values) { td.number data-label=(head) { (value) } }
            }
        }
    }
}
