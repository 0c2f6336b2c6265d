//! The kernel's state now, as data: the hierarchies, and of the groups that a plan is about their files, tasks and
//! owners. A reader of the kernel fills it in ([`crate::needs`] says with what); a plan for a machine that is not at
//! hand starts from an empty one. Never reads anything itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use settings::{Controller, GroupName, Version, knobs};

use crate::Place;

/// What a machine's kernel holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Observed {
    /// The hierarchies in the kernel crate's order; a hierarchy's position is its [`Place::hierarchy`].
    pub hierarchies: Vec<SeenHierarchy>,
    /// The user and group who carry a plan out: whose a group's files are that nobody else gets.
    #[serde(default, skip_serializing_if = "is_root")]
    pub keeper: (u32, u32),
    /// v1: the kernel has no real-time budgets (RT_GROUP_SCHED), so that any group of cpu takes real-time tasks. False if
    /// unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_realtime_budgets: bool,
    /// The host's name, where there is a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The NUMA nodes that block devices are attached to, by what the layout calls them (`/dev/nvme0n1`, `8:16`);
    /// one that belongs to no node in particular is not here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub device_nodes: BTreeMap<String, usize>,
    /// The names of the files that groups other than the root have, by hierarchy: what is not among them, though files
    /// of the same controller are, this kernel does not have. Not here where there is no group to look at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub child_files: BTreeMap<usize, BTreeSet<String>>,
    /// The block devices that have an I/O cost model enabled (`io.cost.qos` of v2's root, lines with `enable=1`), as
    /// `MAJOR:MINOR`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_cost: Vec<String>,
    /// Units of systemd that the layout names, by name; empty where systemd does not run, `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<BTreeMap<String, SeenUnit>>,
    /// Units with a `CPUAffinity=`, which the kernel resets when the first group is given CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned_units: Vec<String>,
    /// The directory of the history, if it is not the default one: our drop-in files name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Groups that are elastic in the layout in effect: their CPUs are as their load wanted them, not as a layout did.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub elastic: BTreeSet<String>,
    /// The knobs that the layout names; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knobs: Option<Vec<knobs::Seen>>,
    /// The kernel's command line, where knobs were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Settings that follow the load in the layout in effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<crate::Range>,
}

/// A unit as systemd knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenUnit {
    /// Its `LoadState`: `loaded`, `not-found`, `masked`, `error`…
    pub load: String,
    /// Names that are near to one that does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// Where its control group is, or would be, below v2's mount.
    pub path: String,
    /// The root that the commands before its start run in; empty for the machine's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// Is its control group its own to divide (`Delegate=`)?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delegates: bool,
    /// Why systemd before 254 can't start it again once it is divided; it starts processes in the service's own group then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undividable: Option<String>,
    /// The properties that this systemd has for it, by their names on the bus.
    #[serde(default)]
    pub properties: BTreeSet<String>,
    /// Our drop-in file for it.
    pub drop_in: String,
    /// What that contains; `None` if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why that may not be replaced: somebody made the file, or wrote in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<String>,
}

impl SeenUnit {
    /// Does this systemd have that property, by its name on the bus?
    pub fn knows(&self, name: &str) -> bool {
        self.properties.contains(name)
    }
}

/// A mounted hierarchy with the groups in it that matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenHierarchy {
    /// v1 or v2.
    #[serde(with = "crate::names::version")]
    pub version: Version,
    /// What lives here; on v2 also `core`.
    #[serde(with = "crate::names::controllers")]
    pub controllers: Vec<Controller>,
    /// A named v1 hierarchy's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is mounted.
    pub mount: String,
    /// The path below the mount where our groups live, "" for the root.
    #[serde(default)]
    pub base: String,
    /// The caller can make no groups in it: it is mounted read-only, or belongs to another user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_closed: bool,
    /// Groups by their path below the mount, "" for the root. One that is not here does not exist.
    pub groups: BTreeMap<String, SeenGroup>,
}

/// A group that exists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenGroup {
    /// Contents of the files that were read, without the newline at their end. One that is missing here does not exist
    /// or was not requested; one that can only be written is here with an empty text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// How many processes (of a threaded group, threads) are in the group itself; not counted unless requested
    /// ([`crate::Need::tasks`]).
    #[serde(default)]
    pub tasks: usize,
    /// Whether any are in a group below it; not looked for unless requested, either.
    #[serde(default)]
    pub populated_below: bool,
    /// On v2, the device rules that the group was given, as [`settings::devices::DeviceAccess`] prints them;
    /// `None` if it was given none, or not requested ([`crate::Need::devices`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<String>,
    /// And whether they are not in force, as somebody took their program off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub devices_detached: bool,
    /// Lists of CPUs and memory nodes as they were before earlier layouts, by file, where those changed them for the
    /// sake of groups below it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists_before: BTreeMap<String, String>,
    /// On v1, whether earlier layouts made its CPUs exclusive, for its own sake or for a group below it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_by_layouts: bool,
    /// Owner and mode of the directory; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Owned>,
    /// Owner and mode of files; one that is not here was not requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<String, Owned>,
}

