//! The rows of a picture: a group each, and what its cells hold.

use serde::{Serialize, Serializer};

use monitor::{Unit, rates::FigureUnit};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Measure {
    /// A rate or a level in whole units.
    Figure(FigureUnit),
    /// As it was read.
    Raw(Unit),
}

/// A group.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its name.
    pub group: String,
    /// Its name below the group above, if that is shown; else the same.
    pub label: String,
    /// How many groups above it are shown.
    pub depth: usize,
    /// A value per heading.
    pub values: Vec<Value>,
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// The kernel does not report it, or a rate has no beginning yet.
    Missing,
    /// It is missing for this reason, which the user can change.
    Absent(&'static str),
    /// A limit that is none.
    Max,
    /// A figure.
    At(f64),
    /// A number as it was read.
    Whole(u64),
    /// One of several reasons.
    Text(&'static str),
}

impl Value {
    /// For comparing; no limit is more than any.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Missing | Value::Absent(_) => None,
            Value::Text(_) => Some(1.0),
            Value::Max => Some(f64::INFINITY),
            Value::At(number) => Some(number),
            Value::Whole(number) => Some(number as f64),
        }
    }

    pub(super) fn plus(self, other: Value) -> Value {
        match (self, other) {
            (Value::Missing | Value::Absent(_), value) | (value, Value::Missing | Value::Absent(_)) => value,
            (Value::Max, _) | (_, Value::Max) => Value::Max,
            (text @ Value::Text(_), _) | (_, text @ Value::Text(_)) => text,
            (Value::Whole(one), Value::Whole(other)) => Value::Whole(one.saturating_add(other)),
            (one, other) => Value::At(one.number().unwrap_or(0.0) + other.number().unwrap_or(0.0)),
        }
    }
}

impl Serialize for Value {
    /// A number, `"max"`, a reason, or null.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Missing | Value::Absent(_) => to.serialize_none(),
            Value::Max => to.serialize_str("max"),
            Value::Text(text) => to.serialize_str(text),
            Value::At(number) => to.serialize_f64(*number),
            Value::Whole(number) => to.serialize_u64(*number),
        }
    }
}
