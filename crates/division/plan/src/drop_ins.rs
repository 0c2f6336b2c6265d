//! What a unit's drop-in file says, and in which order it and the group's own files
//! are written. systemd sets what the file says whenever it starts the unit or reads its files again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use layout::{Desired, Group, Origin, Spanned, UnitName};
use settings::{Controller, GroupName, Version};
use units::{group_path, hint::Command};

use crate::{
    Action, Inside, Lint, LintKind, Observed, Place, Problem, SeenUnit, Step,
    cpusets::{CPUS, PARTITION},
    decided::Wanted,
    homes::{self, Home},
    unit_partition, unit_place,
};

/// What stands at the top of each of our drop-in files, before what removes it.
const HEADER: &str = "# by ringfence, from the layout in effect; ";

/// The first line of the drop-in files of a history.
fn header(history: Option<&str>) -> String {
    let undo = Command::ringfence("undo");
    let undo = history.into_iter().fold(undo, |undo, history| undo.arg("--state").arg(history));
    format!("{HEADER}{} removes it", undo.to_string().replace('\n', " "))
}

/// Does another history's layout have that drop-in file? `history` is the directory of our own, unless it is the default.
pub fn is_of_other_history(text: &str, history: Option<&str>) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with(HEADER) && first != header(history)
}

/// Is it the text of a drop-in file that Ringfence wrote, of whichever history?
pub fn is_drop_in(text: &str) -> bool {
    text.starts_with(HEADER)
}

/// How lines of somebody's in our drop-in file go on: from a file of their own.
pub fn keep_lines(path: &Path) -> String {
    let to = path.with_file_name("50-local.conf");
    let mv = Command::new("mv -n").arg(path.to_string_lossy()).arg(to.to_string_lossy());
    format!("{mv} keeps them in force; then delete those that Ringfence wrote")
}

/// What the units' files are to say: by the unit's place.
pub(crate) struct DropIns<'h> {
    by_place: BTreeMap<Place, DropIn<'h>>,
    /// Groups in units: by their place, so that those of a unit follow each other.
    inside: BTreeMap<Place, &'h GroupName>,
}

struct DropIn<'h> {
    group: &'h GroupName,
    unit: &'h UnitName,
    text: String,
}

