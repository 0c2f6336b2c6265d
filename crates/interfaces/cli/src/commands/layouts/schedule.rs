//! `schedule`: what changes next by itself, and what did last. Works nothing out: `layout::schedule` does, by this machine's clock.

use std::{fmt::Write, path::PathBuf, time::Duration};

use apply::{Running, State, System, Target};
use daemon::RuleFiles;
use jiff::{Timestamp, tz::TimeZone};
use layout::{
    Desired, Diagnostic, Schedule,
    schedule::{InForce, Look, Memory, Moment, Turn, When, Zones},
};
use serde_json::{Value, json};
use system::TimeZones;

use super::{Layout, history_of, impossible, read, refused};
use crate::{
    args,
    commands::host_even_unmounted,
    failure::{Failure, USAGE},
    output,
};

/// Refuses schedules that could not be followed on a machine that can satisfy the layout.
pub fn possible(
    layout: &Layout<'_>,
    in_force: &[InForce],
    unschedulable: impl Fn(&Desired) -> Vec<Diagnostic>,
) -> Result<(), Failure> {
    if layout.desired.schedules.is_empty() {
        return Ok(());
    }
    let times = apply::times(&layout.desired, in_force, Timestamp::now());
    if !times.is_empty() {
        return Err(impossible(layout, &times).code(USAGE));
    }
    let wrong = unschedulable(&layout.desired);
    if wrong.is_empty() { Ok(()) } else { Err(impossible(layout, &wrong)) }
}

/// A change that comes.
struct Next<'l> {
    schedule: &'l Schedule,
    turn: Turn,
}

pub fn schedule(args: &args::Schedule, as_json: bool) -> Result<(), Failure> {
    let state = history_of(&args.state);
    let memory = apply::scheduled(&state)?;
    let path = match &args.layout {
        Some(path) => path.clone(),
        None => followed(&state, memory.as_ref())?,
    };
    let layout = read(&path)?;
    let now = Timestamp::now();
    let memory = memory.filter(|memory| memory.layout == apply::absolute(&path));
    let in_force = apply::in_force(&state, &path)?;
    let times = apply::times(&layout.desired, &in_force, now);
    // what ringfenced follows all the same is shown with what is wrong with it
    if memory.is_none() && !times.is_empty() {
        return Err(refused(&times, &layout.sources, &path));
    }
    output::error(&layout::render(&times, &layout.sources));
    let is_running = daemon::is_running(state.directory());
    let next = coming(&layout.desired, memory.as_ref(), &in_force, now);
    let next: Vec<Next<'_>> = next.into_iter().take(usize::from(args.next)).collect();
    if as_json {
        let mut answer = as_value(&layout.desired, memory.as_ref(), &in_force, &next, (now, is_running));
        answer["layout"] = json!(path);
        return output::json(&answer);
    }
    if layout.desired.schedules.is_empty() {
        return output::text(&format!("{} has no schedules\n", path.display()));
    }
    let why = match (&memory, is_running) {
        (_, false) => Some("ringfenced does not run: nobody makes these changes"),
        (None, true) => Some("ringfenced has not applied this layout: nothing changes"),
        (Some(_), true) => None,
    };
    if let Some(why) = why {
        let hint = match is_running {
            true => "systemctl reload ringfenced, if it follows this layout",
            false => "systemctl enable --now ringfenced, or ringfence daemon",
        };
        output::warning(&format!("{why}\nhint: {hint}"));
    }
    let text = as_text(&layout.desired, memory.as_ref(), &in_force, &next, now);
    output::text(&format!("layout {}\n{text}", path.display()))
}

/// The layout that ringfenced follows; without one that in effect, else that of this machine.
fn followed(state: &State, memory: Option<&Memory>) -> Result<PathBuf, Failure> {
    let (host, running) = (host_even_unmounted()?, Running::new());
    let target = Target { host: &host, system: &running };
    // who may not read the history knows what ringfenced wrote down for everybody
    let in_effect = apply::layout_in_effect(state, target).ok().flatten();
    let applied = in_effect.as_ref().and_then(|head| head.file.clone());
    let remembered = memory.map(|memory| memory.layout.clone()).filter(|path| !path.as_os_str().is_empty());
    let machines = || RuleFiles::Below(PathBuf::from("/etc")).layout();
    let is_followed = daemon::is_running(state.directory());
    let first = remembered.clone().filter(|_| is_followed).or(applied).or_else(machines).or(remembered);
    first.ok_or_else(|| {
        let why = match in_effect {
            Some(_) => "the history does not say which file the layout in effect is",
            None => "no layout is in effect",
        };
        Failure::new(format!("{why}, and there is none in /etc/ringfence"))
            .hint("ringfence schedule LAYOUT shows what a layout's schedules would change")
    })
}

