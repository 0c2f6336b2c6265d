//! The plan for a layout on this machine as it is now: what `plan` decides from what is observed here, what earlier
//! layouts in effect left, and the processes that have to follow their groups into further hierarchies. Only reads.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kernel::{Change, GroupName, Hierarchy, Host, Seat};
use layout::{Desired, Group, Origin, UnitName};
use plan::{
    Action, Coverage, Expansion, Inside, Lint, LintKind, Observed, Outsider, People, Place, Placed, Plan,
    Problem, SeenUnit, Step,
};
use settings::{Facts, Version};
use topology::Machine;
use units::{CpuSet, group_path, hint::Command};

use crate::{
    Earlier, Target,
    inside::Divided,
    isolation,
    leftovers::{foresee, leftovers, lists_behind, of_partition, widen},
    membership::{Membership, Thread, is_chosen, may_leave, of_members, outsiders},
    observe::{hierarchies, observe, observe_all_owners},
    unit_files::has_own_file,
};

/// What has to be done for a configuration on this machine as it is now: looks at what the planner needs, and plans.
/// What `earlier` layouts changed and this one does not decide about goes back.
///
/// # Errors
/// Why this machine can't satisfy it.
pub fn planned(
    target: Target<'_>,
    earlier: &Earlier,
    desired: &Desired,
    machine: &Machine,
    facts: &dyn Facts,
    people: &dyn People,
) -> Result<Plan, Vec<Problem>> {
    let foreign: Vec<Problem> = foreign(desired).chain(named_as_units(target.host, desired)).collect();
    if !foreign.is_empty() {
        return Err(foreign);
    }
    let mut expansion = expansion(target, desired)?;
    let all = planned_for(target, earlier, &expansion, machine, facts, people)?;
    let later = limited_by_template(target, &expansion.desired, &all);
    if later.is_empty() {
        return Ok(all);
    }
    let is_in_one = |group: &Group| {
        let mut above = group_path::ancestors(group.name.path());
        above.any(|above| later.iter().any(|later| later.path() == above))
    };
    let groups = &mut expansion.desired.to_mut().groups;
    groups.retain(|group| !later.contains(&group.name) && !is_in_one(group));
    planned_for(target, earlier, &expansion, machine, facts, people)
}

/// Groups in services that drop-in files will no longer have.
fn ended_inside(steps: &[Step]) -> Vec<Place> {
    let ended = steps.iter().filter_map(|step| {
        let Action::WriteDropIn { place, text, .. } = &step.action else { return None };
        let was = Inside::of_text(step.before.as_deref()?)?;
        let now = text.as_deref().and_then(Inside::of_text).unwrap_or_default();
        let gone = was.groups.into_keys().filter(move |name| !now.groups.contains_key(name));
        Some(gone.map(|name| Place { path: group_path::join(&place.path, &name), ..place.clone() }))
    });
    ended.flatten().collect()
}

