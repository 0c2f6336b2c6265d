//! Which processes of a group are outside its directory in one of the hierarchies, and the move there and back. On v1 a
//! group lives in several hierarchies, and a limit in one of them holds only for the processes that are in it there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel::{GroupName, Hierarchy, Host, Op, Seat};
use plan::{Action, Outsider, Place};
use rustix::io::Errno;
use settings::{Controller, Version};
use units::group_path;

use crate::{
    Error, Target,
    entry::Entry,
    journal::Journal,
    performer::{self, Performer, not_mounted, unwritable},
};

/// The file that takes a process with all its threads.
const PROCESSES: &str = "cgroup.procs";
/// The file that takes one thread, on v1.
const THREADS: &str = "tasks";
/// How often the processes are looked at again, as they may have forked meanwhile.
const MAX_PASSES: usize = 64;

/// Where a process is in each hierarchy, below its mount; `None` if it ended.
fn paths(host: &Host, pid: u32) -> Option<Vec<Option<String>>> {
    let groups = host.kernel().groups_of(host.hierarchies(), pid).ok()?;
    let below = host.hierarchies().iter().zip(groups);
    Some(below.map(|(at, path)| path.and_then(|path| at.below_mount(&path))).collect())
}

/// In which group every process is, in each hierarchy.
#[derive(Default)]
pub(crate) struct Membership {
    processes: BTreeMap<u32, Vec<Option<String>>>,
    /// The processes with this path in some hierarchy, but for the root: thousands of groups are looked up here.
    by_path: HashMap<String, BTreeSet<u32>>,
}

/// Is a process with these paths in the group of these places, in any hierarchy? In the root is who is in no group.
fn is_in(paths: &[Option<String>], places: &[String]) -> bool {
    let same = |(path, place): (&Option<String>, &String)| !place.is_empty() && path.as_ref() == Some(place);
    paths.iter().zip(places).any(same)
}

fn places(host: &Host, group: &GroupName) -> Vec<String> {
    host.hierarchies().iter().map(|at| group.below(host.base(at).path())).collect()
}

impl Membership {
    /// Of all processes but the kernel's own threads that are in the root everywhere.
    pub fn scan(host: &Host) -> Membership {
        let groups = |pid: u32| {
            let paths = paths(host, pid)?;
            paths.iter().flatten().any(|path| !path.is_empty()).then_some((pid, paths))
        };
        let mut membership = Membership::default();
        let processes = host.kernel().processes().unwrap_or_default();
        processes.into_iter().filter_map(groups).for_each(|(pid, paths)| membership.insert(pid, paths));
        membership
    }

    fn insert(&mut self, pid: u32, paths: Vec<Option<String>>) {
        for path in paths.iter().flatten().filter(|path| !path.is_empty()) {
            match self.by_path.get_mut(path) {
                Some(pids) => _ = pids.insert(pid),
                None => _ = self.by_path.insert(path.clone(), BTreeSet::from([pid])),
            }
        }
        self.processes.insert(pid, paths);
    }

    /// Adds those that the group's own directories list: a list is of one moment, while a process that hands on to a
    /// new one and ends is seen by no scan. Returns those that were gone when they were looked at: on v1 a process
    /// that ends is shown in the root.
    pub fn add_listed(&mut self, host: &Host, group: &GroupName, seats: &[Seat<'_>]) -> BTreeSet<u32> {
        let mut listed: BTreeSet<u32> = seats.iter().flat_map(|seat| host.tasks_in(seat)).collect();
        for &pid in &listed {
            if !self.processes.contains_key(&pid)
                && let Some(paths) = paths(host, pid)
            {
                self.insert(pid, paths);
            }
        }
        if listed.is_empty() {
            return listed;
        }
        let places = places(host, group);
        listed.retain(|pid| !self.processes.get(pid).is_some_and(|paths| is_in(paths, &places)));
        listed
    }

    /// The processes that are in the group in any hierarchy, with their places.
    fn members<'m>(
        &'m self,
        host: &'m Host,
        group: &'m GroupName,
    ) -> impl Iterator<Item = (u32, &'m [Option<String>])> {
        let places = places(host, group);
        let pids: BTreeSet<u32> =
            places.iter().filter_map(|place| self.by_path.get(place)).flatten().copied().collect();
        pids.into_iter().filter_map(move |pid| {
            let paths = self.processes.get(&pid)?;
            is_in(paths, &places).then_some((pid, paths.as_slice()))
        })
    }

    /// The group's processes, ascending.
    pub fn of(&self, host: &Host, group: &GroupName) -> Vec<u32> {
        self.members(host, group).map(|(pid, _)| pid).collect()
    }

