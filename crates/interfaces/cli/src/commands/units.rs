//! What the name of a group that is not there may stand for: a unit of systemd, or a layout's group that is a unit.

use apply::{GroupStatus, Running, State, Target};
use kernel::{GroupName, Host};

use super::{group, host};
use crate::{args::Args, failure::Failure};

/// Puts the groups of units in the place of names that only units have; was there any?
///
/// # Errors
/// A unit that does not run has no group.
pub fn resolve(args: &mut Args) -> Result<bool, Failure> {
    let host = host()?;
    let mut bound = None;
    let mut any = false;
    for typed in args.command.groups() {
        let name = group(typed)?;
        if name.is_from_root() || !host.seats(&name).is_empty() {
            continue;
        }
        let unit = if host.is_unit_name(&name) {
            Some(name.path().to_owned())
        } else {
            let bound = bound.get_or_insert_with(|| bound_groups(&host));
            unit_of(bound, &name)
        };
        if let Some(unit) = unit {
            *typed = host.unit_group(&unit)?.to_string();
            any = true;
        }
    }
    Ok(any)
}

/// The groups of the layout in effect that are units; none for a caller who may not read the records.
pub fn bound_groups(host: &Host) -> Vec<GroupStatus> {
    let running = Running::new();
    let target = Target { host, system: &running };
    let groups = apply::status(&State::peek(apply::state_directory()), target).unwrap_or_default();
    groups.into_iter().filter(|group| group.unit.is_some()).collect()
}

fn unit_of(groups: &[GroupStatus], name: &GroupName) -> Option<String> {
    let group = groups.iter().find(|group| group.group == name.path())?;
    Some(group.unit.as_ref()?.name.clone())
}
