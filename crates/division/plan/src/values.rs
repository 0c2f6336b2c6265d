//! The settings of all groups as values for this machine: parsed, with partitions made disks, and without what the
//! kernel holds already. Sets of CPUs and memory nodes are not among them.

use std::collections::{BTreeMap, HashMap, HashSet};

use layout::{Assigned, BURST, CpuDemand, Near, Origin, PROTECTED};
use settings::{Access, Codec, Controller, Facts, GroupName, NamedSetting, Side, Value, Version, Via};
use topology::Machine;
use units::Limit;

use crate::{
    Action, Lint, LintKind, Observed, Place, PlanError, Problem, Range, SettingRequest, Step, disks,
    homes::Home, range_of, writes,
};

/// A setting of a group with its value.
#[derive(Debug)]
pub(crate) struct Valued<'d> {
    pub group: &'d GroupName,
    pub found: NamedSetting,
    pub value: Value,
    pub origin: &'d Origin,
    pub place: Place,
    /// What the kernel holds, if it can be read.
    pub actual: Option<Value>,
    /// The bounds between which it follows the load, also of the burst that belongs to a quota.
    pub range: Option<Range>,
    /// Was it within bounds before, so that what it is now is of the load?
    pub was_range: bool,
}

/// Reads all settings.
pub(crate) fn read<'d>(
    homes: &[Home<'d>],
    machine: &Machine,
    observed: &Observed,
    facts: &dyn Facts,
    problems: &mut Vec<Problem>,
    lints: &mut Vec<Lint>,
) -> Vec<Valued<'d>> {
    near_devices(homes, observed, facts, problems);
    let mut all = Vec::new();
    for home in homes {
        for assigned in home.group.demands.settings.iter().filter(|assigned| !of_cpusets(assigned, observed))
        {
            // a controller that no hierarchy has is reported already
            let Some(place) = home.place_of(&assigned.found, observed) else { continue };
            match there(home, assigned, place, observed).and_then(|()| value(home, assigned, place, facts)) {
                Ok(value) => {
                    let value = disks::whole(&home.group.name, assigned, value, machine, lints);
                    let range = Range::of(home.group, assigned, place, facts);
                    let burst =
                        range.as_ref().and_then(|range| burst(home, assigned, place, range, observed));
                    let range = range.map(|range| Range { burst: burst.is_some(), ..range });
                    let found = (assigned, assigned.found.clone());
                    let valued = Valued::new(home, found, place.clone(), value, range, observed);
                    all.push(valued);
                    all.extend(burst);
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    all
}

/// Block devices that CPUs are to be near to must be there; of a machine that is not at hand that is not known.
fn near_devices(homes: &[Home<'_>], observed: &Observed, facts: &dyn Facts, problems: &mut Vec<Problem>) {
    if observed.hostname.is_none() {
        return;
    }
    for group in homes.iter().map(|home| home.group) {
        let Some(cpus) = &group.demands.cpus else { continue };
        let CpuDemand::Some(spec) = &cpus.value else { continue };
        for near in &spec.near {
            let Near::Device(path) = near else { continue };
            let missing = path.starts_with('/') && !observed.device_nodes.contains_key(path);
            let Some(reason) = missing.then(|| facts.device(path).err()).flatten() else { continue };
            problems.push(Problem::Value {
                group: group.name.to_string(),
                message: format!("cannot be near device:{path}: {reason}"),
                origin: cpus.origin.clone(),
                hint: Some("lsblk lists the block devices".to_owned()),
            });
        }
    }
}

/// Has the kernel the file that the setting is written to?
fn there(home: &Home<'_>, assigned: &Assigned, place: &Place, observed: &Observed) -> Result<(), Problem> {
    let Some(known) = observed.child_files.get(&place.hierarchy).filter(|_| !place.path.is_empty()) else {
        return Ok(());
    };
    let files = assigned.found.files(place.version);
    let Some(file) = files.first().filter(|file| !known.contains(*file)) else { return Ok(()) };
    let prefix = file.split('.').next().unwrap_or_default();
    // every group has some of these; others come with the controller, and the root alone has some
    let of_controller = |name: &&String| {
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| !matches!(rest, "stat" | "stat.local" | "pressure"))
    };
    if !known.iter().any(|name| of_controller(&name)) || file.starts_with("io.cost.") {
        return Ok(());
    }
    let instead = match assigned.found.setting.name {
        "io.weight" => settings::find("io.bfq.weight").ok(),
        _ => None,
    };
    let instead =
        instead.filter(|found| found.files(place.version).first().is_some_and(|file| known.contains(file)));
    Err(Problem::Value {
        group: home.group.name.to_string(),
        message: format!(
            "this kernel has no {file}, which is {} on cgroup {}",
            assigned.found.name, place.version
        ),
        origin: assigned.origin.clone(),
        hint: Some(match instead {
            Some(found) => format!("use {} instead, on disks with the BFQ scheduler", found.name),
            None => format!("ringfence settings {file} shows since when it exists and what to use instead"),
        }),
    })
}

/// What a quota that follows the load may burst by, nothing at first; `None` where the kernel or systemd has no burst.
fn burst<'d>(
    home: &Home<'d>,
    assigned: &'d Assigned,
    place: &Place,
    range: &Range,
    observed: &Observed,
) -> Option<Valued<'d>> {
    let found = settings::lookup(BURST).filter(|_| range.period.is_some() && range.unit.is_none())?;
    let known = observed.child_files.get(&place.hierarchy);
    let is_there = |file: &String| {
        known.is_some_and(|known| known.contains(file)) || observed.file(place, file).is_some()
    };
    let is_there = found.files(place.version).first().is_some_and(is_there);
    let range = Range { burst: true, ..range.clone() };
    let nothing = Value::Micros(Limit::At(units::Micros(0)));
    is_there.then(|| {
        let valued =
            Valued::new(home, (assigned, found), place.clone(), nothing.clone(), Some(range), observed);
        let is_new = observed.group(place).is_none();
        // a new group has none
        Valued { actual: valued.actual.or_else(|| is_new.then_some(nothing)), ..valued }
    })
}

/// Is it one that the cpusets' own steps take care of?
fn of_cpusets(assigned: &Assigned, observed: &Observed) -> bool {
    let of_v1 = || {
        let at = observed.hierarchy_of(Controller::Cpuset).and_then(|at| observed.hierarchies.get(at));
        at.is_some_and(|at| at.version == Version::V1)
    };
    assigned.is_partition() || (assigned.found.setting.name == "cpuset.mem_exclusive" && of_v1())
}

fn value(home: &Home<'_>, assigned: &Assigned, place: &Place, facts: &dyn Facts) -> Result<Value, Problem> {
    let wrong = |message: String, hint: Option<String>| Problem::Value {
        group: home.group.name.to_string(),
        message,
        origin: assigned.origin.clone(),
        hint,
    };
    if assigned.most.is_some() && assigned.found.setting.name == PROTECTED && place.version == Version::V1 {
        let message =
            "cgroup v1 can't give a quiet group's memory back in steps: it can't reclaim on request"
                .to_owned();
        let hint = "memory.high is memory.soft_limit_in_bytes there: what is above it is reclaimed first when memory is short";
        return Err(wrong(message, Some(hint.to_owned())));
    }
    if let Side::Lacks { instead } = assigned.found.side(place.version) {
        let message =
            format!("cgroup {}, which controls it here, has no {}", place.version, assigned.found.name);
        return Err(wrong(message, Some((*instead).to_owned())));
    }
    assigned.found.parse(&assigned.text, facts).map_err(|error| wrong(error.to_string(), error.hint()))
}

impl<'d> Valued<'d> {
    fn new(
        home: &Home<'d>,
        (assigned, found): (&'d Assigned, NamedSetting),
        place: Place,
        value: Value,
        range: Option<Range>,
        observed: &Observed,
    ) -> Valued<'d> {
        let seen = observed.group(&place);
        let file = |file: &str| seen.and_then(|seen| seen.files.get(file)).cloned();
        let actual = seen.and_then(|_| found.decode(place.version, &file).ok());
        let (group, origin) = (&home.group.name, &assigned.origin);
        let was = range.as_ref().and_then(|range| range_of(&observed.ranges, group, &range.setting));
        let was_range = was.is_some();
        let lowered = range.as_ref().zip(actual.as_ref());
        let lowered = lowered.and_then(|(range, actual)| lowered_to(range, was, &found, actual));
        let value = lowered.unwrap_or(value);
        Valued { group, found, value, origin, place, actual, range, was_range }
    }

    /// Its bounds, if it is the setting that has them.
    pub(crate) fn own_range(&self) -> Option<&Range> {
        self.range.as_ref().filter(|range| range.setting == self.found.setting.name)
    }

    /// Does the kernel hold a part of the value?
    pub(crate) fn holds(&self, part: &Value) -> bool {
        if let Some(range) = self.range.as_ref().filter(|_| self.was_range) {
            let within = self.actual.as_ref().and_then(|actual| range.allows(&self.found, actual));
            if within == Some(true) {
                return true;
            }
        }
        self.actual.as_ref().is_some_and(|actual| self.found.satisfied(part, actual))
    }

    /// Does the kernel hold the whole value?
    fn is_held(&self) -> bool {
        parts(&self.value).iter().all(|(_, part)| self.holds(part))
    }

    /// Of a name that stands for one of several files, as quota and period have on v1, that file's index.
    fn own_file(&self) -> Option<usize> {
        match self.found.via {
            Via::File { version, index } if version == self.place.version && self.written().len() > 1 => {
                Some(index)
            }
            _ => None,
        }
    }

    fn binding(&self) -> Option<&'static settings::Binding> {
        self.found.side(self.place.version).binding()
    }

    fn request(&self, value: Value) -> SettingRequest {
        SettingRequest {
            group: self.group.clone(),
            place: self.place.clone(),
            found: self.found.clone(),
            value,
        }
    }

    /// The files that it is written to.
    fn written(&self) -> &'static [&'static str] {
        self.binding().map_or(&[], settings::Binding::names)
    }

    /// Those that what is written is worked out from: v1's memory plus swap from the memory limit.
    fn beside(&self) -> &'static [&'static str] {
        self.binding().map_or(&[], |binding| &binding.files[binding.names().len()..])
    }
}

