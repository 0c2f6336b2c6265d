//! Settings among a group's keys: `memory.max = "8G"`, `io.max."/dev/sdb" = { riops = 10 }`. TOML reads the dots as
//! tables, the settings table defines where a name ends and its value begins.

use settings::{Kind, NamedSetting};
use toml::de::DeValue;

use super::range::is_bound;
use crate::collect::Collector;
use crate::diagnostic::Diagnostic;
use crate::names::{AnyMachine, cut};
use crate::reader::{Name, Reader, Table, Value, entries, kind, whole};

impl Reader<'_> {
    /// Takes a key that is the name of a setting or the beginning of one.
    pub(super) fn setting(&mut self, name: &str, key: &Name<'_>, value: &Value<'_>, into: &mut Collector) {
        if self.broken.contains(&self.origin(key).line) {
            return;
        }
        let found = self.names.find(name);
        match (value.get_ref(), found) {
            (DeValue::Table(table), found) => self.setting_table(name, key, table, found, value, into),
            (_, Some(found)) => {
                if let Some(text) = self.value_text(&found, value) {
                    let (name, at) = (self.origin(key), self.origin(value));
                    into.assign(found, &text, name, at, self.report);
                }
            }
            (_, None) => self.unknown_setting(name, key),
        }
    }

    /// Each entry of a table goes on with the name, or is a part of the value of the setting that ends here.
    fn setting_table(
        &mut self,
        name: &str,
        key: &Name<'_>,
        table: &Table<'_>,
        found: Option<NamedSetting>,
        value: &Value<'_>,
        into: &mut Collector,
    ) {
        if found.is_none() && !self.names.begins(name) {
            self.unknown_setting(name, key);
            return;
        }
        let takes_tables = found.as_ref().is_some_and(|found| takes_tables(found.setting.kind));
        let is_range = found.as_ref().is_some_and(|found| !takes_tables_by_name(found.setting.kind));
        let (mut parts, mut bounds) = (Vec::new(), Vec::new());
        for (key, value) in entries(table) {
            let longer = format!("{name}.{}", key.get_ref());
            let goes_on = self.names.begins(&longer) || self.names.find(&longer).is_some();
            if !goes_on && is_range && is_bound(key.get_ref()) {
                bounds.push((key, value));
            } else if goes_on || !takes_tables {
                self.setting(&longer, key, value, into);
            } else {
                parts.push((key, value));
            }
        }
        if let (Some(found), false) = (&found, bounds.is_empty()) {
            match parts.first() {
                Some((key, _)) => self.unknown_key(key, "beside min and max", &["min", "max"]),
                None => self.range(found.clone(), key, &bounds, value, into),
            }
            return;
        }
        if let Some(found) = found.filter(|_| !parts.is_empty()) {
            let text = self.parts_text(&found, &parts);
            let (name, at) = (self.origin(key), self.origin(value));
            match text {
                Some(text) => into.assign(found, &text, name, at, self.report),
                None => {
                    into.say(&found, &found.name, &name, self.report);
                }
            }
        }
    }

    /// The text of a setting whose value is a table; `None` if a part is wrong, each of which is reported.
    fn parts_text(&mut self, found: &NamedSetting, parts: &[(&Name<'_>, &Value<'_>)]) -> Option<String> {
        let quota_and_period = found.setting.kind == Kind::CpuMax;
        let mut texts = Vec::new();
        let before = self.report.errors();
        for (key, value) in parts {
            let name = &**key.get_ref();
            if quota_and_period && !matches!(name, "quota" | "period") {
                self.unknown_key(key, &format!("in '{}'", found.name), &["quota", "period"]);
            } else if name.contains(|c: char| c.is_whitespace() || c == ';') || name.is_empty() {
                let error = Diagnostic::error(format!("'{}' can't be a device or name here", cut(name)));
                self.error(error.at(self.origin(key)).hint("use MAJOR:MINOR, as `lsblk` prints it"));
            } else if let DeValue::Table(table) = value.get_ref() {
                let mut pairs = vec![name.to_owned()];
                for (key, value) in entries(table) {
                    let Some(text) = self.scalar(value) else { continue };
                    let pair = format!("{}={text}", key.get_ref());
                    self.check_part(found, &format!("{name} {pair}"), value);
                    pairs.push(pair);
                }
                texts.push(pairs.join(" "));
            } else if let Some(text) = self.scalar(value) {
                let text = format!("{name} {text}");
                if !quota_and_period {
                    self.check_part(found, &text, value);
                }
                texts.push(text);
            }
        }
        let text = if quota_and_period { quota_over_period(&texts) } else { texts.join("; ") };
        (self.report.errors() == before).then_some(text)
    }

    /// Reads a part of a value alone, to report all errors, each at its place.
    fn check_part(&mut self, found: &NamedSetting, text: &str, value: &Value<'_>) {
        if let Err(error) = found.parse(text, &AnyMachine) {
            let diagnostic = Diagnostic::error(error.to_string()).at(self.origin(value));
            self.error(diagnostic.maybe_hint(error.hint()));
        }
    }

    /// A value without a name of its own as `NamedSetting::parse` takes it.
    fn value_text(&mut self, found: &NamedSetting, value: &Value<'_>) -> Option<String> {
        if matches!(value.get_ref(), DeValue::Boolean(_)) && found.setting.kind != Kind::Flag {
            let expected = found.setting.kind.syntax();
            return self.refuse(value, format!("{}: expected {expected}, found a boolean", found.name), "");
        }
        let DeValue::Array(values) = value.get_ref() else { return self.scalar(value) };
        let texts: Vec<_> = values.iter().map(|value| self.scalar(value)).collect();
        let texts = texts.into_iter().collect::<Option<Vec<_>>>()?;
        Some(match found.setting.kind {
            Kind::Cpus | Kind::Nodes => texts.join(","),
            _ => texts.join("; "),
        })
    }

    pub(super) fn scalar(&mut self, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
            DeValue::Integer(_) => whole(value).map(|number| number.to_string()),
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(on) => Some(if *on { "1" } else { "0" }.to_owned()),
            other => {
                let found = kind(other);
                self.refuse(value, format!("expected a string, a number or a boolean, found {found}"), "")
            }
        }
    }

    fn unknown_setting(&mut self, name: &str, key: &Name<'_>) {
        let origin = self.origin(key);
        if !self.broken.contains(&origin.line) {
            self.names.unknown(name, origin, self.report);
        }
    }
}

fn takes_tables(kind: Kind) -> bool {
    takes_tables_by_name(kind) || kind == Kind::CpuMax
}

/// Is a key of its table a device or a name?
fn takes_tables_by_name(kind: Kind) -> bool {
    matches!(kind, Kind::PerDevice(_) | Kind::Weights | Kind::Keyed(_))
}

/// `quota 50ms` and `period 100ms` as `50ms/100ms`.
fn quota_over_period(parts: &[String]) -> String {
    let part = |name: &str| parts.iter().find_map(|part| part.strip_prefix(name)?.strip_prefix(' '));
    match (part("quota").unwrap_or_default(), part("period")) {
        (quota, Some(period)) => format!("{quota}/{period}"),
        (quota, None) => quota.to_owned(),
    }
}
