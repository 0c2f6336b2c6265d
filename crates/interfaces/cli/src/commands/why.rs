//! `why`: what slowed a group down.

use std::{fmt::Write, io::ErrorKind};

use apply::{Resize, Resizes, Running, State, Target};
use kernel::{GroupName, Host};
use monitor::{Descriptors, Kill};
use serde_json::json;
use settings::Controller;
use system::Accounts;
use units::{group_path, printable};

use super::{
    group, host,
    layouts::{measured, time},
};
use crate::{args, failure::Failure, output};

/// How many changes of its CPUs, and how many kills, are named.
const LAST: usize = 3;

pub fn why(args: &args::Why, json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let (state, system) = (State::peek(apply::state_directory()), Running::new());
    let target = Target { host: &host, system: &system };
    let facts = why::gather_recorded(target, Descriptors::new(), &name, &state, args.span)?;
    let answer = why::why(&facts);
    let resizes = resizes(&state, &name.to_string());
    let latency = measured(&state, &name.to_string());
    let kills = kills(&host, &name);
    if json {
        let mut answer = serde_json::to_value(&answer).map_err(Failure::new)?;
        answer["resizes"] = json!(resizes);
        answer["latency"] = json!(latency);
        answer["kills"] = json!(kills.as_ref().map(|(kills, _)| kills));
        answer["kills_of_unknown_group"] = json!(kills.map(|(_, unknown)| unknown));
        return output::json(&answer);
    }
    let mut text = answer.to_string();
    if let Some(latency) = &latency {
        let _ = writeln!(text, "{latency}"); // a String takes everything
    }
    for one in &resizes {
        let _ = writeln!(text, "{}  {one}", time(one.at / 1000));
    }
    if let Some((kills, unknown)) = &kills {
        say_kills(&host, kills, &mut text);
        if *unknown > 0 {
            let more = units::counted(*unknown, "other process");
            let _ = writeln!(text, "the kernel killed {more} without logging the group: see dmesg");
        }
    }
    output::text(&text)
}

/// The processes of the group and of those below it that the kernel killed for want of memory since the boot, as far as its log
/// still has them, and of how many it does not say the group; `None` where that can't be read.
fn kills(host: &Host, name: &GroupName) -> Option<(Vec<Kill>, usize)> {
    let mut kills = match monitor::kills() {
        Ok(kills) => kills,
        // a container has no such log
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            output::warning(&format!(
                "processes that were killed for want of memory are not known: the kernel's log can't be read ({error})\n\
                 hint: as root, or with sysctl kernel.dmesg_restrict=0"
            ));
            return None;
        }
    };
    let seat = host.seat(name, Controller::Memory).ok()?;
    let is_in = |kill: &Kill| {
        let path = kill.group.as_deref().and_then(|path| seat.at.below_mount(path));
        path.is_some_and(|path| group_path::is_at_or_below(&path, &seat.path))
    };
    let unknown = kills.iter().filter(|kill| kill.group.is_none()).count();
    kills.retain(is_in);
    Some((kills, unknown))
}

fn say_kills(host: &Host, kills: &[Kill], text: &mut String) {
    let accounts = Accounts::new();
    let named = |path: &str| {
        let at = host.hierarchy_of(Controller::Memory);
        at.and_then(|at| Some(host.named(at, &at.below_mount(path)?))).unwrap_or_else(|| path.to_owned())
    };
    if let Some(more) = kills.len().checked_sub(LAST + 1) {
        let (count, first) = (units::counted(more + 1, "more process"), time(kills[0].at / 1000));
        let _ = writeln!(text, "{first}  and later: {count} killed"); // a String takes everything
    }
    for kill in kills.iter().skip(kills.len().saturating_sub(LAST)) {
        let Kill { at, pid, comm, uid, resident, limited, limit, with_group, .. } = kill;
        let user = accounts.user_name(*uid).unwrap_or_else(|| uid.to_string());
        let why = match limited {
            Some(group) => {
                let limit = limit.map(|limit| format!(" ({limit})")).unwrap_or_default();
                format!("as group '{}' met its limit of memory{limit}", printable(&named(group)))
            }
            None => "as the machine had no memory left".to_owned(),
        };
        let with = if *with_group { ", with its group (memory.oom.group)" } else { "" };
        let _ = writeln!(
            text,
            "{}  process {pid} ({}, user {}) with {} in memory was killed{with}, {why}",
            time(at / 1000),
            printable(comm),
            printable(&user),
            resident.rounded(),
        );
    }
}

/// The last changes of an elastic group's CPUs; none of another, or for who may not read them.
fn resizes(state: &State, group: &str) -> Vec<Resize> {
    let mut all = Resizes::of(state).last(usize::MAX).unwrap_or_default();
    all.retain(|one| one.group == group);
    all.split_off(all.len().saturating_sub(LAST))
}
