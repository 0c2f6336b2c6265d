//! Results on a terminal: verdicts first, then the figures, then where the report is.

use std::{fmt::Write, path::Path};

use experiment::{
    Results,
    file::Better,
    results::{Cell, Comparison, Verdict},
};

pub fn of(results: &Results, directory: &Path) -> String {
    let mut text = String::new();
    // writing to a String can't fail
    let _ = writeln!(text, "{}\n", results.experiment.title);
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
        let _ =
            writeln!(text, "note: {rejected} of {} runs were rejected and made again", results.runs.len());
    }
    if !results.complete {
        text.push_str("note: runs are missing: the figures are of those that count\n");
    }
    let _ = writeln!(text, "\nreport: {}", directory.join("report.html").display());
    text
}

fn verdict(results: &Results, comparison: &Comparison) -> String {
    let measure = results.experiment.measure.iter().find(|measure| measure.name == comparison.measure);
    let is_rate = measure.is_none_or(|measure| measure.better == Better::Higher);
    let word = match (comparison.verdict, is_rate) {
        (Verdict::Faster, true) => "more",
        (Verdict::Slower, true) => "less",
        (Verdict::Faster, false) => "better",
        (Verdict::Slower, false) => "worse",
        (Verdict::Equivalent, _) => "equivalent",
        (Verdict::Inconclusive, _) => "inconclusive",
    };
    let under = comparison.load.as_ref().map(|load| format!(" under {load}")).unwrap_or_default();
    format!(
        "{}: {} against {}{under}: {word}; {}",
        comparison.measure, comparison.condition, comparison.baseline, comparison.because
    )
}

/// A row per condition and load, a column per measure.
fn figures(text: &mut String, results: &Results) {
    let measures = &results.experiment.measure;
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    rows[0].extend(measures.iter().map(|measure| match measure.unit.as_str() {
        "" => measure.name.clone(),
        unit => format!("{} ({unit})", measure.name),
    }));
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
                .and_then(|cell| cell.median)
                .map_or_else(|| "–".to_owned(), number)
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

/// Four digits that count.
fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let behind = usize::try_from((3 - digits).clamp(0, 9)).unwrap_or(0);
    format!("{value:.behind$}")
}
