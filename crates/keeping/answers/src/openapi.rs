//! The OpenAPI documents, made from a table of requests and the types of their bodies and answers: they describe what is served,
//! and nothing else.

use schemars::{
    SchemaGenerator,
    generate::{Contract, SchemaSettings},
};
use serde_json::{Map, Value, json};

use crate::routes::{Answer, Parameter, Route, Shape};

/// What differs between two documents beside their tables.
#[derive(Debug)]
pub struct Api {
    /// Whose it is.
    pub title: &'static str,
    /// In a line.
    pub summary: &'static str,
    /// How it is reached, and what holds for all of it.
    pub description: String,
    /// Are answers described as they are written, or as they may be read?
    pub answers: Contract,
    /// A refusal.
    pub problem: Shape,
    /// When there is one.
    pub refused: &'static str,
    /// By its name: the schema of a part of a path and, if that says not all, what it is.
    pub part: fn(&str) -> (Value, Option<&'static str>),
    /// What is said of rows that change something.
    pub writes: &'static str,
}

impl Api {
    /// The document (OpenAPI 3.1), pretty, ending with a newline.
    pub fn document<Kind: Copy>(&self, routes: &[Route<Kind>]) -> String {
        let mut call = generator(Contract::Deserialize);
        let mut answered = generator(self.answers.clone());
        let refused = Value::from((self.problem)(&mut answered));
        let mut paths = Map::new();
        for route in routes {
            let body = route.body.map(|body| Value::from(body(&mut call)));
            let operation = self.operation(route, body, &mut answered, &refused);
            let path = paths.entry(route.path).or_insert_with(|| json!({}));
            path[route.method.to_lowercase()] = operation;
        }
        let mut schemas: Map<String, Value> = answered.take_definitions(true).into_iter().collect();
        schemas.extend(call.take_definitions(true));
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": self.title,
                "version": "1",
                "summary": self.summary,
                "description": self.description,
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            },
            "paths": paths,
            "components": { "schemas": schemas },
        });
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default(); // a `Value` always is JSON
        text.push('\n');
        text
    }

    fn operation<Kind: Copy>(
        &self,
        route: &Route<Kind>,
        body: Option<Value>,
        answered: &mut SchemaGenerator,
        refused: &Value,
    ) -> Value {
        let content = |media: &str, schema: Value| json!({ media: { "schema": schema } });
        let done = match route.answer {
            Answer::Empty => ("204", json!({ "description": "Done" })),
            Answer::Json(shape) => {
                let schema = Value::from(shape(answered));
                ("200", json!({ "description": "Done", "content": content("application/json", schema) }))
            }
            Answer::Html => {
                let page = content("text/html", json!({ "type": "string" }));
                ("200", json!({ "description": "Done", "content": page }))
            }
        };
        let mut operation = json!({
            "operationId": route.operation,
            "summary": route.summary,
            "parameters": self.parameters(route),
            "responses": {
                done.0: done.1,
                "default": {
                    "description": self.refused,
                    "content": content("application/problem+json", refused.clone()),
                },
            },
        });
        let notes = [route.note, if route.writes { self.writes } else { "" }];
        let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        if !notes.is_empty() {
            operation["description"] = notes.join(" ").into();
        }
        if let Some(body) = body {
            operation["requestBody"] =
                json!({ "required": true, "content": content("application/json", body) });
        }
        operation
    }

    fn parameters<Kind: Copy>(&self, route: &Route<Kind>) -> Vec<Value> {
        let part = route.part().map(|name| {
            let (schema, help) = (self.part)(name);
            let mut part = json!({ "name": name, "in": "path", "required": true, "schema": schema });
            if let Some(help) = help {
                part["description"] = help.into();
            }
            part
        });
        part.into_iter().chain(route.query.iter().map(in_query)).collect()
    }
}

fn in_query(parameter: &Parameter) -> Value {
    let mut row = json!({
        "name": parameter.name, "in": "query", "required": parameter.required,
        "schema": { "type": parameter.kind }, "description": parameter.help,
    });
    if parameter.kind == "array" {
        row["schema"]["items"] = json!({ "type": "string" });
        row["style"] = "form".into();
        row["explode"] = false.into();
    }
    row
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
