//! What a plan looks at, as it will be.

use plan::{Action, Observed, Step};

/// The machine as it will be once these steps are done, as far as a plan looks at it.
pub(crate) fn foresee(observed: &mut Observed, steps: &[Step]) {
    for step in steps {
        let Some(place) = step.action.place() else { continue };
        let Some(at) = observed.hierarchies.get_mut(place.hierarchy) else { continue };
        match &step.action {
            Action::RemoveGroup { place } => {
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
            Action::Write { place, file, text, .. } => {
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
