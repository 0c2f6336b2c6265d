//! The JSON schema of the layout file, for editors: made from the table of keys and the table of settings, so that it
//! can't say anything else than the readers. It describes shapes only; what needs more (does a group exist, is a list
//! of CPUs right) only the readers check.

use std::collections::BTreeMap;

use knobs::{Accepts, Knob};
use serde_json::{Map, Value, json};
use settings::{Access, Key as SettingKey, Kind, Setting, Unit, Version};

use crate::assigned::PROTECTED;
use crate::isolate::LEVELS;
use crate::keys::{self, Key, Shape};

const SIZE: &str = "<size>";
const SIZES: &str = "^[0-9]+(KB|MB|GB)$";

/// The schema (draft 2020-12), pretty, ending with a newline.
pub fn schema() -> String {
    let settings = names_tree();
    let mut group = body(keys::GROUP, &settings);
    // a group's groups are groups
    group["properties"]["groups"] = json!({
        "description": group["properties"]["groups"]["description"],
        "type": "object",
        "additionalProperties": { "$ref": "#/$defs/group" },
    });
    let mut top = Map::new();
    for key in keys::TOP {
        let of_groups = |name: &str| json!({ "type": "object", "additionalProperties": { "$ref": name } });
        let shape = match (key.name, key.shape) {
            ("groups", _) => of_groups("#/$defs/group"),
            ("templates", _) => of_groups("#/$defs/template"),
            ("defaults", _) => json!({ "$ref": "#/$defs/defaults" }),
            (_, shape) => shape_schema(shape),
        };
        top.insert(key.name.to_owned(), described(shape, key.doc));
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ringfence layout",
        "description": "How a machine is divided: /etc/ringfence/layout.toml and layout.d/*.toml",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
        "$defs": {
            "settings": settings.below.iter().map(|(root, node)| (root.clone(), node.schema())).collect::<Map<_, _>>(),
            "values": settings.names().into_iter().map(|(name, setting)| {
                (anchor(name), described(value_schema(setting), setting.doc))
            }).collect::<Map<_, _>>(),
            "group": group,
            "template": body(keys::TEMPLATE, &settings),
            "defaults": body(keys::DEFAULTS, &settings),
            "match": object(keys::MATCH),
            "scalar": { "type": ["string", "integer", "number", "boolean"] },
        },
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default(); // a `Value` always is JSON
    text.push('\n');
    text
}

/// A table of some keys with settings beside them, dotted or with their whole names in quotes.
fn body(known: &[Key], settings: &Node) -> Value {
    let mut properties = Map::new();
    let mut patterns = Map::new();
    for (root, node) in &settings.below {
        let of = if node.below.is_empty() { "values" } else { "settings" };
        properties.insert(root.clone(), json!({ "$ref": format!("#/$defs/{of}/{root}") }));
    }
    for (name, _) in settings.names() {
        // what stands under a root in its dotted form is described there
        if let Some((before, after)) = name.split_once(SIZE) {
            let pattern = format!("^{}[0-9]+(KB|MB|GB){}$", escaped(before), escaped(after));
            patterns.insert(pattern, reference(name));
        } else if name.contains('.') {
            properties.insert(name.to_owned(), reference(name));
        }
    }
    for key in known {
        properties.insert(key.name.to_owned(), described(shape_schema(key.shape), key.doc));
    }
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": false,
    })
}

/// What may stand behind the name of a setting.
fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/values/{}", anchor(name)) })
}

/// A name as a part of a reference, which is a URI.
fn anchor(name: &str) -> String {
    name.replace(SIZE, "SIZE")
}

fn escaped(text: &str) -> String {
    text.replace('.', "\\.")
}

fn described(mut schema: Value, doc: &str) -> Value {
    schema["description"] = json!(doc);
    schema
}

