//! The layout in /etc/ringfence, where it is not what is in effect: a machine whose layout was refused at its start is not
//! "as applied". Reads only.

use std::path::{Path, PathBuf};

use apply::{Generation, Kind, Running, State, System};
use daemon::RuleFiles;
use files::Trust;
use units::hint::Command;

use crate::{args::Socket, commands::requests};

/// Why it is not in effect: as the daemon says; where none answers and nothing is in effect, by its files and the history.
/// Empty for a history of another directory, which has another layout, unless its daemon's socket is named.
pub fn not_in_effect(state: &State, socket: &Socket, nothing_is: bool) -> Vec<String> {
    if socket.socket.is_none() && state.directory() != Path::new(apply::STATE) {
        return Vec::new();
    }
    if let Some(reasons) = requests::not_in_effect(socket) {
        return reasons;
    }
    let layout = RuleFiles::Below(PathBuf::from("/etc")).layout().filter(|_| nothing_is);
    layout.and_then(|layout| without_daemon(&layout, state)).into_iter().collect()
}

fn without_daemon(layout: &Path, state: &State) -> Option<String> {
    let (reading, _) = files::read_layout(layout, Trust::of_this_process());
    let shown = layout.display();
    if reading.desired.is_none() {
        return Some(format!("{shown} has errors: {}", Command::ringfence("check")));
    }
    let boot = Running::new().boot();
    let generations = apply::generations(state).ok()?;
    let done = generations.iter().rev().find_map(|generation| match generation {
        Generation::Finished(summary) if summary.is_done() => Some(&summary.head),
        _ => None,
    });
    let lost = done.is_some_and(|head| head.kind == Kind::Apply && head.boot != boot);
    lost.then(|| format!("{shown} is not applied since the machine started: {}", Command::ringfence("apply")))
}