/// The next changes of all schedules, the earliest first.
fn coming<'l>(
    desired: &'l Desired,
    memory: Option<&Memory>,
    in_force: &[InForce],
    now: Timestamp,
) -> Vec<Next<'l>> {
    let system = Running::new();
    let same_boot = memory.filter(|memory| memory.boot == system.boot());
    let uptime = Duration::from_millis(system.uptime());
    let elapsed = same_boot.map(|memory| uptime.saturating_sub(memory.applied));
    let look = Look {
        seen: None,
        now: Moment { wall: now, elapsed: elapsed.unwrap_or_default() },
        zones: &TimeZones,
    };
    let mut all = Vec::new();
    for schedule in &desired.schedules {
        let when = &schedule.when.value;
        if matches!(when, When::After { .. }) && elapsed.is_none() {
            continue;
        }
        let on = in_force.iter().any(|one| one.name == schedule.name);
        all.extend(when.coming(on, &look).take(1000).map(|turn| Next { schedule, turn }));
    }
    all.sort_by_key(|next| next.turn.at);
    all
}

/// The machine's own time, with its zone.
fn local(at: Timestamp) -> String {
    let zone = TimeZones.zone(None).unwrap_or(TimeZone::UTC);
    jiff::ZonedDateTime::new(at, zone).strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
}

fn utc(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `in 2h 5m`, in two units at most.
fn within(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.duration_since(now).as_secs().unsigned_abs();
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(length, _)| seconds >= *length).unwrap_or(units.len() - 1);
    let mut left = seconds;
    let parts = units.iter().skip(first).take(2).filter_map(|(length, unit)| {
        let count = left / length;
        left %= length;
        (count > 0 || seconds == 0).then(|| format!("{count}{unit}"))
    });
    parts.collect::<Vec<String>>().join(" ")
}

fn verb(turn: Turn) -> &'static str {
    if turn.on { "begins" } else { "ends" }
}

fn as_text(
    desired: &Desired,
    memory: Option<&Memory>,
    in_force: &[InForce],
    next: &[Next<'_>],
    now: Timestamp,
) -> String {
    let mut text = String::new();
    for schedule in &desired.schedules {
        // a String takes everything
        let _ = writeln!(text, "{}: {}", schedule.name, schedule.when.value);
        layout::changes(schedule).iter().for_each(|change| _ = writeln!(text, "  {change}"));
        if let Some(one) = in_force.iter().find(|one| one.name == schedule.name) {
            let _ = writeln!(text, "  in force since {}{}", local(one.since), generation(one.generation));
        }
        let last = memory.and_then(|memory| memory.last.get(&schedule.name));
        match last.map(|last| (last, last.failure.as_deref(), if last.on { "began" } else { "ended" })) {
            Some((last, None, verb)) => {
                let _ = writeln!(text, "  last {verb} {}{}", local(last.at), generation(last.generation));
            }
            Some((last, Some(failure), verb)) => {
                let _ = writeln!(text, "  last {verb} {}, but was refused: {failure}", local(last.at));
            }
            None => {}
        }
    }
    if !next.is_empty() {
        text.push('\n');
    }
    for Next { schedule, turn } in next {
        let (local, utc, within) = (local(turn.at), utc(turn.at), within(turn.at, now));
        let _ = writeln!(text, "{local}  {utc}  in {within:<9}  {} {}", schedule.name, verb(*turn));
    }
    text
}

fn generation(number: Option<u32>) -> String {
    number.map(|number| format!(", generation {number}")).unwrap_or_default()
}

fn as_value(
    desired: &Desired,
    memory: Option<&Memory>,
    in_force: &[InForce],
    next: &[Next<'_>],
    (now, is_running): (Timestamp, bool),
) -> Value {
    let schedules = desired.schedules.iter().map(|schedule| {
        json!({
            "name": schedule.name,
            "when": schedule.when.value.to_string(),
            "changes": layout::changes(schedule),
            "in_force": in_force.iter().find(|one| one.name == schedule.name),
            "last": memory.and_then(|memory| memory.last.get(&schedule.name)),
        })
    });
    let next = next.iter().map(|Next { schedule, turn }| {
        json!({
            "schedule": schedule.name,
            "begins": turn.on,
            "at": turn.at,
            "local": local(turn.at),
            "in_sec": turn.at.duration_since(now).as_secs(),
            "changes": layout::changes(schedule),
        })
    });
    json!({
        "applied": memory.is_some(),
        "running": is_running,
        "schedules": schedules.collect::<Vec<Value>>(),
        "next": next.collect::<Vec<Value>>(),
    })
}