/// Groups of units that started after the drop-in file of their template was written, which gives them what this plan would: nothing is to be
/// done for these. Where the file is to change, they are groups as the others are, so that a limit below the use is refused.
fn limited_by_template(target: Target<'_>, desired: &Desired, plan: &Plan) -> BTreeSet<GroupName> {
    let is_changed = |name: &str| {
        let mut steps = plan.steps.iter();
        steps.any(|step| matches!(&step.action, Action::WriteDropIn { unit, .. } if unit == name))
    };
    let units =
        || desired.groups.iter().filter_map(|group| Some((group, &group.demands.unit.as_ref()?.value)));
    let templates = units().filter(|(_, unit)| unit.is_template() && !is_changed(unit.as_str()));
    let patterns: Vec<UnitName> =
        templates.filter_map(|(_, unit)| UnitName::of_file_name(unit.as_str()).ok()).collect();
    let files = target.system.unit_files();
    let has_own = |unit: &UnitName| has_own_file(files, unit.as_str());
    let later = units().filter(|(_, unit)| {
        !unit.is_template() && patterns.iter().any(|pattern| pattern.fits(unit.as_str())) && !has_own(unit)
    });
    // without the daemon nobody divided it when it started
    let is_divided = |place: &Place, text: &str| {
        let Some(at) = target.host.hierarchies().get(place.hierarchy) else { return true };
        let service = Divided::new(target.host, at, &place.path);
        service.is_none_or(|service| Inside::of_text(text).is_none_or(|inside| service.is_made(&inside)))
    };
    // somebody may have given it something else since
    let is_as_wanted = |group: &&Group| {
        let is_of_it = |name: &GroupName| group_path::is_at_or_below(name.path(), group.name.path());
        let mut of_it = plan.steps.iter().filter(|step| is_of_it(&step.group));
        of_it.all(|step| match &step.action {
            Action::WriteDropIn { place, text, .. } => {
                text.as_deref().is_none_or(|text| is_divided(place, text))
            }
            _ => false,
        })
    };
    later.map(|(group, _)| group).filter(is_as_wanted).map(|group| group.name.clone()).collect()
}

/// The plan for a layout with a group for each unit.
fn planned_for(
    target: Target<'_>,
    earlier: &Earlier,
    expansion: &Expansion<'_>,
    machine: &Machine,
    facts: &dyn Facts,
    people: &dyn People,
) -> Result<Plan, Vec<Problem>> {
    let desired = &*expansion.desired;
    let units = units(target, earlier, desired).map_err(|problem| vec![problem])?;
    let needs = plan::needs(desired, &Observed { units: Some(units.clone()), ..hierarchies(target) });
    let devices = plan::devices(desired);
    let mut observed = observe(target, &needs, devices.iter().map(String::as_str));
    observed.units = Some(units);
    observed.elastic = earlier.elastic();
    observed.ranges = earlier.ranges();
    observed.history = earlier.history();
    let given = earlier.knobs();
    let rows = plan::knobs_of(desired);
    let seen = isolation::look(target, &rows, &given);
    if !rows.is_empty() {
        observed.knobs = Some(seen.clone());
        observed.command_line = Some(target.system.knobs().command_line());
    }
    if plan::first_cpuset(desired, &observed).is_some() {
        observed.pinned_units = target.system.unit_files().pinned();
    }
    let mut back = Default::default();
    if !earlier.stayed.is_empty() {
        observe_all_owners(target, &needs, &mut observed);
    }
    if !earlier.is_empty() {
        let covered = plan::coverage(desired, machine, &observed, facts, people);
        let mut exclusive = CpuSet::new();
        let mut alone = Plan::default();
        if earlier.has_cpusets() {
            let freed = freed(&observed, &covered);
            alone = plan::plan(desired, machine, &freed, facts, people)?;
            let own = alone.assignments.iter().filter(|assignment| assignment.exclusive);
            exclusive = own.filter_map(|own| own.cpus.as_ref()).fold(exclusive, |all, cpus| all.union(cpus));
        }
        back = leftovers(earlier, target, &covered, &alone, &|_: &Place| exclusive.clone());
        foresee(&mut observed, &back.before);
        for place in &back.exclusive {
            let seen = observed.hierarchies.get_mut(place.hierarchy);
            if let Some(group) = seen.and_then(|at| at.groups.get_mut(&place.path)) {
                group.exclusive_by_layouts = true;
            }
        }
        for ((place, file), text) in &back.lists {
            let seen = observed.hierarchies.get_mut(place.hierarchy);
            if let Some(group) = seen.and_then(|at| at.groups.get_mut(&place.path)) {
                group.lists_before.insert(file.clone(), text.clone());
            }
        }
    }
    let mut plan = plan::plan(desired, machine, &observed, facts, people)?;
    let (knobs_before, knobs_behind, stays) =
        isolation::leftovers(target, &given, plan.upkeep.isolation.as_ref(), &seen);
    plan.steps.splice(0..0, knobs_before.into_iter().chain(back.before));
    bring_processes(target, desired, &observed, &mut plan);
    let behind = lists_behind(target, &back.below, &plan);
    plan.steps.extend(behind);
    plan.steps.extend(back.after);
    plan.steps.extend(knobs_behind);
    let narrow = isolation::narrow_threads(target, &given, &plan);
    plan.steps.splice(0..0, narrow);
    plan.lints.extend(stays);
    plan.lints.extend(expansion.lints.iter().cloned());
    plan.lints.extend(back.lints);
    plan.dropped = back.dropped;
    // such a group goes with the file that describes it, whatever it is given before
    let ended = ended_inside(&plan.steps);
    plan.steps.retain(|step| step.action.place().is_none_or(|place| !ended.contains(place)));
    plan.dropped.gone.extend(ended);
    plan.decided = earlier.news(plan.decided, &observed.elastic);
    Ok(plan)
}

