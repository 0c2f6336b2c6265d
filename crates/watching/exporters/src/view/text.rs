//! Pictures as tables for people: headings over several lines, groups indented below those that hold them, numbers
//! with units. Columns that no group has anything for are left out.

use std::{fmt::Write as _, time::Duration};

use units::printable;

use monitor::{Unit, rates::FigureUnit};

use super::{
    cell::{Measure, Value},
    picture::{Heading, Picture},
};

/// A beat that is less late than this is not mentioned.
const LATE: Duration = Duration::from_millis(100);
/// Between columns.
const GAP: usize = 2;

/// The table of groups, with a line for the machine before it if something of the machine was chosen. `bold` begins
/// and ends what a terminal should stress.
pub fn table(picture: &Picture, bold: (&str, &str)) -> String {
    let mut text = String::new();
    for (heading, value) in &picture.machine {
        let _ = writeln!(text, "{}: {}", heading.name, written(*value, heading.measure)); // a String takes everything
    }
    if picture.headings.is_empty() {
        return text;
    }
    let has_value = |column: &usize| picture.rows.iter().any(|row| row.values[*column] != Value::Missing);
    let shown: Vec<usize> = (0..picture.headings.len()).filter(has_value).collect();
    let mut lines = headings(&shown.iter().map(|column| &picture.headings[*column]).collect::<Vec<_>>());
    let heights = lines.len();
    for row in &picture.rows {
        let label = format!("{:indent$}{}", "", printable(&row.label), indent = row.depth * 2);
        let cell = |column: &usize| written(row.values[*column], picture.headings[*column].measure);
        lines.push(std::iter::once(label).chain(shown.iter().map(cell)).collect());
    }
    for (place, line) in columns(&lines, &[0]).lines().enumerate() {
        match place < heights {
            true => _ = writeln!(text, "{}{line}{}", bold.0, bold.1),
            false => _ = writeln!(text, "{line}"),
        }
    }
    for note in &picture.notes {
        let _ = writeln!(text, "note: {}", printable(&note.to_string()));
    }
    text
}

/// Names by their words, one below the other.
fn headings(shown: &[&Heading]) -> Vec<Vec<String>> {
    let words: Vec<Vec<&str>> = shown.iter().map(|heading| heading.name.split('.').collect()).collect();
    let height = words.iter().map(Vec::len).max().unwrap_or(1);
    let line = |index: usize| {
        let first = if index + 1 == height { "group" } else { "" };
        let word = |words: &Vec<&str>| {
            let place = (index + words.len()).checked_sub(height);
            place.and_then(|place| words.get(place)).copied().unwrap_or("").to_owned()
        };
        std::iter::once(first.to_owned()).chain(words.iter().map(word)).collect()
    };
    (0..height).map(line).collect()
}

/// Lines of cells below each other; these columns from the left, the others to the right.
pub(super) fn columns(lines: &[Vec<String>], left: &[usize]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut written = String::new();
        for (column, cell) in line.iter().enumerate() {
            let gap = if column == 0 { 0 } else { GAP };
            let width = widths[column];
            let _ = match left.contains(&column) {
                true => write!(written, "{:gap$}{cell:width$}", ""),
                false => write!(written, "{:gap$}{cell:>width$}", ""),
            };
        }
        let _ = writeln!(text, "{}", written.trim_end());
    }
    text
}