/// The new max, where a setting follows the load between bounds and is above it: it goes no further back than it has to.
fn lowered_to(range: &Range, was: Option<&Range>, found: &NamedSetting, actual: &Value) -> Option<Value> {
    let is_it = |was: &&Range| was.setting == found.setting.name && was.period == range.period;
    let now = was.filter(is_it)?.number(actual)?;
    (now > range.max).then(|| range.value(range.max))
}

/// A value by device or name as one for each, with what it is for.
pub(crate) fn parts(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::PerDevice(devices) => devices
            .iter()
            .map(|(device, keys)| {
                (device.to_string(), Value::PerDevice(BTreeMap::from([(*device, keys.clone())])))
            })
            .collect(),
        Value::Keyed(names) => names
            .iter()
            .map(|(name, keys)| (name.clone(), Value::Keyed(BTreeMap::from([(name.clone(), keys.clone())]))))
            .collect(),
        Value::Weights { default, devices } => {
            let first = default.map(|weight| {
                (String::new(), Value::Weights { default: Some(weight), devices: BTreeMap::new() })
            });
            let own = devices.iter().map(|(device, weight)| {
                let devices = BTreeMap::from([(*device, *weight)]);
                (device.to_string(), Value::Weights { default: None, devices })
            });
            first.into_iter().chain(own).collect()
        }
        other => vec![(String::new(), other.clone())],
    }
}

