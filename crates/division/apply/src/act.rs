//! One step of a generation: what it does, and what was there before.

use std::{collections::BTreeMap, path::PathBuf};

use plan::{Affinity, Outsider, Owned, Ownership, Place};
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::ownership::TASK_FILES;

/// A step with what was there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The group for whose sake, as the user writes it.
    pub group: String,
    /// What is done.
    #[serde(flatten)]
    pub act: Act,
    /// Why.
    pub why: String,
    /// It takes back what an earlier generation in effect requested and this one does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
    /// What it changes.
    #[serde(skip_serializing_if = "Before::is_nothing")]
    pub before: Before,
}

/// What is done: a plan's actions, and what undoes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[allow(missing_docs)] // as the plan's actions of the same names
pub enum Act {
    Mount {
        controllers: Vec<String>,
        name: Option<String>,
        path: PathBuf,
    },
    Unmount {
        controllers: Vec<String>,
        name: Option<String>,
        path: PathBuf,
    },
    CreateGroup {
        place: Place,
    },
    /// Removes one group without tasks and without groups below.
    RemoveGroup {
        place: Place,
    },
    EnableControllers {
        place: Place,
        names: Vec<String>,
    },
    DisableControllers {
        place: Place,
        names: Vec<String>,
    },
    Write {
        place: Place,
        file: String,
        text: String,
    },
    /// Writes or removes our drop-in file of a unit, and lets systemd read it.
    WriteDropIn {
        /// The unit's group, there or not.
        place: Place,
        unit: String,
        path: PathBuf,
        text: Option<String>,
    },
    SetKnob {
        knob: String,
        instance: knobs::Instance,
        text: String,
    },
    SetDevices {
        place: Place,
        setting: String,
        rule: String,
    },
    /// Gives back the device rules of a v2 group; without rules takes its own off.
    RestoreDevices {
        place: Place,
        rules: Option<String>,
    },
    SetOwnership {
        place: Place,
        access: Ownership,
    },
    RestoreOwners {
        place: Place,
        owners: Vec<(Option<String>, Owned)>,
    },
    MoveTasksAway {
        place: Place,
        cpus: CpuSet,
        to: CpuSet,
    },
    RestoreAffinities {
        place: Place,
        threads: Vec<Affinity>,
    },
    MoveTasks {
        place: Place,
        tasks: Vec<Outsider>,
    },
    /// Moves threads back to where a [`Act::MoveTasks`] took them from.
    ReturnTasks {
        place: Place,
        tasks: Vec<Outsider>,
    },
    /// Lets a group that is made again contain what it contained.
    Refill {
        place: Place,
        files: Vec<(String, String)>,
    },
    /// Gives a cpuset that has to stay the CPUs or memory nodes of its parent, less those that a sibling has for
    /// itself.
    InheritSet {
        place: Place,
        /// `cpuset.cpus` or `cpuset.mems`.
        file: String,
    },
}

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

    fn is_nothing(&self) -> bool {
        *self == Before::Nothing
    }
}

impl Entry {
    /// The same where its place is counted from another hierarchy.
    pub(crate) fn at_hierarchy(&self, position: usize) -> Entry {
        let mut entry = self.clone();
        if let Some(place) = entry.act.place_mut() {
            place.hierarchy = position;
        }
        entry
    }

    /// The entry in the directory by its name of now.
    pub(crate) fn renamed(mut self, renamed: &BTreeMap<Place, Place>) -> Entry {
        if let Some(place) = self.act.place_mut()
            && let Some(now) = renamed.get(place)
        {
            now.clone_into(place);
        }
        self
    }

    /// Its file exists now, with this content.
    pub(crate) fn was(&mut self, content: String) {
        if let Act::Write { file, .. } = &self.act {
            self.before = Before::Files(vec![(file.clone(), content)]);
        }
    }
}

/// Does it give this file back to its owner? With the directory go all files but those that take tasks.
pub(crate) fn gives_back(owners: &[(Option<String>, Owned)], file: Option<&str>) -> bool {
    let has = |file: Option<&str>| owners.iter().any(|(own, _)| own.as_deref() == file);
    has(file) || has(None) && file.is_some_and(|file| !TASK_FILES.contains(&file))
}

impl Act {
    /// The directory that it changes; none for a mount or a knob.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Act::Mount { .. } | Act::Unmount { .. } | Act::SetKnob { .. } => None,
            Act::CreateGroup { place }
            | Act::RemoveGroup { place }
            | Act::EnableControllers { place, .. }
            | Act::DisableControllers { place, .. }
            | Act::Write { place, .. }
            | Act::WriteDropIn { place, .. }
            | Act::SetDevices { place, .. }
            | Act::RestoreDevices { place, .. }
            | Act::SetOwnership { place, .. }
            | Act::RestoreOwners { place, .. }
            | Act::MoveTasksAway { place, .. }
            | Act::RestoreAffinities { place, .. }
            | Act::MoveTasks { place, .. }
            | Act::ReturnTasks { place, .. }
            | Act::Refill { place, .. }
            | Act::InheritSet { place, .. } => Some(place),
        }
    }

    /// Does it change everything that `earlier` changes, so that nothing of that one shows?
    pub(crate) fn covers(&self, earlier: &Act) -> bool {
        match (self, earlier) {
            (Act::Write { place, file, text }, Act::Write { place: of, file: same, text: then }) => {
                let same_line = plan::target_key(file, text) == plan::target_key(file, then)
                    && plan::rest_of_line(file, then, text).is_none();
                (place, file) == (of, same) && (!settings::is_by_key(file) || same_line)
            }
            (Act::RestoreOwners { place, owners }, Act::RestoreOwners { place: of, owners: then }) => {
                place == of && then.iter().all(|(file, _)| gives_back(owners, file.as_deref()))
            }
            (Act::RestoreDevices { place, .. }, Act::RestoreDevices { place: of, .. }) => place == of,
            (Act::WriteDropIn { path, .. }, Act::WriteDropIn { path: of, .. }) => path == of,
            (Act::SetKnob { knob, instance, .. }, Act::SetKnob { knob: of, instance: same, .. }) => {
                (knob, instance) == (of, same)
            }
            (
                Act::EnableControllers { place, names } | Act::DisableControllers { place, names },
                Act::EnableControllers { place: of, names: then }
                | Act::DisableControllers { place: of, names: then },
            ) => place == of && then.iter().all(|name| names.contains(name)),
            _ => false,
        }
    }

    fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Act::Mount { .. } | Act::Unmount { .. } | Act::SetKnob { .. } => None,
            Act::CreateGroup { place }
            | Act::RemoveGroup { place }
            | Act::EnableControllers { place, .. }
            | Act::DisableControllers { place, .. }
            | Act::Write { place, .. }
            | Act::WriteDropIn { place, .. }
            | Act::SetDevices { place, .. }
            | Act::RestoreDevices { place, .. }
            | Act::SetOwnership { place, .. }
            | Act::RestoreOwners { place, .. }
            | Act::MoveTasksAway { place, .. }
            | Act::RestoreAffinities { place, .. }
            | Act::MoveTasks { place, .. }
            | Act::ReturnTasks { place, .. }
            | Act::Refill { place, .. }
            | Act::InheritSet { place, .. } => Some(place),
        }
    }
}

/// The v1 group whose device rules a step changes.
pub(crate) fn devices_of(act: &Act) -> Option<&Place> {
    match act {
        Act::Write { place, file, .. } if matches!(file.as_str(), "devices.allow" | "devices.deny") => {
            Some(place)
        }
        _ => None,
    }
}
