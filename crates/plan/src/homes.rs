//! Where each group of a layout has directories, which must be made, and which controllers v2's groups must hand
//! down for that.

use std::collections::{BTreeMap, BTreeSet};

use kernel::GroupName;
use layout::{Desired, Group, Origin, Subsystem};
use settings::{Controller, Found, Side, Version};

use crate::{Action, Observed, Place, Problem, Step, tree};

/// A group with its directories.
#[derive(Debug)]
pub(crate) struct Home<'d> {
    pub group: &'d Group,
    /// By hierarchy.
    pub places: BTreeMap<usize, Place>,
}

/// Directories to be made and controllers to be handed down, in one hierarchy.
#[derive(Debug, Default)]
struct Ground<'d> {
    /// By the parts of the path: for whose sake.
    made: BTreeMap<Vec<String>, &'d GroupName>,
    /// v2: what a directory must hand down, and for whose sake.
    handed: BTreeMap<Vec<String>, (BTreeSet<&'static str>, &'d Group)>,
}

/// The homes of all groups, in the layout's order.
pub(crate) fn homes<'d>(
    desired: &'d Desired,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Vec<Home<'d>> {
    desired.groups.iter().map(|group| home(group, observed, problems)).collect()
}

fn home<'d>(group: &'d Group, observed: &Observed, problems: &mut Vec<Problem>) -> Home<'d> {
    let mut at: BTreeSet<usize> = BTreeSet::new();
    for (controller, origin) in wanted(group) {
        match observed.hierarchy_of(controller) {
            Some(hierarchy) => {
                at.insert(hierarchy);
            }
            None => problems.push(Problem::NoController {
                group: group.name.to_string(),
                controller: any_name(controller).to_owned(),
                origin,
            }),
        }
    }
    for named in &group.demands.controllers {
        let Subsystem::Named(name) = &named.value else { continue };
        let found = observed.hierarchies.iter().position(|at| at.name.as_ref() == Some(name));
        match found {
            Some(hierarchy) => {
                at.insert(hierarchy);
            }
            None => problems.push(Problem::NoController {
                group: group.name.to_string(),
                controller: format!("name={name}"),
                origin: named.origin.clone(),
            }),
        }
    }
    let core =
        group.demands.settings.iter().any(|assigned| assigned.found.setting.controller == Controller::Core);
    if at.is_empty() {
        at = anywhere(observed, core);
    }
    let places = at.into_iter().filter_map(|at| Some((at, observed.place(at, &group.name)?))).collect();
    Home { group, places }
}

/// Controllers that a group needs, each with where that was said; without the core, which is everywhere.
fn wanted(group: &Group) -> Vec<(Controller, Origin)> {
    let demands = &group.demands;
    let mut wanted: Vec<(Controller, Origin)> = Vec::new();
    if tree::concerns(demands) {
        let asked = demands.cpus.as_ref().map(|cpus| &cpus.origin);
        let asked = asked.or(demands.mems.as_ref().map(|mems| &mems.origin));
        wanted.push((Controller::Cpuset, asked.unwrap_or(&group.origin).clone()));
    }
    wanted.extend(
        demands.settings.iter().map(|assigned| (assigned.found.setting.controller, assigned.origin.clone())),
    );
    wanted.extend(demands.controllers.iter().filter_map(|named| match named.value {
        Subsystem::Controller(controller) => Some((controller, named.origin.clone())),
        Subsystem::Named(_) => None,
    }));
    wanted.retain(|(controller, _)| *controller != Controller::Core);
    wanted.sort_by_key(|(controller, _)| *controller);
    wanted.dedup_by_key(|(controller, _)| *controller);
    wanted
}

/// A group that asks for nothing is made where tasks can be put into it: on v2, and in all v1 hierarchies with a
/// controller but that of cpusets, which take no task before they have CPUs. The core's files are v2's first.
fn anywhere(observed: &Observed, core: bool) -> BTreeSet<usize> {
    let takes_tasks = |hierarchy: &usize| {
        let at = &observed.hierarchies[*hierarchy];
        let of_v1 = !at.controllers.is_empty() && !at.controllers.contains(&Controller::Cpuset);
        at.version == Version::V2 || of_v1
    };
    let v2 = observed.hierarchies.iter().position(|at| at.version == Version::V2);
    match v2.filter(|_| core) {
        Some(v2) => BTreeSet::from([v2]),
        None => (0..observed.hierarchies.len()).filter(takes_tasks).collect(),
    }
}

fn any_name(controller: Controller) -> &'static str {
    controller.name(Version::V2).or(controller.name(Version::V1)).unwrap_or("core")
}

impl Home<'_> {
    /// Where a setting of the group lives: with its controller; the core's in the first directory whose version has
    /// the file, v2's before v1's.
    pub(crate) fn place_of(&self, found: &Found, observed: &Observed) -> Option<&Place> {
        match found.setting.controller {
            Controller::Core => {
                let has = |place: &&Place| matches!(found.side(place.version), Side::Has(_));
                self.places.values().rev().find(has).or(self.places.values().next())
            }
            controller => self.places.get(&observed.hierarchy_of(controller)?),
        }
    }
}

