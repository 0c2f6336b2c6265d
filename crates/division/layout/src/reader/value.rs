//! One TOML value as what a key takes, or a complaint at its place.

use std::num::NonZeroUsize;

use serde_json::{Value as Json, json};
use toml::de::DeValue;

use super::{Reader, Takes, Value, did_you_mean, text};
use crate::names::cut;
use crate::origin::Origin;

impl Reader<'_> {
    pub(crate) fn text<'v>(&mut self, value: &'v Value<'_>, expected: &str) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => self.refuse_type(value, expected),
        }
    }

    /// A whole number from `min` on.
    pub(crate) fn number(&mut self, value: &Value<'_>, min: u64) -> Option<u64> {
        let Some(number) = whole(value) else {
            return self.refuse_type(value, "an integer");
        };
        match u64::try_from(number).ok().filter(|number| *number <= i64::MAX as u64) {
            Some(number) if number >= min => Some(number),
            Some(_) => {
                self.refuse(value, format!("{number} is too small"), &format!("the smallest is {min}"))
            }
            None if number < 0 => {
                self.refuse(value, format!("{number} is too small"), &format!("the smallest is {min}"))
            }
            None => self.refuse(value, "the number is too large".to_owned(), ""),
        }
    }

    /// A number of CPUs or nodes.
    pub(crate) fn count(&mut self, value: &Value<'_>, min: u64) -> Option<usize> {
        let number = usize::try_from(self.number(value, min)?).ok();
        if number.is_none_or(|number| number > units::MAX_ID) {
            return self.refuse(
                value,
                "the number is too large".to_owned(),
                "no machine has more than 65535 of them",
            );
        }
        number
    }

    /// One of a few words, which `of` turns into what they mean.
    pub(crate) fn word<T: Copy>(&mut self, value: &Value<'_>, words: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let text = self.text(value, &format!("one of {}", known.join(", ")))?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let text = cut(text);
            self.wrong(value, format!("'{text}' is not known here"), &did_you_mean(&text, &known));
        }
        found
    }

    /// A text, or an array of texts, each at its place.
    pub(crate) fn texts<'v, 'i>(
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
}

/// The whole number that a value is; far out of range stays far out of range.
pub(crate) fn whole(value: &Value<'_>) -> Option<i128> {
    let DeValue::Integer(integer) = value.get_ref() else { return None };
    let negative = integer.as_str().starts_with('-');
    let far = if negative { i128::MIN } else { i128::MAX };
    Some(i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(far))
}

pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
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

impl Takes for bool {
    fn schema() -> Json {
        json!({ "type": "boolean" })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<bool> {
        if let DeValue::Boolean(on) = value.get_ref() {
            return Some(*on);
        }
        reader.refuse_type(value, "true or false")
    }

    fn write(&self) -> Option<String> {
        self.then(|| "true".to_owned())
    }
}

/// True, with its place; false is nothing.
impl Takes for () {
    fn schema() -> Json {
        bool::schema()
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<()> {
        bool::read(reader, value)?.then_some(())
    }

    fn write(&self) -> Option<String> {
        true.write()
    }
}

impl Takes for String {
    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<String> {
        reader.text(value, "a name in quotes").map(str::to_owned)
    }

    fn write(&self) -> Option<String> {
        Some(text(self))
    }
}

/// How many of something that a machine has.
impl Takes for usize {
    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 0 })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<usize> {
        reader.count(value, 0)
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Takes for NonZeroUsize {
    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 1 })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<NonZeroUsize> {
        NonZeroUsize::new(reader.count(value, 1)?)
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// A whole number between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<const LEAST: u32, const MOST: u32>(pub u32);

impl<const LEAST: u32, const MOST: u32> Takes for Number<LEAST, MOST> {
    fn schema() -> Json {
        json!({ "type": "integer", "minimum": LEAST })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Self> {
        let number = reader.number(value, LEAST.into())?;
        let fits = u32::try_from(number).ok().filter(|number| *number <= MOST);
        if fits.is_none() {
            reader.wrong(value, format!("{number} is out of range"), &format!("{LEAST} to {MOST}"));
        }
        fits.map(Number)
    }

    fn write(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// One of a few words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

impl<T: Word> Takes for T {
    fn schema() -> Json {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json!({ "enum": words })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<T> {
        reader.word(value, T::WORDS)
    }

    fn write(&self) -> Option<String> {
        T::WORDS.iter().find(|(_, meaning)| meaning == self).map(|(word, _)| text(word))
    }
}

/// What a key says, with the places of both, also where it is something else: for complaints about keys that stand beside
/// others.
#[derive(Debug, Clone)]
pub(crate) struct Said<T> {
    pub key: Origin,
    pub at: Origin,
    pub value: Option<T>,
}

impl<T> Said<T> {
    /// To be written.
    pub(crate) fn of(value: T) -> Said<T> {
        let nowhere = Origin::outside_files("");
        Said { key: nowhere.clone(), at: nowhere, value: Some(value) }
    }
}

impl<T: Takes> Takes for Said<T> {
    fn schema() -> Json {
        T::schema()
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Said<T>> {
        let (key, at) = (reader.places.origin(reader.key.clone()), reader.origin(value));
        Some(Said { key, at, value: T::read(reader, value) })
    }

    fn write(&self) -> Option<String> {
        self.value.write()
    }
}

/// What is written as a text: what is expected where there is none, and either the value or what is wrong with a hint.
macro_rules! takes_text {
    ($type:ty, $expected:literal, $of:expr) => {
        impl $crate::reader::Takes for $type {
            fn read(
                reader: &mut $crate::reader::Reader<'_>,
                value: &$crate::reader::Value<'_>,
            ) -> Option<$type> {
                let of: fn(&str) -> Result<$type, (String, String)> = $of;
                of(reader.text(value, $expected)?)
                    .map_err(|(message, hint)| reader.wrong(value, message, &hint))
                    .ok()
            }

            fn write(&self) -> Option<String> {
                Some($crate::reader::text(&self.to_string()))
            }
        }
    };
}
pub(crate) use takes_text;
