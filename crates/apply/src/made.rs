//! Which groups are there because a generation made them.

use std::collections::BTreeSet;

use plan::Place;

use crate::{Failure, State, Target, perform::Performer, record::Act, undo::history};

/// The directories that generations made since the machine was booted and that are still there, each at its place in
/// the host's hierarchies.
///
/// # Errors
/// [`Failure::State`].
pub fn made(state: &State, target: Target<'_>) -> Result<BTreeSet<Place>, Failure> {
    let boot = target.system.boot();
    let mut made = BTreeSet::new();
    for record in history(state)? {
        if record.head.boot != boot || !record.is_done() {
            continue;
        }
        let mut performer = Performer::of(target, &record.head.hierarchies);
        performer.count_mounted(&record.entries);
        let here = |place: &Place| performer.at(place).map(|at| Place { hierarchy: at.id, ..place.clone() });
        for entry in &record.entries {
            match &entry.act {
                Act::CreateGroup { place } => made.extend(here(place)),
                Act::RemoveGroup { place } => drop(here(place).map(|place| made.remove(&place))),
                _ => {}
            }
        }
    }
    let there =
        |place: &Place| target.host.kernel().exists(&target.host.hierarchies()[place.hierarchy], &place.path);
    made.retain(there);
    Ok(made)
}