    /// Those of the group's processes that are neither in its directory at a place nor below it, as they were looked
    /// at; with where they are.
    fn elsewhere(&self, host: &Host, group: &GroupName, place: &Place) -> Vec<(u32, String)> {
        let members = self.members(host, group);
        let elsewhere = members.filter_map(|(pid, paths)| {
            let path = paths.get(place.hierarchy)?.as_ref()?;
            (!group_path::is_at_or_below(path, &place.path)).then(|| (pid, path.clone()))
        });
        elsewhere.collect()
    }

    /// The same, without those that have ended since.
    pub fn outside(&self, host: &Host, group: &GroupName, place: &Place) -> Vec<(u32, String)> {
        let mut elsewhere = self.elsewhere(host, group, place);
        elsewhere.retain(|(pid, _)| !is_dead(host, *pid));
        elsewhere
    }

    /// Drops processes that have ended.
    pub fn forget(&mut self, ended: &BTreeSet<u32>) {
        self.processes.retain(|pid, _| !ended.contains(pid));
    }
}

/// Has it exited? A zombie has.
pub(crate) fn is_dead(host: &Host, pid: u32) -> bool {
    host.kernel().process(pid).is_ok_and(|process| process.is_dead())
}

/// A thread, and its group in each hierarchy of v1.
pub(crate) type Thread = (u32, Vec<Option<String>>);

/// The threads of those processes that have several: on v1 each may be in another group.
pub(crate) fn threads(host: &Host, processes: &BTreeSet<u32>) -> BTreeMap<u32, Vec<Thread>> {
    let of_v1 = |at: &Hierarchy| at.version == Version::V1;
    if !host.hierarchies().iter().any(of_v1) {
        return BTreeMap::new();
    }
    let groups = |thread: u32| {
        let groups = host.kernel().groups_of(host.hierarchies(), thread).ok()?; // it ended
        let below = host.hierarchies().iter().zip(groups);
        let paths = below.map(|(at, path)| at.below_mount(&path.filter(|_| of_v1(at))?)).collect();
        Some((thread, paths))
    };
    let several = processes.iter().filter_map(|pid| {
        let threads = host.kernel().threads(*pid).ok().filter(|threads| threads.len() > 1)?;
        Some((*pid, threads.into_iter().filter_map(groups).collect()))
    });
    several.collect()
}

/// The same of a group's processes; of none where its places are on v2, which has a process as a whole.
pub(crate) fn of_members(
    host: &Host,
    membership: &Membership,
    group: &GroupName,
    places: &[Place],
) -> BTreeMap<u32, Vec<Thread>> {
    let has_limits = |place: &Place| {
        let at = host.hierarchies().get(place.hierarchy);
        place.version == Version::V1 && at.is_some_and(|at| !at.controllers.is_empty())
    };
    match places.iter().any(has_limits) {
        true => threads(host, &membership.of(host, group).into_iter().collect()),
        false => BTreeMap::new(),
    }
}

/// May a process be taken out of that group for the sake of this one? Out of the root, the place where our groups are,
/// and a group above; any other is somebody else's choice.
pub(crate) fn may_leave(host: &Host, from: &str, place: &Place) -> bool {
    let base = host.hierarchies().get(place.hierarchy).map(|at| host.base(at).path().to_owned());
    from.is_empty() || base.as_deref() == Some(from) || group_path::is_below(&place.path, from)
}

/// Did somebody choose this group for a process? Groups of systemd and of container managers are not chosen.
pub(crate) fn is_chosen(host: &Host, at: &Hierarchy, path: &str) -> bool {
    let base = host.base(at).path();
    let from_root = GroupName::new(&format!("/{path}"));
    !base.is_empty() && group_path::is_at_or_below(path, base)
        || from_root.is_ok_and(|group| kernel::refuse_foreign(&group, kernel::Change::Enter).is_ok())
}

/// Does the group at a place have a directory in another hierarchy that stays?
pub(crate) fn stays_elsewhere(host: &Host, place: &Place, goes: impl Fn(&Place) -> bool) -> bool {
    let Some(at) = host.hierarchies().get(place.hierarchy) else { return false };
    let named = performer::name(&host.named(at, &place.path));
    // with our groups in the root, the name has no slash to tell a group from the root
    let from_root = GroupName::new(&format!("/{}", place.path)).ok();
    let from_root = from_root.filter(|_| host.base(at).path().is_empty());
    let others = host.hierarchies().iter().filter(|other| other.id != at.id && !other.controllers.is_empty());
    others.into_iter().any(|other| {
        std::iter::once(&named).chain(&from_root).any(|group| {
            let path = group.below(host.base(other).path());
            let place = Place { hierarchy: other.id, path, version: other.version };
            !goes(&place) && host.kernel().exists(other, &place.path)
        })
    })
}

