//! `run`, `move`, `where`.

use std::{collections::BTreeMap, fmt::Write};

use kernel::{Ended, Program, Real, What, describe};
use serde_json::json;

use super::{asking, group, host};
use crate::{
    args,
    failure::{Failure, RUN_FAILED},
    output,
};

pub fn run(args: &args::Run) -> Result<u8, Failure> {
    let failed = |failure: Failure| failure.code(RUN_FAILED);
    let name = group(&args.group).map_err(failed)?;
    let program = Program::new(args.command.iter().cloned())
        .map_err(|errno| failed(Failure::new(format!("the command can't be used: {}", describe(errno)))))?;
    let host = host().map_err(failed)?;
    match host.run(&Real::new(), &name, &program).map_err(|error| failed(error.into()))? {
        Ended::Exited(status) => Ok(u8::try_from(status).unwrap_or(RUN_FAILED)),
        Ended::Signalled(signal) => {
            // as on v1, where the program took our place: whoever waits for us sees its signal
            if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
            }
            Ok(u8::try_from(128 + signal).unwrap_or(RUN_FAILED))
        }
        Ended::NotStarted(errno) => {
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
            return asking::move_processes(&name, &args.pids, failure, as_json);
        }
        other => other?,
    };
    if as_json {
        return output::json(&moved);
    }
    for pid in &moved.gone {
        output::warning(&format!("process {pid} ended meanwhile"));
    }
    if args.tree {
        let noun = if moved.tasks.len() == 1 { "process" } else { "processes" };
        return output::text(&format!("{} {noun}\n", moved.tasks.len()));
    }
    Ok(())
}

pub fn places(args: &args::Where, as_json: bool) -> Result<(), Failure> {
    let host = host()?;
    let caller = std::os::unix::process::parent_id();
    let pids = if args.pids.is_empty() { vec![caller] } else { args.pids.clone() };
    let mut text = String::new();
    let mut rows = Vec::new();
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
        if as_json {
            let hierarchies: BTreeMap<_, _> = groups
                .iter()
                .map(|(label, name, real)| (label, json!({ "group": name, "path": real })))
                .collect();
            rows.push(json!({ "process": process, "hierarchies": hierarchies }));
            continue;
        }
        let _ = writeln!(text, "{pid} ({}), last on CPU {}", process.comm, process.last_cpu);
        let widest = |length: fn(&(String, String, _)) -> usize| groups.iter().map(length).max().unwrap_or(0);
        let (labels, names) = (widest(|row| row.0.len()), widest(|row| row.1.len()));
        for (label, name, real) in &groups {
            let _ = writeln!(text, "  {label:labels$}  {name:names$}  {}", real.display());
        }
    }
    if as_json { output::json(&rows) } else { output::text(&text) }
}
