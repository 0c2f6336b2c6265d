//! `status`: what was asked of each group, what the kernel holds, who is in it, what it uses, and where it is no
//! longer as asked.

use std::{fmt::Write, io::IsTerminal, path::Path};

use ::plan::{Plan, SeenHierarchy};
use apply::{GroupStatus, Head, Kept, Running, SettingStatus, Target, Unfinished};
use serde_json::json;
use settings::Kind;
use topology::Machine;
use units::Bytes;

use super::{
    counted,
    history::{person, time, what},
    history_of, picture,
    plan::{seen, shown},
    planned, read, warn,
};
use crate::{
    args,
    commands::host_even_unmounted,
    failure::{ATTENTION, Failure},
    output,
};

/// So many tasks of a group are named.
const NAMED: usize = 8;

pub fn status(args: &args::Status, as_json: bool) -> Result<u8, Failure> {
    let layout = args.layout.as_deref().map(read).transpose()?;
    let host = host_even_unmounted()?;
    let running = Running::new();
    let state = history_of(&args.state);
    let target = Target { host: &host, system: &running };
    let unfinished = apply::unfinished(&state, target)?;
    let groups = apply::status(&state, target)?;
    let plan = layout.as_ref().map(|layout| planned(layout, &host)).transpose()?;
    let drifted = groups.iter().any(|group| !group.drift.is_empty());
    if args.svg {
        output::text(&picture::svg(&Machine::live()?, &groups))?;
    } else if as_json {
        output::json(&json!({ "drift": drifted, "groups": groups, "unfinished": unfinished, "plan": plan }))?;
    } else {
        let last = apply::kept(&state)?.into_iter().rev().find_map(done);
        let paint = Paint { on: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() };
        let mut text = unfinished.as_ref().map(|found| broken_off(found, &paint)).unwrap_or_default();
        match last.filter(|_| !groups.is_empty()) {
            Some(head) => text.push_str(&told(&head, &groups, &paint)),
            None if unfinished.is_some() => {}
            None => text.push_str("no group was applied, or nothing of it is in effect\n"),
        }
        if let (Some(layout), Some(plan)) = (&layout, &plan) {
            warn(plan, layout);
            text.push_str(&still_to_do(layout.path, plan, &seen(&host)));
        }
        output::text(&text)?;
    }
    let is_broken = unfinished.is_some_and(|unfinished| !unfinished.lives);
    let as_asked = !drifted && !is_broken && plan.is_none_or(|plan| plan.steps.is_empty());
    Ok(if as_asked { 0 } else { ATTENTION })
}

/// What is in effect was brought there by the last that was done, not by one that failed after it.
fn done(kept: Kept) -> Option<Head> {
    match kept {
        Kept::Finished(summary) => {
            Some(summary).filter(|summary| summary.is_done()).map(|summary| summary.head)
        }
        _ => None,
    }
}

fn broken_off(unfinished: &Unfinished, paint: &Paint) -> String {
    let Unfinished { generation, process, lives } = unfinished;
    let told = if *lives {
        format!("generation {generation} is under way (process {process})")
    } else {
        let broken = format!("generation {generation} was broken off (process {process})");
        paint.bad(&format!("{broken}; the next apply or undo puts it back"))
    };
    format!("{told}\n")
}

/// Colours, where there is somebody to see them.
struct Paint {
    on: bool,
}

impl Paint {
    fn good(&self, text: &str) -> String {
        self.in_colour("32", text)
    }

    fn bad(&self, text: &str) -> String {
        self.in_colour("1;31", text)
    }

    fn strong(&self, text: &str) -> String {
        self.in_colour("1", text)
    }