/// The units that the layout's groups are, and, if it is the whole layout, those with a drop-in file of ours, which it
/// may no longer name.
fn units(
    target: Target<'_>,
    earlier: &Earlier,
    desired: &Desired,
) -> Result<BTreeMap<String, SeenUnit>, Problem> {
    let files = target.system.unit_files();
    let named = plan::units(desired);
    let with_file = if earlier.is_of_whole() { files.drop_ins() } else { Vec::new() };
    let history = earlier.history();
    let is_other = |text: String| plan::is_of_other_history(&text, history.as_deref());
    let is_ours = |text: String| plan::is_drop_in(&text) && !is_other(text);
    let own = with_file.iter().filter(|(_, path)| files.read(path).is_none_or(is_ours));
    let with_file = own.filter_map(|(unit, _)| UnitName::of_directory(unit).ok());
    let mut all: BTreeSet<UnitName> = with_file.collect();
    all.extend(named.into_iter().cloned());
    let all: Vec<&UnitName> = all.iter().collect();
    if all.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut seen = files.units(&all).map_err(|error| no_answer(desired, &error))?;
    for seen in seen.values_mut() {
        seen.others = of_others(seen, earlier);
    }
    Ok(seen)
}

/// What is in a unit's drop-in file that no plan may replace.
fn of_others(seen: &SeenUnit, earlier: &Earlier) -> Option<String> {
    let (text, file) = (seen.text.as_ref()?, &seen.drop_in);
    if !plan::is_drop_in(text) {
        return Some(format!("{file} exists and Ringfence did not write it"));
    }
    if plan::is_of_other_history(text, earlier.history().as_deref()) {
        let first = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        return earlier.is_of_whole().then(|| format!("{file} is of another history of Ringfence: {first}"));
    }
    (!earlier.wrote(Path::new(file), text))
        .then(|| format!("{file} was changed since it was applied, and its lines would be lost"))
}

/// The layout with a group for each unit that fits a pattern, where systemd runs, and with what power saving requests.
///
/// # Errors
/// systemd does not answer, or a unit is bound twice.
pub fn expansion<'d>(target: Target<'_>, desired: &'d Desired) -> Result<Expansion<'d>, Vec<Problem>> {
    let patterns = plan::patterns(desired);
    let fitting = match patterns.is_empty() {
        true => None,
        false => {
            target.system.unit_files().fitting(&patterns).map_err(|error| vec![no_answer(desired, &error)])?
        }
    };
    let mut expansion = match fitting {
        Some(units) => plan::expand(desired, &units)?,
        None => Expansion { desired: Cow::Borrowed(desired), lints: Vec::new() },
    };
    if let Cow::Owned(with_general) = plan::with_general(&expansion.desired) {
        expansion.desired = Cow::Owned(with_general);
    }
    Ok(expansion)
}

