//! `why`: what slowed a group down.

use std::fmt::Write;

use apply::{Resize, Resizes, Running, State, Target};
use monitor::Descriptors;
use serde_json::json;

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
    let (state, system) = (State::peek(apply::state_directory()), Running::new());
    let target = Target { host: &host, system: &system };
    let facts = why::gather_recorded(target, Descriptors::new(), &name, &state, args.span)?;
    let answer = why::why(&facts);
    let resizes = resizes(&state, &name.to_string());
    let latency = measured(&state, &name.to_string());
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

/// The last changes of an elastic group's CPUs; none of another, or for who may not read them.
fn resizes(state: &State, group: &str) -> Vec<Resize> {
    let mut all = Resizes::of(state).last(usize::MAX).unwrap_or_default();
    all.retain(|one| one.group == group);
    all.split_off(all.len().saturating_sub(LAST))
}
