//! The answers of `status` and `history` as JSON: times as RFC 3339 and units in names, as every command has them. The
//! records on disk keep seconds since 1970 and their own names.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

/// Moments, as the records have them.
const MOMENTS: [&str; 4] = ["at", "deadline", "since", "until"];

/// Names that lack their unit.
const RENAMED: [(&str, &str); 2] = [("memory", "memory_bytes"), ("confirm_within", "confirm_within_sec")];

/// The same, at any depth.
pub fn published(value: Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(published).collect()),
        Value::Object(all) => Value::Object(all.into_iter().map(field).collect::<Map<String, Value>>()),
        other => other,
    }
}

fn field((name, value): (String, Value)) -> (String, Value) {
    let value = match value.as_u64().filter(|_| MOMENTS.contains(&name.as_str())).and_then(rfc3339) {
        Some(moment) => Value::String(moment),
        None => published(value),
    };
    let renamed = RENAMED.iter().find(|(from, _)| *from == name).map(|(_, to)| (*to).to_owned());
    (renamed.unwrap_or(name), value)
}

/// `2026-01-31T08:05:09Z` of seconds since 1970; `None` after the year 9999, which the format lacks.
fn rfc3339(seconds: u64) -> Option<String> {
    let moment = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    let moment = moment.filter(|_| seconds < 253_402_300_800)?;
    Some(humantime::format_rfc3339_seconds(moment).to_string())
}
