//! Groups in which a process stays when it moves to another.

use std::collections::BTreeSet;

use kernel::{GroupName, Hierarchy};
use settings::Version;
use units::group_path;

use crate::{State, Target, membership::is_chosen, status::applied_groups};

/// A group in which a process stays, in a v1 hierarchy that another group of it is not in.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StaysIn {
    /// The hierarchy's controllers, comma-separated.
    pub controllers: String,
    /// The group, as users name it.
    pub group: String,
}

/// The groups whose limits still hold for a process beside those of `group`, which is not in their v1 hierarchies. Not
/// the root, a group above, or one of systemd or a container manager; the group that process `beside` is in, too,
/// counts only if a generation in effect changed it: a session's or container's own is no choice between groups.
pub fn stays_in(target: Target<'_>, state: &State, group: &GroupName, pid: u32, beside: u32) -> Vec<StaysIn> {
    let host = target.host;
    let below = |at: &Hierarchy, pid: u32| at.below_mount(&host.kernel().group_of(at, pid).ok()?);
    let mut found = Vec::new();
    let mut applied: Option<BTreeSet<String>> = None;
    for at in host.hierarchies().iter().filter(|at| at.version == Version::V1 && !at.controllers.is_empty()) {
        let place = group.below(host.base(at).path());
        let Some(path) = below(at, pid) else { continue };
        let is_above = path == host.base(at).path() || group_path::is_at_or_below(&place, &path);
        if is_above || host.kernel().exists(at, &place) {
            continue;
        }
        let name = host.named(at, &path);
        if !is_chosen(host, at, &path) {
            continue;
        }
        if below(at, beside).as_ref() == Some(&path) {
            let applied = applied.get_or_insert_with(|| {
                // a caller who may not read the history does without it
                applied_groups(state, target).unwrap_or_default()
            });
            if !applied.contains(&name) {
                continue;
            }
        }
        found.push(StaysIn { controllers: at.label(), group: name });
    }
    found
}