/// Makes directories from the top down, and hands controllers down on the way.
pub(crate) fn steps(homes: &[Home<'_>], observed: &Observed, problems: &mut Vec<Problem>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (hierarchy, at) in observed.hierarchies.iter().enumerate() {
        let ground = ground(homes, observed, hierarchy);
        let paths: BTreeSet<&Vec<String>> = ground.made.keys().chain(ground.handed.keys()).collect();
        for path in paths {
            let place = Place { hierarchy, path: path.join("/"), version: at.version };
            let exists = at.groups.contains_key(&place.path);
            if let Some(group) = ground.made.get(path).filter(|_| !exists) {
                let own = group.below(&at.base) == place.path;
                let why = if own { "the layout names it".to_owned() } else { format!("'{group}' is in it") };
                steps.push(Step {
                    group: (*group).clone(),
                    action: Action::CreateGroup { place: place.clone() },
                    why,
                });
            }
            if let Some((names, group)) = ground.handed.get(path) {
                steps.extend(hand_down(place, names, group, observed, problems));
            }
        }
    }
    steps
}

fn ground<'d>(homes: &[Home<'d>], observed: &Observed, hierarchy: usize) -> Ground<'d> {
    let mut ground = Ground::default();
    let at = &observed.hierarchies[hierarchy];
    for home in homes {
        let Some(place) = home.places.get(&hierarchy) else { continue };
        let parts: Vec<String> =
            place.path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        // our groups' own place is there
        let above = if home.group.name.is_from_root() {
            0
        } else {
            at.base.split('/').filter(|part| !part.is_empty()).count()
        };
        for length in above + 1..=parts.len() {
            ground.made.entry(parts[..length].to_vec()).or_insert(&home.group.name);
        }
        if at.version == Version::V1 || parts.is_empty() {
            continue;
        }
        let held = |controller: &Controller| at.controllers.contains(controller);
        let wanted = wanted(home.group).into_iter().map(|(controller, _)| controller).filter(held);
        let names: Vec<&'static str> = wanted.filter_map(|controller| controller.name(Version::V2)).collect();
        for length in above..parts.len() {
            let entry = ground.handed.entry(parts[..length].to_vec());
            let (all, _) = entry.or_insert_with(|| (BTreeSet::new(), home.group));
            all.extend(names.iter().copied());
        }
    }
    ground
}

fn hand_down(
    place: Place,
    names: &BTreeSet<&'static str>,
    group: &Group,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Option<Step> {
    let seen = observed.group(&place);
    let words =
        |file: &str| -> Option<Vec<&str>> { Some(seen?.files.get(file)?.split_whitespace().collect()) };
    let enabled = words("cgroup.subtree_control").unwrap_or_default();
    let missing: Vec<String> =
        names.iter().filter(|name| !enabled.contains(*name)).map(|name| (*name).to_owned()).collect();
    if missing.is_empty() {
        return None;
    }
    let shown = if place.path.is_empty() {
        "the root group".to_owned()
    } else {
        format!("the group /{}", place.path)
    };
    // where nothing was seen, what is above is told first
    let lacking = words("cgroup.controllers")
        .and_then(|there| missing.iter().find(|name| !there.contains(&name.as_str())).cloned());
    if let Some(controller) = lacking.filter(|_| seen.is_some_and(|_| is_base(&place, observed))) {
        problems.push(Problem::Refused {
            message: format!(
                "{shown} is not given the controller {controller}, which group '{}' needs",
                group.name
            ),
            origin: group.origin.clone(),
            mend: "see ringfence doctor".to_owned(),
            version: Version::V2,
        });
    }
    let tasks = seen.map_or(0, |seen| seen.tasks);
    if tasks > 0 && !place.path.is_empty() {
        let (number, verb) =
            if tasks == 1 { ("a process".to_owned(), "is") } else { (format!("{tasks} processes"), "are") };
        problems.push(Problem::Refused {
            message: format!(
                "{number} {verb} in {shown}, so it can't hand {} to '{}': on v2 only groups without groups in them hold processes",
                missing.join(" and "),
                group.name
            ),
            origin: group.origin.clone(),
            mend: format!("move them into a group of their own below /{} first", place.path),
            version: Version::V2,
        });
    }
    let why = format!("hands {} to the groups in it", missing.join(", "));
    Some(Step { group: group.name.clone(), action: Action::EnableControllers { place, names: missing }, why })
}

/// Is it the place our groups live in, whose controllers others decide?
fn is_base(place: &Place, observed: &Observed) -> bool {
    observed.hierarchies.get(place.hierarchy).is_some_and(|at| at.base == place.path || place.path.is_empty())
}
