//! `isolate` of a group and of the machine: a level, or rows of the table of knobs with their values.

use knobs::{Encoding, Knob};
use toml::de::DeValue;

use super::value::kind;
use super::{Reader, Value, entries};
use crate::diagnostic::Diagnostic;
use crate::isolate::{Isolate, LEVELS};
use crate::names::cut;
use crate::origin::Spanned;

/// What a row is given.
enum Given {
    Usual,
    Not,
    Value(String),
}

impl Reader<'_> {
    /// Of a group.
    pub(super) fn isolate(&mut self, value: &Value<'_>) -> Option<Spanned<Isolate>> {
        let isolate = match value.get_ref() {
            DeValue::Table(_) => self.rows(value, false),
            _ => self.level(value),
        }?;
        Some(Spanned::new(isolate, self.origin(value)))
    }

    /// Of the machine.
    pub(super) fn machine_knobs(&mut self, value: &Value<'_>) -> Option<Spanned<Isolate>> {
        Some(Spanned::new(self.rows(value, true)?, self.origin(value)))
    }

    fn level(&mut self, value: &Value<'_>) -> Option<Isolate> {
        Isolate::of_level(self.word(value, &LEVELS.map(|word| (word, word)))?)
    }

    fn rows(&mut self, value: &Value<'_>, of_machine: bool) -> Option<Isolate> {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, "a table such as { stat-interval = 10 }");
            return None;
        };
        let rows: Vec<&Knob> =
            knobs::KNOBS.iter().filter(|knob| knob.is_of_machine() == of_machine).collect();
        let mut isolate = Isolate::default();
        let entries = entries(table);
        if let Some((_, value)) = entries.iter().find(|(key, _)| &**key.get_ref() == "level" && !of_machine) {
            isolate = self.level(value)?;
        }
        for (key, value) in entries.into_iter().filter(|(key, _)| of_machine || &**key.get_ref() != "level") {
            let name = &**key.get_ref();
            if let Some(knob) = rows.iter().find(|knob| knob.name == name) {
                match self.knob(knob, value)? {
                    Given::Usual => drop(isolate.0.insert(knob.name, None)),
                    Given::Not => drop(isolate.0.remove(knob.name)),
                    Given::Value(text) => drop(isolate.0.insert(knob.name, Some(text))),
                }
                continue;
            }
            if knobs::find(name).is_some() {
                let (place, other) = match of_machine {
                    true => ("of a group", "put it into isolate of the group whose CPUs it is for"),
                    false => ("of the whole machine", "put it below a line [isolate]"),
                };
                let error = Diagnostic::error(format!("'{name}' is a row {place}")).at(self.origin(key));
                self.error(error.hint(other));
                continue;
            }
            let mut known: Vec<&str> = rows.iter().map(|knob| knob.name).collect();
            known.extend((!of_machine).then_some("level"));
            self.unknown_key_of(key, "in 'isolate'", &known);
        }
        Some(isolate)
    }

    fn knob(&mut self, knob: &Knob, value: &Value<'_>) -> Option<Given> {
        let usual = !matches!(knob.aim, knobs::Aim::Named);
        match value.get_ref() {
            DeValue::Boolean(false) => Some(Given::Not),
            DeValue::Boolean(true) if usual => Some(Given::Usual),
            DeValue::Integer(_) if !knob.encoding.is_cpus() => {
                let number = super::value::whole(value)?;
                let Ok(number) = i64::try_from(number) else {
                    self.wrong(value, "the number is out of range".to_owned(), "");
                    return None;
                };
                Some(Given::Value(number.to_string()))
            }
            DeValue::String(text) if matches!(knob.encoding, Encoding::Word | Encoding::Choice) => {
                if text.is_empty() || text.len() > 60 || !text.chars().all(|letter| letter.is_ascii_graphic())
                {
                    self.wrong(value, format!("'{}' is no word", cut(text)), "");
                    return None;
                }
                Some(Given::Value(text.to_string()))
            }
            other => {
                let expected = match knob.encoding {
                    encoding if encoding.is_cpus() => "true or false: its CPUs follow from the groups",
                    Encoding::Number if usual => "true, false or a whole number",
                    Encoding::Number => "a whole number or false",
                    _ if usual => "true, false or a word",
                    _ => "a word or false",
                };
                self.wrong(value, format!("expected {expected}, found {}", kind(other)), knob.doc);
                None
            }
        }
    }
}
