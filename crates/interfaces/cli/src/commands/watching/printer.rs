//! Prints pictures one after the other: a table for people, lines of JSON or CSV for programs.

use std::{io::IsTerminal, time::SystemTime};

use exporters::view::{self, Csv, Heading, Picture, Value};
use monitor::Beat;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::time;
use crate::{failure::Failure, output};

pub enum Printer {
    /// Whether it is the first, which no empty line stands before.
    Text {
        first: bool,
    },
    Csv(Csv),
    Json,
}

impl Printer {
    pub fn new(csv: bool, json: bool) -> Result<Printer, Failure> {
        match (csv, json) {
            (true, true) => Err(Failure::usage("use --csv or --json, not both")),
            (true, false) => Ok(Printer::Csv(Csv::default())),
            (false, true) => Ok(Printer::Json),
            (false, false) => Ok(Printer::Text { first: true }),
        }
    }

    pub fn print(&mut self, picture: &Picture) -> Result<(), Failure> {
        match self {
            Printer::Text { first } => {
                let beat = Beat { late: picture.late, missed: picture.missed };
                let head = headline(picture.at, beat, std::mem::take(first), "");
                output::text(&format!("{head}{}", view::table(picture, stress())))
            }
            Printer::Csv(csv) => {
                let text = csv.lines(picture, &time(picture.at));
                for name in csv.left_out() {
                    output::warning(&format!("{name} came after the heading and is left out"));
                }
                output::text(&text)
            }
            Printer::Json => line(&as_json(picture)),
        }
    }
}

/// When a picture was taken, and how late.
pub fn headline(at: Option<SystemTime>, beat: Beat, first: bool, more: &str) -> String {
    let empty = if first { "" } else { "\n" };
    let late = view::lateness(beat.late, beat.missed).map(|late| format!("  ({late})"));
    format!("{empty}{}{more}{}\n", time(at), late.unwrap_or_default())
}

/// One line of JSON.
pub fn line(value: &impl Serialize) -> Result<(), Failure> {
    let rendered =
        serde_json::to_string(value).map_err(|error| Failure::new(format!("cannot render JSON: {error}")))?;
    output::text(&format!("{rendered}\n"))
}

fn as_json(picture: &Picture) -> Json {
    let machine_headings = picture.machine.iter().map(|(heading, _)| heading);
    let units: Map<String, Json> = picture
        .headings
        .iter()
        .chain(machine_headings)
        .map(|heading| (heading.name.clone(), json!(heading.measure)))
        .collect();
    let groups: Map<String, Json> = picture
        .rows
        .iter()
        .map(|row| (row.group.clone(), shown(picture.headings.iter().zip(row.values.iter().copied()))))
        .collect();
    let mut whole = json!({
        "at": time(picture.at),
        "late_sec": picture.late.as_secs_f64(),
        "missed": picture.missed,
        "units": units,
        "groups": groups,
        "machine": shown(picture.machine.iter().map(|(heading, value)| (heading, *value))),
    });
    if !picture.notes.is_empty() {
        whole["notes"] = json!(picture.notes.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    whole
}

/// Without what is missing.
fn shown<'p>(values: impl Iterator<Item = (&'p Heading, Value)>) -> Json {
    let known = values.filter(|(_, value)| !matches!(value, Value::Missing | Value::Absent(_)));
    known.map(|(heading, value)| (heading.name.clone(), json!(value))).collect::<Map<_, _>>().into()
}

/// What begins and ends bold on a terminal.
fn stress() -> (&'static str, &'static str) {
    match std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => ("\x1b[1m", "\x1b[0m"),
        false => ("", ""),
    }
}
