//! An experiment's text into an [`Experiment`]: every unknown key, wrong type and missing key with its place, all at
//! once. The walk goes along the schema that is made from the types, so the two can't disagree.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use layout::{Diagnostic, Severity, Source, did_you_mean};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use crate::{Experiment, options, schema};

/// Where keys and values are in a text, by their path (`condition.0.settings.server`).
#[derive(Debug, Default)]
pub struct Places {
    keys: HashMap<String, Range<usize>>,
    values: HashMap<String, Range<usize>>,
}

impl Places {
    /// The place of a key, or of the nearest that holds it.
    pub fn key(&self, path: &str) -> Range<usize> {
        nearest(&self.keys, path)
    }

    /// The place of a value, or of the nearest that holds it.
    pub fn value(&self, path: &str) -> Range<usize> {
        nearest(&self.values, path)
    }
}

fn nearest(places: &HashMap<String, Range<usize>>, path: &str) -> Range<usize> {
    let mut path = path;
    loop {
        match (places.get(path), path.rsplit_once('.')) {
            (Some(range), _) => return range.clone(),
            (None, Some((holder, _))) => path = holder,
            (None, None) => return 0..0,
        }
    }
}

/// What a reading found.
#[derive(Debug)]
pub struct Read {
    /// `None` if anything is wrong with its shape.
    pub experiment: Option<Experiment>,
    /// What is wrong, in the order of the lines.
    pub diagnostics: Vec<Diagnostic>,
    /// For later complaints.
    pub places: Places,
}

/// The largest file, in bytes: an experiment of a thousand conditions has a tenth of it.
pub const LARGEST: usize = 1 << 20;

/// With this many errors more of them help nobody.
pub(crate) const MOST_ERRORS: usize = 100;

/// Reads an experiment; what it means is not looked at.
pub fn read(source: &Source) -> Read {
    if source.text.len() > LARGEST {
        let error = Diagnostic::error(format!("{} is larger than {} MiB", source.name, LARGEST >> 20));
        let hint = "is it an experiment at all?".to_owned();
        let diagnostics = vec![error.hint(hint)];
        return Read { experiment: None, diagnostics, places: Places::default() };
    }
    let (table, diagnostics) = layout::toml_table(source);
    let mut walk = Walk { source, places: Places::default(), diagnostics, drivers: drivers(&table) };
    let value = walk.table(&table, 0..0, schema::root(), "");
    let Walk { places, mut diagnostics, .. } = walk;
    let experiment = if diagnostics.iter().any(|found| found.severity == Severity::Error) {
        None
    } else {
        match serde_json::from_value(value) {
            Ok(experiment) => Some(experiment),
            Err(error) => {
                diagnostics.push(Diagnostic::error(format!("{}: {error}", source.name)));
                None
            }
        }
    };
    diagnostics.sort_by_key(|found| found.origin.as_ref().map(|origin| (origin.line, origin.column)));
    Read { experiment, diagnostics, places }
}

struct Walk<'s> {
    source: &'s Source,
    places: Places,
    diagnostics: Vec<Diagnostic>,
    /// Workload → driver, as the text names it: a condition's options are looked up by it.
    drivers: BTreeMap<String, Option<String>>,
}

fn drivers(table: &DeTable<'_>) -> BTreeMap<String, Option<String>> {
    let Some(DeValue::Table(workloads)) = entry(table, "workload") else { return BTreeMap::new() };
    let driver = |workload: &DeValue<'_>| match workload {
        DeValue::Table(workload) => entry(workload, options::TAG)?.as_str().map(str::to_owned),
        _ => None,
    };
    workloads.iter().map(|(name, value)| (name.get_ref().to_string(), driver(value.get_ref()))).collect()
}

fn entry<'t, 'v>(table: &'t DeTable<'v>, key: &str) -> Option<&'t DeValue<'v>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value.get_ref())
}

