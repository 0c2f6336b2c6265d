//! `apply`, `confirm`, `undo`, and the process that undoes what is not confirmed.

use std::{process::Command, time::Duration};

use apply::{By, Error, Failure as ApplyFailure, Lock, Meta, Outcome, Running, State, Target};
use serde::Serialize;
use serde_json::json;

use super::{answered, counted, directory, planned, read, state, warn};
use crate::{
    args,
    commands::{host_even_unmounted, stop_on_signals},
    failure::{ATTENTION, Failure, INTERRUPTED},
    output,
};

/// How long another change is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

impl From<ApplyFailure> for Failure {
    fn from(failure: ApplyFailure) -> Failure {
        let hint = failure.hint();
        let told = match &failure {
            ApplyFailure::RolledBack { error, step, steps, left, .. } if **error == Error::Interrupted => {
                interrupted(*step, *steps, left)
            }
            ApplyFailure::RolledBack { left, .. } if !left.is_empty() => {
                Failure::new(&failure).code(ATTENTION)
            }
            _ => Failure::new(&failure),
        };
        hint.into_iter().fold(told, Failure::hint)
    }
}

fn interrupted(step: usize, steps: usize, left: &[String]) -> Failure {
    let done = format!("rolled back because interrupted, {step} of {steps} steps done");
    if left.is_empty() {
        return Failure::new(format!("{done}: all is as before")).code(INTERRUPTED);
    }
    let left = left.join("; ");
    Failure::new(format!("{done}: all is as before, except for what could not be put back: {left}"))
        .code(ATTENTION)
}

pub fn apply(args: &args::Apply, as_json: bool) -> Result<(), Failure> {
    let outcome = answered(as_json, applied(args))?;
    let deadline = args.confirm.map(|within| within.as_secs()).filter(|_| outcome.generation.is_some());
    told(&outcome, deadline, as_json)
}

fn applied(args: &args::Apply) -> Result<Outcome, Failure> {
    let layout = read(&args.layout)?;
    let host = host_even_unmounted()?;
    if host.needs_unit() {
        kernel::ensure_unit(&host)?;
    }
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    recovered(&lock, target)?;
    let plan = planned(&layout, &host)?;
    warn(&plan, &layout);
    let what = format!("layout {}", layout.path.display());
    let meta = Meta { by: By::caller(), what, confirm_within: None };
    match args.confirm {
        None => Ok(apply::execute(&lock, target, &plan, &meta)?),
        Some(within) => {
            let seconds = within.as_secs();
            let directory = directory(&args.state);
            let reverter = move |generation: u32| {
                let mut command = Command::new("/proc/self/exe");
                command.arg("revert-unless-confirmed").arg(generation.to_string()).arg(seconds.to_string());
                command.arg("--state").arg(&directory);
                command
            };
            Ok(apply::execute_unless_reverted(&lock, target, &plan, &meta, seconds, &reverter)?)
        }
    }
}

/// The right to change; says for whom it waits.
fn locked(state: &State) -> Result<Lock, Failure> {
    match state.lock(Duration::ZERO) {
        Ok(lock) => Ok(lock),
        Err(failure) => {
            let Some(holder) = failure.holder() else { return Err(failure.into()) };
            output::error(&format!("ringfence: waiting for {holder} to end its change\n"));
            Ok(state.lock(PATIENCE)?)
        }
    }
}

/// The running system, in which Ctrl-C stops a change between two steps. Until here it ends this process, which has
/// changed nothing.
fn until_interrupted() -> Result<Running, Failure> {
    Ok(Running::stopped_by(stop_on_signals()?))
}

/// What an earlier change left is told before anything else.
fn recovered(lock: &Lock, target: Target<'_>) -> Result<(), Failure> {
    for recovered in apply::recover(lock, target)? {
        let left = if recovered.left.is_empty() {
            String::new()
        } else {
            format!(": {}", recovered.left.join("; "))
        };
        output::warning(&format!(
            "generation {} was broken off, and was put back{left}",
            recovered.generation
        ));
    }
    Ok(())
}

/// `deadline`: it is undone after so many seconds.
fn told(outcome: &Outcome, deadline: Option<u64>, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(&Told { outcome, undone_unless_confirmed_within: deadline });
    }
    for difference in &outcome.differences {
        let (file, asked, held) = (&difference.file, &difference.asked, &difference.held);
        output::warning(&format!("{file}: asked for {asked}, the kernel holds {held}"));
    }
    for thread in &outcome.unmoved {
        output::warning(&format!(
            "kernel thread {} ({}) stays on CPUs {}",
            thread.thread, thread.comm, thread.cpus
        ));
    }
    for left in &outcome.left {
        output::warning(left);
    }
    match outcome.generation {
        Some(generation) => {
            let mut text = format!("generation {generation}: {} done\n", counted(outcome.steps, "step"));
            if let Some(seconds) = deadline {
                text += &format!("undone in {seconds} s unless you say: ringfence confirm {generation}\n");
            }
            output::text(&text)
        }
        None => output::text("nothing to do: the machine is as the layout asks\n"),
    }
}

/// What is told of a change as JSON.
#[derive(Serialize)]
struct Told<'o> {
    #[serde(flatten)]
    outcome: &'o Outcome,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_unless_confirmed_within: Option<u64>,
}

pub fn confirm(args: &args::Generation, as_json: bool) -> Result<(), Failure> {
    let generation = answered(as_json, confirmed(args))?;
    if as_json {
        output::json(&json!({ "confirmed": generation }))
    } else {
        output::text(&format!("generation {generation} stays\n"))
    }
}

fn confirmed(args: &args::Generation) -> Result<u32, Failure> {
    let host = host_even_unmounted()?;
    let running = Running::new();
    let lock = locked(&state(&args.state)?)?;
    Ok(apply::confirm(&lock, Target { host: &host, system: &running }, args.generation)?)
}

/// What had to be left alone needs attention.
pub fn undo(args: &args::Generation, as_json: bool) -> Result<u8, Failure> {
    let outcome = answered(as_json, undone(args))?;
    told(&outcome, None, as_json)?;
    Ok(if outcome.left.is_empty() { 0 } else { ATTENTION })
}

fn undone(args: &args::Generation) -> Result<Outcome, Failure> {
    let host = host_even_unmounted()?;
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    recovered(&lock, target)?;
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), confirm_within: None };
    Ok(apply::undo(&lock, target, args.generation, &meta)?)
}

pub fn revert(args: &args::Revert) -> Result<(), Failure> {
    let host = host_even_unmounted()?;
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    apply::revert_unless_confirmed(&state(&args.state)?, target, args.generation, args.seconds)?;
    Ok(())
}
