//! The texts of a group's files to a value. What the files hold comes in by a function; nothing is opened here.

use std::collections::BTreeMap;

use units::{Bytes, Limit, Micros, Nanos};

use crate::names::NamedSetting;
use crate::rule::rule;
use crate::setting::{Access, Binding, Codec, Kind, Side, Version};
use crate::value::{CpuMax, DeviceNumber, Hundredths, Value};

/// The present text of one of the group's files; `None` if there is no such file.
pub(crate) type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

/// From here on a v1 memory limit is none: `LONG_MAX` rounded down to a page of at most 64 KiB.
const V1_UNLIMITED: u64 = 0x7fff_ffff_ffff_0000;

/// Why a value can't be read on a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
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
    /// The setting is an action.
    #[error("{name} can only be written")]
    WriteOnly {
        /// The setting.
        name: String,
    },
    /// The group has no such file: the kernel lacks it, or the controller is not enabled there.
    #[error("there is no file {file}")]
    Missing {
        /// The file.
        file: String,
    },
    /// A kernel that prints the file in a way this program does not know.
    #[error("{file} holds '{text}', which is not understood")]
    Malformed {
        /// The file.
        file: String,
        /// Its text, cut after 200 characters.
        text: String,
    },
    /// A BPF program holds it, not a file.
    #[error("{name} is in a device program on cgroup v2, not in a file")]
    Program {
        /// The setting.
        name: String,
    },
}

impl DecodeError {
    /// What to do instead, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            DecodeError::Lacks { instead, .. } => Some((*instead).to_owned()),
            _ => None,
        }
    }
}

impl NamedSetting {
    /// The value a group holds on `version`, read from the texts that `read` gives for its files.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(&self, version: Version, read: Files<'_>) -> Result<Value, DecodeError> {
        let name = self.name.clone();
        let binding = match self.side(version) {
            Side::Has(_) if self.setting.access == Access::Write => {
                return Err(DecodeError::WriteOnly { name });
            }
            Side::Has(binding) if binding.codec == Codec::DeviceProgram => {
                return Err(DecodeError::Program { name });
            }
            Side::Has(binding) => binding,
            Side::Lacks { instead } => return Err(DecodeError::Lacks { name, version, instead }),
        };
        let texts = Texts { found: self, binding, read };
        let text = texts.get(0)?;
        let malformed = || texts.malformed(0, &text);
        let value = match binding.codec {
            Codec::CpuQuota => {
                let period = texts.get(1)?;
                let quota = text.trim().parse::<i64>().map_err(|_| malformed())?;
                let quota = u64::try_from(quota).map_or(Limit::Max, |quota| Limit::At(Micros(quota)));
                let period = period.trim().parse().map_err(|_| texts.malformed(1, &period))?;
                Value::CpuMax(CpuMax { quota: Some(quota), period: Some(Micros(period)) })
            }
            Codec::DeviceFiles => texts.device_files()?,
            Codec::WeightFiles { default: scale, .. } => {
                let devices = texts.get(1).unwrap_or_default(); // old kernels lack it for BFQ
                let (_, devices) = weights(&devices, scale).ok_or_else(|| texts.malformed(1, &devices))?;
                let (default, _) = weights(&text, scale).ok_or_else(malformed)?;
                Value::Weights { default, devices }
            }
            Codec::IoStat => texts.io_stat()?,
            Codec::MemoryPlusSwap => texts.difference(&text)?,
            Codec::SwapAlone => texts.sum(&text)?,
            Codec::Amount { .. } if self.page().is_some() => {
                Value::Bytes(huge_pages(&text, self.page()).ok_or_else(malformed)?)
            }
            codec => single(codec, self.setting.kind, &text).ok_or_else(malformed)?,
        };
        Ok(value)
    }
}

