//! What a step does: the one list of changes to a machine, of plans and of records. Data only.

use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Serialize};
use settings::{Controller, knobs};
use units::{CpuSet, counted};

use crate::{Owned, Ownership, Place};

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Action {
    /// Mounts a v1 hierarchy. Places in it count on from the hierarchies that were observed: the first that is mounted
    /// is [`Place::hierarchy`] `observed.hierarchies.len()`, and so on.
    Mount {
        /// Its controllers.
        #[serde(with = "crate::names::controllers")]
        controllers: Vec<Controller>,
        /// A named hierarchy's name.
        name: Option<String>,
        /// Where; absolute.
        path: PathBuf,
    },
    /// Takes such a hierarchy off again.
    Unmount {
        /// Its controllers.
        #[serde(with = "crate::names::controllers")]
        controllers: Vec<Controller>,
        /// A named hierarchy's name.
        name: Option<String>,
        /// Where; absolute.
        path: PathBuf,
    },
    /// Makes one directory; its parent exists.
    CreateGroup {
        /// Which.
        place: Place,
    },
    /// Hands controllers of v2 to the groups in this one: `+NAME` for each in one write to `cgroup.subtree_control`.
    /// Undone by `-NAME` for the same.
    EnableControllers {
        /// The group that hands them down.
        place: Place,
        /// The kernel's names, none of them enabled yet.
        names: Vec<String>,
    },
    /// One write(2) to one file.
    Write {
        /// Where.
        place: Place,
        /// The file in it.
        file: String,
        /// The text.
        text: String,
    },
    /// Writes our drop-in file of a unit, or removes it, and lets systemd read its files again.
    WriteDropIn {
        /// The unit's group, there or not.
        place: Place,
        /// The unit.
        unit: String,
        /// The file.
        path: PathBuf,
        /// What it is to contain; `None`: it is to be gone.
        text: Option<String>,
    },
    /// Sets a knob of the machine at one place.
    SetKnob {
        /// The row of the table of knobs.
        knob: String,
        /// The place.
        instance: knobs::Instance,
        /// The text.
        text: String,
    },
    /// Changes which devices the group may use by one rule, as a write to v1's file of that name does. Only for v2,
    /// where no file holds it (on v1 it is a [`Action::Write`]).
    SetDevices {
        /// The group.
        place: Place,
        /// `devices.allow` or `devices.deny`.
        setting: String,
        /// The rule, `c 1:3 rwm`.
        rule: String,
    },
    /// Gives the group's directory and files to others.
    SetOwnership {
        /// The group.
        place: Place,
        /// To whom, and with which modes.
        access: Ownership,
    },
    /// Moves tasks in one group itself (not in groups below it) off CPUs that another group has for itself. Every
    /// thread whose affinity has one of `cpus` gets its affinity less those, or all of `to` if nothing would be left
    /// (sched_setaffinity(2)). No task changes its group. Threads of the kernel that refuse (EINVAL) stay, and are
    /// reported. Only on v1: on v2 the kernel takes a partition's CPUs from everybody else itself.
    MoveTasksAway {
        /// The group whose tasks leave; "" for the hierarchy's root, which is the rest of the system.
        place: Place,
        /// The CPUs that they leave.
        cpus: CpuSet,
        /// The CPUs of the group that no group has for itself; never empty.
        to: CpuSet,
    },
    /// Moves threads of the group, which are in it in another hierarchy already, into its directory in this one.
    MoveTasks {
        /// The directory that they move to.
        place: Place,
        /// Which threads were outside when the plan was made; those that they fork until then move along.
        tasks: Vec<Outsider>,
    },
    /// Moves processes out of a directory that the layout no longer names, while their group stays elsewhere.
    ReturnTasks {
        /// The directory that they leave.
        place: Place,
        /// Which processes, each with where it goes.
        tasks: Vec<Outsider>,
    },
    /// Removes one directory that an earlier generation made and the layout no longer names. It has no task and no
    /// group in it.
    RemoveGroup {
        /// Which.
        place: Place,
    },
    /// Takes controllers back that an earlier generation handed to the groups in this one, and that no group of the
    /// layout needs.
    DisableControllers {
        /// The group that handed them down.
        place: Place,
        /// The kernel's names.
        names: Vec<String>,
    },
    /// Gives a directory and its files back to their owners.
    RestoreOwners {
        /// The group.
        place: Place,
        /// Owners and modes; `None` is the directory.
        owners: Vec<(Option<String>, Owned)>,
    },
    /// Gives a v2 group its device rules back; without rules it has none of its own.
    RestoreDevices {
        /// The group.
        place: Place,
        /// In the form of v1's `devices.list`.
        rules: Option<String>,
    },
    /// Gives threads the CPUs back that a [`Action::MoveTasksAway`] of an earlier generation took.
    RestoreAffinities {
        /// The group whose tasks left.
        place: Place,
        /// The threads; one that ended is passed over.
        threads: Vec<Affinity>,
    },
    /// Writes files of a group that was made again.
    Refill {
        /// The group.
        place: Place,
        /// Each with its content.
        files: Vec<(String, String)>,
    },
    /// Gives a cpuset that has to stay the CPUs or memory nodes of its parent, less those that a sibling has for
    /// itself.
    InheritSet {
        /// The group.
        place: Place,
        /// `cpuset.cpus` or `cpuset.mems`.
        file: String,
    },
}

