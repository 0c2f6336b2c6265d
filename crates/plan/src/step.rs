//! What a plan consists of: steps in the order in which the kernel accepts them, each with its reason, and which CPUs
//! and memory nodes each group was assigned. Data only.

use kernel::GroupName;
use serde::{Deserialize, Serialize};
use settings::Controller;
use units::{CpuSet, NodeSet};

use crate::{Lint, Place};

/// What has to be done so that a machine is as desired. Without steps, it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// In this order; after each of them, every task has CPUs and memory nodes.
    pub steps: Vec<Step>,
    /// The CPUs and memory nodes of every group that asks for some, and of parents that must have some for their
    /// sake; in the layout's order. The reserve is not among them.
    pub assignments: Vec<Assignment>,
    /// The CPUs that are kept for the rest of the system; empty if none were asked for.
    pub reserved: CpuSet,
    /// What works, but perhaps not as meant.
    pub lints: Vec<Lint>,
}

/// One step, done wholly or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The group for whose sake it is done.
    #[serde(with = "crate::names::group")]
    pub group: GroupName,
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
    /// Why, and why here where that matters: lower-case, no full stop.
    pub why: String,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        path: String,
    },
    /// Makes one directory; its parent is there.
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
        /// What the file holds before this step, without the newline at its end: when the plan was made, or what an
        /// earlier step writes. `None` if it is not known, as in a group that is yet to be made.
        before: Option<String>,
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
    /// Tasks in one group itself (not in groups below it) are kept off CPUs that another group has for itself. Every
    /// thread whose affinity has one of `cpus` gets its affinity less those, or all of `to` if nothing would be left
    /// (sched_setaffinity(2)). No task changes its group. Threads of the kernel that refuse (EINVAL) stay, and are
    /// told. Only on v1: on v2 the kernel takes a partition's CPUs from everybody else itself.
    MoveTasksAway {
        /// The group whose tasks leave; "" for the hierarchy's root, which is the rest of the system.
        place: Place,
        /// The CPUs that they leave.
        cpus: CpuSet,
        /// The CPUs of the group that no group has for itself; never empty.
        to: CpuSet,
    },
}

/// Whose a group's directory and files become; as [`kernel::Access`], in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ownership {
    /// User of the files that take tasks (`cgroup.procs`, `cgroup.threads`, `tasks`).
    pub tasks_uid: Option<u32>,
    /// Group of the files that take tasks.
    pub tasks_gid: Option<u32>,
    /// Mode of the files that take tasks.
    pub tasks_mode: Option<u32>,
    /// User of the directory and all other files.
    pub admin_uid: Option<u32>,
    /// Group of the directory and all other files.
    pub admin_gid: Option<u32>,
    /// Mode of all other files.
    pub file_mode: Option<u32>,
    /// Mode of the directory.
    pub directory_mode: Option<u32>,
}

/// The CPUs and memory nodes that a group is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The group.
    #[serde(with = "crate::names::group")]
    pub group: GroupName,
    /// Its CPUs; `None` if nothing about them is written.
    pub cpus: Option<CpuSet>,
    /// Its memory nodes; `None` if nothing about them is written.
    pub mems: Option<NodeSet>,
    /// Does no other group have one of its CPUs, by the kernel's keeping?
    pub exclusive: bool,
    /// How it comes to these: lower-case, no full stop.
    pub why: String,
}

impl Ownership {
    /// The same for [`kernel::Host`].
    pub fn access(&self) -> kernel::Access {
        kernel::Access {
            tasks: kernel::Who { uid: self.tasks_uid, gid: self.tasks_gid },
            admin: kernel::Who { uid: self.admin_uid, gid: self.admin_gid },
            directory_mode: self.directory_mode,
            file_mode: self.file_mode,
            tasks_mode: self.tasks_mode,
        }
    }
}

impl Action {
    /// The directory that it changes; none for a mount.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Action::Mount { .. } => None,
            Action::CreateGroup { place }
            | Action::EnableControllers { place, .. }
            | Action::Write { place, .. }
            | Action::SetDevices { place, .. }
            | Action::SetOwnership { place, .. }
            | Action::MoveTasksAway { place, .. } => Some(place),
        }
    }
}

impl std::fmt::Display for Action {
    /// In words, with the directory below its mount.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::Mount { path, .. } => write!(f, "mount a v1 hierarchy at {path}"),
            Action::CreateGroup { place } => write!(f, "create {}", place.path),
            Action::EnableControllers { place, names } => {
                write!(f, "give {} to the groups in /{}", names.join(", "), place.path)
            }
            Action::Write { place, file, text, before } => {
                write!(f, "{}/{file} <- {}", place.path, text.trim_end())?;
                before.as_ref().map_or(Ok(()), |before| write!(f, " (was {})", before.trim_end()))
            }
            Action::SetDevices { place, setting, rule } => write!(f, "{}/{setting} <- {rule}", place.path),
            Action::SetOwnership { place, .. } => write!(f, "set the owners of {}", place.path),
            Action::MoveTasksAway { place, cpus, to } => {
                write!(f, "keep the tasks of /{} off CPUs {cpus}, on {to}", place.path)
            }
        }
    }
}
