//! What a setting holds, typed; printed short and canonical, so that what is printed reads back as the same value.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::rule::DeviceRule;
use serde::ser::{Serialize, SerializeMap, Serializer};
use units::{Bytes, CpuSet, Limit, Micros, Nanos, NodeSet};

/// The period of CPU time that is taken where a share of CPUs is given (`1.5cpu`), the kernel's default.
pub(crate) const PERIOD: Micros = Micros(100_000);

/// The value of a setting. Kinds that say "partial" name only what changes; the rest stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// A number of things, or no limit.
    Count(Limit<u64>),
    /// An amount of memory, or no limit.
    Bytes(Limit<Bytes>),
    /// A duration, or no limit.
    Micros(Limit<Micros>),
    /// CPU time used. A type of its own, as files count it in nanoseconds and microseconds.
    CpuTime(Nanos),
    /// A percentage, or no limit.
    Percent(Limit<Hundredths>),
    /// A share relative to siblings, 100 by default. Finer than the kernel's v2 weight, so that a v1 share
    /// loses nothing.
    Weight(Hundredths),
    /// CPU time per period; partial.
    CpuMax(CpuMax),
    /// CPUs.
    Cpus(CpuSet),
    /// NUMA nodes.
    Nodes(NodeSet),
    /// A word; when read, what the kernel added to it too (`root invalid (…)`).
    Word(String),
    /// Limits by device and key; partial.
    PerDevice(BTreeMap<DeviceNumber, BTreeMap<&'static str, Limit<u64>>>),
    /// Weights; partial.
    Weights {
        /// Of all devices without one of their own.
        default: Option<Hundredths>,
        /// Of single devices; `None` means the default again.
        devices: BTreeMap<DeviceNumber, Option<Hundredths>>,
    },
    /// Device access rules, in order.
    Rules(Vec<DeviceRule>),
    /// A network class, `0xMMMMmmmm`; 0 is none.
    ClassId(u32),
    /// Values by name and key (`""` where a name has one value), in the kernel's words; partial.
    Keyed(BTreeMap<String, BTreeMap<String, String>>),
    /// The kernel's text, without the newline at its end.
    Text(String),
}

/// CPU time per period. `None` leaves that part as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuMax {
    /// Time that may be used in each period, over all CPUs together.
    pub quota: Option<Limit<Micros>>,
    /// The period.
    pub period: Option<Micros>,
}

/// A number in hundredths: 9766 is 97.66.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hundredths(pub u64);

/// A block or character device as the kernel numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl Value {
    /// Does `current`, a group's value as read, satisfy `self`? True for the parts that a partial value names, and where
    /// the kernel rounds the value to pages or to the version's grain of weights.
    pub fn satisfied_by(&self, current: &Value) -> bool {
        match (self, current) {
            (Value::Bytes(Limit::At(requested)), Value::Bytes(Limit::At(current))) => {
                current.rounds(*requested)
            }
            (Value::Weight(requested), Value::Weight(current)) => current.rounds_weight(*requested),
            (Value::CpuMax(requested), Value::CpuMax(current)) => {
                (requested.quota.is_none() || requested.quota == current.quota)
                    && (requested.period.is_none() || requested.period == current.period)
            }
            (Value::PerDevice(requested), Value::PerDevice(current)) => {
                requested.iter().all(|(device, keys)| {
                    let of = current.get(device);
                    keys.iter().all(|(key, limit)| {
                        // the kernel lists only what is limited
                        of.and_then(|current| current.get(key)).unwrap_or(&Limit::Max) == limit
                    })
                })
            }
            (
                Value::Weights { default, devices },
                Value::Weights { default: current_default, devices: current_devices },
            ) => {
                let fits = |requested: &Hundredths, current: &Hundredths| current.rounds_weight(*requested);
                let default_fits = match (default, current_default) {
                    (Some(requested), Some(current)) => fits(requested, current),
                    (requested, _) => requested.is_none(),
                };
                default_fits
                    && devices.iter().all(|(device, requested)| {
                        match (requested, current_devices.get(device).copied().flatten()) {
                            (Some(requested), Some(current)) => fits(requested, &current),
                            (None, current) => current.is_none(),
                            (Some(_), None) => false,
                        }
                    })
            }
            (Value::Rules(requested), Value::Rules(current)) => {
                requested.iter().all(|rule| current.iter().any(|current| current.covers(rule)))
            }
            (Value::Keyed(requested), Value::Keyed(current)) => requested.iter().all(|(name, keys)| {
                let of = current.get(name);
                keys.iter().all(|(key, value)| of.and_then(|current| current.get(key)) == Some(value))
            }),
            (requested, current) => requested == current,
        }
    }
}

/// Is one the other, rounded as a kernel rounds?
trait Rounds {
    fn rounds(&self, requested: Self) -> bool;
}

impl Rounds for Bytes {
    /// Down to a page of 4, 16 or 64 KiB.
    fn rounds(&self, requested: Bytes) -> bool {
        *self == requested || [4096u64, 16_384, 65_536].iter().any(|page| self.0 == requested.0 / page * page)
    }
}

