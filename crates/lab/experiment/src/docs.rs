//! The manual's page about the experiment file (`docs/experiment.md`): made from the schema that the reader goes by.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    read::{Shape, expected, is_object, is_type, resolved, shape, words},
    schema,
};

/// The page, ending with a newline.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut sections = Sections { page: &mut page, written: Vec::new(), left: Vec::new() };
    sections.table("At the top of the file", "", "", &shape(schema::root()), &[]);
    // tables that others refer to come behind them
    while !sections.left.is_empty() {
        let (path, schema) = sections.left.remove(0);
        sections.section(&path, schema);
    }
    page
}

struct Sections<'p> {
    page: &'p mut String,
    /// What has a section already.
    written: Vec<&'static Value>,
    /// With the path that leads there.
    left: Vec<(String, &'static Value)>,
}

impl Sections<'_> {
    fn section(&mut self, path: &str, schema: &'static Value) {
        if self.written.iter().any(|written| std::ptr::eq(*written, schema)) {
            return;
        }
        self.written.push(schema);
        let found = shape(schema);
        let within = format!("{}.", path.trim_matches(['[', ']']));
        let Some((tag, kinds)) = &found.tag else {
            self.table(&format!("`{path}`"), &within, &text(schema), &found, &[]);
            return;
        };
        if !found.properties.is_empty() {
            self.table(&format!("`{path}`"), &within, &text(schema), &found, &[tag]);
        }
        for (name, kind) in kinds {
            let title = format!("`{path}` with `{tag} = \"{name}\"`");
            self.table(&title, &within, &text(kind), &shape(kind), &[tag]);
        }
    }

    /// `within`: what stands before the names of its tables.
    fn table(&mut self, title: &str, within: &str, note: &str, of: &Shape<'static>, without: &[&str]) {
        let _ = writeln!(self.page, "\n## {title}\n"); // a String takes everything
        if !note.is_empty() {
            let _ = writeln!(self.page, "{note}\n");
        }
        let keys: Vec<_> = of.properties.iter().filter(|(name, _)| !without.contains(name)).collect();
        if keys.is_empty() {
            self.page.push_str("It has no keys of its own.\n");
            return;
        }
        self.page.push_str("| key | takes | what it means |\n|---|---|---|\n");
        for (name, schema) in keys {
            let needed = if of.required.contains(name) { ", required" } else { "" };
            let cell = |text: &str| text.replace('|', "\\|");
            let meaning = [text(schema), default(schema)].join(" ");
            let takes = self.takes(&format!("{within}{name}"), schema);
            let _ = writeln!(self.page, "| `{name}` | {}{needed} | {} |", cell(&takes), cell(meaning.trim()));
        }
    }

    /// In words; a table of known keys gets a section.
    fn takes(&mut self, name: &str, schema: &'static Value) -> String {
        let schema = resolved(schema);
        let words = words(schema);
        if !words.is_empty() {
            return words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<String>>().join(", ");
        }
        if is_type(schema, "array") {
            let of = resolved(&schema["items"]);
            return match has_keys(of) {
                true => self.link(format!("[[{name}]]"), of),
                false => format!("{} of {}s", expected(schema), expected(of).trim_start_matches("a ")),
            };
        }
        if has_keys(schema) {
            return self.link(format!("[{name}]"), schema);
        }
        match schema.get("additionalProperties").map(resolved) {
            Some(of) if has_keys(of) => self.link(format!("[{name}.NAME]"), of),
            Some(of) if is_object(of) => format!("`{name}.NAME = {{ … }}`"),
            _ => expected(schema).to_owned(),
        }
    }

    fn link(&mut self, path: String, schema: &'static Value) -> String {
        let text = format!("`{path}`");
        self.left.push((path, schema));
        text
    }
}

fn has_keys(schema: &Value) -> bool {
    let shape = shape(schema);
    !shape.properties.is_empty() || shape.tag.is_some()
}

/// Its description, on one line.
fn text(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Of what is not empty by default.
fn default(schema: &Value) -> String {
    match &schema["default"] {
        Value::Number(number) => format!("Default: `{number}`."),
        Value::String(text) if !text.is_empty() => format!("Default: `\"{text}\"`."),
        Value::Bool(true) => "Default: `true`.".to_owned(),
        _ => String::new(),
    }
}

const INTRODUCTION: &str = r#"# The experiment file

Generated from `crates/lab/experiment`; `RF_BLESS=1 cargo test -p ringfence-experiment` writes it again. Editors that know JSON
schemas take what `ringfence schema experiment` prints.

An experiment says what `ringfence lab run FILE` compares: workloads in groups, under several conditions, each run several
times in random order. It is TOML. `ringfence lab show tour` prints a study to begin from, and `ringfence lab check FILE`
lists all errors, the time that the runs take and what they can decide.

```toml
name = "weights"
title = "Does a weight help a server beside a busy neighbour?"
repetitions = 6
duration = "10s"

[group.server]
[group.neighbour]

[workload.work]                          # built in: nothing to install
driver = "cpu"
threads = 2
group = "server"

[workload.noise]
driver = "cpu"
threads = 2
group = "neighbour"

[[condition]]
name = "equal"

[[condition]]
name = "server weighs more"
settings.server."cpu.weight" = 400

[[measure]]
name = "work done"
is = "work.rate"
unit = "units/s"

[[comparison]]
measure = "work done"
baseline = "equal"
condition = "server weighs more"
```

Times are text with a unit (`"30s"`, `"2min"`), sizes as in layouts (`"128M"`), settings as `ringfence set` takes them.
"#;