/// Those that go to the same file or files: what changes of one device's line, or of the whole file, is written with all
/// that the layout wants there, so that the record has all of it.
fn by_file<'v, 'd>(values: impl Iterator<Item = &'v Valued<'d>>) -> Vec<Vec<&'v Valued<'d>>> {
    let mut sets: Vec<Vec<&Valued<'_>>> = Vec::new();
    let mut known: HashMap<(&Place, String, Option<usize>), usize> = HashMap::new();
    for valued in values {
        let next = sets.len();
        let key = (&valued.place, valued.found.canonical(), valued.own_file());
        let set = *known.entry(key).or_insert(next);
        match sets.get_mut(set) {
            Some(set) => set.push(valued),
            None => sets.push(vec![valued]),
        }
    }
    sets
}

/// What the kernel does not hold of what goes to one file, each with the request that it is a part of.
fn changed<'v, 'd>(set: &[&'v Valued<'d>]) -> Vec<(&'v Valued<'d>, Value)> {
    let parts: Vec<(&Valued<'_>, String, Value)> = set
        .iter()
        .flat_map(|valued| parts(&valued.value).into_iter().map(|(key, part)| (*valued, key, part)))
        .collect();
    let changed: HashSet<&String> =
        parts.iter().filter(|(valued, _, part)| !valued.holds(part)).map(|(_, key, _)| key).collect();
    let changes = parts.iter().filter(|(_, key, _)| changed.contains(key));
    changes.map(|(valued, _, part)| (*valued, part.clone())).collect()
}

/// All that the values request of files, whatever these have now.
pub(crate) fn requests(values: &[Valued<'_>]) -> Vec<SettingRequest> {
    let is_state = |valued: &&Valued<'_>| {
        !matches!(valued.value, Value::Rules(_)) && valued.found.setting.access != Access::Write
    };
    values.iter().filter(is_state).map(|valued| valued.request(valued.value.clone())).collect()
}

/// What has to be written, each with the value that requests it.
fn requested<'v, 'd>(
    values: &'v [Valued<'d>],
    lints: &mut Vec<Lint>,
) -> (Vec<SettingRequest>, Vec<&'v Valued<'d>>) {
    let mut requests: Vec<SettingRequest> = Vec::new();
    let mut of_request: Vec<&'v Valued<'d>> = Vec::new();
    // as the layout says, but written from what another file has
    let mut worked_out: Vec<&'v Valued<'d>> = Vec::new();
    let is_state = |valued: &&Valued<'_>| {
        // those of devices are not for here
        let rules = matches!(valued.value, Value::Rules(_));
        if !rules && valued.found.setting.access == Access::Write {
            let message = format!(
                "{} of group '{}' is an action and no state: it is left out",
                valued.found.name, valued.group
            );
            let lint = Lint::new(LintKind::Unchecked, Some(valued.group), message).at(valued.origin);
            lints.push(lint.hint("do it with ringfence set when it is wanted"));
            return false;
        }
        !rules
    };
    for set in by_file(values.iter().filter(is_state)) {
        let changes = changed(&set);
        if changes.is_empty() && !set[0].beside().is_empty() {
            worked_out.extend(set);
        }
        for (valued, part) in changes {
            requests.push(valued.request(part));
            of_request.push(valued);
        }
    }
    if !worked_out.is_empty() {
        let mut changed: HashSet<(&Place, &str)> = HashSet::new();
        for valued in &of_request {
            changed.extend(valued.written().iter().map(|file| (&valued.place, *file)));
        }
        worked_out
            .retain(|valued| valued.beside().iter().any(|file| changed.contains(&(&valued.place, *file))));
    }
    for valued in worked_out {
        requests.push(valued.request(valued.value.clone()));
        of_request.push(valued);
    }
    (requests, of_request)
}

