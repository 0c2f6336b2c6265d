//! What a layout decides about, whether or not the machine is that way already: its directories, files, owners and
//! controllers. What an earlier generation changed outside of this goes back. Never looks at values.

use std::collections::{BTreeMap, BTreeSet};

use layout::Desired;
use settings::{CpuMax, Facts, Value, Version};
use topology::Machine;
use units::group_path;

use crate::{
    Observed, Ownership, People, Place, Problem, SettingRequest, Write,
    cpusets::{CPUS, EXCLUSIVE, PARTITION},
    homes, mounts, owners,
    request::{rest_of_line, target_key},
    resolve::{self, Landscape},
    tree::Tree,
    unit_partition, values,
    writes::drawn,
};

/// What a layout decides about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Directories of its groups, and those above them.
    pub groups: BTreeSet<Place>,
    /// Files that it sets; of a file of lines by device or resource, the line's first word; with what it writes.
    pub files: BTreeMap<(Place, String, String), String>,
    /// Groups that are only part of a name, or in the tree of cpusets for the sake of others: their CPUs and memory
    /// nodes follow from those.
    pub parents: BTreeSet<Place>,
    /// Lists of CPUs and memory nodes, by file, of its groups with cpusets for which it requests none: what they have follows
    /// from the groups around them, and from what they had.
    pub unrequested: BTreeSet<(Place, String)>,
    /// To whom it gives directories.
    pub owners: BTreeMap<Place, Ownership>,
    /// Groups that it has device rules for.
    pub devices: BTreeSet<Place>,
    /// v2: what each directory hands down for its groups.
    pub controllers: BTreeMap<Place, BTreeSet<String>>,
}

impl Coverage {
    /// What of a text that an earlier layout wrote this one does not set; `None` if it sets all of it. A device's line
    /// has a limit of its own for each of its words, and a quota's file a quota and a period.
    pub fn rest(&self, place: &Place, file: &str, text: &str) -> Option<String> {
        let key = target_key(file, text);
        let Some(set) = self.files.get(&(place.clone(), file.to_owned(), key.to_owned())) else {
            return Some(text.to_owned());
        };
        match (text.parse::<CpuMax>(), set.parse::<CpuMax>()) {
            (Ok(text), Ok(set)) if settings::has_period(file) => {
                Some(text.without(set)).filter(|rest| *rest != CpuMax::default()).map(|rest| rest.to_string())
            }
            _ => rest_of_line(file, text, set),
        }
    }
}

/// What a layout decides about on this machine. Where it can't be satisfied, what is known of it: [`crate::plan`]
/// reports the problems.
pub fn coverage(
    desired: &Desired,
    machine: &Machine,
    observed: &Observed,
    facts: &dyn Facts,
    people: &dyn People,
) -> Coverage {
    let (mut problems, mut lints): (Vec<Problem>, Vec<_>) = Default::default();
    let (observed, _) = mounts::mounted(desired, observed, &mut problems, &mut lints);
    let land = Landscape::new(machine);
    let mut homeless = Vec::new();
    let homes = homes::homes(desired, &observed, &mut homeless);
    let tree = Tree::new(&homes, &observed, &mut problems);
    let resolved = resolve::resolve(desired, (machine, &land), &observed, &tree, &mut problems, &mut lints);
    problems.extend(homeless);
    let values = values::read(&homes, machine, &observed, facts, &mut problems, &mut lints);
    let mut covered = Coverage { controllers: homes::handed(&homes, &observed), ..Coverage::default() };
    for (home, access) in homes.iter().zip(owners::each(&homes, people, &mut problems)) {
        for place in home.places.values() {
            covered.add_group(place);
            if access != Ownership::default() {
                covered.owners.insert(place.clone(), access);
            }
        }
    }
    let rules = values.iter().filter(|valued| matches!(valued.value, Value::Rules(_)));
    covered.devices.extend(rules.map(|valued| valued.place.clone()));
    let read = |place: &Place, file: &str| observed.file_to_come(place, file);
    let requests = values::requests(&values);
    for write in drawn(&requests, &read).0 {
        let text = decided_text(&write, &requests);
        covered.add_file(&write.place, &write.file, &text);
    }
    for (branch, sets) in tree.branches.iter().zip(&resolved.sets) {
        match branch.demands().filter(|demands| homes::has_cpuset(demands)) {
            None => drop(covered.parents.insert(branch.place.clone())),
            Some(demands) => {
                let lists = [(CPUS, demands.cpus.is_none()), ("cpuset.mems", demands.mems.is_none())];
                let unrequested = lists.into_iter().filter(|(_, is_unrequested)| *is_unrequested);
                let of_group = unrequested.map(|(file, _)| (branch.place.clone(), file.to_owned()));
                covered.unrequested.extend(of_group);
            }
        }
        let v1 = branch.place.version == Version::V1;
        let exclusive = branch.is_exclusive();
        if branch.flag.is_some() {
            covered.add_file(&branch.place, "cpuset.cpu_exclusive", "");
        }
        if sets.cpus.is_some() {
            let flags: &[&str] = if v1 { &["cpuset.cpus", "cpuset.cpu_exclusive"] } else { &["cpuset.cpus"] };
            flags.iter().for_each(|file| covered.add_file(&branch.place, file, ""));
        }
        if exclusive && !v1 {
            for file in [PARTITION, EXCLUSIVE] {
                covered.add_file(&branch.place, file, "");
            }
            // all groups above reserve its CPUs, also those that the layout does not name: slices, and the unit that our groups are in
            unit_partition::above(&branch.place).for_each(|place| covered.add_file(&place, EXCLUSIVE, ""));
        }
        if sets.mems.is_some() {
            covered.add_file(&branch.place, "cpuset.mems", "");
        }
        if branch.mem_flag().is_some() {
            covered.add_file(&branch.place, "cpuset.mem_exclusive", "");
        }
    }
    covered
}

/// What the layout decides of a text: a period alone is written with the quota that is there, which the layout does not decide.
fn decided_text(write: &Write, requests: &[SettingRequest]) -> String {
    let parts = write.requests.iter().filter_map(|index| match &requests[*index].value {
        Value::CpuMax(part) => Some(*part),
        _ => None,
    });
    let decided = parts.reduce(CpuMax::or).filter(|_| settings::has_period(&write.file));
    decided.map_or_else(|| write.text.clone(), |decided| decided.to_string())
}

impl Coverage {
    fn add_group(&mut self, place: &Place) {
        self.groups.insert(place.clone());
        let above = group_path::branch(&place.path).skip(1);
        self.groups.extend(above.map(|path| Place { path: path.to_owned(), ..place.clone() }));
    }

    fn add_file(&mut self, place: &Place, file: &str, text: &str) {
        let key = target_key(file, text);
        self.files.insert((place.clone(), file.to_owned(), key.to_owned()), text.to_owned());
    }
}
