//! What to do with a generation whose process died: put back what it had done. Called before every change, so that no
//! plan is made from a machine halfway between two states. Also takes back what was not confirmed in time.

use crate::{
    Failure, Lock, Target, confirm,
    journal::Journal,
    perform::Performer,
    record::{Ending, Result as End},
    rollback::roll_back,
};

/// A generation that was brought to its end.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Recovered {
    /// Which.
    pub generation: u32,
    /// How it ended.
    pub ending: Ending,
    /// What could not be put back, each with the reason.
    pub left: Vec<String>,
}

/// Brings what was broken off to its end, and undoes what was not confirmed in time.
///
/// # Errors
/// [`Failure::State`].
pub fn recover(lock: &Lock, target: Target<'_>) -> Result<Vec<Recovered>, Failure> {
    let mut recovered = Vec::new();
    recovered.extend(unfinished(lock, target)?);
    recovered.extend(confirm::undo_overdue(lock, target)?);
    Ok(recovered)
}

fn unfinished(lock: &Lock, target: Target<'_>) -> Result<Option<Recovered>, Failure> {
    let Some(generation) = lock.state().unfinished()? else { return Ok(None) };
    let Some(record) = lock.state().journal(generation)? else {
        lock.discard(generation)?; // broken off within its first line: nobody was told its number
        return Ok(None);
    };
    let mut journal = Journal::resume(lock, &record)?;
    if let Some(result) = record.result {
        journal.finish(result.clone())?;
        return Ok(Some(Recovered { generation, ending: result.ending, left: result.left }));
    }
    let (ending, left) = if record.head.boot != target.system.boot() {
        (Ending::LostAtBoot, Vec::new())
    } else if !record.is_whole() || record.begun.is_none() {
        (Ending::NotBegun, Vec::new())
    } else {
        let mut performer = Performer::of(target, &record.head.hierarchies);
        // hierarchies that its own steps mounted are counted after those that were there
        performer.count_mounted(&record.entries);
        performer.affinities = record.affinities;
        // what is taken back already is not done again: that would lead through states that never were
        let last = record.back.or(record.begun);
        let left = roll_back(&mut performer, &mut journal, &record.entries, last);
        (if left.is_empty() { Ending::RolledBack } else { Ending::Partly }, left)
    };
    let error = Some(format!("process {} ended before it was done", record.head.by.pid));
    let step = record.begun;
    journal.finish(End { ending, at: target.system.now(), error, step, left: left.clone() })?;
    Ok(Some(Recovered { generation, ending, left }))
}
