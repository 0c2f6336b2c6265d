//! Pictures as comma-separated values (RFC 4180): a line per group and moment, and one with an empty group for the
//! machine. Columns are those of the first picture: a file has one heading.

use super::{
    cell::Value,
    picture::{Heading, Picture},
};

/// What was written so far of a file.
#[derive(Debug, Default)]
pub struct Csv {
    names: Option<Vec<String>>,
    /// Columns that came later: told, and to be told.
    told: Vec<String>,
    left_out: Vec<String>,
}

impl Csv {
    /// The lines of a picture that was taken `at`; the heading before the first.
    pub fn lines(&mut self, picture: &Picture, at: &str) -> String {
        let mut text = String::new();
        let all = || picture.headings.iter().chain(picture.machine.iter().map(|(heading, _)| heading));
        let names = self.names.get_or_insert_with(|| {
            let names: Vec<String> = all().map(|heading| heading.name.clone()).collect();
            let heading = ["time".to_owned(), "group".to_owned()];
            line(heading.iter().chain(&names).map(String::as_str), &mut text);
            names
        });
        for heading in all() {
            let name = &heading.name;
            if !names.contains(name) && !self.told.contains(name) && !self.left_out.contains(name) {
                self.left_out.push(name.clone());
            }
        }
        if !picture.headings.is_empty() {
            for row in &picture.rows {
                let value = |name: &String| find(&picture.headings, name).map(|place| row.values[place]);
                self::row(at, &row.group, names, value, &mut text);
            }
        }
        if !picture.machine.is_empty() {
            let value = |name: &String| {
                picture.machine.iter().find(|(heading, _)| heading.name == *name).map(|(_, value)| *value)
            };
            row(at, "", names, value, &mut text);
        }
        text
    }

    /// Columns that came later (a device's) and have no place; each once.
    pub fn left_out(&mut self) -> Vec<String> {
        let new = std::mem::take(&mut self.left_out);
        self.told.extend(new.iter().cloned());
        new
    }
}

fn find(headings: &[Heading], name: &str) -> Option<usize> {
    headings.iter().position(|heading| heading.name == name)
}

fn row(at: &str, group: &str, names: &[String], value: impl Fn(&String) -> Option<Value>, to: &mut String) {
    let cells = names.iter().map(|name| match value(name) {
        None | Some(Value::Missing | Value::Absent(_)) => String::new(),
        Some(Value::Max) => "max".to_owned(),
        Some(Value::Text(text)) => text.to_owned(),
        Some(Value::At(number)) => number.to_string(),
        Some(Value::Whole(number)) => number.to_string(),
    });
    let cells: Vec<String> = [at.to_owned(), group.to_owned()].into_iter().chain(cells).collect();
    line(cells.iter().map(String::as_str), to);
}

fn line<'c>(cells: impl Iterator<Item = &'c str>, to: &mut String) {
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            to.push(',');
        }
        match cell.contains([',', '"', '\n', '\r']) {
            true => {
                to.push('"');
                to.push_str(&cell.replace('"', "\"\""));
                to.push('"');
            }
            false => to.push_str(cell),
        }
    }
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        rates::FigureUnit,
        view::cell::{Measure, Row},
    };

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

    #[test]
    fn columns_stay_those_of_the_first_picture_and_later_ones_are_told_once() {
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
