//! A step of a generation, with what was there before.

use plan::{Action, Affinity, Owned, Place};
use serde::{Deserialize, Serialize};

use crate::ownership::TASK_FILES;

/// A step with what it changes: all that a roll-back needs.
pub type Entry = plan::Step<Before>;

/// The path of a group below another, and owners of some of its files.
pub type OwnersBelow = (String, Vec<(Option<String>, Owned)>);

/// What was there before a step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Before {
    /// Nothing that would have to be known.
    #[default]
    Nothing,
    /// The group is made by an earlier step of the same generation, and goes with it.
    New,
    /// The file was not there yet: an earlier step enables its controller. What it holds then is marked.
    Absent,
    /// Contents of files, without the newline at their end: the one written and those that change with it.
    Files(Vec<(String, String)>),
    /// What a drop-in file contained; `None`: it was not there.
    DropIn(Option<String>),
    /// A knob's text.
    Knob(String),
    /// Owners and modes; `None` is the directory.
    Owners(Vec<(Option<String>, Owned)>),
    /// Controllers that were off, and the groups that were there, by name.
    Controllers {
        /// The kernel's names.
        off: Vec<String>,
        /// Direct children.
        children: Vec<String>,
        /// Of controllers that are taken back, files of the children that somebody else owns: by child.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        owners: Vec<OwnersBelow>,
        /// Of a cpuset controller that is taken back, the children's own lists: by child, with the file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lists: Vec<(String, Vec<(String, String)>)>,
    },
    /// A v2 group's own device rules.
    Devices(Option<String>),
    /// The same where groups below have rules of their own, which a deny narrows along.
    DevicesBelow {
        /// Of the group itself.
        own: Option<String>,
        /// Of those below, by path.
        below: Vec<(String, String)>,
    },
    /// As [`Before::Files`], of a v1 rule that denies a device to the groups below as well.
    ListsBelow {
        /// Of the group itself.
        own: Vec<(String, String)>,
        /// The lists of those below, by path: parents come before their children.
        below: Vec<(String, String)>,
    },
    /// Threads' CPUs.
    Affinities(Vec<Affinity>),
    /// A whole group.
    Group {
        /// Contents of its settings' files.
        files: Vec<(String, String)>,
        /// Owners and modes.
        owners: Vec<(Option<String>, Owned)>,
        /// v2: its own device rules.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        devices: Option<String>,
        /// v2: the controllers that it handed down.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        controllers: Vec<String>,
    },
}

impl Before {
    /// Contents of the group's own files.
    pub(crate) fn files(&self) -> Option<&[(String, String)]> {
        match self {
            Before::Files(files) | Before::ListsBelow { own: files, .. } => Some(files),
            _ => None,
        }
    }
}

/// The step's file exists now, with this content.
pub(crate) fn was(entry: &mut Entry, content: String) {
    if let Action::Write { file, .. } = &entry.action {
        entry.before = Before::Files(vec![(file.clone(), content)]);
    }
}

/// Does it give this file back to its owner? With the directory go all files but those that take tasks.
pub(crate) fn gives_back(owners: &[(Option<String>, Owned)], file: Option<&str>) -> bool {
    let has = |file: Option<&str>| owners.iter().any(|(own, _)| own.as_deref() == file);
    has(file) || has(None) && file.is_some_and(|file| !TASK_FILES.contains(&file))
}

/// What an older step knows of owners goes before what a newer one knows, which may be of more files: those that came with a
/// controller since then are the maker's.
pub(crate) fn owners_of_both(
    older: &[(Option<String>, Owned)],
    newer: &[(Option<String>, Owned)],
) -> Vec<(Option<String>, Owned)> {
    let more = newer.iter().filter(|(file, _)| !gives_back(older, file.as_deref()));
    older.iter().chain(more).cloned().collect()
}

/// Does the later one change everything that the earlier one changes, so that nothing of that shows?
pub(crate) fn covers(later: &Action, earlier: &Action) -> bool {
    match (later, earlier) {
        (Action::Write { place, file, text }, Action::Write { place: of, file: same, text: then }) => {
            let same_line = plan::target_key(file, text) == plan::target_key(file, then)
                && plan::rest_of_line(file, then, text).is_none();
            (place, file) == (of, same) && (!settings::is_by_key(file) || same_line)
        }
        (Action::RestoreOwners { place, owners }, Action::RestoreOwners { place: of, owners: then }) => {
            place == of && then.iter().all(|(file, _)| gives_back(owners, file.as_deref()))
        }
        (Action::RestoreDevices { place, .. }, Action::RestoreDevices { place: of, .. }) => place == of,
        (Action::WriteDropIn { path, .. }, Action::WriteDropIn { path: of, .. }) => path == of,
        (Action::SetKnob { knob, instance, .. }, Action::SetKnob { knob: of, instance: same, .. }) => {
            (knob, instance) == (of, same)
        }
        (
            Action::EnableControllers { place, names } | Action::DisableControllers { place, names },
            Action::EnableControllers { place: of, names: then }
            | Action::DisableControllers { place: of, names: then },
        ) => place == of && then.iter().all(|name| names.contains(name)),
        _ => false,
    }
}

/// The v1 group whose device rules a step changes.
pub(crate) fn devices_of(action: &Action) -> Option<&Place> {
    match action {
        Action::Write { place, file, .. } if matches!(file.as_str(), "devices.allow" | "devices.deny") => {
            Some(place)
        }
        _ => None,
    }
}