/// What an object may hold.
#[derive(Default)]
pub(crate) struct Shape<'s> {
    pub properties: Vec<(&'s str, &'s Value)>,
    pub required: Vec<&'s str>,
    /// Any other key holds this.
    pub others: Option<&'s Value>,
    /// A key says which of several shapes it is: the key, and what it may hold with the shape of each.
    pub tag: Option<(&'s str, Vec<(&'s str, &'s Value)>)>,
}

impl Walk<'_> {
    fn error(&mut self, at: Range<usize>, message: String, hint: Option<String>) {
        // a place costs a walk through the text
        if self.diagnostics.len() >= MOST_ERRORS {
            return;
        }
        let found = Diagnostic::error(message).at(self.source.origin(at)).maybe_hint(hint);
        self.diagnostics.push(found);
    }

    fn table(&mut self, table: &DeTable<'_>, at: Range<usize>, schema: &Value, path: &str) -> Value {
        let mut shape = shape(schema);
        if let Some((tag, kinds)) = std::mem::take(&mut shape.tag) {
            self.choose(table, at.clone(), tag, &kinds, &mut shape, path);
        }
        self.entries(table, &shape, path)
    }

    fn entries(&mut self, table: &DeTable<'_>, shape: &Shape<'_>, path: &str) -> Value {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut made = Map::new();
        for (key, value) in entries {
            let name: &str = key.get_ref();
            let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            self.places.keys.insert(below.clone(), key.span());
            let known = shape.properties.iter().find(|(known, _)| *known == name).map(|(_, schema)| *schema);
            match known.or(shape.others) {
                // names of settings hold dots
                Some(of) if known.is_none() && is_text(of) => {
                    self.dotted(name, value.get_ref(), value.span(), path, &mut made);
                }
                Some(of) => {
                    let value = self.value(value.get_ref(), value.span(), of, &below);
                    made.insert(name.to_owned(), value);
                }
                None => self.unknown(key.span(), name, shape),
            }
        }
        for key in shape.required.iter().filter(|key| !table.iter().any(|(name, _)| name.get_ref() == *key)) {
            let of = if path.is_empty() { "the experiment".to_owned() } else { format!("'{path}'") };
            let place = if path.is_empty() { 0..0 } else { self.places.key(path) };
            self.error(place, format!("{of} lacks '{key}'"), None);
        }
        Value::Object(made)
    }

    /// Workload → options, each with the shape that it has at the workload's driver.
    fn options(&mut self, table: &DeTable<'_>, path: &str) -> Value {
        let mut made = Map::new();
        for (key, value) in table.iter() {
            let name: &str = key.get_ref();
            let below = format!("{path}.{name}");
            self.places.keys.insert(below.clone(), key.span());
            let driver = match self.drivers.get(name) {
                Some(Some(driver)) => driver.clone(),
                Some(None) => continue, // the workload has been complained of
                None => {
                    let hint =
                        did_you_mean(name, &self.drivers.keys().map(String::as_str).collect::<Vec<_>>());
                    self.error(key.span(), format!("there is no workload '{name}'"), Some(hint));
                    continue;
                }
            };
            let Some(mut shape) = driver_shape(&driver) else { continue };
            shape.required.clear();
            shape.properties.retain(|(name, _)| *name != options::TAG);
            if let DeValue::Table(options) = value.get_ref() {
                let options = self.entries(options, &shape, &below);
                made.insert(name.to_owned(), options);
            } else {
                let kind = kind(value.get_ref());
                self.error(value.span(), format!("'{name}' is {kind}, not a table"), None);
            }
        }
        Value::Object(made)
    }

    fn unknown(&mut self, at: Range<usize>, name: &str, shape: &Shape<'_>) {
        let known: Vec<&str> = shape.properties.iter().map(|(name, _)| *name).collect();
        self.error(at, format!("unknown key '{name}'"), Some(did_you_mean(name, &known)));
    }

    /// Takes the shape that the tag names.
    fn choose<'s>(
        &mut self,
        table: &DeTable<'_>,
        at: Range<usize>,
        tag: &'s str,
        kinds: &[(&'s str, &'s Value)],
        shape: &mut Shape<'s>,
        path: &str,
    ) {
        let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
        let given = table.iter().find(|(name, _)| name.get_ref() == tag);
        let text = given.and_then(|(_, value)| value.get_ref().as_str());
        if let Some((_, schema)) = text.and_then(|text| kinds.iter().find(|(name, _)| *name == text)) {
            let chosen = self::shape(schema);
            shape.properties.extend(chosen.properties);
            shape.required.extend(chosen.required);
            return;
        }
        let known = || format!("known are {}", names.join(", "));
        let hint = text.map_or_else(known, |text| did_you_mean(text, &names));
        match (given, text) {
            (Some((_, value)), Some(text)) => {
                self.error(value.span(), format!("unknown {tag} '{text}'"), Some(hint));
            }
            (Some((_, value)), None) => self.error(value.span(), format!("'{tag}' is a text"), Some(hint)),
            (None, _) => {
                let place = if path.is_empty() { at } else { self.places.key(path) };
                self.error(place, format!("'{path}' lacks '{tag}'"), Some(hint));
            }
        }
        // one complaint is enough: whatever any of them knows is taken
        for (_, schema) in kinds {
            shape.properties.extend(self::shape(schema).properties);
        }
        shape.properties.push((tag, &Value::Null));
    }

    /// `memory.max = "8G"` is a table in TOML and one key to us.
    fn dotted(
        &mut self,
        name: &str,
        value: &DeValue<'_>,
        at: Range<usize>,
        path: &str,
        made: &mut Map<String, Value>,
    ) {
        let place = format!("{path}.{name}");
        if let DeValue::Table(table) = value {
            for (key, value) in table.iter() {
                let name = format!("{name}.{}", key.get_ref());
                self.places.keys.insert(format!("{path}.{name}"), key.span());
                self.dotted(&name, value.get_ref(), value.span(), path, made);
            }
            return;
        }
        self.places.values.insert(place, at.clone());
        match scalar(value) {
            Some(text) => drop(made.insert(name.to_owned(), Value::String(text))),
            None => self.error(at, format!("'{name}' holds no text or number"), None),
        }
    }

    fn value(&mut self, value: &DeValue<'_>, at: Range<usize>, schema: &Value, path: &str) -> Value {
        self.places.values.insert(path.to_owned(), at.clone());
        let schema = resolved(schema);
        if schema.is_null() {
            return Value::Null;
        }
        let wrong = |walk: &mut Self, expected: &str| {
            let name = path.rsplit_once('.').map_or(path, |(_, name)| name);
            walk.error(at.clone(), format!("'{name}' is {}, not {expected}", kind(value)), None);
            Value::Null
        };
        match value {
            DeValue::Table(table) if schema["x-options-of-workloads"] == true => self.options(table, path),
            DeValue::Table(table) if is_object(schema) => self.table(table, at, schema, path),
            DeValue::Array(array) if is_type(schema, "array") => {
                let of = &schema["items"];
                let items = array.iter().enumerate();
                Value::Array(
                    items
                        .map(|(index, item)| {
                            let below = format!("{path}.{index}");
                            self.places.keys.insert(below.clone(), item.span());
                            self.value(item.get_ref(), item.span(), of, &below)
                        })
                        .collect(),
                )
            }
            DeValue::Boolean(is) if is_type(schema, "boolean") => Value::Bool(*is),
            DeValue::Integer(_) | DeValue::Float(_)
                if is_type(schema, "number") || is_type(schema, "integer") =>
            {
                number(value, schema).unwrap_or_else(|| wrong(self, "a number in its range"))
            }
            DeValue::String(_) if is_word(schema) => self.word(value, at, schema),
            _ if is_type(schema, "string") => match scalar(value) {
                Some(text) => Value::String(text),
                None => wrong(self, "a text"),
            },
            _ => wrong(self, expected(schema)),
        }
    }

    fn word(&mut self, value: &DeValue<'_>, at: Range<usize>, schema: &Value) -> Value {
        let text = value.as_str().unwrap_or_default();
        let known = words(schema);
        if !known.contains(&text) {
            self.error(at, format!("unknown word '{text}'"), Some(did_you_mean(text, &known)));
        }
        Value::String(text.to_owned())
    }
}

