//! What a plan looks at, as it will be.

use plan::{Action, CPUS, Observed, PARTITION, SeenGroup, SeenHierarchy, Step};
use units::{CpuSet, group_path};

/// The machine as it will be once these steps are done, as far as a plan looks at it.
pub(crate) fn foresee(observed: &mut Observed, steps: &[Step]) {
    for step in steps {
        let Some(place) = step.action.place() else { continue };
        let Some(at) = observed.hierarchies.get_mut(place.hierarchy) else { continue };
        match &step.action {
            Action::RemoveGroup { place } => {
                release(at, &place.path);
                at.groups.remove(&place.path);
            }
            Action::RestoreOwners { place, owners } => {
                let Some(group) = at.groups.get_mut(&place.path) else { continue };
                for (file, owned) in owners {
                    match file {
                        None => group.directory = Some(*owned),
                        Some(file) => drop(group.owners.insert(file.clone(), *owned)),
                    }
                }
            }
            Action::SetOwnership { place, access } => {
                let Some(group) = at.groups.get_mut(&place.path) else { continue };
                let owners = group.owners.values_mut().chain(group.directory.as_mut());
                let (uid, gid) = (access.admin_uid, access.admin_gid);
                owners.for_each(|owned| {
                    (owned.uid, owned.gid) = (uid.unwrap_or(owned.uid), gid.unwrap_or(owned.gid));
                });
            }
            // systemd ends what the file made
            Action::WriteDropIn { place, text: None, .. } => {
                release(at, &place.path);
                if let Some(group) = at.groups.get_mut(&place.path) {
                    group.files.remove(PARTITION);
                }
            }
            Action::Write { place, file, text, .. } => {
                if file == PARTITION && Some(text.trim()) == plan::no_partition(file) {
                    release(at, &place.path);
                }
                if let Some(group) = at.groups.get_mut(&place.path)
                    && !settings::is_by_key(file)
                {
                    group.files.insert(file.clone(), text.trim_end_matches('\n').to_owned());
                }
            }
            _ => {}
        }
    }
}

fn release(at: &mut SeenHierarchy, path: &str) {
    if let Some(freed) = of_partition(at, path) {
        widen(at, path, &freed);
    }
}

fn list(group: Option<&SeenGroup>, file: &str) -> CpuSet {
    group.and_then(|group| group.files.get(file)?.trim().parse().ok()).unwrap_or_default()
}

/// The CPUs of a group that is a partition.
pub(crate) fn of_partition(at: &SeenHierarchy, path: &str) -> Option<CpuSet> {
    let seen = at.groups.get(path);
    let state = seen.and_then(|group| group.files.get(PARTITION));
    state.is_some_and(|state| plan::is_partition(state)).then(|| list(seen, CPUS))
}

/// The CPUs of a partition that ends come back to all other groups that are not confined to others.
pub(crate) fn widen(at: &mut SeenHierarchy, path: &str, freed: &CpuSet) {
    let effective = format!("{CPUS}.effective");
    let gets = |other: &str| {
        let confined = group_path::branch(other).map(|path| list(at.groups.get(path), CPUS));
        confined.filter(|list| !list.is_empty()).fold(freed.clone(), |gets, list| gets.intersection(&list))
    };
    let others =
        at.groups.iter().filter(|(other, group)| *other != path && group.files.contains_key(&effective));
    let wider = others
        .map(|(other, group)| (other.clone(), list(Some(group), &effective).union(&gets(other)).to_string()));
    for (other, text) in wider.collect::<Vec<(String, String)>>() {
        if let Some(group) = at.groups.get_mut(&other) {
            group.files.insert(effective.clone(), text);
        }
    }
}
