//! What lifts the settings of a group that was new and has to stay. Data only: whether it is still needed is seen on
//! the machine.

use plan::Ownership;

use crate::{
    act::{Act, Before, Entry, devices_of},
    inverse::{self, Inverse},
    performer::DEVICES_V1,
};

/// The acts that lift what one step set in such a group. `default`: what a file of a new group contains;
/// `maker`: to whom its files go.
pub(crate) fn lift(
    entry: &Entry,
    default: impl FnOnce(&(usize, String)) -> Option<String>,
    (uid, gid): (u32, u32),
) -> Inverse {
    let only = |act: Act| Inverse { acts: vec![act], cannot: None };
    match &entry.act {
        Act::Write { place, file, .. } if matches!(file.as_str(), plan::CPUS | "cpuset.mems") => {
            only(Act::InheritSet { place: place.clone(), file: file.clone() })
        }
        Act::Write { place, file, text } => {
            let devices = devices_of(&entry.act).is_some();
            let shown = if devices { DEVICES_V1 } else { file };
            let Some(default) = default(&(place.hierarchy, shown.to_owned())) else {
                let group = &entry.group;
                let cannot =
                    format!("{file} of group '{group}' stays {text}: its default is not in the record");
                return Inverse { acts: Vec::new(), cannot: Some(cannot) };
            };
            let act = match devices {
                // all rules together
                true => {
                    Act::Write { place: place.clone(), file: "devices.deny".to_owned(), text: "a".to_owned() }
                }
                false => entry.act.clone(),
            };
            let before = Before::Files(vec![(shown.to_owned(), default)]);
            inverse::inverse(&Entry { before, act, ..entry.clone() }, &[])
        }
        Act::EnableControllers { place, names } => {
            only(Act::DisableControllers { place: place.clone(), names: names.clone() })
        }
        Act::SetDevices { place, .. } => only(Act::RestoreDevices { place: place.clone(), rules: None }),
        Act::SetOwnership { place, access } => {
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
            only(Act::SetOwnership { place: place.clone(), access })
        }
        _ => Inverse::default(),
    }
}
