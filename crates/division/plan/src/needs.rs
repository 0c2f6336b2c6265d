//! What must be known of the kernel before a plan can be made. The reader of the kernel looks there and at nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};

use layout::{Assigned, CpuDemand, Desired, Near};
use settings::{Controller, DeviceClass, DeviceRule, FileWrite, NoMachine, Value, Version};
use units::{Limit, group_path};

use crate::{
    Observed, Place,
    cpusets::{CPUS, EXCLUSIVE, MEMS, PARTITION},
    homes::{Home, homes},
};

/// One directory to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The directory; it may not exist.
    pub place: Place,
    /// The files to read; those that don't exist are left out.
    pub files: BTreeSet<String>,
    /// Files to read unless another one, of [`Need::files`], holds this text already: how much is used of a limit
    /// matters only where the limit changes, and reading it takes as long as reading the limit.
    pub unless: Vec<(&'static str, FileWrite)>,
    /// Are its tasks counted, and is it looked for some below it? Only where they decide: in cpusets, and where v2
    /// hands on controllers.
    pub tasks: bool,
    /// Are owners and modes of the directory and its files needed?
    pub owners: bool,
    /// Are the device rules of a v2 group needed ([`crate::SeenGroup::devices`])?
    pub devices: bool,
    /// Files to read of every group directly in it, also of those that no layout names, with their tasks; nothing is
    /// needed of those groups if this is empty.
    pub children: BTreeSet<String>,
    /// Files to read of every group directly in it unless a file, of [`Need::files`], holds this text already: what
    /// groups below have bounds a limit that changes. Their tasks are not counted for that.
    pub below: Vec<(FileWrite, &'static [&'static str])>,
}

/// What is read of every cpuset that matters, by version.
const CPUSET_V1: [&str; 5] =
    [CPUS, MEMS, "cpuset.cpu_exclusive", "cpuset.mem_exclusive", "cgroup.clone_children"];
const CPUSET_V2: [&str; 4] = [CPUS, MEMS, PARTITION, EXCLUSIVE];
/// What is read of groups below one whose quota changes.
const QUOTA: [&str; 2] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"];
/// And of those above our groups.
const ABOVE_V2: [&str; 3] = ["cpuset.cpus.effective", "cpuset.mems.effective", "cpuset.cpus.isolated"];

/// The directories to look at, parents before children, for an [`Observed`] that has nothing but the hierarchies.
pub fn needs(desired: &Desired, hierarchies: &Observed) -> Vec<Need> {
    // errors are reported when it is planned
    let homes = homes(desired, hierarchies, &mut Vec::new());
    let mut needs = Needs::default();
    for home in &homes {
        for place in home.places.values() {
            needs.group(home, place, hierarchies);
        }
        if home.has_cpuset
            && let Some(place) =
                hierarchies.hierarchy_of(Controller::Cpuset).and_then(|at| home.places.get(&at))
        {
            needs.cpuset(place);
        }
    }
    needs.join();
    let mut all: Vec<Need> = needs.by_place.into_values().collect();
    all.sort_by(|one, next| {
        let hierarchy = one.place.hierarchy.cmp(&next.place.hierarchy);
        hierarchy.then_with(|| group_path::names(&one.place.path).cmp(group_path::names(&next.place.path)))
    });
    all
}

/// What the layout calls block devices near which CPUs are wanted: [`Observed::device_nodes`] answers.
pub fn devices(desired: &Desired) -> BTreeSet<String> {
    let cpus = desired.groups.iter().filter_map(|group| group.demands.cpus.as_ref());
    let near = cpus.chain(&desired.reserve.cpus).filter_map(|cpus| match &cpus.value {
        CpuDemand::Some(spec) => Some(&spec.near),
        _ => None,
    });
    let devices = near.flatten().filter_map(|near| match near {
        Near::Device(device) => Some(device.clone()),
        Near::Node(_) | Near::Group(_) => None,
    });
    devices.collect()
}

impl Need {
    /// v1 refuses a quota that a group below exceeds.
    fn quotas_below(&mut self, assigned: &Assigned) {
        let value = assigned.found.parse(&assigned.text, &NoMachine).ok();
        let limited =
            value.filter(|value| !matches!(value, Value::CpuMax(max) if max.quota == Some(Limit::Max)));
        let writes = limited.and_then(|value| assigned.found.encode(Version::V1, &value, &|_| None).ok());
        self.below.extend(writes.into_iter().flatten().map(|write| (write, &QUOTA[..])));
    }

    fn use_of_memory(&mut self, assigned: &Assigned, version: Version) {
        let files: &[&'static str] = match version {
            Version::V2 => &["memory.current"],
            Version::V1 => &["memory.usage_in_bytes"],
        };
        // a share of the machine's memory is not known here
        let value = assigned.found.parse(&assigned.text, &NoMachine).ok();
        let writes = value.and_then(|value| assigned.found.encode(version, &value, &|_| None).ok());
        match writes.and_then(|mut writes| writes.pop()) {
            Some(write) => self.unless.extend(files.iter().map(|file| (*file, write.clone()))),
            None => self.files.extend(files.iter().map(|file| (*file).to_owned())),
        }
    }
}

