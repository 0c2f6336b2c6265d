//! The requests that there are, as one table: what the daemon answers, what its clients send and what the OpenAPI document
//! says is read from it.

use answers::{
    Problem,
    routes::{Parameter, Route, json, of},
    socket::{
        Classification, Counters, GroupSummary, MovedProcesses, Processes, Reloaded, SettingChange,
        SettingReading, Status,
    },
};
use kernel::GroupName;
use serde_json::{Map, Value};

use super::{assignments::Assignments, name};

/// A request as its first line has it; the body of [`Request::Set`] and [`Request::Move`] comes after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The daemon's status.
    Status,
    /// Its counters.
    Counters,
    /// All groups.
    Groups,
    /// A group's settings; none named means all.
    Group {
        /// The group.
        group: GroupName,
        /// Settings, by any name.
        settings: Vec<String>,
    },
    /// Change settings of a group ([`Assignments`]).
    Set(GroupName),
    /// Put processes into a group ([`Processes`]).
    Move(GroupName),
    /// What the rules say about a process.
    Classification(u32),
    /// Reload the configuration.
    Reload,
    /// The OpenAPI document.
    Document,
}

/// The row of a request.
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

/// Settings that a request names.
const SETTINGS: Parameter = Parameter {
    name: "settings",
    kind: "array",
    required: false,
    help: "Settings, by any v1 or v2 name; all of the group if none is named",
};

/// The table.
pub(super) const ROUTES: &[Route<Kind>] = &[
    Route {
        note: "Who may: everybody.",
        ..Route::get(Kind::Status, "status", "/v1/status", "Daemon status", json::<Status>())
    },
    Route {
        note: "Who may: everybody.",
        ..Route::get(
            Kind::Counters,
            "counters",
            "/v1/counters",
            "The daemon's counters, by name; gate_left, gate_moved and gate_let_go are the answers of the exec gate of strict rules, gate_usec the time that they took",
            json::<Counters>(),
        )
    },
    Route {
        note: "Who may: everybody, for groups whose directories they may list.",
        ..Route::get(
            Kind::Groups,
            "groups",
            "/v1/groups",
            "The groups that Ringfence manages",
            json::<Vec<GroupSummary>>(),
        )
    },
    Route {
        note: "Who may: everybody, of the files that he could read himself.",
        query: &[SETTINGS],
        ..Route::get(
            Kind::Group,
            "group",
            "/v1/groups/{name}",
            "A group's settings; ?settings=memory.max,cpu.max for some of them",
            json::<Vec<SettingReading>>(),
        )
    },
    Route {
        method: "PATCH",
        note: "Who may: root; the group's admin in the layout.",
        ..Route::post(
            Kind::Set,
            "set",
            "/v1/groups/{name}/settings",
            "Change a group's settings, by any v1 or v2 name, all of them or none",
            of::<Assignments>(),
            json::<Vec<SettingChange>>(),
        )
    },
    Route {
        note: "Who may: root; the group's tasks in the layout, for his own processes.",
        ..Route::post(
            Kind::Move,
            "move",
            "/v1/groups/{name}/processes",
            "Put processes with all their threads into a group, all of them or none",
            of::<Processes>(),
            json::<MovedProcesses>(),
        )
    },
    Route {
        note: "Who may: root; others of the processes that /proc shows them as theirs.",
        ..Route::get(
            Kind::Classification,
            "classification",
            "/v1/processes/{pid}/classification",
            "What the rules say about a process, and why; nothing is moved",
            json::<Classification>(),
        )
    },
    Route {
        method: "POST",
        note: "Who may: root.",
        ..Route::get(
            Kind::Reload,
            "reload",
            "/v1/reload",
            "Reload the configuration; if it has errors, the old one stays active",
            json::<Reloaded>(),
        )
    },
    Route {
        note: "Who may: everybody.",
        ..Route::get(
            Kind::Document,
            "document",
            "/v1/openapi.json",
            "This document",
            json::<Map<String, Value>>(),
        )
    },
];

impl Request {
    /// Reads a request's first line.
    ///
    /// # Errors
    /// [`Problem`]: there is no such path, method or parameter, or what it names can't be a name.
    pub fn parse(method: &str, path: &str, query: Option<&str>) -> Result<Request, Problem> {
        let fits = |route: &&Route<Kind>| route.part_of(path).is_some();
        let Some(route) = ROUTES.iter().filter(fits).find(|route| route.method == method) else {
            let other: Vec<&str> = ROUTES.iter().filter(fits).map(|route| route.method).collect();
            return Err(match other.as_slice() {
                [] => Problem::new(404, "there is no such path").hint("GET /v1/openapi.json describes all"),
                other => Problem::new(405, format!("this path takes {}", other.join(" or "))),
            });
        };
        let part = route.part_of(path).unwrap_or_default();
        let settings = settings_of(route, query)?;
        Ok(match route.kind {
            Kind::Status => Request::Status,
            Kind::Counters => Request::Counters,
            Kind::Groups => Request::Groups,
            Kind::Group => Request::Group { group: name::decoded(part)?, settings },
            Kind::Set => Request::Set(name::decoded(part)?),
            Kind::Move => Request::Move(name::decoded(part)?),
            Kind::Classification => {
                Request::Classification(part.parse().map_err(|_| Problem::invalid("this is not a PID"))?)
            }
            Kind::Reload => Request::Reload,
            Kind::Document => Request::Document,
        })
    }