impl<'h> DropIns<'h> {
    /// From all that the layout wants, and not only what is to be changed.
    pub(crate) fn new(
        homes: &'h [Home<'h>],
        wanted: &[Wanted],
        observed: &Observed,
        problems: &mut Vec<Problem>,
    ) -> DropIns<'h> {
        let mut by_place = BTreeMap::new();
        let mut inside: BTreeMap<Place, &GroupName> = BTreeMap::new();
        let in_units = homes.iter().filter(|home| home.unit.is_some());
        inside.extend(
            in_units.filter_map(|home| Some((home.places.values().next()?.clone(), &home.group.name))),
        );
        let mut by_group: HashMap<&Place, Vec<&Wanted>> = HashMap::new();
        for write in wanted.iter().filter(|write| inside.contains_key(&write.place)) {
            by_group.entry(&write.place).or_default().push(write);
        }
        for home in homes {
            let (Some(unit), Some(place)) = (&home.group.demands.unit, home.places.values().next()) else {
                continue;
            };
            let seen = observed.units.as_ref().and_then(|units| units.get(unit.value.as_str()));
            let mut lines = Vec::new();
            for write in wanted.iter().filter(|write| write.place == *place) {
                let of_partition = |kind: &str| partition_line(home, place, kind, wanted, (observed, seen));
                let of_file = match write.file.as_str() {
                    PARTITION => of_partition(&write.text),
                    CPUS if observed.elastic.contains(&home.group.name.to_string()) => {
                        lines_for(&at_start(write, home, seen), seen)
                    }
                    _ => lines_for(write, seen),
                };
                match of_file {
                    Ok(of_file) => lines.extend(of_file),
                    Err((message, hint)) => problems.push(Problem::Value {
                        group: home.group.name.to_string(),
                        message,
                        origin: origin_of(home, &write.file),
                        hint: Some(hint),
                    }),
                }
            }
            for assigned in &home.group.demands.settings {
                let name = assigned.found.setting.name;
                if name.starts_with("devices.") {
                    let edit = Command::new("systemctl edit").arg(unit.value.as_str());
                    problems.push(Problem::Value {
                        group: home.group.name.to_string(),
                        message: format!(
                            "{name} of a unit is not written: systemd has the device program of its units"
                        ),
                        origin: assigned.origin.clone(),
                        hint: Some(format!("{edit}: DeviceAllow=, DevicePolicy=")),
                    });
                }
            }
            if let Some(message) = seen.and_then(|seen| seen.others.clone()) {
                problems.push(Problem::Value {
                    group: home.group.name.to_string(),
                    message,
                    origin: unit.origin.clone(),
                    hint: seen.map(|seen| keep_lines(Path::new(&seen.drop_in))),
                });
            }
            let mut section = String::new();
            if let Some(groups) = inside_of(place, &inside, &by_group) {
                problems.extend(not_dividable(home, unit, observed));
                let (own, groups) = groups.lines(&|name| seen.is_none_or(|seen| seen.knows(name)));
                lines.extend(own);
                section = groups;
            }
            let header = header(observed.history.as_deref());
            let text = format!("{header}\n[{}]\n{}\n{section}", unit.value.section(), lines.join("\n"));
            by_place.insert(place.clone(), DropIn { group: &home.group.name, unit: &unit.value, text });
        }
        let drop_ins = DropIns { by_place, inside };
        problems.extend(drop_ins.unnamed_of_others(observed));
        drop_ins
    }

    /// Files of units that the layout no longer names, in which somebody wrote.
    fn unnamed_of_others<'s>(&'s self, observed: &'s Observed) -> impl Iterator<Item = Problem> + 's {
        let others = observed.units.iter().flatten().filter(|(unit, _)| !self.names(unit));
        others.filter_map(|(unit, seen)| {
            Some(Problem::Refused {
                message: format!("the layout no longer names {unit}: {}", seen.others.as_ref()?),
                origin: Origin::outside_files("<units>"),
                hint: keep_lines(Path::new(&seen.drop_in)),
                version: Version::V2,
            })
        })
    }

    fn names(&self, unit: &str) -> bool {
        self.by_place.values().any(|drop_in| drop_in.unit.as_str() == unit)
    }

    /// Is there nothing to do about any unit?
    pub(crate) fn are_none(&self, observed: &Observed) -> bool {
        self.by_place.is_empty() && observed.units.iter().flatten().all(|(_, seen)| seen.text.is_none())
    }

    /// Puts the drop-in files among the steps: after what is written to groups that are there, so that a limit below
    /// the use is refused before systemd sets it, and before what only systemd brings about. Of a unit that does not
    /// run there is nothing but its file.
    pub(crate) fn put(
        &self,
        steps: Vec<Step>,
        decided: Vec<Step>,
        wanted: &[Wanted],
        observed: &Observed,
    ) -> (Vec<Step>, Vec<Step>) {
        let (steps, mut made) = self.made_inside(steps, observed);
        // of a unit that does not run, its start makes them
        made.retain(|step| {
            step.action.place().and_then(above).is_some_and(|unit| observed.group(&unit).is_some())
        });
        let (mut before, after) = self.around(steps, observed);
        let mut decided = self.decided(decided, wanted, observed);
        let unmade: BTreeSet<Place> =
            made.iter().filter_map(|step| step.action.place().and_then(above)).collect();
        decided.extend(self.inside.iter().map(|(place, group)| {
            let action = Action::CreateGroup { place: place.clone() };
            Step::new((*group).clone(), action, "the unit's drop-in file has it")
        }));
        decided.extend(made.into_iter().filter(|step| matches!(step.action, Action::Write { .. })));
        let mut files = Vec::new();
        for step in self.files(observed) {
            let Action::WriteDropIn { place, text, .. } = &step.action else { continue };
            // systemd knows of a value that somebody changed by it (set-property), until it reads the file again
            let is_reset = before.iter().any(|other| is_write_to(other, place));
            let is_reset = is_reset || unmade.contains(place) || self.lacks_inside(place, observed);
            if *text == step.before && !is_reset { decided.push(step) } else { files.push(step) }
        }
        before.extend(files);
        before.extend(self.unnamed(observed));
        before.extend(after);
        (before, decided)
    }

    fn is_of_unit(&self, step: &Step) -> bool {
        step.action.place().is_some_and(|place| self.by_place.contains_key(place))
    }

    /// Takes out the steps to groups in units that are made with the unit's drop-in file. What is written to files that are there
    /// stays: a limit below the use is refused.
    fn made_inside(&self, steps: Vec<Step>, observed: &Observed) -> (Vec<Step>, Vec<Step>) {
        let is_made = |step: &Step| match (&step.action, step.action.place()) {
            (action, Some(place)) if self.inside.contains_key(place) => match action {
                Action::Write { file, .. } => observed.file(place, file).is_none(),
                _ => true,
            },
            _ => false,
        };
        let (made, others) = steps.into_iter().partition(is_made);
        (others, made)
    }

    /// Is a group in a unit that runs missing?
    fn lacks_inside(&self, unit: &Place, observed: &Observed) -> bool {
        observed.group(unit).is_some()
            && below(unit, &self.inside).any(|place| observed.group(place).is_none())
    }

    /// The steps before the drop-in files, and those after: writes to files that only systemd brings about.
    fn around(&self, steps: Vec<Step>, observed: &Observed) -> (Vec<Step>, Vec<Step>) {
        let has_file = |step: &Step| match &step.action {
            Action::Write { place, file, .. } => observed.file(place, file).is_some(),
            _ => true,
        };
        let there = steps.into_iter().filter(|step| !self.is_of_unit(step) || runs(step, observed));
        there.partition(|step| !self.is_of_unit(step) || has_file(step))
    }

    /// What is so already, and what comes about when a unit starts that does not run.
    fn decided(&self, decided: Vec<Step>, wanted: &[Wanted], observed: &Observed) -> Vec<Step> {
        let mut decided: Vec<Step> =
            decided.into_iter().filter(|step| !self.is_of_unit(step) || runs(step, observed)).collect();
        let is_later = |place: &Place| self.by_place.contains_key(place) && observed.group(place).is_none();
        let later = wanted.iter().filter(|write| {
            let unit = if self.inside.contains_key(&write.place) { above(&write.place) } else { None };
            is_later(unit.as_ref().unwrap_or(&write.place))
        });
        decided.extend(later.map(|write| {
            let Wanted { group, place, file, text } = write.clone();
            let action = Action::Write { place, file, text };
            Step::new(group, action, "systemd does it when the unit starts")
        }));
        decided
    }

    /// The layout's drop-in files.
    fn files<'s>(&'s self, observed: &'s Observed) -> impl Iterator<Item = Step> + 's {
        self.by_place.iter().map(|(place, DropIn { group, unit, text })| {
            let seen = observed.units.as_ref().and_then(|units| units.get(unit.as_str()));
            let path = seen.map_or_else(|| drop_in(unit.as_str(), false), |seen| seen.drop_in.clone());
            let was = seen.and_then(|seen| seen.text.clone());
            let why = match was.as_ref() == Some(text) {
                true => "so that systemd reads it again",
                false => "so that it holds over reloads, restarts and reboots",
            };
            let action = Action::WriteDropIn {
                place: place.clone(),
                unit: unit.to_string(),
                path: path.into(),
                text: Some(text.clone()),
            };
            Step::new((*group).clone(), action, why).was(was)
        })
    }

    /// Takes away the drop-in files of units that the layout does not name.
    fn unnamed<'s>(&'s self, observed: &'s Observed) -> impl Iterator<Item = Step> + 's {
        let others = observed.units.iter().flatten().filter(|(unit, _)| !self.names(unit));
        others.filter_map(|(unit, seen)| {
            let text = seen.text.clone()?;
            let group = GroupName::new(&format!("/{}", seen.path)).ok()?;
            let hierarchy = observed.hierarchies.iter().position(|at| at.version == Version::V2);
            let action = Action::WriteDropIn {
                place: Place {
                    hierarchy: hierarchy.unwrap_or_default(),
                    path: seen.path.clone(),
                    version: Version::V2,
                },
                unit: unit.clone(),
                path: seen.drop_in.clone().into(),
                text: None,
            };
            let step = Step::new(group, action, "the layout does not name the unit").was(Some(text));
            Some(Step { restores: true, ..step })
        })
    }

    /// The units whose processes lose their CPUs when the first group gets CPUs of its own.
    pub(crate) fn lints(&self, desired: &Desired, observed: &Observed, lints: &mut Vec<Lint>) {
        let Some(group) = first_cpuset(desired, observed).filter(|_| !observed.pinned_units.is_empty())
        else {
            return;
        };
        let affected = observed.pinned_units.join(", ");
        let message = format!(
            "the controller cpuset comes on at the top, which before Linux 6.2 gives all CPUs to processes that a unit's CPUAffinity= keeps on some: {affected}"
        );
        let restart =
            Command::new("systemctl restart").args(observed.pinned_units.iter().map(String::as_str));
        let hint = format!("{restart} pins them again");
        lints.push(Lint::new(LintKind::Affinity, Some(&group.name), message).hint(hint));
    }
}

