//! A value in the syntax of the name the setting was requested by, and that syntax in words.

use std::collections::BTreeMap;

use units::{Bytes, Limit};

use crate::names::{NamedSetting, Via};
use crate::parse::Facts;
use crate::setting::{Codec, Kind, Version};
use crate::value::{CpuMax, DeviceNumber, Hundredths, Value};

impl NamedSetting {
    /// A value in the syntax of the name the setting was requested by: `cpu.shares` shows shares,
    /// `cpu.cfs_quota_us` a quota in microseconds or -1.
    pub fn show(&self, value: &Value) -> String {
        let Via::File { version: Version::V1, index } = self.via else { return value.to_string() };
        let Some((_, binding)) = self.spoken() else { return value.to_string() };
        let plain = |limit: Limit<u64>| match (binding.codec, limit) {
            (Codec::Amount { unlimited }, Limit::Max) => unlimited.to_owned(),
            (_, Limit::Max) => "-1".to_owned(),
            (_, Limit::At(number)) => number.to_string(),
        };
        match (binding.codec, value) {
            (Codec::CpuQuota, Value::CpuMax(CpuMax { quota: Some(quota), .. })) if index == 0 => {
                plain(quota.map(|us| us.0))
            }
            (Codec::CpuQuota, Value::CpuMax(CpuMax { period: Some(period), .. })) if index == 1 => {
                period.0.to_string()
            }
            (Codec::WeightScaled { default }, Value::Weight(weight)) => weight.to_scale(default).to_string(),
            (Codec::FlagWords { off, on }, Value::Flag(flag)) => (if *flag { on } else { off }).to_owned(),
            (Codec::WordFlag { on, .. }, Value::Word(word)) => u8::from(word == on).to_string(),
            (Codec::ClassId, Value::ClassId(id)) => id.to_string(),
            (Codec::ReclaimAll, _) => "0".to_owned(),
            (Codec::DeviceFiles, Value::PerDevice(devices)) => {
                let Kind::PerDevice(keys) = self.setting.kind else { return value.to_string() };
                let limit = |of: &BTreeMap<&'static str, Limit<u64>>| of.get(keys[index].name).copied();
                let line = |(device, of)| Some(format!("{device} {}", limit(of)?.at().unwrap_or(0)));
                devices.iter().filter_map(line).collect::<Vec<_>>().join("; ")
            }
            (Codec::WeightFiles { default: scale, .. }, Value::Weights { default, devices }) => {
                let own = |(device, weight): (_, &Option<Hundredths>)| {
                    format!("{device} {}", weight.map_or(0, |weight| weight.to_scale(scale)))
                };
                match default.filter(|_| index == 0) {
                    Some(default) => default.to_scale(scale).to_string(),
                    None => devices.iter().map(own).collect::<Vec<_>>().join("; "),
                }
            }
            (_, Value::Bytes(limit)) => plain(limit.map(|bytes| bytes.0)),
            (_, Value::Micros(limit)) => plain(limit.map(|us| us.0)),
            (_, Value::Count(limit)) => plain(*limit),
            (_, value) => value.to_string(),
        }
    }

    /// What may be written under the name that was used, in words, with an example.
    pub fn expected(&self) -> String {
        format!("{}, such as {}", self.syntax(), self.example())
    }

    fn syntax(&self) -> &'static str {
        let Via::File { version: Version::V1, index } = self.via else { return self.setting.kind.syntax() };
        match (self.spoken().map(|(_, binding)| binding.codec), index) {
            (Some(Codec::CpuQuota), 0) => "a duration in us, ms or s (microseconds without a unit), or -1",
            (Some(Codec::CpuQuota), _) => "a duration in us, ms or s (microseconds without a unit)",
            (Some(Codec::WeightScaled { .. }), _) => "a whole number",
            (Some(Codec::ReclaimAll), _) => "0",
            (Some(Codec::DeviceFiles), _) => "DEVICE LIMIT, several separated by ;",
            (Some(Codec::FlagWords { .. }), _) => "a word",
            (Some(Codec::WordFlag { .. }), _) => Kind::Flag.syntax(),
            _ => self.setting.kind.syntax(),
        }
    }

    /// The table's example in the syntax of the name.
    fn example(&self) -> String {
        let example = match self.spoken().map(|(_, binding)| binding.codec) {
            Some(Codec::DeviceFiles) => "8:16 rbps=1M wbps=1M riops=10 wiops=10", // one key a file
            _ => self.setting.example,
        };
        let canonical = NamedSetting { via: Via::Canonical, ..self.clone() };
        match canonical.parse(example, &NoMachine).map(|value| self.show(&value)) {
            Ok(shown) if !shown.is_empty() => shown,
            _ => example.to_owned(),
        }
    }
}

/// No machine: for values that need none, such as the table's examples. What depends on one is an error.
#[derive(Debug, Clone, Copy)]
pub struct NoMachine;

impl Facts for NoMachine {
    fn memory(&self) -> Option<Bytes> {
        None
    }
    fn cpus(&self) -> Option<usize> {
        None
    }
    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        Err(format!("{path} is on no machine"))
    }
}
