//! Changes that undo themselves unless they are confirmed in time, for the case that they lock out whoever made them.
//! The process that undoes is of a session of its own, so that it outlives the shell; should it die too, the next
//! command finds the time over and undoes ([`crate::recover`]).

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use plan::Plan;

use crate::{
    Failure, Lock, Meta, Outcome, State, Target,
    execute::execute,
    record::{By, Summary},
    recover::{Recovered, recover},
    state::failed,
    undo::undo_recovered,
};

/// How often it is looked for a confirmation.
const POLL: Duration = Duration::from_millis(100);
/// How long the undoing process waits for others' changes to end.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How a waiting generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was confirmed, and stays.
    Confirmed,
    /// It was not confirmed in time, and is undone.
    Reverted,
    /// It failed, or somebody undid it before.
    NotInEffect,
}

/// Carries out a plan that undoes itself unless it is confirmed within `seconds`. `reverter` makes the command that
/// runs [`revert_unless_confirmed`] for a generation; it is started before anything is changed, so that a change that
/// kills this process is undone too.
///
/// # Errors
/// As [`execute`]; [`Failure::State`] if the command can't be started: nothing was changed then.
pub fn execute_unless_reverted(
    lock: &Lock,
    target: Target<'_>,
    plan: &Plan,
    meta: &Meta,
    seconds: u64,
    reverter: &dyn Fn(u32) -> Command,
) -> Result<Outcome, Failure> {
    recover(lock, target)?;
    refuse_while_waiting(lock.state(), target)?;
    if !plan.steps.is_empty() {
        let next = lock.state().last()?.map_or(0, |last| last.head.generation) + 1;
        start(&mut reverter(next), lock.state())?;
    }
    let meta = Meta { confirm_within: Some(seconds), ..meta.clone() };
    execute(lock, target, plan, &meta)
}

/// Starts the undoing process, and waits until it is of its own session.
fn start(command: &mut Command, state: &State) -> Result<(), Failure> {
    let could_not = |error| failed("start the process that undoes in", state.directory(), &error);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(could_not)?;
    let mut ready = [0];
    let read = child.stdout.take().map_or(Ok(()), |mut stdout| stdout.read_exact(&mut ready));
    // it is not waited for: it outlives this process, and init reaps it
    read.map_err(could_not)
}

/// The undoing process: waits for the generation to be made, then for its confirmation, and undoes it when `seconds`
/// are over. Call it before anything else, in a process started by [`execute_unless_reverted`].
///
/// # Errors
/// As [`crate::undo`].
pub fn revert_unless_confirmed(
    state: &State,
    target: Target<'_>,
    generation: u32,
    seconds: u64,
) -> Result<Verdict, Failure> {
    // refused only to the leader of a process group, which has no shell above it either
    let _ = rustix::process::setsid();
    let told = std::io::stdout().write_all(b"\n").and_then(|()| std::io::stdout().flush());
    told.map_err(|error| failed("answer the process that changes", state.directory(), &error))?;
    {
        // held by whoever makes the generation; free when he is done, or dead
        let lock = state.lock(PATIENCE)?;
        let recovered = recover(&lock, target)?;
        // making it took longer than it was to wait
        let overdue = recovered.iter().any(|recovered| recovered.generation == generation);
        if overdue && state.summary(generation)?.is_done() {
            return Ok(Verdict::Reverted);
        }
    }
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < deadline {
        if let Some(verdict) = verdict(state, generation)? {
            return Ok(verdict);
        }
        std::thread::sleep(POLL.min(deadline.saturating_duration_since(Instant::now())));
    }
    let lock = state.lock(PATIENCE)?;
    if let Some(verdict) = verdict(state, generation)? {
        return Ok(verdict);
    }
    undo_recovered(&lock, target, None, &meta(seconds))?;
    Ok(Verdict::Reverted)
}

fn verdict(state: &State, generation: u32) -> Result<Option<Verdict>, Failure> {
    if state.is_confirmed(generation) {
        return Ok(Some(Verdict::Confirmed));
    }
    let last = state.last()?;
    let waits = last.is_some_and(|last| last.head.generation == generation && last.is_done());
    Ok((!waits).then_some(Verdict::NotInEffect))
}

/// Lets a generation stay; without a number the one that waits. Returns which.
///
/// # Errors
/// [`Failure::NotWaiting`], [`Failure::NoGeneration`].
pub fn confirm(lock: &Lock, target: Target<'_>, generation: Option<u32>) -> Result<u32, Failure> {
    let last = lock.state().last()?;
    let number = last.as_ref().map_or(0, |last| last.head.generation);
    let generation = generation.unwrap_or(number);
    let refused = |why| Err(Failure::NotWaiting { generation, why });
    let Some(last) = last.filter(|_| generation <= number && generation > 0) else {
        return Err(Failure::NoGeneration { asked: generation, last: number });
    };
    if lock.state().is_confirmed(generation) {
        return refused("it was confirmed before");
    }
    if generation != number {
        return refused("it is not the last one");
    }
    match remaining(lock.state(), &last, target) {
        None => refused("it needs no confirmation"),
        Some(0) => refused("its time is over"),
        Some(_) => lock.write_confirmation(generation).map(|()| generation),
    }
}

/// Nothing is built upon what may go.
pub(crate) fn refuse_while_waiting(state: &State, target: Target<'_>) -> Result<(), Failure> {
    let Some(last) = state.last()? else { return Ok(()) };
    match remaining(state, &last, target) {
        Some(seconds) => Err(Failure::Unconfirmed { generation: last.head.generation, seconds }),
        None => Ok(()),
    }
}

/// Undoes what was not confirmed in time, where the process that should have done so is gone.
pub(crate) fn undo_overdue(lock: &Lock, target: Target<'_>) -> Result<Option<Recovered>, Failure> {
    let Some(last) = lock.state().last()? else { return Ok(None) };
    let (Some(0), Some(seconds)) = (remaining(lock.state(), &last, target), last.head.confirm_within) else {
        return Ok(None);
    };
    let outcome = undo_recovered(lock, target, None, &meta(seconds))?;
    let generation = last.head.generation;
    Ok(Some(Recovered { generation, ending: crate::record::Ending::RolledBack, left: outcome.left }))
}

/// Seconds left to confirm it; `None` if it does not wait.
fn remaining(state: &State, last: &Summary, target: Target<'_>) -> Option<u64> {
    let within = last.head.confirm_within?;
    let done = last.result.as_ref().filter(|_| last.is_done())?;
    let waits = last.head.boot == target.system.boot() && !state.is_confirmed(last.head.generation);
    waits.then(|| (done.at + within).saturating_sub(target.system.now()))
}

fn meta(seconds: u64) -> Meta {
    Meta { by: By::caller(), what: format!("not confirmed within {seconds} s"), confirm_within: None }
}