/// The CPUs of an elastic unit at its start: those that the file has, as long as the layout allows that many; of a general one
/// all. What its load made of them since then is no reason to write the file again.
fn at_start(write: &Wanted, home: &Home<'_>, seen: Option<&SeenUnit>) -> Wanted {
    let bounds = home.group.demands.cpus.as_ref().and_then(|cpus| cpus.value.elastic());
    let lines = seen.and_then(|seen| seen.text.as_deref()).unwrap_or_default().lines();
    let list = lines.rev().find_map(|line| line.strip_prefix("AllowedCPUs="));
    let kept = list.and_then(|list| list.parse::<units::CpuSet>().ok()).filter(|cpus| match bounds {
        Some((min, max, _)) => cpus.len() >= min && max.at().is_none_or(|max| cpus.len() <= max),
        None => write.text.parse().is_ok_and(|now: units::CpuSet| now.is_subset(cpus)),
    });
    Wanted { text: kept.map_or_else(|| write.text.clone(), |cpus| cpus.to_string()), ..write.clone() }
}

/// What the groups in a unit are to have.
fn inside_of(
    unit: &Place,
    inside: &BTreeMap<Place, &GroupName>,
    wanted: &HashMap<&Place, Vec<&Wanted>>,
) -> Option<Inside> {
    let of_group = |place: &Place| {
        let writes = wanted.get(place).into_iter().flatten();
        let writes = writes.map(|write| (write.file.clone(), write.text.clone())).collect();
        (group_path::name(&place.path).to_owned(), writes)
    };
    let groups: BTreeMap<_, _> = below(unit, inside).map(of_group).collect();
    (!groups.is_empty()).then(|| Inside::new(groups))
}

