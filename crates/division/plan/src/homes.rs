//! Where each group of a layout has directories, which must be made, and which controllers v2's groups must hand
//! down for that.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use layout::{Controllers, CpuDemand, Demands, Desired, Group, Origin, Part, Subsystem, UnitName};
use settings::{Controller, GroupName, NamedSetting, Side, Version};
use units::group_path;

use crate::{Action, Lint, LintKind, Observed, Place, Problem, SeenHierarchy, Step, unit_place};

/// A group with its directories.
#[derive(Debug)]
pub(crate) struct Home<'d> {
    pub group: &'d Group,
    /// By hierarchy.
    pub places: BTreeMap<usize, Place>,
    /// The hierarchies that its own demands name; in the others it is for the sake of groups above it, or because it
    /// requests nothing.
    named: BTreeSet<usize>,
    /// Is it in the tree of cpusets?
    pub has_cpuset: bool,
    /// The unit that it is in: a group for some of the unit's processes, which its drop-in file has.
    pub unit: Option<&'d UnitName>,
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
    let divided = Divided::of(desired);
    let units = desired.units();
    let mut homes: Vec<Home<'d>> = Vec::with_capacity(desired.groups.len());
    let mut of_units: HashMap<&GroupName, usize> = HashMap::new();
    for group in &desired.groups {
        // a unit comes before what is in it
        let above = units.above(group).and_then(|(above, name)| Some((of_units.get(&above.name)?, name)));
        let home = match above {
            Some((above, name)) => in_unit(group, &homes[*above], name, observed, problems),
            None => home(group, &divided, observed, problems),
        };
        if group.demands.unit.is_some() {
            of_units.insert(&group.name, homes.len());
        }
        homes.push(home);
    }
    for (hierarchy, place) in below_limits(&homes, observed) {
        homes[place.0].has_cpuset |= observed.hierarchy_of(Controller::Cpuset) == Some(hierarchy);
        homes[place.0].places.insert(hierarchy, place.1);
    }
    homes
}