/// systemd does not say what it knows of the layout's units.
fn no_answer(desired: &Desired, error: &kernel::Error) -> Problem {
    let of_unit = desired.groups.iter().find_map(|group| group.demands.unit.as_ref());
    Problem::Refused {
        message: error.to_string(),
        origin: of_unit.map_or_else(|| Origin::outside_files("<units>"), |unit| unit.origin.clone()),
        hint: error.hint().unwrap_or_else(|| "systemctl status".to_owned()),
        version: Version::V2,
    }
}

/// Groups of a layout that somebody else manages, which no plan changes.
pub fn foreign(desired: &Desired) -> impl Iterator<Item = Problem> {
    desired.groups.iter().filter_map(|group| {
        let demands = &group.demands;
        let cpus = demands.cpus.as_ref().map(|_| ("cpuset.cpus", String::new()));
        let mems = demands.mems.as_ref().map(|_| ("cpuset.mems", String::new()));
        let settings = || {
            let assigned = demands.settings.iter();
            let assigned = assigned.map(|assigned| (assigned.found.setting.name, assigned.text.clone()));
            assigned.chain(cpus.clone()).chain(mems.clone()).collect()
        };
        let error = kernel::refuse_foreign(&group.name, Change::Settings(&settings)).err()?;
        let kernel::Error::Foreign { owner, hint, .. } = error else { return None };
        let message = format!("it belongs to {owner}, which would undo the change or be broken by it");
        let (group, origin) = (group.name.to_string(), group.origin.clone());
        Some(Problem::Value { group, message, origin, hint: Some(hint) })
    })
}

/// Groups that have the names of systemd's, as files have them that cgsnapshot wrote on a systemd host: below our unit they would be
/// copies that limit nothing. One of each tree is enough to say so.
fn named_as_units<'d>(host: &Host, desired: &'d Desired) -> impl Iterator<Item = Problem> + use<'d> {
    let is_copy = |group: &&Group| {
        let is_below = host.needs_unit() && group.demands.unit.is_none() && !group.name.is_from_root();
        is_below && group_path::names(group.name.path()).next().is_some_and(kernel::is_unit_name)
    };
    let mut trees: BTreeMap<&'d str, &'d Group> = BTreeMap::new();
    for group in desired.groups.iter().filter(is_copy) {
        trees.entry(group_path::names(group.name.path()).next().unwrap_or_default()).or_insert(group);
    }
    trees.into_values().map(|group| {
        let message = "its name is one of systemd's, and below ringfence.service it would be another group, \
                       without the unit's processes";
        let hint = "a layout limits a unit by unit = \"NAME.service\"; leave out what systemd makes itself";
        Problem::Value {
            group: group.name.to_string(),
            message: message.to_owned(),
            origin: group.origin.clone(),
            hint: Some(hint.to_owned()),
        }
    })
}

/// As if no group that the layout does not decide about had CPUs: which ones are exclusive does not depend on those.
fn freed(observed: &Observed, covered: &Coverage) -> Observed {
    let mut freed = observed.clone();
    for (hierarchy, at) in freed.hierarchies.iter_mut().enumerate() {
        let version = at.version;
        let is_parent = |place: &Place| covered.parents.contains(place);
        let stays = |place: &Place| covered.groups.contains(place) && !is_parent(place);
        let place = |path: &str| Place { hierarchy, path: path.to_owned(), version };
        let ending = at.groups.keys().filter(|path| !path.is_empty() && !stays(&place(path)));
        let ending = ending.filter_map(|path| Some((path.clone(), of_partition(at, path)?)));
        let ending: Vec<(String, CpuSet)> = ending.collect();
        for (path, group) in at.groups.iter_mut().filter(|(path, _)| !path.is_empty()) {
            let place = place(path);
            let parent = is_parent(&place);
            if stays(&place) {
                continue;
            }
            for (file, text) in &mut group.files {
                match file.as_str() {
                    "cpuset.mems" if parent => text.clear(),
                    "cpuset.cpus" | "cpuset.cpus.exclusive" => text.clear(),
                    "cpuset.cpu_exclusive" => "0".clone_into(text),
                    "cpuset.cpus.partition" => "member".clone_into(text),
                    _ => {}
                }
            }
        }
        ending.iter().for_each(|(path, cpus)| widen(at, path, cpus));
    }
    freed
}

