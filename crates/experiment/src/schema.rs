//! The JSON schemas of the experiment file and of its results, made from their types: for editors, and for the reader,
//! which finds by it what a key may hold. It tells shapes only; what needs more only [`crate::check`] tells.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{Experiment, Results};

/// The schema (draft 2020-12), pretty, ending with a newline.
pub fn schema() -> String {
    pretty(root())
}

/// The schema of `results.json`, in the same form.
pub fn results_schema() -> String {
    pretty(&schemars::schema_for!(Results).to_value())
}

fn pretty(schema: &Value) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default(); // a `Value` always is JSON
    text.push('\n');
    text
}

pub(crate) fn root() -> &'static Value {
    static ROOT: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(Experiment).to_value());
    &ROOT
}
