//! The JSON schemas of the experiment file and of its results, made from their types: for editors, and for the reader,
//! which finds in it what a key may hold. They are about shapes alone: [`crate::check`] finds everything else.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{Experiment, Results, drivers, options};

/// The schema (draft 2020-12), pretty, ending with a newline: it accepts what the reader does.
pub fn schema() -> String {
    let mut schema = root().clone();
    as_read(&mut schema);
    alone(&mut schema);
    let value = json!({
        "description": "A text, a number or true or false; a table where a name has dots: cpu.weight = 100.",
        "type": ["string", "number", "boolean", "object"],
        "additionalProperties": { "$ref": "#/$defs/DottedValue" }
    });
    if let Some(definitions) = schema["$defs"].as_object_mut() {
        definitions.insert("DottedValue".to_owned(), value);
    }
    pretty(&schema)
}

/// The reader takes a number, true and false for a text, and under names that the user chooses a table, too.
fn as_read(schema: &mut Value) {
    match schema {
        Value::Object(schema) => {
            let is_text = |schema: &Value| schema["type"] == "string" && schema.get("enum").is_none();
            if let Some(others) = schema.get_mut("additionalProperties").filter(|others| is_text(others)) {
                *others = json!({ "$ref": "#/$defs/DottedValue" });
            }
            let is_free = ["enum", "const"].iter().all(|key| !schema.contains_key(*key));
            if let Some(kind) = schema.get_mut("type").filter(|_| is_free) {
                let text: Value = "string".into();
                let mut all = match &*kind {
                    Value::Array(all) => all.clone(),
                    one => vec![one.clone()],
                };
                if all.contains(&text) {
                    all.extend(["number", "boolean"].map(Value::from));
                    *kind = Value::Array(all);
                }
            }
            schema.values_mut().for_each(as_read);
        }
        Value::Array(all) => all.iter_mut().for_each(as_read),
        _ => {}
    }
}

/// Up to draft 7 a reference stands for its whole object and what is beside it is ignored; editors (taplo, VS Code) still
/// read schemas so. Each that has conditions beside it becomes one condition among them.
fn alone(schema: &mut Value) {
    match schema {
        Value::Object(all) => {
            let is_condition = |key: &String| !["$ref", "description", "title", "default"].contains(&&**key);
            if all.keys().any(is_condition)
                && !all.contains_key("allOf")
                && let Some(reference) = all.remove("$ref")
            {
                all.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
            all.values_mut().for_each(alone);
        }
        Value::Array(all) => all.iter_mut().for_each(alone),
        _ => {}
    }
}

/// The schema of `results.json`, in the same form.
pub fn results_schema() -> String {
    let mut schema = schemars::schema_for!(Results).to_value();
    alone(&mut schema);
    pretty(&schema)
}

fn pretty(schema: &Value) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default(); // a `Value` always is JSON
    text.push('\n');
    text
}

/// Adds what is known of a driver to its description.
fn describe(schema: &mut Value) {
    let tag = &schema["properties"][options::TAG]["const"];
    if let Some(row) = drivers::ALL.iter().find(|row| tag == row.name) {
        let before = schema["description"].as_str().unwrap_or_default();
        schema["description"] = format!("{before}\n\n{}", row.described()).into();
    }
    match schema {
        Value::Object(schema) => schema.values_mut().for_each(describe),
        Value::Array(all) => all.iter_mut().for_each(describe),
        _ => {}
    }
}

pub(crate) fn root() -> &'static Value {
    static ROOT: LazyLock<Value> = LazyLock::new(|| {
        let mut schema = schemars::schema_for!(Experiment).to_value();
        describe(&mut schema);
        schema
    });
    &ROOT
}
