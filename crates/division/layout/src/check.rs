//! What can be wrong between groups, whatever the machine: groups named that are not there, circles of `like` and
//! `near`, exclusiveness without CPUs, rules for groups that do not exist.

use std::collections::{HashMap, HashSet};

use settings::{Clash, GroupName};
use units::group_path;

use crate::assigned::{Assigned, BURST, QUOTA, part};
use crate::dead_rules::dead_rules;
use crate::demand::{CpuDemand, MemDemand, Near, Pool};
use crate::desired::{Demands, Desired, Group};
use crate::diagnostic::{Diagnostic, Report};
use crate::names::AnyMachine;
use crate::origin::{Origin, Spanned};
use crate::unit_name::UnitName;

/// Reports all of it.
pub(crate) fn check(desired: &Desired, report: &mut Report) {
    let groups: HashMap<&GroupName, &Group> =
        desired.groups.iter().map(|group| (&group.name, group)).collect();
    for group in &desired.groups {
        exclusive(&format!("group '{}'", group.name), &group.origin, &group.demands, report);
        resized(group, report);
        isolated(group, report);
        latency(group, report);
        root(group, report);
        unit(group, report);
        ranges(group, report);
        contradictions(&group.demands, report);
        references(group, &groups, report);
    }
    for template in &desired.templates {
        let what = format!("template '{}'", template.name);
        exclusive(&what, &template.origin, &template.demands, report);
        contradictions(&template.demands, report);
        for assigned in template.demands.settings.iter().filter(|assigned| assigned.most.is_some()) {
            let message = format!("{} of {what} can't follow the load", assigned.found.name);
            let error = Diagnostic::error(message).at(assigned.origin.clone());
            report.push(error.hint("give it one value; groups that are made on demand are not resized"));
        }
        for (name, origin, _) in named(&template.demands) {
            exists(name, origin, &groups, report);
        }
    }
    unthrottled(desired, report);
    if let Some(isolate) = &desired.isolate
        && desired.groups.iter().all(|group| group.demands.isolate.is_none())
    {
        let error = Diagnostic::error("[isolate] is for groups with isolate, and there is none");
        report.push(
            error.at(isolate.origin.clone()).hint("add isolate = \"cpus\" to the group that has the CPUs"),
        );
    }
    if let Some(frequency) = desired.power.frequency.as_ref().filter(|_| !desired.power.saving) {
        let error = Diagnostic::error("frequency follows power saving, and there is none");
        report.push(error.at(frequency.origin.clone()).hint("add saving = true, or remove frequency"));
    }
    if let Some(cpus) = &desired.reserve.cpus {
        for (name, origin, _) in named_by_cpus(&cpus.value, &cpus.origin) {
            exists(name, origin, &groups, report);
        }
    }
    units(desired, report);
    circles(desired, &groups, report);
    dead_rules(desired, report);
    if !desired.groups.is_empty() || !desired.templates.is_empty() {
        rules(desired, &groups, report);
    }
}

/// Two names, each for a part of one setting or for all of it, that give one device different limits.
fn contradictions(demands: &Demands, report: &mut Report) {
    if demands.settings.iter().all(|assigned| part(&assigned.found).is_none()) {
        return;
    }
    let read = |assigned: &Assigned| assigned.found.parse(&assigned.text, &AnyMachine).ok();
    let values: Vec<_> = demands.settings.iter().map(read).collect();
    let each = demands.settings.iter().zip(&values).enumerate();
    let each =
        each.filter_map(|(index, (assigned, value))| Some((index, (), &assigned.found, value.as_ref()?)));
    for Clash { first, second } in settings::join(each).1 {
        let [one, other] = [first, second].map(|index| &demands.settings[index]);
        let message = format!(
            "{} and {} contradict each other: '{}' and '{}'",
            one.found.name, other.found.name, one.text, other.text
        );
        let error = Diagnostic::error(message).at(other.origin.clone());
        report.push(error.also(one.origin.clone(), "the other is here").hint("keep one of the two"));
    }
}

