//! The table of requests: path, method, who may, and the types of body and answer. [`crate::openapi`] is made from it.

use answers::{
    Problem,
    routes::{Answer, Parameter, Route, json, of},
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::api::{
    groups::{Change, ChangePlan, Changed, Group, Groups, Log, Sample, Series, Why},
    lab::{Lab, Simulate, Simulated},
    layouts::{Apply, Checked, Confirm, History, LayoutFile, LayoutText, Outcome, Planned, Undo},
    machine::{Machine, Owners},
    session::{Session, Token},
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

const ETAG: &str = "Has an ETag.";

/// All of them.
pub const ROUTES: &[Route<Kind>] = &[
    Route {
        note: "Sets an HttpOnly, SameSite=Strict cookie. The token works once.",
        ..Route::post(
            Kind::OpenSession,
            "openSession",
            "/api/session",
            "Exchange the token for a cookie",
            of::<Token>(),
            Answer::Empty,
        )
    },
    Route::get(
        Kind::Session,
        "session",
        "/api/session",
        "Who looks, and what they may do",
        json::<Session>(),
    ),
    Route {
        method: "DELETE",
        ..Route::get(Kind::EndSession, "endSession", "/api/session", "End the session", Answer::Empty)
    },
    Route {
        note: ETAG,
        ..Route::get(
            Kind::Machine,
            "machine",
            "/api/machine",
            "Packages, nodes, caches, cores, CPUs",
            json::<Machine>(),
        )
    },
    Route {
        note: ETAG,
        ..Route::get(
            Kind::Owners,
            "owners",
            "/api/owners",
            "Who owns which CPU now; the recorder's log does not have it",
            json::<Owners>(),
        )
    },
    Route {
        note: ETAG,
        ..Route::get(Kind::Groups, "groups", "/api/groups", "The groups as a tree", json::<Groups>())
    },
    Route {
        note: "Poll it once a second. Live samples have an ETag: If-None-Match answers 304 while there is no newer one. Sampling stops by itself when nobody asks for 10 s.",
        query: &[Parameter {
            name: "at_ms",
            kind: "integer",
            required: false,
            help: "The last sample of the log that is not after this time; without: the running kernel's newest",
        }],
        ..Route::get(
            Kind::Sample,
            "sample",
            "/api/sample",
            "One moment of machine and groups",
            json::<Sample>(),
        )
    },
    Route::get(Kind::Group, "group", "/api/groups/{name}", "A group's settings and tasks", json::<Group>()),
    Route {
        note: "Takes that long.",
        query: &[Parameter {
            name: "for",
            kind: "number",
            required: false,
            help: "Seconds to look, 0.1 to 60 [default: 5]",
        }],
        ..Route::get(Kind::Why, "why", "/api/groups/{name}/why", "What slowed a group down", json::<Why>())
    },
    Route {
        method: "PATCH",
        writes: true,
        ..Route::post(
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
        ..Route::post(
            Kind::PlanSettings,
            "planSettings",
            "/api/groups/{name}/settings/plan",
            "What a change of settings would write",
            of::<Change>(),
            json::<ChangePlan>(),
        )
    },
    Route::get(Kind::History, "history", "/api/history", "Who changed what, when", json::<History>()),
    Route::get(Kind::Log, "log", "/api/log", "Which times the recorder's log has", json::<Log>()),
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
        ..Route::get(
            Kind::Series,
            "series",
            "/api/series",
            "Figures of a group over time, from the log",
            json::<Series>(),
        )
    },
    Route::get(Kind::Layout, "layout", "/api/layout", "The machine's layout, to edit", json::<LayoutFile>()),
    Route::post(Kind::Check, "check", "/api/check", "Check a layout", of::<LayoutText>(), json::<Checked>()),
    Route {
        note: "Works without --write.",
        ..Route::post(
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
        ..Route::post(Kind::Apply, "apply", "/api/apply", "Apply a layout", of::<Apply>(), json::<Outcome>())
    },
    Route {
        writes: true,
        ..Route::post(
            Kind::Confirm,
            "confirm",
            "/api/confirm",
            "Keep a change that waits for it",
            of::<Confirm>(),
            json::<Outcome>(),
        )
    },
    Route {
        writes: true,
        ..Route::post(Kind::Undo, "undo", "/api/undo", "Undo", of::<Undo>(), json::<Outcome>())
    },
    Route::get(
        Kind::Lab,
        "lab",
        "/api/lab",
        "Results of experiments, and a running one's progress",
        json::<Lab>(),
    ),
    Route::get(
        Kind::LabReport,
        "labReport",
        "/api/lab/{id}/report",
        "An experiment's report, for a frame",
        Answer::Html,
    ),
    Route::post(
        Kind::Simulate,
        "simulate",
        "/api/simulate",
        "CPUs of elastic groups over time",
        of::<Simulate>(),
        json::<Simulated>(),
    ),
    Route::get(
        Kind::Document,
        "document",
        "/api/openapi.json",
        "This document",
        json::<Map<String, Value>>(),
    ),
];

/// A request whose path and query were read.
#[derive(Debug, Clone)]
pub struct Call {
    /// The row.
    pub route: &'static Route<Kind>,
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
        let fits = |route: &&Route<Kind>| route.part_of(path).is_some();
        let longest = ROUTES.iter().filter(fits).filter(|route| route.method == method);
        let Some(route) = longest.max_by_key(|route| route.path.len()) else {
            let other: Vec<&str> = ROUTES.iter().filter(fits).map(|route| route.method).collect();
            return Err(match other.as_slice() {
                [] => Problem::missing("there is no such path"),
                other => Problem::new(405, format!("this path takes {}", other.join(" or "))),
            });
        };
        let part = decoded(route.part_of(path).unwrap_or_default())?;
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