fn object(known: &[Key]) -> Value {
    let properties: Map<String, Value> =
        known.iter().map(|key| (key.name.to_owned(), described(shape_schema(key.shape), key.doc))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn shape_schema(shape: Shape) -> Value {
    let text = || json!({ "type": "string" });
    let one_or_more = |one: Value| json!({ "anyOf": [one, { "type": "array", "items": one }] });
    match shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Isolate => json!({ "anyOf": [{ "enum": LEVELS }, knobs_schema(false)] }),
        Shape::MachineKnobs => knobs_schema(true),
        Shape::Text | Shape::Mode => text(),
        Shape::Word(words) => json!({ "enum": words }),
        Shape::Number(min) => json!({ "type": "integer", "minimum": min }),
        Shape::Amount => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, percentage()] }),
        Shape::Nodes => {
            let number = json!({ "type": "integer", "minimum": 0 });
            json!({ "anyOf": [number, text(), { "type": "array", "items": number }] })
        }
        Shape::Texts => one_or_more(text()),
        Shape::Cpus => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, text(), object(keys::CPU_SPEC)] })
        }
        Shape::Mems => json!({ "anyOf": [text(), object(keys::MEM_SPEC)] }),
        Shape::Memory => json!({ "type": ["integer", "string"] }),
        Shape::Expected => json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, object(keys::EXPECTED)] }),
        Shape::ExpectedMemory => {
            let amount = json!({ "type": ["integer", "string"] });
            let mut table = object(keys::EXPECTED);
            for bound in ["min", "max"] {
                table["properties"][bound] = amount.clone();
            }
            json!({ "anyOf": [amount, table] })
        }
        Shape::Account => json!({ "type": ["integer", "string"] }),
        Shape::Table(known) => object(known),
        Shape::Tables(known) => one_or_more(object(known)),
        Shape::Groups => json!({ "type": "object" }),
        Shape::Mounts | Shape::Names => json!({ "type": "object", "additionalProperties": text() }),
        Shape::Matches => one_or_more(json!({ "$ref": "#/$defs/match" })),
        Shape::To => {
            let table = object(keys::TO);
            json!({ "anyOf": [text(), table, { "type": "array", "items": table }] })
        }
    }
}

/// Rows of the table of knobs, of the machine or of groups.
fn knobs_schema(of_machine: bool) -> Value {
    let value = |knob: &Knob| {
        let number = |(from, to): (i64, i64)| json!({ "type": "integer", "minimum": from, "maximum": to });
        if knob.accepts == Accepts::Policy {
            return json!({ "type": ["boolean", "string"] });
        }
        let words = Some(knob.accepts.words()).filter(|words| !words.is_empty());
        let named = knob.accepts.range().map(number).into_iter();
        let named: Vec<Value> = named.chain(words.map(|words| json!({ "enum": words }))).collect();
        let flag = json!({ "type": "boolean" });
        match named.is_empty() {
            true => flag,
            false => {
                let any: Vec<Value> = [flag].into_iter().chain(named).collect();
                json!({ "anyOf": any })
            }
        }
    };
    let rows = knobs::KNOBS.iter().filter(|knob| knob.is_of_machine() == of_machine);
    let mut rows: Map<String, Value> =
        rows.map(|knob| (knob.name.to_owned(), described(value(knob), knob.doc))).collect();
    if !of_machine {
        rows.insert("level".to_owned(), json!({ "enum": LEVELS }));
        let budget = described(object(keys::BUDGET), "What `ringfence isolate check` compares with");
        rows.insert("budget".to_owned(), budget);
    }
    json!({ "type": "object", "properties": rows, "additionalProperties": false })
}

fn percentage() -> Value {
    json!({ "type": "string", "pattern": "^[0-9.]+ *%$" })
}

/// Settings' names by their parts.
#[derive(Default)]
struct Node {
    /// The whole name so far.
    name: String,
    setting: Option<&'static Setting>,
    below: BTreeMap<String, Node>,
}

