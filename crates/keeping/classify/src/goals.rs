//! From goals to directories: in which hierarchies a process is to be put into a group.

use std::collections::BTreeSet;

use kernel::{Error, GroupName, Hierarchy, Host, Seat};
use layout::{Controllers, Demands, Desired, Group, Subsystem};
use settings::Controller;
use units::group_path;

use crate::Goal;

/// The directories of goals, one per hierarchy. Of all controllers: those that the group is in. Of the root group: those of all
/// hierarchies with a controller.
///
/// # Errors
/// [`Error::NoGroup`], [`Error::NotControlled`], [`Error::NoController`], [`Error::NoNamed`].
pub fn seats<'h>(host: &'h Host, goals: &[Goal]) -> Result<Vec<(Seat<'h>, GroupName)>, Error> {
    let mut into: Vec<(Seat<'h>, GroupName)> = Vec::new();
    for goal in goals {
        let seats = match &goal.controllers {
            Controllers::All if goal.group.path().is_empty() => everywhere(host, &goal.group),
            Controllers::All => host.existing(&goal.group)?,
            Controllers::These(these) => {
                let seats = these.iter().map(|subsystem| seat(host, subsystem, &goal.group));
                seats.collect::<Result<Vec<_>, Error>>()?
            }
        };
        for seat in seats {
            // later lines move it again, as libcgroup's do: where several lines meet in one hierarchy, the last counts
            match into.iter_mut().find(|(other, _)| other.at.id == seat.at.id) {
                Some(earlier) => *earlier = (seat, goal.group.clone()),
                None => into.push((seat, goal.group.clone())),
            }
        }
    }
    Ok(into)
}

/// The hierarchies that goals are about ([`kernel::Hierarchy::id`]), ascending; also of groups that are still to be made. Who
/// is in another group there is so by somebody's choice.
pub(crate) fn hierarchies(host: &Host, desired: &Desired, goals: &[Goal]) -> Vec<usize> {
    let mut all: Vec<usize> = goals.iter().flat_map(|goal| of_one(host, desired, goal)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn of_one(host: &Host, desired: &Desired, goal: &Goal) -> Vec<usize> {
    let ids = |seats: Vec<Seat<'_>>| seats.iter().map(|seat| seat.at.id).collect();
    match &goal.controllers {
        Controllers::All => match host.seats(&goal.group) {
            none if none.is_empty() || goal.group.path().is_empty() => ids(everywhere(host, &goal.group)),
            seats => {
                let mut ids: Vec<usize> = ids(seats);
                let with_settings = with_settings(host, desired, goal);
                if ids.iter().any(|id| with_settings.contains(id)) {
                    ids.retain(|id| with_settings.contains(id));
                }
                ids
            }
        },
        Controllers::These(these) => {
            these.iter().filter_map(|subsystem| hierarchy(host, subsystem)).map(|at| at.id).collect()
        }
    }
}

/// The hierarchies in which the group, its template or a group above it has settings.
fn with_settings(host: &Host, desired: &Desired, goal: &Goal) -> BTreeSet<usize> {
    let group = &goal.group;
    let is_above = |above: &&Group| {
        above.name.is_from_root() == group.is_from_root()
            && group_path::is_at_or_below(group.path(), above.name.path())
    };
    let of_groups = desired.groups.iter().filter(is_above).map(|group| &group.demands);
    let of_template = desired.template(&goal.pattern).map(|template| &template.demands);
    let named = of_groups.chain(of_template).flat_map(|demands| {
        let named = demands.controllers.iter().map(|named| named.value.clone());
        named.chain(needed(demands).into_iter().map(Subsystem::Controller))
    });
    named.filter_map(|subsystem| hierarchy(host, &subsystem)).map(|at| at.id).collect()
}

/// The controllers that these settings need.
pub(crate) fn needed(demands: &Demands) -> Vec<Controller> {
    let of_settings = demands.settings.iter().map(|assigned| assigned.found.setting.controller);
    let cpuset = (demands.cpus.is_some() || demands.mems.is_some()).then_some(Controller::Cpuset);
    of_settings.filter(|controller| *controller != Controller::Core).chain(cpuset).collect()
}

fn hierarchy<'h>(host: &'h Host, subsystem: &Subsystem) -> Option<&'h Hierarchy> {
    match subsystem {
        Subsystem::Controller(controller) => host.hierarchy_of(*controller),
        Subsystem::Named(name) => host.hierarchies().iter().find(|at| at.name.as_ref() == Some(name)),
    }
}

pub(crate) fn everywhere<'h>(host: &'h Host, group: &GroupName) -> Vec<Seat<'h>> {
    let all = host.hierarchies().iter();
    let with_controller = all.filter(|at| at.controllers.iter().any(|one| *one != Controller::Core));
    with_controller.map(|at| host.seat_in(at, group)).collect()
}

fn seat<'h>(host: &'h Host, subsystem: &Subsystem, group: &GroupName) -> Result<Seat<'h>, Error> {
    let seat = match (hierarchy(host, subsystem), subsystem) {
        (Some(at), _) => host.seat_in(at, group),
        // the error that says what is missing
        (None, Subsystem::Controller(controller)) => return host.seat(group, *controller),
        (None, Subsystem::Named(name)) => {
            let known = host.hierarchies().iter().filter_map(|at| at.name.clone()).collect();
            return Err(Error::NoNamed { name: name.clone(), known });
        }
    };
    host.refuse_missing(&seat, group)?;
    Ok(seat)
}
