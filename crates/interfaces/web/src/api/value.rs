//! A figure as JSON: short, as a thousand groups have a dozen of them every second.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A figure of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// In the column's unit.
    Number(f64),
    /// No limit, or a reason in words.
    Words(Cow<'static, str>),
    /// The kernel does not report it, or a rate has no beginning yet.
    Missing,
}

impl From<exporters::view::Value> for Value {
    fn from(value: exporters::view::Value) -> Value {
        use exporters::view::Value as Figure;
        match value {
            Figure::Missing => Value::Missing,
            Figure::Absent(why) | Figure::Text(why) => Value::Words(why.into()),
            Figure::Max => Value::Words("max".into()),
            Figure::At(number) => Value::Number(number),
            Figure::Whole(number) => Value::Number(number as f64),
        }
    }
}

/// Four decimals are more than any figure is good for.
const DECIMALS: f64 = 1e4;
/// From here on a number has no decimals.
const LARGE: f64 = 1e6;
/// Whole numbers up to here are exact.
const EXACT: f64 = 9e15;

/// A number without decimals that mean nothing.
pub fn rounded(number: f64) -> f64 {
    if number.abs() >= LARGE { number.round() } else { (number * DECIMALS).round() / DECIMALS }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Missing => to.serialize_unit(),
            Value::Words(words) => to.serialize_str(words),
            Value::Number(number) => {
                let number = rounded(*number);
                if number.fract() == 0.0 && number.abs() < EXACT {
                    to.serialize_i64(number as i64)
                } else {
                    to.serialize_f64(number)
                }
            }
        }
    }
}

impl JsonSchema for Value {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number in the column's unit; \"max\": no limit; another string: a reason in words; null: the kernel does not report it, or a rate has no beginning yet.",
            "type": ["number", "string", "null"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_whole_numbers_have_no_point() {
        let written = |number| serde_json::to_string(&Value::Number(number)).unwrap();
        assert_eq!(written(0.123_456_789), "0.1235");
        assert_eq!(written(8_589_934_592.0), "8589934592");
        assert_eq!(written(0.0), "0");
        assert_eq!(written(f64::NAN), "null");
        assert_eq!(serde_json::to_string(&Value::Missing).unwrap(), "null");
        assert_eq!(serde_json::to_string(&Value::Words("max".into())).unwrap(), "\"max\"");
    }
}