/// What bursts above a quota that follows the load is a part of it.
fn ranges(group: &Group, report: &mut Report) {
    let setting = |name: &str| {
        let mut settings = group.demands.settings.iter();
        settings.find(|assigned| assigned.found.setting.name == name)
    };
    let quota = setting(QUOTA).filter(|quota| quota.most.is_some());
    if let (Some(quota), Some(burst)) = (quota, setting(BURST)) {
        let message = format!("group '{}' gives {BURST} beside the min and max of {QUOTA}", group.name);
        let error = Diagnostic::error(message).at(burst.origin.clone());
        let error = error.also(quota.origin.clone(), "these are here");
        report.push(error.hint("remove it: ringfenced writes it with the quota"));
    }
}

/// libcgroup's files may give the root settings; it has all CPUs and nodes, and is nobody's but root's.
fn root(group: &Group, report: &mut Report) {
    if group.name != GroupName::root() {
        return;
    }
    let demands = &group.demands;
    let people = demands.tasks.iter().chain(&demands.admin).map(|person| &person.origin);
    let exclusive = demands.exclusive.then_some(&group.origin);
    for (what, mut origins) in [
        ("owners", people.take(1).collect::<Vec<&Origin>>()),
        ("CPUs of its own", demands.cpus.iter().map(|cpus| &cpus.origin).chain(exclusive).take(1).collect()),
        ("memory nodes of its own", demands.mems.iter().map(|mems| &mems.origin).collect()),
    ] {
        if let Some(origin) = origins.pop() {
            let error = Diagnostic::error(format!("the root of a hierarchy can't have {what}"));
            report.push(error.at(origin.clone()).hint("give them to a group in it"));
        }
    }
}

/// systemd has the control group of a unit: what goes in, whose it is and which controllers it has.
fn unit(group: &Group, report: &mut Report) {
    let demands = &group.demands;
    let Some(Spanned { value: unit, .. }) = &demands.unit else { return };
    let people = demands.tasks.iter().chain(&demands.admin).map(|person| &person.origin);
    for (what, hint, origin) in [
        (
            "owners",
            "systemd makes and removes the directory; Delegate= and User= in the unit's file are its way",
            people.take(1).next(),
        ),
        (
            "processes by rules",
            "its processes are those that systemd starts in it",
            group.matches.first().map(|matcher| &matcher.origin),
        ),
        (
            "controllers by name",
            "systemd gives it those that its settings need",
            demands.controllers.first().map(|named| &named.origin),
        ),
    ] {
        if let Some(origin) = origin {
            let error =
                Diagnostic::error(format!("group '{}' is {unit}, which can't have {what}", group.name));
            report.push(error.at(origin.clone()).hint(hint));
        }
    }
    if group.name.is_from_root() {
        let error = Diagnostic::error("a group that is a unit has a name of its own");
        report.push(error.at(group.origin.clone()).hint("such as [groups.db]: the unit says where it is"));
    }
}

/// One unit is one group. In that of a service there may be groups for its processes.
fn units(desired: &Desired, report: &mut Report) {
    let mut bound: HashMap<&UnitName, &Group> = HashMap::new();
    for group in &desired.groups {
        let Some(Spanned { value: unit, origin }) = &group.demands.unit else { continue };
        if let Some(first) = bound.insert(unit, group) {
            let error =
                Diagnostic::error(format!("groups '{}' and '{}' are both {unit}", first.name, group.name));
            report.push(
                error.at(origin.clone()).also(first.origin.clone(), "the other is here").hint("join the two"),
            );
        }
    }
    let units = desired.units();
    for group in &desired.groups {
        if let Some((above, name)) = units.above(group) {
            in_unit(group, above, name, report);
        }
    }
}