/// The places that groups need so that what a group above them limits holds for their processes, too. Where there is
/// only v2 a group is below those above it in every respect.
fn below_limits(homes: &[Home<'_>], observed: &Observed) -> Vec<(usize, (usize, Place))> {
    let mut missing = escapes(homes, observed);
    missing.retain(|escape| !homes[escape.home].group.demands.only_named);
    missing.into_iter().map(|escape| (escape.place.hierarchy, (escape.home, escape.place))).collect()
}

/// A hierarchy in which a group is not, but one above it is by its own demands.
struct Escape {
    /// Positions among the homes.
    home: usize,
    above: usize,
    /// Where the group would be.
    place: Place,
}

fn escapes(homes: &[Home<'_>], observed: &Observed) -> Vec<Escape> {
    let mut escapes = Vec::new();
    for hierarchy in 0..observed.hierarchies.len() {
        let named = homes.iter().enumerate().filter(|(_, home)| home.named.contains(&hierarchy));
        let named: HashMap<&str, usize> = named
            .filter_map(|(index, home)| Some((home.places.get(&hierarchy)?.path.as_str(), index)))
            // in the root everybody is
            .filter(|(path, _)| !path.is_empty())
            .collect();
        if named.is_empty() {
            continue;
        }
        for (index, home) in homes
            .iter()
            .enumerate()
            .filter(|(_, home)| !home.places.contains_key(&hierarchy) && !home.is_systemds())
        {
            let Some(place) = observed.place(hierarchy, &home.group.name) else { continue };
            let cuts = place.path.rmatch_indices('/').map(|(cut, _)| &place.path[..cut]);
            if let Some(above) = cuts.filter_map(|above| named.get(above)).next() {
                escapes.push(Escape { home: index, above: *above, place });
            }
        }
    }
    escapes
}

/// Groups of libcgroup's files whose processes escape a limit of a group above them.
pub(crate) fn lints(homes: &[Home<'_>], observed: &Observed, lints: &mut Vec<Lint>) {
    let mut all: BTreeMap<usize, (usize, BTreeSet<&'static str>)> = BTreeMap::new();
    for escape in escapes(homes, observed) {
        let version = escape.place.version;
        let controllers = &observed.hierarchies[escape.place.hierarchy].controllers;
        let above = wanted(homes[escape.above].group).into_iter().map(|(controller, _)| controller);
        let names = above.filter(|controller| controllers.contains(controller));
        let names = names.filter_map(|controller| controller.name(version));
        all.entry(escape.home).or_insert_with(|| (escape.above, BTreeSet::new())).1.extend(names);
    }
    for (home, (above, names)) in all.into_iter().filter(|(_, (_, names))| !names.is_empty()) {
        let (group, above) = (homes[home].group, &homes[above].group.name);
        let list: Vec<&str> = names.into_iter().collect();
        let message = format!(
            "group '{}' is not in {}, so its processes escape what group '{above}' limits there",
            group.name,
            list.join(", ")
        );
        let sections: Vec<String> = list.iter().map(|name| format!("{name} {{}}")).collect();
        let hint = format!("add {} to group {}", sections.join(" "), group.name);
        lints.push(Lint::new(LintKind::Escape, Some(&group.name), message).at(&group.origin).hint(hint));
    }
}

/// A unit has one directory, which systemd makes.
fn of_unit<'d>(
    group: &'d Group,
    place: Option<Place>,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Home<'d> {
    let named: BTreeSet<usize> = place.iter().map(|place| place.hierarchy).collect();
    for (controller, origin) in wanted(group) {
        let hierarchy = observed.hierarchy_of(controller);
        if place.is_some() && hierarchy.is_none_or(|at| !named.contains(&at)) {
            let (group, controller) = (group.name.to_string(), any_name(controller).to_owned());
            problems.push(Problem::NoController { group, controller, origin });
        }
    }
    let places = place.into_iter().map(|place| (place.hierarchy, place)).collect();
    Home { group, places, named, has_cpuset: has_cpuset(&group.demands), unit: None }
}

/// A group in a unit is where that is.
fn in_unit<'d>(
    group: &'d Group,
    above: &Home<'d>,
    name: &str,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Home<'d> {
    let below = |place: &Place| Place { path: group_path::join(&place.path, name), ..place.clone() };
    let unit = above.group.demands.unit.as_ref().map(|unit| &unit.value);
    Home { unit, ..of_unit(group, above.places.values().next().map(below), observed, problems) }
}

fn home<'d>(
    group: &'d Group,
    divided: &Divided,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Home<'d> {
    if let Some(unit) = &group.demands.unit {
        return of_unit(group, unit_place::place(group, unit, observed, problems), observed, problems);
    }
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
    let named = at.clone();
    if is_elastic(&group.demands) {
        at.extend(counted(observed));
    }
    let v2 = observed.hierarchies.iter().position(|at| at.version == Version::V2);
    let requests_nothing = at.is_empty();
    at.extend(v2.filter(|_| requests_nothing));
    // the core's files are v2's first
    if requests_nothing && !(core && v2.is_some()) || !group.demands.only_named && !divided.has(&group.name) {
        at.extend(shared(observed).filter(|at| !observed.hierarchies[*at].is_closed));
    }
    if at.is_empty() {
        let takes_tasks = |at: &usize| {
            let controllers = &observed.hierarchies[*at].controllers;
            !controllers.is_empty() && !controllers.contains(&Controller::Cpuset)
        };
        at.extend((0..observed.hierarchies.len()).filter(takes_tasks));
    }
    let places = at.into_iter().filter_map(|at| Some((at, observed.place(at, &group.name)?))).collect();
    Home { group, places, named, has_cpuset: has_cpuset(&group.demands), unit: None }
}

fn is_elastic(demands: &Demands) -> bool {
    let is_elastic = |cpus: &CpuDemand| *cpus == CpuDemand::General || cpus.elastic().is_some();
    let is_range =
        |assigned: &layout::Assigned| assigned.most.is_some() && assigned.found.setting.name == layout::QUOTA;
    demands.cpus.as_ref().is_some_and(|cpus| is_elastic(&cpus.value)) || demands.settings.iter().any(is_range)
}

/// Where v1 counts the CPU time by which a group is resized.
fn counted(observed: &Observed) -> Option<usize> {
    observed.hierarchies.iter().position(|at| at.controllers.contains(&Controller::Cpuacct))
}

/// Controllers that a group needs, each with where that was said; without the core, which is everywhere.
fn wanted(group: &Group) -> Vec<(Controller, Origin)> {
    let demands = &group.demands;
    let mut wanted: Vec<(Controller, Origin)> = Vec::new();
    if has_cpuset(demands) {
        let requested = demands.cpus.as_ref().map(|cpus| &cpus.origin);
        let requested = requested.or(demands.mems.as_ref().map(|mems| &mems.origin));
        wanted.push((Controller::Cpuset, requested.unwrap_or(&group.origin).clone()));
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

/// The v1 hierarchies that every group is in, whatever it sets, so that its processes are one set as on v2. Left out are:
/// - cpuset: a list that is filled in does not follow the group above, and keeps it from shrinking;
/// - devices: the kernel refuses a rule for all devices in a group with groups below;
/// - cpu on a kernel with real-time budgets: a group without one refuses real-time tasks.
fn shared(observed: &Observed) -> impl Iterator<Item = usize> {
    let all = observed.hierarchies.iter().enumerate();
    let is_shared = |at: &SeenHierarchy| {
        is_shared(at.version, &at.controllers)
            || at.version == Version::V1 && observed.no_realtime_budgets && is_of_cpu(&at.controllers)
    };
    all.filter(move |(_, at)| is_shared(at)).map(|(index, _)| index)
}

/// Is every group of a layout in a hierarchy with these controllers, on any kernel?
pub fn is_shared(version: Version, controllers: &[Controller]) -> bool {
    let refuses = [Controller::Cpuset, Controller::Cpu, Controller::Devices];
    version == Version::V1
        && !controllers.is_empty()
        && !refuses.iter().any(|controller| controllers.contains(controller))
}

fn is_of_cpu(controllers: &[Controller]) -> bool {
    let refuses = [Controller::Cpuset, Controller::Devices];
    controllers.contains(&Controller::Cpu) && !refuses.iter().any(|other| controllers.contains(other))
}

/// The groups into which rules put processes for some controllers only; for the others the processes are elsewhere.
struct Divided {
    named: HashSet<GroupName>,
    /// The text before the first code of each name with codes.
    begin: Vec<String>,
}

impl Divided {
    fn of(desired: &Desired) -> Divided {
        let targets = desired.rules.iter().flat_map(|rule| &rule.targets);
        let of_some = targets.filter(|target| matches!(target.controllers, Controllers::These(_)));
        let mut divided = Divided { named: HashSet::new(), begin: Vec::new() };
        for target in of_some {
            match (target.group.name(), target.group.parts().first()) {
                (Some(name), _) => _ = divided.named.insert(name),
                (None, Some(Part::Text(begin))) => divided.begin.push(begin.clone()),
                (None, _) => divided.begin.push(String::new()),
            }
        }
        divided
    }

    fn has(&self, name: &GroupName) -> bool {
        self.named.contains(name) || {
            let text = name.to_string();
            self.begin.iter().any(|begin| text.starts_with(begin.as_str()))
        }
    }
}

fn any_name(controller: Controller) -> &'static str {
    controller.name(Version::V2).or(controller.name(Version::V1)).unwrap_or("core")
}

impl Home<'_> {
    /// Does systemd make and remove its directory, or the one that it is in?
    pub(crate) fn is_systemds(&self) -> bool {
        self.group.demands.unit.is_some() || self.unit.is_some()
    }

    /// Where a setting of the group lives: with its controller; the core's in the first directory whose version has
    /// the file, v2's before v1's.
    pub(crate) fn place_of(&self, found: &NamedSetting, observed: &Observed) -> Option<&Place> {
        match found.setting.controller {
            Controller::Core => {
                let has = |place: &&Place| matches!(found.side(place.version), Side::Has(_));
                // cgroup.clone_children is about v1's cpusets alone
                let of_cpusets = observed.hierarchy_of(Controller::Cpuset);
                let of_cpusets = of_cpusets.and_then(|at| self.places.get(&at)).filter(has);
                let all = || self.places.values().rev().find(has).or(self.places.values().next());
                let of_v2 = self.places.values().find(|place| place.version == Version::V2).filter(has);
                of_v2.or(of_cpusets).or_else(all)
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
                let action = Action::CreateGroup { place: place.clone() };
                steps.push(Step::new((*group).clone(), action, why));
            }
            if let Some((names, group)) = ground.handed.get(path) {
                steps.extend(hand_down(place, names, group, observed, problems));
            }
        }
    }
    steps
}

/// The directories of a group of a layout, its own only.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The group.
    pub group: GroupName,
    /// Its directories, by hierarchy.
    pub places: Vec<Place>,
    /// Those of them that its own demands name.
    pub named: Vec<Place>,
}