impl NamedSetting {
    /// Does `current`, a group's value as read, satisfy `requested`? As [`Value::satisfied_by`], and true for
    /// a limit of huge pages that the kernel rounded down to whole ones.
    pub fn satisfied(&self, requested: &Value, current: &Value) -> bool {
        let huge = |limit: &Value| match (limit, self.page()) {
            (Value::Bytes(Limit::At(bytes)), Some(page)) => Some(bytes.0 / page),
            _ => None,
        };
        requested.satisfied_by(current) || (huge(requested).is_some() && huge(requested) == huge(current))
    }

    /// The huge page size in the name, in bytes.
    /// The number that v1 prints for a limit in bytes that is none.
    pub fn v1_without_limit(&self) -> u64 {
        let page = self.page().unwrap_or(4096);
        i64::MAX.unsigned_abs() / page * page
    }

    pub(crate) fn page(&self) -> Option<u64> {
        self.size.as_deref()?.parse::<Bytes>().ok().map(|bytes| bytes.0).filter(|page| *page > 0)
    }
}

struct Texts<'a> {
    found: &'a NamedSetting,
    binding: &'a Binding,
    read: Files<'a>,
}

impl Texts<'_> {
    fn file(&self, index: usize) -> String {
        self.binding.files.get(index).map(|file| self.found.with_size(file)).unwrap_or_default()
    }

    fn get(&self, index: usize) -> Result<String, DecodeError> {
        let file = self.file(index);
        (self.read)(&file).ok_or(DecodeError::Missing { file })
    }

    fn malformed(&self, index: usize, text: &str) -> DecodeError {
        let text = text.trim_end().chars().take(200).collect();
        DecodeError::Malformed { file: self.file(index), text }
    }

    fn device_files(&self) -> Result<Value, DecodeError> {
        let Kind::PerDevice(keys) = self.found.setting.kind else { return Err(self.malformed(0, "")) };
        let mut devices: BTreeMap<DeviceNumber, BTreeMap<_, _>> = BTreeMap::new();
        for (index, key) in keys.iter().enumerate().take(self.binding.files.len()) {
            let text = self.get(index)?;
            for line in text.lines() {
                let limit = line.split_once(' ').and_then(|(device, limit)| {
                    Some((device.parse().ok()?, limit.trim().parse::<u64>().ok()?))
                });
                let (device, limit) = limit.ok_or_else(|| self.malformed(index, line))?;
                // the kernel takes 0 for no limit, and shows no line then
                let limit = if limit == 0 { Limit::Max } else { Limit::At(limit) };
                devices.entry(device).or_default().insert(key.name, limit);
            }
        }
        Ok(Value::PerDevice(devices))
    }

    /// The lines of v2's `io.stat`, of v1's tables of bytes and of operations by device and kind.
    fn io_stat(&self) -> Result<Value, DecodeError> {
        let mut devices: BTreeMap<DeviceNumber, [[u64; 3]; 2]> = BTreeMap::new();
        for table in 0..2 {
            let text = self.get(table)?;
            for line in text.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let &[device, kind, number] = words.as_slice() else { continue }; // the total of all devices
                let Some(kind) = ["Read", "Write", "Discard"].iter().position(|known| *known == kind) else {
                    continue; // sums of these in other ways
                };
                let parsed = device.parse().ok().zip(number.parse().ok());
                let (device, number) = parsed.ok_or_else(|| self.malformed(table, line))?;
                devices.entry(device).or_default()[table][kind] = number;
            }
        }
        let line = |(device, [bytes, ios]): (&DeviceNumber, &[[u64; 3]; 2])| {
            let ([r, w, d], [rios, wios, dios]) = (bytes, ios);
            format!("{device} rbytes={r} wbytes={w} rios={rios} wios={wios} dbytes={d} dios={dios}")
        };
        Ok(Value::Text(devices.iter().map(line).collect::<Vec<_>>().join("\n")))
    }

    /// Swap alone, of a file that holds memory plus swap.
    fn difference(&self, text: &str) -> Result<Value, DecodeError> {
        let memory = self.get(1)?;
        let both = bytes(text).ok_or_else(|| self.malformed(0, text))?;
        let memory = bytes(&memory).ok_or_else(|| self.malformed(1, &memory))?;
        Ok(Value::Bytes(match (both, memory) {
            (Limit::At(both), Limit::At(memory)) => Limit::At(Bytes(both.0.saturating_sub(memory.0))),
            (both, _) => both,
        }))
    }

    /// Memory plus swap, of a file that holds swap alone.
    fn sum(&self, text: &str) -> Result<Value, DecodeError> {
        let memory = self.get(1)?;
        let swap = bytes(text).ok_or_else(|| self.malformed(0, text))?;
        let memory = bytes(&memory).ok_or_else(|| self.malformed(1, &memory))?;
        Ok(Value::Bytes(match (swap, memory) {
            (Limit::At(swap), Limit::At(memory)) => {
                swap.0.checked_add(memory.0).map_or(Limit::Max, |sum| Limit::At(Bytes(sum)))
            }
            _ => Limit::Max,
        }))
    }
}