/// Every name of every setting that can be set.
fn names_tree() -> Node {
    let mut root = Node::default();
    for setting in settings::all() {
        if !matches!(setting.access, Access::ReadWrite | Access::Write) {
            continue;
        }
        let sides =
            [Version::V1, Version::V2].into_iter().filter_map(|version| setting.side(version).binding());
        let files = sides.flat_map(|binding| binding.names().iter().copied());
        for name in std::iter::once(setting.name).chain(files) {
            let mut node = &mut root;
            for part in name.split('.') {
                let longer =
                    if node.name.is_empty() { part.to_owned() } else { format!("{}.{part}", node.name) };
                node = node.below.entry(part.to_owned()).or_default();
                node.name = longer;
            }
            // a row's own name goes before the file of another row
            if node.setting.is_none() || name == setting.name {
                node.setting = Some(setting);
            }
        }
    }
    root
}

impl Node {
    /// Whole names of settings here and below, in order.
    fn names(&self) -> Vec<(&str, &'static Setting)> {
        let own = self.setting.map(|setting| (self.name.as_str(), setting));
        own.into_iter().chain(self.below.values().flat_map(Node::names)).collect()
    }

    fn schema(&self) -> Value {
        let value = self.setting.map(|_| reference(&self.name));
        if self.below.is_empty() {
            return value.unwrap_or_default();
        }
        let mut properties = Map::new();
        let mut patterns = Map::new();
        for (part, node) in &self.below {
            match part.as_str() {
                SIZE => patterns.insert(SIZES.to_owned(), node.schema()),
                part => properties.insert(part.to_owned(), node.schema()),
            };
        }
        let mut longer = json!({
            "type": "object",
            "properties": properties,
            "patternProperties": patterns,
            "additionalProperties": false,
        });
        // of a setting with devices, both its devices and longer names may stand here
        let Some(value) = value else { return longer };
        match self.setting.map(|setting| setting.kind) {
            Some(Kind::PerDevice(_) | Kind::Weights | Kind::Keyed(_)) => {
                longer["additionalProperties"] = json!(true);
                json!({ "anyOf": [value, longer] })
            }
            _ => json!({ "anyOf": [value, longer] }),
        }
    }
}

/// What may stand behind a setting's name.
fn value_schema(setting: &Setting) -> Value {
    let scalar = || json!({ "$ref": "#/$defs/scalar" });
    let list = || json!({ "type": "array", "items": { "$ref": "#/$defs/scalar" } });
    match setting.kind {
        Kind::Cpus | Kind::Nodes | Kind::Rules => json!({ "anyOf": [scalar(), list()] }),
        Kind::Word(words) => {
            json!({ "anyOf": [{ "enum": words }, { "type": ["integer", "boolean", "string"] }] })
        }
        Kind::PerDevice(keys) | Kind::Keyed(keys) => {
            let entry = json!({ "anyOf": [scalar(), keyed(keys)] });
            json!({ "anyOf": [scalar(), list(), { "type": "object", "additionalProperties": entry }] })
        }
        Kind::Weights => {
            json!({ "anyOf": [scalar(), list(), { "type": "object", "additionalProperties": scalar() }] })
        }
        Kind::CpuMax => {
            let parts = json!({ "quota": scalar(), "period": scalar(), "min": scalar(), "max": scalar() });
            json!({ "anyOf": [
                scalar(),
                { "type": "object", "properties": parts, "additionalProperties": false },
            ] })
        }
        _ if setting.name == PROTECTED => {
            let bounds = json!({ "min": scalar(), "max": scalar() });
            json!({ "anyOf": [
                scalar(),
                { "type": "object", "properties": bounds, "additionalProperties": false },
            ] })
        }
        _ => json!({ "anyOf": [scalar()] }),
    }
}

fn keyed(keys: &[SettingKey]) -> Value {
    let of = |unit: Unit| match unit {
        Unit::Word(words) => json!({ "enum": words }),
        _ => json!({ "type": ["integer", "number", "string"] }),
    };
    let properties: Map<String, Value> = keys
        .iter()
        .filter(|key| !key.name.is_empty())
        .map(|key| (key.name.to_owned(), of(key.unit)))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
