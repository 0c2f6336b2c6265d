//! `why`: what slowed a group down.

use std::{fmt::Write, io::ErrorKind};

use ::why::{KernelKills, Kills, sentence};
use answers::layouts::KilledProcess;
use apply::{Resize, Resizes, Running, State, Target};
use kernel::{GroupName, Host};
use monitor::{Descriptors, Kill};
use serde_json::json;
use system::Accounts;

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
    let gathered = why::gather_recorded(target, Descriptors::new(), &name, &state, args.span);
    let facts = match gathered {
        Ok(facts) => facts,
        Err(error) if !matches!(error, kernel::Error::NoGroup { .. }) => return Err(error.into()),
        Err(error) => return killed_before(&host, &state, &name, json)?.ok_or_else(|| error.into()),
    };
    let answer = why::why(&facts);
    let resizes = resizes(&state, &name.to_string());
    let latency = measured(&state, &name.to_string());
    let Kills { of_group: kills, of_unknown, by_oomd, unread } =
        Kills::of(&host, &state, &name, &mut KernelKills::default());
    if let Some(error) = unread.as_ref().filter(|error| error.kind() != ErrorKind::NotFound) {
        output::warning(&format!(
            "processes that were killed for want of memory are known as far as ringfenced wrote them down: the kernel's log can't be read ({error})\n\
             hint: as root, or with sysctl kernel.dmesg_restrict=0"
        ));
    }
    if json {
        let mut answer = serde_json::to_value(&answer).map_err(Failure::new)?;
        answer["resizes"] = json!(resizes);
        answer["latency"] = json!(latency);
        answer["kills"] = json!(
            (unread.is_none() || !kills.is_empty())
                .then(|| kills.iter().map(KilledProcess::from).collect::<Vec<_>>())
        );
        answer["kills_of_unknown_group"] = json!(of_unknown);
        answer["killed_by_oomd"] = json!(by_oomd);
        return output::json(&answer);
    }
    let mut text = answer.to_string();
    if let Some(latency) = &latency {
        let _ = writeln!(text, "{latency}"); // a String takes everything
    }
    for one in &resizes {
        let _ = writeln!(text, "{}  {one}", time(one.at / 1000));
    }
    say_kills(&host, &kills, &mut text);
    if of_unknown > 0 {
        let more = units::counted(of_unknown, "process");
        let _ = writeln!(
            text,
            "the kernel killed {more} of this machine since the boot without logging the group: see dmesg"
        );
    }
    if by_oomd > 0 {
        let processes = units::counted(usize::try_from(by_oomd).unwrap_or(usize::MAX), "process");
        let _ = writeln!(text, "systemd-oomd ended {processes} of it: journalctl -u systemd-oomd");
    }
    output::text(&text)
}

/// What is known of a group that is gone: its processes that were killed. `None` if none was.
fn killed_before(host: &Host, state: &State, name: &GroupName, json: bool) -> Result<Option<()>, Failure> {
    let kills = Kills::of(host, state, name, &mut KernelKills::default()).of_group;
    if kills.is_empty() {
        return Ok(None);
    }
    if json {
        let kills: Vec<KilledProcess> = kills.iter().map(KilledProcess::from).collect();
        let answer = json!({ "group": name.to_string(), "causes": [], "resizes": [], "latency": null, "kills": kills });
        return output::json(&answer).map(Some);
    }
    let mut text = format!("group '{name}' does not exist now: none of its processes runs\n");
    say_kills(host, &kills, &mut text);
    output::text(&text).map(Some)
}

fn say_kills(host: &Host, kills: &[Kill], text: &mut String) {
    let accounts = Accounts::new();
    if let Some(more) = kills.len().checked_sub(LAST + 1) {
        let (count, first) = (units::counted(more + 1, "more process"), time(kills[0].at / 1000));
        let _ = writeln!(text, "{first}  and later: {count} killed"); // a String takes everything
    }
    for kill in kills.iter().skip(kills.len().saturating_sub(LAST)) {
        let _ = writeln!(text, "{}  {}", time(kill.at / 1000), sentence(host, kill, &accounts));
    }
}

/// The last changes of an elastic group's CPUs; none of another, or for who may not read them.
fn resizes(state: &State, group: &str) -> Vec<Resize> {
    let mut all = Resizes::of(state).last(usize::MAX).unwrap_or_default();
    all.retain(|one| one.group == group);
    all.split_off(all.len().saturating_sub(LAST))
}
