//! What is said of the whole machine: what it must be like, the reserve for the rest of the system, and v1 hierarchies
//! to be mounted.

use serde_json::{Value as Json, json};
use toml::de::DeValue;
use units::{Bytes, Limit};

use crate::demand::{CpuDemand, MemoryAmount};
use crate::desired::{Assertions, Expected, Mount, Reserve};
use crate::diagnostic::Diagnostic;
use crate::names::cut;
use crate::origin::Spanned;
use crate::reader::{Keyed as _, Reader, Takes, Value, entries, keyed, table, text};
use crate::rule::{Subsystem, no_controller};

impl Reader<'_> {
    pub(super) fn reserve(&mut self, value: &Value<'_>) -> Reserve {
        let mut reserve = Reserve::read(self, value).unwrap_or_default();
        let is_other = |cpus: &Spanned<_>| matches!(cpus.value, CpuDemand::All | CpuDemand::Like(_));
        if let Some(cpus) = reserve.cpus.take_if(|cpus| is_other(cpus)) {
            let error = Diagnostic::error("expected a number or a list of CPUs").at(cpus.origin);
            self.error(error.hint("such as 2, \"0-1\" or { count = 2, near = \"node:0\" }"));
        }
        reserve
    }

    pub(super) fn assertions(&mut self, value: &Value<'_>) -> Assertions {
        let mut host = Assertions::read(self, value).unwrap_or_default();
        for text in [&mut host.hostname, &mut host.model] {
            text.iter_mut().for_each(|text| text.value = text.value.trim().to_owned());
            if let Some(text) = text.take_if(|text| text.value.is_empty()) {
                let error = Diagnostic::error("the string is empty").at(text.origin);
                self.error(error.hint("leave the line out if anything will do"));
            }
        }
        host
    }

    pub(super) fn mounts(&mut self, value: &Value<'_>) -> Vec<Mount> {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, "a table such as { cpu = \"/cgroup/cpu\" }");
            return Vec::new();
        };
        let mounts = entries(table).into_iter().filter_map(|(key, value)| {
            let Some(subsystem) = Subsystem::new(key.get_ref()) else {
                let (message, hint) = no_controller(key.get_ref());
                let error = Diagnostic::error(message).at(self.origin(key)).hint(hint);
                self.error(error);
                return None;
            };
            let path = self.text(value, "a directory")?;
            if !path.starts_with('/') || path.contains(char::is_control) {
                return self.refuse(
                    value,
                    format!("'{}' is no absolute path", cut(path)),
                    "such as \"/cgroup/cpu\"",
                );
            }
            Some(Mount { subsystem, path: path.to_owned(), origin: self.origin(key) })
        });
        mounts.collect()
    }
}

impl Takes for MemoryAmount {
    fn schema() -> Json {
        Bytes::schema()
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<MemoryAmount> {
        match value.get_ref() {
            DeValue::String(text) if text.trim().ends_with('%') => {
                reader.share(value, text.trim()).map(MemoryAmount::Percent)
            }
            _ => Bytes::read(reader, value).map(MemoryAmount::Bytes),
        }
    }

    fn write(&self) -> Option<String> {
        match self {
            MemoryAmount::Bytes(bytes) => bytes.write(),
            MemoryAmount::Percent(share) => Some(text(&format!("{share}%"))),
        }
    }
}

impl Takes for Bytes {
    fn schema() -> Json {
        json!({ "type": ["integer", "string"] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Bytes> {
        match value.get_ref() {
            DeValue::Integer(_) => reader.number(value, 0).map(Bytes),
            DeValue::String(text) => match text.parse() {
                Ok(bytes) => Some(bytes),
                Err(error) => reader.refuse(value, error.to_string(), "an amount such as \"4G\""),
            },
            _ => reader.refuse_type(value, "an amount such as \"4G\""),
        }
    }

    fn write(&self) -> Option<String> {
        Some(text(&self.to_string()))
    }
}

keyed! {
    /// What is expected, with its bounds.
    #[derive(Default)]
    pub(crate) struct Bounds<T: Amount> in "in what is expected" {
        /// At least.
        #[takes("2")]
        min: Option<T>,
        /// At most.
        #[takes("4")]
        max: Option<T>,
    }
}

/// What can be expected of a machine.
pub(crate) trait Amount: Takes + Default + Copy + PartialOrd {
    /// From which to which is meant by one alone.
    fn alone(self) -> (Self, Self);
}

impl Amount for usize {
    fn alone(self) -> (usize, usize) {
        (self, self)
    }
}

impl Amount for Bytes {
    /// A tenth more or less, in whole mebibytes.
    fn alone(self) -> (Bytes, Bytes) {
        const MIB: u64 = 1 << 20;
        let tenth = self.0 / 10;
        let most = self.0.saturating_add(tenth).checked_next_multiple_of(MIB).unwrap_or(u64::MAX);
        (Bytes((self.0 - tenth) / MIB * MIB), Bytes(most))
    }
}

impl<T: Amount> Takes for Expected<T> {
    fn schema() -> Json {
        json!({ "anyOf": [T::schema(), Bounds::<T>::schema()] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Expected<T>> {
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            let (min, max) = T::read(reader, value)?.alone();
            return Some(Expected { min, max: Limit::At(max) });
        }
        let before = reader.report.errors();
        let Bounds { min, max } = Bounds::read(reader, value)?;
        if reader.report.errors() > before {
            return None;
        }
        if min.is_none() && max.is_none() {
            return reader.refuse(value, "neither min nor max is given".to_owned(), "such as { min = 2 }");
        }
        let expected = Expected { min: min.unwrap_or_default(), max: max.map_or(Limit::Max, Limit::At) };
        if matches!(expected.max, Limit::At(max) if max < expected.min) {
            return reader.refuse(value, "min is above max".to_owned(), "");
        }
        Some(expected)
    }

    fn write(&self) -> Option<String> {
        match self.max {
            Limit::At(max) if self.min.alone() == (self.min, max) => self.min.write(),
            max => Some(table(&Bounds { min: Some(self.min), max: max.at() }.pairs())),
        }
    }
}
