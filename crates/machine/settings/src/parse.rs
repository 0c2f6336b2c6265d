//! The user's text for a setting to a value, in the syntax of the name the setting was requested by.
//! What depends on the machine (a share of its memory, all its CPUs, the number of a device) comes from [`Facts`].

mod keyed;

use units::{Bytes, CpuSet, IdSet, Limit, Micros, Nanos, UnitError};

use crate::decode::v1_unlimited;
use crate::error::ValueError;
use crate::names::{NamedSetting, Via};
use crate::setting::{Access, Binding, Codec, Key, Kind, OutOfRange, Range, Version};
use crate::value::{CpuMax, DeviceNumber, Hundredths, PERIOD, Value};

/// The periods the kernel takes, in microseconds (`kernel/sched/core.c`, `max_cfs_quota_period`).
const PERIODS: (i64, u64) = (1_000, 1_000_000);

/// The facts of its machine that a value's text may need. Each is read only where the text needs it.
pub trait Facts {
    /// The memory of the machine.
    fn memory(&self) -> Option<Bytes>;
    /// How many CPUs it has, numbered from 0.
    fn cpus(&self) -> Option<usize>;
    /// The number of the block device at a path, or that holds the file at a path. The error says why not.
    ///
    /// # Errors
    /// In words: no such path, not on a block device.
    fn device(&self, path: &str) -> Result<DeviceNumber, String>;
}

impl NamedSetting {
    /// Reads a value for this setting.
    ///
    /// # Errors
    /// See [`ValueError`]: what was given, what is expected, and the nearest right answer.
    pub fn parse(&self, text: &str, facts: &dyn Facts) -> Result<Value, ValueError> {
        let read_only = |by| Err(ValueError::ReadOnly { name: self.name.clone(), by });
        let (version, binding) = match (self.setting.access, self.spoken()) {
            (Access::Command(by), _) => return read_only(Some(by)),
            (Access::Read, _) | (_, None) => return read_only(None),
            (_, Some(spoken)) => spoken,
        };
        let via = matches!(self.via, Via::File { .. });
        Reader { found: self, version, binding, via, text: text.trim(), facts }.value()
    }
}

/// One text on its way to a value.
struct Reader<'a> {
    found: &'a NamedSetting,
    version: Version,
    binding: &'static Binding,
    /// The name used is a file's: its own scale and its own word for "no limit" count.
    via: bool,
    text: &'a str,
    facts: &'a dyn Facts,
}

