//! What schedules have in force, in a file of the state directory that survives the daemon; and which schedules this machine
//! could not follow.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use jiff::{Timestamp, tz::TimeZone};
use layout::{
    Desired, Diagnostic, Schedule,
    schedule::{Calendar, InForce, Memory, Never, When, Zones},
};
use plan::People;
use settings::Facts;
use system::TimeZones;
use topology::Machine;

use crate::{Earlier, Failure, State, Target, planned, record::absolute, state::failed};

/// The file in the state directory. Everybody may read it.
const FILE: &str = "schedules.json";

/// The largest one that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// What was remembered last; `None`: nothing so far.
///
/// # Errors
/// [`Failure::State`]: it can't be read, or is damaged.
pub fn scheduled(state: &State) -> Result<Option<Memory>, Failure> {
    let path = state.directory().join(FILE);
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let mut text = String::new();
    let read = options.open(&path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
    match read {
        Ok(_) => serde_json::from_str(&text).map(Some).map_err(|error| failed("read", &path, &error.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", &path, &error)),
    }
}

/// Remembers it, wholly or not at all.
///
/// # Errors
/// [`Failure::State`].
pub fn record_schedules(state: &State, memory: &Memory) -> Result<(), Failure> {
    let path = state.directory().join(FILE);
    let new = state.directory().join(format!("{FILE}.new"));
    let write = || {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let text = serde_json::to_string_pretty(memory)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().map_err(|error| failed("write", &path, &error))
}

/// Forgets changes in force whose generation somebody undid; returns their names.
///
/// # Errors
/// [`Failure::State`].
pub fn drop_undone(state: &State, memory: &mut Memory) -> Result<Vec<String>, Failure> {
    let made = |one: &InForce| one.generation;
    if memory.in_force.iter().all(|one| made(one).is_none()) {
        return Ok(Vec::new());
    }
    let Some(last) = state.last_done()? else { return Ok(Vec::new()) };
    // a boot took its groups away, and nobody undid them
    if last.head.boot != memory.boot {
        return Ok(Vec::new());
    }
    let in_effect = last.in_effect();
    let joined = state.joined()?;
    let joined = joined.iter().filter_map(|joins| joins.generations.last());
    let joined = joined.filter(|joined| in_effect.contains(joined)).max();
    let is_in_effect =
        |number: &u32| in_effect.contains(number) || joined.is_some_and(|joined| number < joined);
    let is_undone = |one: &InForce| made(one).is_some_and(|number| !is_in_effect(&number));
    let undone = memory.in_force.iter().filter(|one| is_undone(one)).map(|one| one.name.clone()).collect();
    memory.in_force.retain(|one| !is_undone(one));
    Ok(undone)
}

/// The last generation that is in effect.
///
/// # Errors
/// [`Failure::State`].
pub fn last_in_effect(state: &State) -> Result<Option<u32>, Failure> {
    Ok(state.last_done()?.and_then(|last| last.in_effect().last().copied()))
}

/// The changes of this layout's schedules that are in force, the last of them counting most.
///
/// # Errors
/// [`Failure::State`].
pub fn in_force(state: &State, layout: &Path) -> Result<Vec<InForce>, Failure> {
    let Some(mut memory) = scheduled(state)? else { return Ok(Vec::new()) };
    if absolute(layout) != memory.layout {
        return Ok(Vec::new());
    }
    // who may not read the history sees what was remembered
    let _ = drop_undone(state, &mut memory);
    Ok(memory.in_force)
}

/// What is wrong with the times of schedules on this machine now: unknown time zones, changes that are never made, and those that
/// end before they begin. A change in force was made.
pub fn times(desired: &Desired, in_force: &[InForce], now: Timestamp) -> Vec<Diagnostic> {
    let is_made = |schedule: &Schedule| in_force.iter().any(|one| one.name == schedule.name);
    desired.schedules.iter().flat_map(|schedule| wrong_times(schedule, is_made(schedule), now)).collect()
}

fn wrong_times(schedule: &Schedule, is_made: bool, now: Timestamp) -> Vec<Diagnostic> {
    let When::At { at, until, .. } = &schedule.when.value else { return Vec::new() };
    let origin = || schedule.when.origin.clone();
    let zones = TimeZones;
    let unknown = |calendar: &Calendar| {
        let name = calendar.zone().filter(|name| zones.zone(Some(name)).is_none())?;
        let error =
            Diagnostic::error(format!("schedule '{}': there is no time zone '{name}'", schedule.name));
        Some(error.at(origin()).hint(zones.hint(name)))
    };
    let wrong: Vec<Diagnostic> =
        [Some(at), until.as_ref()].into_iter().flatten().filter_map(unknown).collect();
    let never = schedule.when.value.never(now, &zones).map(|never| never_happens(schedule, never, is_made));
    wrong.into_iter().chain(never.flatten()).collect()
}

fn never_happens(schedule: &Schedule, never: Never, is_made: bool) -> Option<Diagnostic> {
    let When::At { at, until, .. } = &schedule.when.value else { return None };
    let (name, begins) = (&schedule.name, schedule.when.origin.clone());
    let ends = schedule.until.clone().unwrap_or_else(|| begins.clone());
    let until = until.as_ref().map(ToString::to_string).unwrap_or_default();
    let leave_out = "leave out until, and the change stays; or give a moment after at";
    Some(match never {
        Never::Begins { .. } if is_made => return None,
        Never::Begins { of_any_year } => {
            let error = Diagnostic::error(format!("schedule '{name}' never comes again: '{at}' is past"));
            let zone = TimeZones.zone(at.zone()).unwrap_or(TimeZone::UTC);
            let next =
                of_any_year.map(|next| jiff::ZonedDateTime::new(next, zone).strftime("%Y-%m-%d %H:%M:%S %Z"));
            let next = next.map(|next| format!(", which comes on {next}")).unwrap_or_default();
            error
                .at(begins)
                .hint(format!("leave out the year, as in *-12-24 22:00{next}; or remove the schedule"))
        }
        Never::Ends => {
            let message = format!("schedule '{name}' ends before it begins: '{until}' is not after '{at}'");
            Diagnostic::error(message).at(ends).also(begins, "it begins here").hint(leave_out)
        }
        Never::Lasts => {
            let message = format!("schedule '{name}' ends at the moment at which it begins: '{until}'");
            Diagnostic::error(message).at(ends).also(begins, "it begins here").hint(leave_out)
        }
    })
}

/// Schedules that this machine could not follow, each alone on top of the layout, which it can satisfy.
pub fn unschedulable(
    target: Target<'_>,
    earlier: &Earlier,
    desired: &Desired,
    machine: &Machine,
    facts: &dyn Facts,
    people: &dyn People,
) -> Vec<Diagnostic> {
    plan::with_each_schedule(desired, |changed| {
        planned(target, earlier, changed, machine, facts, people).err().unwrap_or_default()
    })
}