/// A group in a unit: one of a service's own processes.
fn in_unit(group: &Group, above: &Group, name: &str, report: &mut Report) {
    let Some(Spanned { value: unit, .. }) = &above.demands.unit else { return };
    let demands = &group.demands;
    let mut refuse = |origin: &Origin, message: String, hint: &str| {
        let error = Diagnostic::error(message).at(origin.clone());
        report.push(error.also(above.origin.clone(), "the unit is here").hint(hint));
    };
    if !unit.as_str().ends_with(".service") {
        let message = format!("group '{}' can't be in group '{}', which is {unit}", group.name, above.name);
        return refuse(&group.origin, message, "only services can be divided; give the group another name");
    }
    if name.contains('/') || name.starts_with('.') || UnitName::new(name).is_ok() {
        let message = format!("'{name}' can't be a group in {unit}");
        return refuse(
            &group.origin,
            message,
            "groups in a service have plain names, such as maintenance, and no groups in them",
        );
    }
    let all_of = |what: &str| format!("group '{}' is in {unit} and can't have {what}", group.name);
    let people = demands.tasks.as_ref().or(demands.admin.as_ref()).map(|person| &person.origin);
    let devices =
        demands.settings.iter().find(|assigned| assigned.found.setting.name.starts_with("devices."));
    let named = demands.controllers.first().map(|named| &named.origin);
    let elastic = demands.cpus.as_ref().filter(|cpus| cpus.value.elastic().is_some());
    let range = demands.settings.iter().find(|assigned| assigned.most.is_some());
    let own = demands.cpus.as_ref().filter(|_| demands.exclusive || demands.isolate.is_some());
    let partition = demands.settings.iter().find(|assigned| assigned.is_partition());
    for (origin, what, hint) in [
        (demands.unit.as_ref().map(|unit| &unit.origin), "a unit", "one group is one unit"),
        (people, "owners", "the service's User= is the owner of what Delegate= gives it"),
        (
            devices.map(|assigned| &assigned.origin),
            "rules of devices",
            "DeviceAllow= of the service holds for all its processes",
        ),
        (named, "controllers by name", "it gets those that its settings need"),
        (elastic.map(|cpus| &cpus.origin), "elastic CPUs", "give them to the service as a whole"),
        (
            range.map(|assigned| &assigned.origin),
            "settings that follow its load",
            "give them to the service as a whole",
        ),
        (own.map(|cpus| &cpus.origin), "CPUs of its own", "give them to the service as a whole"),
        (
            partition.map(|assigned| &assigned.origin),
            "CPUs of its own",
            "give them to the service as a whole",
        ),
    ] {
        if let Some(origin) = origin {
            refuse(origin, all_of(what), hint);
        }
    }
}

fn exclusive(what: &str, origin: &Origin, demands: &Demands, report: &mut Report) {
    if demands.exclusive && demands.cpus.is_none() {
        let error = Diagnostic::error(format!("{what} is exclusive but asks for no CPUs")).at(origin.clone());
        report.push(error.hint("add cpus, such as cpus = 1"));
    }
    if let Some(Spanned { value: CpuDemand::Some(spec), origin }) = &demands.cpus
        && demands.exclusive
        && spec.pool == Some(Pool::Shared)
    {
        let error = Diagnostic::error(format!("{what} is exclusive but shares its CPUs")).at(origin.clone());
        report.push(error.hint("leave out pool = \"shared\", or exclusive = true"));
    }
}

/// Without the limit on real-time tasks, one that never sleeps has a CPU for good: then it has to be a CPU of its own.
fn unthrottled(desired: &Desired, report: &mut Report) {
    let Some(isolate) = &desired.isolate else { return };
    let is_off = match isolate.value.rows.get("rt-throttling") {
        Some(None) => true,
        Some(Some(text)) => text.parse::<i64>().is_ok_and(|micros| micros < 0),
        None => false,
    };
    let own = |group: &Group| group.demands.isolate.is_some() && is_partition(&group.demands);
    if !is_off || desired.groups.iter().any(own) {
        return;
    }
    let message = "rt-throttling is off and no isolated group has CPUs of its own: a real-time task that never sleeps could take every CPU";
    let hint = "add exclusive = true to the group with isolate, or leave rt-throttling out";
    report.push(Diagnostic::error(message).at(isolate.origin.clone()).hint(hint));
}

/// Does the kernel keep all others off its CPUs, by either key?
fn is_partition(demands: &Demands) -> bool {
    let mut partitions =
        demands.settings.iter().filter(|assigned| !assigned.is_flag()).filter_map(Assigned::partition);
    demands.exclusive || partitions.any(|kind| kind != "member")
}

/// A partition of the kernel is never resized (docs/elastic.md).
fn resized(group: &Group, report: &mut Report) {
    let demands = &group.demands;
    let Some(cpus) = demands.cpus.as_ref().filter(|_| is_partition(demands) && demands.is_elastic()) else {
        return;
    };
    let message =
        format!("group '{}' is elastic, and a partition of the kernel is never resized", group.name);
    let hint = "remove exclusive = true, or give the group a count instead of min, max and weight";
    report.push(Diagnostic::error(message).at(cpus.origin.clone()).hint(hint));
}

