//! Answers: what each request reads or has changed. Runs in a thread that may wait.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use answers::{Problem, ProblemKind};
use daemon::socket::client::{Client, ClientError};
use hyper::body::Bytes;
use kernel::GroupName;
use serde::de::DeserializeOwned;

use crate::{
    api::session::{DaemonState, Session},
    group::{self, Looks},
    history,
    lab::{self, Results},
    layouts,
    live::{Live, Snapshot, host, json, not_yet},
    machine::machine,
    program::Program,
    replay,
    routes::{Call, Kind},
    sample::{Figures, millis},
};

/// What requests are answered from.
pub struct Answers {
    /// Are changes carried out?
    pub write: bool,
    /// The program.
    pub program: Program,
    /// The recorder's log.
    pub log: PathBuf,
    /// The samples.
    pub live: Live,
    /// Experiments.
    pub results: Results,
    /// What tasks did before.
    pub looks: Looks,
    /// One change at a time, so that of two browsers the second sees what the first did.
    pub change: Mutex<()>,
}

/// What is sent.
#[derive(Debug)]
pub enum Body {
    /// JSON.
    Json(Bytes),
    /// JSON with a name for its version.
    Versioned(Bytes, String),
    /// A page of an experiment.
    Report(Bytes),
}

/// What came beside the body: when the session ends, and a snapshot where the request needs one.
pub struct Context {
    /// The session's end.
    pub ends: SystemTime,
    /// What was seen last.
    pub seen: Option<Arc<Snapshot>>,
}

/// A daemon that hangs delays no page for longer.
const DAEMON: Duration = Duration::from_secs(3);
/// Seconds of `why`.
const SPAN: std::ops::RangeInclusive<f64> = 0.1..=60.0;

impl Answers {
    /// Does this request need a look at the groups first?
    pub fn needs_snapshot(call: &Call) -> bool {
        let is_now = call.text("at_ms").is_none();
        match call.route.kind {
            Kind::Sample | Kind::Owners => is_now,
            Kind::Groups | Kind::Plan => true,
            _ => false,
        }
    }

