//! The table of requests: path, method, who may, and the types of body and answer. [`crate::openapi`] is made from it.

use percent_encoding::percent_decode_str;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::{
    api::{
        groups::{Change, ChangePlan, Changed, Group, Groups, Log, Sample, Series, Why},
        lab::{Lab, Simulate, Simulated},
        layouts::{Apply, Checked, Confirm, History, LayoutFile, LayoutText, Outcome, Planned, Undo},
        machine::{Machine, Owners},
        session::{Session, Token},
    },
    problem::{Problem, ProblemKind},
};

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Exchange the token.
    OpenSession,
    /// Who looks.
    Session,
    /// End it.
    EndSession,
    /// The machine.
    Machine,
    /// Who owns which CPU.
    Owners,
    /// The tree.
    Groups,
    /// One moment.
    Sample,
    /// A group.
    Group,
    /// What slowed it down.
    Why,
    /// Change its settings.
    ChangeSettings,
    /// What that would write.
    PlanSettings,
    /// Who changed what.
    History,
    /// Which times the log has.
    Log,
    /// Figures over time.
    Series,
    /// The machine's layout.
    Layout,
    /// Check one.
    Check,
    /// Plan one.
    Plan,
    /// Apply one.
    Apply,
    /// Keep a change.
    Confirm,
    /// Undo.
    Undo,
    /// Experiments.
    Lab,
    /// A report.
    LabReport,
    /// Simulate.
    Simulate,
    /// The document.
    Document,
}

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type in JSON.
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
pub struct Route {
    /// Which.
    pub kind: Kind,
    /// Its name.
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
    /// Does it change something, so that it needs --write?
    pub writes: bool,
    /// The body.
    pub body: Option<Shape>,
    /// The answer.
    pub answer: Answer,
}

const fn of<T: JsonSchema>() -> Shape {
    SchemaGenerator::subschema_for::<T>
}

const fn json<T: JsonSchema>() -> Answer {
    Answer::Json(of::<T>())
}

