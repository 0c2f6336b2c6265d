//! What a layout decides about and no step changes, as the machine is so already: who carries out the plan records it
//! with the steps, so that what was applied is all of the layout and not only what was written.

use std::collections::HashMap;

use settings::Version;

use crate::{
    Action, Observed, Ownership, People, Place, Step,
    cpusets::PARTITION,
    homes::{self, Home},
    owners,
    request::target_key,
    resolve::Resolved,
    tree::{Exclusive, Tree},
    values::{self, Valued},
    writes,
};

const WHY: &str = "it is so already";

/// A write that the layout wants of a group's file.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub group: settings::GroupName,
    pub place: Place,
    pub file: String,
    pub text: String,
}

/// What the decisions are read from.
pub(crate) struct Decisions<'d> {
    pub homes: &'d [Home<'d>],
    pub values: &'d [Valued<'d>],
    pub tree: &'d Tree<'d>,
    pub resolved: &'d Resolved,
    pub observed: &'d Observed,
    pub people: &'d dyn People,
}

/// Groups, values and owners that no step makes so, in this order; of a device's line that a step writes a part of, the
/// whole line.
pub(crate) fn decided(of: &Decisions<'_>, wanted: &[Wanted], steps: &[Step]) -> Vec<Step> {
    let changes = Changes::new(steps);
    let there = |place: &Place| !place.path.is_empty() && of.observed.group(place).is_some();
    let mut decided = Vec::new();
    for home in of.homes.iter().filter(|home| !home.is_systemds()) {
        let groups = home.places.values().filter(|place| there(place) && !changes.makes(place));
        let groups = groups.map(|place| Action::CreateGroup { place: place.clone() });
        decided.extend(groups.map(|action| Step::new(home.group.name.clone(), action, WHY)));
    }
    for Wanted { group, place, file, text } in wanted.iter().filter(|write| there(&write.place)) {
        if !changes.writes(place, file, text) {
            let (group, place) = (group.clone(), place.clone());
            let (file, text) = (file.clone(), text.clone());
            let before = of.observed.file(&place, &file).map(str::to_owned);
            decided.push(Step::new(group, Action::Write { place, file, text }, WHY).was(before));
        }
    }
    // a name that nobody has is a problem of the plan
    for (home, access) in of.homes.iter().zip(owners::each(of.homes, of.people, &mut Vec::new())) {
        let given = access != Ownership::default();
        let places = home.places.values().filter(|place| given && there(place) && !changes.gives(place));
        let owners = places.map(|place| Action::SetOwnership { place: place.clone(), access });
        decided.extend(owners.map(|action| Step::new(home.group.name.clone(), action, WHY)));
    }
    decided
}

/// All that the layout wants files to contain, whatever they contain now; of groups that are there or not.
pub(crate) fn wanted(of: &Decisions<'_>) -> Vec<Wanted> {
    let mut all = Vec::new();
    let mut add = |group: &settings::GroupName, place: &Place, file: &str, text: &str| {
        let (group, place) = (group.clone(), place.clone());
        all.push(Wanted { group, place, file: file.to_owned(), text: text.to_owned() });
    };
    let requests = values::requests(of.values);
    let read = |place: &Place, file: &str| of.observed.file_to_come(place, file);
    // what contradicts itself is a problem of the plan
    for write in writes(&requests, &read).unwrap_or_default() {
        add(&requests[write.requests[0]].group, &write.place, &write.file, &write.text);
    }
    for (branch, sets) in of.tree.branches.iter().zip(&of.resolved.sets) {
        if !branch.demands().is_some_and(homes::has_cpuset) {
            continue;
        }
        if let Some(cpus) = sets.cpus.as_ref().filter(|cpus| !cpus.is_empty()) {
            add(&branch.name, &branch.place, "cpuset.cpus", &cpus.to_string());
            let flag = match (branch.place.version, branch.exclusive) {
                (_, Exclusive::No) => None,
                (Version::V1, _) => Some(("cpuset.cpu_exclusive", "1")),
                (Version::V2, Exclusive::Root) => Some((PARTITION, "root")),
                (Version::V2, Exclusive::Isolated) => Some((PARTITION, "isolated")),
            };
            if let Some((file, text)) = flag {
                add(&branch.name, &branch.place, file, text);
            }
        }
        if let Some(on) = branch.flag.filter(|_| branch.exclusive == Exclusive::No) {
            add(&branch.name, &branch.place, "cpuset.cpu_exclusive", if on { "1" } else { "0" });
        }
        if let Some(on) = branch.mem_flag() {
            add(&branch.name, &branch.place, "cpuset.mem_exclusive", if on { "1" } else { "0" });
        }
        if let Some(mems) = sets.mems.as_ref().filter(|mems| !mems.is_empty()) {
            add(&branch.name, &branch.place, "cpuset.mems", &mems.to_string());
        }
    }
    all
}

/// What steps change, to be looked up.
struct Changes<'s> {
    /// By directory.
    of: HashMap<&'s Place, Vec<&'s Action>>,
}

impl<'s> Changes<'s> {
    fn new(steps: &'s [Step]) -> Changes<'s> {
        let mut of: HashMap<&Place, Vec<&Action>> = HashMap::new();
        for action in steps.iter().map(|step| &step.action) {
            action.place().into_iter().for_each(|place| of.entry(place).or_default().push(action));
        }
        Changes { of }
    }

    fn any(&self, place: &Place, is: impl Fn(&Action) -> bool) -> bool {
        self.of.get(place).is_some_and(|actions| actions.iter().any(|action| is(action)))
    }

    fn makes(&self, place: &Place) -> bool {
        self.any(place, |action| matches!(action, Action::CreateGroup { .. }))
    }

    fn gives(&self, place: &Place) -> bool {
        self.any(place, |action| matches!(action, Action::SetOwnership { .. }))
    }

    /// Of a file of lines by device or resource, the whole line.
    fn writes(&self, place: &Place, file: &str, text: &str) -> bool {
        let line = !target_key(file, text).is_empty();
        self.any(place, |action| match action {
            Action::Write { file: of, text: written, .. } => {
                of == file && (!line || written.trim() == text.trim())
            }
            _ => false,
        })
    }
}