/// A thread that is not in its group's directory in one of the hierarchies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outsider {
    /// Its number.
    pub thread: u32,
    /// When it started, in clock ticks since boot: together with its number, this identifies it.
    pub started: u64,
    /// The path below the mount where it is.
    pub from: String,
}

/// The CPUs that a thread had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affinity {
    /// Its number.
    pub thread: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// The CPUs.
    pub cpus: CpuSet,
    /// What it got in their place: a thread that it starts from then on has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<Instead>,
}

/// The CPUs that a thread got in the place of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instead {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Since when, in clock ticks since boot.
    pub since: u64,
}

/// Every action that changes a directory.
macro_rules! of_groups {
    ($place:ident) => {
        Action::CreateGroup { $place }
            | Action::EnableControllers { $place, .. }
            | Action::Write { $place, .. }
            | Action::WriteDropIn { $place, .. }
            | Action::SetDevices { $place, .. }
            | Action::SetOwnership { $place, .. }
            | Action::MoveTasksAway { $place, .. }
            | Action::MoveTasks { $place, .. }
            | Action::ReturnTasks { $place, .. }
            | Action::RemoveGroup { $place }
            | Action::DisableControllers { $place, .. }
            | Action::RestoreOwners { $place, .. }
            | Action::RestoreDevices { $place, .. }
            | Action::RestoreAffinities { $place, .. }
            | Action::Refill { $place, .. }
            | Action::InheritSet { $place, .. }
    };
}

impl Action {
    /// The directory that it changes; none for a mount or a knob.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Action::Mount { .. } | Action::Unmount { .. } | Action::SetKnob { .. } => None,
            of_groups!(place) => Some(place),
        }
    }

    /// Its word in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Mount { .. } => "mount",
            Action::Unmount { .. } => "unmount",
            Action::CreateGroup { .. } => "create-group",
            Action::EnableControllers { .. } => "enable-controllers",
            Action::Write { .. } => "write",
            Action::WriteDropIn { .. } => "write-drop-in",
            Action::SetKnob { .. } => "set-knob",
            Action::SetDevices { .. } => "set-devices",
            Action::SetOwnership { .. } => "set-ownership",
            Action::MoveTasksAway { .. } => "move-tasks-away",
            Action::MoveTasks { .. } => "move-tasks",
            Action::ReturnTasks { .. } => "return-tasks",
            Action::RemoveGroup { .. } => "remove-group",
            Action::DisableControllers { .. } => "disable-controllers",
            Action::RestoreOwners { .. } => "restore-owners",
            Action::RestoreDevices { .. } => "restore-devices",
            Action::RestoreAffinities { .. } => "restore-affinities",
            Action::Refill { .. } => "refill",
            Action::InheritSet { .. } => "inherit-set",
        }
    }

    /// The same, to be changed.
    pub fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Action::Mount { .. } | Action::Unmount { .. } | Action::SetKnob { .. } => None,
            of_groups!(place) => Some(place),
        }
    }
}

impl std::fmt::Display for Action {
    /// In words, with the directory below its mount.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::Mount { path, .. } => write!(f, "mount a v1 hierarchy at {}", path.display()),
            Action::Unmount { path, .. } => write!(f, "unmount the v1 hierarchy at {}", path.display()),
            Action::CreateGroup { place } => write!(f, "create {}", place.path),
            Action::EnableControllers { place, names } => {
                write!(f, "give {} to the groups in /{}", names.join(", "), place.path)
            }
            Action::Write { place, file, text } => {
                write!(f, "{}/{file} <- {}", place.path, text.trim_end())
            }
            Action::WriteDropIn { path, text: Some(_), .. } => write!(f, "write {}", path.display()),
            Action::WriteDropIn { path, text: None, .. } => write!(f, "remove {}", path.display()),
            Action::SetKnob { instance, text, .. } => write!(f, "{instance} <- {text}"),
            Action::SetDevices { place, setting, rule } => write!(f, "{}/{setting} <- {rule}", place.path),
            Action::SetOwnership { place, .. } => write!(f, "set the owners of {}", place.path),
            Action::MoveTasksAway { place, cpus, to } => {
                write!(f, "restrict the tasks of /{} to CPUs {to}, off {cpus}", place.path)
            }
            Action::MoveTasks { place, tasks } => {
                write!(f, "move {} into {}", counted(tasks.len(), "process"), place.path)
            }
            Action::ReturnTasks { place, tasks } => {
                let to: BTreeSet<&str> = tasks.iter().map(|task| task.from.as_str()).collect();
                let to: Vec<String> = to.into_iter().map(|path| format!("/{path}")).collect();
                let count = counted(tasks.len(), "process");
                write!(f, "move {count} out of {} to {}", place.path, to.join(", "))
            }
            Action::RemoveGroup { place } => write!(f, "remove {}", place.path),
            Action::DisableControllers { place, names } => {
                write!(f, "take {} from the groups in /{}", names.join(", "), place.path)
            }
            Action::RestoreOwners { place, .. } => write!(f, "restore the owners of {}", place.path),
            Action::RestoreDevices { place, rules: None } => {
                write!(f, "drop the device rules of {}", place.path)
            }
            Action::RestoreDevices { place, rules: Some(_) } => {
                write!(f, "restore the device rules of {}", place.path)
            }
            Action::RestoreAffinities { place, threads } => {
                write!(f, "give {} of /{} their CPUs back", counted(threads.len(), "thread"), place.path)
            }
            Action::Refill { place, .. } => write!(f, "restore the settings of {}", place.path),
            Action::InheritSet { place, file } => write!(f, "{}/{file} <- as its parent", place.path),
        }
    }
}
