//! The demonstration's result for people: the machine, the table, the settings used, and what is off.

use super::{DemoResult, Row, Verdict};

/// The whole result. With `colour`, verdicts are coloured by ECMA-48 sequences: for a terminal only.
pub fn text(result: &DemoResult, colour: bool) -> String {
    let mut out = topology::print::text(&result.machine);
    section(&mut out, "Controllers", result.controllers.iter().cloned());
    section(&mut out, "Measured", table(&result.rows, colour));
    let lines = result.settings.iter().flat_map(|applied| {
        let wrote = applied.wrote.iter().map(|line| format!("    {line}"));
        std::iter::once(applied.command.clone()).chain(wrote)
    });
    section(&mut out, "Settings used", lines);
    let notes = result.rows.iter().filter(|row| row.verdict != Verdict::Failed);
    let notes = notes.filter_map(|row| Some(format!("{}: {}", row.condition, row.note.as_ref()?)));
    section(&mut out, "Notes", notes);
    let failures = result.failures.iter().flat_map(|failure| {
        let hint = failure.hint.as_ref().map(|hint| format!("    hint: {hint}"));
        std::iter::once(format!("{}: {}", failure.of, failure.error)).chain(hint)
    });
    section(&mut out, "Failed", failures);
    let removed =
        result.removed.iter().map(|group| format!("removed {group}, left by a killed demonstration"));
    section(&mut out, "Cleaned up", removed);
    let (repetitions, seconds) = (result.lengths.repetitions, result.seconds);
    out +=
        &format!("\nMedians of {repetitions} alternating runs, with their range; {seconds:.0} s in all.\n");
    out
}

/// Nothing without lines.
fn section(out: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let lines: Vec<String> = lines.into_iter().collect();
    if !lines.is_empty() {
        *out += &format!("\n{title}\n");
        lines.iter().for_each(|line| *out += &format!("  {line}\n"));
    }
}

/// Columns that line up; the verdict comes first, as it has a fixed width and is looked for first. What was seen
/// besides goes below what was measured.
fn table(rows: &[Row], colour: bool) -> Vec<String> {
    let head = ["", "condition", "asked", "measured"].map(str::to_owned);
    let body = rows.iter().map(|row| {
        [word(row.verdict).to_owned(), row.condition.clone(), row.asked.clone(), row.measured.clone()]
    });
    let lines: Vec<[String; 4]> = std::iter::once(head).chain(body).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let print = |code: &str, [verdict, condition, asked, measured]: &[String; 4]| {
        let verdict = format!("{verdict:0$}", widths[0]);
        let verdict =
            if colour && !code.is_empty() { format!("\x1b[{code}m{verdict}\x1b[0m") } else { verdict };
        format!("{verdict}  {condition:0$}  {asked:1$}  {measured}", widths[1], widths[2])
    };
    let indent = " ".repeat(widths.iter().sum::<usize>() + 6);
    let mut out = vec![print("", &lines[0])];
    for (row, line) in rows.iter().zip(&lines[1..]) {
        out.push(print(code(row.verdict), line));
        out.extend(details(row).map(|details| format!("{indent}{details}")));
    }
    out
}

fn details(row: &Row) -> Option<String> {
    let disturbed = match (row.disturbed, row.left_out) {
        (true, _) => "every run was disturbed".to_owned(),
        (false, 0) => String::new(),
        (false, count) => format!("disturbed runs left out: {count}"),
    };
    let parts: Vec<String> =
        [row.details.clone(), disturbed].into_iter().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Off => "off",
        Verdict::Comparison => "-",
        Verdict::Failed => "FAILED",
    }
}

fn code(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "32",
        Verdict::Off => "33",
        Verdict::Comparison => "",
        Verdict::Failed => "31",
    }
}
