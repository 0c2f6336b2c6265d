//! `cgget`: prints what groups hold, file by file, in the kernel's own words.
//!
//! A name that only the other cgroup version has is read from what the table of settings has for it here. Nothing is
//! said of that: `-v` means "values only", and a script expects nothing on standard error.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command};
use kernel::{Hierarchy, Host};
use settings::{Controller, Version};

use crate::{
    answer,
    arguments::{command, flag, ignore_default, texts},
    failure::{Failure, NO_CONTROLLER, NOT_CONVERTED},
    file_view,
    group_list::GroupList,
    machine,
};

pub(crate) fn definition() -> Command {
    asking(command("cgget", "Print parameter(s) of given group(s)"))
        .arg(flag("mode", 'm', "Print which cgroup versions are mounted"))
        .arg(flag("versions", 'c', "Print the cgroup version of each controller"))
        .after_help("Example: cgget -r cpuset.cpus -r cpuset.mems db/oltp1 db/oltp2")
}

/// What cgget and cgxget both take.
pub(crate) fn asking(command: Command) -> Command {
    let many = |name: &'static str, letter: char, value: &'static str, help: &'static str| {
        Arg::new(name).short(letter).value_name(value).action(ArgAction::Append).help(help)
    };
    command
        .arg(
            many("variable", 'r', "NAME", "A setting or statistic, by its v1 or v2 name; repeatable")
                .long("variable")
                .conflicts_with_all(["group", "all"]),
        )
        .arg(many(
            "group",
            'g',
            "CONTROLLERS[:PATH]",
            "All of these controllers' files, of that group or the groups named as arguments; repeatable",
        ))
        .arg(flag("all", 'a', "All files of all controllers").long("all"))
        .arg(flag("bare", 'n', "Do not print the groups' names"))
        .arg(flag("values", 'v', "Print values only").long("values-only"))
        .arg(ignore_default())
        .arg(Arg::new("path").value_name("PATH").action(ArgAction::Append).help("The groups"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    if !matches.get_flag("mode") && !matches.get_flag("versions") {
        return print(matches, &Names::default());
    }
    let given = |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
    if ["variable", "group", "all"].into_iter().any(given) {
        return Err(Failure::usage("-m and -c stand alone"));
    }
    let host = machine::host()?;
    let mut text = String::new();
    if matches.get_flag("mode") {
        text.push_str(mode(&host));
    }
    if matches.get_flag("versions") {
        versions(&host, &mut text);
    }
    answer::print(&text)
}

fn mode(host: &Host) -> &'static str {
    let has = |version| host.hierarchies().iter().any(|at| at.version == version);
    match (has(Version::V1), has(Version::V2)) {
        (true, true) => "Hybrid mode (Cgroup v1/v2).\n",
        (true, false) => "Legacy Mode (Cgroup v1 only).\n",
        _ => "Unified Mode (Cgroup v2 only).\n",
    }
}

fn versions(host: &Host, text: &mut String) {
    text.push_str("#Controller\tVersion\n");
    for at in host.in_mount_order() {
        let number = if at.version == Version::V1 { 1 } else { 2 };
        for name in at.controllers.iter().filter_map(|controller| controller.name(at.version)) {
            let _ = writeln!(text, "{name:<11}\t{number}"); // a String takes everything
        }
    }
}

/// Of which version names are.
#[derive(Default)]
pub(crate) struct Names {
    /// `None`: of either; the kernel's own first.
    pub version: Option<Version>,
    /// What can't be converted is left out.
    pub ignore: bool,
}

impl Names {
    fn one(&self, host: &Host, path: &str, name: &str) -> Result<Option<file_view::Pair>, Failure> {
        let read = match self.version {
            None => file_view::one(host, path, name),
            Some(version) => file_view::one_of(host, path, name, version),
        };
        match read {
            Err(failure) if self.ignore && failure.status == NOT_CONVERTED => Ok(None),
            read => read.map(|text| Some((name.to_owned(), text))),
        }
    }

    fn all(&self, host: &Host, entry: &Entry<'_>) -> Result<Vec<file_view::Pair>, Failure> {
        let mut values = Vec::new();
        for (at, controller, group) in entry.places(host)? {
            match self.version.filter(|version| *version != at.version) {
                Some(version) => values.extend(file_view::all_of(host, at, &group, controller, version)),
                None => values.extend(file_view::all(host, at, &group, controller)?),
            }
        }
        Ok(values)
    }
}

/// Prints the groups and values that the arguments name. Everything is read before anything is printed.
///
/// # Errors
/// Arguments that contradict each other, and whatever can't be read.
pub(crate) fn print(matches: &ArgMatches, by: &Names) -> Result<u8, Failure> {
    let host = machine::host()?;
    let names = texts(matches, "variable");
    let mut text = String::new();
    if names.is_empty() {
        for entry in entries(&host, matches)? {
            show(matches, &entry.path, &by.all(&host, &entry)?, &mut text);
        }
    } else {
        let names = by_controller(&names);
        for path in paths(matches)? {
            let read = |name: &&str| by.one(&host, path, name).transpose();
            let values = names.iter().filter_map(read).collect::<Result<Vec<_>, Failure>>()?;
            show(matches, path, &values, &mut text);
        }
    }
    answer::print(&text)
}