impl Hundredths {
    /// Would the grain of one version's weights (whole weights from 1, or shares of 1024, 500 or 100 for 100) make
    /// `requested` this?
    fn rounds_weight(self, requested: Hundredths) -> bool {
        let grain = |scale| Hundredths::from_scale(requested.to_scale(scale).max(1), scale);
        self == requested || [100, 500, 1024].iter().any(|&scale| self == grain(scale))
    }

    /// On a scale where 100 is `scale`, rounded.
    pub(crate) fn to_scale(self, scale: u64) -> u64 {
        let product = u128::from(self.0) * u128::from(scale);
        u64::try_from((product + 5_000) / 10_000).unwrap_or(u64::MAX)
    }

    /// From a scale where 100 is `scale`, rounded.
    pub(crate) fn from_scale(number: u64, scale: u64) -> Hundredths {
        let (number, scale) = (u128::from(number), u128::from(scale.max(1)));
        Hundredths(u64::try_from((number * 10_000 + scale / 2) / scale).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => u8::from(*on).fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Count(limit) => limit.fmt(f),
            Value::Bytes(limit) => limit.fmt(f),
            Value::Micros(limit) => limit.fmt(f),
            Value::CpuTime(time) => time.0.fmt(f),
            Value::Percent(limit) => limit.fmt(f),
            Value::Weight(weight) => weight.fmt(f),
            Value::CpuMax(max) => max.fmt(f),
            Value::Cpus(set) => set.fmt(f),
            Value::Nodes(set) => set.fmt(f),
            Value::Word(text) | Value::Text(text) => f.write_str(text),
            Value::ClassId(id) => write!(f, "{:x}:{:x}", id >> 16, id & 0xffff),
            Value::PerDevice(devices) => joined(f, "; ", devices, |f, (device, keys)| named(f, device, keys)),
            Value::Keyed(names) => joined(f, "; ", names, |f, (name, keys)| named(f, name, keys)),
            Value::Rules(rules) => joined(f, "; ", rules, |f, rule| rule.fmt(f)),
            Value::Weights { default, devices } => {
                let default = default.map(|weight| (String::new(), weight.to_string()));
                let own = |weight: &Option<Hundredths>| {
                    weight.map_or_else(|| "default".to_owned(), |weight| weight.to_string())
                };
                let devices = devices.iter().map(|(device, weight)| (format!("{device} "), own(weight)));
                joined(f, "; ", default.into_iter().chain(devices), |f, (of, weight)| {
                    write!(f, "{of}{weight}")
                })
            }
        }
    }
}

fn joined<T>(
    f: &mut fmt::Formatter<'_>,
    separator: &str,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    items.into_iter().enumerate().try_for_each(|(index, item)| {
        f.write_str(if index > 0 { separator } else { "" })?;
        each(f, item)
    })
}

/// `name key=value …`, or `name value` where the key is `""`.
fn named<K: AsRef<str>, V: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    name: &dyn fmt::Display,
    keys: &BTreeMap<K, V>,
) -> fmt::Result {
    name.fmt(f)?;
    keys.iter().try_for_each(|(key, value)| match key.as_ref() {
        "" => write!(f, " {value}"),
        key => write!(f, " {key}={value}"),
    })
}

impl CpuMax {
    /// Its parts, and `other`'s for those that stay as they are.
    pub fn or(self, other: CpuMax) -> CpuMax {
        CpuMax { quota: self.quota.or(other.quota), period: self.period.or(other.period) }
    }

    /// Its parts that `other` leaves as they are.
    pub fn without(self, other: CpuMax) -> CpuMax {
        CpuMax {
            quota: self.quota.filter(|_| other.quota.is_none()),
            period: self.period.filter(|_| other.period.is_none()),
        }
    }

    /// Its parts that `other` has another value of.
    pub fn differing_from(self, other: CpuMax) -> CpuMax {
        CpuMax {
            quota: self.quota.filter(|_| other.quota.is_some() && self.quota != other.quota),
            period: self.period.filter(|_| other.period.is_some() && self.period != other.period),
        }
    }

    /// `150%` of a CPU, down to a hundredth of a percent; `150%/50ms` where the period is not the kernel's own of 100 ms. As the
    /// kernel's file where one part stays as it is.
    ///
    /// ```
    /// use settings::CpuMax;
    /// use units::{Limit, Micros};
    /// let of = |quota, period| CpuMax { quota: Some(Limit::At(Micros(quota))), period: Some(Micros(period)) };
    /// assert_eq!(of(62_345, 100_000).in_percent(), "62.34%");
    /// assert_eq!(of(75_000, 50_000).in_percent(), "150%/50ms");
    /// ```
    pub fn in_percent(&self) -> String {
        let (quota, period) = match (self.quota, self.period) {
            (Some(Limit::At(quota)), Some(period)) => (quota, period),
            (Some(Limit::Max), _) => return "max".to_owned(),
            _ => return self.to_string(),
        };
        let hundredths = u128::from(quota.0) * 10_000 / u128::from(period.0.max(1));
        let percent = Hundredths(u64::try_from(hundredths).unwrap_or(u64::MAX));
        if period == PERIOD { format!("{percent}%") } else { format!("{percent}%/{period}") }
    }
}