/// What a workload of this driver may hold of the driver's own; `None` if there is no such driver.
fn driver_shape(driver: &str) -> Option<Shape<'static>> {
    let (_, kinds) = shape(&schema::root()["$defs"]["Workload"]).tag?;
    kinds.into_iter().find(|(name, _)| *name == driver).map(|(_, schema)| shape(schema))
}

/// Follows a reference; of a choice with nothing the something.
pub(crate) fn resolved(schema: &Value) -> &Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"))
        && schema.get("properties").is_none()
    {
        return resolved(&schema::root()["$defs"][name]);
    }
    let choice = schema["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    match choice.iter().filter(|one| one["type"] != "null").collect::<Vec<_>>()[..] {
        [one] => resolved(one),
        _ => schema,
    }
}

pub(crate) fn shape(schema: &Value) -> Shape<'_> {
    let mut found = Shape::default();
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        found = shape(&schema::root()["$defs"][name]);
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    found.properties.extend(properties.map(|(name, schema)| (name.as_str(), schema)));
    let required = schema["required"].as_array().into_iter().flatten();
    found.required.extend(required.filter_map(Value::as_str));
    found.others = schema.get("additionalProperties").filter(|others| others.is_object()).map(resolved);
    if let Some(kinds) = schema["oneOf"].as_array() {
        let tag = |kind: &'_ Value| {
            let properties = kind["properties"].as_object()?;
            properties.iter().find_map(|(name, schema)| Some((name.clone(), schema["const"].as_str()?.len())))
        };
        let name = kinds.first().and_then(tag).map(|(name, _)| name);
        if let Some(name) = name {
            let each = kinds.iter().filter_map(|kind| {
                let (key, constant) = kind["properties"].as_object()?.get_key_value(&name)?;
                Some((key.as_str(), constant["const"].as_str()?, kind))
            });
            let each: Vec<_> = each.collect();
            if let Some((key, ..)) = each.first() {
                found.tag = Some((key, each.iter().map(|(_, constant, kind)| (*constant, *kind)).collect()));
            }
        }
    }
    found
}