    /// Answers a request whose session is there.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn answer(&self, call: &Call, body: &[u8], context: &Context) -> Result<Body, Problem> {
        if call.route.writes && !self.write {
            let problem = Problem::forbidden("this page only reads").kind(ProblemKind::ReadOnly);
            return Err(problem.hint("start it with changes allowed: ringfence web --write"));
        }
        let plain = |body: Result<Bytes, Problem>| body.map(Body::Json);
        match call.route.kind {
            Kind::Session => plain(json(&self.session(context.ends))),
            Kind::Machine => {
                let body = json(&machine(&self.live.machine(), &hostname()))?;
                let tag = format!("{:x}", crc(&body));
                Ok(Body::Versioned(body, tag))
            }
            Kind::Sample => self.sample(call, context),
            Kind::Owners => {
                let seen = snapshot(context)?;
                Ok(Body::Versioned(seen.owners_json.clone(), format!("o{}", seen.owners_version)))
            }
            Kind::Groups => {
                let seen = snapshot(context)?;
                Ok(Body::Versioned(seen.groups_json.clone(), format!("g{}", seen.groups_version)))
            }
            Kind::Group => {
                let name = GroupName::new(&call.part)?;
                let limits = self.live.limits(&name.to_string());
                let state = history::state(&self.program);
                plain(json(&group::group(&host()?, &name, &self.looks, limits, &state)?))
            }
            Kind::Why => {
                let seconds = call.number::<f64>("for")?.unwrap_or(5.0);
                if !SPAN.contains(&seconds) {
                    return Err(Problem::invalid("for is 0.1 to 60 seconds"));
                }
                let name = GroupName::new(&call.part)?;
                let (state, span) = (history::state(&self.program), Duration::from_secs_f64(seconds));
                plain(json(&group::why(&host()?, &name, &state, span)?))
            }
            Kind::PlanSettings => {
                let name = GroupName::new(&call.part)?;
                plain(json(&group::plan(&host()?, &name, &parsed(body)?, &self.program)?))
            }
            Kind::ChangeSettings => {
                let name = GroupName::new(&call.part)?;
                let change = parsed(body)?;
                plain(self.changing(|| json(&group::change(&host()?, &name, &change, &self.program)?)))
            }
            Kind::History => plain(json(&history::history(&self.program)?)),
            Kind::Log => plain(json(&replay::times(&self.log))),
            Kind::Series => self.series(call),
            Kind::Layout => plain(json(&layouts::file(&self.program))),
            Kind::Check => {
                let call: crate::api::layouts::LayoutText = parsed(body)?;
                plain(json(&layouts::check(&call.text, &self.program)?))
            }
            Kind::Plan => {
                let call: crate::api::layouts::LayoutText = parsed(body)?;
                let seen = snapshot(context)?;
                plain(json(&layouts::plan(&call.text, &self.program, &seen.owners, &self.live.machine())?))
            }
            Kind::Apply => {
                let call = parsed(body)?;
                plain(self.changing(|| json(&layouts::apply(&call, &self.program)?)))
            }
            Kind::Confirm => {
                let call = parsed(body)?;
                plain(self.changing(|| json(&layouts::confirm(&call, &self.program)?)))
            }
            Kind::Undo => {
                let call = parsed(body)?;
                plain(self.changing(|| json(&layouts::undo(&call, &self.program)?)))
            }
            Kind::Lab => plain(json(&self.results.list(&self.program))),
            Kind::LabReport => Ok(Body::Report(self.results.report(&call.part)?.into())),
            Kind::Simulate => plain(json(&lab::simulate(&parsed(body)?, &self.log, &self.program)?)),
            Kind::Document => Ok(Body::Json(crate::openapi::document().into())),
            // these have no need of a session, or end it
            Kind::OpenSession | Kind::EndSession => Err(Problem::missing("there is no such path")),
        }
    }

    fn changing(&self, change: impl FnOnce() -> Result<Bytes, Problem>) -> Result<Bytes, Problem> {
        let turn = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change();
        drop(turn);
        self.live.refresh();
        changed
    }

    fn sample(&self, call: &Call, context: &Context) -> Result<Body, Problem> {
        match call.number::<u64>("at_ms")? {
            Some(at) => {
                let sample = replay::at(&self.log, at, &Figures::default(), &self.live.machine())?;
                Ok(Body::Json(json(&sample)?))
            }
            None => {
                let seen = snapshot(context)?;
                Ok(Body::Versioned(seen.sample.clone(), format!("s{}", seen.seq)))
            }
        }
    }

    fn series(&self, call: &Call) -> Result<Body, Problem> {
        let wanted = replay::Wanted {
            group: call.text("group"),
            figures: call.text("figures").unwrap_or_default(),
            from_ms: call.number("from_ms")?.unwrap_or(0),
            to_ms: call.number("to_ms")?.unwrap_or(u64::MAX),
            points: call.number("points")?.unwrap_or(600),
        };
        Ok(Body::Json(json(&replay::series(&self.log, &wanted)?)?))
    }

    fn session(&self, ends: SystemTime) -> Session {
        let client = self.program.socket.as_ref().map_or_else(Client::default, Client::at);
        let (daemon, daemon_problem) = match client.patience(DAEMON).status() {
            Ok(_) => (DaemonState::Running, None),
            Err(ClientError::NotRunning(_)) => (DaemonState::NotRunning, None),
            Err(error) => (DaemonState::Unreachable, Some(error.to_string())),
        };
        let uid = rustix::process::geteuid().as_raw();
        Session {
            write: self.write,
            user: system::Accounts::new().user_name(uid).unwrap_or_else(|| uid.to_string()),
            uid,
            hostname: hostname(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            daemon,
            daemon_problem,
            ends_at_ms: millis(ends),
            now_ms: millis(SystemTime::now()),
        }
    }
}

fn snapshot(context: &Context) -> Result<&Arc<Snapshot>, Problem> {
    context.seen.as_ref().ok_or_else(not_yet)
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::invalid(format!("the body is not as expected: {error}")))
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A short name for a version of a body.
fn crc(body: &[u8]) -> u64 {
    body.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