/// A value that one file holds.
fn single(codec: Codec, kind: Kind, text: &str) -> Option<Value> {
    let trimmed = text.trim();
    Some(match (codec, kind) {
        (Codec::Text | Codec::Line, Kind::Text) => Value::Text(text.trim_end_matches('\n').to_owned()),
        (Codec::Flag, _) => Value::Flag(flag(trimmed)?),
        (Codec::FlagWords { off, on }, _) => match trimmed {
            word if word == off => Value::Flag(false),
            // on its way: the kernel still waits for some task
            word if word == on || word == "FREEZING" => Value::Flag(true),
            _ => return None,
        },
        // as it is written, or as it is shown
        (Codec::FlagInStat(key), _) => Value::Flag(flag(trimmed).or_else(|| flag(field(text, key)?))?),
        (Codec::Number, _) => Value::Number(trimmed.parse().ok()?),
        (Codec::Amount { unlimited }, Kind::Micros) if trimmed == unlimited => Value::Micros(Limit::Max),
        (Codec::Amount { .. } | Codec::Reset | Codec::Text, Kind::Count) => Value::Count(count(trimmed)?),
        (Codec::Reset | Codec::Text, Kind::CpuTime) => Value::CpuTime(Nanos(trimmed.parse().ok()?)),
        (Codec::Amount { .. } | Codec::Reset | Codec::Text, Kind::Bytes) => Value::Bytes(bytes(trimmed)?),
        (Codec::Amount { .. }, Kind::Micros) => Value::Micros(count(trimmed)?.map(Micros)),
        (Codec::Percent, _) => Value::Percent(match trimmed {
            "max" => Limit::Max,
            number => Limit::At(number.parse().ok()?),
        }),
        (Codec::Weight, _) => Value::Weight(Hundredths::from_scale(trimmed.parse().ok()?, 100)),
        (Codec::WeightScaled { default }, _) => {
            Value::Weight(Hundredths::from_scale(trimmed.parse().ok()?, default))
        }
        (Codec::CpuMax, _) => Value::CpuMax(text.parse().ok()?),
        (Codec::List, Kind::Nodes) => Value::Nodes(trimmed.parse().ok()?),
        (Codec::List, _) => Value::Cpus(trimmed.parse().ok()?),
        (Codec::Word, _) => Value::Word(trimmed.to_owned()),
        (Codec::WordFlag { off, on }, _) => Value::Word((if flag(trimmed)? { on } else { off }).to_owned()),
        (Codec::DeviceKeys, Kind::PerDevice(keys)) => Value::PerDevice(
            text.lines()
                .map(|line| {
                    let mut words = line.split_whitespace();
                    let device = words.next()?.parse().ok()?;
                    let pair = |word: &str| {
                        let (name, limit) = word.split_once('=')?;
                        let key = keys.iter().find(|key| key.name == name)?;
                        Some((key.name, count(limit)?))
                    };
                    Some((device, words.map(pair).collect::<Option<_>>()?))
                })
                .collect::<Option<_>>()?,
        ),
        (Codec::Weights, _) => {
            let (default, devices) = weights(text, 100)?;
            Value::Weights { default, devices }
        }
        (Codec::StatField { key, scale }, _) => {
            let number = field(text, key)?.parse::<u64>().ok()?.saturating_mul(scale);
            match kind {
                Kind::Bytes => Value::Bytes(Limit::At(Bytes(number))),
                Kind::CpuTime => Value::CpuTime(Nanos(number)),
                _ => Value::Count(Limit::At(number)),
            }
        }
        (Codec::UserSystem, _) => {
            let ticks = |key| Some(field(text, key)?.parse::<u64>().ok()? / MICROS_PER_TICK);
            Value::Text(format!("user {}\nsystem {}", ticks("user_usec")?, ticks("system_usec")?))
        }
        (Codec::DeviceRules, _) => {
            Value::Rules(text.lines().map(|line| rule(line).ok()).collect::<Option<_>>()?)
        }
        (Codec::ClassId, _) => Value::ClassId(trimmed.parse().ok()?),
        (Codec::Keyed, _) => Value::Keyed(
            text.lines().map(|line| keyed_line(line.trim())).collect::<Option<BTreeMap<_, _>>>()?,
        ),
        _ => return None,
    })
}

