//! Deletes old generations that no request can name any more. Never one that an undo needs, nor one that made a directory
//! which is still there (without it the directory would be a stranger's), nor the last ones, one of which may still wait
//! for its confirmation. One that can't be read stays: what it made is not known.

use std::collections::BTreeSet;

use crate::{
    Failure, Lock, State, Target,
    join::join,
    made::made_what_is_there,
    record::Kind,
    state::{in_place, is_replaced},
};

/// The generations in effect without the oldest that set single values, once these are twice that minimum: a script
/// that sets values every second must not let the history grow without end. Returns how many these were.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn settle(state: &State, in_effect: &mut Vec<u32>) -> Result<u32, Failure> {
    let Some(old) = old(state, in_effect, state.generations_undoable()) else { return Ok(0) };
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

/// How many of these are more than can be undone one by one, once they are more by this number.
fn old(state: &State, in_effect: &[u32], more: usize) -> Option<usize> {
    in_effect.len().checked_sub(state.generations_undoable()).filter(|old| *old > more)
}

/// Generations in effect after a stored one stay with it, so that an undo can bring each of these states
/// back. Of an earlier boot nothing can be brought back.
pub(crate) fn prune(lock: &Lock, target: Target<'_>) -> Result<(), Failure> {
    let (state, boot) = (lock.state(), target.system.boot());
    lock.remove_unwritten()?;
    let all = state.finished()?;
    let Some(old) = all.len().checked_sub(state.generations_undoable()).filter(|old| *old > 0) else {
        return Ok(());
    };
    let (old, last) = all.split_at(old);
    let joined = state.joined()?;
    let mut lists: BTreeSet<Vec<u32>> = BTreeSet::new();
    for &generation in last {
        let head = state.summary(generation)?.head;
        if head.boot == boot {
            for mut list in [head.in_effect, head.in_effect_before] {
                in_place(&joined, &mut list);
                lists.insert(list);
            }
        }
    }
    let stayed = state.last()?.map(|last| last.stayed()).unwrap_or_default();
    let stayed = stayed.iter().map(|stayed| stayed.generation);
    let needed: BTreeSet<u32> = lists.iter().flatten().copied().chain(stayed).collect();
    let is_needed = |generation: u32| {
        needed.contains(&generation)
            // who reads the history at this moment knows by now which generations are joined
            || !is_replaced(&joined, generation)
                && state.record(generation).map_or(true, |record| made_what_is_there(&record, target))
    };
    old.iter().filter(|generation| !is_needed(**generation)).try_for_each(|old| lock.remove(*old))?;
    join_old(lock, &lists)
}

/// Puts one generation in the place of the oldest layouts in effect, so that the history does not grow with each layout that is
/// applied: they can be undone together. `lists`: the generations in effect after each one that can be undone.
fn join_old(lock: &Lock, lists: &BTreeSet<Vec<u32>>) -> Result<(), Failure> {
    let state = lock.state();
    let Some(last) = state.last()? else { return Ok(()) };
    let in_effect = last.in_effect();
    // each command reads all that are in effect; what can't be joined is not tried again each time
    let more = state.generations_undoable() / 10;
    let is_time = more == 0 || in_effect.len() % more == 1 % more;
    let Some(old) = old(state, in_effect, more).filter(|_| is_time) else { return Ok(()) };
    let mut runs: Vec<Vec<u32>> = vec![Vec::new()];
    for &generation in &in_effect[..old] {
        let is_layout = state.is_there(generation) && state.summary(generation)?.head.layout;
        match runs.last_mut() {
            Some(run) if is_layout => run.push(generation),
            _ => runs.push(Vec::new()),
        }
    }
    for run in runs.iter().filter(|run| run.len() > 1) {
        // no state that can be brought back may have a part of them
        let is_whole = |list: &Vec<u32>| {
            run.iter().all(|generation| list.contains(generation))
                || !run.iter().any(|generation| list.contains(generation))
        };
        if !lists.iter().all(is_whole) {
            continue;
        }
        let records = run.iter().map(|generation| state.record(*generation));
        if let Some(record) = join(&records.collect::<Result<Vec<_>, _>>()?) {
            lock.join(&record)?;
        }
    }
    Ok(())
}