pub(crate) fn is_type(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    }
}

pub(crate) fn is_object(schema: &Value) -> bool {
    is_type(schema, "object") || schema.get("oneOf").is_some_and(|_| words(schema).is_empty())
}

fn is_text(schema: &Value) -> bool {
    is_type(schema, "string") && schema.get("enum").is_none()
}

/// The words of an enumeration.
pub(crate) fn words(schema: &Value) -> Vec<&str> {
    let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let described = schema["oneOf"].as_array().into_iter().flatten();
    let described = described.flat_map(|one| {
        let plain = one["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        one["const"].as_str().into_iter().chain(plain)
    });
    plain.chain(described).collect()
}

fn is_word(schema: &Value) -> bool {
    !words(schema).is_empty()
}

pub(crate) fn expected(schema: &Value) -> &'static str {
    match () {
        () if is_word(schema) => "a word in quotes",
        () if is_type(schema, "array") => "a list",
        () if is_type(schema, "boolean") => "true or false",
        () if is_type(schema, "integer") || is_type(schema, "number") => "a number",
        () if is_type(schema, "string") => "a text",
        () => "a table",
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A number where the schema has one; not an integer of a kind that does not take it.
fn number(value: &DeValue<'_>, schema: &Value) -> Option<Value> {
    let lowest = schema["minimum"].as_f64();
    let text = scalar(value)?;
    if is_type(schema, "integer") {
        let number: i64 = text.parse().ok()?;
        let fits = match schema["format"].as_str() {
            Some("uint32") => u32::try_from(number).is_ok(),
            _ => lowest.is_none_or(|lowest| number as f64 >= lowest),
        };
        return fits.then(|| number.into());
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then(|| number.into())
}

/// A text, number or truth as a text.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}
