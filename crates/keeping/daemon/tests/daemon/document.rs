//! The OpenAPI document is the one in `docs`, and says what is served.

use std::{fs, path::Path};

use serde_json::Value;

use crate::scene::{ROOT, Scene};

pub const ROWS: &[(&str, fn())] = &[
    ("docs/openapi.json is what the daemon serves", kept),
    ("answers have the shape that the document gives them", shapes),
];

fn kept() {
    let text = daemon::socket::document();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/openapi.json");
    if std::env::var_os("RF_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    // where the source tree is not at hand (in a VM) there is nothing to compare
    if path.parent().is_some_and(Path::exists) {
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "docs/openapi.json is old: RF_BLESS=1 cargo test -p ringfence-daemon --test socket"
        );
    }
    let scene = Scene::new();
    let (status, served) = scene.request(ROOT, "GET", "/v1/openapi.json", "");
    assert_eq!((status, served), (200, serde_json::from_str(&text).unwrap()));
}

fn shapes() {
    let scene = Scene::new();
    let document: Value = serde_json::from_str(&daemon::socket::document()).unwrap();
    let pid = std::process::id();
    let rows = [
        ("get", "/v1/status", "/v1/status".to_owned(), ""),
        ("get", "/v1/counters", "/v1/counters".to_owned(), ""),
        ("get", "/v1/groups", "/v1/groups".to_owned(), ""),
        ("get", "/v1/groups/{name}", "/v1/groups/{g}/db".to_owned(), ""),
        (
            "patch",
            "/v1/groups/{name}/settings",
            "/v1/groups/{g}%2Fdb/settings".to_owned(),
            r#"{"pids.max":"max"}"#,
        ),
        ("get", "/v1/processes/{pid}/classification", format!("/v1/processes/{pid}/classification"), ""),
    ];
    for (method, row, path, body) in rows {
        let (status, reply) = scene.request(ROOT, &method.to_uppercase(), &path, body);
        let operation = &document["paths"][row][method];
        assert_eq!(status, 200, "{row}: {reply}");
        fits(&document, &operation["responses"]["200"]["content"]["application/json"]["schema"], &reply);
        assert_eq!(operation.get("requestBody").is_some(), !body.is_empty(), "{row}");
    }
    let (_, refused) = scene.request(ROOT, "GET", "/v1/nothing", "");
    fits(&document, &document["components"]["schemas"]["Problem"], &refused);
}

/// Panics unless the value has the shape of the schema.
fn fits(document: &Value, schema: &Value, value: &Value) {
    shape(document, schema, value).unwrap_or_else(|why| panic!("{why}: {schema} {value}"));
}

/// Compares types; an object must have what the schema requires and nothing that it does not name.
fn shape(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return shape(document, document.pointer(reference.strip_prefix('#').unwrap()).unwrap(), value);
    }
    if let Some(constant) = schema.get("const") {
        return if constant == value { Ok(()) } else { Err(format!("{value} is not {constant}")) };
    }
    if let Some(one_of) = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array) {
        let fits = one_of.iter().any(|schema| shape(document, schema, value).is_ok());
        return if fits { Ok(()) } else { Err(format!("{value} has none of the shapes")) };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |one: &Value| one == kind;
    match &schema["type"] {
        Value::Array(many) if many.iter().any(is) => {}
        one if is(one) => {}
        other => return Err(format!("{value} is not {other}")),
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().try_for_each(|value| shape(document, items, value))?;
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    let known = schema["properties"].as_object();
    for (key, value) in object {
        let of_key = known.and_then(|known| known.get(key)).unwrap_or(&schema["additionalProperties"]);
        if of_key.is_null() {
            return Err(format!("{key} is not described"));
        }
        shape(document, of_key, value)?;
    }
    let mut required = schema["required"].as_array().into_iter().flatten();
    match required.find(|key| !object.contains_key(key.as_str().unwrap())) {
        Some(key) => Err(format!("{key} is missing")),
        None => Ok(()),
    }
}
