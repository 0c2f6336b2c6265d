//! The change that waits for its confirmation.

use std::{fmt, time::Duration};

use crate::{
    Again, Failure, State, Target, lasting,
    record::{Head, Summary},
};

/// A generation that waits for its confirmation.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pending {
    /// Which.
    pub generation: u32,
    /// How long it still waits; zero once the time is over and it is still in effect.
    #[serde(rename = "remaining_ms", serialize_with = "millis", deserialize_with = "of_millis")]
    pub remaining: Duration,
    /// Is the time over? Then the process that should have undone it failed or was killed.
    pub overdue: bool,
    /// No process waits to undo it, neither its own nor a daemon: it stays until the next command that changes something.
    pub unwatched: bool,
    /// The machine was booted since, and started the units without it.
    #[serde(skip)]
    pub is_kept_out: bool,
    /// What a user does about it.
    #[serde(skip)]
    pub again: Again,
}

fn millis<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn of_millis<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    <u64 as serde::Deserialize>::deserialize(from).map(Duration::from_millis)
}

/// What will happen to it.
impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.generation;
        let (confirm, undo) = (self.again.confirm(generation), self.again.undo());
        if self.is_kept_out {
            return write!(
                f,
                "generation {generation} was not confirmed before the machine was booted, and no unit was started with it: `{undo}` takes its files back"
            );
        }
        if self.overdue {
            return write!(
                f,
                "generation {generation} was not confirmed in time and is still in effect: run `{undo}`"
            );
        }
        let seconds = self.remaining.as_secs().saturating_add(1);
        if self.unwatched {
            return write!(
                f,
                "generation {generation} is not confirmed, and no process is left that would undo it in {seconds} s: it stays in effect until the next apply or undo, or until ringfenced starts. To undo it now: {undo}; to confirm it: {confirm}"
            );
        }
        write!(f, "generation {generation} will be undone in {seconds} s unless you run: {confirm}")
    }
}

/// The generation that waits for its confirmation, if there is one.
///
/// # Errors
/// [`Failure::State`].
pub fn pending(state: &State, target: Target<'_>) -> Result<Option<Pending>, Failure> {
    let Some(last) = state.last_done()? else { return Ok(None) };
    let pending = |remaining: Duration| Pending {
        generation: last.head.generation,
        remaining,
        overdue: remaining.is_zero(),
        unwatched: state.is_watched() == Some(false),
        is_kept_out: !target.system.unit_files().kept_out().is_empty(),
        again: Again::of_history(state),
    };
    Ok(remaining(state, &last, target).map(pending))
}

/// Nothing is built upon what may go.
pub(crate) fn refuse_while_waiting(state: &State, target: Target<'_>) -> Result<(), Failure> {
    let Some(last) = state.last_done()? else { return Ok(()) };
    match remaining(state, &last, target) {
        Some(left) => {
            let (generation, again) = (last.head.generation, Again::of_history(state));
            let hint = format!("{}, or {}", again.confirm(generation), again.undo());
            Err(Failure::Unconfirmed { generation, seconds: left.as_secs().saturating_add(1), hint })
        }
        None => Ok(()),
    }
}

/// Lets units' files hold over boots unless they wait for a confirmation. What can't be done of that, in words.
pub(crate) fn settle_files(state: &State, target: Target<'_>) -> Option<String> {
    let waits = |last: Summary| remaining(state, &last, target).is_some();
    if state.last_done().is_ok_and(|last| last.is_some_and(waits)) {
        return None;
    }
    target.system.unit_files().settle().err().map(|error| error.to_string())
}

/// How long it can still be confirmed; `None` if it does not wait. Counted by the clock that runs from boot on: the
/// wall clock may be set to anything.
pub(crate) fn remaining(state: &State, last: &Summary, target: Target<'_>) -> Option<Duration> {
    let Head { confirm_within, boot, generation, .. } = &last.head;
    let within = Duration::from_secs((*confirm_within)?);
    let done = &last.result;
    if state.is_confirmed(*generation) {
        return None;
    }
    if *boot != target.system.boot() {
        // its time is over; drop-in files of units are all that is left of it
        let left = lasting::last(state, target).ok()??;
        return left.in_effect().contains(generation).then_some(Duration::ZERO);
    }
    let up = target.system.uptime();
    let passed = match done.uptime {
        Some(uptime) if uptime <= up => Duration::from_millis(up - uptime),
        // recorded by a version that had the wall clock only, or in a time namespace that is ahead of this one
        _ => Duration::from_secs(target.system.now().saturating_sub(done.at)),
    };
    Some(within.saturating_sub(passed))
}
