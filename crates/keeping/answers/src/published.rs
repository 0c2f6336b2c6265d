//! What a record on the disk has, as it is printed: times as RFC 3339, units and counts in names, as every command has them. The
//! disk keeps seconds since 1970 and its own names. For `serde(with)`, and for [`moment`].

use std::time::{Duration, SystemTime};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::Error as _,
};
use serde_json::{Map, Value};

/// Moments, as the records have them.
const MOMENTS: [&str; 4] = ["at", "deadline", "since", "until"];

/// Names of numbers that lack their unit, or that are lists' elsewhere.
const RENAMED: [(&str, &str); 4] = [
    ("memory", "memory_bytes"),
    ("confirm_within", "confirm_within_sec"),
    ("uptime", "uptime_ms"),
    ("steps", "step_count"),
];

pub fn serialize<T: Serialize, S: Serializer>(record: &T, to: S) -> Result<S::Ok, S::Error> {
    published(serde_json::to_value(record).map_err(S::Error::custom)?).serialize(to)
}

pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    serde_json::from_value(recorded(Value::deserialize(from)?)).map_err(D::Error::custom)
}

/// At any depth.
pub fn published(value: Value) -> Value {
    each(value, &|name, value| {
        let renamed = RENAMED.iter().find(|(from, _)| *from == name && !value.is_array());
        let seconds = value.as_u64().filter(|_| MOMENTS.contains(&name));
        let moment = seconds.and_then(|seconds| moment(Duration::from_secs(seconds)));
        (renamed.map_or(name, |(_, to)| to).to_owned(), moment.map(Value::String))
    })
}

/// And back.
fn recorded(value: Value) -> Value {
    each(value, &|name, value| {
        let renamed = RENAMED.iter().find(|(_, to)| *to == name);
        let moment = value.as_str().filter(|_| MOMENTS.contains(&name)).map(humantime::parse_rfc3339);
        let since = moment.and_then(|moment| moment.ok()?.duration_since(SystemTime::UNIX_EPOCH).ok());
        (renamed.map_or(name, |(from, _)| from).to_owned(), since.map(|since| since.as_secs().into()))
    })
}

/// A field's name, and its value if that is another one.
type Renamed = (String, Option<Value>);

/// Each field by another name, and those with another value by that.
fn each(value: Value, field: &dyn Fn(&str, &Value) -> Renamed) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(|one| each(one, field)).collect(),
        Value::Object(all) => {
            let all = all.into_iter().map(|(name, value)| {
                let (name, other) = field(&name, &value);
                (name, other.unwrap_or_else(|| each(value, field)))
            });
            Value::Object(all.collect::<Map<String, Value>>())
        }
        other => other,
    }
}

/// `2026-01-31T08:05:09Z`, with what it has of a second, of the time since 1970; `None` after the year 9999, which the
/// format lacks.
pub fn moment(since: Duration) -> Option<String> {
    let moment = SystemTime::UNIX_EPOCH.checked_add(since);
    let moment = moment.filter(|_| since.as_secs() < 253_402_300_800)?;
    Some(humantime::format_rfc3339(moment).to_string())
}
