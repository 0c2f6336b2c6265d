//! `run`, `where`.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use apply::{GroupStatus, Running, State, StaysIn, Target};
use kernel::{GroupName, Host, Program, ProgramEnd, Real, describe};
use layout::UnitName;
use serde_json::json;
use units::{group_path, hint::Command, printable};

use super::{group, host, units as bound};
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
                2 if program.name().contains('/') => {
                    (127, "does the file exist, and the interpreter that its first line names?")
                }
                2 => (127, "is it installed, and in PATH?"),
                _ => (126, "is it a program, and executable?"),
            };
            Err(Failure::new(format!("cannot execute '{}': {}", program.name(), describe(errno)))
                .hint(hint)
                .code(code))
        }
    }
}

/// The groups whose limits still hold for a process that is put into `group`.
pub(super) fn stays_in(host: &Host, group: &GroupName, pid: u32, beside: u32) -> Vec<StaysIn> {
    let running = Running::new();
    let target = Target { host, system: &running };
    apply::stays_in(target, &State::peek(apply::state_directory()), group, pid, beside)
}

pub fn places(args: &args::Where, as_json: bool) -> Result<(), Failure> {
    let host = host()?;
    let caller = std::os::unix::process::parent_id();
    let pids = if args.of.is_empty() { vec![caller] } else { args.pids() };
    let mut text = String::new();
    let mut rows = Vec::new();
    let mut in_effect = None;
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
        let unit = host.unit_of_process(pid).map(|unit| {
            let in_effect = in_effect.get_or_insert_with(|| bound::groups_in_effect(&host));
            let real: Vec<&Path> = groups.iter().map(|(_, _, real)| real.as_path()).collect();
            let group = of_layout(in_effect, &unit, &real);
            (unit, group)
        });
        if as_json {
            let hierarchies: BTreeMap<_, _> = groups
                .iter()
                .map(|(label, name, real)| (label, json!({ "group": name, "path": real })))
                .collect();
            let mut row = json!({ "process": process, "hierarchies": hierarchies });
            if let Some((name, group)) = unit {
                let (group, inner) = group.unzip();
                row["unit"] = json!({ "name": name, "group": group, "inner_group": inner.flatten() });
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
            let group = group.map(|(group, inner)| match inner {
                None => format!(", which is group '{}' of the layout", printable(&group)),
                Some(inner) => format!(", in group '{}' of the layout", printable(&inner)),
            });
            let _ = writeln!(text, "  of {}{}", printable(&unit), group.unwrap_or_default());
        }
    }
    if as_json { output::json(&rows) } else { output::text(&text) }
}

/// The group of the layout that this unit is, by its name or its template's, and the group in it that the process is in; `real`: the
/// process's directories.
fn of_layout(in_effect: &[GroupStatus], unit: &str, real: &[&Path]) -> Option<(String, Option<String>)> {
    let is_its = |group: &&GroupStatus| group.unit.as_ref().is_some_and(|its| its.name == unit);
    let fits = |group: &&GroupStatus| {
        let name = group.unit.as_ref().and_then(|its| UnitName::of_file_name(&its.name).ok());
        name.is_some_and(|name| name.fits(unit))
    };
    let own = in_effect.iter().find(is_its).or_else(|| in_effect.iter().find(fits))?;
    let below = real.iter().find_map(|real| {
        let names: Vec<&str> = real.iter().filter_map(|name| name.to_str()).collect();
        let at = names.iter().position(|name| *name == unit)?;
        Some(names[at + 1..].join("/"))
    })?;
    let inner = in_effect.iter().filter(|group| {
        let rest = group.group.strip_prefix(own.group.as_str()).and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| group_path::is_at_or_below(&below, rest))
    });
    let inner = inner.max_by_key(|group| group.group.len()).map(|group| group.group.clone());
    Some((own.group.clone(), inner))
}
