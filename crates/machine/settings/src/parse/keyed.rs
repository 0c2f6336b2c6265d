//! Values that name devices, interfaces or resources: one entry each, separated by `;` or new lines.

use std::collections::BTreeMap;

use units::{Bytes, Limit, Micros};

use super::Reader;
use crate::error::ValueError;
use crate::names::Via;
use crate::rule::{DeviceRule, rule};
use crate::setting::{Codec, Key, Unit, Version};
use crate::value::{DeviceNumber, Hundredths, Value};

impl Reader<'_> {
    /// The entries of a text with one entry per device, name or rule.
    fn entries(&self) -> impl Iterator<Item = &str> {
        self.text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty())
    }

    fn device(&self, given: &str) -> Result<DeviceNumber, ValueError> {
        let number = match given.bytes().all(|b| b.is_ascii_digit() || b == b':') {
            true => given.parse(),
            false => self.facts.device(given),
        };
        number.map_err(|reason| ValueError::Device {
            name: self.found.name.clone(),
            given: given.to_owned(),
            reason,
        })
    }

    /// `/dev/sdb riops=10 wbps=1M`, `8:16 max`; under a v1 name `8:16 10`.
    pub(super) fn per_device(&self, keys: &'static [Key]) -> Result<Value, ValueError> {
        let one = match self.found.via {
            Via::File { version: Version::V1, index } => keys.get(index),
            _ => keys.first().filter(|_| keys.len() == 1),
        };
        let mut devices: BTreeMap<DeviceNumber, BTreeMap<&'static str, Limit<u64>>> = BTreeMap::new();
        for entry in self.entries() {
            let mut words = entry.split_whitespace();
            let device = self.device(words.next().unwrap_or_default())?;
            let limits = devices.entry(device).or_default();
            for word in words {
                match (word.split_once('='), one) {
                    (Some((name, limit)), one) => {
                        let mut known = keys.iter().filter(|key| one.is_none_or(|one| one == *key));
                        let key = known.find(|key| key.name == name);
                        let key = key
                            .ok_or_else(|| self.unknown_key(name, one.map_or(keys, std::slice::from_ref)))?;
                        limits.insert(key.name, self.limit(key, limit)?);
                    }
                    (None, Some(key)) => {
                        limits.insert(key.name, self.limit(key, word)?);
                    }
                    (None, None) if matches!(word, "max" | "default") => {
                        limits.extend(keys.iter().map(|key| (key.name, Limit::Max)));
                    }
                    (None, None) => return Err(self.unknown_key(word, keys)),
                }
            }
            if limits.is_empty() {
                return Err(self.wrong(format!("'{entry}' has no limit after the device"), None));
            }
        }
        if devices.is_empty() {
            return Err(self.wrong("no device is given".to_owned(), None));
        }
        Ok(Value::PerDevice(devices))
    }

    /// One limit of a key. 0 lifts it under v1's names only: on v2 it would not be clear whether "nothing" or "no
    /// limit" is meant, and the kernel refuses it.
    fn limit(&self, key: &Key, text: &str) -> Result<Limit<u64>, ValueError> {
        let v1 = self.via && self.version == Version::V1;
        let number = match (text, key.unit) {
            ("max" | "default", _) => return Ok(Limit::Max),
            ("0" | "-1" | "unlimited", _) if v1 => return Ok(Limit::Max),
            (text, Unit::Bytes) => text.parse::<Bytes>().map(|bytes| bytes.0),
            (text, Unit::Micros) => text.parse::<Micros>().map(|micros| micros.0),
            (text, _) => Ok(self.number(text)?),
        };
        let number = number.map_err(|error| self.unit_error(text, error))?;
        if (1..=key.max).contains(&number) {
            return Ok(Limit::At(number));
        }
        let named = if v1 { text.to_owned() } else { format!("{}={text}", key.name) };
        let mut error = self.out_of_range(&named, "1", &key.max.to_string(), number == 0);
        if let (ValueError::OutOfRange { otherwise, .. }, 0) = (&mut error, number) {
            *otherwise = Some("`max` lifts the limit");
        }
        Err(error)
    }

    /// `200`, `default 200`, `/dev/sdb 500`, `8:16 default`.
    pub(super) fn weights(&self) -> Result<Value, ValueError> {
        let scale = match (self.via, self.binding.codec) {
            (true, Codec::WeightFiles { default, .. }) => default,
            _ => 100,
        };
        let weight = |text: &str| match scale {
            100 => {
                let weight = self.hundredths(text)?;
                self.check_hundredths(weight).map(|()| weight)
            }
            scale => Ok(Hundredths::from_scale(self.count(text)?, scale)),
        };
        let (mut default, mut devices) = (None, BTreeMap::new());
        for entry in self.entries() {
            match entry.split_once(char::is_whitespace).map(|(of, rest)| (of, rest.trim_start())) {
                None | Some(("default", _)) => {
                    default = Some(weight(entry.strip_prefix("default").unwrap_or(entry).trim())?);
                }
                Some((device, "default" | "max")) => {
                    devices.insert(self.device(device)?, None);
                }
                Some((device, "0")) if self.version == Version::V1 => {
                    devices.insert(self.device(device)?, None);
                }
                Some((device, text)) => {
                    devices.insert(self.device(device)?, Some(weight(text)?));
                }
            }
        }
        match default.is_none() && devices.is_empty() {
            true => Err(self.wrong("no weight is given".to_owned(), None)),
            false => Ok(Value::Weights { default, devices }),
        }
    }

    /// `c 1:3 rwm; b 8:* r`.
    pub(super) fn rules(&self) -> Result<Value, ValueError> {
        let rules: Vec<DeviceRule> =
            self.entries().map(|entry| self.rule(entry)).collect::<Result<_, _>>()?;
        match rules.is_empty() {
            true => Err(self.wrong("no rule is given".to_owned(), None)),
            false => Ok(Value::Rules(rules)),
        }
    }

    fn rule(&self, entry: &str) -> Result<DeviceRule, ValueError> {
        rule(entry).map_err(|(reason, at)| {
            let start = entry.as_ptr() as usize - self.text.as_ptr() as usize;
            self.wrong(reason, Some(start + at))
        })
    }

    /// `10:1` (hexadecimal, as `tc` writes it), `0x100001`, `1048577`.
    pub(super) fn class_id(&self) -> Result<u32, ValueError> {
        let text = self.text;
        let hexadecimal = |text: &str, digits| {
            let fits = (1..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
            fits.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        let id = match (text.split_once(':'), text.strip_prefix("0x")) {
            (Some((major, minor)), _) => {
                hexadecimal(major, 4).and_then(|major| Some(major << 16 | hexadecimal(minor, 4)?))
            }
            (None, Some(digits)) => hexadecimal(digits, 8),
            (None, None) => text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit())),
        };
        id.ok_or_else(|| self.wrong(format!("'{text}' is no network class"), None))
    }

    /// `res_a 5; res_b max`, or `mlx5_0 hca_handle=2 hca_object=max`.
    pub(super) fn keyed(&self, keys: &'static [Key]) -> Result<Value, ValueError> {
        let mut names: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for entry in self.entries() {
            let (name, rest) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
            // block devices are named by number in the kernel's tables
            let name = match name.contains('/') || name.contains(':') {
                true => self.device(name)?.to_string(),
                false => name.to_owned(),
            };
            let values = names.entry(name).or_default();
            for word in rest.split_whitespace() {
                let (key, value) = word.split_once('=').unwrap_or(("", word));
                let known = keys.iter().find(|known| known.name == key);
                let known =
                    known.ok_or_else(|| self.unknown_key(if key.is_empty() { word } else { key }, keys))?;
                values.insert(key.to_owned(), self.keyed_value(known, value)?);
            }
            if values.is_empty() {
                return Err(self.wrong(format!("'{entry}' has no value after the name"), None));
            }
        }
        match names.is_empty() {
            true => Err(self.wrong("no value is given".to_owned(), None)),
            false => Ok(Value::Keyed(names)),
        }
    }

    fn keyed_value(&self, key: &Key, value: &str) -> Result<String, ValueError> {
        match key.unit {
            Unit::Word(words) if words.contains(&value) => Ok(value.to_owned()),
            Unit::Word(words) => Err(self.unknown_word(value, words)),
            Unit::Percent => {
                let percent = self.hundredths(value.strip_suffix('%').unwrap_or(value))?;
                // as the kernel prints it, so that it compares
                Ok(format!("{}.{:02}", percent.0 / 100, percent.0 % 100))
            }
            _ if value == "0" => Ok(value.to_owned()),
            _ => self.limit(key, value).map(|limit| limit.to_string()),
        }
    }
}
