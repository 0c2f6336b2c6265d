//! Which knobs of the machine a group's CPUs, or the machine, are to have.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use settings::knobs::{self, Accepts, Budget, Knob};
use toml::de::DeValue;

use crate::reader::{Keyed as _, Number, Pairs, Reader, Takes, Value, described, keyed, table, text};

/// Rows of the table of knobs, and what a measurement may find in spite of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolate {
    /// By name, with the value that the layout names; `None` is the usual one.
    pub rows: BTreeMap<&'static str, Option<String>>,
    /// Of a group.
    pub budget: Budget,
}

impl Isolate {
    /// All rows of a level; `None` if it is no level.
    pub fn of_level(word: &str) -> Option<Isolate> {
        let rows = knobs::of_level(word)?.map(|knob| (knob.name, None)).collect();
        Some(Isolate { rows, budget: Budget::default() })
    }
}

/// The levels, each with all of the one before.
pub(crate) const LEVELS: [&str; 3] = ["cpus", "quiet", "full"];

keyed! {
    /// What a measurement may find in spite of the knobs.
    #[derive(Default)]
    pub(crate) struct BudgetTable in "in 'budget'" {
        /// The most interruptions per second that each CPU may have.
        #[takes("20")]
        pub per_second as "per-second": Option<Number<0, { u32::MAX }>>,
        /// The longest time, in microseconds, that anything else may take a CPU away at once, as the noise probe sees it.
        #[takes("50")]
        pub longest_us as "longest-us": Option<Number<0, { u32::MAX }>>,
    }
}

impl From<Budget> for BudgetTable {
    fn from(budget: Budget) -> BudgetTable {
        BudgetTable { per_second: budget.per_second.map(Number), longest_us: budget.longest_us.map(Number) }
    }
}

/// Of a group.
impl Takes for Isolate {
    fn schema() -> Json {
        json!({ "anyOf": [{ "enum": LEVELS }, knobs_schema(false)] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Isolate> {
        match value.get_ref() {
            DeValue::Table(_) => reader.rows(value, false),
            _ => reader.level(value),
        }
    }

    /// A level where it is one, else the rows.
    fn write(&self) -> Option<String> {
        let level = LEVELS.into_iter().find(|word| Isolate::of_level(word).as_ref() == Some(self));
        if let Some(level) = level {
            return Some(text(level));
        }
        let mut pairs: Pairs =
            self.rows.iter().map(|(name, value)| (*name, knob(value.as_deref()))).collect();
        let budget = BudgetTable::from(self.budget);
        pairs.extend((!budget.pairs().is_empty()).then(|| ("budget", table(&budget.pairs()))));
        Some(table(&pairs))
    }
}

/// What a row is given, as TOML.
pub(crate) fn knob(value: Option<&str>) -> String {
    match value {
        None => "true".to_owned(),
        Some(number) if number.parse::<i64>().is_ok() => number.to_owned(),
        Some(word) => text(word),
    }
}

/// Rows of the table of knobs, of the machine or of groups.
pub(crate) fn knobs_schema(of_machine: bool) -> Json {
    let value = |knob: &Knob| {
        let number = |(from, to): (i64, i64)| json!({ "type": "integer", "minimum": from, "maximum": to });
        if knob.accepts == Accepts::Policy {
            return json!({ "type": ["boolean", "string"] });
        }
        let words = Some(knob.accepts.words()).filter(|words| !words.is_empty());
        let named = knob.accepts.range().map(number).into_iter();
        let named: Vec<Json> = named.chain(words.map(|words| json!({ "enum": words }))).collect();
        let flag = json!({ "type": "boolean" });
        match named.is_empty() {
            true => flag,
            false => {
                let any: Vec<Json> = [flag].into_iter().chain(named).collect();
                json!({ "anyOf": any })
            }
        }
    };
    let rows = knobs::KNOBS.iter().filter(|knob| knob.is_of_machine() == of_machine);
    let mut rows: Map<String, Json> =
        rows.map(|knob| (knob.name.to_owned(), described(value(knob), knob.doc))).collect();
    if !of_machine {
        rows.insert("level".to_owned(), json!({ "enum": LEVELS }));
        let budget = described(BudgetTable::schema(), "What `ringfence isolate check` compares with");
        rows.insert("budget".to_owned(), budget);
    }
    json!({ "type": "object", "properties": rows, "additionalProperties": false })
}
