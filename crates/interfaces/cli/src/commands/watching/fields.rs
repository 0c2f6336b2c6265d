//! `fields`: what can be watched.

use std::fmt::Write;

use exporters::view::{self, Of};
use monitor::Field;
use serde_json::json;
use settings::Version;

use crate::{args, failure::Failure, output};

pub fn fields(args: &args::Fields, as_json: bool) -> Result<(), Failure> {
    let mut found: Vec<Of> = Vec::new();
    for name in &args.names {
        found.extend(view::choices(name)?.into_iter().map(|choice| choice.of));
    }
    if args.names.is_empty() {
        found.extend(view::known());
    }
    if as_json {
        let rows: Vec<_> = found.iter().map(row).collect();
        return output::json(&json!({ "fields": rows }));
    }
    let name = |of: &Of| of.name().len();
    let width = found.iter().map(name).max().unwrap_or(0);
    let mut text = String::new();
    for of in &found {
        let _ = writeln!(text, "{:width$}  {}", of.name(), of.help()); // a String takes everything
        if !args.names.is_empty() {
            for (version, file) in files(of) {
                let _ = writeln!(text, "{:width$}  {version}: {file}", "");
            }
        }
    }
    output::text(&text)
}

fn row(of: &Of) -> serde_json::Value {
    let (kind, per) = match of {
        Of::Group(field) | Of::Machine(field) => (json!(field.kind), json!(field.per)),
        Of::Derived(_) => (json!("derived"), json!("one")),
    };
    let files: serde_json::Map<_, _> =
        files(of).into_iter().map(|(version, file)| (version.to_owned(), json!(file))).collect();
    json!({
        "name": of.name(),
        "help": of.help(),
        "unit": of.unit(),
        "raw_unit": raw_unit(of),
        "kind": kind,
        "per": per,
        "files": files,
    })
}

fn raw_unit(of: &Of) -> serde_json::Value {
    match of {
        Of::Group(field) | Of::Machine(field) => json!(field.unit),
        Of::Derived(_) => serde_json::Value::Null,
    }
}

/// Where it is read.
fn files(of: &Of) -> Vec<(&'static str, &'static str)> {
    let of_group = |field: &'static Field| {
        let side = |(version, name)| Some((name, field.side(version)?.source.file));
        [(Version::V1, "v1"), (Version::V2, "v2")].into_iter().filter_map(side).collect()
    };
    match *of {
        Of::Group(field) => of_group(field),
        Of::Machine(Field { from: monitor::From::Machine(source), .. }) => vec![("both", source.file)],
        Of::Machine(_) | Of::Derived(_) => Vec::new(),
    }
}
