//! The keys of a table of the file, made from a struct: its fields are the keys, their types what they take, their doc
//! comments what the manual and editors say, and `#[takes]` what may stand behind them.

use serde_json::{Map, Value as Json, json};
use toml::de::DeValue;

use super::{Name, Pairs, Reader, Takes, Value, entries};

/// One key of a table of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub name: &'static str,
    /// What it takes.
    pub schema: fn() -> Json,
    /// Right sides that may stand behind it, as TOML, separated by ` · `.
    pub examples: &'static str,
    /// As it was written.
    pub doc: &'static str,
}

impl Key {
    /// One or two sentences without the last full stop.
    pub(crate) fn doc(&self) -> &'static str {
        let doc = self.doc.trim();
        doc.strip_suffix('.').unwrap_or(doc)
    }
}

/// A struct whose fields are the keys of a table; [`keyed!`] makes it.
pub(crate) trait Keyed: Default {
    /// Where an unknown key is, in words.
    const PLACE: &'static str;
    const KEYS: &'static [Key];
    /// Reads the value of a key that is one of them.
    fn take(&mut self, key: &str, reader: &mut Reader<'_>, value: &Value<'_>);
    /// The keys that say more than their absence.
    fn pairs(&self) -> Pairs;
}

/// A struct as a table of the file: it is [`Keyed`], and can be read and written ([`Takes`](super::Takes)).
macro_rules! keyed {
    (
        $(#[$meta:meta])*
        $seen:vis struct $table:ident $(<$of:ident: $bound:ident>)? in $place:literal {
            $(
                $(#[doc = $doc:literal])+
                #[takes($examples:literal)]
                $field_seen:vis $field:ident $(as $key:literal)?: $takes:ty,
            )+
        }
    ) => {
        $(#[$meta])*
        $seen struct $table $(<$of>)? {
            $($(#[doc = $doc])+ $field_seen $field: $takes,)+
        }

        impl $(<$of: $bound>)? $crate::reader::Keyed for $table $(<$of>)? {
            const PLACE: &'static str = $place;
            const KEYS: &'static [$crate::reader::Key] = $crate::reader::keys! {
                $($(#[doc = $doc])+ #[takes($examples)] $field $(as $key)?: <$takes as $crate::reader::Takes>::schema,)+
            };

            fn take(
                &mut self,
                key: &str,
                reader: &mut $crate::reader::Reader<'_>,
                value: &$crate::reader::Value<'_>,
            ) {
                $(if key == $crate::reader::name!($field $($key)?) {
                    if let Some(taken) = $crate::reader::Takes::read(reader, value) {
                        self.$field = taken;
                    }
                    return;
                })+
            }

            fn pairs(&self) -> $crate::reader::Pairs {
                let pairs = [$(
                    ($crate::reader::name!($field $($key)?), $crate::reader::Takes::write(&self.$field)),
                )+];
                pairs.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
            }
        }

        impl $(<$of: $bound>)? $crate::reader::Takes for $table $(<$of>)? {
            fn schema() -> serde_json::Value {
                $crate::reader::object(<Self as $crate::reader::Keyed>::KEYS)
            }

            fn read(
                reader: &mut $crate::reader::Reader<'_>,
                value: &$crate::reader::Value<'_>,
            ) -> Option<Self> {
                use $crate::reader::Keyed;
                reader.keyed(value, Self::PLACE, Self::KEYS)
            }

            fn write(&self) -> Option<String> {
                Some($crate::reader::table(&$crate::reader::Keyed::pairs(self)))
            }
        }
    };
}
pub(crate) use keyed;

/// The keys of a table that is no struct; each with the schema of what it takes in the place of a type.
macro_rules! keys {
    ($($(#[doc = $doc:literal])+ #[takes($examples:literal)] $field:ident $(as $key:literal)?: $schema:expr,)+) => {
        &[$($crate::reader::Key {
            name: $crate::reader::name!($field $($key)?),
            schema: $schema,
            examples: $examples,
            doc: concat!($($doc),+),
        }),+]
    };
}
pub(crate) use keys;

/// A field's name as a key.
macro_rules! name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}
pub(crate) use name;

/// The names of some keys.
pub(crate) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// The JSON schema of a table of some keys.
pub(crate) fn object(known: &[Key]) -> Json {
    let properties: Map<String, Json> = known.iter().map(Key::property).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

pub(crate) fn described(mut schema: Json, doc: &str) -> Json {
    schema["description"] = doc.into();
    schema
}

/// One, or an array of them.
pub(crate) fn one_or_more(one: Json) -> Json {
    json!({ "anyOf": [one, { "type": "array", "items": one }] })
}

impl Key {
    /// With what editors show of it.
    pub(crate) fn property(&self) -> (String, Json) {
        (self.name.to_owned(), described((self.schema)(), self.doc()))
    }
}

impl Reader<'_> {
    /// A table as a struct; `place` says in words where an unknown key is, and `known` may be some of the struct's keys.
    pub(crate) fn keyed<T: Keyed>(&mut self, value: &Value<'_>, place: &str, known: &[Key]) -> Option<T> {
        let entries = self.table(value, place, known)?;
        Some(self.entries(&entries))
    }

    /// Entries as a struct; those with other keys are left to others.
    pub(crate) fn entries<T: Keyed>(&mut self, entries: &[(&Name<'_>, &Value<'_>)]) -> T {
        let mut table = T::default();
        for (key, value) in entries {
            self.key = key.span();
            table.take(key.get_ref(), self, value);
        }
        table
    }

    /// A table's entries, those with unknown keys reported and left out.
    pub(crate) fn table<'v, 'i>(
        &mut self,
        value: &'v Value<'i>,
        place: &str,
        known: &[Key],
    ) -> Option<Vec<(&'v Name<'i>, &'v Value<'i>)>> {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, &format!("a table such as {}", example(known)));
            return None;
        };
        let mut known_entries = entries(table);
        known_entries.retain(|(key, _)| {
            let is_known = known.iter().any(|known| known.name == key.get_ref());
            if !is_known {
                self.unknown_key(key, place, &names(known));
            }
            is_known
        });
        Some(known_entries)
    }

    /// An array of tables of some keys, or one in place of it; those that are wrong are reported and left out.
    pub(crate) fn each<T: Takes>(&mut self, value: &Value<'_>, known: &[Key]) -> Vec<T> {
        let tables = self.tables(value, known);
        tables.into_iter().filter_map(|value| Takes::read(self, value)).collect()
    }

    /// An array of tables, or one table in place of it.
    pub(crate) fn tables<'v, 'i>(&mut self, value: &'v Value<'i>, known: &[Key]) -> Vec<&'v Value<'i>> {
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

/// A table with the first of some keys, as an example.
fn example(keys: &[Key]) -> String {
    keys.first().map_or("{}".to_owned(), |key| {
        let example = key.examples.split(" · ").next().unwrap_or_default();
        format!("{{ {} = {example} }}", key.name)
    })
}