/// The directories of many groups, with few looks: some were seen before, and most hierarchies lack the groups' parent.
struct Directories<'h> {
    host: &'h Host,
    observed: &'h Observed,
    /// Does a group's parent exist, by hierarchy.
    parents: Vec<BTreeMap<String, bool>>,
}

impl<'h> Directories<'h> {
    fn new(host: &'h Host, observed: &'h Observed) -> Directories<'h> {
        Directories { host, observed, parents: vec![BTreeMap::new(); host.hierarchies().len()] }
    }

    fn seats(&mut self, group: &GroupName) -> Vec<Seat<'h>> {
        let host = self.host;
        let seats = host.hierarchies().iter().map(|at| host.seat_in(at, group));
        seats.filter(|seat| self.exists(seat)).collect()
    }

    fn exists(&mut self, seat: &Seat<'_>) -> bool {
        let seen = self.observed.hierarchies.get(seat.at.id);
        seen.is_some_and(|seen| seen.groups.contains_key(&seat.path))
            || self.has_parent(seat) && self.host.kernel().exists(seat.at, &seat.path)
    }

    fn has_parent(&mut self, seat: &Seat<'_>) -> bool {
        let Some(parent) = group_path::parent(&seat.path) else { return true };
        let known = &mut self.parents[seat.at.id];
        if let Some(exists) = known.get(parent) {
            return *exists;
        }
        let exists = self.host.kernel().exists(seat.at, parent);
        known.insert(parent.to_owned(), exists);
        exists
    }
}

/// How often a group's directories are read again whose processes end before they can be looked at.
const LOOKS: usize = 64;

/// Processes of a group that are not in each of its directories: a limit there would not hold for them.
fn bring_processes(target: Target<'_>, desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let host = target.host;
    let is_v1 = |at: &Hierarchy| at.version == Version::V1 && !at.controllers.is_empty();
    if host.hierarchies().len() < 2 && !host.hierarchies().iter().any(is_v1) {
        return;
    }
    let all = plan::places(desired, observed);
    let mut directories = Directories::new(host, observed);
    let seats = all.iter().map(|placed| (placed, directories.seats(&placed.group)));
    // where its only directory is all that the layout wants nobody can be in a part of it, but for threads
    let is_whole = |own: &[Place], seats: &[Seat<'_>]| match seats {
        [] => true,
        [seat] => {
            !is_v1(seat.at)
                && own.iter().all(|place| (place.hierarchy, &place.path) == (seat.at.id, &seat.path))
        }
        _ => false,
    };
    let existing: Vec<_> = seats.filter(|(placed, seats)| !is_whole(&placed.places, seats)).collect();
    if existing.is_empty() {
        return;
    }
    // v2 takes no process beside groups that have controllers
    let on_v2 = all.iter().flat_map(|placed| &placed.places).filter(|place| place.version == Version::V2);
    let above = |place: &Place| group_path::ancestors(&place.path).map(str::to_owned).collect::<Vec<_>>();
    let parents: BTreeSet<String> = on_v2.flat_map(above).collect();
    let takes_tasks = |place: &&Place| place.version == Version::V1 || !parents.contains(&place.path);
    let mut membership = Membership::scan(host);
    for (Placed { group, places: own, named }, mut seats) in existing {
        // the scan covers the other hierarchies: reading cgroup.procs in each takes as long as all else
        let is_named = |seat: &Seat<'_>| named.iter().any(|place| place.hierarchy == seat.at.id);
        match seats.iter().any(is_named) {
            true => seats.retain(is_named),
            false => seats.truncate(1),
        }
        let _ = (0..LOOKS).any(|_| membership.add_listed(host, group, &seats).is_empty());
        let threads = of_members(host, &membership, group, own);
        let mut others: BTreeMap<(u32, String), Vec<&Place>> = BTreeMap::new();
        for place in own.iter().filter(takes_tasks) {
            let tasks = alive_outside(target, &mut membership, &threads, (group, &seats, place));
            let at = &host.hierarchies()[place.hierarchy];
            if !tasks.is_empty() {
                let why = format!(
                    "they are in the group elsewhere, and what {} limits holds for them only there",
                    at.label()
                );
                let action = Action::MoveTasks { place: place.clone(), tasks };
                plan.steps.push(Step::new(group.clone(), action, why));
            }
            let mut outside = membership.outside(host, group, place);
            let counts = |from: &str| named.contains(place) || is_chosen(host, at, from);
            outside.retain(|(_, from)| !may_leave(host, from, place) && counts(from));
            for (pid, from) in outside {
                others.entry((pid, host.named(at, &from))).or_default().push(place);
            }
        }
        for ((pid, from), places) in others {
            let (labels, noun) = of_hierarchies(host, &places);
            let message = format!(
                "process {pid} of group '{group}' is in group '{from}' of the {labels} {noun} and stays there: what the layout limits there does not hold for it"
            );
            let other = all.iter().find(|other| other.group.to_string() == from);
            let hint = back_together(host, pid, (group, own), other);
            plan.lints.push(Lint::new(LintKind::Outside, Some(group), message).hint(hint));
        }
    }
}

