//! `elastic`, `pause`, `resume`: the groups whose CPUs change with their load, who changes them, and what changed.

use std::{fmt::Write, time::Duration};

use answers::{moment, published};
use apply::{
    Following, Frequencies, GroupStatus, Measured, Resize, Resizes, Running, State, System as _, Target,
};
use monitor::{Energy, EnergyUse};
use serde_json::json;
use topology::Machine;
use units::{CpuSet, group_path, hint::Command};

use super::{directory, generations::time, history_of};
use crate::{
    args,
    commands::host_even_unmounted,
    failure::{ATTENTION, Failure},
    output,
};

/// Between the two looks at idle states and energy.
const LOOK: Duration = Duration::from_millis(500);

/// How long it waits for a change that is under way.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn elastic(args: &args::Elastic, as_json: bool) -> Result<u8, Failure> {
    if args.end_saving {
        return end_saving(args, as_json);
    }
    let state = history_of(&args.state);
    let (host, running) = (host_even_unmounted()?, Running::new());
    let named = |name: &str| {
        let is_of = |wanted: &String| group_path::is_at_or_below(name, wanted);
        args.groups.is_empty() || args.groups.iter().any(is_of)
    };
    let target = Target { host: &host, system: &running };
    let mut groups = apply::following(&state, target)?;
    if groups.is_empty() {
        return Err(Failure::new("no layout in effect has elastic groups")
            .hint("give groups cpus = { min = 2, max = 8, weight = 100 }, and apply the layout"));
    }
    groups.retain(|group| named(&group.group));
    if groups.is_empty() {
        return Err(Failure::new(format!("{} is no elastic group", args.groups.join(", ")))
            .hint("ringfence elastic lists all"));
    }
    let resizes = Resizes::of(&state);
    let mut changes = resizes.last(usize::MAX)?;
    changes.retain(|change| named(&change.group));
    changes.drain(..changes.len().saturating_sub(args.last));
    let controller = resizes.controller();
    let mut measured = controller.as_ref().map(|one| one.latencies.clone()).unwrap_or_default();
    measured.retain(|one| named(&one.group));
    let trouble = resizes.trouble(&apply::again(&state, target), time);
    let saves_power = groups.iter().any(|group| group.bounds.as_ref().is_some_and(|one| one.saves_power));
    let power = saves_power.then(|| {
        let before = Energy::live();
        std::thread::sleep(LOOK);
        Energy::live().since(&before)
    });
    if as_json {
        let paused = resizes.is_paused();
        let changes: Vec<_> = changes
            .iter()
            .map(|change| {
                let mut row = json!(change);
                row["at"] = json!(moment(Duration::from_millis(change.at)));
                row
            })
            .collect();
        let answer = json!({ "groups": groups, "controller": controller, "paused": paused, "trouble": trouble, "changes": changes, "power": power });
        output::json(&published(answer))?;
    } else {
        let mut text = table(&groups);
        measured.iter().for_each(|one| _ = writeln!(text, "{}  {one}", one.group)); // a String takes everything
        if let Some(power) = &power {
            text.push_str(&energy(power));
        }
        if let Some(trouble) = &trouble {
            let _ = writeln!(text, "\n{trouble}"); // a String takes everything
        }
        if !changes.is_empty() {
            text.push('\n');
        }
        text.extend(changes.iter().map(change));
        output::text(&text)?;
    }
    Ok(if trouble.is_some() { ATTENTION } else { 0 })
}

/// What power saving is seen by: shares of the time in idle states, and watts.
fn energy(used: &EnergyUse) -> String {
    let mut text = String::new();
    for (cpu, states) in &used.idle {
        let states: Vec<String> =
            states.iter().map(|(state, share)| format!("{state} {:.0} %", share * 100.0)).collect();
        let _ = writeln!(text, "CPU {cpu}  idle: {}", states.join(", ")); // a String takes everything
    }
    for (domain, watts) in &used.watts {
        let _ = writeln!(text, "{domain}  {watts:.1} W");
    }
    if used.idle.is_empty() {
        text.push_str("this machine shows no idle states of its CPUs\n");
    }
    if used.watts.is_empty() {
        text.push_str("this machine shows no energy (RAPL)\n");
    }
    text
}

