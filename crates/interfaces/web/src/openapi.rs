//! The OpenAPI document, made from the table of requests and the types of their bodies and answers.

use schemars::{
    SchemaGenerator,
    generate::{Contract, SchemaSettings},
};
use serde_json::{Map, Value, json};

use crate::{
    api::session::Problem,
    routes::{Answer, ROUTES, Route},
};

/// The document (OpenAPI 3.1), pretty, ending with a newline.
pub fn document() -> String {
    let mut call = generator(Contract::Deserialize);
    let mut answered = generator(Contract::Serialize);
    let refused = Value::from(answered.subschema_for::<Problem>());
    let mut paths = Map::new();
    for route in ROUTES {
        let body = route.body.map(|body| Value::from(body(&mut call)));
        let operation = operation(route, body, &mut answered, &refused);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation;
    }
    let mut schemas: Map<String, Value> = answered.take_definitions(true).into_iter().collect();
    schemas.extend(call.take_definitions(true));
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ringfence web",
            "version": "1",
            "summary": "What the pages of ringfence web call",
            "description": "Served on loopback to the user who started it, one request a connection. Every path but POST /api/session needs the session's cookie (else 401, kind session_over). Bodies are application/json, up to 5 MiB; every unsafe method needs an Origin that is the page's own. CPUs are counted from 1.0 for one CPU, shares from 0 to 1, memory in bytes, times in milliseconds since 1970 by the host's clock.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default(); // a `Value` always is JSON
    text.push('\n');
    text
}

fn generator(contract: Contract) -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings.contract = contract;
        })
        .into_generator()
}

fn operation(route: &Route, body: Option<Value>, answered: &mut SchemaGenerator, refused: &Value) -> Value {
    let done = match route.answer {
        Answer::Empty => ("204", json!({ "description": "Done" })),
        Answer::Json(shape) => {
            let schema = Value::from(shape(answered));
            ("200", json!({ "description": "Done", "content": { "application/json": { "schema": schema } } }))
        }
        Answer::Html => (
            "200",
            json!({ "description": "Done", "content": { "text/html": { "schema": { "type": "string" } } } }),
        ),
    };
    let mut operation = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": {
            done.0: done.1,
            "default": {
                "description": "Refused; nothing was changed unless the message says so",
                "content": { "application/problem+json": { "schema": refused } },
            },
        },
    });
    let needs = if route.writes { "Only with --write (else 403, kind read_only)." } else { "" };
    let note =
        [route.note, needs].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ");
    if !note.is_empty() {
        operation["description"] = note.into();
    }
    if let Some(body) = body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body } } });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let part = route.path.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(name, _)| name);
    let help = |name| match name {
        "name" => {
            "The group, such as db/oltp1; encode it whole (encodeURIComponent), slashes may stand as they are"
        }
        _ => "LabResult.id",
    };
    let part = part.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" }, "description": help(name) })
    });
    let query = route.query.iter().map(|parameter| {
        json!({
            "name": parameter.name, "in": "query", "required": parameter.required,
            "schema": { "type": parameter.kind }, "description": parameter.help,
        })
    });
    part.into_iter().chain(query).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The pages' types are made from it.
    #[test]
    fn the_document_of_the_pages_is_what_is_served() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/web-api.json");
        let made = super::document();
        if std::env::var_os("RF_BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        assert!(written == made, "docs/web-api.json is old: RF_BLESS=1 cargo test -p ringfence-web document");
    }
}