/// Files without effect, as another one has what the layout says (an idle group has no weight).
fn suspended<'v>(values: &'v [Valued<'_>], observed: &Observed) -> HashSet<(&'v Place, &'static str)> {
    let mut suspended = HashSet::new();
    for valued in values {
        for name in valued.written() {
            let now = observed.file(&valued.place, name).unwrap_or_default();
            let files = settings::suspends(valued.place.version, name, now);
            if !files.is_empty() && valued.is_held() {
                suspended.extend(files.iter().map(|file| (&valued.place, *file)));
            }
        }
    }
    suspended
}

/// The steps that make the values so, in an order that the kernel takes; but for the rules of devices, which are
/// [`crate::devices`]'s.
pub(crate) fn steps(
    values: &[Valued<'_>],
    observed: &Observed,
    problems: &mut Vec<Problem>,
    lints: &mut Vec<Lint>,
) -> Vec<Step> {
    let (requests, of_request) = requested(values, lints);
    let suspended = suspended(values, observed);
    let mut steps: Vec<Step> = Vec::new();
    match writes(&requests, &|place, file| observed.file_to_come(place, file)) {
        Ok(writes) => {
            for write in writes {
                if suspended.contains(&(&write.place, write.file.as_str())) {
                    continue;
                }
                let valued = of_request[write.requests[0]];
                let before = observed.file(&write.place, &write.file).map(str::to_owned);
                let single = valued.binding().is_none_or(|binding| {
                    !matches!(
                        binding.codec,
                        Codec::DeviceKeys | Codec::DeviceFiles | Codec::Weights | Codec::Keyed
                    )
                });
                if valued.range.is_none() && single && before.as_deref() == Some(write.text.trim()) {
                    continue;
                }
                let requested: Vec<String> =
                    write.requests.iter().map(|index| requests[*index].to_string()).collect();
                let requested = requested.join(", ");
                let why = match write.why {
                    Some(why) => format!("{requested}; {why}"),
                    None => requested,
                };
                let action = Action::Write { place: write.place, file: write.file, text: write.text };
                steps.push(Step::new(valued.group.clone(), action, why).was(before));
            }
        }
        Err(error) => problems.push(problem(&error, &of_request)),
    }
    steps
}

fn problem(error: &PlanError, of_request: &[&Valued<'_>]) -> Problem {
    let of_group = |group: &str, name: Option<&str>| {
        let is = |valued: &&&Valued<'_>| {
            valued.group.to_string() == group && name.is_none_or(|name| valued.found.name == name)
        };
        let found = of_request.iter().find(is).or(of_request.first());
        found.map_or_else(|| Origin::outside_files("<layout>"), |valued| valued.origin.clone())
    };
    match error {
        PlanError::Encode { group, error: encode } => {
            let name = match encode {
                settings::EncodeError::Lacks { name, .. }
                | settings::EncodeError::ReadOnly { name }
                | settings::EncodeError::NotThere { name, .. }
                | settings::EncodeError::NeedsCurrent { name, .. }
                | settings::EncodeError::WrongKind { name, .. }
                | settings::EncodeError::Program { name } => name,
            };
            let origin = of_group(group, Some(name));
            Problem::Value { group: group.clone(), message: encode.to_string(), origin, hint: encode.hint() }
        }
        PlanError::Contradiction { group, first, second, .. } => Problem::Contradiction {
            message: error.to_string(),
            origin: of_group(group, Some(first)),
            other: of_group(group, Some(second)),
            hint: error.hint(),
        },
    }
}