/// The groups in a unit: they follow each other.
fn below<'i>(
    unit: &Place,
    inside: &'i BTreeMap<Place, &GroupName>,
) -> impl Iterator<Item = &'i Place> + use<'i> {
    let begin = format!("{}/", unit.path);
    let (hierarchy, from) = (unit.hierarchy, Place { path: begin.clone(), ..unit.clone() });
    inside
        .range(from..)
        .map(|(place, _)| place)
        .take_while(move |place| place.hierarchy == hierarchy && place.path.starts_with(&begin))
}

/// The group that it is in.
fn above(place: &Place) -> Option<Place> {
    Some(Place { path: group_path::parent(&place.path)?.to_owned(), ..place.clone() })
}

/// Why there can be no groups in a unit's.
fn not_dividable(home: &Home<'_>, unit: &Spanned<UnitName>, observed: &Observed) -> Option<Problem> {
    let name = &unit.value;
    let units = observed.units.as_ref()?;
    let seen = units.get(name.as_str())?;
    // by a file of its own, or of a template that it fits
    let fits =
        |of: &str| of == name.as_str() || UnitName::of_file_name(of).is_ok_and(|of| of.fits(name.as_str()));
    let mut files = units.iter().filter(|(of, _)| fits(of)).filter_map(|(_, seen)| seen.text.as_deref());
    let is_ours = files.any(|text| Inside::of_text(text).is_some());
    let (message, hint) = match &seen.undividable {
        _ if seen.delegates && !is_ours => (
            format!("{name} divides its group itself (Delegate=), so there can be no other groups in it"),
            "limit it as a whole",
        ),
        Some(why) => (
            format!("this systemd could not start {name} again once it is divided: it has {why}"),
            "limit it as a whole; systemd can from version 254 on (DelegateSubgroup=)",
        ),
        None => return None,
    };
    let (group, origin) = (home.group.name.to_string(), unit.origin.clone());
    Some(Problem::Value { group, message, origin, hint: Some(hint.to_owned()) })
}