/// Which CPUs are isolated must not change by itself.
fn isolated(group: &Group, report: &mut Report) {
    let Some(isolate) = &group.demands.isolate else { return };
    let own = is_partition(&group.demands);
    let (why, hint) = match group.demands.cpus.as_ref().map(|cpus| &cpus.value) {
        None => ("has no CPUs", "add the CPUs, such as cpus = \"3\" and exclusive = true"),
        Some(CpuDemand::Some(spec)) if spec.weight.is_some() => {
            ("is elastic, so that its CPUs change", "give it a number of CPUs that stays")
        }
        Some(CpuDemand::These(_) | CpuDemand::OfNodes(_)) => return,
        Some(_) if own => return,
        Some(_) => ("has no CPUs of its own", "add exclusive = true, or name the CPUs: cpus = \"3\""),
    };
    let error = Diagnostic::error(format!("group '{}' is to be isolated and {why}", group.name));
    report.push(error.at(isolate.origin.clone()).hint(hint));
}

/// A latency decides about the CPUs of an elastic group that has some of its own beside its min.
fn latency(group: &Group, report: &mut Report) {
    let Some(latency) = &group.demands.latency else { return };
    let (why, hint) = match group.demands.is_elastic() {
        true if group.demands.is_idle() => {
            ("borrows CPUs", "remove latency, or cpu.idle: what it borrows is what owners do not use")
        }
        true => return,
        false => ("is not elastic", "add cpus = { min = 1, max = 4, weight = 100 }, or remove latency"),
    };
    let error = Diagnostic::error(format!("group '{}' has a latency and {why}", group.name));
    report.push(error.at(latency.origin.clone()).hint(hint));
}

/// Why a group names another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    SameCpus,
    SameMems,
    Near,
}

fn named_by_cpus<'d>(
    cpus: &'d CpuDemand,
    origin: &'d Origin,
) -> impl Iterator<Item = (&'d GroupName, &'d Origin, Why)> + use<'d> {
    let (like, near) = match cpus {
        CpuDemand::Like(name) => (Some(name), &[][..]),
        CpuDemand::Some(spec) => (None, &spec.near[..]),
        _ => (None, &[][..]),
    };
    let near = near.iter().filter_map(move |near| match near {
        Near::Group(name) => Some((name, origin, Why::Near)),
        _ => None,
    });
    like.map(|name| (name, origin, Why::SameCpus)).into_iter().chain(near)
}

fn named(demands: &Demands) -> impl Iterator<Item = (&GroupName, &Origin, Why)> {
    let cpus = demands.cpus.iter().flat_map(|cpus| named_by_cpus(&cpus.value, &cpus.origin));
    let mems = demands.mems.iter().filter_map(|mems| match &mems.value {
        MemDemand::Like(name) => Some((name, &mems.origin, Why::SameMems)),
        _ => None,
    });
    cpus.chain(mems)
}

fn exists<'g>(
    name: &GroupName,
    origin: &Origin,
    groups: &HashMap<&GroupName, &'g Group>,
    report: &mut Report,
) -> Option<&'g Group> {
    let found = groups.get(name).copied();
    if found.is_none() {
        let error = Diagnostic::error(format!("group '{name}' is not in the layout")).at(origin.clone());
        report.push(error.hint(near_groups(&name.to_string(), groups, report)));
    }
    found
}

