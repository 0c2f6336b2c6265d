//! The published schemas against every study and layout that comes with the program: what an editor underlines, the
//! reader must refuse, and what the reader takes, no editor may underline.

#![allow(clippy::unwrap_used)] // a file that cannot be read fails the test

use std::{
    fs,
    path::{Path, PathBuf},
};

use layout::Source;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

fn files(directory: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(directory);
    let entries = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// TOML as an editor gives it to a schema.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).unwrap().into(),
        DeValue::Float(number) => number.as_str().parse::<f64>().unwrap().into(),
        DeValue::Boolean(is) => (*is).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(array) => array.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => table_json(table),
    }
}

fn table_json(table: &DeTable<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// What the schema refuses in a text.
fn refused(schema: &str, text: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap();
    refused_by(&jsonschema::validator_for(&schema).unwrap(), text)
}

/// What an editor refuses that reads schemas by draft 7, as taplo and VS Code do: what is beside a reference is ignored
/// there, and so are `unevaluatedProperties`.
fn refused_in_an_editor(schema: &str, text: &str) -> Vec<String> {
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    schema.as_object_mut().unwrap().remove("$schema");
    let validator = jsonschema::options().with_draft(jsonschema::Draft::Draft7).build(&schema).unwrap();
    refused_by(&validator, text)
}

fn refused_by(validator: &jsonschema::Validator, text: &str) -> Vec<String> {
    let value = table_json(DeTable::parse(text).unwrap().get_ref());
    validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// newcomers A10: of the studies that come with the program the schema refused three.
#[test]
fn every_study_is_valid_by_the_published_schema() {
    let studies = files("studies");
    assert!(studies.len() >= 11, "{studies:?}");
    for path in studies {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(refused(&experiment::schema(), &text), [""; 0], "{}", path.display());
        // faults E3: taplo called all 13 invalid
        assert_eq!(refused_in_an_editor(&experiment::schema(), &text), [""; 0], "{}", path.display());
    }
}

#[test]
fn every_layout_is_valid_by_the_published_schema() {
    let layouts = files("studies/layouts");
    assert!(!layouts.is_empty());
    for path in layouts {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(refused(&layout::schema(), &text), [""; 0], "{}", path.display());
        assert_eq!(refused_in_an_editor(&layout::schema(), &text), [""; 0], "{}", path.display());
    }
}

const TEXT: &str = r#"
name = "x"
title = "x"
[group.server]
cpu.weight = 100
"memory.max" = "1G"
[workload.load]
driver = "cpu"
threads = 1
[[condition]]
name = "a"
settings.server.cpu.max = "50%"
[[measure]]
name = "rate"
is = "load.rate"
target = { a = 10 }
"#;

#[test]
fn the_schema_and_the_reader_agree_on_what_is_right_and_on_what_is_not() {
    let schema = experiment::schema();
    let read = |text: &str| experiment::read(&Source::new("x.toml", text)).experiment.is_some();
    assert!(read(TEXT));
    assert_eq!(refused(&schema, TEXT), [""; 0]);
    for (right, wrong) in [
        ("driver = \"cpu\"", "driver = \"cpus\""),
        ("threads = 1", "threads = [1]"),
        ("threads = 1", "thread = 1"),
        ("title = \"x\"\n", ""),
        ("name = \"a\"", "name = \"a\"\nlayout = [1]"),
        ("name = \"a\"", "name = \"a\"\nneeds-cpus = \"two\""),
        ("target = { a = 10 }", "target = { a = [10] }"),
        ("is = \"load.rate\"", "is = \"load.rate\"\nbetter = \"more\""),
        ("cpu.weight = 100", "cpu.weight = [100]"),
    ] {
        let text = TEXT.replacen(right, wrong, 1);
        assert_ne!(text, TEXT, "{right}");
        assert!(!read(&text), "the reader takes {wrong}");
        assert!(!refused(&schema, &text).is_empty(), "the schema takes {wrong}");
        if wrong != "thread = 1" {
            assert!(!refused_in_an_editor(&schema, &text).is_empty(), "an editor takes {wrong}");
        }
    }
}

/// newcomers B7: the only text about experiment files was a schema of 46 KB.
#[test]
fn the_manuals_page_is_what_the_schema_says() {
    let page = experiment::markdown();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/experiment.md");
    if std::env::var_os("RF_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/experiment.md is old: RF_BLESS=1 cargo test -p ringfence-experiment");
    // every key that any study has is in it
    for path in files("studies") {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.starts_with('[') && line.ends_with(']')) {
            let table = line.trim_matches(['[', ']']).split('.').next().unwrap();
            let is_there = ["[", "[[", ""].iter().any(|open| page.contains(&format!("| `{open}{table}")));
            assert!(is_there, "{line}");
        }
    }
    assert!(!page.contains("crate::") && !page.contains("| a table |  |"), "{page}");
}

#[test]
fn the_pages_example_is_read_without_a_word() {
    let page = experiment::markdown();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let read = experiment::read(&Source::new("example.toml", example));
    assert!(read.diagnostics.is_empty() && read.experiment.is_some(), "{:?}", read.diagnostics);
    assert_eq!(refused(&experiment::schema(), example), [""; 0]);
}
