//! `apply`, `confirm`, `undo`, and the process that undoes what is not confirmed.

use std::{os::unix::process::CommandExt, process, time::Duration};

use ::plan::{Lint, LintKind, SettingRequest};
use answers::layouts::{Confirmed, Done, Misplaced};
use apply::{
    Again, By, Difference, Drift, Error, Failure as ApplyFailure, Lock, Meta, Outcome, Recovered, Running,
    State, Target,
};
use kernel::Host;
use units::{counted, hint};

use super::{
    Layout,
    blocks::{nothing_to_do, on_this_machine},
    directory, history_of,
    plan::{to_be_confirmed, yes},
    planned, read, rules, state, warn,
};
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
        let shown = match &failure {
            ApplyFailure::RolledBack { error, step, steps, left, .. } if **error == Error::Interrupted => {
                interrupted(*step, *steps, left)
            }
            ApplyFailure::RolledBack { left, .. } if !left.is_empty() => {
                Failure::new(&failure).code(ATTENTION)
            }
            _ => Failure::new(&failure),
        };
        hint.into_iter().fold(shown, Failure::hint)
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

/// What is not as the layout says needs attention: a limit that holds on, or that does not hold for a process.
pub fn apply(args: &args::Apply, as_json: bool) -> Result<u8, Failure> {
    let Applied { mut outcome, warned, outside, misplaced, overridden } = applied(args)?;
    let deadline = args.confirm.map(|within| within.as_secs()).filter(|_| outcome.steps > 0);
    let again = Again::of_history(&history_of(&args.state));
    let attention = !outcome.left.is_empty() || !outside.is_empty() || !overridden.is_empty();
    outcome.differences.extend(overridden);
    if as_json {
        let (outside, misplaced) = (Some(outside), Some(misplaced));
        output::json(&Done { outcome, undone_unless_confirmed_within: deadline, outside, misplaced })?;
    } else {
        let nothing = nothing_to_do(!outside.is_empty() || !misplaced.is_empty());
        let left = outcome.left.iter().filter(|left| !warned.contains(left)).cloned().collect();
        print(&Outcome { left, ..outcome }, deadline.map(|seconds| (seconds, &again)), nothing)?;
    }
    Ok(if attention { ATTENTION } else { 0 })
}

struct Applied {
    outcome: Outcome,
    /// Of what is left, what the plan's warnings said.
    warned: Vec<String>,
    /// Processes of groups that are not in all of their directories, as in the plan.
    outside: Vec<Lint>,
    /// Processes that rules of the layout fit.
    misplaced: Vec<Misplaced>,
    /// Values of units that are not as they were written.
    overridden: Vec<Difference>,
}

fn applied(args: &args::Apply) -> Result<Applied, Failure> {
    let layout = read(&args.layout).map_err(Failure::unchanged)?;
    let host = host_even_unmounted()?;
    if host.needs_unit() && layout.desired.has_own_groups() {
        systemd::ensure_unit(&host)?;
    }
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    recovered(&lock, target)?;
    expected(lock.state(), args.expected)?;
    let plan = planned(&layout, &host, lock.state()).map_err(Failure::unchanged)?;
    warn(&plan, &layout);
    if let Some(reason) = to_be_confirmed(&layout, &plan).filter(|_| !args.yes) {
        output::error(&format!("{}\n", on_this_machine(&plan, &host, false)));
        return Err(Failure::new(format!("{reason}; nothing was changed"))
            .hint(format!("to do it: {}", yes(&layout))));
    }
    let what = format!("layout {}", args.named.as_deref().unwrap_or(layout.path).display());
    let (rules, file) = (layout.rules(), Some(apply::absolute(layout.path)));
    let meta = Meta { by: By::caller(), what, confirm_within: None, layout: true, rules, file };
    let outcome = match args.confirm {
        None => apply::execute(&lock, target, &plan, &meta)?,
        Some(within) => {
            let seconds = within.as_secs();
            let directory = directory(&args.state);
            let reverter = move |generation: u32| {
                let mut command = process::Command::new("/proc/self/exe");
                command.arg0("ringfence");
                command.arg("revert-unless-confirmed").arg(generation.to_string()).arg(seconds.to_string());
                command.arg("--state").arg(&directory);
                command
            };
            apply::execute_unless_reverted(&lock, target, &plan, &meta, seconds, &reverter)?
        }
    };
    // groups that were made just now are there for the look at the rules
    let misplaced = rules::misplaced(&layout.desired, &host);
    rules::warn(&misplaced, &layout);
    let warned = plan.lints.iter().map(|lint| lint.message.clone()).collect();
    let outside = plan.lints.into_iter().filter(|lint| lint.kind == LintKind::Outside).collect();
    let overridden = match outcome.steps {
        0 => Vec::new(),
        _ => overridden(lock.state(), target, &layout),
    };
    Ok(Applied { outcome, warned, outside, misplaced, overridden })
}

