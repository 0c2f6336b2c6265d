//! Is something as an action would make it? Only reads.

use plan::Action;
use std::path::Path;

use crate::{
    knob,
    performer::{Performer, SUBTREE_CONTROL},
};

/// Is it as the action would make it? `false` where that is unknown.
pub(crate) fn is_so(performer: &Performer<'_>, action: &Action) -> bool {
    match action {
        Action::Write { place, file, text } => performer.content(place, file).is_some_and(|actual| {
            if settings::is_by_key(file) {
                // weights come back to the digit
                !file.ends_with("weight") && performer.means(place, file, text, &actual)
            } else {
                actual == text.trim_end_matches('\n')
            }
        }),
        Action::WriteDropIn { path, text, .. } => performer.system().unit_files().read(path) == *text,
        Action::SetKnob { knob: row, instance, text } => knob::is_so(performer, (row, instance, text)),
        Action::CreateGroup { place } => performer.exists(place),
        Action::RemoveGroup { place } => !performer.exists(place),
        Action::DisableControllers { place, names } => {
            let on = performer.content(place, SUBTREE_CONTROL).unwrap_or_default();
            !names.iter().any(|name| on.split_whitespace().any(|word| word == name))
        }
        Action::Mount { path, .. } => is_mounted(performer, path),
        Action::Unmount { path, .. } => !is_mounted(performer, path),
        _ => false,
    }
}

/// As the kernel says now: what was known before does not show whether a step came to its end.
fn is_mounted(performer: &Performer<'_>, path: &Path) -> bool {
    let now = performer.host().kernel().hierarchies();
    now.is_ok_and(|all| all.iter().any(|at| at.mount == path))
}