/// How late a picture is and what was missed before it; `None`: in time.
pub fn lateness(late: Duration, missed: u64) -> Option<String> {
    let late = (late >= LATE).then(|| format!("{:.1} s late", late.as_secs_f64()));
    let missed = match missed {
        0 => None,
        1 => Some("1 interval missed".to_owned()),
        more => Some(format!("{more} intervals missed")),
    };
    let both: Vec<String> = late.into_iter().chain(missed).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// A value as people read it, with its unit.
pub fn written(value: Value, measure: Measure) -> String {
    match (value, measure) {
        (Value::Missing, _) => "-".to_owned(),
        (Value::Max, _) => "max".to_owned(),
        (Value::Text(text) | Value::Absent(text), _) => text.to_owned(),
        (Value::Whole(number), Measure::Raw(Unit::Nanos)) => format!("{number}ns"),
        (Value::Whole(number), _) => number.to_string(),
        (Value::At(number), Measure::Figure(unit)) => in_unit(number, unit),
        (Value::At(number), Measure::Raw(_)) => number.to_string(),
    }
}

fn in_unit(number: f64, unit: FigureUnit) -> String {
    match unit {
        FigureUnit::Cpus => format!("{number:.2}"),
        FigureUnit::Share => share(number),
        FigureUnit::Seconds => format!("{number}s"),
        FigureUnit::Bytes => bytes(number),
        FigureUnit::BytesPerSecond => format!("{}/s", bytes(number)),
        FigureUnit::PerSecond => format!("{}/s", few_digits(number)),
        FigureUnit::Count | FigureUnit::Reason => few_digits(number),
        FigureUnit::Flag => if number > 0.0 { "yes" } else { "no" }.to_owned(),
    }
}

/// Hundredths of the whole.
pub(super) fn share(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Three digits or so and a power of 1024.
fn bytes(number: f64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    let mut scaled = number;
    let mut unit = "";
    for larger in UNITS {
        // 1023.96 would be written as 1024.0
        if scaled < 1023.95 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, larger);
    }
    match unit.is_empty() || scaled.fract() == 0.0 {
        true => format!("{scaled:.0}{unit}"),
        false => format!("{scaled:.1}{unit}"),
    }
}

fn few_digits(number: f64) -> String {
    if number.fract() == 0.0 || number >= 100.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{cell::Row, picture::Note};

    #[test]
    fn numbers_are_written_with_their_units() {
        for (number, unit, expected) in [
            (1.5, FigureUnit::Cpus, "1.50"),
            (0.123, FigureUnit::Share, "12.3%"),
            (0.1, FigureUnit::Seconds, "0.1s"),
            (1023.0, FigureUnit::Bytes, "1023"),
            (1023.99, FigureUnit::Bytes, "1.0K"),
            (1024.0, FigureUnit::Bytes, "1K"),
            (1_610_612_736.0, FigureUnit::Bytes, "1.5G"),
            (2_097_152.0, FigureUnit::BytesPerSecond, "2M/s"),
            (0.5, FigureUnit::PerSecond, "0.5/s"),
            (12_345.6, FigureUnit::PerSecond, "12346/s"),
            (17.0, FigureUnit::Count, "17"),
            (1.0, FigureUnit::Flag, "yes"),
        ] {
            assert_eq!(written(Value::At(number), Measure::Figure(unit)), expected);
        }
        assert_eq!(written(Value::Whole(7), Measure::Raw(Unit::Nanos)), "7ns");
        assert_eq!(written(Value::Max, Measure::Raw(Unit::Bytes)), "max");
        assert_eq!(
            written(Value::Text("for want of it"), Measure::Figure(FigureUnit::Reason)),
            "for want of it"
        );
        assert_eq!(written(Value::Missing, Measure::Raw(Unit::Bytes)), "-");
    }

    #[test]
    fn what_was_late_or_missed_is_shown() {
        assert_eq!(lateness(Duration::from_millis(99), 0), None);
        assert_eq!(lateness(Duration::from_millis(1234), 2).unwrap(), "1.2 s late, 2 intervals missed");
        assert_eq!(lateness(Duration::ZERO, 1).unwrap(), "1 interval missed");
    }

    #[test]
    fn a_table_has_stacked_headings_indented_groups_and_no_empty_column() {
        let heading = |name: &str, unit| Heading { name: name.to_owned(), measure: Measure::Figure(unit) };
        let row = |label: &str, depth, values: [Value; 3]| Row {
            group: label.to_owned(),
            label: label.to_owned(),
            depth,
            values: values.to_vec(),
        };
        let picture = Picture {
            notes: vec![Note::Split { group: "a\u{7}".to_owned(), by_hierarchy: "cpu 1, pids 0".to_owned() }],
            at: None,
            late: Duration::ZERO,
            missed: 0,
            headings: vec![
                heading("cpu.pressure.some", FigureUnit::Share),
                heading("frozen", FigureUnit::Flag),
                heading("memory.limit", FigureUnit::Bytes),
            ],
            rows: vec![
                row("db", 0, [Value::At(0.25), Value::Missing, Value::Max]),
                row("a\u{1b}[2J\u{202e}b", 1, [Value::Missing, Value::Missing, Value::At(4096.0)]),
            ],
            machine: vec![(heading("machine.load", FigureUnit::Count), Value::At(0.5))],
        };
        let expected = "\
machine.load: 0.5
<                            cpu>
<                       pressure  memory>
<group                      some   limit>
db                        25.0%     max
  a\\u{1b}[2J\\u{202e}b         -      4K
note: tasks of a\\u{7} by hierarchy: cpu 1, pids 0
";
        assert_eq!(table(&picture, ("<", ">")), expected);
    }
}