/// Is the group frozen in this directory? A process that is moved out of it is thawed.
pub(crate) fn holds_frozen(host: &Host, place: &Place) -> bool {
    let Some(at) = host.hierarchies().get(place.hierarchy) else { return false };
    let group = performer::name(&host.named(at, &place.path));
    at.controllers.contains(&Controller::Freezer) && host.frozen_by(&group).is_some()
}

/// These processes, each to be moved to the nearest group above that is not removed as well.
pub(crate) fn to_above(
    target: Target<'_>,
    place: &Place,
    tasks: &[u32],
    goes: impl Fn(&Place) -> bool,
) -> Vec<Outsider> {
    let goes = |path: &str| goes(&Place { path: path.to_owned(), ..place.clone() });
    let above = group_path::branch(&place.path).skip(1).find(|above| !goes(above)).unwrap_or("");
    let outsider = |pid: &u32| {
        let started = target.system.started(*pid).ok()?;
        Some(Outsider { thread: *pid, started, from: above.to_owned() })
    };
    tasks.iter().filter_map(outsider).collect()
}

/// What is to be moved into a place for a group.
pub(crate) struct Outsiders {
    pub alive: Vec<Outsider>,
    /// On v1 threads out of the place in which the first one of their process is, each with that process. They come back without
    /// a record: that is where they belong.
    pub threads: Vec<(u32, Outsider)>,
    /// Those that ended since they were looked at: they may have forked before, and nobody has looked at what they
    /// started.
    pub ended: BTreeSet<u32>,
}

/// The processes of a group that a step would move into a place, and threads of the others. `threads`: those of the group's
/// processes.
pub(crate) fn outsiders(
    target: Target<'_>,
    membership: &Membership,
    threads: &BTreeMap<u32, Vec<Thread>>,
    (group, place): (&GroupName, &Place),
) -> Outsiders {
    let mut found = Outsiders { alive: Vec::new(), threads: Vec::new(), ended: BTreeSet::new() };
    for (pid, from) in membership.elsewhere(target.host, group, place) {
        match target.system.started(pid).ok().filter(|_| !is_dead(target.host, pid)) {
            Some(_) if !may_leave(target.host, &from, place) => {}
            Some(started) => found.alive.push(Outsider { thread: pid, started, from }),
            None => _ = found.ended.insert(pid),
        }
    }
    if place.version == Version::V1 {
        found.threads =
            threads.iter().flat_map(|(process, all)| stray(target, place, *process, all)).collect();
    }
    found
}

/// The threads of a process that are out of a place in which its first one is.
fn stray(target: Target<'_>, place: &Place, process: u32, threads: &[Thread]) -> Vec<(u32, Outsider)> {
    let path = |(_, paths): &Thread| paths.get(place.hierarchy).cloned().flatten();
    let is_in = |path: &str| group_path::is_at_or_below(path, &place.path);
    let first = threads.iter().find(|(thread, _)| *thread == process);
    if !first.and_then(path).is_some_and(|path| is_in(&path)) {
        return Vec::new();
    }
    let outside = threads.iter().filter_map(|thread| {
        let from = path(thread).filter(|from| !is_in(from) && may_leave(target.host, from, place))?;
        let started = target.system.started(thread.0).ok()?;
        Some((process, Outsider { thread: thread.0, started, from }))
    });
    outside.collect()
}

/// Moves the group's processes into the place, until none is outside.
pub(crate) fn bring(
    performer: &mut Performer<'_>,
    step: usize,
    entry: &Entry,
    place: &Place,
    journal: &mut Journal<'_>,
) -> Result<(), Error> {
    let group = entry.group.clone();
    let (mut moved, mut ended) = (0, BTreeSet::new());
    for _ in 0..MAX_PASSES {
        let mut membership = Membership::default();
        let host = performer.host();
        let mut gone = membership.add_listed(host, &group, &host.seats(&group));
        let target = Target { host: performer.host(), system: performer.system() };
        let threads = of_members(target.host, &membership, &group, std::slice::from_ref(place));
        let outside = outsiders(target, &membership, &threads, (&group, place));
        gone.extend(outside.ended);
        // one that ended since it was listed may have forked before
        if outside.alive.is_empty() && outside.threads.is_empty() && gone.is_subset(&ended) {
            return Ok(());
        }
        ended = gone;
        moved += outside.threads.len();
        for (_, one) in outside.threads {
            put(performer, entry, place, (THREADS, &place.path), one.thread)?;
        }
        for one in outside.alive {
            journal.moved(step, &one).map_err(unwritable)?;
            put(performer, entry, place, (PROCESSES, &place.path), one.thread)?;
            performer.moved.push((step, one));
            moved += 1;
        }
    }
    let target = Target { host: performer.host(), system: performer.system() };
    let membership = Membership::scan(performer.host());
    let threads = of_members(target.host, &membership, &group, std::slice::from_ref(place));
    let left = outsiders(target, &membership, &threads, (&group, place));
    let left = left.alive.len() + left.threads.len();
    Err(Error::Kernel(kernel::Error::ForkFaster { group: group.to_string(), moved, left }))
}

