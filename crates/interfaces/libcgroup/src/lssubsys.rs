//! `lssubsys`: lists the controllers, those of one hierarchy together, in the kernel's order.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command};
use kernel::{Hierarchy, Host};
use settings::Version;
use topology::facts::ControllerRow;

use crate::{
    answer,
    arguments::{command, flag, texts},
    failure::{Failure, NO_GROUP},
    machine,
};

pub(crate) fn definition() -> Command {
    let flag = |short: char, name: &'static str, help: &'static str| flag(name, short, help).long(name);
    command("lssubsys", "List controllers and where they are mounted")
        .arg(flag('a', "all", "Also those that are not mounted"))
        .arg(flag('i', "hierarchies", "Print the number of the hierarchy; 0 is cgroup v2"))
        .arg(flag('m', "mount-points", "Print the first mount point"))
        .arg(flag('M', "all-mount-points", "Print all mount points, each on a line of its own"))
        .arg(Arg::new("controller").value_name("CONTROLLER").action(ArgAction::Append).help("Only these"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let host = machine::even_without_hierarchies()?;
    let listed = host.listed();
    let wanted = texts(matches, "controller");
    let all = matches.get_flag("all");
    if host.hierarchies().is_empty() && !all {
        return Err(Failure::from(kernel::Error::NoHierarchy).status(NO_GROUP));
    }
    let shown = |names: &[&str]| {
        all || wanted.is_empty() || names.iter().any(|name| wanted.iter().any(|one| one == name))
    };
    let mut text = String::new();
    if all {
        unmounted(&host, &listed, matches, &mut text);
    }
    for at in in_order(&host, &listed) {
        let names = names(at, &listed);
        if names.is_empty() || !shown(&names) {
            continue;
        }
        mounted(&host, at, &names, &listed, matches, &mut text);
    }
    answer::print(&text)
}

/// By the first of their controllers in the kernel's list; v2 last.
fn in_order<'h>(host: &'h Host, listed: &[ControllerRow]) -> Vec<&'h Hierarchy> {
    let mut hierarchies: Vec<&Hierarchy> = host.hierarchies().iter().collect();
    let place = |at: &Hierarchy| {
        let first = names(at, listed).first().copied().unwrap_or_default();
        listed.iter().position(|row| row.name == first).unwrap_or(usize::MAX)
    };
    hierarchies.sort_by_key(|at| (at.version, place(at)));
    hierarchies
}

/// A hierarchy's controllers, in the kernel's order where it lists them: it no longer does for those that v1 lacks.
fn names<'l>(at: &Hierarchy, listed: &'l [ControllerRow]) -> Vec<&'l str> {
    let own = |name: &str| at.controllers.iter().any(|controller| controller.name(at.version) == Some(name));
    let mut names: Vec<&'l str> = match at.version {
        Version::V1 => listed.iter().map(|row| row.name.as_str()).filter(|name| own(name)).collect(),
        Version::V2 => Vec::new(),
    };
    let rest = at.controllers.iter().filter_map(|controller| controller.name(at.version));
    names.extend(rest.filter(|name| !listed_by(listed, name) || at.version == Version::V2));
    names
}

fn listed_by(listed: &[ControllerRow], name: &str) -> bool {
    listed.iter().any(|row| row.name == name)
}

/// What the kernel lists and no hierarchy has, with the number of the one that it is in, mounted elsewhere.
fn unmounted(host: &Host, listed: &[ControllerRow], matches: &ArgMatches, text: &mut String) {
    let has = |row: &ControllerRow| {
        let same = |at: &Hierarchy, name: &str| {
            at.controllers
                .iter()
                .any(|one| one.name(Version::V1) == Some(name) && one.name(at.version).is_some())
        };
        host.hierarchies().iter().any(|at| same(at, &row.name))
    };
    for row in listed.iter().filter(|row| row.enabled && !has(row)) {
        let number = matches.get_flag("hierarchies") && row.hierarchy != 0;
        let _ = match number {
            true => writeln!(text, "{} {}", row.name, row.hierarchy),
            false => writeln!(text, "{}", row.name), // a String takes everything
        };
    }
}

fn mounted(
    host: &Host,
    at: &Hierarchy,
    names: &[&str],
    listed: &[ControllerRow],
    matches: &ArgMatches,
    text: &mut String,
) {
    let names = names.join(",");
    let (first, every) = (matches.get_flag("mount-points"), matches.get_flag("all-mount-points"));
    let _ = if first || every {
        let points = host.mount_points(at);
        let shown = if every { points.len() } else { 1 };
        points.iter().take(shown).try_for_each(|point| writeln!(text, "{names} {}", point.display()))
    } else if matches.get_flag("hierarchies") {
        let row = listed.iter().find(|row| names.split(',').next() == Some(row.name.as_str()));
        let number = row.filter(|_| at.version == Version::V1).map_or(0, |row| row.hierarchy);
        writeln!(text, "{names} {number}")
    } else {
        writeln!(text, "{names}")
    };
}
