//! A table of requests: what a server answers, and what its OpenAPI document says, is read from rows of it.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A parameter that does not stand in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type in JSON; of an `array` strings with commas between.
    pub kind: &'static str,
    /// Must it be given?
    pub required: bool,
    /// What it is.
    pub help: &'static str,
}

/// The type of a body or an answer.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// What an answer is.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// Nothing but 204.
    Empty,
    /// JSON.
    Json(Shape),
    /// A page.
    Html,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Route<Kind: 'static> {
    /// Which.
    pub kind: Kind,
    /// Its name in the document.
    pub operation: &'static str,
    /// Its method.
    pub method: &'static str,
    /// Its path, with at most one `{part}`.
    pub path: &'static str,
    /// What stands in the query.
    pub query: &'static [Parameter],
    /// What it does.
    pub summary: &'static str,
    /// What else to know.
    pub note: &'static str,
    /// Does it change something, so that the page needs --write?
    pub writes: bool,
    /// The body.
    pub body: Option<Shape>,
    /// The answer.
    pub answer: Answer,
}

/// The type of a body.
pub const fn of<T: JsonSchema>() -> Shape {
    SchemaGenerator::subschema_for::<T>
}

/// An answer of a type.
pub const fn json<T: JsonSchema>() -> Answer {
    Answer::Json(of::<T>())
}

impl<Kind: Copy> Route<Kind> {
    /// A row that only reads.
    pub const fn get(
        kind: Kind,
        operation: &'static str,
        path: &'static str,
        summary: &'static str,
        answer: Answer,
    ) -> Route<Kind> {
        Route {
            kind,
            operation,
            method: "GET",
            path,
            query: &[],
            summary,
            note: "",
            writes: false,
            body: None,
            answer,
        }
    }

    /// A row with a body.
    pub const fn post(
        kind: Kind,
        operation: &'static str,
        path: &'static str,
        summary: &'static str,
        body: Shape,
        answer: Answer,
    ) -> Route<Kind> {
        Route { method: "POST", body: Some(body), ..Route::get(kind, operation, path, summary, answer) }
    }

    /// The name of the part of its path.
    pub fn part(&self) -> Option<&'static str> {
        Some(self.path.split_once('{')?.1.split_once('}')?.0)
    }

    /// What stands at its part in a path, `Some("")` without one; `None` if the path is not of this row. Slashes may be in it,
    /// encoded or not, so that several rows can fit.
    pub fn part_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Some((before, after)) = self.path.split_once('{') else {
            return (path == self.path).then_some("");
        };
        let after = after.split_once('}')?.1;
        let part = path.strip_prefix(before)?.strip_suffix(after)?;
        (!part.is_empty()).then_some(part)
    }
}