fn is_write_to(step: &Step, place: &Place) -> bool {
    matches!(&step.action, Action::Write { place: of, .. } if of == place)
}

/// Is the group of the step there?
fn runs(step: &Step, observed: &Observed) -> bool {
    step.action.place().is_some_and(|place| observed.group(place).is_some())
}

/// The unit's group that is the first on the machine to be given CPUs or memory nodes, if there is one.
pub fn first_cpuset<'d>(desired: &'d Desired, observed: &Observed) -> Option<&'d Group> {
    let mut units = desired.groups.iter().filter(|group| group.demands.unit.is_some());
    let first = units.find(|group| group.demands.cpus.is_some() || group.demands.mems.is_some())?;
    let hierarchy = observed.hierarchy_of(Controller::Cpuset)?;
    let root = Place { hierarchy, path: String::new(), version: Version::V2 };
    let on = homes::handed_down(observed, &root).unwrap_or_default();
    (!Controller::Cpuset.name(Version::V2).is_some_and(|name| on.contains(&name))).then_some(first)
}

/// The drop-in file of a unit: of one made on the fly where a reboot removes it.
pub fn drop_in(unit: &str, transient: bool) -> String {
    let root = if transient { "/run" } else { "/etc" };
    format!("{root}/systemd/system/{unit}.d/90-ringfence.conf")
}

/// What makes a partition of the unit's group at each start.
fn partition_line(
    home: &Home<'_>,
    place: &Place,
    kind: &str,
    wanted: &[Wanted],
    (observed, seen): (&Observed, Option<&SeenUnit>),
) -> Result<Vec<String>, (String, String)> {
    let Some(unit) = &home.group.demands.unit else { return Ok(Vec::new()) };
    let at = observed.hierarchies.get(place.hierarchy);
    let cpus = wanted.iter().find(|write| write.place == *place && write.file == CPUS);
    let root = seen.map(|seen| &seen.root).filter(|root| !root.is_empty());
    match (at, cpus) {
        _ if let Some(root) = root
            && unit_partition::is_started(&unit.value) =>
        {
            Err((
                format!(
                    "{} starts in {root} (RootDirectory=, RootImage=), where nothing can give it CPUs of its own again",
                    unit.value
                ),
                unit_place::own_slice(&unit.value),
            ))
        }
        (Some(at), Some(cpus)) if unit_partition::is_started(&unit.value) => {
            Ok(vec![unit_partition::line(&at.mount, place, &cpus.text, kind)])
        }
        _ if observed.units.is_some() && observed.group(place).is_none() => Err((
            format!("{} does not run, and systemd does not give it CPUs of its own at its start", unit.value),
            format!("{} starts it", Command::new("systemctl start").arg(unit.value.as_str())),
        )),
        _ => Ok(Vec::new()),
    }
}

fn lines_for(write: &Wanted, seen: Option<&SeenUnit>) -> Result<Vec<String>, (String, String)> {
    let file = &write.file;
    let own = "leave it out, or make a group of Ringfence's own for these processes".to_owned();
    let Some(lines) = settings::unit_lines(file, &write.text) else {
        return Err((
            format!("systemd has no property for {file}, and makes a new group for the unit at every start"),
            own,
        ));
    };
    let unknown =
        settings::bus_names(file).into_iter().find(|name| seen.is_some_and(|seen| !seen.knows(name)));
    match unknown {
        Some(name) => {
            Err((format!("this systemd has no property {name}, which {file} of a unit needs"), own))
        }
        None => Ok(settings::unit_reset(file).into_iter().chain(lines).collect()),
    }
}

/// Where the layout says what is written to the file.
fn origin_of(home: &Home<'_>, file: &str) -> Origin {
    let demands = &home.group.demands;
    let assigned = demands.settings.iter().find(|assigned| {
        let names = assigned.found.files(Version::V2);
        names.into_iter().any(|name| name == file)
    });
    let set =
        demands.cpus.as_ref().map(|cpus| &cpus.origin).or(demands.mems.as_ref().map(|mems| &mems.origin));
    assigned.map(|assigned| &assigned.origin).or(set).unwrap_or(&home.group.origin).clone()
}
