//! On which machine, how the runs were made, and in which settings the conditions differ.

use maud::{Markup, html};

use crate::difference::{self, Row};
use crate::view::View;
use experiment::{number, options};

/// The machine and the design.
pub fn environment(view: View<'_>) -> Markup {
    let (environment, design) = (&view.results.environment, &view.results.design);
    html! {
        section id="environment" {
            h2 { "Machine and method" }
            div.card {
                h3 { "The machine" }
                @if environment.facts.is_empty() { p.second { "Nothing is known of it." } }
                dl.facts { @for (name, value) in &environment.facts { dt { (name) } dd { (value) } } }
            }
            div.card {
                h3 { "How the runs were made" }
                dl.facts {
                    dt { "repetitions" } dd { (design.repetitions) " blocks, each with every condition once" }
                    dt { "each run" }
                    dd { (number::duration(design.duration)) " after at least " (number::duration(design.warm_up)) " of warm-up" }
                    dt { "order" } dd { "from seed " (design.seed) }
                    dt { "gates" } dd { (gates(view)) }
                    @for (name, instead) in unlimited(view) { dt { (name) } dd { "no limit in some runs: " (instead) } }
                    @for (measure, span) in &view.results.spans { dt { (measure) } dd { "measured over " (span) } }
                    dt { "began" } dd { (environment.began) }
                    dt { "took" } dd { (number::duration(design.took)) }
                }
            }
            div.card { h3 { "What ran" } (workloads(view)) }
            @if !design.cpus.is_empty() {
                div.card {
                    h3 { "CPUs of the study, and here" }
                    table.stack {
                        thead { tr { th { "set" } th { "in the study" } th { "here" } } }
                        tbody {
                            @for (name, study, here) in &design.cpus {
                                tr {
                                    td data-label="set" { (name) }
                                    td data-label="in the study" { (study) }
                                    td data-label="here" { (here) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn gates(view: View<'_>) -> String {
    let gates = &view.results.experiment.gates;
    let at_most = |share: f64| match share {
        all if all >= 1.0 => "without a limit".to_owned(),
        share => format!("at most {}", number::percent(share)),
    };
    format!(
        "foreign CPU {}, steal {}; variation beyond {} is named as noise and decides nothing; a rejected run is made again up \
         to {} times",
        at_most(gates.foreign_cpu),
        at_most(gates.steal),
        number::percent(gates.variation),
        gates.retries
    )
}

/// Gates without a limit in some runs, each with what stands in its place, once.
fn unlimited<'a>(view: View<'a>) -> Vec<(&'a str, &'a str)> {
    let gates = view.results.runs.iter().flat_map(|run| &run.gates);
    let without = gates.filter_map(|gate| Some((gate.name.as_str(), gate.instead.as_deref()?)));
    let mut all: Vec<(&'a str, &'a str)> = Vec::new();
    without.for_each(|one| {
        if !all.contains(&one) {
            all.push(one);
        }
    });
    all
}

fn workloads(view: View<'_>) -> Markup {
    html! {
        dl.facts {
            @for (name, workload) in &view.results.experiment.workload {
                dt { (name) }
                dd {
                    (driver(workload))
                    @if let Some(group) = &workload.group { ", in group " code { (group) } }
                    @if let Some(group) = &workload.clients_group { ", clients in group " code { (group) } }
                }
            }
        }
    }
}

/// `pgbench: clients 8, threads 2`: what is given, as the file names it.
fn driver(workload: &experiment::file::Workload) -> String {
    let Ok(serde_json::Value::Object(mut options)) = serde_json::to_value(&workload.driver) else {
        return String::new();
    };
    let name = options.remove("driver");
    let name = name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    let is_empty = |value: &serde_json::Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    let given = options.iter().filter(|(_, value)| !is_empty(value));
    let given = given.filter_map(|(option, value)| Some(format!("{option} {}", options::text(value)?)));
    let given: Vec<String> = given.collect();
    if given.is_empty() { name.to_owned() } else { format!("{name}: {}", given.join(", ")) }
}

/// The exact difference.
pub fn difference(view: View<'_>) -> Markup {
    let difference = difference::between_conditions(view);
    let events = &view.results.experiment.event;
    html! {
        section id="settings" {
            h2 { "What differs between the conditions" }
            div.card.long {
                @if difference.differs.is_empty() { p { "Nothing: all conditions are set alike." } }
                @for row in &difference.differs { (setting(row, true)) }
                @if !difference.same.is_empty() {
                    details {
                        summary { "The same in all conditions (" (difference.same.len()) ")" }
                        @for row in &difference.same { (setting(row, false)) }
                    }
                }
            }
            @if !events.is_empty() {
                div.card {
                    h3 { "Changed in the middle of a run" }
                    @for event in events {
                        p {
                            "at " strong { (event.at) }
                            @if !event.label.is_empty() { ": " (event.label) }
                            @if !event.conditions.is_empty() { " (only in " (event.conditions.join(", ")) ")" }
                        }
                        @for (group, settings) in &event.settings {
                            @for (name, value) in settings { p.second { code { (group) ": " (name) " = " (value) } } }
                        }
                    }
                }
            }
        }
    }
}

fn setting(row: &Row, with_conditions: bool) -> Markup {
    html! {
        div.setting {
            h3 { (row.of) " · " (row.name) }
            dl.facts {
                @for value in &row.values {
                    dt { @if with_conditions { (value.conditions.join(" · ")) } @else { "all" } }
                    dd {
                        @match &value.requested {
                            Some(requested) => code { (requested) },
                            None => span.second { "not set" },
                        }
                        @if !value.written.is_empty() {
                            ul.written { @for line in &value.written { li { (line) } } }
                        }
                    }
                }
            }
        }
    }
}