/// General groups have all CPUs again.
fn end_saving(args: &args::Elastic, as_json: bool) -> Result<u8, Failure> {
    let state = State::open(directory(&args.state))?;
    let (host, running) = (host_even_unmounted()?, Running::new());
    let target = Target { host: &host, system: &running };
    let lock = state.lock(PATIENCE)?;
    let groups = match apply::layout_in_effect(&state, target)? {
        Some(head) => {
            let originals = apply::Originals::open(&lock, target, &head)?;
            apply::end_saving(target, &originals, &head.upkeep.elastic, &Machine::live()?.online())?
        }
        None => Vec::new(),
    };
    let mut frequencies = Frequencies::of(&state);
    let ended = frequencies.follow(running.knobs(), &running.boot(), &CpuSet::new())?;
    ended.left.iter().for_each(|left| output::warning(left));
    match (as_json, groups.as_slice()) {
        (true, groups) => output::json(&json!({ "groups": groups, "frequencies": ended.restored }))?,
        (false, []) => output::text("no general group has fewer CPUs than before power saving\n")?,
        (false, groups) => output::text(&format!("all CPUs are back: {}\n", groups.join(", ")))?,
    }
    if !as_json && !ended.restored.is_empty() {
        let restored = &ended.restored;
        output::text(&format!("CPUs {restored} have the governor and energy preference of before\n"))?;
    }
    Ok(0)
}

/// Does something of the group change with its load?
pub(super) fn follows_load(group: &GroupStatus) -> bool {
    group.elastic.is_some() || !group.ranges.is_empty()
}

/// What is known of a group's latency; `None`: it has no source, or nobody looks at it.
pub fn measured(state: &State, group: &str) -> Option<Measured> {
    Resizes::of(state).controller()?.latencies.into_iter().find(|one| one.group == group)
}

/// What a group has and may have, a line each.
pub(super) fn bounds(group: &GroupStatus) -> Vec<String> {
    let cpus = group.elastic.as_ref().map(|bounds| bounds.words(group.cpus.as_ref().map_or(0, CpuSet::len)));
    cpus.into_iter().chain(group.ranges.iter().map(ToString::to_string)).collect()
}

/// A row for each setting that follows its group's load.
fn table(groups: &[Following]) -> String {
    const HEADINGS: [&str; 9] =
        ["GROUP", "SETTING", "NOW", "MIN", "MAX", "WEIGHT", "CPUS", "LENT", "BORROWED"];
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for group in groups {
        let list = |cpus: &CpuSet| if cpus.is_empty() { "-".to_owned() } else { cpus.to_string() };
        let number = |cpus: &CpuSet| cpus.len().to_string();
        let dash = || "-".to_owned();
        rows.extend(group.bounds.iter().map(|bounds| {
            let setting = if bounds.saves_power { "power saving" } else { "cpus" };
            let weight = if bounds.saves_power { dash() } else { bounds.weight.to_string() };
            let (now, cpus) = (group.cpus.as_ref().map_or_else(dash, number), group.cpus.as_ref());
            [
                group.group.clone(),
                setting.to_owned(),
                now,
                bounds.min.to_string(),
                bounds.max.to_string(),
                weight,
                cpus.map_or_else(dash, list),
                list(&group.lent),
                list(&group.borrowed),
            ]
        }));
        rows.extend(group.ranges.iter().map(|range| {
            let (now, min, max) = (range.now.clone(), range.min.clone(), range.max.clone());
            let now = now.unwrap_or_else(|| "not readable".to_owned());
            let name = group.group.clone();
            [name, range.setting.clone(), now, min, max, dash(), dash(), dash(), dash()]
        }));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(width);
    let line = |row: &[String; HEADINGS.len()]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<String>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn change(change: &Resize) -> String {
    format!("{}  {change}\n", time(change.at / 1000))
}

pub fn pause(args: &args::Pause, paused: bool, as_json: bool) -> Result<(), Failure> {
    if let Some(group) = &args.group {
        let (word, instead) = if paused { ("pause", "freeze") } else { ("resume", "thaw") };
        return Err(Failure::usage(format!(
            "{word} is about resizing all elastic groups, not about processes"
        ))
        .hint(Command::ringfence(instead).group(group).to_string()));
    }
    let state = State::open(directory(&args.state))?;
    let resizes = Resizes::of(&state);
    if paused {
        resizes.pause()?;
    } else {
        resizes.resume()?;
    }
    let controller = resizes.controller().map(|controller| controller.pid);
    if as_json {
        return output::json(&json!({ "paused": paused, "resized_by": controller }));
    }
    match (paused, controller) {
        (true, _) => output::text("elastic groups stay at what they have\n"),
        (false, None) => {
            let (host, running) = (host_even_unmounted()?, Running::new());
            let start = apply::again(&state, Target { host: &host, system: &running }).start();
            output::text(&format!("elastic groups are resized once ringfenced runs: {start}\n"))
        }
        (false, Some(_)) => output::text("elastic groups are resized\n"),
    }
}
