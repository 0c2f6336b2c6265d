//! Results on a terminal: what to take home first, then verdicts and figures, then where the report is.

use std::{fmt::Write, path::Path};

use experiment::{
    Results,
    file::Better,
    results::{Cell, Comparison, Verdict},
};

use units::hint::Command;

use crate::failure::printable_lines;

pub fn of(results: &Results, directory: &Path) -> String {
    let mut text = String::new();
    // writing to a String can't fail
    let _ = writeln!(text, "{}\n{}\n", results.experiment.title, report::takeaway(results));
    for line in report::targets(results) {
        let _ = writeln!(text, "{line}");
    }
    if !results.targets.is_empty() {
        text.push('\n');
    }
    for comparison in &results.comparisons {
        let _ = writeln!(text, "{}", verdict(results, comparison));
    }
    if !results.comparisons.is_empty() {
        text.push('\n');
    }
    figures(&mut text, results);
    for note in &results.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let rejected = results.runs.iter().filter(|run| run.rejected.is_some()).count();
    if rejected > 0 {
        let of = results.runs.len();
        let _ = writeln!(
            text,
            "note: {rejected} of {of} runs were rejected: they stay in the results and decide nothing"
        );
    }
    if results.cells.iter().any(|cell| cell.values.is_empty() && !cell.rejected_values.is_empty()) {
        text.push_str("note: figures in brackets are of rejected runs alone\n");
    }
    if !results.complete {
        let resume = Command::ringfence("lab run --resume").arg(directory.display().to_string());
        let _ = writeln!(
            text,
            "note: runs are missing: the figures are of those that count; {resume} makes them"
        );
    }
    let _ = writeln!(text, "\nreport: {}", directory.join("report.html").display());
    // names come from files that may be somebody else's
    printable_lines(&text)
}

fn verdict(results: &Results, comparison: &Comparison) -> String {
    let measure = results.experiment.measure.iter().find(|measure| measure.name == comparison.measure);
    let is_rate = measure.is_none_or(|measure| measure.better == Better::Higher);
    let word = match (comparison.verdict, is_rate) {
        (Verdict::Faster, true) => "more",
        (Verdict::Slower, true) => "less",
        (Verdict::Faster, false) => "better",
        (Verdict::Slower, false) => "worse",
        (Verdict::Equivalent, _) => "no relevant difference",
        (Verdict::Inconclusive, _) => "inconclusive",
    };
    let under = comparison.load.as_ref().map(|load| format!(" under {load}")).unwrap_or_default();
    format!(
        "{}: {} against {}{under}: {word}; {}",
        comparison.measure, comparison.condition, comparison.baseline, comparison.because
    )
}

/// The median; of a cell of which no run counts, that of the rejected ones, in brackets.
fn figure(cell: &Cell, unit: &str) -> String {
    match (cell.median, median(&cell.rejected_values)) {
        (Some(median), _) => report::figure(median, unit),
        (None, Some(rejected)) => format!("({})", report::figure(rejected, unit)),
        (None, None) => "–".to_owned(),
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// A row per condition and load, a column per measure.
fn figures(text: &mut String, results: &Results) {
    let measures = &results.experiment.measure;
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    rows[0].extend(measures.iter().map(|measure| measure.name.clone()));
    let mut named: Vec<(&str, Option<&str>)> = Vec::new();
    for cell in &results.cells {
        let key = (cell.condition.as_str(), cell.load.as_deref());
        if !named.contains(&key) {
            named.push(key);
        }
    }
    for (condition, load) in named {
        let mut row = vec![load.map_or_else(|| condition.to_owned(), |load| format!("{condition}, {load}"))];
        row.extend(measures.iter().map(|measure| {
            let is_it = |cell: &&Cell| {
                cell.condition == condition && cell.load.as_deref() == load && cell.measure == measure.name
            };
            results
                .cells
                .iter()
                .find(is_it)
                .map_or_else(|| "–".to_owned(), |cell| figure(cell, &measure.unit))
        }));
        rows.push(row);
    }
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..=measures.len()).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells: Vec<String> = cells
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text.push('\n');
}
