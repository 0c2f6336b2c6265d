//! Requests for a change: what was interrupted, or not confirmed in time, is taken back first.

use plan::{Action, LintKind, Plan, Step, Upkeep};

use crate::{
    Failure, Lock, Meta, Outcome, Resizes, Target,
    carry_out::{Change, carry_out},
    directories,
    entry::Before,
    frequencies::give_back,
    lasting,
    pending::refuse_while_waiting,
    record::{Head, Kind, Summary},
    recover::{is_undone, recover},
    status::layout_in_effect,
    undo::{To, undo_recovered},
};

/// Carries out a plan. Rolls back an interrupted generation first; callers that want to report that
/// call [`recover`] themselves, before they look at the machine and plan.
///
/// # Errors
/// [`Failure::RolledBack`] with what is left, if anything; all others before anything was changed.
pub fn execute(lock: &Lock, target: Target<'_>, plan: &Plan, meta: &Meta) -> Result<Outcome, Failure> {
    recover(lock, target)?;
    refuse_while_waiting(lock.state(), target)?;
    let is_write = |step: &Step| matches!(step.action, Action::Write { .. });
    let planned = plan.steps.iter().map(|step| step.before.as_deref().filter(|_| is_write(step)));
    let planned: Vec<Option<&str>> = planned.collect();
    let entry = |step: &Step| step.clone().with(Before::Nothing);
    let left = plan.lints.iter().filter(|lint| lint.kind == LintKind::Leftover);
    let left: Vec<String> = left.map(|lint| lint.message.clone()).collect();
    let change = Change {
        decided: plan.decided.iter().map(entry).collect(),
        planned,
        left: left.clone(),
        dropped: plan.dropped.clone(),
        upkeep: plan.upkeep.clone(),
        partitions: plan.partitions.iter().map(entry).collect(),
        ..Change::new(Kind::Apply, target, plan.steps.iter().map(entry).collect())
    };
    if change.entries.is_empty() && change.decided.is_empty() && is_known(lock, target, plan, meta)? {
        let layout = layout_in_effect(lock.state(), target)?.filter(|_| meta.layout);
        if let Some(layout) = layout
            && directories::accept(lock, target.host, &layout)?
        {
            Resizes::of(lock.state()).begin_again()?;
        }
        return Ok(Outcome { left, ..Outcome::nothing() });
    }
    let mut outcome = carry_out(lock, target, change, meta)?;
    outcome.left.extend(give_back(lock.state(), target));
    Ok(outcome)
}

/// Brings back the state after `generation` (0: before the first), or without one the state before the last apply
/// that is in effect. What earlier undos had to leave is tried again, unless a generation that stays in effect has to
/// do with it.
///
/// Without a generation, an apply that was interrupted or not confirmed in time is the last one: when the recovery has
/// taken it back, nothing else is undone.
///
/// # Errors
/// As [`crate::execute`]; [`Failure::NoGeneration`], [`Failure::NothingToUndo`], [`Failure::OtherBoot`].
pub fn undo(
    lock: &Lock,
    target: Target<'_>,
    generation: Option<u32>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    if is_undone(generation, &recover(lock, target)?) {
        return Ok(Outcome { left: give_back(lock.state(), target), ..Outcome::nothing() });
    }
    let undone = undo_recovered(lock, target, &generation.map_or(To::BeforeLast, To::After), meta);
    // what a killed undo left, though nothing is left to undo
    undone.inspect_err(|_| drop(give_back(lock.state(), target)))
}

/// Takes back those generations in effect that are meant. What was interrupted is rolled back first.
///
/// # Errors
/// As [`undo`]; [`Failure::NothingToUndo`] if none is meant; [`Failure::Behind`] if another one came after the first of them.
pub fn undo_those(
    lock: &Lock,
    target: Target<'_>,
    meant: &dyn Fn(&Head) -> bool,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    recover(lock, target)?;
    undo_recovered(lock, target, &To::Without(meant), meta)
}

/// Is all of it in the history already, so that a generation without a step would say nothing new?
fn is_known(lock: &Lock, target: Target<'_>, plan: &Plan, meta: &Meta) -> Result<bool, Failure> {
    let dropped = &plan.dropped;
    let before = layout_in_effect(lock.state(), target)?;
    let same = |head: &Head| head.rules == meta.rules && head.upkeep == plan.upkeep;
    let asks = meta.rules.is_some() || plan.upkeep != Upkeep::default();
    let is_new = before.as_ref().map_or(asks, |head| !same(head));
    if meta.layout && is_new {
        return Ok(false);
    }
    let last = lasting::last(lock.state(), target)?;
    let known = |last: &Summary| last.is_done() && last.head.layout && last.head.dropped == *dropped;
    Ok(dropped.is_empty() || last.as_ref().is_some_and(known))
}