fn near_groups(name: &str, groups: &HashMap<&GroupName, &Group>, report: &Report) -> String {
    let mut known: Vec<String> = if report.is_full() {
        Vec::new()
    } else {
        groups.keys().take(10_000).map(|name| name.to_string()).collect()
    };
    known.sort();
    match units::nearest(name, known.iter().map(String::as_str)).as_slice() {
        [] => format!("add [groups.'{name}']"),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

fn references(group: &Group, groups: &HashMap<&GroupName, &Group>, report: &mut Report) {
    for (name, origin, why) in named(&group.demands) {
        let Some(other) = exists(name, origin, groups, report) else { continue };
        if let Some(units) = other.demands.unit.as_ref().filter(|unit| unit.value.is_pattern()) {
            let message = format!("group '{name}' is all units that fit {}, not one", units.value);
            let error = Diagnostic::error(message).at(origin.clone());
            report.push(error.also(units.origin.clone(), "the pattern is here").hint("name another group"));
        }
        let (missing, what) = match why {
            Why::SameMems => (other.demands.mems.is_none(), "memory nodes"),
            Why::SameCpus | Why::Near => (other.demands.cpus.is_none(), "CPUs"),
        };
        if missing {
            let error = Diagnostic::error(format!("group '{name}' asks for no {what}")).at(origin.clone());
            report.push(error.also(other.origin.clone(), "it is here"));
        }
    }
}

/// Every circle once, from its group that stands first in the layout.
fn circles(desired: &Desired, groups: &HashMap<&GroupName, &Group>, report: &mut Report) {
    for mems in [false, true] {
        let next = |group: &Group| -> Vec<(&GroupName, Origin)> {
            let named = named(&group.demands).filter(|(.., why)| (*why == Why::SameMems) == mems);
            let named = named.filter_map(|(name, origin, _)| Some((groups.get(name)?, origin)));
            named.map(|(group, origin)| (&group.name, origin.clone())).collect()
        };
        // 1 while on the way, 2 when done
        let mut state: HashMap<&GroupName, u8> = HashMap::new();
        for start in &desired.groups {
            let mut way: Vec<(&GroupName, Vec<(&GroupName, Origin)>)> = Vec::new();
            if !state.contains_key(&start.name) {
                state.insert(&start.name, 1);
                way.push((&start.name, next(start)));
            }
            while let Some((name, rest)) = way.last_mut() {
                let name = *name;
                let Some((to, origin)) = rest.pop() else {
                    state.insert(name, 2);
                    way.pop();
                    continue;
                };
                match (state.get(to), groups.get(to)) {
                    (Some(1), _) => circle(to, &origin, &way, report),
                    (None, Some(group)) => {
                        state.insert(&group.name, 1);
                        way.push((&group.name, next(group)));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn circle(
    back_to: &GroupName,
    origin: &Origin,
    way: &[(&GroupName, Vec<(&GroupName, Origin)>)],
    report: &mut Report,
) {
    let names = way.iter().map(|(name, _)| *name).skip_while(|name| *name != back_to);
    let mut names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    names.push(format!("'{back_to}'"));
    if names.len() > 8 {
        names.splice(4..names.len() - 3, ["…".to_owned()]);
    }
    let message = match names.len() {
        2 => format!("group {} depends on itself", names[0]),
        _ => format!("groups depend on each other in a circle: {}", names.join(" → ")),
    };
    let error = Diagnostic::error(message).at(origin.clone());
    report.push(error.hint("one of them needs CPUs or nodes of its own"));
}

/// A rule may name a group that exists already; more often its name is mistyped.
fn rules(desired: &Desired, groups: &HashMap<&GroupName, &Group>, report: &mut Report) {
    // a group that is only part of a group's name is made with that
    let made = groups.keys().flat_map(|name| {
        let from_root = name.is_from_root();
        group_path::branch(name.path()).map(move |path| (from_root, path))
    });
    let made: HashSet<(bool, &str)> = made.collect();
    let units = desired.units();
    for target in desired.rules.iter().flat_map(|rule| &rule.targets) {
        if let Some((group, (above, _))) = target
            .group
            .name()
            .and_then(|name| groups.get(&name))
            .and_then(|group| Some((group, units.above(group)?)))
        {
            let error =
                Diagnostic::error(format!("group '{}' takes processes of its service only", group.name));
            let error = error.at(target.origin.clone()).also(above.origin.clone(), "the unit is here");
            report.push(error.hint("say in its own match which: it needs no rule"));
            continue;
        }
        // groups with codes in their names are made when they are needed
        let Some(name) = target.group.name() else { continue };
        if made.contains(&(name.is_from_root(), name.path()))
            || name == GroupName::root()
            || desired.template(&target.group).is_some()
        {
            continue;
        }
        let text = target.group.to_string();
        let hint = near_groups(&text, groups, report);
        let warning = format!("no group '{text}' is in the layout: no process goes there unless it exists");
        let warning = Diagnostic::warning(warning);
        report.push(warning.at(target.origin.clone()).hint(hint));
    }
}
