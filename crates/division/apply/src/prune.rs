//! Deletes old generations that no request can name any more. Never one that an undo needs, nor one that made a directory
//! which is still there (without it the directory would be a stranger's), nor the last ones, one of which may still wait
//! for its confirmation.

use std::collections::BTreeSet;

use crate::{Failure, Lock, State, Target, made::made_what_is_there, record::Kind, state::UNDOABLE};

/// The generations in effect without the oldest that set single values, once these are twice that minimum: a script
/// that sets values every second must not let the history grow without end. Returns how many these were.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn settle(state: &State, in_effect: &mut Vec<u32>) -> Result<u32, Failure> {
    let Some(old) = in_effect.len().checked_sub(UNDOABLE).filter(|old| *old > UNDOABLE) else { return Ok(0) };
    let mut stay = Vec::new();
    for &generation in &in_effect[..old] {
        if !state.is_there(generation) || state.summary(generation)?.head.kind != Kind::Set {
            stay.push(generation);
        }
    }
    let settled = old - stay.len();
    in_effect.splice(..old, stay);
    Ok(u32::try_from(settled).unwrap_or(u32::MAX))
}

/// Generations in effect after a stored one stay with it, so that an undo can bring each of these states
/// back. Of an earlier boot nothing can be brought back.
pub(crate) fn prune(lock: &Lock, target: Target<'_>) -> Result<(), Failure> {
    let (state, boot) = (lock.state(), target.system.boot());
    let all = state.finished()?;
    let Some(old) = all.len().checked_sub(UNDOABLE).filter(|old| *old > 0) else { return Ok(()) };
    let (old, last) = all.split_at(old);
    let mut needed: BTreeSet<u32> = BTreeSet::new();
    for &generation in last {
        let summary = state.summary(generation)?;
        if summary.head.boot == boot {
            needed.extend(summary.head.in_effect.iter().chain(&summary.head.in_effect_before));
        }
    }
    let is_needed = |generation: u32| {
        needed.contains(&generation)
            || state.record(generation).is_ok_and(|record| made_what_is_there(&record, target))
    };
    old.iter().filter(|generation| !is_needed(**generation)).try_for_each(|old| lock.remove(*old))
}
