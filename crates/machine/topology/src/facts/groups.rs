//! What is seen in the hierarchies.

use std::path::PathBuf;

use units::CpuSet;

use crate::facts::Base;

/// What every mounted hierarchy has.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mounted {
    /// Where.
    pub mount: PathBuf,
    /// The group that the mount shows as its root; `/` outside containers.
    pub root: String,
    /// Mounted read-only.
    pub read_only: bool,
    /// Where our groups live in it.
    pub base: Base,
    /// May the caller make groups there?
    pub writable: bool,
}

/// A mounted v1 hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct V1 {
    /// Where, and what of it is ours.
    #[serde(flatten)]
    pub at: Mounted,
    /// v1's names of its controllers; none for one that is only named.
    pub controllers: Vec<String>,
    /// Its name (`systemd`).
    pub name: Option<String>,
    /// `memory.memsw.*` files are there; `None` unless it holds memory.
    #[serde(default)]
    pub memsw: Option<bool>,
}

/// The mounted v2 hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct V2 {
    /// Where, and what of it is ours.
    #[serde(flatten)]
    pub at: Mounted,
    /// The mount's options as the kernel lists them (`nsdelegate`, `memory_recursiveprot`).
    pub options: Vec<String>,
    /// `cgroup.controllers` of the mount's root.
    pub controllers: Vec<String>,
    /// Those that the root hands to its children (`cgroup.subtree_control`).
    pub enabled: Vec<String>,
    /// `cgroup.controllers` where our groups live; `None` while that place does not exist.
    pub delegated: Option<Vec<String>>,
    /// One group below the hierarchy's root.
    pub child: Option<Child>,
    /// Groups that are, or were meant to be, partitions of CPUs.
    pub partitions: Vec<Partition>,
    /// The root has `io.cost.qos`: iocost is compiled in.
    pub iocost: bool,
}

/// A group below the root, whose files show what the kernel has for groups.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Child {
    /// Its path below the mount.
    pub group: String,
    /// Names of its files; those of a controller only if the root hands it out.
    pub files: Vec<String>,
}

/// A v2 group whose `cpuset.cpus.partition` is not `member`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Partition {
    /// Its path from the mount, with a leading slash.
    pub group: String,
    /// What it was set to: `root` or `isolated`.
    pub kind: String,
    /// Not in force; with the kernel's reason, if it gives one.
    pub invalid: Option<String>,
    /// The CPUs requested (`cpuset.cpus.exclusive`, else `cpuset.cpus`).
    pub cpus: CpuSet,
    /// Siblings with some of these CPUs, and their `cpuset.cpus`; looked for only if the partition is invalid.
    pub overlaps: Vec<(String, CpuSet)>,
}

/// A v1 group with `cpuset.cpu_exclusive`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exclusive {
    /// Its path from the mount, with a leading slash.
    pub group: String,
    /// Its `cpuset.cpus`.
    pub cpus: CpuSet,
}

/// systemd as process 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Systemd {
    /// Its version, from the name of the library that process 1 has mapped; root only.
    pub version: Option<String>,
    /// The group of our delegated unit is there.
    pub unit: bool,
}

/// Top-level groups of one owner.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Owned {
    /// The owner's name for people.
    pub owner: String,
    /// The groups' names, over all hierarchies.
    pub groups: Vec<String>,
}
