//! Which groups are there because a generation made them.

use std::collections::{BTreeMap, BTreeSet};

use plan::Place;

use crate::{Failure, State, Target, act::Act, performer::Performer, record::Record, state::history};

/// The directories that generations made since the machine was booted and that are still there, each at its place in
/// the host's hierarchies.
///
/// # Errors
/// [`Failure::State`].
pub fn made(state: &State, target: Target<'_>) -> Result<BTreeSet<Place>, Failure> {
    let boot = target.system.boot();
    let mut made = BTreeSet::new();
    let history = history(state)?;
    for record in &history {
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
    let remade = remade(&history, state, target)?;
    made.retain(|place| there(place) && !remade.contains(place));
    Ok(made)
}

/// The directories that these generations made, and that somebody removed and made again since then.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn remade<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    state: &State,
    target: Target<'_>,
) -> Result<BTreeSet<Place>, Failure> {
    let mut own = Inodes::new();
    for record in records {
        add(&mut own, record, target);
    }
    let now =
        |place: &Place| target.host.kernel().inode(&target.host.hierarchies()[place.hierarchy], &place.path);
    let is_other = |own: &Inodes, place: &Place| {
        own.get(place).is_some_and(|own| now(place).is_ok_and(|now| !own.contains(&now)))
    };
    let mut remade: BTreeSet<Place> = own.keys().filter(|place| is_other(&own, place)).cloned().collect();
    if !remade.is_empty() {
        // another generation may have made it again: an undo, or one that was rolled back
        let all = inodes(state, target)?;
        remade.retain(|place| is_other(&all, place));
    }
    Ok(remade)
}

/// Inode numbers of directories that generations made.
type Inodes = BTreeMap<Place, BTreeSet<u64>>;

fn add(inodes: &mut Inodes, record: &Record, target: Target<'_>) {
    if record.head.boot != target.system.boot() {
        return;
    }
    let here =
        record.inodes().filter_map(|(place, inode)| Some((record.head.here(place, target.host)?, inode)));
    here.for_each(|(place, inode)| {
        inodes.entry(place).or_default().insert(inode);
    });
}

/// Of all generations, as far as their records are there: one that is not may have made any group again.
fn inodes(state: &State, target: Target<'_>) -> Result<Inodes, Failure> {
    let (mut all, mut next) = (Inodes::new(), 0);
    for generation in state.finished()? {
        let record = state.record(generation);
        if generation != next || record.is_err() {
            all.clear();
        }
        record.iter().for_each(|record| add(&mut all, record, target));
        next = generation + 1;
    }
    Ok(all)
}
