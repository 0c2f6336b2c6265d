//! Requests to the daemon: what the caller has no permission for, and `reload`. The answer says that the daemon did it.

use std::fmt::Write;

use daemon::socket::client::{Client, Unanswered};
use kernel::GroupName;
use serde_json::{Value, json};

use crate::{args::Socket, failure::Failure, output};

fn client(socket: &Socket) -> Client {
    socket.socket.as_ref().map_or_else(Client::default, Client::at)
}

/// Settings as they were typed. `denied` is what the caller's own try came to.
pub fn set(
    socket: &Socket,
    name: &GroupName,
    settings: &[(String, String)],
    denied: Failure,
    quiet: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let changes = changed(socket, name, settings, denied)?;
    if as_json {
        return output::json(&json!({ "changes": changes, "by": "ringfenced" }));
    }
    let mut text = String::new();
    for change in changes.as_array().into_iter().flatten() {
        for note in change["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            output::warning(&format!("{}: {note}", change["setting"].as_str().unwrap_or_default()));
        }
        for write in change["written"].as_array().into_iter().flatten() {
            let word = |index: usize| write[index].as_str().unwrap_or_default().trim_end().to_owned();
            let _ = writeln!(text, "{} <- {}", word(0), word(1)); // a String takes everything
        }
    }
    if quiet {
        return Ok(());
    }
    output::text(&format!("{text}changed by ringfenced (you have no write permission yourself)\n"))
}

/// The changes that the daemon made, as it reports them.
pub fn changed(
    socket: &Socket,
    name: &GroupName,
    settings: &[(String, String)],
    denied: Failure,
) -> Result<Value, Failure> {
    answered(socket, denied, |daemon| daemon.set(&name.to_string(), settings))
}

/// Whole processes.
pub fn move_processes(
    socket: &Socket,
    name: &GroupName,
    pids: &[u32],
    denied: Failure,
    as_json: bool,
) -> Result<(), Failure> {
    let moves = answered(socket, denied, |daemon| daemon.move_processes(&name.to_string(), pids))?;
    if as_json {
        return output::json(&moves);
    }
    for pid in moves["gone"].as_array().into_iter().flatten() {
        output::warning(&format!("process {pid} ended meanwhile"));
    }
    output::text("moved by ringfenced (you have no write permission yourself)\n")
}

pub fn reload(socket: &Socket, as_json: bool) -> Result<(), Failure> {
    let reloaded = client(socket).reload()?;
    if as_json {
        return output::json(&reloaded);
    }
    for warning in reloaded["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output::warning(warning);
    }
    output::text(&format!("{} groups, {} rules\n", reloaded["groups"], reloaded["rules"]))
}

/// Without a daemon, the error of the caller's own try is the answer; a daemon's refusal is added to it.
fn answered(
    socket: &Socket,
    denied: Failure,
    request: impl Fn(&Client) -> Result<Value, Unanswered>,
) -> Result<Value, Failure> {
    let daemon = client(socket);
    if !daemon.exists() {
        return Err(denied);
    }
    match request(&daemon) {
        Ok(answer) => Ok(answer),
        Err(Unanswered::Nobody(_)) => Err(denied),
        Err(error) => Err(Failure {
            message: format!("{}\n{error}", denied.message),
            hint: error.hint().or(denied.hint),
            ..Failure::new("")
        }),
    }
}