    fn in_colour(&self, colour: &str, text: &str) -> String {
        if self.on { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn told(head: &Head, groups: &[GroupStatus], paint: &Paint) -> String {
    let mut text =
        format!("generation {}, {}, {}: {}\n", head.generation, time(head.at), person(&head.by), what(head));
    for group in groups {
        text.push('\n');
        one(&mut text, group, paint);
    }
    text
}

fn one(text: &mut String, group: &GroupStatus, paint: &Paint) {
    let verdict = match group.drift.len() {
        0 => paint.good("as asked"),
        _ => paint.bad("drift"),
    };
    // writing to a String never fails
    let _ = writeln!(text, "{}  {verdict}", paint.strong(&group.group));
    let mut rows: Vec<([String; 3], bool)> = Vec::new();
    for told in group.settings.iter().chain(&group.owners) {
        let is_directory = group.directories.contains(&told.file);
        let row = (row(told, is_directory), told.as_asked);
        // owners are alike in each of v1's hierarchies
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let width = |column: usize, head: &str| {
        let cells = rows.iter().map(|(row, _)| row[column].chars().count());
        cells.chain([head.len()]).max().unwrap_or(0)
    };
    let (names, asked) = (width(0, "setting"), width(1, "asked"));
    if !rows.is_empty() {
        let _ = writeln!(text, "  {:names$}  {:asked$}  holds", "setting", "asked");
    }
    for ([name, wanted, held], as_asked) in &rows {
        let held = if *as_asked { held.clone() } else { paint.bad(held) };
        let _ = writeln!(text, "  {name:names$}  {wanted:asked$}  {held}");
    }
    let _ = writeln!(text, "  uses {}", used(group));
    let _ = writeln!(text, "  {}", tasks(group));
    for drift in &group.drift {
        let _ = writeln!(text, "  {}", paint.bad(&format!("drift: {drift}")));
    }
}

/// Name, what was asked, what is held.
fn row(setting: &SettingStatus, is_directory: bool) -> [String; 3] {
    if is_directory {
        let held = setting.held.clone().unwrap_or_default();
        return ["(directory)".to_owned(), setting.asked.clone(), held];
    }
    let file = setting.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let asked = short(&file, &setting.asked);
    let held = setting.held.as_deref().map_or("-".to_owned(), |held| short(&file, held));
    [file, asked, held]
}

/// Bytes as people write them, and of a text of several lines the first.
fn short(file: &str, text: &str) -> String {
    let text = text.trim();
    let is_bytes = settings::lookup(file).is_some_and(|found| found.setting.kind == Kind::Bytes);
    match text.parse::<u64>() {
        // v1's way to say that there is no limit, whatever its pages' size
        Ok(bytes) if is_bytes && bytes >= i64::MAX.unsigned_abs() & !0xffff => "max".to_owned(),
        Ok(bytes) if is_bytes => Bytes(bytes).to_string(),
        _ => match text.split_once('\n') {
            Some((first, _)) => format!("{first} …"),
            None => text.to_owned(),
        },
    }
}

fn used(group: &GroupStatus) -> String {
    let memory = group.memory.map(|bytes| format!("{} of memory", rounded(bytes)));
    let cpu = group
        .cpu_usec
        .map(|micros| format!("{}.{:03} s of CPU time", micros / 1_000_000, micros / 1000 % 1000));
    let all: Vec<String> = memory.into_iter().chain(cpu).collect();
    if all.is_empty() { "nothing that is counted".to_owned() } else { all.join(", ") }
}

/// With one digit behind the point: nobody reads more.
fn rounded(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    match UNITS.iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            format!("{}.{}{unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

fn tasks(group: &GroupStatus) -> String {
    let named: Vec<String> =
        group.tasks.iter().take(NAMED).map(|task| format!("{} {}", task.pid, task.comm)).collect();
    let more = match group.tasks.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match group.tasks.len() {
        0 => "no tasks".to_owned(),
        count => format!("{}: {}{more}", counted(count, "task"), named.join(", ")),
    }
}

/// What apply would do.
fn still_to_do(path: &Path, plan: &Plan, hierarchies: &[SeenHierarchy]) -> String {
    if plan.steps.is_empty() {
        return format!("\nthe machine is as {} asks\n", path.display());
    }
    let count = counted(plan.steps.len(), "step");
    format!("\n{count} to what {} asks:\n{}", path.display(), shown(plan, hierarchies))
}
