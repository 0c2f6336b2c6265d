//! `freeze`, `thaw`, `kill`.

use std::collections::BTreeSet;

use kernel::{GroupName, Host};
use serde_json::json;
use settings::{Controller, Version};
use units::{group_path, hint::Command};

use super::{group, host};
use crate::{args, failure::Failure, output};

const SIGKILL: i32 = 9;

pub fn set_frozen(args: &args::Wait, frozen: bool, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let before = if frozen { out_of_freezer(&host, &name) } else { BTreeSet::new() };
    let state = kernel::set_frozen(&host, &name, frozen, args.timeout)?;
    let left = if before.is_empty() { BTreeSet::new() } else { out_of_freezer(&host, &name) };
    let moved: BTreeSet<u32> = before.difference(&left).filter_map(|task| process(&host, *task)).collect();
    if !moved.is_empty() {
        let all: Vec<String> = moved.iter().map(u32::to_string).collect();
        output::warning(&format!(
            "'{name}' did not have all threads of {} in the freezer hierarchy: they were moved there, and stay after thaw",
            all.join(", ")
        ));
    }
    if as_json { output::json(&json!({ "group": name.to_string(), "state": state })) } else { Ok(()) }
}

/// v1: threads of processes of the group that are outside of its directory in the freezer's hierarchy.
fn out_of_freezer(host: &Host, group: &GroupName) -> BTreeSet<u32> {
    let Ok(freezer) = host.seat(group, Controller::Freezer) else { return BTreeSet::new() };
    if freezer.at.version == Version::V2 {
        return BTreeSet::new();
    }
    let seats = host.seats(group);
    let processes: BTreeSet<u32> = seats.iter().flat_map(|seat| host.tasks_in(seat)).collect();
    let threads = processes.iter().flat_map(|pid| host.kernel().threads(*pid).unwrap_or_default());
    let is_outside = |thread: &u32| {
        let path = host.kernel().group_of(freezer.at, *thread).ok();
        path.and_then(|path| freezer.at.below_mount(&path))
            .is_some_and(|path| !group_path::is_at_or_below(&path, &freezer.path))
    };
    threads.filter(is_outside).collect()
}

fn process(host: &Host, thread: u32) -> Option<u32> {
    Some(host.kernel().process(thread).ok()?.tgid)
}

pub fn kill(args: &args::Kill, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.wait.group)?;
    let host = host()?;
    if let Some(signal) = args.signal {
        let signalled = kernel::signal(&host, &name, signal)?;
        // cgroup v2 ends frozen processes that are killed
        let waits = signal != SIGKILL
            || host.seat(&name, Controller::Freezer).is_ok_and(|seat| seat.at.version == Version::V1);
        if let Some(by) = host.frozen_by(&name).filter(|_| waits && signalled > 0) {
            output::warning(&format!(
                "'{name}' is frozen: its processes get the signal once it is thawed\nhint: {}",
                Command::ringfence("thaw").group(by)
            ));
        }
        let row = json!({ "group": name.to_string(), "signal": signal, "signalled": signalled });
        return if as_json { output::json(&row) } else { Ok(()) };
    }
    let killed = kernel::kill(&host, &name, args.wait.timeout)?;
    if as_json { output::json(&json!({ "group": name.to_string(), "killed": killed })) } else { Ok(()) }
}
