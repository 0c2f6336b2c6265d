//! The summary as Markdown (tables as GitHub has them): verdicts, figures, machine, differences, notes.

use std::fmt::Write as _;

use crate::difference;
use crate::published;
use crate::tables;
use crate::takeaway;
use crate::view::View;
use crate::words;
use experiment::number;

/// The summary.
pub fn summary(view: View<'_>) -> String {
    let results = view.results;
    let mut out =
        format!("# {}\n\n{}\n\n", escape(&results.experiment.title), escape(&takeaway::takeaway(view)));
    if !results.complete {
        out.push_str("**This experiment is not complete.**\n\n");
    }
    targets(view, &mut out);
    verdicts(view, &mut out);
    published(view, &mut out);
    tables(view, &mut out);
    figures(view, &mut out);
    if !results.notes.is_empty() {
        out.push_str("## Notes\n\n");
        for note in &results.notes {
            let _ = writeln!(out, "- {}", escape(&note.to_string()));
        }
        out.push('\n');
    }
    differences(view, &mut out);
    out.push_str("## Machine and method\n\n");
    let design = &results.design;
    let method = format!(
        "{} blocks in random order (seed {}), {} per run after at least {} of warm-up, began {}, took {}",
        design.repetitions,
        design.seed,
        number::duration(design.duration),
        number::duration(design.warm_up),
        results.environment.began,
        number::duration(design.took)
    );
    let _ = writeln!(out, "- {}", escape(&method));
    for (name, value) in &results.environment.facts {
        let _ = writeln!(out, "- {}: {}", escape(name), escape(value));
    }
    for (name, study, here) in &design.cpus {
        let _ =
            writeln!(out, "- CPUs “{}”: {} in the study, {} here", escape(name), escape(study), escape(here));
    }
    out
}

fn targets(view: View<'_>, out: &mut String) {
    if view.results.targets.is_empty() {
        return;
    }
    out.push_str("## Targets\n\n");
    for reached in &view.results.targets {
        let _ = writeln!(out, "- {}", escape(&words::target(view, reached)));
    }
    out.push('\n');
}

fn verdicts(view: View<'_>, out: &mut String) {
    if view.results.comparisons.is_empty() {
        return;
    }
    out.push_str("## Comparisons\n\n");
    for comparison in &view.results.comparisons {
        let said = words::say(view, comparison);
        let _ = writeln!(out, "- **{}**: {}. {}", said.badge, escape(&said.headline), escape(&said.size));
        let _ = writeln!(out, "  {}", escape(&said.sure));
        for more in [&said.published, &said.note].into_iter().flatten() {
            let _ = writeln!(out, "  {}", escape(more));
        }
    }
    out.push('\n');
}

/// A line for every published ratio.
fn published(view: View<'_>, out: &mut String) {
    let lines = published::lines(view);
    if lines.is_empty() {
        return;
    }
    out.push_str("## Published and measured\n\n");
    for line in lines {
        let here = line.here.map_or_else(|| "–".to_owned(), number::ratio);
        let note = line.note.map_or_else(String::new, |note| format!(" ({})", escape(&note)));
        let _ = writeln!(
            out,
            "- {}: published {}, here {here}: **{}**{note}",
            escape(&line.what),
            number::ratio(line.published),
            escape(&line.stands.words())
        );
    }
    out.push('\n');
}

fn tables(view: View<'_>, out: &mut String) {
    for grid in tables::all(view) {
        let _ = writeln!(out, "## {}\n", escape(&grid.title));
        if grid.parts.is_empty() {
            out.push_str("No run that counts has these figures.\n\n");
        }
        for part in &grid.parts {
            if let Some(name) = &part.name {
                let _ = writeln!(out, "### {}\n", escape(name));
            }
            let heads: Vec<&str> = grid.heads.iter().map(|(head, _)| *head).collect();
            let _ = writeln!(out, "| {} |", heads.join(" | "));
            let lines = grid.heads.iter().map(|(_, number)| if *number { "--:" } else { "---" });
            let _ = writeln!(out, "|{}|", lines.collect::<Vec<_>>().join("|"));
            for row in &part.rows {
                let fields = row.iter().map(|field| escape(field));
                let _ = writeln!(out, "| {} |", fields.collect::<Vec<_>>().join(" | "));
            }
            out.push('\n');
        }
    }
}

fn figures(view: View<'_>, out: &mut String) {
    out.push_str("## Figures\n\n| measure | condition | load | median | interval | variation | runs | rejected | published | notes |\n");
    out.push_str("|---|---|---|--:|--:|--:|--:|--:|---|---|\n");
    for cell in &view.results.cells {
        let reported = |value: f64| number::long_with_unit(value, view.unit(&cell.measure));
        let row = [
            cell.measure.clone(),
            cell.condition.clone(),
            cell.load.clone().unwrap_or_default(),
            cell.median.map_or_else(|| "–".to_owned(), reported),
            cell.interval.map_or_else(
                || "–".to_owned(),
                |(low, high)| {
                    format!("{} to {} ({})", reported(low), reported(high), number::coverage(cell.coverage()))
                },
            ),
            cell.variation.map_or_else(|| "–".to_owned(), number::percent),
            cell.values.len().to_string(),
            cell.rejected.to_string(),
            cell.published
                .as_ref()
                .map_or_else(String::new, |(value, source)| format!("{} ({source})", reported(*value))),
            words::warnings(cell),
        ];
        let _ = writeln!(out, "| {} |", row.map(|field| escape(&field)).join(" | "));
    }
    out.push('\n');
}

fn differences(view: View<'_>, out: &mut String) {
    out.push_str("## What differs between the conditions\n\n");
    let difference = difference::between_conditions(view);
    if difference.differs.is_empty() {
        out.push_str("Nothing.\n\n");
        return;
    }
    out.push_str("| of | setting | conditions | value |\n|---|---|---|---|\n");
    for row in &difference.differs {
        for value in &row.values {
            let requested = value.requested.as_deref().unwrap_or("not set");
            let fields = [&row.of, &row.name, &value.conditions.join(" · "), requested];
            let _ = writeln!(out, "| {} |", fields.map(escape).join(" | "));
        }
    }
    out.push('\n');
}

/// So that names can't become markup: what Markdown would read is preceded by a backslash, line ends are spaces.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in units::printable(&text.replace(['\n', '\t'], " ")).chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '~' => {
                out.push('\\');
                out.push(character);
            }
            character => out.push(character),
        }
    }
    out
}
