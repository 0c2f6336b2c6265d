//! v2's partitions at the end of a change: is each as requested, also those that no step wrote? A step may take from a
//! partition what it needs, and up to Linux 6.12 nothing says so but its own file.

use std::collections::BTreeMap;

use plan::{Action, EXCLUSIVE, PARTITION, Place};
use settings::Version;
use units::{CpuSet, group_path, hint::Command};

use crate::{
    Error,
    entry::Entry,
    performer::{Performer, bring_online},
};

/// A partition that an entry requests: its place and kind.
pub(crate) fn requested(entry: &Entry) -> Option<(&Place, &str)> {
    let Action::Write { place, file, text } = &entry.action else { return None };
    let kind = text.trim();
    // a record may have "root invalid (why)"
    let none = plan::no_partition(file)?;
    let is_one = file == PARTITION && place.version == Version::V2 && kind != none && !kind.contains(' ');
    is_one.then_some((place, kind))
}

/// Why those are not as requested that the steps, or `standing` ones, are to have left. What the kernel keeps invalid is
/// made again first: it does not look again by itself at one that lost for a moment what it needs.
pub(crate) fn verify(performer: &Performer<'_>, entries: &[Entry], standing: &[Entry]) -> Vec<Error> {
    let mut last: BTreeMap<&Place, &Entry> = BTreeMap::new();
    for entry in standing.iter().chain(entries) {
        if let Action::Write { place, file, .. } = &entry.action
            && file == PARTITION
        {
            last.insert(place, entry);
        }
    }
    last.into_values().filter_map(|entry| remake(performer, entry)).collect()
}

/// Why it is not as requested, though it was made again.
fn remake(performer: &Performer<'_>, entry: &Entry) -> Option<Error> {
    let (place, kind) = requested(entry)?;
    // what is not there belongs to a unit that does not run
    let is_so = || performer.content(place, PARTITION).is_none_or(|state| state == kind);
    if is_so() {
        return None;
    }
    let at = performer.at(place)?;
    for state in [plan::no_partition(PARTITION).unwrap_or_default(), kind] {
        // a refusal shows in what is read
        let _ = performer.host().kernel().write(at, &place.path, PARTITION, state);
    }
    if is_so() { None } else { Some(invalid(performer, entry, &performer.content(place, PARTITION)?)) }
}

/// A partition that the kernel took and does not have.
pub(crate) fn invalid(performer: &Performer<'_>, entry: &Entry, state: &str) -> Error {
    let (cause, fix) = entry.action.place().and_then(|place| cause(performer, place)).unzip();
    Error::InvalidPartition { group: entry.group.clone(), state: state.to_owned(), cause, fix: fix.flatten() }
}

/// What around a group keeps it from being a partition, and a command that ends that: the kernel's own words name no
/// other group.
fn cause(performer: &Performer<'_>, place: &Place) -> Option<(String, Option<String>)> {
    let host = performer.host();
    let at = performer.at(place)?;
    let list = |path: &str, file: &str| -> Option<CpuSet> {
        performer.content(&Place { path: path.to_owned(), ..place.clone() }, file)?.trim().parse().ok()
    };
    let cpus = list(&place.path, plan::CPUS)?;
    let online = performer.online()?;
    if let Some(first) = cpus.iter().next().filter(|_| cpus.is_disjoint(&online)) {
        return Some((format!("its CPUs {cpus} are offline"), Some(bring_online(first))));
    }
    for path in group_path::branch(&place.path) {
        let above = group_path::parent(path).unwrap_or_default();
        for sibling in host.kernel().children(at, above).unwrap_or_default() {
            let sibling = group_path::join(above, &sibling);
            let theirs = list(&sibling, plan::CPUS).filter(|_| sibling != path).unwrap_or_default();
            let common = theirs.intersection(&cpus);
            if common.is_empty() {
                continue;
            }
            let (group, rest) = (host.named(at, &sibling), theirs.difference(&cpus));
            let set = || Command::ringfence("set").group(&group).arg(format!("{}={rest}", plan::CPUS));
            let fix = (!rest.is_empty()).then(|| set().to_string());
            return Some((format!("group '{group}' has CPUs {common} too"), fix));
        }
        let state = performer.content(&Place { path: above.to_owned(), ..place.clone() }, PARTITION);
        // a partition hands its CPUs down, as the root does
        if above.is_empty() || state.is_some_and(|state| plan::is_partition(&state)) {
            return None;
        }
        let reserved = list(above, EXCLUSIVE);
        let missing = cpus.difference(reserved.as_ref().unwrap_or(&CpuSet::new()));
        if !missing.is_empty() {
            let group = host.named(at, above);
            let what = format!("group '{group}' above it does not reserve CPUs {missing} for partitions");
            return Some((what, None));
        }
    }
    None
}