fn paths(matches: &ArgMatches) -> Result<Vec<&str>, Failure> {
    let paths = texts(matches, "path");
    if paths.is_empty() {
        return Err(Failure::usage("no group is named").hint("for example cgget -r cpu.shares db/oltp1"));
    }
    Ok(paths)
}

/// Each name once, those of one controller together, as the reference has it.
fn by_controller<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let prefix = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let mut ordered: Vec<&str> = Vec::new();
    for name in names {
        for same in names.iter().filter(|other| prefix(other) == prefix(name)) {
            if !ordered.contains(same) {
                ordered.push(same);
            }
        }
    }
    ordered
}

fn show(matches: &ArgMatches, path: &str, values: &[file_view::Pair], text: &mut String) {
    let (bare, values_only) = (matches.get_flag("bare"), matches.get_flag("values"));
    if !bare {
        let _ = writeln!(text, "{path}:");
    }
    for (name, value) in values {
        if !values_only {
            let _ = write!(text, "{name}: ");
        }
        let value = value.strip_suffix('\n').unwrap_or(value);
        let _ = writeln!(text, "{}", value.replace('\n', "\n\t"));
    }
    if !bare {
        text.push('\n');
    }
}

/// One group and whose files of it are printed.
struct Entry<'h> {
    /// As it was given.
    path: String,
    /// Hierarchy and controller, in order.
    wanted: Vec<(&'h Hierarchy, Controller)>,
    /// All were meant: what the group is not in is left out.
    everything: bool,
}

impl<'h> Entry<'h> {
    fn new(path: &str) -> Entry<'h> {
        Entry { path: path.to_owned(), wanted: Vec::new(), everything: false }
    }

    fn want(&mut self, at: &'h Hierarchy, controllers: impl IntoIterator<Item = Controller>) {
        for controller in controllers {
            if !self.wanted.iter().any(|(known, same)| known.id == at.id && *same == controller) {
                self.wanted.push((at, controller));
            }
        }
    }

    fn want_list(&mut self, host: &'h Host, list: &GroupList) -> Result<(), Failure> {
        for (at, controllers, by_star) in list.hierarchies(host)? {
            self.everything |= by_star;
            let core = (controllers.is_empty() && at.version == Version::V2).then_some(Controller::Core);
            self.want(at, controllers.into_iter().chain(core));
        }
        Ok(())
    }

    fn want_all(&mut self, host: &'h Host) {
        self.everything = true;
        for at in host.in_mount_order() {
            self.want(at, at.controllers.iter().copied().filter(|one| *one != Controller::Core));
        }
    }

    /// The groups' places, of those that are there.
    ///
    /// # Errors
    /// The group is not where it was looked for.
    fn places(&self, host: &'h Host) -> Result<Vec<(&'h Hierarchy, Controller, kernel::GroupName)>, Failure> {
        let group = machine::group(host, self.wanted.iter().map(|(at, _)| *at), &self.path)?;
        let there = |at: &Hierarchy| host.kernel().exists(at, &host.seat_in(at, &group).path);
        let mut places = Vec::new();
        for (at, controller) in &self.wanted {
            if there(at) {
                places.push((*at, *controller, group.clone()));
            } else if !self.everything {
                host.seat(&group, *controller)?;
            }
        }
        if places.is_empty() {
            host.existing(&group)?;
        }
        Ok(places)
    }
}

/// The groups that `-g`, `-a` and the paths name. As in the reference, `-a` and lists without a path are about the
/// groups that are named as arguments, or the first that a list names.
///
/// # Errors
/// No group, or two ways of naming it; a controller on no mounted hierarchy.
fn entries<'h>(host: &'h Host, matches: &ArgMatches) -> Result<Vec<Entry<'h>>, Failure> {
    let lists = texts(matches, "group");
    let indices: Vec<usize> = matches.indices_of("group").map(Iterator::collect).unwrap_or_default();
    let all = matches.get_flag("all");
    let all_at = matches.indices_of("all").and_then(|mut at| at.next()).unwrap_or_default();
    let mut named: Vec<Entry<'h>> = Vec::new();
    let mut unnamed = Entry::new("");
    let mut all_done = !all;
    for (list, index) in lists.iter().zip(indices) {
        if !all_done && all_at < index {
            named.first_mut().unwrap_or(&mut unnamed).want_all(host);
            all_done = true;
        }
        let list = GroupList::read(list);
        match &list.path {
            Some(path) => {
                let mut entry = Entry::new(path);
                entry.want_list(host, &list)?;
                named.push(entry);
            }
            None => named.first_mut().unwrap_or(&mut unnamed).want_list(host, &list)?,
        }
    }
    if !all_done {
        named.first_mut().unwrap_or(&mut unnamed).want_all(host);
    }
    if !named.is_empty() && (matches.contains_id("path") || !unnamed.wanted.is_empty()) {
        return Err(Failure::usage("a group is named by -g or as an argument, not by both"));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    if unnamed.wanted.is_empty() {
        unnamed.want_all(host);
    }
    if unnamed.wanted.is_empty() {
        return Err(Failure::new(NO_CONTROLLER, "no controller is on a mounted hierarchy"));
    }
    let of = |path: &&str| Entry { path: (*path).to_owned(), ..unnamed.again() };
    Ok(paths(matches)?.iter().map(of).collect())
}

impl<'h> Entry<'h> {
    fn again(&self) -> Entry<'h> {
        Entry { path: String::new(), wanted: self.wanted.clone(), everything: self.everything }
    }
}
