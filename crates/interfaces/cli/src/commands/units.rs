//! What the name of a group that is not there may stand for: a unit of systemd, or a layout's group that is a unit.

use apply::{Bound, GroupStatus, Running, State, Target};
use kernel::{GroupName, Host};
use units::group_path;

use super::{group, host};
use crate::{
    args::{Args, Command},
    failure::Failure,
};

/// Of a unit that the layout in effect has as a group its settings are a change of the layout: systemd takes the drop-in
/// file of Ringfence after what `systemctl set-property` writes.
pub fn explain_bound(args: &mut Args, failure: Failure) -> Failure {
    let Some(of_unit) = &failure.of_unit else { return failure };
    let Some(bound) = host().ok().and_then(|host| bound(&host)) else { return failure };
    let Some(group) = bound.of_unit(&of_unit.unit).map(|unit| unit.group.as_str()) else { return failure };
    let in_unit = args.command.groups().into_iter().filter_map(|typed| {
        let inner = typed.split_once(&format!("/{}/", of_unit.unit))?.1;
        Some(format!("{group}/{inner}"))
    });
    // of several it is not known which was refused
    let mut in_unit: Vec<String> = in_unit.collect();
    let inner = in_unit.pop().filter(|_| in_unit.is_empty());
    let (what, group) = match &inner {
        Some(inner) => ("group of the unit", inner.as_str()),
        None => ("unit", group),
    };
    let already = format!("the layout in effect has this {what} as group '{group}'");
    let settings: Vec<(&str, String)> =
        of_unit.settings.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let hint = match (settings.is_empty(), &failure.hint) {
        (false, _) => format!("{}\n{already}", bound.change(group, &settings)),
        // a command for the whole unit is not what was meant
        (true, Some(_)) if inner.is_some() => already,
        // without the lines that would bind it
        (true, Some(hint)) => {
            let command = hint.lines().take_while(|line| !line.starts_with("or in a layout"));
            command.chain([already.as_str()]).collect::<Vec<_>>().join("\n")
        }
        (true, None) => already,
    };
    failure.hint(hint)
}

/// The units of the layout in effect; `None` for a caller who may not read the records.
fn bound(host: &Host) -> Option<Bound> {
    let running = Running::new();
    let target = Target { host, system: &running };
    apply::bound(&State::peek(apply::state_directory()), target).ok()
}

/// Where the group of a unit of the layout would be that does not run.
fn stopped(host: &Host, unit: &str) -> Option<String> {
    let level = &bound(host)?.of_unit(unit)?.level.clone();
    Some(format!("{}/{unit}", group_path::parent(level)?))
}

/// The unit of the layout that a name would be in, which has the groups that the layout says.
pub fn in_unit_of_layout(host: &Host, name: &GroupName) -> Option<String> {
    if name.is_from_root() || !host.has_systemd() {
        return None;
    }
    let units = bound(host)?.units;
    let above = units.into_iter().find(|unit| group_path::is_below(name.path(), &unit.group))?;
    Some(format!("'{}' is {}", above.group, above.unit))
}

/// Puts the groups of units in the place of names that only units have. Were there any?
///
/// # Errors
/// A unit that does not run has no group.
pub fn resolve(args: &mut Args) -> Result<bool, Failure> {
    let host = host()?;
    let mut groups = None;
    let mut any = false;
    let is_why = matches!(args.command, Command::Why(_));
    for typed in args.command.groups() {
        let name = group(typed)?;
        if name.is_from_root() || !host.seats(&name).is_empty() {
            continue;
        }
        let unit = if host.is_unit_name(&name) {
            Some((name.path().to_owned(), String::new()))
        } else {
            unit_of(groups.get_or_insert_with(|| bound_groups(&host)), &name)
        };
        if let Some((unit, below)) = unit {
            // what happened to its processes may be asked for all the same
            let path = match host.unit_group(&unit) {
                Err(_) if is_why => stopped(&host, &unit),
                found => Some(found?.to_string()),
            };
            *typed = format!(
                "{}{below}",
                path.map_or_else(|| host.unit_group(&unit).map(|group| group.to_string()), Ok)?
            );
            any = true;
        }
    }
    Ok(any)
}

/// The groups in effect; none for a caller who may not read the records.
pub fn groups_in_effect(host: &Host) -> Vec<GroupStatus> {
    let running = Running::new();
    let target = Target { host, system: &running };
    apply::status(&State::peek(apply::state_directory()), target).unwrap_or_default()
}

/// Those of them that are units.
fn bound_groups(host: &Host) -> Vec<GroupStatus> {
    groups_in_effect(host).into_iter().filter(|group| group.unit.is_some()).collect()
}

/// A refusal of a name that a layout has only before those of units names these, and not a way to make such a group.
pub fn explain_above(args: &mut Args, failure: Failure) -> Failure {
    let Ok(host) = host() else { return failure };
    let mut bound = None;
    for typed in args.command.groups() {
        let Ok(name) = group(typed) else { continue };
        if !host.seats(&name).is_empty() {
            continue;
        }
        let below = bound.get_or_insert_with(|| bound_groups(&host)).iter().filter_map(|group| {
            let is_below = group_path::is_below(&group.group, name.path());
            is_below.then_some(format!("{} ({})", group.group, group.unit.as_ref()?.name))
        });
        let below: Vec<String> = below.collect();
        if !below.is_empty() {
            let units = below.join(", ");
            let hint = format!(
                "the layout in effect has units as groups of '{name}', which is none itself: {units}"
            );
            return failure.hint(hint);
        }
    }
    failure
}

/// The unit that a group of the layout is or is in, and the rest of its name, with a slash before it.
fn unit_of(groups: &[GroupStatus], name: &GroupName) -> Option<(String, String)> {
    let above = |group: &&GroupStatus| group_path::is_at_or_below(name.path(), &group.group);
    let group = groups.iter().filter(above).max_by_key(|group| group.group.len())?;
    Some((group.unit.as_ref()?.name.clone(), name.path()[group.group.len()..].to_owned()))
}