impl fmt::Display for CpuMax {
    /// As the kernel's file: `50000 100000`, `max 100000`; `50000` and `/100000` where one part stays as it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = self.quota.map(|quota| quota.map(|micros| micros.0));
        match (quota, self.period) {
            (Some(quota), Some(period)) => write!(f, "{quota} {}", period.0),
            (Some(quota), None) => quota.fmt(f),
            (None, Some(period)) => write!(f, "/{}", period.0),
            (None, None) => Ok(()),
        }
    }
}

impl FromStr for CpuMax {
    type Err = String;

    /// Reads what `Display` prints: a part that stays as it is may be missing. The error says what is wrong.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no quota and period like 50000 100000");
        let (quota, period) = match text.trim().split_once([' ', '/']) {
            Some((quota, period)) => (quota, Some(Micros(period.trim().parse().map_err(|_| wrong())?))),
            None => (text.trim(), None),
        };
        let quota = match quota {
            "" if period.is_some() => None,
            "max" => Some(Limit::Max),
            number => Some(Limit::At(Micros(number.parse().map_err(|_| wrong())?))),
        };
        Ok(CpuMax { quota, period })
    }
}

impl fmt::Display for Hundredths {
    /// Without needless zeros: `97.66`, `97.5`, `97`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => whole.fmt(f),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{}", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02}"),
        }
    }
}

impl FromStr for Hundredths {
    type Err = String;

    /// Reads `97`, `97.5`, `97.66`. The error says what is wrong.
    fn from_str(text: &str) -> Result<Self, String> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) {
            return Err(format!("'{text}' is not a number"));
        }
        if part.len() > 2 {
            return Err(format!("'{text}' has more than two decimals"));
        }
        let hundredths = || format!("{whole}{part:0<2}").parse().ok();
        hundredths().map(Hundredths).ok_or_else(|| format!("'{text}' is too large"))
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = String;

    /// Reads `8:16`, at most 4095 and 1048575 as the kernel numbers devices. The error says what is wrong.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a device number like 8:16");
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten()
        };
        let (major, minor) = text.split_once(':').ok_or_else(wrong)?;
        let (major, minor) = (number(major).ok_or_else(wrong)?, number(minor).ok_or_else(wrong)?);
        if major > 4095 || minor > 1_048_575 {
            return Err(format!("'{text}' is no device number: the largest is 4095:1048575"));
        }
        Ok(DeviceNumber { major, minor })
    }
}

impl Serialize for Value {
    /// Flags as true and false, numbers as numbers (bytes, microseconds, CPU time in nanoseconds), no limit as `"max"`, lists of CPUs and
    /// words as text, the rest as maps.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Flag(on) => to.serialize_bool(*on),
            Value::Number(number) => to.serialize_i64(*number),
            Value::Count(limit) => MaxOr(*limit).serialize(to),
            Value::Bytes(limit) => MaxOr(limit.map(|bytes| bytes.0)).serialize(to),
            Value::Micros(limit) => MaxOr(limit.map(|micros| micros.0)).serialize(to),
            Value::CpuTime(time) => time.serialize(to),
            Value::Percent(limit) => MaxOr(*limit).serialize(to),
            Value::Weight(weight) => weight.serialize(to),
            Value::CpuMax(max) => {
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("quota_us", &max.quota.map(|quota| MaxOr(quota.map(|us| us.0))))?;
                map.serialize_entry("period_us", &max.period)?;
                map.end()
            }
            Value::PerDevice(devices) => to.collect_map(devices.iter().map(|(device, keys)| {
                let keys: BTreeMap<_, _> = keys.iter().map(|(key, limit)| (key, MaxOr(*limit))).collect();
                (device.to_string(), keys)
            })),
            Value::Weights { default, devices } => {
                let mut map = to.serialize_map(None)?;
                if let Some(weight) = default {
                    map.serialize_entry("default", weight)?;
                }
                for (device, weight) in devices {
                    map.serialize_entry(&device.to_string(), weight)?;
                }
                map.end()
            }
            Value::Rules(rules) => rules.serialize(to),
            Value::Keyed(names) => names.serialize(to),
            Value::Cpus(_) | Value::Nodes(_) | Value::Word(_) | Value::ClassId(_) | Value::Text(_) => {
                to.collect_str(self)
            }
        }
    }
}

/// A bound as it is, no limit as `"max"`.
struct MaxOr<T>(Limit<T>);

impl<T: Serialize> Serialize for MaxOr<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Limit::At(bound) => bound.serialize(to),
            Limit::Max => to.serialize_str("max"),
        }
    }
}

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0 as f64 / 100.0)
    }
}

impl Serialize for DeviceNumber {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