/// `cpuacct.stat` counts in ticks of USER_HZ, which is 100 on every architecture that distributions build for.
const MICROS_PER_TICK: u64 = 10_000;

/// A memory limit in a kernel file of either version.
pub(crate) fn bytes(text: &str) -> Option<Limit<Bytes>> {
    Some(match count(text.trim())? {
        Limit::At(bytes) if bytes < V1_UNLIMITED => Limit::At(Bytes(bytes)),
        _ => Limit::Max,
    })
}

/// A limit of huge pages: on v1 none is `LONG_MAX` rounded down to a whole one.
fn huge_pages(text: &str, page: Option<u64>) -> Option<Limit<Bytes>> {
    Some(match bytes(text)? {
        Limit::At(limit) if limit.0 < v1_unlimited(page) => Limit::At(limit),
        _ => Limit::Max,
    })
}

/// The number from which on v1 prints a limit that is none, of memory or of huge pages of that size.
pub(crate) fn v1_unlimited(page: Option<u64>) -> u64 {
    page.map_or(V1_UNLIMITED, |page| i64::MAX.unsigned_abs() / page * page)
}

fn count(text: &str) -> Option<Limit<u64>> {
    match text {
        "max" => Some(Limit::Max),
        number => number.parse().ok().map(Limit::At),
    }
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The value of `key` in a file of `key value` lines.
fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).map(str::trim)
}

type Weights = (Option<Hundredths>, BTreeMap<DeviceNumber, Option<Hundredths>>);

/// Lines of `W`, `default W` and `MAJOR:MINOR W`.
fn weights(text: &str, scale: u64) -> Option<Weights> {
    let mut default = None;
    let mut devices = BTreeMap::new();
    for line in text.lines() {
        let (of, number) = line.trim().split_once(' ').unwrap_or(("default", line.trim()));
        let weight = Some(Hundredths::from_scale(number.trim().parse().ok()?, scale));
        match of {
            "default" => default = weight,
            device => {
                devices.insert(device.parse().ok()?, weight);
            }
        }
    }
    Some((default, devices))
}

/// `name value`, or `name key=value …`.
fn keyed_line(line: &str) -> Option<(String, BTreeMap<String, String>)> {
    let (name, rest) = line.split_once(' ')?;
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or(("", word));
        (key.to_owned(), value.to_owned())
    };
    Some((name.to_owned(), rest.split_whitespace().map(pair).collect()))
}
