//! The JSON schema of the layout file, for editors: made from the table of keys and the table of settings, so that it
//! can't say anything else than the readers. It describes shapes only; what needs more (does a group exist, is a list
//! of CPUs right) only the readers check.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use settings::{Access, Key as SettingKey, Kind, Setting, Unit, Version};

use crate::assigned::PROTECTED;
use crate::reader::{Key, Takes as _, described};
use crate::toml_file;

const SIZE: &str = "<size>";
const SIZES: &str = "^[0-9]+(KB|MB|GB)$";

/// The schema (draft 2020-12), pretty, ending with a newline.
pub fn schema() -> String {
    let settings = names_tree();
    let mut group = body(toml_file::GROUP, &settings);
    // a group's groups are groups
    group["properties"]["groups"] = json!({
        "description": group["properties"]["groups"]["description"],
        "type": "object",
        "additionalProperties": { "$ref": "#/$defs/group" },
    });
    let mut top = Map::new();
    for key in toml_file::TOP {
        let of_groups = |name: &str| json!({ "type": "object", "additionalProperties": { "$ref": name } });
        let shape = match key.name {
            "groups" => of_groups("#/$defs/group"),
            "templates" => of_groups("#/$defs/template"),
            "defaults" => json!({ "$ref": "#/$defs/defaults" }),
            _ => (key.schema)(),
        };
        top.insert(key.name.to_owned(), described(shape, key.doc()));
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
            "template": body(&toml_file::TEMPLATE, &settings),
            "defaults": body(&toml_file::DEFAULTS, &settings),
            "match": toml_file::MatchTable::schema(),
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
    properties.extend(known.iter().map(Key::property));
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