fn of_hierarchies(host: &Host, places: &[&Place]) -> (String, &'static str) {
    let labels = places.iter().filter_map(|place| host.hierarchies().get(place.hierarchy));
    let labels: Vec<String> = labels.map(Hierarchy::label).collect();
    (labels.join(", "), if labels.len() == 1 { "hierarchy" } else { "hierarchies" })
}

/// The processes of a group that a step would move into a place, whole or some of their threads, looked at again as long as all processes that were seen ended.
fn alive_outside(
    target: Target<'_>,
    membership: &mut Membership,
    threads: &BTreeMap<u32, Vec<Thread>>,
    (group, seats, place): (&GroupName, &[Seat<'_>], &Place),
) -> Vec<Outsider> {
    let mut found = outsiders(target, membership, threads, (group, place));
    for _ in 0..LOOKS {
        if !found.alive.is_empty() || found.ended.is_empty() {
            break;
        }
        membership.forget(&found.ended);
        membership.add_listed(target.host, group, seats);
        found = outsiders(target, membership, threads, (group, place));
    }
    // a process whose threads alone come is one, however many these are
    let mut processes = found.alive;
    for (process, thread) in found.threads {
        if processes.iter().all(|one| one.thread != process) {
            processes.push(Outsider { thread: process, ..thread });
        }
    }
    processes
}

/// The commands that bring a process into one group in all hierarchies: this one, or the `other` of the layout, where
/// somebody moved it in one of them.
fn back_together(
    host: &Host,
    pid: u32,
    (group, own): (&GroupName, &[Place]),
    other: Option<&Placed>,
) -> String {
    let to = |group: &GroupName| Command::ringfence("move").group(group).arg(pid.to_string()).to_string();
    let Some(Placed { group: other, places: others, .. }) = other else { return to(group) };
    let is_in = |places: &[Place], at: &Hierarchy| places.iter().any(|place| place.hierarchy == at.id);
    let rest = host.hierarchies().iter().filter(|at| is_in(own, at) && !is_in(others, at));
    let labels: Vec<String> = rest.map(Hierarchy::label).collect();
    if labels.is_empty() {
        return to(other);
    }
    // it is still in this group where the other is not
    let create = Command::ringfence("create").group(other).arg("--controllers").arg(labels.join(","));
    format!("{create} && {}", to(other))
}
