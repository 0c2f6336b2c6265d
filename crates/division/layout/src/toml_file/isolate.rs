//! `isolate` of a group and of the machine: a level, or rows of the table of knobs with their values.

use settings::knobs::{self, Accepts, Budget, Knob};
use toml::de::DeValue;

use crate::diagnostic::Diagnostic;
use crate::isolate::{BudgetTable, Isolate, LEVELS};
use crate::names::cut;
use crate::origin::Spanned;
use crate::reader::{Reader, Takes as _, Value, entries, kind, whole};

/// What a row is given.
enum Given {
    Usual,
    Not,
    Value(String),
}

impl Reader<'_> {
    /// Of the machine.
    pub(super) fn machine_knobs(&mut self, value: &Value<'_>) -> Option<Spanned<Isolate>> {
        Some(Spanned::new(self.rows(value, true)?, self.origin(value)))
    }

    pub(crate) fn level(&mut self, value: &Value<'_>) -> Option<Isolate> {
        Isolate::of_level(self.word(value, &LEVELS.map(|word| (word, word)))?)
    }

    pub(crate) fn rows(&mut self, value: &Value<'_>, of_machine: bool) -> Option<Isolate> {
        let DeValue::Table(table) = value.get_ref() else {
            return self.refuse_type(value, "a table such as { stat-interval = 10 }");
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
            if name == "budget" && !of_machine {
                let BudgetTable { per_second, longest_us } = BudgetTable::read(self, value)?;
                let [per_second, longest_us] = [per_second, longest_us].map(|most| most.map(|most| most.0));
                isolate.budget = Budget { per_second, longest_us };
                continue;
            }
            if let Some(knob) = rows.iter().find(|knob| knob.name == name) {
                match self.knob(knob, value) {
                    Some(Given::Usual) => drop(isolate.rows.insert(knob.name, None)),
                    Some(Given::Not) => drop(isolate.rows.remove(knob.name)),
                    Some(Given::Value(text)) => drop(isolate.rows.insert(knob.name, Some(text))),
                    // reported, and so are the others
                    None => {}
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
            known.extend(if of_machine { &[][..] } else { &["level", "budget"] });
            self.unknown_key(key, "in 'isolate'", &known);
        }
        Some(isolate)
    }

    fn knob(&mut self, knob: &Knob, value: &Value<'_>) -> Option<Given> {
        let usual = !matches!(knob.aim, knobs::Aim::Named);
        match value.get_ref() {
            DeValue::Boolean(false) => Some(Given::Not),
            DeValue::Boolean(true) if usual => Some(Given::Usual),
            DeValue::Integer(_) if knob.accepts.range().is_some() => {
                let number = whole(value)?;
                let text = number.to_string();
                if !knob.accepts.takes(&text) {
                    let nearest = knob.accepts.range().map(|(from, to)| number.clamp(from.into(), to.into()));
                    let message = format!("{} takes {}, not {text}", knob.name, knob.accepts);
                    let hint = nearest.map(|nearest| format!("the nearest is {nearest}")).unwrap_or_default();
                    return self.refuse(value, message, &hint);
                }
                Some(Given::Value(text))
            }
            DeValue::String(text) if !knob.accepts.words().is_empty() || knob.accepts == Accepts::Policy => {
                if !knob.accepts.takes(text) || text.parse::<i64>().is_ok() {
                    let near = units::nearest(&cut(text), knob.accepts.words().iter().copied());
                    let hint = match near.as_slice() {
                        [] => String::new(),
                        near => format!("did you mean {}?", near.join(" or ")),
                    };
                    let message = format!("{} takes {}, not '{}'", knob.name, knob.accepts, cut(text));
                    return self.refuse(value, message, &hint);
                }
                Some(Given::Value(text.to_string()))
            }
            other => {
                let expected = match (knob.accepts, usual) {
                    (Accepts::Nothing, _) => "true or false: its CPUs follow from the groups".to_owned(),
                    (accepts, true) => format!("true, false, {accepts}"),
                    (accepts, false) => format!("false, {accepts}"),
                };
                self.refuse(value, format!("expected {expected}, found {}", kind(other)), knob.doc)
            }
        }
    }
}
