//! From a whole request to its answer: looks at the rights, asks the service, and makes JSON of what it says. Knows
//! nothing of connections.

use serde::Serialize;
use settings::Found;

use super::{
    Peer, Refused, Rights, Service,
    assignments::Assignments,
    routes::{Kind, Processes, Requested},
};

/// A request names at most so many processes.
const MOST_PROCESSES: usize = 1024;

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
pub fn answer(service: &dyn Service, peer: &Peer, requested: &Requested, body: &[u8]) -> Answer {
    match done(service, peer, requested, body) {
        Ok(body) => Answer { status: 200, content: "application/json", body },
        Err(refused) => Answer::refused(&refused),
    }
}

impl Answer {
    /// A refusal (RFC 9457).
    pub(super) fn refused(refused: &Refused) -> Answer {
        // strings and numbers always are JSON
        let body = serde_json::to_vec(refused).unwrap_or_default();
        Answer { status: refused.status, content: "application/problem+json", body }
    }
}

fn done(service: &dyn Service, peer: &Peer, requested: &Requested, body: &[u8]) -> Result<Vec<u8>, Refused> {
    let rights = service.rights();
    match (requested.kind, &requested.group, requested.pid) {
        (Kind::Status, ..) => json(&service.status()?),
        (Kind::Counters, ..) => json(&service.counters()?),
        (Kind::Groups, ..) => json(&service.groups(peer)?),
        (Kind::Group, Some(group), _) => {
            let settings: Vec<Found> =
                requested.settings.iter().map(|name| settings::find(name)).collect::<Result<_, _>>()?;
            json(&service.get(group, &settings, peer)?)
        }
        (Kind::Set, Some(group), _) => {
            let values = assigned(&rights, peer, group, body)?;
            json(&service.set(group, &values, peer)?)
        }
        (Kind::Move, Some(group), _) => {
            rights.may_move(peer, group)?;
            let processes: Processes = read(body)?;
            if processes.pids.is_empty() || processes.pids.len() > MOST_PROCESSES {
                return Err(Refused::bad(format!("pids holds 1 to {MOST_PROCESSES} numbers")));
            }
            json(&service.move_processes(group, &processes.pids, peer)?)
        }
        (Kind::Classification, _, Some(pid)) => json(&service.classify(pid, peer)?),
        (Kind::Reload, ..) if !peer.is_root() => {
            Err(Refused::forbidden("only root reloads the configuration"))
        }
        (Kind::Reload, ..) => json(&service.reload(peer)?),
        (Kind::Document, ..) => Ok(super::document().into_bytes()),
        (Kind::Group | Kind::Set | Kind::Move | Kind::Classification, ..) => {
            Err(Refused::bad("the path names nothing"))
        }
    }
}

/// Whoever has no right to the group learns nothing else.
fn assigned(
    rights: &Rights,
    peer: &Peer,
    group: &kernel::GroupName,
    body: &[u8],
) -> Result<Vec<(Found, String)>, Refused> {
    rights.may_set(peer, group, &[])?;
    let Assignments(named) = read(body)?;
    if named.is_empty() {
        return Err(Refused::bad("no setting is named"));
    }
    let values: Vec<(Found, String)> = named
        .into_iter()
        .map(|(name, value)| Ok((settings::find(&name)?, value)))
        .collect::<Result<_, Refused>>()?;
    let settings: Vec<Found> = values.iter().map(|(found, _)| found.clone()).collect();
    rights.may_set(peer, group, &settings)?;
    Ok(values)
}

fn read<'b, T: serde::Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| Refused::bad(format!("the body is not valid: {error}")))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Refused> {
    serde_json::to_vec(value)
        .map_err(|error| Refused::new(500, format!("the answer can't be rendered: {error}")))
}
