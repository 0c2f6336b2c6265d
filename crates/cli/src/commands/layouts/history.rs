//! `history`: who changed what when, and how it ended.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use apply::{By, Ending, Head, Kept, Kind};
use serde_json::{Value, json};

use super::{counted, history_of};
use crate::{args, failure::Failure, output};

pub fn history(args: &args::StateArgs, as_json: bool) -> Result<(), Failure> {
    let all = apply::kept(&history_of(args))?;
    if as_json {
        return output::json(&all.iter().map(row).collect::<Vec<Value>>());
    }
    if all.is_empty() {
        return output::text("nothing was applied yet\n");
    }
    let width = all.iter().filter_map(head).map(|head| person(&head.by).chars().count()).max().unwrap_or(0);
    output::text(&all.iter().map(|kept| line(kept, width)).collect::<String>())
}

fn head(kept: &Kept) -> Option<&Head> {
    match kept {
        Kept::Finished(summary) => Some(&summary.head),
        Kept::Unfinished { head, .. } => Some(head),
        Kept::Damaged { .. } => None,
    }
}

/// One line, and below it what went wrong; `width`: of the names.
fn line(kept: &Kept, width: usize) -> String {
    let mut text = match head(kept) {
        None => format!("{:4}  {}\n", kept.generation(), result(kept)),
        Some(head) => format!(
            "{:4}  {}  {:width$}  {:12}  {:>9}  {}\n",
            head.generation,
            time(head.at),
            person(&head.by),
            result(kept),
            counted(head.steps, "step"),
            what(head)
        ),
    };
    for wrong in wrong(kept) {
        // writing to a String never fails
        let _ = writeln!(text, "      {}", wrong.replace('\n', "\n      "));
    }
    text
}

fn wrong(kept: &Kept) -> Vec<String> {
    match kept {
        Kept::Finished(summary) => {
            let Some(result) = &summary.result else { return Vec::new() };
            // an error has in it what is left
            let left = if result.error.is_none() { result.left.as_slice() } else { &[] };
            result.error.iter().chain(left).cloned().collect()
        }
        Kept::Unfinished { head, lives: false } => {
            let process = head.by.pid;
            vec![format!("process {process} ended before it was done; the next apply or undo puts it back")]
        }
        Kept::Unfinished { head, lives: true } => vec![format!("by process {}", head.by.pid)],
        Kept::Damaged { failure, .. } => {
            let hint = failure.hint().map(|hint| format!("hint: {hint}"));
            [failure.to_string()].into_iter().chain(hint).collect()
        }
    }
}

/// The whole head with the result, the state in a word, and the time as people write it beside the seconds.
fn row(kept: &Kept) -> Value {
    let state = result(kept);
    match kept {
        Kept::Finished(summary) => {
            let head = &summary.head;
            json!({ "head": head, "time": time(head.at), "state": state, "result": summary.result })
        }
        Kept::Unfinished { head, .. } => {
            json!({ "head": head, "time": time(head.at), "state": state, "result": null })
        }
        Kept::Damaged { generation, failure } => {
            json!({ "generation": generation, "state": state, "error": failure.to_string(), "hint": failure.hint() })
        }
    }
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
pub fn what(head: &Head) -> String {
    match head.kind {
        Kind::Apply => head.what.clone(),
        Kind::Undo { to } if head.what == "undo" => format!("undo to generation {to}"),
        Kind::Undo { to } => format!("undo to generation {to}: {}", head.what),
    }
}

fn result(kept: &Kept) -> &'static str {
    let result = match kept {
        Kept::Damaged { .. } => return "damaged",
        Kept::Unfinished { lives: true, .. } => return "under way",
        Kept::Unfinished { lives: false, .. } => return "broken off",
        Kept::Finished(summary) => summary.result.as_ref(),
    };
    match result.map(|result| (result.ending, result.left.is_empty())) {
        None => "damaged",
        Some((Ending::Done, true)) => "done",
        Some((Ending::Done, false)) => "done in part",
        Some((Ending::RolledBack, _)) => "rolled back",
        Some((Ending::Partly, _)) => "partly undone",
        Some((Ending::NotBegun, _)) => "not begun",
        Some((Ending::LostAtBoot, _)) => "lost at boot",
    }
}