#[derive(Default)]
struct Needs {
    by_place: BTreeMap<(usize, String), Need>,
    /// What the last group was in, by hierarchy.
    parents: BTreeMap<usize, String>,
}

fn names_all_devices(assigned: &Assigned) -> bool {
    let rules = assigned.found.parse(&assigned.text, &NoMachine);
    let all = |rule: &DeviceRule| rule.class == DeviceClass::All;
    matches!(rules, Ok(Value::Rules(rules)) if rules.iter().any(all))
}

/// The directories above one, the root first.
fn above(place: &Place) -> impl Iterator<Item = Place> + '_ {
    let cuts = place.path.match_indices('/').map(|(at, _)| &place.path[..at]);
    let root = (!place.path.is_empty()).then_some("");
    root.into_iter().chain(cuts).map(|path| Place { path: path.to_owned(), ..place.clone() })
}

impl Needs {
    fn at(&mut self, place: &Place) -> &mut Need {
        let need = || Need {
            place: place.clone(),
            files: BTreeSet::new(),
            unless: Vec::new(),
            tasks: false,
            owners: false,
            devices: false,
            children: BTreeSet::new(),
            below: Vec::new(),
        };
        self.by_place.entry((place.hierarchy, place.path.clone())).or_insert_with(need)
    }

    fn read(&mut self, place: &Place, files: &[&str]) {
        self.at(place).files.extend(files.iter().map(|file| (*file).to_owned()));
    }

    /// What is needed of all groups in one is needed of those that have a need of their own, too.
    fn join(&mut self) {
        let with_children = self.by_place.iter().filter(|(_, need)| !need.children.is_empty());
        let of_children: BTreeMap<(usize, String), BTreeSet<String>> =
            with_children.map(|(place, need)| (place.clone(), need.children.clone())).collect();
        if of_children.is_empty() {
            return;
        }
        for ((hierarchy, path), need) in &mut self.by_place {
            let above = group_path::parent(path).unwrap_or_default();
            let files = of_children.get(&(*hierarchy, above.to_owned())).filter(|_| !path.is_empty());
            need.tasks |= files.is_some();
            need.files.extend(files.into_iter().flatten().cloned());
        }
    }

    /// A group's own settings, and what hands it controllers.
    fn group(&mut self, home: &Home<'_>, place: &Place, hierarchies: &Observed) {
        let demands = &home.group.demands;
        let settings = demands
            .settings
            .iter()
            .filter(|assigned| home.place_of(&assigned.found, hierarchies) == Some(place));
        let own = self.at(place);
        own.owners |= demands.tasks.is_some() || demands.admin.is_some();
        for assigned in settings {
            let name = assigned.found.setting.name;
            own.devices |= name.starts_with("devices.") && place.version == Version::V2;
            own.files.extend(assigned.found.files(place.version));
            let beside: &[&str] = match (name, place.version) {
                ("memory.max", _) => &[],
                (layout::QUOTA, version) if assigned.most.is_some() => {
                    let burst = settings::lookup(layout::BURST).map(|found| found.files(version));
                    own.files.extend(burst.into_iter().flatten());
                    &[]
                }
                ("devices.allow" | "devices.deny", Version::V1) => &["devices.list"],
                ("cpu.rt_runtime_us" | "cpu.rt_period_us", _) => &["cpu.rt_runtime_us", "cpu.rt_period_us"],
                _ => &[],
            };
            own.files.extend(beside.iter().map(|file| (*file).to_owned()));
            match (name, place.version) {
                ("memory.max", _) => own.use_of_memory(assigned, place.version),
                (layout::QUOTA, Version::V1) => own.quotas_below(assigned),
                ("devices.allow" | "devices.deny", _) if names_all_devices(assigned) => {
                    // the kernel refuses that while any group is below
                    own.children.insert("devices.list".to_owned());
                }
                _ => {}
            }
        }
        // thousands of groups may be in one
        let parent = group_path::parent(&place.path).unwrap_or_default();
        let same = self.parents.get(&place.hierarchy).is_some_and(|before| before == parent);
        if same || place.path.is_empty() {
            return;
        }
        self.parents.insert(place.hierarchy, parent.to_owned());
        for above in above(place).collect::<Vec<Place>>() {
            let files: &[&str] = match place.version {
                Version::V1 => &[],
                Version::V2 => &["cgroup.controllers", "cgroup.subtree_control"],
            };
            self.read(&above, files);
            self.at(&above).tasks |= place.version == Version::V2;
        }
    }

    /// A cpuset, those above it, and what is beside and below it.
    fn cpuset(&mut self, place: &Place) {
        let (own, higher): (&[&str], &[&str]) = match place.version {
            Version::V1 => (&CPUSET_V1, &CPUSET_V1),
            Version::V2 => (&CPUSET_V2, &ABOVE_V2),
        };
        self.read(place, own);
        self.at(place).tasks = true;
        let children = || own.iter().map(|file| (*file).to_owned());
        self.at(place).children.extend(children());
        for above in above(place).collect::<Vec<Place>>() {
            self.read(&above, own);
            self.read(&above, higher);
            self.at(&above).tasks = true;
            self.at(&above).children.extend(children());
        }
    }
}
