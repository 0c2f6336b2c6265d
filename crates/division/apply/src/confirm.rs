//! Changes that undo themselves unless they are confirmed in time, in case they lock out the person who made them. The
//! process that undoes is in a session and in groups of its own, so that it outlives the shell and what the change does
//! to the shell's groups. Should it die too, the daemon or the next command finds the time over ([`crate::recover`]).

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use plan::Plan;
use settings::Version;

use crate::{
    Failure, Lock, Meta, Outcome, State, Target,
    execute::execute,
    pending::{refuse_while_waiting, remaining},
    recover::{Recovery, UNCONFIRMED, recover},
    state::{command_line, failed},
};

/// How often it looks for a confirmation.
const POLL: Duration = Duration::from_millis(100);
/// How long it waits before it tries again to undo what it could not; at most, as it waits longer each time.
const RETRY: Duration = Duration::from_secs(10);
/// How long a change may take beyond its own deadline before its process counts as hung.
const HUNG: Duration = Duration::from_secs(30);

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
    // what changes nothing needs no confirmation
    let changes = !plan.steps.is_empty();
    if changes {
        start(&mut reverter(lock.state().next()?), lock.state())?;
    }
    let meta = Meta { confirm_within: changes.then_some(seconds), ..meta.clone() };
    execute(lock, target, plan, &meta)
}

/// Starts the undoing process, and waits until it is on its own.
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
/// are over; what fails is tried again until it succeeds or somebody else has done it. Call it before anything else, in
/// a process started by [`execute_unless_reverted`].
///
/// # Errors
/// [`Failure::State`] if the process that changes can't be answered: nothing was changed then.
pub fn revert_unless_confirmed(
    state: &State,
    target: Target<'_>,
    generation: u32,
    seconds: u64,
) -> Result<Verdict, Failure> {
    // refused only to the leader of a process group, which has no shell above it either
    let _ = rustix::process::setsid();
    leave_groups(target);
    let _watch = state.watch(); // without it, only what is said of this process is not known
    let answered = std::io::stdout().write_all(b"\n").and_then(|()| std::io::stdout().flush());
    answered.map_err(|error| failed("answer the process that changes", state.directory(), &error))?;
    wait_until_made(state, target, generation, seconds);
    let mut pause = POLL;
    loop {
        match step(state, target, generation) {
            Ok(Some(verdict)) => return Ok(verdict),
            Ok(None) => pause = POLL,
            Err(_) => pause = (pause * 2).min(RETRY),
        }
        std::thread::sleep(pause);
    }
}

/// To the root of every hierarchy, where this may: whatever the change does to the groups of the shell that it was
/// started from (freeze, starve, kill) must not reach the process that undoes it. Nor should the OOM killer.
fn leave_groups(target: Target<'_>) {
    let kernel = target.host.kernel();
    for at in target.host.hierarchies() {
        let base = target.host.base(at).path();
        for group in ["", base] {
            if kernel.write(at, group, "cgroup.procs", &std::process::id().to_string()).is_ok() {
                break;
            }
            // v2 takes no process where groups get controllers, but in the root
            if at.version == Version::V1 && base.is_empty() {
                break;
            }
        }
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
}

/// Waits for the process that makes the generation, which has the lock until then. One that hangs long after the
/// deadline is ended: its change is rolled back then like that of any process that died.
fn wait_until_made(state: &State, target: Target<'_>, generation: u32, seconds: u64) {
    let begun = Instant::now();
    let hung = Duration::from_secs(seconds).saturating_add(HUNG);
    loop {
        match state.lock(POLL) {
            Ok(lock) => {
                if recover(&lock, target).is_ok() {
                    return;
                }
                drop(lock);
                std::thread::sleep(RETRY.min(Duration::from_secs(1)));
            }
            Err(_) if begun.elapsed() > hung => {
                end_maker(state, generation);
                std::thread::sleep(Duration::from_secs(1));
            }
            Err(_) => {}
        }
    }
}

/// Kills the process that is making this generation.
fn end_maker(state: &State, generation: u32) {
    let Ok(record) = state.journal(generation) else { return };
    let by = &record.head.by;
    let pid = i32::try_from(by.pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid else { return };
    let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return };
    // the number may be another's by now, but not once the descriptor is open
    if command_line(by.pid).is_some_and(|command| command == by.command) {
        let _ = rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL);
    }
}

