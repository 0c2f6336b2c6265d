//! The requests that there are, as one table: what is answered and what the OpenAPI document says is read from it.

use kernel::GroupName;
use schemars::{Schema, SchemaGenerator};
use serde::Deserialize;

use super::{
    Changed, Classification, Listed, Moves, Read, Refused, Reloaded, Status, assignments::Assignments, name,
};

/// A request that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Status,
    Counters,
    Groups,
    Group,
    Set,
    Move,
    Classification,
    Reload,
    Document,
}

/// A row of the table.
pub(super) struct Route {
    pub kind: Kind,
    pub method: &'static str,
    /// With `{name}` or `{pid}` at most once.
    pub path: &'static str,
    pub summary: &'static str,
    /// Who may.
    pub who: &'static str,
    pub body: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub answer: fn(&mut SchemaGenerator) -> Schema,
}

/// The table.
pub(super) const ROUTES: &[Route] = &[
    Route {
        kind: Kind::Status,
        method: "GET",
        path: "/v1/status",
        summary: "Daemon status",
        who: "everybody",
        body: None,
        answer: SchemaGenerator::subschema_for::<Status>,
    },
    Route {
        kind: Kind::Counters,
        method: "GET",
        path: "/v1/counters",
        summary: "What the daemon counts, by name; gate_left, gate_moved and gate_let_go are the answers of strict rules' gates, gate_usec the time that they took",
        who: "everybody",
        body: None,
        answer: SchemaGenerator::subschema_for::<std::collections::BTreeMap<String, u64>>,
    },
    Route {
        kind: Kind::Groups,
        method: "GET",
        path: "/v1/groups",
        summary: "The groups below the place where ours live",
        who: "everybody, of the groups whose directories he could list himself",
        body: None,
        answer: SchemaGenerator::subschema_for::<Vec<Listed>>,
    },
    Route {
        kind: Kind::Group,
        method: "GET",
        path: "/v1/groups/{name}",
        summary: "What a group's settings hold; ?settings=memory.max,cpu.max for some of them",
        who: "everybody, of the files that he could read himself",
        body: None,
        answer: SchemaGenerator::subschema_for::<Vec<Read>>,
    },
    Route {
        kind: Kind::Set,
        method: "PATCH",
        path: "/v1/groups/{name}/settings",
        summary: "Change a group's settings, by any v1 or v2 name, all of them or none",
        who: "root; the group's admin in the layout",
        body: Some(SchemaGenerator::subschema_for::<Assignments>),
        answer: SchemaGenerator::subschema_for::<Vec<Changed>>,
    },
    Route {
        kind: Kind::Move,
        method: "POST",
        path: "/v1/groups/{name}/processes",
        summary: "Put processes with all their threads into a group, all of them or none",
        who: "root; the group's tasks in the layout, for his own processes",
        body: Some(SchemaGenerator::subschema_for::<Processes>),
        answer: SchemaGenerator::subschema_for::<Moves>,
    },
    Route {
        kind: Kind::Classification,
        method: "GET",
        path: "/v1/processes/{pid}/classification",
        summary: "What the rules make of a process, and why; nothing is moved",
        who: "root; others of the processes that /proc shows them as theirs",
        body: None,
        answer: SchemaGenerator::subschema_for::<Classification>,
    },
    Route {
        kind: Kind::Reload,
        method: "POST",
        path: "/v1/reload",
        summary: "Read the configuration again; on an error the old one stays",
        who: "root",
        body: None,
        answer: SchemaGenerator::subschema_for::<Reloaded>,
    },
    Route {
        kind: Kind::Document,
        method: "GET",
        path: "/v1/openapi.json",
        summary: "This document",
        who: "everybody",
        body: None,
        answer: SchemaGenerator::subschema_for::<serde_json::Map<String, serde_json::Value>>,
    },
];

/// Processes to be moved.
#[derive(Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Processes {
    /// Their numbers, 1 to 1024 of them.
    pub pids: Vec<u32>,
}