/// What units of the layout have otherwise, though it was just applied: systemd has read its files since. The change is done, so that
/// a failure to look is none of it.
fn overridden(state: &State, target: Target<'_>, layout: &Layout<'_>) -> Vec<Difference> {
    if layout.desired.groups.iter().all(|group| group.demands.unit.is_none()) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for group in apply::status(state, target).unwrap_or_default() {
        let Some(unit) = group.unit.as_ref().filter(|unit| unit.runs || !unit.instances.is_empty()) else {
            continue;
        };
        for drift in &group.drift {
            if let Drift::Changed { file, requested, actual: Some(actual) } = drift {
                // of a template, one of its units
                let of = file.parent().and_then(|group| group.file_name()?.to_str()).unwrap_or(&unit.name);
                let shows = hint::files(of);
                let reason =
                    format!("systemd has another value for {of} than the layout; {shows} shows its files");
                all.push(Difference {
                    group: group.group.clone(),
                    file: file.display().to_string(),
                    requested: requested.clone(),
                    actual: actual.clone(),
                    reason,
                });
            }
        }
    }
    all
}

/// The lock for changes; while it waits, it names the process that has it.
pub(super) fn locked(state: &State) -> Result<Lock, Failure> {
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
pub(super) fn until_interrupted() -> Result<Running, Failure> {
    Ok(Running::stopped_by(stop_on_signals()?))
}

/// Writes single settings as a generation of their own. Where none can be recorded it says so and writes them all the same.
pub fn set(
    host: &Host,
    requests: &[SettingRequest],
    what: String,
    args: &args::Set,
) -> Result<Vec<apply::Change>, Failure> {
    let state = match State::open(directory(&args.state)) {
        Ok(state) => state,
        Err(failure) => {
            expected(&history_of(&args.state), args.expected)?;
            output::warning(&format!(
                "{failure}: the change is not in the history, and no undo takes it back"
            ));
            return Ok(apply::set(host, requests)?);
        }
    };
    let lock = locked(&state)?;
    let running = until_interrupted()?;
    let target = Target { host, system: &running };
    recovered(&lock, target)?;
    expected(lock.state(), args.expected)?;
    let meta = Meta { by: By::caller(), what, ..Meta::default() };
    Ok(apply::set_recorded(&lock, target, requests, &meta)?)
}

/// The lock for changes, where this user may have it, for a single write, which is no generation: none comes before it.
pub fn unchanged(args: &args::Set) -> Result<Option<Lock>, Failure> {
    if args.expected.expect_generation.is_none() {
        return Ok(None);
    }
    let lock = State::open(directory(&args.state)).ok().map(|state| locked(&state)).transpose()?;
    expected(&history_of(&args.state), args.expected)?;
    Ok(lock)
}

/// Refuses a change that was decided on after another generation than the newest.
fn expected(state: &State, args: args::Expected) -> Result<(), Failure> {
    let Some(expected) = args.expect_generation else { return Ok(()) };
    let newest = apply::newest(state)?;
    if newest == expected {
        return Ok(());
    }
    let message = format!("the newest generation is {newest} by now, not {expected}; nothing was changed");
    let failure = Failure::new(message).hint("ringfence history shows what came meanwhile");
    Err(Failure { newest: Some(newest), ..failure })
}

/// What an earlier change left comes before anything else.
pub(super) fn recovered(lock: &Lock, target: Target<'_>) -> Result<Vec<Recovered>, Failure> {
    let recovered = apply::recover(lock, target)?;
    recovered.iter().for_each(|recovered| output::warning(&recovered.to_string()));
    Ok(recovered)
}

/// `deadline`: the seconds after which it is undone; `nothing`: what is said where no step was done.
pub(super) fn print(
    outcome: &Outcome,
    deadline: Option<(u64, &Again)>,
    nothing: &str,
) -> Result<(), Failure> {
    for difference in &outcome.differences {
        let Difference { file, requested, actual, reason, .. } = difference;
        output::warning(&format!("{file}: {requested} was written, the kernel has {actual}: {reason}"));
    }
    for thread in &outcome.unmoved {
        output::warning(&format!(
            "kernel thread {} ({}) stays on CPUs {}",
            thread.thread, thread.comm, thread.cpus
        ));
    }
    for left in outcome.left.iter().chain(&outcome.replaced) {
        output::warning(left);
    }
    for Difference { file, requested, actual, reason, .. } in &outcome.foreign {
        output::warning(&format!(
            "{file}: {actual} is back, as {reason}. A generation in effect applied {requested}, so status shows drift until the layout is applied again"
        ));
    }
    match outcome.generation {
        // what the layout decides is recorded, though it was so already
        Some(generation) if outcome.steps == 0 => {
            output::text(&format!("generation {generation}: {nothing}"))
        }
        Some(generation) => {
            let mut text = format!("generation {generation}: {} done\n", counted(outcome.steps, "step"));
            text.extend(outcome.undone.iter().map(|undone| format!("undone: generation {undone}\n")));
            if let Some((seconds, again)) = deadline {
                let confirm = again.confirm(generation);
                text += &format!("undone in {seconds} s unless you run: {confirm}\n");
            }
            output::text(&text)
        }
        None => output::text(nothing),
    }
}

pub fn confirm(args: &args::Generation, as_json: bool) -> Result<(), Failure> {
    let generation = confirmed(args)?;
    if as_json {
        output::json(&Confirmed { confirmed: generation })
    } else {
        output::text(&format!("generation {generation} is confirmed\n"))
    }
}

fn confirmed(args: &args::Generation) -> Result<u32, Failure> {
    let host = host_even_unmounted()?;
    let running = Running::new();
    let lock = locked(&state(&args.state)?)?;
    Ok(apply::confirm(&lock, Target { host: &host, system: &running }, args.generation)?)
}

/// What had to be left alone needs attention.
pub fn undo(args: &args::Undo, as_json: bool) -> Result<u8, Failure> {
    let outcome = undone(args)?;
    match outcome.generation {
        _ if as_json => output::json(&outcome)?,
        Some(_) => print(&outcome, None, "nothing to restore\n")?,
        // the recovery has undone it; what it had to leave is in its warning
        None if outcome.left.is_empty() => {
            output::text(
                "the last change is undone; to undo the one before it, run `ringfence undo` again\n",
            )?;
        }
        None => {}
    }
    Ok(if outcome.left.is_empty() { 0 } else { ATTENTION })
}

fn undone(args: &args::Undo) -> Result<Outcome, Failure> {
    let host = host_even_unmounted()?;
    let lock = locked(&state(&args.state)?)?;
    let running = until_interrupted()?;
    let target = Target { host: &host, system: &running };
    expected(lock.state(), args.expected)?;
    let recovered = recovered(&lock, target)?;
    if apply::is_undone(args.generation, &recovered) {
        let left = recovered.into_iter().flat_map(|recovered| recovered.left).collect();
        return Ok(Outcome { left, ..Outcome::nothing() });
    }
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    Ok(apply::undo(&lock, target, args.generation, &meta)?)
}

pub fn revert(args: &args::Revert) -> Result<(), Failure> {
    // it was started as /proc/self/exe, and would be `exe` in ps
    let _ = rustix::thread::set_name(c"ringfence");
    let host = host_even_unmounted()?;
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    apply::revert_unless_confirmed(&state(&args.state)?, target, args.generation, args.seconds)?;
    Ok(())
}