const fn get(
    kind: Kind,
    operation: &'static str,
    path: &'static str,
    summary: &'static str,
    answer: Answer,
) -> Route {
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

const fn post(
    kind: Kind,
    operation: &'static str,
    path: &'static str,
    summary: &'static str,
    body: Shape,
    answer: Answer,
) -> Route {
    Route { method: "POST", body: Some(body), ..get(kind, operation, path, summary, answer) }
}

const ETAG: &str = "Has an ETag.";

/// All of them.
pub const ROUTES: &[Route] = &[
    Route {
        note: "Sets an HttpOnly, SameSite=Strict cookie. The token works once.",
        ..post(
            Kind::OpenSession,
            "openSession",
            "/api/session",
            "Exchange the token for a cookie",
            of::<Token>(),
            Answer::Empty,
        )
    },
    get(Kind::Session, "session", "/api/session", "Who looks, and what they may do", json::<Session>()),
    Route {
        method: "DELETE",
        ..get(Kind::EndSession, "endSession", "/api/session", "End the session", Answer::Empty)
    },
    Route {
        note: ETAG,
        ..get(
            Kind::Machine,
            "machine",
            "/api/machine",
            "Packages, nodes, caches, cores, CPUs",
            json::<Machine>(),
        )
    },
    Route {
        note: ETAG,
        ..get(
            Kind::Owners,
            "owners",
            "/api/owners",
            "Who owns which CPU now; the recorder's log does not have it",
            json::<Owners>(),
        )
    },
    Route {
        note: ETAG,
        ..get(Kind::Groups, "groups", "/api/groups", "The groups as a tree", json::<Groups>())
    },
    Route {
        note: "Poll it once a second. Live samples have an ETag: If-None-Match answers 304 while there is no newer one. Sampling stops by itself when nobody asks for 10 s.",
        query: &[Parameter {
            name: "at_ms",
            kind: "integer",
            required: false,
            help: "The last sample of the log that is not after this time; without: the running kernel's newest",
        }],
        ..get(Kind::Sample, "sample", "/api/sample", "One moment of machine and groups", json::<Sample>())
    },
    get(Kind::Group, "group", "/api/groups/{name}", "A group's settings and tasks", json::<Group>()),
    Route {
        note: "Takes that long.",
        query: &[Parameter {
            name: "for",
            kind: "number",
            required: false,
            help: "Seconds to look, 0.1 to 60 [default: 5]",
        }],
        ..get(Kind::Why, "why", "/api/groups/{name}/why", "What slowed a group down", json::<Why>())
    },
    Route {
        method: "PATCH",
        writes: true,
        ..post(
            Kind::ChangeSettings,
            "changeSettings",
            "/api/groups/{name}/settings",
            "Change settings",
            of::<Change>(),
            json::<Changed>(),
        )
    },
    Route {
        note: "Works without --write.",
        ..post(
            Kind::PlanSettings,
            "planSettings",
            "/api/groups/{name}/settings/plan",
            "What a change of settings would write",
            of::<Change>(),
            json::<ChangePlan>(),
        )
    },
    get(Kind::History, "history", "/api/history", "Who changed what, when", json::<History>()),
    get(Kind::Log, "log", "/api/log", "Which times the recorder's log has", json::<Log>()),
    Route {
        query: &[
            Parameter {
                name: "group",
                kind: "string",
                required: false,
                help: "The group; without: the machine's figures",
            },
            Parameter { name: "figures", kind: "string", required: true, help: "Names with commas between" },
            Parameter { name: "from_ms", kind: "integer", required: true, help: "Begin" },
            Parameter { name: "to_ms", kind: "integer", required: true, help: "End" },
            Parameter {
                name: "points",
                kind: "integer",
                required: false,
                help: "At most this number, 2 to 2000 [default: 600]",
            },
        ],
        ..get(
            Kind::Series,
            "series",
            "/api/series",
            "Figures of a group over time, from the log",
            json::<Series>(),
        )
    },
    get(Kind::Layout, "layout", "/api/layout", "The machine's layout, to edit", json::<LayoutFile>()),
    post(Kind::Check, "check", "/api/check", "Check a layout", of::<LayoutText>(), json::<Checked>()),
    Route {
        note: "Works without --write.",
        ..post(
            Kind::Plan,
            "plan",
            "/api/plan",
            "What applying a layout would do",
            of::<LayoutText>(),
            json::<Planned>(),
        )
    },
    Route {
        writes: true,
        ..post(Kind::Apply, "apply", "/api/apply", "Apply a layout", of::<Apply>(), json::<Outcome>())
    },
    Route {
        writes: true,
        ..post(
            Kind::Confirm,
            "confirm",
            "/api/confirm",
            "Keep a change that waits for it",
            of::<Confirm>(),
            json::<Outcome>(),
        )
    },
    Route { writes: true, ..post(Kind::Undo, "undo", "/api/undo", "Undo", of::<Undo>(), json::<Outcome>()) },
    get(Kind::Lab, "lab", "/api/lab", "Results of experiments, and a running one's progress", json::<Lab>()),
    get(
        Kind::LabReport,
        "labReport",
        "/api/lab/{id}/report",
        "An experiment's report, for a frame",
        Answer::Html,
    ),
    post(
        Kind::Simulate,
        "simulate",
        "/api/simulate",
        "CPUs of elastic groups over time",
        of::<Simulate>(),
        json::<Simulated>(),
    ),
    get(Kind::Document, "document", "/api/openapi.json", "This document", json::<Map<String, Value>>()),
];

/// A request whose path and query were read.
#[derive(Debug, Clone)]
pub struct Call {
    /// The row.
    pub route: &'static Route,
    /// What stands at the path's `{part}`, decoded.
    pub part: String,
    query: Vec<(String, String)>,
}

impl Call {
    /// Reads a request's first line.
    ///
    /// # Errors
    /// There is no such path, method or parameter.
    pub fn parse(method: &str, path: &str, query: Option<&str>) -> Result<Call, Problem> {
        let fits = |route: &&Route| part_of(route.path, path).is_some();
        let longest = ROUTES.iter().filter(fits).filter(|route| route.method == method);
        let Some(route) = longest.max_by_key(|route| route.path.len()) else {
            let other: Vec<&str> = ROUTES.iter().filter(fits).map(|route| route.method).collect();
            return Err(match other.as_slice() {
                [] => Problem::missing("there is no such path"),
                other => {
                    Problem::new(405, ProblemKind::Invalid, format!("this path takes {}", other.join(" or ")))
                }
            });
        };
        let part = decoded(part_of(route.path, path).unwrap_or_default())?;
        let mut pairs = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !route.query.iter().any(|known| known.name == name)
                || pairs.iter().any(|(known, _)| known == name)
            {
                return Err(Problem::invalid(format!(
                    "parameter '{}' is unknown or stands twice",
                    units::printable(name)
                )));
            }
            pairs.push((name.to_owned(), decoded(&value.replace('+', " "))?));
        }
        let lacks = route
            .query
            .iter()
            .find(|known| known.required && !pairs.iter().any(|(name, _)| name == known.name));
        match lacks {
            Some(lacks) => Err(Problem::invalid(format!("parameter '{}' is missing", lacks.name))),
            None => Ok(Call { route, part, query: pairs }),
        }
    }

    /// A parameter's text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter's number.
    ///
    /// # Errors
    /// It is none.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| Problem::invalid(format!("'{}' is no number for {name}", units::printable(text))))
    }
}

