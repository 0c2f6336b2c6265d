//! A value to the writes that set it: which text goes to which file, in the order the kernel accepts. One entry is
//! one write(2). What a group holds at present comes in by a function; nothing is opened here.

use std::collections::BTreeMap;

use units::{Limit, Micros};

use crate::decode::{self, Files};
use crate::laws::Law;
use crate::names::NamedSetting;
use crate::rule::{DeviceClass, DeviceRule};
use crate::setting::{Access, Binding, Codec, Kind, OutOfRange, Range, Side, Version};
use crate::value::{CpuMax, DeviceNumber, Hundredths, Value};

/// One write to one file of a group.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileWrite {
    /// The file's name in the group's directory.
    pub file: String,
    /// The text, without a newline.
    pub text: String,
}

/// Why a value can't be written on a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The version has no such setting.
    #[error("cgroup {version} has no {name}")]
    Lacks {
        /// The setting.
        name: String,
        /// The version.
        version: Version,
        /// What to use instead.
        instead: &'static str,
    },
    /// The setting can only be read.
    #[error("{name} can only be read")]
    ReadOnly {
        /// The setting.
        name: String,
    },
    /// The version has the setting, but can't hold this value.
    #[error("cgroup {version} can't hold {name}={value}: {reason}")]
    NotThere {
        /// The setting.
        name: String,
        /// The version.
        version: Version,
        /// The value.
        value: String,
        /// Why not, and what can be had.
        reason: String,
    },
    /// The value depends on a file that could not be read or understood.
    #[error("{name} can't be set without knowing {file}")]
    NeedsCurrent {
        /// The setting.
        name: String,
        /// The file.
        file: String,
    },
    /// The value is not of the setting's kind: a mistake of the calling program.
    #[error("{name} does not take a value such as '{value}'")]
    WrongKind {
        /// The setting.
        name: String,
        /// The value.
        value: String,
    },
    /// A BPF program holds it, not a file.
    #[error("{name} is in a device program on cgroup v2, not in a file")]
    Program {
        /// The setting.
        name: String,
    },
}

impl EncodeError {
    /// What to do instead, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            EncodeError::Lacks { instead, .. } => Some((*instead).to_owned()),
            _ => None,
        }
    }
}

impl NamedSetting {
    /// The writes that give a group `value` on `version`.
    ///
    /// # Errors
    /// See [`EncodeError`]; no error for a value in range of a setting that the version has exactly.
    pub fn encode(
        &self,
        version: Version,
        value: &Value,
        current: Files<'_>,
    ) -> Result<Vec<FileWrite>, EncodeError> {
        let name = self.name.clone();
        let binding = match self.side(version) {
            Side::Has(_) if self.setting.access == Access::Read => {
                return Err(EncodeError::ReadOnly { name });
            }
            Side::Has(binding) => binding,
            Side::Lacks { instead } => return Err(EncodeError::Lacks { name, version, instead }),
        };
        if binding.codec == Codec::DeviceProgram {
            return Err(EncodeError::Program { name });
        }
        let target = Target { found: self, version, binding, value };
        target.check_range()?;
        target.writes(current)
    }
}

/// Where a value goes.
struct Target<'a> {
    found: &'a NamedSetting,
    version: Version,
    binding: &'a Binding,
    value: &'a Value,
}

