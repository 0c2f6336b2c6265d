//! The manual's page and the JSON schema: kept current, and right about what the readers take.

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::said;
use super::studies::EXAMPLE;

fn is_current(name: &str, text: &str) {
    let path = format!("{}/../../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("RF_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/{name} is old: RF_BLESS=1 cargo test -p ringfence-layout");
}

#[test]
fn the_manuals_page_is_what_the_keys_say() {
    is_current("layout.md", &layout::markdown());
}

#[test]
fn the_schema_is_what_the_keys_and_settings_say() {
    is_current("layout.schema.json", &layout::schema());
}

/// The table of roles is the one that rules go by.
#[test]
fn the_page_of_roles_has_each_with_what_it_is() {
    let page = include_str!("../../../../../docs/roles.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let expected: Vec<String> =
        layout::Role::all().map(|(name, what)| format!("| `{name}` | {what} |")).collect();
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    for example in page.split("```toml\n").skip(1) {
        let (_, text) = said(&[("layout.toml", example.split("```").next().unwrap())]);
        assert_eq!(text, "", "{example}");
    }
}

/// The TOML examples of the page.
fn examples() -> Vec<String> {
    let page = layout::markdown();
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_example_of_the_page_is_read_without_a_word() {
    let examples = examples();
    assert!(examples.len() >= 6);
    for example in examples {
        let (reading, text) = said(&[("layout.toml", &example)]);
        assert_eq!(text, "", "{example}");
        assert!(reading.desired.is_some());
    }
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(i64::from_str_radix(number.as_str(), number.radix()).unwrap()),
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().unwrap()),
        DeValue::Boolean(on) => json!(on),
        DeValue::Datetime(when) => json!(when.to_string()),
        DeValue::Array(values) => values.iter().map(|value| to_json(value.get_ref())).collect(),
        DeValue::Table(table) => table_to_json(table),
    }
}

fn table_to_json(table: &DeTable<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Validates by the words of JSON schema that the schema uses, and by no others. Returns where it first does not fit.
fn misfit(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let wrong = |what: &str| Some(format!("{at}: {what}: {value}"));
    for (word, rule) in schema.as_object().unwrap() {
        let misfit = match word.as_str() {
            "description" | "title" | "$schema" | "$defs" | "patternProperties" | "additionalProperties" => {
                None
            }
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                misfit(root, root.pointer(pointer).unwrap(), value, at)
            }
            "anyOf" => {
                let all: Vec<_> =
                    rule.as_array().unwrap().iter().map(|one| misfit(root, one, value, at)).collect();
                if all.iter().any(Option::is_none) {
                    None
                } else {
                    all.into_iter().flatten().max_by_key(String::len)
                }
            }
            "enum" => (!rule.as_array().unwrap().contains(value)).then(|| wrong("not in enum")).flatten(),
            "type" => {
                let name = match value {
                    Value::String(_) => "string",
                    Value::Bool(_) => "boolean",
                    Value::Number(number) if number.is_f64() => "number",
                    Value::Number(_) => "integer",
                    Value::Array(_) => "array",
                    Value::Object(_) => "object",
                    Value::Null => "null",
                };
                let fits = match rule {
                    Value::Array(types) => types.iter().any(|one| one == name),
                    one => one == name,
                };
                (!fits).then(|| wrong("type")).flatten()
            }
            "minimum" => match (value.as_i64(), rule.as_i64()) {
                (Some(value), Some(least)) if value < least => wrong("minimum"),
                _ => None,
            },
            "pattern" => value.as_str().filter(|text| !text.ends_with('%')).and_then(|_| wrong("pattern")),
            "items" => {
                let items = value.as_array().into_iter().flatten();
                items.into_iter().find_map(|item| misfit(root, rule, item, at))
            }
            "properties" => {
                let entries = value.as_object().into_iter().flatten();
                entries.into_iter().find_map(|(key, value)| property(root, schema, key, value, at))
            }
            word => panic!("the validator does not know {word}"),
        };
        if misfit.is_some() {
            return misfit;
        }
    }
    // a table of names alone
    if schema.get("properties").is_none() && schema.get("additionalProperties").is_some() {
        let entries = value.as_object().into_iter().flatten();
        return entries.into_iter().find_map(|(key, value)| property(root, schema, key, value, at));
    }
    None
}

fn property(root: &Value, schema: &Value, key: &str, value: &Value, at: &str) -> Option<String> {
    let at = format!("{at}/{key}");
    if let Some(known) = schema.pointer("/properties").and_then(|properties| properties.get(key)) {
        return misfit(root, known, value, &at);
    }
    let sized = key.replace(|c: char| c.is_ascii_digit(), "").replace('.', "\\.");
    for (pattern, rule) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
        let plain = pattern.trim_matches(['^', '$']).replace("[0-9]+", "");
        if ["KB", "MB", "GB"].iter().any(|unit| plain.replace("(KB|MB|GB)", unit) == sized) {
            return misfit(root, rule, value, &at);
        }
    }
    match &schema["additionalProperties"] {
        Value::Bool(true) => None,
        Value::Object(_) => misfit(root, &schema["additionalProperties"], value, &at),
        _ => Some(format!("{at}: unknown key")),
    }
}

fn fits(text: &str) -> Result<(), String> {
    let schema: Value = serde_json::from_str(&layout::schema()).unwrap();
    let table = DeTable::parse(text).unwrap();
    misfit(&schema, &schema, &table_to_json(table.get_ref()), "").map_or(Ok(()), Err)
}

#[test]
fn the_schema_takes_what_the_readers_take() {
    for text in examples().iter().map(String::as_str).chain([EXAMPLE]) {
        assert_eq!(fits(text), Ok(()), "{text}");
    }
    for setting in settings::all() {
        if matches!(setting.access, settings::Access::Read | settings::Access::Command(_)) {
            continue;
        }
        let name = setting.name.replace("<size>", "2MB");
        let text = format!("[groups.a]\n{name} = '{0}'\n[groups.b]\n\"{name}\" = '{0}'\n", setting.example);
        assert_eq!(fits(&text), Ok(()), "{text}");
        assert_eq!(said(&[("layout.toml", &text)]).1, "");
    }
}

#[test]
fn the_schema_refuses_shapes_that_the_readers_refuse() {
    for text in [
        "grups = {}",
        "groups = 1",
        "[groups.a]\ncpu = 8",
        "[groups.a]\ncpus = 0",
        "[groups.a]\ncpus = true",
        "[groups.a]\ncpus = { cont = 1 }",
        "[groups.a]\ncpus = { count = 1, smt = 'whole' }",
        "[groups.a]\ncpus = { count = '8' }",
        "[groups.a]\nmems = 0",
        "[groups.a]\nexclusive = 'yes'",
        "[groups.a]\ntasks = { usr = 'x' }",
        "[groups.a]\nmatch = [{ usr = 'x' }]",
        "[groups.a]\nmemory.mx = 1",
        "[groups.a]\nmemory.current = 1",
        "[groups.a]\n\"memory.mx\" = 1",
        "[groups.a]\nio.max.'8:16' = { rips = 1 }",
        "[groups.a.groups.b]\ncpu = 8",
        "[templates.'t/%u']\nmatch = []",
        "[[rules]]\nuser = 'x'\nto = 1",
        "[reserve]\nswap = 1",
        "[host]\nnodes = 'four'",
        "[defaults]\ncpus = 1",
    ] {
        assert!(fits(text).is_err(), "the schema takes {text}");
        let (reading, _) = said(&[("layout.toml", text)]);
        assert!(reading.desired.is_none(), "the reader takes {text}");
    }
}
