//! Freezes, thaws and kills all tasks of a group and of the groups below it, and waits until that is really so.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use settings::{Controller, Version};
use units::{group_path, hint::Command};

use crate::{
    Change, Error, GroupName, Hierarchy, Host, Op, Seat, refuse_foreign,
    stragglers::{self, below, is_alive},
};

/// Whether a group's tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// They run.
    Thawed,
    /// Being frozen, not all tasks have stopped (v1 `FREEZING`, v2 `frozen 0`).
    Freezing,
    /// None runs.
    Frozen,
}

const SIGKILL: i32 = 9;
const POLL: Duration = Duration::from_millis(2);

/// Freezes or thaws a group and waits until the kernel says so, and, of a freeze, until each process of the group is
/// where the freezer reaches it. On timeout the request is taken back.
///
/// # Errors
/// [`Error::RootGroup`], what [`Host::seat`] says, [`Error::Refused`], [`Error::HoldsCaller`], [`Error::OutOfReach`],
/// [`Error::Timeout`] with what is in the way.
pub fn set_frozen(host: &Host, group: &GroupName, frozen: bool, timeout: Duration) -> Result<State, Error> {
    if group.path().is_empty() {
        return Err(Error::RootGroup { what: "freezing" });
    }
    refuse_foreign(group, if frozen { Change::Freeze } else { Change::Thaw })?;
    let seat = host.seat(group, Controller::Freezer)?;
    if frozen {
        refuse_caller(host, &host.seats(group), group)?;
        stragglers::bring(host, &seat, group)?;
    }
    let requested_before = is_freeze_requested(host, &seat, group)?;
    request(host, &seat, group, frozen)?;
    let goal = if frozen { State::Frozen } else { State::Thawed };
    let started = Instant::now();
    loop {
        let now = state(host, &seat, group)?;
        // a task may have forked elsewhere while it was on its way here
        if now == goal && (!frozen || stragglers::bring(host, &seat, group)? == 0) {
            return Ok(now);
        }
        if started.elapsed() >= timeout {
            let left = unfinished(host, &seat, frozen);
            if requested_before != frozen {
                request(host, &seat, group, requested_before)?;
            }
            let what = if frozen { "freezing" } else { "thawing" };
            return Err(Error::Timeout { what, group: group.to_string(), seconds: timeout.as_secs(), left });
        }
        std::thread::sleep(POLL);
    }
}

