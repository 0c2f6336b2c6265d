//! One TOML value as what a key takes, or a complaint at its place.

use toml::de::DeValue;

use super::{Name, Reader, Table, Value, entries};
use crate::diagnostic::Diagnostic;
use crate::keys::{self, Key};

impl Reader<'_> {
    pub(super) fn wrong_type(&mut self, value: &Value<'_>, expected: &str) {
        let error = Diagnostic::error(format!("expected {expected}, found {}", kind(value.get_ref())));
        self.error(error.at(self.origin(value)));
    }

    pub(super) fn wrong(&mut self, value: &Value<'_>, message: String, hint: &str) {
        let error = Diagnostic::error(message).at(self.origin(value));
        self.error(if hint.is_empty() { error } else { error.hint(hint) });
    }

    pub(super) fn text<'v>(&mut self, value: &'v Value<'_>, expected: &str) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(value, expected);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, value: &Value<'_>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(on) => Some(*on),
            _ => {
                self.wrong_type(value, "true or false");
                None
            }
        }
    }

    /// A whole number from `min` on.
    pub(super) fn number(&mut self, value: &Value<'_>, min: u64) -> Option<u64> {
        let Some(number) = whole(value) else {
            self.wrong_type(value, "an integer");
            return None;
        };
        match u64::try_from(number).ok().filter(|number| *number <= i64::MAX as u64) {
            Some(number) if number >= min => Some(number),
            Some(_) => {
                self.wrong(value, format!("{number} is too small"), &format!("the smallest is {min}"));
                None
            }
            None if number < 0 => {
                self.wrong(value, format!("{number} is too small"), &format!("the smallest is {min}"));
                None
            }
            None => {
                self.wrong(value, "the number is too large".to_owned(), "");
                None
            }
        }
    }

    /// A number of CPUs or nodes.
    pub(super) fn count(&mut self, value: &Value<'_>, min: u64) -> Option<usize> {
        let number = usize::try_from(self.number(value, min)?).ok();
        if number.is_none_or(|number| number > units::MAX_ID) {
            self.wrong(value, "the number is too large".to_owned(), "no machine has more than 65535 of them");
            return None;
        }
        number
    }

    /// One of a few words, which `of` turns into what they mean.
    pub(super) fn word<T: Copy>(&mut self, value: &Value<'_>, words: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let text = self.text(value, &format!("one of {}", known.join(", ")))?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let near = units::nearest(&crate::names::cut(text), known.iter().copied());
            let hint = match near.as_slice() {
                [] => format!("known are {}", known.join(", ")),
                near => format!("did you mean {}?", near.join(" or ")),
            };
            self.wrong(value, format!("'{}' is not known here", crate::names::cut(text)), &hint);
        }
        found
    }

    /// A text, or an array of texts, each at its place.
    pub(super) fn texts<'v, 'i>(
        &mut self,
        value: &'v Value<'i>,
        expected: &str,
    ) -> Vec<(&'v str, &'v Value<'i>)> {
        match value.get_ref() {
            DeValue::Array(values) => {
                values.iter().filter_map(|value| Some((self.text(value, expected)?, value))).collect()
            }
            _ => self.text(value, expected).map(|text| (text, value)).into_iter().collect(),
        }
    }

    /// A table's entries, those with unknown keys reported and left out.
    pub(super) fn table<'v, 'i>(
        &mut self,
        value: &'v Value<'i>,
        place: &str,
        known: &[Key],
    ) -> Option<Vec<(&'v Name<'i>, &'v Value<'i>)>> {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, &format!("a table such as {}", example(known)));
            return None;
        };
        Some(self.known_entries(table, place, known))
    }

    pub(super) fn known_entries<'v, 'i>(
        &mut self,
        table: &'v Table<'i>,
        place: &str,
        known: &[Key],
    ) -> Vec<(&'v Name<'i>, &'v Value<'i>)> {
        let mut known_entries = entries(table);
        known_entries.retain(|(key, _)| {
            let is_known = keys::names(known).any(|name| name == key.get_ref());
            if !is_known {
                self.unknown_key(key, place, known);
            }
            is_known
        });
        known_entries
    }

    /// An array of tables, or one table in place of it.
    pub(super) fn tables<'v, 'i>(&mut self, value: &'v Value<'i>, known: &[Key]) -> Vec<&'v Value<'i>> {
        match value.get_ref() {
            _ if self.report.is_hopeless() => Vec::new(),
            DeValue::Array(values) => values.iter().collect(),
            DeValue::Table(_) => vec![value],
            _ => {
                self.wrong_type(value, &format!("an array of tables such as [{}]", example(known)));
                Vec::new()
            }
        }
    }
}

/// The whole number that a value is; far out of range stays far out of range.
pub(super) fn whole(value: &Value<'_>) -> Option<i128> {
    let DeValue::Integer(integer) = value.get_ref() else { return None };
    let negative = integer.as_str().starts_with('-');
    let far = if negative { i128::MIN } else { i128::MAX };
    Some(i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(far))
}

/// A table with the first of some keys, as an example.
fn example(keys: &[Key]) -> String {
    keys.first().map_or("{}".to_owned(), |key| {
        let example = key.examples.split(" · ").next().unwrap_or_default();
        format!("{{ {} = {example} }}", key.name)
    })
}

pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date-time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