/// Moves processes back to where they were. What they forked since then goes along.
pub(crate) fn give_back(
    performer: &mut Performer<'_>,
    step: usize,
    entry: &Entry,
    (place, tasks): (&Place, &[Outsider]),
    journal: &mut Journal<'_>,
) -> Result<(), Error> {
    for _ in 0..MAX_PASSES {
        let returning = returning(performer, place, tasks);
        if returning.is_empty() {
            return Ok(());
        }
        for (now, to) in returning {
            journal.moved(step, &now).map_err(unwritable)?;
            put(performer, entry, place, (PROCESSES, to), now.thread)?;
            performer.moved.push((step, now));
        }
    }
    Ok(())
}

/// The processes in a place that were moved there, each with where it came from; and what they forked since then, if
/// all came from one group.
pub(crate) fn returning<'o>(
    performer: &Performer<'_>,
    place: &Place,
    tasks: &'o [Outsider],
) -> Vec<(Outsider, &'o str)> {
    let origins: BTreeMap<u32, &Outsider> = tasks.iter().map(|one| (one.thread, one)).collect();
    let first = tasks.first().map(|one| one.from.as_str());
    let common = first.filter(|first| tasks.iter().all(|one| one.from == **first));
    let each = inside(performer, place).into_iter().filter_map(|pid| {
        let started = performer.system().started(pid).ok()?;
        let known = origins.get(&pid).filter(|one| one.started == started).map(|one| one.from.as_str());
        let now = Outsider { thread: pid, started, from: place.path.clone() };
        Some((now, known.or(common)?))
    });
    each.collect()
}

/// Puts processes back after a failure, as far as that goes; says what is left.
pub(crate) fn put_back(performer: &Performer<'_>, entry: &Entry, moved: &[&Outsider]) -> Vec<String> {
    let Some(place) = entry.action.place() else { return Vec::new() };
    let mut left = Vec::new();
    for one in moved.iter().rev() {
        if performer.system().started(one.thread) != Ok(one.started) {
            continue; // it ended
        }
        if let Err(error) = put(performer, &moving(entry, place), place, (PROCESSES, &one.from), one.thread) {
            left.push(error.in_words());
        }
    }
    left
}

/// Moves out of a group that is to go what was moved there, and what that forked since then, until nothing of it is
/// inside or it forks faster than it is moved.
///
/// # Errors
/// The first move that was refused.
pub(crate) fn empty(
    performer: &Performer<'_>,
    entry: &Entry,
    place: &Place,
    moved: &[Outsider],
) -> Result<(), Error> {
    for _ in 0..MAX_PASSES {
        let returning = returning(performer, place, moved);
        if returning.is_empty() {
            break;
        }
        for (now, to) in returning {
            put(performer, &moving(entry, place), place, (PROCESSES, to), now.thread)?;
        }
    }
    Ok(())
}

fn moving(entry: &Entry, place: &Place) -> Entry {
    Entry { action: Action::MoveTasks { place: place.clone(), tasks: Vec::new() }, ..entry.clone() }
}

fn inside(performer: &Performer<'_>, place: &Place) -> Vec<u32> {
    let text = performer.content(place, PROCESSES).unwrap_or_default();
    let all: BTreeSet<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    all.into_iter().collect()
}

/// `file`: [`PROCESSES`] or [`THREADS`].
fn put(
    performer: &Performer<'_>,
    entry: &Entry,
    place: &Place,
    (file, to): (&str, &str),
    pid: u32,
) -> Result<(), Error> {
    let Some(at) = performer.at(place) else { return Err(not_mounted(entry)) };
    match performer.host().kernel().write(at, to, file, &pid.to_string()) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => {
            let pid_text = pid.to_string();
            Err(performer.refused(Op::Move { pid }, entry, Some(file), Some(&pid_text), errno))
        }
    }
}
