//! A setting's value as JSON: the form that `settings::Value` is written in, as a type that can be read back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{DeviceClass, DeviceRule, Hundredths, Value};
use units::Limit;

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
    pub quota_us: Option<AmountJson>,
    /// Microseconds.
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

impl From<&Value> for SettingJson {
    fn from(value: &Value) -> SettingJson {
        match value {
            Value::Flag(on) => SettingJson::Flag(*on),
            Value::Number(number) => {
                u64::try_from(*number).map_or(SettingJson::Negative(*number), SettingJson::Amount)
            }
            Value::Count(limit) => limited(*limit, SettingJson::Amount),
            Value::Bytes(limit) => limited(limit.map(|bytes| bytes.0), SettingJson::Amount),
            Value::Micros(limit) => limited(limit.map(|micros| micros.0), SettingJson::Amount),
            Value::CpuTime(time) => SettingJson::Amount(time.0),
            Value::Percent(limit) => limited(limit.map(share), SettingJson::Share),
            Value::Weight(weight) => SettingJson::Share(share(*weight)),
            Value::CpuMax(max) => SettingJson::CpuMax(CpuMaxJson {
                quota_us: max.quota.map(|quota| amount(quota.map(|micros| micros.0))),
                period_us: max.period.map(|micros| micros.0),
            }),
            Value::PerDevice(devices) => SettingJson::Keyed(
                devices
                    .iter()
                    .map(|(device, keys)| {
                        let keys = keys.iter().map(|(key, limit)| ((*key).to_owned(), amount(*limit)));
                        (device.to_string(), keys.collect())
                    })
                    .collect(),
            ),
            Value::Weights { default, devices } => {
                let default = default.map(|weight| ("default".to_owned(), Some(share(weight))));
                let devices = devices.iter().map(|(device, weight)| (device.to_string(), weight.map(share)));
                SettingJson::Weights(default.into_iter().chain(devices).collect())
            }
            Value::Rules(rules) => SettingJson::Rules(rules.iter().map(RuleJson::from).collect()),
            Value::Keyed(names) => SettingJson::Keyed(
                names
                    .iter()
                    .map(|(name, keys)| {
                        let keys =
                            keys.iter().map(|(key, text)| (key.clone(), AmountJson::Text(text.clone())));
                        (name.clone(), keys.collect())
                    })
                    .collect(),
            ),
            Value::Cpus(_) | Value::Nodes(_) | Value::Word(_) | Value::ClassId(_) | Value::Text(_) => {
                SettingJson::Text(value.to_string())
            }
        }
    }
}

fn limited<T>(limit: Limit<T>, at: impl Fn(T) -> SettingJson) -> SettingJson {
    match limit {
        Limit::At(bound) => at(bound),
        Limit::Max => SettingJson::Text("max".to_owned()),
    }
}

fn amount(limit: Limit<u64>) -> AmountJson {
    match limit {
        Limit::At(bound) => AmountJson::Number(bound),
        Limit::Max => AmountJson::Text("max".to_owned()),
    }
}

fn share(hundredths: Hundredths) -> f64 {
    hundredths.0 as f64 / 100.0
}

impl From<&DeviceRule> for RuleJson {
    fn from(rule: &DeviceRule) -> RuleJson {
        let class = match rule.class {
            DeviceClass::All => ClassJson::All,
            DeviceClass::Block => ClassJson::Block,
            DeviceClass::Character => ClassJson::Character,
        };
        RuleJson {
            class,
            major: rule.major,
            minor: rule.minor,
            read: rule.read,
            write: rule.write,
            mknod: rule.mknod,
        }
    }
}

#[cfg(test)]
mod tests {
    use settings::{CpuMax, DeviceNumber};
    use units::{Bytes, Micros, Nanos};

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