impl Target<'_> {
    /// A value may come from the other version's syntax, whose range differs.
    fn check_range(&self) -> Result<(), EncodeError> {
        let Range::Between { min, max } = self.binding.range else { return Ok(()) };
        let number = match self.value {
            Value::Number(number) => i128::from(*number),
            Value::Count(Limit::At(count)) => i128::from(*count),
            Value::Bytes(Limit::At(bytes)) => i128::from(bytes.0),
            Value::Micros(Limit::At(micros)) => i128::from(micros.0),
            Value::CpuTime(time) => i128::from(time.0),
            _ => return Ok(()), // weights are clamped, the others checked when they were read
        };
        let fits = (i128::from(min)..=i128::from(max)).contains(&number);
        if fits || self.binding.out_of_range == OutOfRange::Clamped {
            return Ok(());
        }
        Err(self.not_there(format!("it must be {min} to {max}")))
    }

    fn writes(&self, current: Files<'_>) -> Result<Vec<FileWrite>, EncodeError> {
        let one = |text: String| Ok(vec![self.write(0, text)]);
        match (self.binding.codec, self.value) {
            (Codec::Flag | Codec::FlagInStat(_), Value::Flag(on)) => one(u8::from(*on).to_string()),
            (Codec::FlagWords { off, on }, Value::Flag(value)) => {
                one((if *value { on } else { off }).to_owned())
            }
            (Codec::Number, Value::Number(number)) => one(number.to_string()),
            (Codec::Text | Codec::StatField { .. }, _) => {
                Err(self.not_there("it can only be read there".to_owned()))
            }
            (Codec::Line, Value::Text(line)) => one(line.clone()),
            (Codec::Amount { unlimited }, value) => match amount(value) {
                Some(Limit::At(number)) => one(number.to_string()),
                Some(Limit::Max) if unlimited.is_empty() => {
                    Err(self.not_there("it always is a number".to_owned()))
                }
                Some(Limit::Max) => one(unlimited.to_owned()),
                None => Err(self.wrong_kind()),
            },
            (Codec::Reset, Value::Count(Limit::At(0)) | Value::Bytes(Limit::At(units::Bytes(0)))) => {
                one("0".to_owned())
            }
            (Codec::Reset, _) => Err(self.not_there("it can only be reset, with 0".to_owned())),
            (Codec::Percent, Value::Percent(limit)) => one(limit.to_string()),
            (Codec::Weight, Value::Weight(weight)) => one(self.scaled(*weight, 100).to_string()),
            (Codec::WeightScaled { default }, Value::Weight(weight)) => {
                one(self.scaled(*weight, default).to_string())
            }
            (Codec::CpuMax, Value::CpuMax(max)) => self.cpu_max(*max, current),
            (Codec::CpuQuota, Value::CpuMax(max)) => Ok(self.cpu_quota(*max, current)),
            // a write of nothing is no write at all: the newline makes it one
            (Codec::List, Value::Cpus(set)) if set.is_empty() => one("\n".to_owned()),
            (Codec::List, Value::Nodes(set)) if set.is_empty() => one("\n".to_owned()),
            (Codec::List, Value::Cpus(set)) => one(set.to_string()),
            (Codec::List, Value::Nodes(set)) => one(set.to_string()),
            (Codec::Word, Value::Word(word)) => one(word.clone()),
            (Codec::WordFlag { off, on }, Value::Word(word)) => match word.as_str() {
                word if word == off => one("0".to_owned()),
                word if word == on => one("1".to_owned()),
                _ => Err(self.not_there(format!("it knows {off} and {on} only"))),
            },
            (Codec::DeviceKeys, Value::PerDevice(devices)) => Ok(self.device_keys(devices)),
            (Codec::DeviceFiles, Value::PerDevice(devices)) => self.device_files(devices),
            (Codec::Weights, Value::Weights { default, devices }) => Ok(self.weights(*default, devices)),
            (Codec::WeightFiles { default: scale, min, max }, Value::Weights { default, devices }) => {
                let clamped = |weight: Hundredths| weight.to_scale(scale).clamp(min, max);
                let first = default.map(|weight| self.write(0, clamped(weight).to_string()));
                let own = |weight: &Option<Hundredths>| {
                    weight.map_or_else(|| "default".to_owned(), |weight| clamped(weight).to_string())
                };
                let lines = devices.iter().map(|(device, weight)| format!("{device} {}", own(weight)));
                Ok(first.into_iter().chain(lines.map(|line| self.write(1, line))).collect())
            }
            (Codec::MemoryPlusSwap, Value::Bytes(swap)) => self.memory_plus_swap(*swap, current),
            (Codec::SwapAlone, Value::Bytes(both)) => self.swap_alone(*both, current),
            (Codec::Reclaim, Value::Bytes(Limit::At(bytes))) => one(bytes.0.to_string()),
            (Codec::Reclaim, Value::Bytes(Limit::Max)) => one(self.need(1, current)?.trim().to_owned()),
            (Codec::ReclaimAll, Value::Bytes(_)) => one("0".to_owned()),
            (Codec::DeviceRules, Value::Rules(rules)) => {
                Ok(rules.iter().map(|rule| self.write(0, rule_text(rule))).collect())
            }
            (Codec::ClassId, Value::ClassId(id)) => one(format!("{id:#010x}")),
            (Codec::Keyed, Value::Keyed(names)) => Ok(names
                .iter()
                .map(|(name, keys)| {
                    let single = Value::Keyed(BTreeMap::from([(name.clone(), keys.clone())]));
                    self.write(0, single.to_string())
                })
                .collect()),
            _ => Err(self.wrong_kind()),
        }
    }

    /// A weight on the file's scale; a weight that the scale has no room for becomes its nearest end, never 0.
    fn scaled(&self, weight: Hundredths, scale: u64) -> u64 {
        let number = weight.to_scale(scale);
        match self.binding.range {
            Range::Between { min, max } => number.clamp(min.unsigned_abs(), max),
            Range::Any => number,
        }
    }

    /// `QUOTA PERIOD`; a part that stays is left out, or repeated where the syntax demands it.
    fn cpu_max(&self, max: CpuMax, current: Files<'_>) -> Result<Vec<FileWrite>, EncodeError> {
        let whole = match (max.quota, max.period) {
            (None, None) => return Ok(Vec::new()),
            (Some(_), _) => max,
            (None, period) => {
                let existing: CpuMax = self.need(0, current)?.parse().map_err(|_| self.needs(0))?;
                CpuMax { quota: existing.quota, period }
            }
        };
        Ok(vec![self.write(0, whole.to_string())])
    }

    /// Quota and period by a write each, in the order that their law gives.
    fn cpu_quota(&self, max: CpuMax, current: Files<'_>) -> Vec<FileWrite> {
        let text = |quota: Limit<Micros>| quota.at().map_or_else(|| "-1".to_owned(), |at| at.0.to_string());
        let quota = max.quota.map(|quota| self.write(0, text(quota)));
        let period = max.period.map(|period| self.write(1, period.0.to_string()));
        let old = [0, 1].map(|index| self.read(index, current).and_then(|text| text.trim().parse().ok()));
        let new = [max.quota.and_then(|quota| quota.at()).map(|at| at.0), max.period.map(|period| period.0)];
        let both = if Law::Share.first_goes(old, new) { [quota, period] } else { [period, quota] };
        both.into_iter().flatten().collect()
    }

    fn device_keys(
        &self,
        devices: &BTreeMap<DeviceNumber, BTreeMap<&'static str, Limit<u64>>>,
    ) -> Vec<FileWrite> {
        let line = |device, keys: &BTreeMap<_, _>| {
            Value::PerDevice(BTreeMap::from([(device, keys.clone())])).to_string()
        };
        devices.iter().map(|(device, keys)| self.write(0, line(*device, keys))).collect()
    }

    fn device_files(
        &self,
        devices: &BTreeMap<DeviceNumber, BTreeMap<&'static str, Limit<u64>>>,
    ) -> Result<Vec<FileWrite>, EncodeError> {
        let Kind::PerDevice(keys) = self.found.setting.kind else { return Err(self.wrong_kind()) };
        let mut writes = Vec::new();
        for (device, limits) in devices {
            for (key, limit) in limits {
                let index =
                    keys.iter().position(|known| known.name == *key).ok_or_else(|| self.wrong_kind())?;
                // 0 is v1's "no limit"
                writes.push(self.write(index, format!("{device} {}", limit.at().unwrap_or(0))));
            }
        }
        Ok(writes)
    }

    fn weights(
        &self,
        default: Option<Hundredths>,
        devices: &BTreeMap<DeviceNumber, Option<Hundredths>>,
    ) -> Vec<FileWrite> {
        let first = default.map(|weight| format!("default {}", self.scaled(weight, 100)));
        let own = |weight: &Option<Hundredths>| {
            weight.map_or_else(|| "default".to_owned(), |weight| self.scaled(weight, 100).to_string())
        };
        let lines = devices.iter().map(|(device, weight)| format!("{device} {}", own(weight)));
        first.into_iter().chain(lines).map(|line| self.write(0, line)).collect()
    }

    /// v1 limits the sum: swap alone is the sum less the memory limit.
    fn memory_plus_swap(
        &self,
        swap: Limit<units::Bytes>,
        current: Files<'_>,
    ) -> Result<Vec<FileWrite>, EncodeError> {
        let Limit::At(swap) = swap else { return Ok(vec![self.write(0, "-1".to_owned())]) };
        match decode::bytes(&self.need(1, current)?).ok_or_else(|| self.needs(1))? {
            Limit::At(memory) => {
                let sum = memory.0.checked_add(swap.0);
                let sum =
                    sum.ok_or_else(|| self.not_there("memory and swap together are too much".to_owned()))?;
                Ok(vec![self.write(0, sum.to_string())])
            }
            Limit::Max => Err(self.not_there(
                "v1 limits the sum of memory and swap, so memory.max must be limited first".to_owned(),
            )),
        }
    }

    fn swap_alone(
        &self,
        both: Limit<units::Bytes>,
        current: Files<'_>,
    ) -> Result<Vec<FileWrite>, EncodeError> {
        let Limit::At(both) = both else { return Ok(vec![self.write(0, "max".to_owned())]) };
        match decode::bytes(&self.need(1, current)?).ok_or_else(|| self.needs(1))? {
            Limit::At(memory) if memory <= both => Ok(vec![self.write(0, (both.0 - memory.0).to_string())]),
            Limit::At(memory) => Err(self.not_there(format!("memory alone may be {memory}, which is more"))),
            Limit::Max => Err(self.not_there(
                "v2 limits swap apart from memory, so memory.max must be limited first".to_owned(),
            )),
        }
    }

    fn write(&self, index: usize, text: String) -> FileWrite {
        FileWrite { file: self.file(index), text }
    }

    fn file(&self, index: usize) -> String {
        self.binding.files.get(index).map(|file| self.found.with_size(file)).unwrap_or_default()
    }

    fn read(&self, index: usize, current: Files<'_>) -> Option<String> {
        current(&self.file(index))
    }

    fn need(&self, index: usize, current: Files<'_>) -> Result<String, EncodeError> {
        self.read(index, current).ok_or_else(|| self.needs(index))
    }

    fn needs(&self, index: usize) -> EncodeError {
        EncodeError::NeedsCurrent { name: self.found.name.clone(), file: self.file(index) }
    }

    fn not_there(&self, reason: String) -> EncodeError {
        let (name, value) = (self.found.name.clone(), self.found.show(self.value));
        EncodeError::NotThere { name, version: self.version, value, reason }
    }

    fn wrong_kind(&self) -> EncodeError {
        EncodeError::WrongKind { name: self.found.name.clone(), value: self.value.to_string() }
    }
}

/// The number of a value that is one number or no limit.
fn amount(value: &Value) -> Option<Limit<u64>> {
    match value {
        Value::Count(limit) => Some(*limit),
        Value::Bytes(limit) => Some(limit.map(|bytes| bytes.0)),
        Value::Micros(limit) => Some(limit.map(|micros| micros.0)),
        Value::CpuTime(time) => Some(Limit::At(time.0)),
        _ => None,
    }
}

/// The kernel takes `a` without numbers only as "everything".
fn rule_text(rule: &DeviceRule) -> String {
    match rule.class {
        DeviceClass::All => "a".to_owned(),
        _ => rule.to_string(),
    }
}
