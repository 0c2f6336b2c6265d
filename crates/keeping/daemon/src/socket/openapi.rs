//! The OpenAPI document, made from the table of requests and the types of their bodies and answers: it describes what is
//! served, and nothing else.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{
    Problem, SOCKET,
    routes::{Parameter, ROUTES, Route},
};

/// The document (OpenAPI 3.1), pretty, ending with a newline.
pub fn document() -> String {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let refused = generator.subschema_for::<Problem>();
    let mut paths = Map::new();
    for route in ROUTES {
        let body = route.body.map(|body| body(&mut generator));
        let answer = (route.answer)(&mut generator);
        let operation = operation(route, body.map(Value::from), answer.into(), refused.clone().into());
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation;
    }
    let schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ringfenced",
            "version": "1",
            "summary": "The daemon's interface on its Unix socket",
            "description": format!("Served on {SOCKET}, one request a connection. The peer's credentials, as the \
                            kernel reports them, decide who may. Groups are named below the place where they live; a slash in a \
                            name may stand as it is or as %2F. Bodies are up to 64 KiB."),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default(); // a `Value` always is JSON
    text.push('\n');
    text
}

fn operation(route: &Route, body: Option<Value>, answer: Value, refused: Value) -> Value {
    let mut operation = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "description": format!("Who may: {}.", route.who),
        "parameters": parameters(route),
        "responses": {
            "200": { "description": "Done", "content": { "application/json": { "schema": answer } } },
            "default": {
                "description": "Problem, or not done: nothing was changed, unless the detail says what could not be put back",
                "content": { "application/problem+json": { "schema": refused } },
            },
        },
    });
    if let Some(body) = body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body } } });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let parameter = |parameter: &Parameter| match parameter {
        Parameter::Name => json!({
            "name": "name", "in": "path", "required": true, "schema": { "type": "string" },
            "description": "The group, for example db/oltp1",
        }),
        Parameter::Pid => json!({
            "name": "pid", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 },
        }),
        Parameter::Settings => json!({
            "name": "settings", "in": "query", "required": false, "style": "form", "explode": false,
            "schema": { "type": "array", "items": { "type": "string" } },
            "description": "Settings, by any v1 or v2 name; all of the group if none is named",
        }),
    };
    route.parameters.iter().map(parameter).collect()
}
