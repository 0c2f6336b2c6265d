//! Requests to the daemon: what the caller has no permission for, and `reload`. The answer says that the daemon did it.

use std::fmt::Write;

use answers::socket::SettingChange;
use daemon::socket::{
    Assignments,
    client::{Client, ClientError},
};
use kernel::GroupName;
use serde::Serialize;

use crate::{args::Socket, failure::Failure, output};

fn client(socket: &Socket) -> Client {
    socket.socket.as_ref().map_or_else(Client::default, Client::at)
}

/// Why what the daemon's files say is not in effect; `None` if no daemon answers.
pub fn not_in_effect(socket: &Socket) -> Option<Vec<String>> {
    let client = client(socket);
    let status = client.exists().then(|| client.status().ok()).flatten()?;
    Some(status.not_in_effect)
}

/// Settings as they were typed. `denied`: the error of the caller's own attempt.
pub fn set(
    socket: &Socket,
    name: &GroupName,
    settings: Vec<(String, String)>,
    denied: Failure,
    quiet: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let changes = changed(socket, name, settings, denied)?;
    if as_json {
        return output::json(&Changes { changes, by: "ringfenced" });
    }
    let mut text = String::new();
    for change in &changes {
        for note in notes(change) {
            output::warning(&format!("{}: {note}", change.setting));
        }
        for write in &change.written {
            let _ = writeln!(text, "{} <- {}", write.path, write.text.trim_end()); // a String takes everything
        }
    }
    if quiet {
        return Ok(());
    }
    output::text(&format!("{text}changed by ringfenced (you have no write permission yourself)\n"))
}

/// The answer of `--json`.
#[derive(Serialize)]
struct Changes {
    changes: Vec<SettingChange>,
    by: &'static str,
}

/// The changes that the daemon made.
pub fn changed(
    socket: &Socket,
    name: &GroupName,
    settings: Vec<(String, String)>,
    denied: Failure,
) -> Result<Vec<SettingChange>, Failure> {
    let settings = Assignments(settings);
    answered(socket, denied, |daemon| daemon.set(name, &settings))
}

/// What is worth knowing about a change.
pub fn notes(change: &SettingChange) -> impl Iterator<Item = &String> {
    change.warnings.iter().chain(&change.differences).chain(&change.approximations)
}

/// Whole processes.
pub fn move_processes(
    socket: &Socket,
    name: &GroupName,
    pids: &[u32],
    denied: Failure,
    as_json: bool,
) -> Result<(), Failure> {
    let moved = answered(socket, denied, |daemon| daemon.move_processes(name, pids))?;
    if as_json {
        return output::json(&moved);
    }
    for pid in &moved.gone {
        output::warning(&format!("process {pid} ended meanwhile"));
    }
    output::text("moved by ringfenced (you have no write permission yourself)\n")
}

pub fn reload(socket: &Socket, as_json: bool) -> Result<(), Failure> {
    let reloaded = client(socket).reload()?;
    if as_json {
        return output::json(&reloaded);
    }
    reloaded.warnings.iter().for_each(|warning| output::warning(warning));
    output::text(&format!("{} groups, {} rules\n", reloaded.groups, reloaded.rules))
}

/// Without a daemon, the error of the caller's own attempt is the answer; a daemon's refusal is added to it.
fn answered<T>(
    socket: &Socket,
    denied: Failure,
    request: impl Fn(&Client) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    let daemon = client(socket);
    if !daemon.exists() {
        return Err(denied);
    }
    match request(&daemon) {
        Ok(answer) => Ok(answer),
        Err(ClientError::NotRunning(_)) => Err(denied),
        Err(error) => Err(Failure {
            missing: denied.missing,
            message: format!("{}\n{error}", denied.message),
            hint: error.hint().or(denied.hint),
            ..Failure::new("")
        }),
    }
}
