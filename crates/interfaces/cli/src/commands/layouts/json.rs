//! The answers of the commands about layouts as JSON: times as RFC 3339, units and counts in names, as every command has
//! them. The records on disk keep seconds since 1970 and their own names.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

/// Moments, as the records have them.
const MOMENTS: [&str; 4] = ["at", "deadline", "since", "until"];

/// Names of numbers that lack their unit, or that are lists' elsewhere.
const RENAMED: [(&str, &str); 3] =
    [("memory", "memory_bytes"), ("confirm_within", "confirm_within_sec"), ("steps", "step_count")];

/// The same, at any depth.
pub fn published(value: Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(published).collect()),
        Value::Object(all) => Value::Object(all.into_iter().map(field).collect::<Map<String, Value>>()),
        other => other,
    }
}

fn field((name, value): (String, Value)) -> (String, Value) {
    let renamed = RENAMED.iter().find(|(from, _)| *from == name && !value.is_array());
    let renamed = renamed.map(|(_, to)| (*to).to_owned());
    let seconds = value.as_u64().filter(|_| MOMENTS.contains(&name.as_str()));
    let value = match seconds.and_then(|seconds| moment(Duration::from_secs(seconds))) {
        Some(moment) => Value::String(moment),
        None => published(value),
    };
    (renamed.unwrap_or(name), value)
}

/// `2026-01-31T08:05:09Z`, with what it has of a second, of the time since 1970; `None` after the year 9999, which the
/// format lacks.
pub fn moment(since: Duration) -> Option<String> {
    let moment = SystemTime::UNIX_EPOCH.checked_add(since);
    let moment = moment.filter(|_| since.as_secs() < 253_402_300_800)?;
    Some(humantime::format_rfc3339(moment).to_string())
}
