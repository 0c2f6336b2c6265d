//! The files that every v2 group has: tasks, types and threaded subtrees, which controllers reach the children,
//! freezing, killing, and limits on the number of groups.

use rustix::io::Errno;
use settings::{
    Controller::{self, Core},
    Version,
};

use crate::{
    core_v1::lines,
    files, numbers,
    state::{File, Place, Scope, State, Task, file},
};

/// The controllers that divide a threaded subtree among threads.
const THREADED: [&str; 4] = ["cpuset", "cpu", "pids", "perf_event"];
/// All names that `cgroup.subtree_control` knows, in the kernel's order.
const KNOWN: [&str; 9] = ["cpuset", "cpu", "io", "memory", "perf_event", "hugetlb", "pids", "rdma", "misc"];
/// The largest number that a limit on groups may be; it is the same as `max`.
const INT_MAX: i64 = i32::MAX as i64;
const NO_PRESSURE: &str =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0";

pub(super) const FILES: &[File] = &[
    file("cgroup.procs", Core, "")
        .everywhere()
        .reads(procs)
        .writes(|state, place, _, text| state.attach(place, text, Scope::Process)),
    file("cgroup.threads", Core, "")
        .everywhere()
        .reads(threads)
        .writes(|state, place, _, text| state.attach(place, text, Scope::Thread)),
    file("cgroup.type", Core, "domain")
        .reads(|state, place, _| Ok(format!("{}\n", kind(state, place))))
        .writes(set_type),
    file("cgroup.controllers", Core, "")
        .everywhere()
        .reads(|state, place, _| Ok(words(available(state, place)))),
    file("cgroup.subtree_control", Core, "")
        .everywhere()
        .reads(|state, place, _| Ok(words(enabled(state, place))))
        .writes(control),
    file("cgroup.events", Core, "").reads(events),
    file("cgroup.freeze", Core, "0").writes(freeze),
    file("cgroup.kill", Core, "").writes(kill).write_only(),
    file("cgroup.max.depth", Core, "max").everywhere().writes(group_limit),
    file("cgroup.max.descendants", Core, "max").everywhere().writes(group_limit),
    file("cgroup.stat", Core, "").everywhere().reads(stat),
    file("cgroup.pressure", Core, "1").everywhere().unmodelled(),
    file("cpu.pressure", Core, NO_PRESSURE).everywhere().unmodelled(),
    file("io.pressure", Core, NO_PRESSURE).everywhere().unmodelled(),
    file("memory.pressure", Core, NO_PRESSURE).everywhere().unmodelled(),
];

/// A line of names; no line at all without a name.
fn words(names: Vec<&str>) -> String {
    if names.is_empty() { String::new() } else { format!("{}\n", names.join(" ")) }
}

/// What the group could hand to its children.
fn available<'s>(state: &'s State, place: &Place) -> Vec<&'s str> {
    match place.parent() {
        Some(parent) => enabled(state, &parent),
        None => {
            let here = &state.trees[place.tree].at.controllers;
            let names: Vec<&str> =
                here.iter().filter_map(|controller| controller.name(Version::V2)).collect();
            KNOWN.into_iter().filter(|name| names.contains(name)).collect()
        }
    }
}

/// What the group hands to its children, in the kernel's order.
fn enabled<'s>(state: &'s State, place: &Place) -> Vec<&'s str> {
    let value = state.value(place, "cgroup.subtree_control");
    KNOWN.into_iter().filter(|name| value.split(' ').any(|word| word == *name)).collect()
}

