//! `lscgroup`: lists groups, hierarchy after hierarchy, each before those below it, siblings in the kernel's order.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command};
use kernel::{Hierarchy, Host, Op};
use rustix::io::Errno;
use settings::{Controller, Version};

use crate::{
    answer,
    arguments::{command, ignore_default, texts},
    failure::{Failure, NOT_FOUND},
    group_list::GroupList,
    machine,
};

pub(crate) fn definition() -> Command {
    let group = |name: &'static str| Arg::new(name).value_name("CONTROLLERS:PATH").action(ArgAction::Append);
    command("lscgroup", "List groups")
        .arg(ignore_default())
        .arg(group("group").short('g').long("group").help("This group and those below it; repeatable"))
        .arg(group("more").help("The same; without any, all groups of all controllers"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let host = machine::host()?;
    let lists: Vec<&str> = ["group", "more"].into_iter().flat_map(|id| texts(matches, id)).collect();
    let mut text = String::new();
    if lists.is_empty() {
        for at in host.in_mount_order().into_iter().filter(|at| is_shown(at)) {
            list(&host, at, "", &mut text)?;
        }
        return answer::print(&text);
    }
    let parsed: Vec<GroupList> = lists.iter().map(|list| GroupList::read(list)).collect();
    for (list, given) in parsed.iter().zip(&lists) {
        list.needed_path(given)?;
    }
    // the others are listed all the same
    let mut failed = None;
    for list in &parsed {
        if let Err(failure) = listed(&host, list, &mut text) {
            failed = Some(failure);
        }
    }
    let printed = answer::print(&text)?;
    failed.map_or(Ok(printed), Err)
}

/// systemd's own hierarchy divides nothing; the reference is built to keep it out of sight as well.
pub(crate) fn is_shown(at: &Hierarchy) -> bool {
    match at.name.as_deref() {
        Some(name) => name != "systemd",
        None => !label(at).is_empty(),
    }
}

/// The hierarchies of one argument, in mount order.
fn listed(host: &Host, list: &GroupList, text: &mut String) -> Result<(), Failure> {
    let found = list.hierarchies(host).map_err(|failure| failure.status(NOT_FOUND))?;
    let is_meant = |at: &&Hierarchy| found.iter().any(|(known, ..)| known.id == at.id);
    let hierarchies: Vec<&Hierarchy> = match found.as_slice() {
        [(at, ..)] => vec![at],
        _ => host.in_mount_order().into_iter().filter(is_meant).collect(),
    };
    let path = list.path.as_deref().unwrap_or_default();
    let group = machine::group(host, hierarchies.iter().copied(), path)?;
    for at in hierarchies {
        self::list(host, at, &host.seat_in(at, &group).path, text)?;
    }
    Ok(())
}

/// A group that is not there has nothing to list.
fn list(host: &Host, at: &Hierarchy, path: &str, text: &mut String) -> Result<(), Failure> {
    let below = match host.kernel().descendants(at, path) {
        Ok(below) => below,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => {
            let group = kernel::GroupName::root();
            return Err(host.refused(Op::List, &host.seat_in(at, &group), &group, None, None, errno).into());
        }
    };
    let label = label(at);
    let slash = if path.is_empty() { "" } else { "/" };
    let _ = writeln!(text, "{label}:/{path}{slash}"); // a String takes everything
    text.reserve(below.iter().map(|path| label.len() + path.len() + 3).sum());
    for path in below {
        for part in [&label, ":/", &path, "\n"] {
            text.push_str(part);
        }
    }
    Ok(())
}

/// The controllers of a hierarchy, or its name.
fn label(at: &Hierarchy) -> String {
    if at.version == Version::V1 {
        return at.label();
    }
    let names: Vec<&str> =
        at.controllers.iter().filter_map(|controller: &Controller| controller.name(Version::V2)).collect();
    names.join(",")
}
