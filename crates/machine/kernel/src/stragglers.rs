//! Tasks of a group that its freezer does not reach: on v1 a group is a directory in each of several hierarchies,
//! and a task may be in one of them and not in another. Moves those that the freezer has in a group above; never
//! takes a task out of a group beside.

use std::collections::BTreeMap;

use units::group_path;

use crate::{Error, GroupName, Host, Seat, What};

/// The freezer's group that a task belongs into, with the task.
struct Straggler {
    pid: u32,
    /// The path below the freezer's mount where it is now.
    now: String,
    /// The group, or one below it, that the task is in elsewhere.
    group: GroupName,
}

/// Moves tasks of the group that the freezer has in a group above into the group's own directory there; returns
/// how many. `freezer` is the group's directory there.
///
/// # Errors
/// [`Error::OutOfReach`] if the freezer has some in a group elsewhere, and nothing is moved; what
/// [`Host::move_tasks`] says.
pub(crate) fn bring(host: &Host, freezer: &Seat<'_>, group: &GroupName) -> Result<usize, Error> {
    let all = find(host, freezer, group);
    let is_above = |path: &str| group_path::is_at_or_below(&freezer.path, path);
    let elsewhere: Vec<&Straggler> = all.iter().filter(|straggler| !is_above(&straggler.now)).collect();
    if let Some(first) = elsewhere.first() {
        return Err(Error::OutOfReach {
            group: group.to_string(),
            pids: elsewhere.iter().map(|straggler| straggler.pid).collect(),
            at: host.named(freezer.at, &first.now),
            mount: freezer.at.mount.clone(),
        });
    }
    let mut by_group: BTreeMap<String, (&GroupName, Vec<u32>)> = BTreeMap::new();
    for straggler in &all {
        let name = straggler.group.to_string();
        by_group.entry(name).or_insert_with(|| (&straggler.group, Vec::new())).1.push(straggler.pid);
    }
    for (into, pids) in by_group.values() {
        let seat = host.seat_in(freezer.at, into);
        // the group below may have no directory at the freezer
        let there = host.kernel().exists(seat.at, &seat.path);
        let (seat, into) = if there { (seat, (*into).clone()) } else { (freezer.clone(), group.clone()) };
        match host.move_into(&[(seat, into)], pids, What::Process) {
            Err(Error::NoProcess { .. }) => {} // it ended meanwhile: the next look finds who is left
            other => drop(other?),
        }
    }
    Ok(all.len())
}

/// Those that are in the group in another hierarchy, and not at the freezer; each thread counts.
fn find(host: &Host, freezer: &Seat<'_>, group: &GroupName) -> Vec<Straggler> {
    let mut found = Vec::new();
    let is_reached = |path: &str| group_path::is_at_or_below(path, &freezer.path);
    let others = host.seats(group).into_iter().filter(|seat| seat.at.id != freezer.at.id);
    for seat in others.flat_map(|seat| below(host, &seat)) {
        for pid in host.tasks_in(&seat).into_iter().filter(|pid| is_alive(host, *pid)) {
            let threads = host.kernel().threads(pid).unwrap_or_default();
            let outside = threads.iter().find_map(|thread| {
                let path = host.kernel().group_of(freezer.at, *thread).ok()?;
                freezer.at.below_mount(&path).filter(|path| !is_reached(path))
            });
            if let Some(now) = outside {
                // others may have given a group below it a name that ours can't have
                let group =
                    GroupName::new(&host.named(seat.at, &seat.path)).unwrap_or_else(|_| group.clone());
                found.push(Straggler { pid, now, group });
            }
        }
    }
    found.sort_by_key(|straggler| straggler.pid);
    found.dedup_by_key(|straggler| straggler.pid);
    found
}

/// Neither dead nor waiting for its parent.
pub(crate) fn is_alive(host: &Host, pid: u32) -> bool {
    host.kernel.process(pid).is_ok_and(|process| !process.is_dead())
}

/// The group's directory and all below it.
pub(crate) fn below<'h>(host: &Host, seat: &Seat<'h>) -> Vec<Seat<'h>> {
    let descendants = host.kernel.descendants(seat.at, &seat.path).unwrap_or_default();
    std::iter::once(seat.clone())
        .chain(descendants.into_iter().map(|path| Seat { at: seat.at, path }))
        .collect()
}
