//! `run`, `move`, `where`.

use std::{collections::BTreeMap, fmt::Write};

use apply::{Running, State, StaysIn, Target};
use kernel::{GroupName, Host, LeftBehind, Program, ProgramEnd, Real, What, describe};
use serde_json::json;
use units::{Bytes, hint::Command, printable};

use super::{group, host, requests, units as bound};
use crate::{
    args,
    failure::{Failure, RUN_FAILED},
    output,
};

pub fn run(args: &args::Run) -> Result<u8, Failure> {
    let failed = |failure: Failure| failure.code(RUN_FAILED);
    let name = group(&args.group).map_err(failed)?;
    let program = Program::new(args.command.iter().cloned())
        .map_err(|errno| failed(Failure::new(format!("cannot use this command: {}", describe(errno)))))?;
    let host = host().map_err(failed)?;
    let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
    for stays in stays_in(&host, &name, own, parent) {
        output::warning(&format!(
            "the program stays in group '{}' of {}, as '{name}' does not exist there: that group's limits still apply\n\
             hint: {}",
            printable(&stays.group),
            stays.controllers,
            Command::ringfence("create").group(&name).arg("--controllers").arg(&stays.controllers),
        ));
    }
    match host.run(&Real::new(), &name, &program).map_err(|error| failed(error.into()))? {
        ProgramEnd::Exited(status) => Ok(u8::try_from(status).unwrap_or(RUN_FAILED)),
        ProgramEnd::Signalled(signal) => {
            // as on v1, where the program took our place: the process that waits for us sees its signal
            if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
            }
            Ok(u8::try_from(128 + signal).unwrap_or(RUN_FAILED))
        }
        ProgramEnd::NotStarted(errno) => {
            let (code, hint) = match errno.raw_os_error() {
                2 => (127, "is it installed, and in PATH?"),
                _ => (126, "is it a program, and executable?"),
            };
            Err(Failure::new(format!("cannot execute '{}': {}", program.name(), describe(errno)))
                .hint(hint)
                .code(code))
        }
    }
}

pub fn move_tasks(args: &args::Move, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let what = match (args.threads, args.tree) {
        (true, _) => What::Thread,
        (_, true) => What::Tree,
        _ => What::Process,
    };
    let host = host()?;
    let moved = match host.move_tasks(&name, &args.pids, what).map_err(Failure::from) {
        Err(failure) if failure.denied && what == What::Process => {
            return requests::move_processes(&args.socket, &name, &args.pids, failure, as_json);
        }
        other => other?,
    };
    let left = if what == What::Thread { Vec::new() } else { host.left_behind(&name, &moved) };
    for LeftBehind { group, bytes, processes } in &left {
        let whose =
            if *processes == 1 { "the process".to_owned() } else { format!("the {processes} processes") };
        output::warning(&format!(
            "about {} of memory of {whose} stays charged to group '{}': no limit of '{name}' counts it\n\
             hint: what is started in the group is charged to it: {} -- PROGRAM",
            rounded(*bytes),
            printable(group),
            Command::ringfence("run").group(&name),
        ));
    }
    if let Some(by) = host.frozen_by(&name).filter(|_| !moved.tasks.is_empty()) {
        output::warning(&format!(
            "'{name}' is frozen: what was moved there stands still until it is thawed\nhint: {}",
            Command::ringfence("thaw").group(by)
        ));
    }
    let mut stays: BTreeMap<u32, Vec<StaysIn>> = BTreeMap::new();
    for &pid in &moved.tasks {
        let own = stays_in(&host, &name, pid, std::process::id());
        for StaysIn { controllers, group } in &own {
            let (noun, again) = match what {
                What::Thread => ("thread", "move --threads"),
                _ => ("process", "move"),
            };
            output::warning(&format!(
                "{noun} {pid} stays in group '{}' of {controllers}, as '{name}' does not exist there: that group's limits still apply\n\
                 hint: {} && {}",
                printable(group),
                Command::ringfence("create").group(&name).arg("--controllers").arg(controllers),
                Command::ringfence(again).group(&name).arg(pid.to_string()),
            ));
        }
        if !own.is_empty() {
            stays.insert(pid, own);
        }
    }
    if as_json {
        let mut row = json!(moved);
        row["memory_left_behind"] = json!(left);
        row["stays_in"] = json!(stays);
        return output::json(&row);
    }
    for pid in &moved.gone {
        output::warning(&format!("process {pid} ended meanwhile"));
    }
    if args.tree {
        return output::text(&format!("{}\n", units::counted(moved.tasks.len(), "process")));
    }
    Ok(())
}

/// The groups whose limits still hold for a process that is put into `group`.
fn stays_in(host: &Host, group: &GroupName, pid: u32, beside: u32) -> Vec<StaysIn> {
    let running = Running::new();
    let target = Target { host, system: &running };
    apply::stays_in(target, &State::peek(apply::state_directory()), group, pid, beside)
}

/// Whole MiB: it is an estimate.
fn rounded(bytes: Bytes) -> Bytes {
    Bytes(bytes.0.checked_next_multiple_of(1 << 20).unwrap_or(bytes.0))
}

pub fn places(args: &args::Where, as_json: bool) -> Result<(), Failure> {
    let host = host()?;
    let caller = std::os::unix::process::parent_id();
    let pids = if args.of.is_empty() { vec![caller] } else { args.pids() };
    let mut text = String::new();
    let mut rows = Vec::new();
    let mut of_units = None;
    for pid in pids {
        let process = host.kernel().process(pid).map_err(|_| kernel::Error::NoProcess { pid })?;
        let groups: Vec<_> = host
            .hierarchies()
            .iter()
            .filter_map(|at| {
                let path = host.kernel().group_of(at, pid).ok()?;
                let below = at.below_mount(&path);
                let name = below.as_ref().map_or_else(|| path.clone(), |below| host.named(at, below));
                let real = below.map_or_else(|| path.clone().into(), |below| at.path(&below));
                Some((at.label(), name, real))
            })
            .collect();
        // the group of the layout that is the unit
        let unit = host.unit_of_process(pid).map(|unit| {
            let groups = of_units.get_or_insert_with(|| bound::bound_groups(&host));
            let is_it = |group: &&apply::GroupStatus| group.unit.as_ref().is_some_and(|its| its.name == unit);
            let group = groups.iter().find(is_it).map(|group| group.group.clone());
            (unit, group)
        });
        if as_json {
            let hierarchies: BTreeMap<_, _> = groups
                .iter()
                .map(|(label, name, real)| (label, json!({ "group": name, "path": real })))
                .collect();
            let mut row = json!({ "process": process, "hierarchies": hierarchies });
            if let Some((name, group)) = unit {
                row["unit"] = json!({ "name": name, "group": group });
            }
            rows.push(row);
            continue;
        }
        let _ = writeln!(text, "{pid} ({}), last on CPU {}", printable(&process.comm), process.last_cpu);
        let widest = |length: fn(&(String, String, _)) -> usize| groups.iter().map(length).max().unwrap_or(0);
        let (labels, names) = (widest(|row| row.0.len()), widest(|row| row.1.len()));
        for (label, name, real) in &groups {
            let (name, real) = (printable(name), real.display().to_string());
            let _ = writeln!(text, "  {label:labels$}  {name:names$}  {}", printable(&real));
        }
        if let Some((unit, group)) = unit {
            let group = group.map(|group| format!(", which is group '{}' of the layout", printable(&group)));
            let _ = writeln!(text, "  of {}{}", printable(&unit), group.unwrap_or_default());
        }
    }
    if as_json { output::json(&rows) } else { output::text(&text) }
}
