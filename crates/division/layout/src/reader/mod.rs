//! The reader of layouts by their types: what a key takes ([`Takes`]), which keys a table has ([`Keyed`], made by
//! [`keyed!`] from a struct), and complaints at their places. It knows no key.

mod table;
mod value;
mod written;

pub(crate) use table::{Key, Keyed, described, keyed, keys, name, names, object, one_or_more};
pub(crate) use value::{Number, Said, Word, kind, takes_text, whole};
pub(crate) use written::{Pairs, array, table, text, toml_key};

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned as At;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Report};
use crate::names::{Names, cut};
use crate::origin::{Origin, Spanned};
use crate::source::Places;

pub(crate) type Table<'i> = DeTable<'i>;
pub(crate) type Value<'i> = At<DeValue<'i>>;
pub(crate) type Name<'i> = At<DeString<'i>>;

/// One file on its way.
pub(crate) struct Reader<'r> {
    pub(crate) places: &'r Places<'r>,
    pub(crate) names: &'r mut Names,
    pub(crate) report: &'r mut Report,
    /// Lines with a syntax error: what they seem to say is not worth a second complaint.
    pub(crate) broken: BTreeSet<usize>,
    /// Of the key whose value is being read.
    pub(crate) key: Range<usize>,
}

/// What a key takes.
pub(crate) trait Takes: Sized {
    /// As a JSON schema, for editors; a text where nothing is said.
    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": "string" })
    }

    /// `None` if the value is something else, which is reported.
    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Self>;
    /// As TOML; `None` if it is what holds without the key.
    fn write(&self) -> Option<String>;
}

impl<T: Takes> Takes for Option<T> {
    fn schema() -> serde_json::Value {
        T::schema()
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Option<T>> {
        T::read(reader, value).map(Some)
    }

    fn write(&self) -> Option<String> {
        self.as_ref()?.write()
    }
}

impl<T: Takes> Takes for Spanned<T> {
    fn schema() -> serde_json::Value {
        T::schema()
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Spanned<T>> {
        Some(Spanned::new(T::read(reader, value)?, reader.origin(value)))
    }

    fn write(&self) -> Option<String> {
        self.value.write()
    }
}

impl Reader<'_> {
    pub(crate) fn origin<T>(&self, at: &At<T>) -> Origin {
        self.places.origin(at.span())
    }

    pub(crate) fn error(&mut self, diagnostic: Diagnostic) {
        let line = diagnostic.origin.as_ref().map(|origin| origin.line);
        if !line.is_some_and(|line| self.broken.contains(&line)) {
            self.report.push(diagnostic);
        }
    }

    pub(crate) fn wrong(&mut self, value: &Value<'_>, message: String, hint: &str) {
        let error = Diagnostic::error(message).at(self.origin(value));
        self.error(if hint.is_empty() { error } else { error.hint(hint) });
    }

    pub(crate) fn wrong_type(&mut self, value: &Value<'_>, expected: &str) {
        self.wrong(value, format!("expected {expected}, found {}", kind(value.get_ref())), "");
    }

    /// [`Reader::wrong`], as the end of a reading.
    pub(crate) fn refuse<T>(&mut self, value: &Value<'_>, message: String, hint: &str) -> Option<T> {
        self.wrong(value, message, hint);
        None
    }

    /// [`Reader::wrong_type`], as the end of a reading.
    pub(crate) fn refuse_type<T>(&mut self, value: &Value<'_>, expected: &str) -> Option<T> {
        self.wrong_type(value, expected);
        None
    }

    pub(crate) fn unknown_key(&mut self, key: &Name<'_>, place: &str, known: &[&str]) {
        let name = &**key.get_ref();
        let hint = match self.report.is_full() || name.len() > 100 {
            true => format!("known are {}", known.join(", ")),
            false => did_you_mean(name, known),
        };
        self.unknown_key_hint(key, place, hint);
    }

    pub(crate) fn unknown_key_hint(&mut self, key: &Name<'_>, place: &str, hint: String) {
        let error = Diagnostic::error(format!("unknown key '{}' {place}", cut(key.get_ref())));
        self.error(error.at(self.origin(key)).hint(hint));
    }
}

/// The hint where a word is none of those that are known.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    match units::nearest(word, known.iter().copied()).as_slice() {
        [] => format!("known are {}", known.join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

/// A table's entries in the order of the file.
pub(crate) fn entries<'t, 'i>(table: &'t Table<'i>) -> Vec<(&'t Name<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