fn control(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let mut wanted: Vec<(&str, bool)> = Vec::new();
    for word in text.split_ascii_whitespace() {
        let (name, on) = match (word.strip_prefix('+'), word.strip_prefix('-')) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => return Err(Errno::INVAL),
        };
        let name = KNOWN.into_iter().find(|known| *known == name).ok_or(Errno::INVAL)?;
        wanted.retain(|(earlier, _)| *earlier != name);
        wanted.push((name, on));
    }
    let mut now = enabled(state, place).into_iter().map(str::to_owned).collect::<Vec<_>>();
    wanted.retain(|(name, on)| now.iter().any(|word| word == name) != *on);
    let available = available(state, place);
    for (name, on) in &wanted {
        if *on && !available.contains(name) {
            return Err(Errno::NOENT);
        }
        let used = state.children(place).iter().any(|child| enabled(state, child).contains(name));
        if !on && used {
            return Err(Errno::BUSY);
        }
    }
    let new: Vec<&str> = wanted.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    may_enable(state, place, &new)?;
    for (name, on) in wanted {
        if on {
            now.push(name.to_owned());
        } else {
            now.retain(|word| word != name);
            forget(state, place, name);
        }
    }
    state.set(place, file.name, now.join(" "));
    Ok(())
}

/// What the children were set to, and who owned their files, is lost with the controller.
fn forget(state: &mut State, place: &Place, controller: &str) {
    for child in state.children(place) {
        // `memory.pressure` and its like are the core's
        let of_core = |name: &str| files::find(state, &child, name).is_some_and(File::is_core);
        let goes = |name: &&'static str| name.split('.').next() == Some(controller) && !of_core(name);
        let Some(group) = state.group(&child) else { continue };
        let gone: Vec<&'static str> =
            group.values.keys().chain(group.files.keys()).copied().filter(|name| goes(name)).collect();
        if let Some(group) = state.group_mut(&child) {
            gone.iter().for_each(|name| {
                group.values.remove(name);
                group.files.remove(name);
            });
        }
    }
}

fn may_enable(state: &State, place: &Place, new: &[&str]) -> Result<(), Errno> {
    if new.is_empty() {
        return Ok(());
    }
    if !is_valid_domain(state, &domain_of(state, place)) {
        return Err(Errno::OPNOTSUPP);
    }
    if place.is_root() {
        return Ok(());
    }
    if new.iter().any(|name| !THREADED.contains(name)) {
        if is_thread_root(state, place) || is_threaded(state, place) {
            return Err(Errno::OPNOTSUPP);
        }
    } else if can_be_thread_root(state, place) || is_threaded(state, place) {
        return Ok(());
    }
    if state.threads_in(place).is_empty() { Ok(()) } else { Err(Errno::BUSY) }
}

fn is_threaded(state: &State, place: &Place) -> bool {
    state.value(place, "cgroup.type") == "threaded"
}

/// The group whose processes the group's threads belong to: itself, unless it is threaded.
fn domain_of(state: &State, place: &Place) -> Place {
    place.upward().find(|place| !is_threaded(state, place)).unwrap_or_else(|| place.clone())
}

fn hands_out(state: &State, place: &Place, threaded: bool) -> bool {
    enabled(state, place).iter().any(|name| THREADED.contains(name) == threaded)
}

/// Is it the root of a threaded subtree: because a child is threaded, or because it has threads itself beside
/// children that it divides threads' resources among?
fn is_thread_root(state: &State, place: &Place) -> bool {
    !is_threaded(state, place)
        && (state.children(place).iter().any(|child| is_threaded(state, child))
            || (!state.threads_in(place).is_empty() && hands_out(state, place, true)))
}

fn can_be_thread_root(state: &State, place: &Place) -> bool {
    let domain_child = |child: &Place| !is_threaded(state, child) && state.is_populated(child);
    place.is_root()
        || (!is_threaded(state, place)
            && !state.children(place).iter().any(domain_child)
            && !hands_out(state, place, false))
}

fn is_valid_domain(state: &State, place: &Place) -> bool {
    let spoils =
        |above: Place| is_threaded(state, &above) || (!above.is_root() && is_thread_root(state, &above));
    !is_threaded(state, place) && !place.ancestors().any(spoils)
}

fn kind(state: &State, place: &Place) -> &'static str {
    if is_threaded(state, place) {
        "threaded"
    } else if !is_valid_domain(state, place) {
        "domain invalid"
    } else if is_thread_root(state, place) {
        "domain threaded"
    } else {
        "domain"
    }
}