/// A request as it was read from its first line; its body is still to come.
#[derive(Debug, PartialEq, Eq)]
pub struct Requested {
    pub(super) kind: Kind,
    pub(super) group: Option<GroupName>,
    pub(super) pid: Option<u32>,
    pub(super) settings: Vec<String>,
}

impl Requested {
    /// Is a body part of it? Without one the request is answered at once.
    pub fn takes_body(&self) -> bool {
        ROUTES.iter().any(|route| route.kind == self.kind && route.body.is_some())
    }
}

/// What a first line asks for.
///
/// # Errors
/// [`Refused`]: there is no such path, method or parameter, or what it names can't be a name.
pub fn requested(method: &str, path: &str, query: Option<&str>) -> Result<Requested, Refused> {
    let fits = |route: &&Route| held(route, path).is_some();
    let Some(route) = ROUTES.iter().filter(fits).find(|route| route.method == method) else {
        let other: Vec<&str> = ROUTES.iter().filter(fits).map(|route| route.method).collect();
        return Err(match other.as_slice() {
            [] => Refused::new(404, "there is no such path").hint("GET /v1/openapi.json describes all"),
            other => Refused::new(405, format!("this path takes {}", other.join(" or "))),
        });
    };
    let part = held(route, path).unwrap_or_default();
    let mut requested = Requested { kind: route.kind, group: None, pid: None, settings: Vec::new() };
    if route.path.contains("{name}") {
        requested.group = Some(name::decoded(part)?);
    } else if route.path.contains("{pid}") {
        requested.pid = Some(part.parse().map_err(|_| Refused::bad("this is not a process's number"))?);
    }
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        match (route.kind, pair.split_once('=')) {
            (Kind::Group, Some(("settings", names))) => {
                requested.settings.extend(names.split(',').map(str::to_owned));
            }
            _ => return Err(Refused::bad("there is no such parameter")),
        }
    }
    Ok(requested)
}

/// What stands at the row's parameter, `Some("")` without one; `None` if the path is not of this row. A group's name may
/// hold slashes, encoded or not.
fn held<'p>(route: &Route, path: &'p str) -> Option<&'p str> {
    let Some((before, after)) = route.path.split_once('{') else {
        return (path == route.path).then_some("");
    };
    let after = after.split_once('}')?.1;
    let part = path.strip_prefix(before)?.strip_suffix(after)?;
    (!part.is_empty()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_slashes_find_their_row() {
        let kind =
            |method, path| requested(method, path, None).map(|requested| (requested.kind, requested.group));
        let db = Some(GroupName::new("db/oltp1").unwrap());
        assert_eq!(kind("GET", "/v1/groups/db/oltp1"), Ok((Kind::Group, db.clone())));
        assert_eq!(kind("GET", "/v1/groups/db%2Foltp1"), Ok((Kind::Group, db.clone())));
        assert_eq!(kind("PATCH", "/v1/groups/db/oltp1/settings"), Ok((Kind::Set, db.clone())));
        assert_eq!(kind("POST", "/v1/groups/db/oltp1/processes"), Ok((Kind::Move, db)));
        let settings = Some(GroupName::new("settings").unwrap());
        assert_eq!(kind("GET", "/v1/groups/settings"), Ok((Kind::Group, settings)));
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_asked_wrongly() {
        let status = |method, path, query| requested(method, path, query).map_err(|refused| refused.status);
        for (method, path, query, told) in [
            ("GET", "/", None, 404),
            ("GET", "/v2/status", None, 404),
            ("GET", "/v1/status/", None, 404),
            ("DELETE", "/v1/status", None, 405),
            ("PATCH", "/v1/groups//settings", None, 405),
            ("GET", "/v1/groups/", None, 404),
            ("GET", "/v1/processes/-1/classification", None, 400),
            ("GET", "/v1/processes/99999999999/classification", None, 400),
            ("GET", "/v1/status", Some("x=1"), 400),
            ("PATCH", "/v1/groups/../settings", None, 400),
            ("PATCH", "/v1/groups/%2fx/settings", None, 403),
        ] {
            assert_eq!(status(method, path, query).map(drop), Err(told), "{method} {path}");
        }
    }
}