/// One look: `None` while there is time.
fn step(state: &State, target: Target<'_>, generation: u32) -> Result<Option<Verdict>, Failure> {
    if let Some(verdict) = verdict(state, generation)? {
        return Ok(Some(verdict));
    }
    let Some(last) = state.last_done()? else { return Ok(None) };
    match remaining(state, &last, target) {
        Some(left) if !left.is_zero() => return Ok(None),
        Some(_) => {}
        None => return Ok(Some(Verdict::NotInEffect)),
    }
    let lock = state.lock(RETRY)?;
    if let Some(verdict) = verdict(state, generation)? {
        return Ok(Some(verdict));
    }
    // another process that began to undo it may have been interrupted
    let recovered = recover(&lock, target)?;
    let is_reverted = recovered.iter().any(|recovered| recovered.how == Recovery::Unconfirmed);
    Ok(is_reverted.then_some(Verdict::Reverted))
}

fn verdict(state: &State, generation: u32) -> Result<Option<Verdict>, Failure> {
    if state.is_confirmed(generation) {
        return Ok(Some(Verdict::Confirmed));
    }
    if state.last_done()?.is_some_and(|last| last.head.generation == generation) {
        return Ok(None);
    }
    // what could not be recovered yet may still be in effect
    Ok((state.unfinished()? != Some(generation)).then_some(Verdict::NotInEffect))
}

/// Keeps a generation; without a number the one that waits. Returns which.
///
/// # Errors
/// [`Failure::NotWaiting`], [`Failure::NoGeneration`].
pub fn confirm(lock: &Lock, target: Target<'_>, generation: Option<u32>) -> Result<u32, Failure> {
    let last = lock.state().last_done()?;
    let number = last.as_ref().map_or(0, |last| last.head.generation);
    let all = lock.state().finished()?.last().copied().unwrap_or(0);
    let interrupted = lock.state().unfinished()?.filter(|found| generation.unwrap_or(*found) == *found);
    if let Some(generation) = interrupted {
        let why = "it was interrupted, and the next apply or undo rolls it back";
        return Err(Failure::NotWaiting { generation, why, late: false });
    }
    let generation = generation.unwrap_or(number);
    let refused = |why| Err(Failure::NotWaiting { generation, why, late: false });
    let too_late = |why| Err(Failure::NotWaiting { generation, why, late: true });
    let Some(last) = last.filter(|_| generation <= all && generation > 0) else {
        return Err(Failure::NoGeneration { requested: generation, last: all });
    };
    if lock.state().is_confirmed(generation) {
        return refused("it was confirmed before");
    }
    if last.head.what.starts_with(UNCONFIRMED) {
        if generation == number {
            return too_late("it undid a change that was not confirmed in time");
        }
        if last.head.in_effect_before.contains(&generation) && !last.head.in_effect.contains(&generation) {
            return too_late("it was not confirmed in time, and is undone");
        }
    }
    if generation != number {
        return refused("it is not the last one");
    }
    let is_lost = last.head.confirm_within.is_some() && last.head.boot != target.system.boot();
    match remaining(lock.state(), &last, target) {
        None if is_lost => too_late("the machine was booted since, and nothing of it is left"),
        None => refused("it needs no confirmation"),
        Some(Duration::ZERO) => too_late("its time is over"),
        Some(_) => {
            // or a boot would go on without what is confirmed
            target.system.unit_files().settle().map_err(|error| Failure::Refused(error.into()))?;
            lock.write_confirmation(generation).map(|()| generation)
        }
    }
}