fn set_type(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    if text.trim() != "threaded" {
        return Err(Errno::INVAL);
    }
    if is_threaded(state, place) {
        return Ok(());
    }
    let domain = place.parent().map(|parent| domain_of(state, &parent));
    let joins =
        domain.is_some_and(|domain| is_valid_domain(state, &domain) && can_be_thread_root(state, &domain));
    if state.is_populated(place) || hands_out(state, place, false) || !joins {
        return Err(Errno::OPNOTSUPP);
    }
    state.set(place, file.name, "threaded");
    Ok(())
}

/// Can the group take these tasks?
pub(super) fn may_host(state: &State, place: &Place, task: &Task, scope: Scope) -> Result<(), Errno> {
    if !is_valid_domain(state, &domain_of(state, place)) {
        return Err(Errno::OPNOTSUPP);
    }
    let hosts = can_be_thread_root(state, place) || is_threaded(state, place);
    if !hosts && !enabled(state, place).is_empty() {
        return Err(Errno::BUSY);
    }
    let from = Place::new(place.tree, task.groups[place.tree].clone());
    if scope == Scope::Thread && domain_of(state, &from) != domain_of(state, place) {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(())
}

/// The processes whose domain the group is, also where their threads are in threaded groups below it.
fn procs(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    if is_threaded(state, place) {
        return Err(Errno::OPNOTSUPP);
    }
    let leaders = state.tasks.values().filter(|task| task.process.pid == task.process.tgid);
    let here = leaders
        .filter(|task| domain_of(state, &Place::new(place.tree, task.groups[place.tree].clone())) == *place);
    Ok(lines(&here.map(|task| task.process.pid).collect::<Vec<_>>()))
}

fn threads(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    Ok(lines(&state.threads_in(place)))
}

/// Does the group, or one above it, have `cgroup.freeze` set?
fn is_freezing(state: &State, place: &Place) -> bool {
    place.upward().any(|place| state.flag(&place, "cgroup.freeze"))
}

fn events(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    let stuck =
        state.threads_below(place).iter().any(|pid| state.tasks.get(pid).is_some_and(|task| task.stuck));
    let frozen = is_freezing(state, place) && !stuck;
    Ok(format!("populated {}\nfrozen {}\n", u8::from(state.is_populated(place)), u8::from(frozen)))
}

fn freeze(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    match numbers::trimmed(text)? {
        number @ (0 | 1) => {
            state.set(place, file.name, number.to_string());
            Ok(())
        }
        _ => Err(Errno::RANGE),
    }
}

fn kill(state: &mut State, place: &Place, _: &'static File, text: &str) -> Result<(), Errno> {
    if numbers::trimmed(text)? != 1 {
        return Err(Errno::RANGE);
    }
    if is_threaded(state, place) {
        return Err(Errno::OPNOTSUPP);
    }
    for pid in state.threads_below(place) {
        if let Some(task) = state.tasks.get(&pid) {
            state.kill(task.process.tgid);
        }
    }
    Ok(())
}

fn group_limit(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let limit = numbers::count(text, INT_MAX, Errno::RANGE, Errno::RANGE)?.filter(|limit| *limit < INT_MAX);
    state.set(place, file.name, limit.map_or("max".to_owned(), |limit| limit.to_string()));
    Ok(())
}

/// Do the limits on depth and number above a new group allow it?
pub(super) fn has_room(state: &State, place: &Place) -> Result<(), Errno> {
    for (level, above) in place.ancestors().enumerate() {
        let at_limit = |file, number: usize| {
            state.value(&above, file).parse::<usize>().is_ok_and(|limit| number >= limit)
        };
        if at_limit("cgroup.max.depth", level)
            || at_limit("cgroup.max.descendants", state.descendants(&above).len())
        {
            return Err(Errno::AGAIN);
        }
    }
    Ok(())
}

fn stat(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    Ok(format!("nr_descendants {}\nnr_dying_descendants 0\n", state.descendants(place).len()))
}

/// The nearest group upward that `cpuset` was handed to; the root otherwise.
pub(super) fn nearest_with_cpuset(state: &State, place: &Place) -> Place {
    let has = |place: &Place| {
        place.parent().is_none_or(|parent| files::enables(state, &parent, Controller::Cpuset))
    };
    place.upward().find(has).unwrap_or_else(|| Place::new(place.tree, ""))
}
