//! From a whole request to its answer: checks the rights, calls the service, and writes its answer as JSON. Knows nothing
//! of connections.

use answers::{Problem, SocketProblem, socket::Processes};
use serde::Serialize;
use settings::NamedSetting;

use super::{Peer, Rights, Service, assignments::Assignments, routes::Request};

/// The media type of a refusal or failure.
pub(super) const PROBLEM: &str = "application/problem+json";
/// Processes of one request.
const MAX_PROCESSES: usize = 1024;

/// An answer's status, kind and body.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type.
    pub content: &'static str,
    /// JSON.
    pub body: Vec<u8>,
}

/// Answers a request. It may take as long as the kernel does.
pub fn answer(service: &dyn Service, peer: &Peer, request: &Request, body: &[u8]) -> Answer {
    match done(service, peer, request, body) {
        Ok(body) => Answer { status: 200, content: "application/json", body },
        Err(problem) => Answer::problem(&problem),
    }
}

impl Answer {
    /// A refusal or a failure (RFC 9457).
    pub(super) fn problem(problem: &Problem) -> Answer {
        // strings and numbers always are JSON
        let body = serde_json::to_vec(&SocketProblem::from(problem)).unwrap_or_default();
        Answer { status: problem.status, content: PROBLEM, body }
    }
}

fn done(service: &dyn Service, peer: &Peer, request: &Request, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let rights = service.rights();
    match request {
        Request::Status => json(&service.status()?),
        Request::Counters => json(&service.counters()?),
        Request::Groups => json(&service.groups(peer)?),
        Request::Group { group, settings } => {
            let settings: Vec<NamedSetting> =
                settings.iter().map(|name| settings::find(name)).collect::<Result<_, _>>()?;
            json(&service.get(group, &settings, peer)?)
        }
        Request::Set(group) => {
            let values = assigned(&rights, peer, group, body)?;
            json(&service.set(group, values, peer)?)
        }
        Request::Move(group) => {
            rights.may_move(peer, group)?;
            let processes: Processes = read(body)?;
            if processes.pids.is_empty() || processes.pids.len() > MAX_PROCESSES {
                return Err(Problem::invalid(format!("pids takes 1 to {MAX_PROCESSES} PIDs")));
            }
            json(&service.move_processes(group, &processes.pids, peer)?)
        }
        Request::Classification(pid) => json(&service.classify(*pid, peer)?),
        Request::Reload if !peer.is_root() => Err(Problem::forbidden("only root reloads the configuration")),
        Request::Reload => json(&service.reload(peer)?),
        Request::Document => Ok(super::document().into_bytes()),
    }
}

/// A peer without a right to the group learns nothing else.
fn assigned(
    rights: &Rights,
    peer: &Peer,
    group: &kernel::GroupName,
    body: &[u8],
) -> Result<Vec<(NamedSetting, String)>, Problem> {
    rights.may_set(peer, group, &[])?;
    let Assignments(named) = read(body)?;
    if named.is_empty() {
        return Err(Problem::invalid("no setting is named"));
    }
    let values: Vec<(NamedSetting, String)> = named
        .into_iter()
        .map(|(name, value)| Ok((settings::find(&name)?, value)))
        .collect::<Result<_, Problem>>()?;
    let settings: Vec<NamedSetting> = values.iter().map(|(found, _)| found.clone()).collect();
    rights.may_set(peer, group, &settings)?;
    Ok(values)
}

fn read<'b, T: serde::Deserialize<'b>>(body: &'b [u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("the body is not valid: {error}")))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value)
        .map_err(|error| Problem::new(500, format!("the answer cannot be written as JSON: {error}")))
}
