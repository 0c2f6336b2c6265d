//! What an experiment requests beside what every page has: its tables, and what others published beside what was seen.

use maud::{Markup, html};

use crate::published::{self, Line, Stands};
use crate::tables::{Grid, Part};
use crate::view::View;
use experiment::number;

/// Where published and measured ratios agree and where not; nothing if none was published.
pub fn published(view: View<'_>) -> Markup {
    let lines = published::lines(view);
    html! {
        @if !lines.is_empty() {
            section id="published" {
                h2 { "Published and measured" }
                div.card {
                    p.second {
                        "Ratios only: machines differ in their figures. Known reasons are in the table and under “Notes”."
                    }
                    div.scroll {
                        table.stack {
                            thead {
                                tr {
                                    th { "ratio" }
                                    th.number { "published" }
                                    th.number { "here" }
                                    th { "how they stand" }
                                    th { "source" }
                                }
                            }
                            tbody { @for line in &lines { (row(line)) } }
                        }
                    }
                }
            }
        }
    }
}

fn row(line: &Line) -> Markup {
    html! {
        tr {
            td data-label="ratio" { (line.what) }
            td.number data-label="published" { (number::ratio(line.published)) }
            td.number data-label="here" { strong { (line.here.map_or_else(|| "–".to_owned(), number::ratio)) } }
            td data-label="how they stand" {
                span {
                    span.bad[matches!(line.stands, Stands::Differs(_))] { (line.stands.words()) }
                    @if let Some(note) = &line.note { " · " (note) }
                }
            }
            td data-label="source" { (line.source) }
        }
    }
}

/// The tables; nothing if none is requested.
pub fn tables(tables: &[Grid]) -> Markup {
    html! {
        @if !tables.is_empty() {
            section id="tables" {
                h2 { "Tables" }
                @for table in tables { (grid(table)) }
            }
        }
    }
}

fn grid(grid: &Grid) -> Markup {
    html! {
        div.card.long {
            h3 { (grid.title) }
            @if grid.parts.is_empty() {
                p.second { "Nothing to show: no run that counts has these figures." }
            } @else {
                p.second { (grid.caption) }
            }
            @for one in &grid.parts { (part(grid, one)) }
        }
    }
}

fn part(grid: &Grid, part: &Part) -> Markup {
    let cell = |(head, number): &(&'static str, bool), text: &String| {
        html! { td.number[*number] data-label=(head) { (text) } }
    };
    html! {
        @if let Some(name) = &part.name { h4 { (name) } }
        div.scroll {
            table.stack {
                thead { tr { @for (head, number) in &grid.heads { th.number[*number] { (head) } } } }
                tbody {
                    @for row in &part.rows {
                        tr { @for (head, text) in grid.heads.iter().zip(row) { (cell(head, text)) } }
                    }
                }
            }
        }
    }
}