impl Reader<'_> {
    fn value(&self) -> Result<Value, ValueError> {
        let text = self.text;
        match (self.binding.codec, self.found.setting.kind) {
            (Codec::Text | Codec::StatField { .. }, _) => {
                Err(ValueError::ReadOnly { name: self.found.name.clone(), by: None })
            }
            (Codec::WordFlag { off, on }, _) if self.via => {
                Ok(Value::Word((if self.flag(text)? { on } else { off }).to_owned()))
            }
            (Codec::FlagWords { off, on }, _) if self.via => match text {
                word if word == off => Ok(Value::Flag(false)),
                word if word == on => Ok(Value::Flag(true)),
                word => Err(self.unknown_word(word, &[off, on])),
            },
            (Codec::ReclaimAll, _) if self.via => self.number(text).map(|_| Value::Bytes(Limit::Max)),
            (Codec::WeightScaled { default }, _) if self.via => {
                let number = self.number(text)?;
                Ok(Value::Weight(Hundredths::from_scale(self.in_range(number)?, default)))
            }
            (Codec::CpuQuota, _) if self.via => self.cpu_quota(),
            (_, kind) => self.of_kind(kind),
        }
    }

    fn of_kind(&self, kind: Kind) -> Result<Value, ValueError> {
        let text = self.text;
        Ok(match kind {
            Kind::Flag => {
                let on = self.flag(text)?;
                self.check(i128::from(on), text, &|n| n.to_string())?;
                Value::Flag(on)
            }
            Kind::Number => {
                let number = match units::hexadecimal(text) {
                    Some(number) => number.ok().and_then(|number| i64::try_from(number).ok()),
                    None => text.parse::<i64>().ok(),
                };
                let number = number.ok_or_else(|| self.not_number(text))?;
                self.check(i128::from(number), text, &|n| n.to_string())?;
                Value::Number(number)
            }
            Kind::Count if self.unlimited() => Value::Count(Limit::Max),
            Kind::Count => Value::Count(Limit::At(self.count(text)?)),
            Kind::Bytes if self.unlimited() => Value::Bytes(Limit::Max),
            Kind::Bytes => Value::Bytes(Limit::At(self.bytes(text)?)),
            Kind::Micros if self.unlimited() => Value::Micros(Limit::Max),
            Kind::Micros => {
                let micros: Micros = text.parse().map_err(|error| self.unit_error(text, error))?;
                self.check(i128::from(micros.0), text, &|n| micros_text(n))?;
                Value::Micros(Limit::At(micros))
            }
            Kind::CpuTime => Value::CpuTime(Nanos(self.count(text)?)),
            Kind::Percent if self.unlimited() => Value::Percent(Limit::Max),
            Kind::Percent => {
                let percent = self.hundredths(text.strip_suffix('%').unwrap_or(text).trim_end())?;
                self.check_hundredths(percent)?;
                Value::Percent(Limit::At(percent))
            }
            Kind::Weight => {
                let weight = match units::hexadecimal(text) {
                    Some(_) => Hundredths(self.number(text)?.saturating_mul(100)),
                    None => self.hundredths(text)?,
                };
                self.check_hundredths(weight)?;
                Value::Weight(weight)
            }
            Kind::CpuMax => Value::CpuMax(self.cpu_max()?),
            Kind::Cpus if text == "all" => {
                let cpus = self.facts.cpus().ok_or_else(|| self.needs("the number of CPUs"))?;
                Value::Cpus(cpus.checked_sub(1).map_or_else(CpuSet::new, |last| CpuSet::range(0, last)))
            }
            Kind::Cpus => Value::Cpus(self.list()?),
            Kind::Nodes => Value::Nodes(self.list()?),
            Kind::Word(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Value::Word((*word).to_owned()),
                None => return Err(self.unknown_word(text, words)),
            },
            Kind::PerDevice(keys) => self.per_device(keys)?,
            Kind::Weights => self.weights()?,
            Kind::Rules => self.rules()?,
            Kind::ClassId => Value::ClassId(self.class_id()?),
            Kind::Keyed(keys) => self.keyed(keys)?,
            Kind::Text if text.contains(char::is_control) => {
                return Err(self.wrong("control characters can't be written".to_owned(), None));
            }
            Kind::Text => Value::Text(text.to_owned()),
        })
    }

    /// `max`; under a v1 name also that file's `-1`, `unlimited`, and the number that it prints then.
    fn unlimited(&self) -> bool {
        let minus_one =
            matches!(self.binding.codec, Codec::Amount { unlimited: "-1" } | Codec::MemoryPlusSwap);
        match self.text {
            "max" => match self.binding.codec {
                Codec::Reset => false,
                Codec::Amount { unlimited } => !unlimited.is_empty(),
                _ => true,
            },
            "-1" | "unlimited" => minus_one && self.version == Version::V1,
            text => {
                // the kernel cuts larger numbers to it (`page_counter_memparse`)
                let printed = |bytes: u64| bytes >= v1_unlimited(self.found.page());
                let is_v1s = minus_one && self.version == Version::V1;
                let number = || units::hexadecimal(text).map_or_else(|| text.parse().ok(), Result::ok);
                is_v1s && self.found.setting.kind == Kind::Bytes && number().is_some_and(printed)
            }
        }
    }

    fn flag(&self, text: &str) -> Result<bool, ValueError> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "yes" | "on" | "true" => Ok(true),
            "0" | "no" | "off" | "false" => Ok(false),
            _ if self.takes_any_number() && self.number(text).is_ok() => Ok(self.number(text)? != 0),
            _ => Err(self.wrong(format!("'{text}' is neither on nor off"), None)),
        }
    }

    /// v1's cpusets and its core take any number that is not 0 as 1 (`cpuset_write_u64` and
    /// `cgroup_clone_children_write` of the kernel); all other flags are refused unless 0 or 1.
    fn takes_any_number(&self) -> bool {
        let name = self.found.name.as_str();
        let of_core = matches!(name, "cgroup.clone_children" | "notify_on_release");
        self.version == Version::V1 && (of_core || name.starts_with("cpuset."))
    }

    /// A whole number, not negative.
    fn number(&self, text: &str) -> Result<u64, ValueError> {
        if let Some(number) = units::hexadecimal(text) {
            return number.map_err(|error| self.wrong(error.to_string(), None));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.not_number(text));
        }
        if text.starts_with('-') {
            // states the range, where there is one
            self.check(-1, text, &|n| n.to_string())?;
            return Err(self.wrong(format!("'{text}' is negative"), None));
        }
        text.parse().map_err(|_| self.wrong(format!("'{text}' is too large"), None))
    }

    fn count(&self, text: &str) -> Result<u64, ValueError> {
        let number = self.number(text)?;
        self.check(i128::from(number), text, &|n| n.to_string())?;
        Ok(number)
    }

    /// A number of the named file, forced into its range where the kernel does that by itself.
    fn in_range(&self, number: u64) -> Result<u64, ValueError> {
        match (self.binding.range, self.binding.out_of_range) {
            (Range::Between { min, max }, OutOfRange::Clamped) => Ok(number.clamp(min.unsigned_abs(), max)),
            _ => self.check(i128::from(number), self.text, &|n| n.to_string()).map(|()| number),
        }
    }

    /// `8G`; `25%` of the machine's memory, in whole pages.
    fn bytes(&self, text: &str) -> Result<Bytes, ValueError> {
        let bytes = match text.strip_suffix('%') {
            Some(percent) => {
                let percent = self.hundredths(percent.trim_end())?;
                let memory = self.facts.memory().ok_or_else(|| self.needs("the machine's memory"))?;
                let part = u128::from(memory.0) * u128::from(percent.0) / 10_000;
                let part = u64::try_from(part);
                Bytes(part.map_err(|_| self.wrong(format!("'{text}' is too large"), None))? & !4095)
            }
            None => text.parse().map_err(|error| self.unit_error(text, error))?,
        };
        self.check(i128::from(bytes.0), text, &|n| {
            u64::try_from(n).map_or(n.to_string(), |n| Bytes(n).to_string())
        })?;
        Ok(bytes)
    }

    fn hundredths(&self, text: &str) -> Result<Hundredths, ValueError> {
        text.parse().map_err(|reason| self.wrong(reason, None))
    }

    fn check_hundredths(&self, number: Hundredths) -> Result<(), ValueError> {
        let Range::Between { min, max } = self.binding.range else { return Ok(()) };
        let (low, high) = (min.unsigned_abs().saturating_mul(100), max.saturating_mul(100));
        if (low..=high).contains(&number.0) {
            return Ok(());
        }
        Err(self.out_of_range(self.text, &min.to_string(), &max.to_string(), number.0 < low))
    }

    fn list<K>(&self) -> Result<IdSet<K>, ValueError> {
        let example = self.found.setting.example;
        self.text.parse().map_err(|source| ValueError::List {
            name: self.found.name.clone(),
            source,
            example,
        })
    }

    /// `max`, `50ms`, `50ms/100ms`, `50000 100000`, `/100ms`, `1.5cpu`, `150%`, `150%/50ms`.
    fn cpu_max(&self) -> Result<CpuMax, ValueError> {
        let (quota, period) = match self.text.split_once(['/', ' ']) {
            Some((quota, period)) => (quota.trim_end(), Some(self.period(period.trim_start())?)),
            None => (self.text, None),
        };
        let share = [("cpus", 1), ("cpu", 1), ("%", 100)].into_iter();
        let mut share = share.filter_map(|(unit, parts)| Some((quota.strip_suffix(unit)?.trim_end(), parts)));
        if let Some((number, parts)) = share.next() {
            // a share of one second is that share in millionths
            let millionths: Micros = format!("{number}s")
                .parse()
                .map_err(|_| self.wrong(format!("'{number}' is not a number"), None))?;
            let period = period.unwrap_or(PERIOD);
            let quota = u128::from(millionths.0) * u128::from(period.0) / (1_000_000 * parts);
            let quota = u64::try_from(quota).unwrap_or(u64::MAX);
            return Ok(CpuMax { quota: Some(self.quota(Micros(quota), self.text)?), period: Some(period) });
        }
        if let Some(number) = self.without_unit(quota) {
            return Err(ValueError::NoUnit { name: self.found.name.clone(), given: number.to_owned() });
        }
        let quota = match quota {
            "" if period.is_some() => None,
            "max" => Some(Limit::Max),
            text => {
                let micros = text.parse().map_err(|error| self.unit_error(text, error))?;
                Some(self.quota(micros, text)?)
            }
        };
        Ok(CpuMax { quota, period })
    }

    /// A number that is too small for microseconds, and was meant as CPUs or per cent.
    fn without_unit<'t>(&self, text: &'t str) -> Option<&'t str> {
        let number: Hundredths = text.parse().ok()?;
        let Range::Between { min, .. } = self.binding.range else { return None };
        (number.0 > 0 && number.0 < min.unsigned_abs().saturating_mul(100)).then_some(text)
    }

    /// `cpu.cfs_quota_us` or `cpu.cfs_period_us`: each leaves the other as it is.
    fn cpu_quota(&self) -> Result<Value, ValueError> {
        let text = self.text;
        let max = match self.found.via {
            Via::File { index: 1, .. } => CpuMax { quota: None, period: Some(self.period(text)?) },
            _ if matches!(text, "-1" | "max" | "unlimited") => {
                CpuMax { quota: Some(Limit::Max), period: None }
            }
            _ => {
                let micros = text.parse().map_err(|error| self.unit_error(text, error))?;
                CpuMax { quota: Some(self.quota(micros, text)?), period: None }
            }
        };
        Ok(Value::CpuMax(max))
    }

    fn quota(&self, quota: Micros, given: &str) -> Result<Limit<Micros>, ValueError> {
        self.check(i128::from(quota.0), given, &|n| micros_text(n))?;
        Ok(Limit::At(quota))
    }

    fn period(&self, text: &str) -> Result<Micros, ValueError> {
        let period: Micros = text.parse().map_err(|error| self.unit_error(text, error))?;
        if i64::try_from(period.0).is_ok_and(|us| us >= PERIODS.0) && period.0 <= PERIODS.1 {
            return Ok(period);
        }
        let (min, max) = (micros_text(i128::from(PERIODS.0)), micros_text(i128::from(PERIODS.1)));
        Err(self.out_of_range(&format!("period {text}"), &min, &max, period.0 < PERIODS.1))
    }

    fn check(&self, number: i128, given: &str, text: &dyn Fn(i128) -> String) -> Result<(), ValueError> {
        let Range::Between { min, max } = self.binding.range else { return Ok(()) };
        let (low, high) = (i128::from(min), i128::from(max));
        if (low..=high).contains(&number) {
            return Ok(());
        }
        Err(self.out_of_range(given, &text(low), &text(high), number < low))
    }

    fn out_of_range(&self, given: &str, min: &str, max: &str, below: bool) -> ValueError {
        let otherwise = match self.binding.out_of_range {
            OutOfRange::Misread(how) => Some(how),
            OutOfRange::Refused | OutOfRange::Clamped => {
                let has_limit =
                    matches!(self.binding.codec, Codec::Amount { unlimited } if !unlimited.is_empty());
                (has_limit && given == "-1").then_some("`max` is no limit")
            }
        };
        ValueError::OutOfRange {
            name: self.found.name.clone(),
            given: given.to_owned(),
            min: min.to_owned(),
            max: max.to_owned(),
            below,
            otherwise,
        }
    }

    fn not_number(&self, text: &str) -> ValueError {
        let at = text.find(|c: char| !c.is_ascii_digit()).map(|at| at + self.offset(text));
        self.wrong("expected a whole number".to_owned(), at.or(Some(self.offset(text))))
    }

    fn unit_error(&self, part: &str, error: UnitError) -> ValueError {
        let offset = self.offset(part);
        let not_digit = part.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(0);
        match error {
            UnitError::UnknownUnit { unit, known, .. } => {
                let at = part.len() - unit.len() + offset;
                self.wrong(format!("unknown unit '{unit}' (known: {known})"), Some(at))
            }
            UnitError::NotANumber { .. } => {
                self.wrong("expected a number".to_owned(), Some(offset + not_digit))
            }
            error => self.wrong(error.to_string(), None),
        }
    }

    /// Where `part` begins in the text.
    fn offset(&self, part: &str) -> usize {
        let (part, text) = (part.as_ptr() as usize, self.text.as_ptr() as usize);
        part.checked_sub(text).filter(|at| *at <= self.text.len()).unwrap_or(0)
    }

    fn unknown_key(&self, given: &str, keys: &'static [Key]) -> ValueError {
        let known: Vec<&'static str> = keys.iter().map(|key| key.name).collect();
        self.unknown_word(given, &known)
    }

    fn unknown_word(&self, given: &str, known: &[&'static str]) -> ValueError {
        ValueError::UnknownWord {
            name: self.found.name.clone(),
            given: given.chars().take(200).collect(),
            nearest: units::nearest(given, known.iter().copied()),
            known: known.to_vec(),
        }
    }

    fn wrong(&self, reason: String, at: Option<usize>) -> ValueError {
        ValueError::Wrong {
            name: self.found.name.clone(),
            given: self.text.chars().take(200).collect(),
            reason,
            at,
            expected: self.found.expected(),
        }
    }

    fn needs(&self, fact: &'static str) -> ValueError {
        ValueError::NeedsMachine { name: self.found.name.clone(), given: self.text.to_owned(), fact }
    }
}

fn micros_text(number: i128) -> String {
    u64::try_from(number).map_or_else(|_| number.to_string(), |us| Micros(us).to_string())
}
