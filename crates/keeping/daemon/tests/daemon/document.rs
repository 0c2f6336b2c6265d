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
    let (status, served) = scene.ask(ROOT, "GET", "/v1/openapi.json", "");
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
        let (status, told) = scene.ask(ROOT, &method.to_uppercase(), &path, body);
        let operation = &document["paths"][row][method];
        assert_eq!(status, 200, "{row}: {told}");
        fits(&document, &operation["responses"]["200"]["content"]["application/json"]["schema"], &told);
        assert_eq!(operation.get("requestBody").is_some(), !body.is_empty(), "{row}");
    }
    let (_, refused) = scene.ask(ROOT, "GET", "/v1/nothing", "");
    fits(&document, &document["components"]["schemas"]["Refused"], &refused);
}

/// Types, and that an object has what the schema requires and nothing that it does not know.
fn fits(document: &Value, schema: &Value, value: &Value) {
    if let Some(reference) = schema["$ref"].as_str() {
        return fits(document, document.pointer(reference.strip_prefix('#').unwrap()).unwrap(), value);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match &schema["type"] {
        Value::String(one) => assert_eq!(one, kind, "{schema} {value}"),
        Value::Array(many) => assert!(many.iter().any(|one| one == kind), "{schema} {value}"),
        _ => return, // anything
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().for_each(|value| fits(document, items, value));
    }
    if let (Some(known), Some(object)) = (schema["properties"].as_object(), value.as_object()) {
        object.iter().for_each(|(key, value)| {
            fits(document, known.get(key).unwrap_or_else(|| panic!("{key}")), value)
        });
        let required = schema["required"].as_array().unwrap();
        assert!(required.iter().all(|key| object.contains_key(key.as_str().unwrap())), "{schema} {value}");
    }
}
