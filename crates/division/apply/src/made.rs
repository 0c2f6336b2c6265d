//! Which groups are there because a generation made them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel::Listing;
use plan::{Action, Place};
use settings::Version;
use units::group_path;

use crate::{Failure, State, Target, performer::Performer, record::Record, state::history};

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
            match &entry.action {
                Action::CreateGroup { place } => made.extend(here(place)),
                Action::RemoveGroup { place } => drop(here(place).map(|place| made.remove(&place))),
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
    Changed::of(records, target).remade(state, target)
}

/// Where directories that these generations made are by now, of those that somebody renamed.
pub(crate) fn renamed<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    target: Target<'_>,
) -> BTreeMap<Place, Place> {
    Changed::of(records, target).renamed(target)
}

/// Of the directories that generations made, those whose places have another one now, or none.
pub(crate) struct Changed {
    /// With the inode numbers of those that were made, and of the current one.
    places: BTreeMap<Place, (Vec<u64>, Option<u64>)>,
}

impl Changed {
    /// Looks at each directory once.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>, target: Target<'_>) -> Changed {
        let mut own = Inodes::new();
        for record in records {
            add(&mut own, record, target);
        }
        let listing = Listing::new(target.host);
        let changed = own.into_iter().filter_map(|(place, inodes)| {
            let at = target.host.hierarchies().get(place.hierarchy);
            let now = at.and_then(|at| listing.inode(at, &place.path));
            let same = inodes.iter().all(|inode| now == Some(*inode));
            (!same).then_some((place, (inodes, now)))
        });
        Changed { places: changed.collect() }
    }

    /// Those that somebody removed and made again.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn remade(&self, state: &State, target: Target<'_>) -> Result<BTreeSet<Place>, Failure> {
        let other = self.places.iter().filter(|(_, (own, now))| is_other(own, *now));
        let other: Vec<(&Place, Option<u64>)> = other.map(|(place, (_, now))| (place, *now)).collect();
        if other.is_empty() {
            return Ok(BTreeSet::new());
        }
        // another generation may have made it again: an undo, or one that was rolled back
        let all = inodes(state, target)?;
        let remade =
            other.into_iter().filter(|(place, now)| all.get(*place).is_some_and(|own| is_other(own, *now)));
        Ok(remade.map(|(place, _)| place.clone()).collect())
    }

    /// Where those are by now that somebody renamed, as v1 allows: in the same group above, which may have been renamed
    /// itself.
    pub fn renamed(&self, target: Target<'_>) -> BTreeMap<Place, Place> {
        let mut beside = Beside { target, listed: HashMap::new() };
        let mut renamed: BTreeMap<Place, Place> = BTreeMap::new();
        // groups come before those below them
        for (place, (inodes, _)) in self.places.iter().filter(|(place, _)| place.version == Version::V1) {
            let path = group_path::parent(&place.path).unwrap_or_default().to_owned();
            let above = Place { path, ..place.clone() };
            let above_now = renamed.get(&above).cloned();
            for above in std::iter::once(above).chain(above_now) {
                if let Some(other) = beside.find(&above, inodes, place) {
                    renamed.insert(place.clone(), other);
                    break;
                }
            }
        }
        renamed
    }
}

/// Directories in groups by their inode numbers: each group is listed once, however many of its directories are looked for.
struct Beside<'t> {
    target: Target<'t>,
    listed: HashMap<Place, HashMap<u64, Vec<String>>>,
}

impl Beside<'_> {
    /// The directory in a group that has one of these numbers, and is another than `place`.
    fn find(&mut self, above: &Place, inodes: &[u64], place: &Place) -> Option<Place> {
        let host = self.target.host;
        let at = &host.hierarchies()[above.hierarchy];
        if !self.listed.contains_key(above) {
            let mut names: HashMap<u64, Vec<String>> = HashMap::new();
            for (name, inode) in host.kernel().children_by_inode(at, &above.path).unwrap_or_default() {
                names.entry(inode).or_default().push(name);
            }
            self.listed.insert(above.clone(), names);
        }
        let listed = self.listed.get(above)?;
        let names = inodes.iter().filter_map(|inode| listed.get(inode)).flatten();
        let paths = names.map(|name| group_path::join(&above.path, name));
        let mut others = paths.map(|path| Place { path, ..place.clone() }).filter(|other| other != place);
        // a number of the listing may be that of what is mounted over
        others.find(|other| inode(other, self.target).is_some_and(|inode| inodes.contains(&inode)))
    }
}

/// The current directory.
fn inode(place: &Place, target: Target<'_>) -> Option<u64> {
    target.host.kernel().inode(target.host.hierarchies().get(place.hierarchy)?, &place.path).ok()
}

/// Is there a directory, and none of these?
fn is_other(own: &[u64], now: Option<u64>) -> bool {
    now.is_some_and(|now| !own.contains(&now))
}

/// Is the directory none that a generation made, where generations made some? `all`: [`inodes`].
pub(crate) fn is_of_others(place: &Place, all: &Inodes, target: Target<'_>) -> bool {
    all.get(place).is_some_and(|own| is_other(own, inode(place, target)))
}

/// Inode numbers of directories that generations made.
pub(crate) type Inodes = BTreeMap<Place, Vec<u64>>;

fn add(inodes: &mut Inodes, record: &Record, target: Target<'_>) {
    if record.head.boot != target.system.boot() {
        return;
    }
    let here = record.head.here(target.host);
    for (place, inode) in record.inodes() {
        let Some(place) = here(place) else { continue };
        let known = inodes.entry(place).or_default();
        if !known.contains(&inode) {
            known.push(inode);
        }
    }
}

/// Did it make a directory that is still there?
pub(crate) fn made_what_is_there(record: &Record, target: Target<'_>) -> bool {
    let mut own = Inodes::new();
    add(&mut own, record, target);
    own.iter().any(|(place, inodes)| inode(place, target).is_some_and(|now| inodes.contains(&now)))
}

/// Of all generations, as far as their records are there: one that is not may have made any group again. Those that
/// were pruned made nothing that is still there, and only the last ones never are.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn inodes(state: &State, target: Target<'_>) -> Result<Inodes, Failure> {
    let (mut all, mut next) = (Inodes::new(), 0);
    let finished = state.finished()?;
    let last = finished.len().saturating_sub(state.generations_undoable());
    for (position, generation) in finished.into_iter().enumerate() {
        let record = state.record(generation);
        let is_lost = generation != next && position > last;
        if is_lost || record.is_err() {
            all.clear();
        }
        record.iter().for_each(|record| add(&mut all, record, target));
        next = generation + 1;
    }
    Ok(all)
}
