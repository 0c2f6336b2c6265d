//! JSON. Our own: what `--json` prints is what `--machine` reads; a head names the format and its version, so that a
//! later form is refused by its version and not by its first unknown field. And lscpu's, known by its only key.

use serde::{Deserialize, Serialize};

use super::{line::quoted, lscpu, lscpu_table};
use crate::{Machine, SourceKind, TopologyError};

const FORMAT: &str = "ringfence-machine";
const VERSION: u64 = 1;

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
    /// `lscpu -J`.
    lscpu: Option<serde_json::Value>,
    /// `lscpu -e -J`.
    cpus: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<M> {
    format: String,
    version: u64,
    machine: M,
}

/// The machine, and what kind of listing it is; none of ours, which holds its sources.
pub(super) fn read(name: &str, text: &str) -> Result<(Machine, Option<SourceKind>), TopologyError> {
    let head: Head = serde_json::from_str(text).map_err(|error| wrong(name, text, &error))?;
    match head {
        Head { format: None, lscpu: Some(fields), .. } => {
            return Ok((lscpu::read_json(name, text, fields)?, Some(SourceKind::Lscpu)));
        }
        Head { format: None, cpus: Some(cpus), .. } => {
            return Ok((lscpu_table::read_json(name, text, &cpus)?, Some(SourceKind::Lscpu)));
        }
        _ => {}
    }
    if head.format.as_deref() != Some(FORMAT) {
        return Err(TopologyError::Listing {
            name: name.to_owned(),
            line: 1,
            expected: format!("JSON with \"format\": \"{FORMAT}\""),
            found: head.format.map_or("none".to_owned(), |format| quoted(&format)),
        });
    }
    match head.version {
        Some(VERSION) => {}
        Some(found) => return Err(TopologyError::Version { name: name.to_owned(), found, known: VERSION }),
        None => {
            return Err(TopologyError::Listing {
                name: name.to_owned(),
                line: 1,
                expected: format!("\"version\": {VERSION}"),
                found: "none".to_owned(),
            });
        }
    }
    let document: Document<Machine> =
        serde_json::from_str(text).map_err(|error| wrong(name, text, &error))?;
    Ok((document.machine, None))
}

pub(super) fn write(machine: &Machine) -> String {
    let document = Document { format: FORMAT.to_owned(), version: VERSION, machine };
    serde_json::to_string_pretty(&document)
        .expect("the fields' serializers never fail and every key is a string")
}

fn wrong(name: &str, text: &str, error: &serde_json::Error) -> TopologyError {
    let line = error.line().max(1);
    let found = text.lines().nth(line - 1).map_or("the end".to_owned(), quoted);
    let message = error.to_string();
    // the position has fields of its own
    let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
    TopologyError::Listing {
        name: name.to_owned(),
        line,
        expected: format!("machine JSON ({})", units::printable(reason)),
        found,
    }
}
