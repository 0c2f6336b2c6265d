//! What is said of the whole machine: what it must be like, the reserve for the rest of the system, v1 hierarchies to
//! be mounted, and cgconfig.conf's `systemd` section.

use toml::de::DeValue;
use units::{Bytes, Limit};

use super::{Reader, Value, entries};
use crate::demand::{CpuDemand, MemoryAmount};
use crate::desired::{Assertions, Expected, LARGEST_PID, Mount, Power, Reserve, Systemd};
use crate::diagnostic::Diagnostic;
use crate::keys;
use crate::names::cut;
use crate::origin::Spanned;
use crate::rule::{Subsystem, no_controller};

impl Reader<'_> {
    pub(super) fn reserve(&mut self, value: &Value<'_>) -> Reserve {
        let mut reserve = Reserve::default();
        for (key, value) in self.table(value, "in 'reserve'", keys::RESERVE).unwrap_or_default() {
            match &**key.get_ref() {
                "cpus" => reserve.cpus = self.reserved_cpus(value),
                _ => reserve.memory = self.reserved_memory(value),
            }
        }
        reserve
    }

    pub(super) fn power(&mut self, value: &Value<'_>) -> Power {
        let mut power = Power::default();
        for (key, value) in self.table(value, "in 'power'", keys::POWER).unwrap_or_default() {
            match &**key.get_ref() {
                "saving" => power.saving = self.flag(value).unwrap_or(false),
                "frequency" => {
                    let wanted = self.flag(value).unwrap_or(false);
                    power.frequency = wanted.then(|| Spanned::new((), self.origin(value)));
                }
                _ => {
                    power.floor = self.count(value, 1).map(|floor| Spanned::new(floor, self.origin(value)));
                }
            }
        }
        power
    }

    fn reserved_cpus(&mut self, value: &Value<'_>) -> Option<Spanned<CpuDemand>> {
        let cpus = self.cpus(value)?;
        if matches!(cpus.value, CpuDemand::All | CpuDemand::Like(_)) {
            let hint = "such as 2, \"0-1\" or { count = 2, near = \"node:0\" }";
            self.wrong(value, "expected a number or a list of CPUs".to_owned(), hint);
            return None;
        }
        Some(cpus)
    }

    fn reserved_memory(&mut self, value: &Value<'_>) -> Option<Spanned<MemoryAmount>> {
        let amount = match value.get_ref() {
            DeValue::String(text) if text.trim().ends_with('%') => {
                MemoryAmount::Percent(self.share(value, text.trim())?)
            }
            _ => MemoryAmount::Bytes(self.bytes(value)?),
        };
        Some(Spanned::new(amount, self.origin(value)))
    }

    fn bytes(&mut self, value: &Value<'_>) -> Option<Bytes> {
        match value.get_ref() {
            DeValue::Integer(_) => self.number(value, 0).map(Bytes),
            DeValue::String(text) => match text.parse() {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    self.wrong(value, error.to_string(), "an amount such as \"4G\"");
                    None
                }
            },
            _ => {
                self.wrong_type(value, "an amount such as \"4G\"");
                None
            }
        }
    }

    pub(super) fn assertions(&mut self, value: &Value<'_>) -> Assertions {
        let mut host = Assertions::default();
        for (key, value) in self.table(value, "in 'host'", keys::HOST).unwrap_or_default() {
            match &**key.get_ref() {
                "hostname" => host.hostname = self.pattern_text(value),
                "model" => host.model = self.pattern_text(value),
                "nodes" => host.nodes = self.expected(value, Self::whole_number, |n| (*n, *n)),
                "cpus" => host.cpus = self.expected(value, Self::whole_number, |n| (*n, *n)),
                _ => host.memory = self.expected(value, Self::bytes, |bytes| about(*bytes)),
            }
        }
        host
    }

    fn whole_number(&mut self, value: &Value<'_>) -> Option<usize> {
        self.count(value, 0)
    }

    fn pattern_text(&mut self, value: &Value<'_>) -> Option<Spanned<String>> {
        let text = self.text(value, "a string")?.trim().to_owned();
        if text.is_empty() {
            self.wrong(value, "the string is empty".to_owned(), "leave the line out if anything will do");
            return None;
        }
        Some(Spanned::new(text, self.origin(value)))
    }

    /// One amount, from which to which is meant by `plain`, or `{ min, max }`.
    fn expected<T: PartialOrd + Default>(
        &mut self,
        value: &Value<'_>,
        read: fn(&mut Self, &Value<'_>) -> Option<T>,
        plain: fn(&T) -> (T, T),
    ) -> Option<Spanned<Expected<T>>> {
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            let (min, max) = plain(&read(self, value)?);
            return Some(Spanned::new(Expected { min, max: Limit::At(max) }, self.origin(value)));
        }
        let (mut min, mut max) = (None, None);
        for (key, value) in self.table(value, "in what is expected", keys::EXPECTED)? {
            let bound = Some(read(self, value)?);
            match &**key.get_ref() {
                "min" => min = bound,
                _ => max = bound,
            }
        }
        if min.is_none() && max.is_none() {
            self.wrong(value, "neither min nor max is given".to_owned(), "such as { min = 2 }");
            return None;
        }
        let expected = Expected { min: min.unwrap_or_default(), max: max.map_or(Limit::Max, Limit::At) };
        if matches!(&expected.max, Limit::At(max) if *max < expected.min) {
            self.wrong(value, "min is above max".to_owned(), "");
            return None;
        }
        Some(Spanned::new(expected, self.origin(value)))
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
                self.wrong(value, format!("'{}' is no absolute path", cut(path)), "such as \"/cgroup/cpu\"");
                return None;
            }
            Some(Mount { subsystem, path: path.to_owned(), origin: self.origin(key) })
        });
        mounts.collect()
    }

    pub(super) fn systemd(&mut self, value: &Value<'_>) -> Vec<Spanned<Systemd>> {
        let sections = self.tables(value, keys::SYSTEMD);
        let sections = sections.into_iter().filter_map(|value| {
            let mut systemd = Systemd::default();
            for (key, value) in self.table(value, "in 'systemd'", keys::SYSTEMD)? {
                match &**key.get_ref() {
                    "slice" => systemd.slice = self.text(value, "the name of a slice").map(str::to_owned),
                    "scope" => systemd.scope = self.text(value, "the name of a scope").map(str::to_owned),
                    "set_default" => systemd.set_default = self.flag(value).unwrap_or(false),
                    _ => systemd.pid = self.pid(value),
                }
            }
            Some(Spanned::new(systemd, self.origin(value)))
        });
        sections.collect()
    }

    fn pid(&mut self, value: &Value<'_>) -> Option<u32> {
        let number = self.number(value, 1)?;
        let pid = u32::try_from(number).ok().filter(|pid| *pid <= LARGEST_PID);
        if pid.is_none() {
            self.wrong(value, format!("{number} is no process"), &format!("the largest is {LARGEST_PID}"));
        }
        pid
    }
}

/// A tenth more or less, in whole mebibytes.
fn about(bytes: Bytes) -> (Bytes, Bytes) {
    const MIB: u64 = 1 << 20;
    let tenth = bytes.0 / 10;
    let most = bytes.0.saturating_add(tenth).checked_next_multiple_of(MIB).unwrap_or(u64::MAX);
    (Bytes((bytes.0 - tenth) / MIB * MIB), Bytes(most))
}
