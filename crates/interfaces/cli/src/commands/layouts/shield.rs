//! `shield` and `unshield`: a layout of one group, applied beside the one in effect.

use std::path::Path;

use apply::{By, Earlier, Head, Kind, Meta, Outcome, Target};
use layout::Source;
use serde_json::json;
use units::CpuSet;

use super::{
    Layout,
    change::{locked, print, recovered, until_interrupted},
    on, state, warn,
};
use crate::{
    args,
    commands::{host_even_unmounted, tasks},
    failure::{ATTENTION, Failure},
    output,
};

/// The group.
const GROUP: &str = "shield";

pub fn shield(args: &args::Shield, as_json: bool) -> Result<u8, Failure> {
    let outcome = shielded(args)?;
    if !args.program.is_empty() {
        let (group, command) = (GROUP.to_owned(), args.program.clone());
        return tasks::run(&args::Run { group, command });
    }
    match as_json {
        true => output::json(&json!(outcome))?,
        false => print(&outcome, None, "nothing to do: these CPUs are shielded\n")?,
    }
    Ok(0)
}

fn shielded(args: &args::Shield) -> Result<Outcome, Failure> {
    let layout = of(&args.cpus)?;
    let host = host_even_unmounted()?;
    if host.needs_unit() {
        systemd::ensure_unit(&host)?;
    }
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    recovered(&lock, target)?;
    let plan = on(&layout, target, &Earlier::none(), (&layout.desired, &[])).map_err(Failure::unchanged)?;
    warn(&plan, &layout);
    let what = format!("{GROUP} {}", args.cpus);
    let meta = Meta { by: By::caller(), what, ..Meta::default() };
    Ok(apply::execute(&lock, target, &plan, &meta)?)
}

/// The layout.
fn of(cpus: &CpuSet) -> Result<Layout<'static>, Failure> {
    let text = format!("[groups.{GROUP}]\ncpus = \"{cpus}\"\nexclusive = true\n");
    let source = Source::new("shield", &text);
    let reading = layout::read_toml(std::slice::from_ref(&source));
    let desired = reading.desired.ok_or_else(|| Failure::usage(format!("CPUs {cpus} make no shield")))?;
    Ok(Layout { path: Path::new("shield"), desired, sources: vec![source] })
}

/// Is it a generation of `shield`?
fn is_shield(head: &Head) -> bool {
    let words = head.what.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(' '));
    head.kind == Kind::Apply && !head.layout && words.is_some_and(|cpus| cpus.parse::<CpuSet>().is_ok())
}

pub fn unshield(args: &args::Unshield, as_json: bool) -> Result<u8, Failure> {
    let host = host_even_unmounted()?;
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    recovered(&lock, target)?;
    let meta = Meta { by: By::caller(), what: "unshield".to_owned(), ..Meta::default() };
    let outcome = match apply::undo_those(&lock, target, &is_shield, &meta) {
        Err(apply::Failure::NothingToUndo | apply::Failure::NothingRecorded { .. }) => {
            return Err(Failure::new("no shield is in effect").hint("ringfence history lists what is"));
        }
        other => other?,
    };
    match as_json {
        true => output::json(&json!(outcome))?,
        false => print(&outcome, None, "nothing to restore\n")?,
    }
    Ok(if outcome.left.is_empty() { 0 } else { ATTENTION })
}
