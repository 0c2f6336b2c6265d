//! A setting's value as JSON: the form that `settings::Value` is written in, as a type that can be read back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use settings::Value;

/// A value: bytes, microseconds and counts as numbers, no limit as `"max"`, lists of CPUs and words as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SettingJson {
    /// On or off.
    Flag(bool),
    /// An amount.
    Amount(u64),
    /// A number below 0.
    Negative(i64),
    /// A share or a percentage.
    Share(f64),
    /// A word, a list, or `max`.
    Text(String),
    /// Device access rules, in order.
    Rules(Vec<RuleJson>),
    /// CPU time per period.
    CpuMax(CpuMaxJson),
    /// Weights by device, and `default`; null: the default again.
    Weights(BTreeMap<String, Option<f64>>),
    /// Values by device or name, and by key.
    Keyed(BTreeMap<String, BTreeMap<String, AmountJson>>),
}

/// An amount, or a word such as `max`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AmountJson {
    /// A number.
    Number(u64),
    /// A word.
    Text(String),
}

/// CPU time per period; null: unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuMaxJson {
    /// Microseconds of CPU time in each period, over all CPUs together.
    #[serde(deserialize_with = "there")]
    pub quota_us: Option<AmountJson>,
    /// Microseconds.
    #[serde(deserialize_with = "there")]
    pub period_us: Option<u64>,
}

/// Which devices may be used how; null: all numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleJson {
    /// Block, character, or both.
    pub class: ClassJson,
    /// The major number.
    pub major: Option<u32>,
    /// The minor number.
    pub minor: Option<u32>,
    /// May it be opened for reading?
    pub read: bool,
    /// For writing?
    pub write: bool,
    /// May its node be made?
    pub mknod: bool,
}

/// The class of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClassJson {
    /// Both.
    All,
    /// Block devices.
    Block,
    /// Character devices.
    Character,
}

/// A field that is there, be it null: without both of these an object is no CPU time per period.
fn there<'de, D: Deserializer<'de>, T: Deserialize<'de>>(field: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(field)
}

impl From<&Value> for SettingJson {
    /// The form itself is written in one place, beside [`Value`].
    fn from(value: &Value) -> SettingJson {
        let written = serde_json::to_value(value).and_then(serde_json::from_value);
        written.unwrap_or_else(|_| SettingJson::Text(value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use settings::{CpuMax, DeviceClass, DeviceNumber, DeviceRule, Hundredths};
    use units::{Bytes, Limit, Micros, Nanos};

    use super::*;

    fn values() -> Vec<Value> {
        let device = DeviceNumber { major: 8, minor: 16 };
        let rule = DeviceRule {
            class: DeviceClass::Character,
            major: Some(1),
            minor: None,
            read: true,
            write: false,
            mknod: true,
        };
        let keyed = [("hugetlb".to_owned(), [(String::new(), "7".to_owned())].into())].into();
        vec![
            Value::Flag(true),
            Value::Number(-1),
            Value::Number(7),
            Value::Count(Limit::Max),
            Value::Count(Limit::At(u64::MAX)),
            Value::Bytes(Limit::At(Bytes(1 << 40))),
            Value::Micros(Limit::At(Micros(5))),
            Value::CpuTime(Nanos(9)),
            Value::Percent(Limit::At(Hundredths(1234))),
            Value::Percent(Limit::Max),
            Value::Weight(Hundredths(9766)),
            Value::Weight(Hundredths(10_000)),
            Value::CpuMax(CpuMax { quota: Some(Limit::Max), period: None }),
            Value::CpuMax(CpuMax { quota: Some(Limit::At(Micros(3))), period: Some(Micros(4)) }),
            Value::CpuMax(CpuMax::default()),
            Value::Cpus("0-3,7".parse().unwrap()),
            Value::Nodes("0".parse().unwrap()),
            Value::Word("root invalid (x)".to_owned()),
            Value::PerDevice([(device, [("rbps", Limit::At(1)), ("wbps", Limit::Max)].into())].into()),
            Value::Weights { default: Some(Hundredths(10_000)), devices: [(device, None)].into() },
            Value::Weights { default: None, devices: [(device, Some(Hundredths(250)))].into() },
            Value::Rules(vec![rule]),
            Value::ClassId(0x10001),
            Value::Keyed(keyed),
            Value::Text("a b".to_owned()),
            // without a limit of a device, `{}` was read as a quota and a period that are null
            Value::PerDevice([].into()),
            Value::Weights { default: None, devices: [].into() },
            Value::Keyed([].into()),
            Value::Rules(Vec::new()),
        ]
    }

    #[test]
    fn every_kind_is_written_as_settings_writes_it_and_reads_back_the_same() {
        for value in values() {
            let sent = SettingJson::from(&value);
            let text = serde_json::to_string(&sent).unwrap();
            let own = serde_json::to_value(&value).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), own, "{value:?}");
            assert_eq!(serde_json::from_str::<SettingJson>(&text).unwrap(), sent, "{text}");
        }
    }
}
