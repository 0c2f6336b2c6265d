//! `isolate check`: what interrupts CPUs.

use std::{process::Command, time::Duration};

use apply::{Head, Running, State, Target};
use monitor::interruptions::{self, READY, Report, Request, Row};
use serde_json::json;
use settings::knobs::Budget;
use units::CpuSet;

use super::{group, host, layouts, stop_on_signals};
use crate::{
    args,
    failure::{ATTENTION, FAILED, Failure, USAGE},
    output,
};

/// The probe, as the hidden command of workers has it.
pub const NOISE: &str = "noise";

/// Whose CPUs.
enum Of {
    Cpus(CpuSet),
    Group(String, CpuSet),
}

pub fn isolate(args: &args::Isolate, as_json: bool) -> Result<u8, Failure> {
    let args::IsolateCommand::Check(args) = &args.command;
    check(args, as_json)
}

fn check(args: &args::IsolateCheck, as_json: bool) -> Result<u8, Failure> {
    let of = of(&args.of)?;
    let (cpus, within) = match &of {
        Of::Cpus(cpus) => (cpus, None),
        Of::Group(name, cpus) => (cpus, Some(name.as_str())),
    };
    let in_effect = within.map_or(Ok(None), |_| in_effect(&layouts::history_of(&args.state)))?;
    let budget = in_effect.as_ref().zip(within).map_or(Budget::default(), |(head, group)| {
        let isolation = head.upkeep.isolation.as_ref();
        isolation.and_then(|isolation| isolation.budgets.get(group)).copied().unwrap_or_default()
    });
    if let (Some(head), Some(group), false) = (&in_effect, within, args.no_probe) {
        refuse_to_grow(head, group)?;
    }
    let stop = stop_on_signals()?;
    let probe = (!args.no_probe).then(|| probe(within, cpus, args));
    let request = Request { cpus: cpus.clone(), span: args.span, probe };
    let report = interruptions::measure(request, &stop)?.judged(
        args.budget.or(budget.per_second.map(f64::from)),
        budget.longest_us.filter(|_| !args.no_probe).map(f64::from),
    );
    let rows = within.map_or(Ok(Vec::new()), |_| rows(&layouts::history_of(&args.state), cpus))?;
    shown(&report, within, &rows, as_json)?;
    Ok(if report.above_budget == Some(true) { ATTENTION } else { 0 })
}

/// The layout in effect.
fn in_effect(state: &State) -> Result<Option<Head>, Failure> {
    let (host, running) = (host()?, Running::new());
    Ok(apply::layout_in_effect(state, Target { host: &host, system: &running })?)
}

/// What the probe uses counts as the load of an elastic group, which would get more CPUs for it.
fn refuse_to_grow(head: &Head, group: &str) -> Result<(), Failure> {
    let is_elastic = head.upkeep.elastic.iter().flat_map(|scope| &scope.groups).any(|one| one.name == group);
    if !is_elastic {
        return Ok(());
    }
    let message = format!("group '{group}' is elastic: the probe's use of its CPUs would make it grow");
    Err(Failure::new(message).hint("--no-probe leaves it out").code(USAGE))
}

fn shown(report: &Report, group: Option<&str>, rows: &[Row], as_json: bool) -> Result<(), Failure> {
    if as_json {
        let mut answer = serde_json::to_value(report).map_err(Failure::new)?;
        answer["group"] = json!(group);
        answer["rows"] = json!(rows);
        return output::json(&answer);
    }
    output::text(&report.with_rows(rows))
}

/// What the layout in effect keeps off a group's CPUs, and what only the boot can.
fn rows(state: &State, cpus: &CpuSet) -> Result<Vec<Row>, Failure> {
    let (host, running) = (host()?, Running::new());
    let groups = apply::status(state, Target { host: &host, system: &running })?;
    Ok(layouts::rows_of(&groups, cpus))
}

/// A list of numbers is CPUs, anything else a group.
fn of(text: &str) -> Result<Of, Failure> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte)) {
        let cpus = text.parse().map_err(|error| Failure::usage(format!("'{text}': {error}")))?;
        return Ok(Of::Cpus(cpus));
    }
    let name = group(text)?;
    let cpus = apply::cpus_of(&host()?, &name)?;
    match cpus.is_empty() {
        true => Err(Failure::new(format!("group '{name}' has no list of CPUs of its own"))
            .hint("name the CPUs, or give it some: cpus and exclusive in a layout (docs/layout.md)")),
        false => Ok(Of::Group(name.to_string(), cpus)),
    }
}

/// Inside the group, as its own CPUs are closed to all other tasks.
fn probe(group: Option<&str>, cpus: &CpuSet, args: &args::IsolateCheck) -> Command {
    const PROGRAM: &str = "/proc/self/exe";
    let mut command = Command::new(PROGRAM);
    if let Some(group) = group {
        command.args(["run", group, "--", PROGRAM]);
    }
    let nanos = |length: Duration| length.as_nanos().to_string();
    command.args(["worker", NOISE, &cpus.to_string(), &nanos(args.span), &nanos(args.threshold)]);
    command
}

/// The probe's process: CPUs, span and threshold in nanoseconds.
pub fn noise(words: &[String]) -> Result<(), Failure> {
    let wrong = || Failure::usage("expected CPUS SPAN THRESHOLD");
    let [cpus, span, threshold] = words else { return Err(wrong()) };
    let nanos = |text: &String| text.parse().map(Duration::from_nanos).map_err(|_| wrong());
    let (span, threshold) = (nanos(span)?, nanos(threshold)?);
    let cpus: CpuSet = cpus.parse().map_err(|_| wrong())?;
    let stop = stop_on_signals()?;
    let ready = || {
        // a reader that went away sees to the end
        let _ = output::text(&format!("{READY}\n"));
    };
    let seen = interruptions::watch(&cpus, span, threshold, &stop, ready);
    let seen = seen.map_err(|(cpu, error)| {
        let group =
            "another group has it for itself, or the caller's group lacks it: name the group that has it";
        let closed = error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error());
        let hint = if closed { group.to_owned() } else { "--no-probe leaves it out".to_owned() };
        Failure::new(format!("the probe cannot run on CPU {cpu}: {error}")).hint(hint)
    })?;
    output::json(&seen)
}

impl From<interruptions::Error> for Failure {
    fn from(error: interruptions::Error) -> Failure {
        let code = if matches!(error, interruptions::Error::Read { .. }) { FAILED } else { USAGE };
        let hint = error.hint();
        let failure = Failure::new(error).code(code);
        hint.into_iter().fold(failure, Failure::hint)
    }
}