/// What stands at the row's part, `Some("")` without one; `None` if the path is not of this row. Slashes may be in it, so that
/// several rows can fit: the longest counts.
fn part_of<'p>(row: &str, path: &'p str) -> Option<&'p str> {
    let Some((before, after)) = row.split_once('{') else {
        return (path == row).then_some("");
    };
    let after = after.split_once('}')?.1;
    let part = path.strip_prefix(before)?.strip_suffix(after)?;
    (!part.is_empty()).then_some(part)
}

/// Percent signs that stand for nothing, and bytes that are no text, are refused.
fn decoded(part: &str) -> Result<String, Problem> {
    let bytes = part.as_bytes();
    let is_code =
        |at: usize| bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if (0..bytes.len()).any(|at| bytes[at] == b'%' && !is_code(at)) {
        return Err(Problem::invalid("a % in the path stands for no byte"));
    }
    let text = percent_decode_str(part).decode_utf8().map_err(|_| Problem::invalid("the path is no text"))?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_slashes_find_their_row() {
        let call =
            |method, path| Call::parse(method, path, None).map(|call| (call.route.operation, call.part));
        let is = |operation, part: &str| Ok((operation, part.to_owned()));
        assert_eq!(call("GET", "/api/groups"), is("groups", ""));
        assert_eq!(call("GET", "/api/groups/db%2Foltp1"), is("group", "db/oltp1"));
        assert_eq!(call("GET", "/api/groups/db/oltp1/why"), is("why", "db/oltp1"));
        assert_eq!(call("PATCH", "/api/groups/db/oltp1/settings"), is("changeSettings", "db/oltp1"));
        assert_eq!(call("POST", "/api/groups/db/settings/plan"), is("planSettings", "db"));
    }

    #[test]
    fn an_unknown_path_method_or_parameter_is_refused() {
        let status = |method, path, query| {
            Call::parse(method, path, query).map_err(|problem| problem.status).map(drop)
        };
        for (method, path, query, refused) in [
            ("GET", "/api", None, 404),
            ("GET", "/api/../etc/passwd", None, 404),
            ("GET", "/api//groups", None, 404),
            ("PUT", "/api/groups", None, 405),
            ("GET", "/api/apply", None, 405),
            ("GET", "/api/groups/%", None, 400),
            ("GET", "/api/groups/%ff", None, 400),
            ("GET", "/api/sample", Some("x=1"), 400),
            ("GET", "/api/sample", Some("at_ms=1&at_ms=2"), 400),
            ("GET", "/api/series", Some("figures=cpu.usage"), 400),
        ] {
            assert_eq!(status(method, path, query), Err(refused), "{method} {path}");
        }
    }
}
