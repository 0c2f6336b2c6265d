//! `why`: what slowed a group down.

use std::fmt::Write;

use apply::{Resize, Resizes, Running, State, Target};
use kernel::Host;
use monitor::Descriptors;
use serde_json::json;
use units::CpuSet;

use super::{
    group, host,
    layouts::{measured, time},
};
use crate::{args, failure::Failure, output};

/// How many changes of its CPUs are named.
const LAST: usize = 3;

pub fn why(args: &args::Why, json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let facts = why::gather(&host, Descriptors::new(), &name, &isolated(&host), args.span)?;
    let answer = why::why(&facts);
    let resizes = resizes(&name.to_string());
    let latency = measured(&State::peek(apply::state_directory()), &name.to_string());
    if json {
        let mut answer = serde_json::to_value(&answer).map_err(Failure::new)?;
        answer["resizes"] = json!(resizes);
        answer["latency"] = json!(latency);
        return output::json(&answer);
    }
    let mut text = answer.to_string();
    if let Some(latency) = &latency {
        let _ = writeln!(text, "{latency}"); // a String takes everything
    }
    for one in &resizes {
        let _ = writeln!(text, "{}  {one}", time(one.at / 1000));
    }
    output::text(&text)
}

/// None for who may not read the history.
fn isolated(host: &Host) -> CpuSet {
    let (state, system) = (State::peek(apply::state_directory()), Running::new());
    apply::isolated_cpus(&state, Target { host, system: &system }).unwrap_or_default()
}

/// The last changes of an elastic group's CPUs; none of another, or for who may not read them.
fn resizes(group: &str) -> Vec<Resize> {
    let mut all = Resizes::of(&State::peek(apply::state_directory())).last(usize::MAX).unwrap_or_default();
    all.retain(|one| one.group == group);
    all.split_off(all.len().saturating_sub(LAST))
}
