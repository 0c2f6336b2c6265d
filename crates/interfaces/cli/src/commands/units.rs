//! What the name of a group that is not there may stand for: a unit of systemd, or a layout's group that is a unit.

use apply::{GroupStatus, Running, State, Target};
use kernel::{GroupName, Host};
use units::group_path;

use super::{group, host};
use crate::{args::Args, failure::Failure};

/// What was put in the place of names.
pub struct Resolved {
    /// Those of them that are groups of the layout in effect.
    bound: Vec<String>,
}

impl Resolved {
    /// A refusal offers lines that bind the unit: there are such lines already.
    pub fn explain(&self, failure: Failure) -> Failure {
        let offers = failure.hint.as_ref().is_some_and(|hint| hint.contains("in a layout"));
        match (&failure.hint, self.bound.first()) {
            (Some(hint), Some(group)) if offers => {
                let hint = format!("{hint}\nthe layout in effect has this unit as group '{group}'");
                Failure { hint: Some(hint), ..failure }
            }
            _ => failure,
        }
    }
}

/// Puts the groups of units in the place of names that only units have; `None` where there was none.
///
/// # Errors
/// A unit that does not run has no group.
pub fn resolve(args: &mut Args) -> Result<Option<Resolved>, Failure> {
    let host = host()?;
    let mut groups = None;
    let (mut any, mut bound) = (false, Vec::new());
    for typed in args.command.groups() {
        let name = group(typed)?;
        if name.is_from_root() || !host.seats(&name).is_empty() {
            continue;
        }
        let unit = if host.is_unit_name(&name) {
            Some(name.path().to_owned())
        } else {
            let unit = unit_of(groups.get_or_insert_with(|| bound_groups(&host)), &name);
            bound.extend(unit.is_some().then(|| name.to_string()));
            unit
        };
        if let Some(unit) = unit {
            *typed = host.unit_group(&unit)?.to_string();
            any = true;
        }
    }
    Ok(any.then_some(Resolved { bound }))
}

/// The groups of the layout in effect that are units; none for a caller who may not read the records.
pub fn bound_groups(host: &Host) -> Vec<GroupStatus> {
    let running = Running::new();
    let target = Target { host, system: &running };
    let groups = apply::status(&State::peek(apply::state_directory()), target).unwrap_or_default();
    groups.into_iter().filter(|group| group.unit.is_some()).collect()
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

fn unit_of(groups: &[GroupStatus], name: &GroupName) -> Option<String> {
    let group = groups.iter().find(|group| group.group == name.path())?;
    Some(group.unit.as_ref()?.name.clone())
}