    /// Its row; `None` would be a row that is missing, which the tests of the table exclude.
    fn route(&self) -> Option<&'static Route<Kind>> {
        let kind = match self {
            Request::Status => Kind::Status,
            Request::Counters => Kind::Counters,
            Request::Groups => Kind::Groups,
            Request::Group { .. } => Kind::Group,
            Request::Set(_) => Kind::Set,
            Request::Move(_) => Kind::Move,
            Request::Classification(_) => Kind::Classification,
            Request::Reload => Kind::Reload,
            Request::Document => Kind::Document,
        };
        ROUTES.iter().find(|route| route.kind == kind)
    }

    /// Does a body follow? Without one the request is answered at once.
    pub fn has_body(&self) -> bool {
        self.route().is_some_and(|route| route.body.is_some())
    }

    /// Its method.
    pub fn method(&self) -> &'static str {
        self.route().map_or("GET", |route| route.method)
    }

    /// Its path, with the query.
    pub fn path(&self) -> String {
        let path = self.route().map_or("/", |route| route.path);
        match self {
            Request::Group { group, settings } => {
                let path = path.replace("{name}", &name::encoded(group));
                let query = if settings.is_empty() { "" } else { "?settings=" };
                format!("{path}{query}{}", settings.join(","))
            }
            Request::Set(group) | Request::Move(group) => path.replace("{name}", &name::encoded(group)),
            Request::Classification(pid) => path.replace("{pid}", &pid.to_string()),
            Request::Status | Request::Counters | Request::Groups | Request::Reload | Request::Document => {
                path.to_owned()
            }
        }
    }
}

fn settings_of(route: &Route<Kind>, query: Option<&str>) -> Result<Vec<String>, Problem> {
    let mut settings = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("settings", names)) if route.query.contains(&SETTINGS) => {
                settings.extend(names.split(',').map(str::to_owned));
            }
            _ => return Err(Problem::invalid("there is no such parameter")),
        }
    }
    // each is read and answered: a short request must not make a long answer
    let mut names: Vec<&String> = settings.iter().collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::invalid(format!("setting '{}' is given twice", twice[0])));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_slashes_find_their_row() {
        let parse = |method, path| Request::parse(method, path, None);
        let name = |name: &str| GroupName::new(name).unwrap();
        let group = |name: GroupName| Ok(Request::Group { group: name, settings: Vec::new() });
        assert_eq!(parse("GET", "/v1/groups/db/oltp1"), group(name("db/oltp1")));
        assert_eq!(parse("GET", "/v1/groups/db%2Foltp1"), group(name("db/oltp1")));
        assert_eq!(parse("PATCH", "/v1/groups/db/oltp1/settings"), Ok(Request::Set(name("db/oltp1"))));
        assert_eq!(parse("POST", "/v1/groups/db/oltp1/processes"), Ok(Request::Move(name("db/oltp1"))));
        assert_eq!(parse("GET", "/v1/groups/settings"), group(name("settings")));
    }

    #[test]
    fn every_request_is_read_back_as_it_was_written() {
        let group = || GroupName::new("a $(touch x)/ü%").unwrap();
        let requests = [
            Request::Status,
            Request::Counters,
            Request::Groups,
            Request::Group { group: group(), settings: Vec::new() },
            Request::Group {
                group: group(),
                settings: vec![layout::QUOTA.to_owned(), "memory.max".to_owned()],
            },
            Request::Set(group()),
            Request::Move(group()),
            Request::Classification(17),
            Request::Reload,
            Request::Document,
        ];
        for request in &requests {
            let path = request.path();
            let (path, query) =
                path.split_once('?').map_or((&*path, None), |(path, query)| (path, Some(query)));
            assert_eq!(Request::parse(request.method(), path, query).as_ref(), Ok(request));
        }
        for route in ROUTES {
            let named = |request: &&Request| request.route().is_some_and(|own| own.kind == route.kind);
            assert!(requests.iter().any(|request| named(&request)), "{}", route.operation);
            assert!(matches!(route.part(), None | Some("name" | "pid")), "{}", route.path);
        }
    }

    #[test]
    fn an_unknown_path_and_a_bad_request_are_different_refusals() {
        let status =
            |method, path, query| Request::parse(method, path, query).map_err(|refused| refused.status);
        for (method, path, query, refused) in [
            ("GET", "/", None, 404),
            ("GET", "/v2/status", None, 404),
            ("GET", "/v1/status/", None, 404),
            ("DELETE", "/v1/status", None, 405),
            ("PATCH", "/v1/groups//settings", None, 405),
            ("GET", "/v1/groups/", None, 404),
            ("GET", "/v1/processes/-1/classification", None, 400),
            ("GET", "/v1/processes/99999999999/classification", None, 400),
            ("GET", "/v1/status", Some("x=1"), 400),
            // 7 kB of one name were answered with 1 MB
            ("GET", "/v1/groups/db", Some("settings=memory.stat,cpu.max,memory.stat"), 400),
            ("GET", "/v1/groups/db", Some("settings=memory.stat&settings=memory.stat"), 400),
            ("GET", "/v1/status", Some("settings=cpu.max"), 400),
            ("PATCH", "/v1/groups/../settings", None, 400),
            ("PATCH", "/v1/groups/%2fx/settings", None, 403),
        ] {
            assert_eq!(status(method, path, query).map(drop), Err(refused), "{method} {path}");
        }
    }
}