/// The directories of each group of a layout.
pub fn places(desired: &Desired, observed: &Observed) -> Vec<Placed> {
    let homes = homes(desired, observed, &mut Vec::new());
    let placed = |home: Home<'_>| {
        let named = home.places.iter().filter(|(at, _)| home.named.contains(*at));
        Placed {
            group: home.group.name.clone(),
            named: named.map(|(_, place)| place.clone()).collect(),
            places: home.places.into_values().collect(),
        }
    };
    homes.into_iter().map(placed).collect()
}

/// v2: the controllers that each directory hands down for the layout's groups.
pub(crate) fn handed(homes: &[Home<'_>], observed: &Observed) -> BTreeMap<Place, BTreeSet<String>> {
    let mut all: BTreeMap<Place, BTreeSet<String>> = BTreeMap::new();
    for (hierarchy, at) in observed.hierarchies.iter().enumerate() {
        for (path, (names, _)) in ground(homes, observed, hierarchy).handed {
            let place = Place { hierarchy, path: path.join("/"), version: at.version };
            all.entry(place).or_default().extend(names.iter().map(|name| (*name).to_owned()));
        }
    }
    all
}

fn ground<'d>(homes: &[Home<'d>], observed: &Observed, hierarchy: usize) -> Ground<'d> {
    let mut ground = Ground::default();
    let at = &observed.hierarchies[hierarchy];
    for home in homes.iter().filter(|home| !home.is_systemds()) {
        let Some(place) = home.places.get(&hierarchy) else { continue };
        let parts: Vec<String> = group_path::names(&place.path).map(str::to_owned).collect();
        // our groups' own place exists
        let above = if home.group.name.is_from_root() { 0 } else { group_path::names(&at.base).count() };
        for length in above + 1..=parts.len() {
            ground.made.entry(parts[..length].to_vec()).or_insert(&home.group.name);
        }
        if at.version == Version::V1 || parts.is_empty() {
            continue;
        }
        let mounted = |controller: &Controller| at.controllers.contains(controller);
        let wanted = wanted(home.group).into_iter().map(|(controller, _)| controller).filter(mounted);
        let names: Vec<&'static str> = wanted.filter_map(|controller| controller.name(Version::V2)).collect();
        for length in above..parts.len() {
            let entry = ground.handed.entry(parts[..length].to_vec());
            let (all, _) = entry.or_insert_with(|| (BTreeSet::new(), home.group));
            all.extend(names.iter().copied());
        }
    }
    ground
}

