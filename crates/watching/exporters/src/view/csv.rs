//! Pictures as comma-separated values (RFC 4180): a line per group and moment, and one with an empty group for the
//! machine. Columns are those of the first picture: a file has one heading.

use units::csv_cell;

use super::{
    cell::Value,
    picture::{Heading, Picture},
};

/// What was written so far of a file.
#[derive(Debug, Default)]
pub struct Csv {
    names: Option<Vec<String>>,
    /// Columns that came later: already reported, and new.
    reported: Vec<String>,
    left_out: Vec<String>,
}

impl Csv {
    /// The lines of a picture that was taken `at`; the heading before the first.
    pub fn lines(&mut self, picture: &Picture, at: &str) -> String {
        let mut records = Vec::new();
        let all = || picture.headings.iter().chain(picture.machine.iter().map(|(heading, _)| heading));
        let names = self.names.get_or_insert_with(|| {
            let names: Vec<String> = all().map(|heading| heading.name.clone()).collect();
            let fixed = ["time".to_owned(), "group".to_owned()];
            records.push(fixed.into_iter().chain(names.iter().map(|name| csv_cell(name))).collect());
            names
        });
        for Heading { name, .. } in all() {
            if ![&*names, &self.reported, &self.left_out].into_iter().any(|known| known.contains(name)) {
                self.left_out.push(name.clone());
            }
        }
        if !picture.headings.is_empty() {
            records.extend(picture.rows.iter().map(|row| {
                let value = |name: &String| find(&picture.headings, name).map(|place| row.values[place]);
                self::row(at, &row.group, names, value)
            }));
        }
        if !picture.machine.is_empty() {
            let value = |name: &String| {
                picture.machine.iter().find(|(heading, _)| heading.name == *name).map(|(_, value)| *value)
            };
            records.push(row(at, "", names, value));
        }
        text(&records)
    }

    /// Columns that came later (a device's) and have no place; each once.
    pub fn left_out(&mut self) -> Vec<String> {
        let new = std::mem::take(&mut self.left_out);
        self.reported.extend(new.iter().cloned());
        new
    }
}

fn find(headings: &[Heading], name: &str) -> Option<usize> {
    headings.iter().position(|heading| heading.name == name)
}

fn row(at: &str, group: &str, names: &[String], value: impl Fn(&String) -> Option<Value>) -> Vec<String> {
    let cells = names.iter().map(|name| match value(name) {
        None | Some(Value::Missing | Value::Absent(_)) => String::new(),
        Some(Value::Max) => "max".to_owned(),
        Some(Value::Text(text)) => text.to_owned(),
        Some(Value::At(number)) => number.to_string(),
        Some(Value::Whole(number)) => number.to_string(),
    });
    [at.to_owned(), csv_cell(group)].into_iter().chain(cells).collect()
}

fn text(records: &[Vec<String>]) -> String {
    let mut out = ::csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for record in records {
        let _ = out.write_record(record); // a Vec takes everything
    }
    String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::view::cell::{Measure, Row};
    use monitor::rates::FigureUnit;

    fn picture(names: &[&str], groups: &[(&str, &[Value])]) -> Picture {
        let heading =
            |name: &&str| Heading { name: (*name).to_owned(), measure: Measure::Figure(FigureUnit::Count) };
        let row = |(group, values): &(&str, &[Value])| Row {
            group: (*group).to_owned(),
            label: String::new(),
            depth: 0,
            values: values.to_vec(),
        };
        Picture {
            notes: Vec::new(),
            at: None,
            late: Duration::ZERO,
            missed: 0,
            headings: names.iter().map(heading).collect(),
            rows: groups.iter().map(row).collect(),
            machine: Vec::new(),
        }
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut csv = Csv::default();
        let first = picture(&["a", "b"], &[("x,\"y\"", &[Value::Max, Value::Missing])]);
        assert_eq!(csv.lines(&first, "T"), "time,group,a,b\nT,\"x,\"\"y\"\"\",max,\n");
    }

    /// Issue S, point 7: the name of a group is anybody's, and a spreadsheet would work it out.
    #[test]
    fn no_group_begins_a_formula() {
        let first = picture(&["a"], &[("=cmd|'/c calc'!A1", &[Value::At(-0.5)])]);
        assert_eq!(Csv::default().lines(&first, "T"), "time,group,a\nT,'=cmd|'/c calc'!A1,-0.5\n");
    }

    #[test]
    fn columns_stay_those_of_the_first_picture_and_later_ones_are_reported_once() {
        let mut csv = Csv::default();
        csv.lines(&picture(&["a"], &[]), "T");
        let later = picture(&["d/8:0", "a"], &[("g", &[Value::At(0.5), Value::Whole(7)])]);
        assert_eq!(csv.lines(&later, "T"), "T,g,7\n");
        assert_eq!(csv.left_out(), ["d/8:0"]);
        csv.lines(&later, "T");
        assert_eq!(csv.left_out(), [""; 0]);
    }

    #[test]
    fn the_machine_has_a_line_with_an_empty_group() {
        let mut whole = picture(&["a"], &[("g", &[Value::Whole(1)])]);
        let load = Heading { name: "machine.load".to_owned(), measure: Measure::Figure(FigureUnit::Count) };
        whole.machine.push((load, Value::At(0.25)));
        assert_eq!(Csv::default().lines(&whole, "T"), "time,group,a,machine.load\nT,g,1,\nT,,,0.25\n");
    }
}
