//! Asks the daemon for what the caller may not do himself, and `reload`. It is told that it was the daemon who did it.

use std::fmt::Write;

use daemon::socket::client::{Client, Unanswered};
use kernel::GroupName;
use serde_json::{Value, json};

use crate::{failure::Failure, output};

/// Settings as they were typed. `denied` is what the caller's own try came to.
pub fn set(
    name: &GroupName,
    settings: &[(String, String)],
    denied: Failure,
    quiet: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let changes = changed(name, settings, denied)?;
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
    output::text(&format!("{text}ringfenced changed it, which this user may not\n"))
}

/// The changes that the daemon made, as it tells them.
pub fn changed(name: &GroupName, settings: &[(String, String)], denied: Failure) -> Result<Value, Failure> {
    asked(denied, |daemon| daemon.set(&name.to_string(), settings))
}

/// Whole processes.
pub fn move_processes(name: &GroupName, pids: &[u32], denied: Failure, as_json: bool) -> Result<(), Failure> {
    let moves = asked(denied, |daemon| daemon.move_processes(&name.to_string(), pids))?;
    if as_json {
        return output::json(&moves);
    }
    for pid in moves["gone"].as_array().into_iter().flatten() {
        output::warning(&format!("process {pid} ended meanwhile"));
    }
    output::text("ringfenced moved it, which this user may not\n")
}

pub fn reload(as_json: bool) -> Result<(), Failure> {
    let reloaded = Client::default().reload()?;
    if as_json {
        return output::json(&reloaded);
    }
    for warning in reloaded["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output::warning(warning);
    }
    output::text(&format!("{} groups, {} rules\n", reloaded["groups"], reloaded["rules"]))
}

/// Without a daemon, the caller's own try is all that there is to tell; a daemon that refuses is told beside it.
fn asked(denied: Failure, ask: impl Fn(&Client) -> Result<Value, Unanswered>) -> Result<Value, Failure> {
    let daemon = Client::default();
    if !daemon.exists() {
        return Err(denied);
    }
    match ask(&daemon) {
        Ok(answer) => Ok(answer),
        Err(Unanswered::Nobody(_)) => Err(denied),
        Err(error) => Err(Failure {
            message: format!("{}\n{error}", denied.message),
            hint: error.hint().or(denied.hint),
            ..Failure::new("")
        }),
    }
}
