//! `shield` and `unshield`: a layout of one group, applied beside the one in effect.

use std::path::Path;

use apply::{By, Earlier, Head, Kind, Meta, Outcome, Target};
use kernel::Host;
use layout::Source;
use settings::{Controller, Version};
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

/// What its generations are called.
const NAME: &str = "shield";
/// The group.
const GROUP: &str = "shield";
/// The same beside systemd's own, where the kernel makes no partition below the unit.
const AT_THE_ROOT: &str = "/shield";

pub fn shield(args: &args::Shield, as_json: bool) -> Result<u8, Failure> {
    let (outcome, group) = shielded(args)?;
    if !args.program.is_empty() {
        let (group, command) = (group.to_owned(), args.program.clone());
        return tasks::run(&args::Run { group, command });
    }
    match as_json {
        true => output::json_by_name(&outcome)?,
        false => print(&outcome, None, "nothing to do: these CPUs are shielded\n")?,
    }
    Ok(0)
}

fn shielded(args: &args::Shield) -> Result<(Outcome, &'static str), Failure> {
    let host = host_even_unmounted()?;
    if host.needs_unit() {
        systemd::ensure_unit(&host)?;
    }
    let group = group(&host);
    let layout = of(group, &args.cpus)?;
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    recovered(&lock, target)?;
    let plan = on(&layout, target, &Earlier::none(), (&layout.desired, &[])).map_err(Failure::unchanged)?;
    warn(&plan, &layout);
    let what = format!("{NAME} {}", args.cpus);
    let meta = Meta { by: By::caller(), what, ..Meta::default() };
    Ok((apply::execute(&lock, target, &plan, &meta)?, group))
}

/// Below systemd's unit a group can be a partition from Linux 6.7 on; the root's own children can on every kernel.
fn group(host: &Host) -> &'static str {
    let at = host.hierarchy_of(Controller::Cpuset).filter(|at| at.version == Version::V2);
    let Some(at) = at.filter(|_| host.needs_unit()) else { return GROUP };
    let has = |path: &str, file: &str| host.kernel().read(at, path, file).is_ok();
    let is_new = has("", plan::ISOLATED) || has(host.base(at).path(), plan::EXCLUSIVE);
    if is_new { GROUP } else { AT_THE_ROOT }
}

/// The layout.
fn of(group: &str, cpus: &CpuSet) -> Result<Layout<'static>, Failure> {
    let text = format!("[groups.\"{group}\"]\ncpus = \"{cpus}\"\nexclusive = true\n");
    let source = Source::new("shield", &text);
    let reading = layout::read_toml(std::slice::from_ref(&source));
    let desired = reading.desired.ok_or_else(|| Failure::usage(format!("CPUs {cpus} make no shield")))?;
    Ok(Layout { path: Path::new("shield"), desired, sources: vec![source] })
}

/// Is it a generation of `shield`?
fn is_shield(head: &Head) -> bool {
    let words = head.what.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(' '));
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
        true => output::json_by_name(&outcome)?,
        false => print(&outcome, None, "nothing to restore\n")?,
    }
    Ok(if outcome.left.is_empty() { 0 } else { ATTENTION })
}