/// A frozen caller can't end its wait, a killed one can't say what it did.
fn refuse_caller(host: &Host, seats: &[Seat<'_>], group: &GroupName) -> Result<(), Error> {
    let pid = host.kernel.caller().0;
    if members(host, seats).contains(&pid) {
        let parent = host.kernel.process(pid).map_or(pid, |process| process.parent);
        return Err(Error::HoldsCaller { group: group.to_string(), parent });
    }
    Ok(())
}

/// Does the group's own file request the freeze? A group below a frozen one is frozen without.
fn is_freeze_requested(host: &Host, seat: &Seat<'_>, group: &GroupName) -> Result<bool, Error> {
    let file = match seat.at.version {
        Version::V1 => "freezer.self_freezing",
        Version::V2 => "cgroup.freeze",
    };
    Ok(host.read(seat, group, file)?.trim() == "1")
}

fn request(host: &Host, seat: &Seat<'_>, group: &GroupName, frozen: bool) -> Result<(), Error> {
    match (seat.at.version, frozen) {
        (Version::V1, true) => host.write(seat, group, "freezer.state", "FROZEN"),
        (Version::V1, false) => host.write(seat, group, "freezer.state", "THAWED"),
        (Version::V2, _) => host.write(seat, group, "cgroup.freeze", if frozen { "1" } else { "0" }),
    }
}

fn state(host: &Host, seat: &Seat<'_>, group: &GroupName) -> Result<State, Error> {
    let requested = |text: &str, word: &str| text.split_whitespace().any(|part| part == word);
    match seat.at.version {
        // reading freezer.state is what lets v1 finish a freeze, so polling is not idle
        Version::V1 => Ok(match host.read(seat, group, "freezer.state")?.trim() {
            "FROZEN" => State::Frozen,
            "FREEZING" => State::Freezing,
            _ => State::Thawed,
        }),
        Version::V2 => {
            let events = host.read(seat, group, "cgroup.events")?;
            if events.lines().any(|line| line == "frozen 1") {
                return Ok(State::Frozen);
            }
            let freezing = requested(&host.read(seat, group, "cgroup.freeze")?, "1");
            Ok(if freezing { State::Freezing } else { State::Thawed })
        }
    }
}

/// The tasks that keep a freeze from finishing, or the frozen parent that keeps a thaw from it.
fn unfinished(host: &Host, seat: &Seat<'_>, frozen: bool) -> String {
    if !frozen {
        return match frozen_parent(host, seat) {
            Some(parent) => {
                let parent = host.named(seat.at, &parent);
                let thaw = Command::ringfence("thaw").group(&parent);
                format!("group '{parent}' above it is frozen ({thaw})")
            }
            None => "the kernel did not report it thawed".to_owned(),
        };
    }
    let running: Vec<String> = below(host, seat)
        .iter()
        .flat_map(|seat| host.tasks_in(seat))
        .filter_map(|pid| host.kernel.process(pid).ok())
        .filter(|process| process.state == 'D')
        .take(5)
        .map(|process| format!("{} ({})", process.pid, units::printable(&process.comm)))
        .collect();
    match running.as_slice() {
        [] => "the kernel did not report it frozen".to_owned(),
        tasks => format!("still in an uninterruptible wait: {}", tasks.join(", ")),
    }
}

/// The group above whose own file requests the freeze.
fn frozen_parent(host: &Host, seat: &Seat<'_>) -> Option<String> {
    let mut above = group_path::ancestors(&seat.path).filter(|path| !path.is_empty());
    above.find(|path| asks_itself(host, seat.at, path)).map(str::to_owned)
}

/// Does the group's own file request the freeze?
pub(crate) fn asks_itself(host: &Host, at: &Hierarchy, path: &str) -> bool {
    let file = match at.version {
        Version::V1 => "freezer.self_freezing",
        Version::V2 => "cgroup.freeze",
    };
    host.kernel.read(at, path, file).is_ok_and(|text| text.trim() == "1")
}

/// The path of the group, this or one above, whose own file requests the freeze.
pub(crate) fn frozen_at(host: &Host, seat: &Seat<'_>) -> Option<String> {
    if asks_itself(host, seat.at, &seat.path) {
        return Some(seat.path.clone());
    }
    frozen_parent(host, seat)
}

/// Kills every process in a group and below it, and waits until they are gone; returns how many there were. Frozen
/// groups are thawed for it. On v1 a process goes if any of its threads is in the group.
///
/// # Errors
/// [`Error::RootGroup`], [`Error::NoGroup`], [`Error::Refused`], [`Error::HoldsCaller`], [`Error::NotSignalled`] for
/// want of a right, [`Error::Timeout`] with those that are left.
pub fn kill(host: &Host, group: &GroupName, timeout: Duration) -> Result<usize, Error> {
    if group.path().is_empty() {
        return Err(Error::RootGroup { what: "killing" });
    }
    refuse_foreign(group, Change::Kill)?;
    let seats = host.existing(group)?;
    refuse_caller(host, &seats, group)?;
    let first = members(host, &seats);
    let by_kernel = kill_by_kernel(host, &seats, group)?;
    // without cgroup.kill a frozen group can't fork its way out between two passes
    let frozen = if by_kernel { Vec::new() } else { freeze_for_kill(host, group) };
    let started = Instant::now();
    loop {
        let left = members(host, &seats);
        if !by_kernel {
            // any other failure is named when the time is over
            let failed = send_to(host, &seats, &left, SIGKILL);
            if let Some(&(pid, errno)) = failed.iter().find(|(_, errno)| *errno == Errno::PERM) {
                frozen.iter().for_each(|seat| drop(request(host, seat, group, false)));
                let (sent, all) = (left.len() - failed.len(), left.len());
                return Err(Error::NotSignalled { group: group.to_string(), pid, errno, sent, all });
            }
            // a frozen v1 task dies when it is thawed
            for seat in &frozen {
                request(host, seat, group, false)?;
            }
        }
        if left.is_empty() {
            return Ok(first.len());
        }
        if started.elapsed() >= timeout {
            return Err(not_killed(host, group, &left, timeout));
        }
        std::thread::sleep(POLL);
    }
}

/// Sends a signal to every process in a group and below it, once; returns how many got it. Does not wait.
///
/// # Errors
/// [`Error::RootGroup`], [`Error::NoGroup`], [`Error::HoldsCaller`], [`Error::NotSignalled`].
pub fn signal(host: &Host, group: &GroupName, signal: i32) -> Result<usize, Error> {
    if group.path().is_empty() {
        return Err(Error::RootGroup { what: "signalling" });
    }
    refuse_foreign(group, Change::Kill)?;
    let seats = host.existing(group)?;
    refuse_caller(host, &seats, group)?;
    let all = members(host, &seats);
    let failed = send_to(host, &seats, &all, signal);
    match failed.first() {
        None => Ok(all.len()),
        Some(&(pid, errno)) => Err(Error::NotSignalled {
            group: group.to_string(),
            pid,
            errno,
            sent: all.len() - failed.len(),
            all: all.len(),
        }),
    }
}

/// Returns those that are still there and did not get it. A number may have become another process's since it was
/// read: only who still is in the group is meant.
fn send_to(host: &Host, seats: &[Seat<'_>], pids: &BTreeSet<u32>, signal: i32) -> Vec<(u32, Errno)> {
    let pids: Vec<u32> = pids.iter().copied().collect();
    let failed = host.kernel.signal_those(&pids, signal, &|| members(host, seats));
    failed.into_iter().filter(|(_, errno)| *errno != Errno::SRCH).collect()
}

fn not_killed(host: &Host, group: &GroupName, left: &BTreeSet<u32>, timeout: Duration) -> Error {
    let shown = left.iter().take(5).map(u32::to_string).collect::<Vec<_>>().join(", ");
    let frozen = host.seat(group, Controller::Freezer).ok().and_then(|seat| frozen_parent(host, &seat));
    let left = match frozen {
        Some(parent) => format!("{shown} stay until group '{parent}' above, which is frozen, is thawed"),
        None => format!("{shown} are left"),
    };
    Error::Timeout { what: "killing", group: group.to_string(), seconds: timeout.as_secs(), left }
}

/// `cgroup.kill` reaches the whole subtree at once; v2 since Linux 5.14.
fn kill_by_kernel(host: &Host, seats: &[Seat<'_>], group: &GroupName) -> Result<bool, Error> {
    let Some(seat) = seats.iter().find(|seat| seat.at.version == Version::V2) else { return Ok(false) };
    if seats.len() > 1 {
        return Ok(false); // a hybrid group may hold other processes on its v1 side
    }
    match host.kernel.write(seat.at, &seat.path, "cgroup.kill", "1") {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) if host.kernel.exists(seat.at, &seat.path) => Ok(false),
        Err(errno) => Err(host.refused(Op::Write, seat, group, Some("cgroup.kill"), Some("1"), errno)),
    }
}

/// Freezes the group; returns what has to be thawed so that its tasks can die: the group and all below it.
fn freeze_for_kill<'h>(host: &'h Host, group: &GroupName) -> Vec<Seat<'h>> {
    let Ok(seat) = host.seat(group, Controller::Freezer) else { return Vec::new() };
    // a group that can't be frozen is killed all the same
    let is_frozen = request(host, &seat, group, true).is_ok();
    let mut all = below(host, &seat);
    all.retain(|seat| is_frozen || asks_itself(host, seat.at, &seat.path));
    all
}

/// Zombies hold no resource and can't be killed again: only who waits for them can end them.
fn members(host: &Host, seats: &[Seat<'_>]) -> BTreeSet<u32> {
    seats
        .iter()
        .flat_map(|seat| below(host, seat))
        .flat_map(|seat| host.tasks_in(&seat))
        .filter(|&pid| is_alive(host, pid))
        .collect()
}

/// Refuses to start a program where it would stop before its first instruction.
///
/// # Errors
/// [`Error::Frozen`] with the group that is to be thawed.
pub(crate) fn refuse_frozen(host: &Host, seats: &[Seat<'_>], group: &GroupName) -> Result<(), Error> {
    let Some(at) = host.hierarchy_of(Controller::Freezer) else { return Ok(()) };
    let Some(seat) = seats.iter().find(|seat| seat.at.id == at.id) else { return Ok(()) };
    match frozen_at(host, seat) {
        Some(path) => Err(Error::Frozen { group: group.to_string(), by: host.named(at, &path) }),
        None => Ok(()),
    }
}
