//! Freezes, thaws and kills all tasks of a group and of the groups below it, and waits until that is really so.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use settings::{Controller, Version};

use crate::{Error, GroupName, Host, Op, Seat};

/// Whether a group's tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// They run.
    Thawed,
    /// Asked to stop, not all have (v1 `FREEZING`, v2 `frozen 0`).
    Freezing,
    /// None runs.
    Frozen,
}

const SIGKILL: i32 = 9;
const POLL: Duration = Duration::from_millis(2);

/// Freezes or thaws a group and waits until the kernel says so. On timeout the request is taken back.
///
/// # Errors
/// [`Error::RootGroup`], what [`Host::seat`] says, [`Error::Refused`], [`Error::Timeout`] with the tasks that
/// still run.
pub fn set_frozen(host: &Host, group: &GroupName, frozen: bool, timeout: Duration) -> Result<State, Error> {
    if group.path().is_empty() {
        return Err(Error::RootGroup { what: "freezing" });
    }
    host.refuse_foreign(group, None)?;
    let seat = host.seat(group, Controller::Freezer)?;
    let was = state(host, &seat, group)?;
    ask(host, &seat, group, frozen)?;
    let goal = if frozen { State::Frozen } else { State::Thawed };
    let started = Instant::now();
    loop {
        let now = state(host, &seat, group)?;
        if now == goal {
            return Ok(now);
        }
        if started.elapsed() >= timeout {
            let left = unfinished(host, &seat, frozen);
            if frozen && was == State::Thawed {
                ask(host, &seat, group, false)?;
            }
            let what = if frozen { "freezing" } else { "thawing" };
            return Err(Error::Timeout { what, group: group.to_string(), seconds: timeout.as_secs(), left });
        }
        std::thread::sleep(POLL);
    }
}

fn ask(host: &Host, seat: &Seat<'_>, group: &GroupName, frozen: bool) -> Result<(), Error> {
    match (seat.at.version, frozen) {
        (Version::V1, true) => host.write(seat, group, "freezer.state", "FROZEN"),
        (Version::V1, false) => host.write(seat, group, "freezer.state", "THAWED"),
        (Version::V2, _) => host.write(seat, group, "cgroup.freeze", if frozen { "1" } else { "0" }),
    }
}

fn state(host: &Host, seat: &Seat<'_>, group: &GroupName) -> Result<State, Error> {
    let asked = |text: &str, word: &str| text.split_whitespace().any(|part| part == word);
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
            let freezing = asked(&host.read(seat, group, "cgroup.freeze")?, "1");
            Ok(if freezing { State::Freezing } else { State::Thawed })
        }
    }
}

/// The tasks that keep a freeze from finishing, or the frozen parent that keeps a thaw from it.
fn unfinished(host: &Host, seat: &Seat<'_>, frozen: bool) -> String {
    if !frozen {
        return "a parent group is frozen".to_owned();
    }
    let running: Vec<String> = below(host, seat)
        .iter()
        .flat_map(|seat| host.tasks_in(seat))
        .filter_map(|pid| host.kernel.process(pid).ok())
        .filter(|process| process.state == 'D')
        .take(5)
        .map(|process| format!("{} ({})", process.pid, process.comm))
        .collect();
    match running.as_slice() {
        [] => "the kernel did not report it frozen".to_owned(),
        tasks => format!("still in an uninterruptible wait: {}", tasks.join(", ")),
    }
}

/// Kills every process in a group and below it, and waits until they are gone; returns how many there were.
///
/// # Errors
/// [`Error::RootGroup`], [`Error::NoGroup`], [`Error::Refused`], [`Error::Timeout`] with those that are left.
pub fn kill(host: &Host, group: &GroupName, timeout: Duration) -> Result<usize, Error> {
    if group.path().is_empty() {
        return Err(Error::RootGroup { what: "killing" });
    }
    host.refuse_foreign(group, None)?;
    let seats = host.existing(group)?;
    let first = members(host, &seats);
    if first.contains(&host.kernel.caller().0) {
        return Err(Error::Outside {
            what: format!("group '{group}' holds the program that was asked to kill it"),
            errno: Errno::BUSY,
            hint: Some(format!("call it from outside: ringfence move / {}", host.kernel.caller().0)),
        });
    }
    let by_kernel = kill_by_kernel(host, &seats, group)?;
    let started = Instant::now();
    // without cgroup.kill a frozen group can't fork its way out between two passes
    let hold = (!by_kernel).then(|| freeze_for_kill(host, group)).flatten();
    let result = loop {
        let left = members(host, &seats);
        if left.is_empty() {
            break Ok(first.len());
        }
        if started.elapsed() >= timeout {
            let left = left.iter().take(5).map(u32::to_string).collect::<Vec<_>>().join(", ");
            let (what, seconds) = ("killing", timeout.as_secs());
            break Err(Error::Timeout {
                what,
                group: group.to_string(),
                seconds,
                left: format!("left: {left}"),
            });
        }
        if !by_kernel {
            left.iter().for_each(|&pid| {
                let _ = host.kernel.signal(pid, SIGKILL); // gone already is as good
            });
            if let Some(seat) = &hold {
                ask(host, seat, group, false)?;
            }
        }
        std::thread::sleep(POLL);
    };
    if let Some(seat) = &hold {
        ask(host, seat, group, false)?;
    }
    result
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

fn freeze_for_kill<'h>(host: &'h Host, group: &GroupName) -> Option<Seat<'h>> {
    let seat = host.seat(group, Controller::Freezer).ok()?;
    ask(host, &seat, group, true).ok()?;
    Some(seat)
}

/// Zombies hold no resource and can't be killed again: only who waits for them can end them.
fn members(host: &Host, seats: &[Seat<'_>]) -> BTreeSet<u32> {
    seats
        .iter()
        .flat_map(|seat| below(host, seat))
        .flat_map(|seat| host.tasks_in(&seat))
        .filter(|&pid| host.kernel.process(pid).is_ok_and(|process| !matches!(process.state, 'Z' | 'X')))
        .collect()
}

/// The group's directory and all below it.
fn below<'h>(host: &Host, seat: &Seat<'h>) -> Vec<Seat<'h>> {
    let descendants = host.kernel.descendants(seat.at, &seat.path).unwrap_or_default();
    std::iter::once(seat.clone())
        .chain(descendants.into_iter().map(|path| Seat { at: seat.at, path }))
        .collect()
}