/// v2: the controllers that a directory hands down now, if that was looked at.
pub(crate) fn handed_down<'o>(observed: &'o Observed, place: &Place) -> Option<Vec<&'o str>> {
    Some(observed.file(place, "cgroup.subtree_control")?.split_whitespace().collect())
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
    let enabled = handed_down(observed, &place).unwrap_or_default();
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
    // where nothing was read, the problem of the group above is reported first
    let lacking = words("cgroup.controllers")
        .and_then(|there| missing.iter().find(|name| !there.contains(&name.as_str())).cloned());
    if let Some(controller) = lacking.filter(|_| seen.is_some_and(|_| is_base(&place, observed))) {
        problems.push(Problem::Refused {
            message: format!(
                "{shown} is not given the controller {controller}, which group '{}' needs",
                group.name
            ),
            origin: group.origin.clone(),
            hint: "see ringfence doctor".to_owned(),
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
            hint: format!("move them into a group of their own below /{} first", place.path),
            version: Version::V2,
        });
    }
    let why = format!("hands {} to the groups in it", missing.join(", "));
    Some(Step::new(group.name.clone(), Action::EnableControllers { place, names: missing }, why))
}

/// Is it the place our groups live in, whose controllers others decide?
fn is_base(place: &Place, observed: &Observed) -> bool {
    observed.hierarchies.get(place.hierarchy).is_some_and(|at| at.base == place.path || place.path.is_empty())
}

/// Does a cpuset matter to a group with these demands?
pub(crate) fn has_cpuset(demands: &Demands) -> bool {
    let cpuset = Subsystem::Controller(Controller::Cpuset);
    demands.cpus.is_some()
        || demands.mems.is_some()
        || demands.exclusive
        || demands.controllers.iter().any(|named| named.value == cpuset)
        || demands.settings.iter().any(|assigned| assigned.found.setting.controller == Controller::Cpuset)
}
