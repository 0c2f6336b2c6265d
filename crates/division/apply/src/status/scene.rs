//! What groups are looked at with beside their own files: the groups around them, their threads, and systemd.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use kernel::{Freezers, Listing};
use plan::{Place, SeenUnit};
use settings::Version;
use units::group_path;

use super::values::is_as_requested;
use crate::{
    Drift, Split,
    in_effect::{Decided, DropIn},
    membership::{Membership, Thread},
    performer::Performer,
};

/// What all groups are looked at with.
pub(super) struct Scene<'s> {
    pub(super) performer: &'s Performer<'s>,
    pub(super) listing: Listing<'s>,
    pub(super) freezers: RefCell<Freezers<'s>>,
    pub(super) membership: Option<&'s Membership>,
    /// Where the groups are that were applied.
    pub(super) applied: &'s BTreeSet<Place>,
    /// The hierarchies that every group of a layout is in ([`plan::is_shared`]).
    pub(super) shared: BTreeSet<usize>,
    /// Where directories of theirs are that somebody renamed.
    pub(super) renamed: &'s BTreeMap<Place, Place>,
    pub(super) elastic: &'s [policy::Scope],
    pub(super) ranges: &'s [plan::Range],
    /// What systemd knows of the groups that are units.
    pub(super) units: &'s BTreeMap<String, SeenUnit>,
}

impl Scene<'_> {
    /// Is the directory there?
    pub(super) fn exists(&self, place: &Place) -> bool {
        self.performer.at(place).is_some_and(|at| self.listing.holds(at, &place.path))
    }

    /// Groups of others beside a place, with all values that were written there. Only v1 renames directories.
    pub(super) fn alike(&self, group: &str, place: &Place, decided: &Decided) -> Vec<PathBuf> {
        // v1's device rules can't be read where they are written
        let written =
            decided.writes.iter().filter(|((of, file, _), _)| of == place && !file.starts_with("devices."));
        let written: Vec<_> = written.collect();
        let (Some(at), false) = (self.performer.at(place), written.is_empty()) else { return Vec::new() };
        if place.version == Version::V2 {
            return Vec::new();
        }
        let parent = group_path::parent(&place.path).unwrap_or_default();
        let beside = self.performer.host().kernel().children(at, parent).unwrap_or_default();
        let beside =
            beside.iter().map(|name| Place { path: group_path::join(parent, name), ..place.clone() });
        let is_alike = |other: &Place| {
            written.iter().all(|((_, file, _), (text, then))| {
                let actual = self.performer.content(other, file);
                actual.is_some()
                    && is_as_requested(
                        self.performer,
                        group,
                        (other, file, text),
                        actual.as_deref(),
                        then.as_deref(),
                    )
            })
        };
        let alike = beside.filter(|other| !self.applied.contains(other) && is_alike(other));
        alike.map(|other| PathBuf::from(self.performer.directory(&other))).collect()
    }

    /// The processes with some of their threads in a place. Those in another group that was applied are there on
    /// purpose, but not in one above.
    pub(super) fn split(&self, place: &Place, threads: &BTreeMap<u32, Vec<Thread>>) -> Vec<Split> {
        let at = |thread: &Thread| thread.1.get(place.hierarchy).cloned().flatten();
        let is_applied = |path: &str| {
            let above = |other: &&str| !group_path::is_at_or_below(&place.path, other);
            std::iter::once(path)
                .chain(group_path::ancestors(path))
                .filter(above)
                .any(|path| self.applied.contains(&Place { path: path.to_owned(), ..place.clone() }))
        };
        let split = threads.iter().map(|(&process, threads)| {
            let paths: Vec<(u32, String)> =
                threads.iter().filter_map(|thread| Some((thread.0, at(thread)?))).collect();
            let outside = paths.iter().filter(|(_, path)| !group_path::is_at_or_below(path, &place.path));
            let inside = paths.len() - outside.clone().count();
            let outside = outside.filter(|(_, path)| !is_applied(path)).map(|(thread, _)| *thread).collect();
            (inside, Split { process, outside, of: paths.len() })
        });
        split
            .filter(|(inside, split)| *inside > 0 && !split.outside.is_empty())
            .map(|(_, split)| split)
            .collect()
    }
}

/// What systemd does with a unit that it did not do when it was applied.
pub(super) fn by_systemd(scene: &Scene<'_>, drop_in: &DropIn) -> Option<Drift> {
    let (performer, seen) = (scene.performer, scene.units.get(&drop_in.unit)?);
    if seen.load == "masked" {
        return Some(Drift::Masked { unit: drop_in.unit.clone() });
    }
    if scene.exists(&drop_in.place) {
        return None;
    }
    let place = Place { path: seen.path.clone(), ..drop_in.place.clone() };
    let is_there = place != drop_in.place && scene.exists(&place);
    is_there.then(|| Drift::Elsewhere {
        unit: drop_in.unit.clone(),
        directory: PathBuf::from(performer.directory(&place)),
    })
}
