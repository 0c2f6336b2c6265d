//! `history`: who changed what when, and how it ended.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use apply::{By, Ending, Kind, Record};
use serde_json::{Value, json};

use super::{counted, history_of};
use crate::{args, failure::Failure, output};

pub fn history(args: &args::StateArgs, as_json: bool) -> Result<(), Failure> {
    let records = apply::history(&history_of(args))?;
    if as_json {
        return output::json(&records.iter().map(row).collect::<Vec<Value>>());
    }
    if records.is_empty() {
        return output::text("nothing was applied yet\n");
    }
    let who: Vec<String> = records.iter().map(|record| person(&record.head.by)).collect();
    let width = who.iter().map(|who| who.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (record, who) in records.iter().zip(&who) {
        let head = &record.head;
        let _ = writeln!(
            text,
            "{:4}  {}  {who:width$}  {:12}  {:>9}  {}",
            head.generation,
            time(head.at),
            result(record),
            counted(head.steps, "step"),
            what(record)
        );
        if let Some(error) = record.result.as_ref().and_then(|result| result.error.as_ref()) {
            let _ = writeln!(text, "      {}", error.replace('\n', "\n      "));
        }
    }
    output::text(&text)
}

/// The whole head with the result, and the time as people write it beside the seconds.
fn row(record: &Record) -> Value {
    json!({ "head": record.head, "time": time(record.head.at), "result": record.result })
}

/// Of a moment in seconds since 1970: `2026-01-31 08:05:09 UTC`, the same for every reader.
pub fn time(seconds: u64) -> String {
    let moment = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    // the year 10000 has no such form
    let moment = moment.filter(|_| seconds < 253_402_300_800);
    let written = moment.map(|moment| humantime::format_rfc3339_seconds(moment).to_string());
    written.map_or_else(|| format!("@{seconds}"), |text| text.replace('T', " ").replace('Z', " UTC"))
}

/// Who logged in, else as whom.
pub fn person(by: &By) -> String {
    by.login.clone().unwrap_or_else(|| if by.uid == 0 { "root".to_owned() } else { by.uid.to_string() })
}

/// `undo to 3: not confirmed within 60 s`.
pub fn what(record: &Record) -> String {
    match record.head.kind {
        Kind::Apply => record.head.what.clone(),
        Kind::Undo { to } if record.head.what == "undo" => format!("undo to generation {to}"),
        Kind::Undo { to } => format!("undo to generation {to}: {}", record.head.what),
    }
}

fn result(record: &Record) -> &'static str {
    match record.result.as_ref().map(|result| result.ending) {
        None => "under way",
        Some(Ending::Done) => "done",
        Some(Ending::RolledBack) => "rolled back",
        Some(Ending::Partly) => "partly undone",
        Some(Ending::NotBegun) => "not begun",
        Some(Ending::LostAtBoot) => "lost at boot",
    }
}
