//! What lifts the settings of a group that was new and has to stay. Data only: whether it is still needed is seen on
//! the machine.

use plan::{Action, Ownership};

use crate::{
    entry::{Before, Entry, devices_of},
    inverse::{self, Inverse},
    performer::DEVICES_V1,
};

/// The actions that lift what one step set in such a group. `default`: what a file of a new group contains;
/// `maker`: to whom its files go.
pub(crate) fn lift(
    entry: &Entry,
    default: impl FnOnce(&(usize, String)) -> Option<String>,
    (uid, gid): (u32, u32),
) -> Inverse {
    let only = |action: Action| Inverse { actions: vec![action], cannot: None };
    match &entry.action {
        Action::Write { place, file, .. } if matches!(file.as_str(), plan::CPUS | "cpuset.mems") => {
            only(Action::InheritSet { place: place.clone(), file: file.clone() })
        }
        Action::Write { place, file, text } => {
            let devices = devices_of(&entry.action).is_some();
            let shown = if devices { DEVICES_V1 } else { file };
            let Some(default) = default(&(place.hierarchy, shown.to_owned())) else {
                let group = &entry.group;
                let cannot =
                    format!("{file} of group '{group}' stays {text}: its default is not in the record");
                return Inverse { actions: Vec::new(), cannot: Some(cannot) };
            };
            let action = match devices {
                // all rules together
                true => Action::Write {
                    place: place.clone(),
                    file: "devices.deny".to_owned(),
                    text: "a".to_owned(),
                },
                false => entry.action.clone(),
            };
            let before = Before::Files(vec![(shown.to_owned(), default)]);
            inverse::inverse(&Entry { before, action, ..entry.clone() }, &[])
        }
        Action::EnableControllers { place, names } => {
            only(Action::DisableControllers { place: place.clone(), names: names.clone() })
        }
        Action::SetDevices { place, .. } => {
            only(Action::RestoreDevices { place: place.clone(), rules: None })
        }
        Action::SetOwnership { place, access } => {
            let access = Ownership {
                tasks_uid: access.tasks_uid.map(|_| uid),
                tasks_gid: access.tasks_gid.map(|_| gid),
                admin_uid: access.admin_uid.map(|_| uid),
                admin_gid: access.admin_gid.map(|_| gid),
                tasks_mode: access.tasks_mode.map(|_| 0o644),
                file_mode: access.file_mode.map(|_| 0o644),
                directory_mode: access.directory_mode.map(|_| 0o755),
                admin_files: settings::AdminFiles::Every,
            };
            only(Action::SetOwnership { place: place.clone(), access })
        }
        _ => Inverse::default(),
    }
}
