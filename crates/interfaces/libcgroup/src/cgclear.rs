//! `cgclear`: removes the groups that configuration files name, and unmounts what they mount once it is empty. Without
//! a file the reference removes every group of the machine and unmounts all hierarchies, no matter who made them; this removes
//! only the groups that were made by Ringfence.

use std::{collections::BTreeSet, path::PathBuf};

use apply::{Running, State, Target};
use clap::{ArgMatches, Command};
use kernel::{Contents, GroupName, Hierarchy, Host, Seat};
use layout::{Desired, Group, Subsystem};
use settings::{Controller, Version};

use crate::{
    arguments::{command, files, flag},
    cgconfigparser::state,
    configuration,
    failure::Failure,
    machine,
};

/// Whatever it was that could not be done.
const FAILED: u8 = 3;

pub(crate) fn definition() -> Command {
    command("cgclear", "Remove the groups that configuration files name, or all that Ringfence made")
        .args(files())
        .arg(flag("empty", 'e', "Only groups without tasks and groups below").long("empty").requires("configuration"))
        .group(clap::ArgGroup::new("configuration").args(["load", "load-directory"]).multiple(true))
        .arg(state())
        .after_help("Without a file no group is removed that others made, and nothing is unmounted.\nExample: cgclear -l /etc/cgconfig.conf")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    cleared(matches).map_err(|failure| failure.status(FAILED))
}

fn cleared(matches: &ArgMatches) -> Result<u8, Failure> {
    let host = machine::host()?;
    let files = configuration::files(matches)?;
    if files.is_empty() && !matches.contains_id("load-directory") {
        let state = matches.get_one::<PathBuf>("state").cloned().unwrap_or_else(apply::state_directory);
        let removed = remove_all(&host, &ours(&host, &State::peek(state))?)?;
        crate::answer::print(&format!(
            "{removed} directories of groups that Ringfence made were removed; others' groups and all mounts stay\n"
        ))?;
        return Ok(0);
    }
    let desired = configuration::read(&files)?.desired;
    let doomed = named(&host, &desired);
    if matches.get_flag("empty") {
        remove_empty(&host, doomed)?;
    } else {
        remove_all(&host, &doomed)?;
    }
    unmount(&host, &desired)?;
    Ok(0)
}

/// The groups' directories that are there, in the hierarchies that the configuration is about.
fn named<'h>(host: &'h Host, desired: &Desired) -> Vec<(Seat<'h>, GroupName)> {
    let mut found = Vec::new();
    for group in desired.groups.iter().filter(|group| !group.name.path().is_empty()) {
        let seats =
            hierarchies(host, group).into_iter().map(|id| host.seat_in(&host.hierarchies()[id], &group.name));
        let there = seats.filter(|seat| host.kernel().exists(seat.at, &seat.path));
        found.extend(there.map(|seat| (seat, group.name.clone())));
    }
    found
}

fn hierarchies(host: &Host, group: &Group) -> BTreeSet<usize> {
    let demands = &group.demands;
    let cpuset = demands.cpus.is_some() || demands.mems.is_some();
    let of_settings = demands.settings.iter().map(|assigned| assigned.found.setting.controller);
    let of_sections = demands.controllers.iter().filter_map(|section| match &section.value {
        Subsystem::Controller(controller) => Some(*controller),
        Subsystem::Named(_) => None,
    });
    let by_name = demands.controllers.iter().filter_map(|section| match &section.value {
        Subsystem::Named(name) => host.hierarchies().iter().find(|at| at.name.as_ref() == Some(name)),
        Subsystem::Controller(_) => None,
    });
    let controllers = of_settings.chain(of_sections).chain(cpuset.then_some(Controller::Cpuset));
    let by_controller = controllers.filter_map(|controller| host.hierarchy_of(controller));
    by_controller.chain(by_name).map(|at: &Hierarchy| at.id).collect()
}

/// What Ringfence made: everything where nobody else makes groups, else what the history has.
fn ours<'h>(host: &'h Host, state: &State) -> Result<Vec<(Seat<'h>, GroupName)>, Failure> {
    let mut found = Vec::new();
    for at in host.hierarchies().iter().filter(|at| !host.base(at).path().is_empty()) {
        let base = host.base(at).path();
        for path in host.kernel().descendants(at, base).unwrap_or_default() {
            let name = GroupName::new(&host.named(at, &path))?;
            found.push((Seat { at, path }, name));
        }
    }
    let running = Running::new();
    for place in apply::made(state, Target { host, system: &running })? {
        let at = &host.hierarchies()[place.hierarchy];
        let name = GroupName::new(&host.named(at, &place.path))?;
        if !name.path().is_empty() {
            found.push((Seat { at, path: place.path }, name));
        }
    }
    Ok(found)
}

fn remove_all(host: &Host, doomed: &[(Seat<'_>, GroupName)]) -> Result<usize, Failure> {
    Ok(host.delete_at(doomed, Contents { groups: true, tasks_move_up: true })?.len())
}

/// The deepest first, so that a group with only such groups below it is empty, too.
fn remove_empty(host: &Host, mut doomed: Vec<(Seat<'_>, GroupName)>) -> Result<(), Failure> {
    doomed.sort_by_key(|(seat, _)| std::cmp::Reverse(seat.path.matches('/').count()));
    for one in doomed {
        let children = host.kernel().children(one.0.at, &one.0.path).unwrap_or_default();
        if children.is_empty() && host.tasks_in(&one.0).is_empty() {
            host.delete_at(std::slice::from_ref(&one), Contents { groups: false, tasks_move_up: false })?;
        }
    }
    Ok(())
}

/// What the configuration mounts, where it says, and no group is left in.
fn unmount(host: &Host, desired: &Desired) -> Result<(), Failure> {
    for mount in &desired.mounts {
        let Subsystem::Controller(controller) = mount.subsystem else { continue };
        let there = |at: &&Hierarchy| {
            at.version == Version::V1
                && at.mount.as_os_str() == mount.path.as_str()
                && at.controllers.contains(&controller)
        };
        // a second controller of the same mount: it is gone by then
        let now = machine::host()?;
        if let Some(at) = now.hierarchies().iter().find(there)
            && host.kernel().children(at, "").is_ok_and(|left| left.is_empty())
        {
            // a descriptor of its root keeps it busy
            host.kernel().let_go(&at.mount);
            kernel::unmount_v1(&now, &at.controllers.clone())?;
        }
    }
    Ok(())
}
