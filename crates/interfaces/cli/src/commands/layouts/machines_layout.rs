//! The layout in /etc/ringfence, where it is not what is in effect: a machine whose layout was refused at its start is not
//! "as applied". Reads only.

use std::path::{Path, PathBuf};

use apply::{Kind, Running, State, System};
use daemon::{RuleFiles, socket::SOCKET_VARIABLE};
use system::files::{self, Trust};
use units::hint::Command;

use crate::{args::Socket, commands::requests};

/// Why it is not in effect: as the daemon says; where none answers, by its files and the history. Empty for a history of
/// another directory, which has another layout, unless its daemon's socket is named. `nothing_is`: no layout is in effect.
pub fn not_in_effect(state: &State, socket: &Socket, nothing_is: bool) -> Vec<String> {
    let is_the_machines = state.directory() == Path::new(apply::STATE);
    let is_named = socket.socket.is_some() || std::env::var_os(SOCKET_VARIABLE).is_some();
    if !is_named && !is_the_machines {
        return Vec::new();
    }
    if let Some(reasons) = requests::not_in_effect(socket) {
        return reasons;
    }
    let layout = RuleFiles::Below(PathBuf::from("/etc")).layout().filter(|_| is_the_machines);
    layout.and_then(|layout| without_daemon(&layout, state, nothing_is)).into_iter().collect()
}

/// A daemon that can't read its layout does not start, whatever is in effect since before.
fn without_daemon(layout: &Path, state: &State, nothing_is: bool) -> Option<String> {
    let (reading, _) = files::read_layout(layout, Trust::of_this_process());
    let shown = layout.display();
    if reading.desired.is_none() {
        return Some(format!("{shown} has errors: {}", Command::ringfence("check")));
    }
    if !nothing_is {
        return None;
    }
    let boot = Running::new().boot();
    let done = apply::last_done(state).ok()?;
    let lost = done.is_some_and(|head| head.kind == Kind::Apply && head.boot != boot);
    lost.then(|| format!("{shown} is not applied since the machine started: {}", Command::ringfence("apply")))
}