fn is_root(keeper: &(u32, u32)) -> bool {
    *keeper == (0, 0)
}

/// Who owns a directory or file, and its permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// The controllers of a host whose kernel is not at hand, besides `core`.
const USUAL: [Controller; 12] = [
    Controller::Cpuset,
    Controller::Cpu,
    Controller::Cpuacct,
    Controller::Io,
    Controller::Memory,
    Controller::Devices,
    Controller::Freezer,
    Controller::Pids,
    Controller::Hugetlb,
    Controller::NetCls,
    Controller::NetPrio,
    Controller::PerfEvent,
];

impl Observed {
    /// A plain host of that version on which nobody made a group yet: what planning for a machine that is not at hand
    /// starts from. On v1 each controller has a hierarchy of its own, but for cpu and cpuacct.
    pub fn empty(version: Version) -> Observed {
        let there = |controller: &Controller| controller.name(version).is_some();
        let controllers: Vec<Controller> = USUAL.into_iter().filter(there).collect();
        let hierarchies = match version {
            Version::V2 => {
                let all = std::iter::once(Controller::Core).chain(controllers).collect();
                vec![SeenHierarchy::empty(version, all, "/sys/fs/cgroup".to_owned())]
            }
            Version::V1 => {
                let alone = controllers.into_iter().filter(|controller| *controller != Controller::Cpuacct);
                let hierarchy = |controller: Controller| match controller {
                    Controller::Cpu => vec![Controller::Cpu, Controller::Cpuacct],
                    other => vec![other],
                };
                let mount = |all: &[Controller]| {
                    let names: Vec<&str> =
                        all.iter().filter_map(|controller| controller.name(version)).collect();
                    format!("/sys/fs/cgroup/{}", names.join(","))
                };
                alone
                    .map(hierarchy)
                    .map(|all| SeenHierarchy::empty(version, all.clone(), mount(&all)))
                    .collect()
            }
        };
        Observed { hierarchies, ..Observed::default() }
    }

    /// The group at a place, if it exists.
    pub fn group(&self, place: &Place) -> Option<&SeenGroup> {
        self.hierarchies.get(place.hierarchy)?.groups.get(&place.path)
    }

    /// A file's content at a place, if it was read.
    pub fn file(&self, place: &Place, file: &str) -> Option<&str> {
        self.group(place)?.files.get(file).map(String::as_str)
    }

    /// What a file has once the group and its controllers are there: what was read of it, else what a new group has.
    pub(crate) fn file_to_come(&self, place: &Place, file: &str) -> Option<String> {
        self.file(place, file).or_else(|| settings::initial(place.version, file)).map(str::to_owned)
    }

    /// The hierarchy that holds a controller, by the rules of `kernel::Host::hierarchy_of`.
    pub fn hierarchy_of(&self, controller: Controller) -> Option<usize> {
        let find = |is: &dyn Fn(&SeenHierarchy) -> bool| self.hierarchies.iter().position(is);
        let in_core = matches!(
            controller,
            Controller::Core
                | Controller::Freezer
                | Controller::Devices
                | Controller::Cpuacct
                | Controller::PerfEvent
        );
        find(&|at| at.controllers.contains(&controller))
            .or_else(|| in_core.then(|| find(&|at| at.version == Version::V2)).flatten())
            .or_else(|| {
                (controller == Controller::Core).then(|| find(&|at| at.version == Version::V1)).flatten()
            })
    }

    /// Where a group's directory is, or would be, in a hierarchy.
    pub fn place(&self, hierarchy: usize, group: &GroupName) -> Option<Place> {
        let at = self.hierarchies.get(hierarchy)?;
        Some(Place { hierarchy, path: group.below(&at.base), version: at.version })
    }
}

impl SeenHierarchy {
    /// A hierarchy with nothing but its root.
    pub fn empty(version: Version, controllers: Vec<Controller>, mount: String) -> SeenHierarchy {
        let groups = BTreeMap::from([(String::new(), SeenGroup::default())]);
        SeenHierarchy {
            version,
            controllers,
            name: None,
            mount,
            base: String::new(),
            is_closed: false,
            groups,
        }
    }
}
