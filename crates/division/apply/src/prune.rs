//! Takes old generations away that nobody can ask for any more. Never one that an undo needs, nor the last ones, one of
//! which may still wait for its confirmation.

use std::collections::BTreeSet;

use crate::{Failure, Lock};

/// How many generations are kept at least; older ones go unless an undo to one of these needs them.
pub const KEPT: usize = 100;

/// What is in effect after a generation that is kept is kept with it, so that an undo can bring each of these states
/// back. `boot`: of an earlier one nothing can be brought back.
pub(crate) fn prune(lock: &Lock, boot: &str) -> Result<(), Failure> {
    let state = lock.state();
    let all = state.finished()?;
    let Some(old) = all.len().checked_sub(KEPT).filter(|old| *old > 0) else { return Ok(()) };
    let (old, last) = all.split_at(old);
    let mut needed: BTreeSet<u32> = BTreeSet::new();
    for &generation in last {
        let kept = state.summary(generation)?;
        if kept.head.boot == boot {
            needed.extend(kept.head.in_effect.iter().chain(&kept.head.in_effect_before));
        }
    }
    old.iter().filter(|generation| !needed.contains(generation)).try_for_each(|old| lock.remove(*old))
}
