//! Carries a plan out wholly or not at all: looks at what is there, writes the journal, does the steps, and on a
//! failure puts back what was done. Decides nothing: the steps and their order come in.

use std::collections::{BTreeSet, HashMap};

use kernel::Hierarchy;
use plan::{Action, Plan};

use crate::{
    Error, Failure, Lock, Target,
    before::Looking,
    confirm,
    journal::Journal,
    perform::{Performer, name, partition_holds, unwritable},
    prune::prune,
    record::{Act, Before, By, Ending, Entry, FORMAT, Head, Kind, Result as End, Spot},
    recover::recover,
    rollback::roll_back,
    stayed::Stayed,
};

/// Who asks for a change, and for which.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// Who.
    pub by: By,
    /// In words, for the history: `layout /etc/ringfence/layout.toml`.
    pub what: String,
    /// It is to be undone unless it is confirmed within so many seconds ([`crate::confirm`]).
    pub confirm_within: Option<u64>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Its number in the history; `None` if there was nothing to do.
    pub generation: Option<u32>,
    /// How many steps were done.
    pub steps: usize,
    /// Where the kernel holds something else than was asked for.
    pub differences: Vec<Difference>,
    /// Threads of the kernel that stay on CPUs which another group has for itself.
    pub unmoved: Vec<Unmoved>,
    /// What was left alone by an undo, each with the reason.
    pub left: Vec<String>,
}

/// A file that holds something else than was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// The group.
    pub group: String,
    /// The file's path.
    pub file: String,
    /// What was written.
    pub asked: String,
    /// What it holds.
    pub held: String,
    /// Why.
    pub reason: String,
}

/// A thread that can't leave its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Unmoved {
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub comm: String,
    /// The CPUs it may run on.
    pub cpus: units::CpuSet,
}

impl By {
    /// The caller.
    pub fn caller() -> By {
        let known = |variable: &str| std::env::var(variable).ok().filter(|user| !user.is_empty());
        let number =
            || std::fs::read_to_string("/proc/self/loginuid").ok().filter(|id| id.trim() != "4294967295");
        let login = known("SUDO_USER").or_else(|| known("LOGNAME")).or_else(number);
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        By {
            uid: rustix::process::geteuid().as_raw(),
            login: login.map(|login| login.trim().to_owned()),
            pid: std::process::id(),
            command: words.join(" "),
        }
    }
}

/// Carries out a plan. A generation that was broken off before is put back first; callers that want to tell of that
/// call [`recover`] themselves, before they look at the machine and plan.
///
/// # Errors
/// [`Failure::RolledBack`] with what is left, if anything; all others before anything was changed.
pub fn execute(lock: &Lock, target: Target<'_>, plan: &Plan, meta: &Meta) -> Result<Outcome, Failure> {
    recover(lock, target)?;
    confirm::refuse_while_waiting(lock.state(), target)?;
    let planned = plan.steps.iter().map(|step| match &step.action {
        Action::Write { before, .. } => before.as_deref(),
        _ => None,
    });
    let planned: Vec<Option<&str>> = planned.collect();
    let entries = plan.steps.iter().map(|step| Entry {
        group: step.group.to_string(),
        act: act(&step.action),
        why: step.why.clone(),
        before: Default::default(),
    });
    let change = Change {
        kind: Kind::Apply,
        entries: entries.collect(),
        planned,
        hierarchies: target.host.hierarchies().iter().cloned().map(Some).collect(),
        in_effect: None,
        left: Vec::new(),
        stayed: None,
    };
    if change.entries.is_empty() {
        let (differences, unmoved, left) = Default::default();
        return Ok(Outcome { generation: None, steps: 0, differences, unmoved, left });
    }
    carry_out(lock, target, change, meta)
}

/// A list of steps on its way to become a generation.
pub(crate) struct Change<'p> {
    pub kind: Kind,
    pub entries: Vec<Entry>,
    /// For each step what its file held when it was planned, if that is known.
    pub planned: Vec<Option<&'p str>>,
    pub hierarchies: Vec<Option<Hierarchy>>,
    /// The generations in effect afterwards; `None`: this one is added.
    pub in_effect: Option<Vec<u32>>,
    /// What is left alone.
    pub left: Vec<String>,
    /// What undos have left afterwards; `None`: what they had left before, as far as it is there.
    pub stayed: Option<Vec<Stayed>>,
}

pub(crate) fn carry_out(
    lock: &Lock,
    target: Target<'_>,
    mut change: Change<'_>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    refuse_foreign(target, &change.entries)?;
    let spots = Spot::of(&change.hierarchies.iter().flatten().cloned().collect::<Vec<_>>());
    let mut performer = Performer::new(target, std::mem::take(&mut change.hierarchies));
    let mut looking = Looking::new(&performer);
    for (entry, planned) in
        change.entries.iter_mut().zip(change.planned.iter().chain(std::iter::repeat(&None)))
    {
        looking.look(entry, *planned)?;
    }
    performer.heirs = heirs(&change.entries);
    let head = head(lock, target, &change, meta, spots)?;
    let mut journal = Journal::start(lock, &head, &change.entries)?;
    let (generation, steps) = (head.generation, change.entries.len());
    let mut outcome = Outcome {
        generation: Some(generation),
        steps,
        differences: Vec::new(),
        unmoved: Vec::new(),
        left: change.left,
    };
    let done = do_all(&mut performer, &mut change.entries, &mut journal, &mut outcome);
    let Err((step, error)) = done else {
        let left = outcome.left.clone();
        let end = End { ending: Ending::Done, at: target.system.now(), error: None, step: None, left };
        journal.finish(end)?;
        // an old generation that stays does no harm: the next change tries again
        let _ = prune(lock, &target.system.boot());
        return Ok(outcome);
    };
    // a step that was refused as a whole did nothing; all others may have done a part
    let whole = error == Error::Interrupted
        || matches!(
            change.entries[step].act,
            Act::CreateGroup { .. } | Act::RemoveGroup { .. } | Act::Mount { .. }
        );
    let last = if whole { step.checked_sub(1) } else { Some(step) };
    let left = roll_back(&mut performer, &mut journal, &change.entries, last);
    let ending = if left.is_empty() { Ending::RolledBack } else { Ending::Partly };
    let at = target.system.now();
    journal.finish(End {
        ending,
        at,
        error: Some(error.to_string()),
        step: Some(step),
        left: left.clone(),
    })?;
    Err(Failure::RolledBack { generation, step, steps, error: Box::new(error), left })
}

/// The error comes with its step.
fn do_all(
    performer: &mut Performer<'_>,
    entries: &mut [Entry],
    journal: &mut Journal<'_>,
    outcome: &mut Outcome,
) -> Result<(), (usize, Error)> {
    for (step, entry) in entries.iter_mut().enumerate() {
        if performer.system().is_interrupted() {
            return Err((step, Error::Interrupted));
        }
        journal.begin(step).map_err(|error| (step, unwritable(error)))?;
        if let (Before::Absent, Act::Write { place, file, .. }) = (&entry.before, &entry.act)
            && let Some(was) = performer.content(place, file)
        {
            journal.was(step, &was).map_err(|error| (step, unwritable(error)))?;
            entry.was(was);
        }
        let done = performer.perform(step, entry, journal).map_err(|error| (step, error))?;
        outcome.differences.extend(done.difference);
        outcome.unmoved.extend(done.unmoved);
    }
    // a later step may have taken from a partition what it needs
    for (step, entry) in entries.iter().enumerate() {
        if let Act::Write { place, file, .. } = &entry.act
            && file == "cpuset.cpus.partition"
            && let Some(held) = performer.content(place, file)
        {
            partition_holds(entry, file, &held).map_err(|error| (step, error))?;
        }
    }
    Ok(())
}

fn refuse_foreign(target: Target<'_>, entries: &[Entry]) -> Result<(), Failure> {
    let groups: BTreeSet<&str> = entries.iter().map(|entry| entry.group.as_str()).collect();
    for group in groups {
        target.host.refuse_foreign(&name(group), None).map_err(Error::from)?;
    }
    Ok(())
}

/// To whom the groups that are made go at once.
fn heirs(entries: &[Entry]) -> HashMap<plan::Place, plan::Ownership> {
    let given = entries.iter().filter_map(|entry| match &entry.act {
        Act::SetOwnership { place, access } => Some((place.clone(), *access)),
        _ => None,
    });
    given.collect()
}

fn head(
    lock: &Lock,
    target: Target<'_>,
    change: &Change<'_>,
    meta: &Meta,
    hierarchies: Vec<Spot>,
) -> Result<Head, Failure> {
    let last = lock.state().last()?;
    let generation = last.as_ref().map_or(0, |last| last.head.generation) + 1;
    let boot = target.system.boot();
    let here = last.filter(|last| last.head.boot == boot);
    let stayed_before = here.as_ref().map(|last| last.stayed().to_vec()).unwrap_or_default();
    let before = here.map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let still =
        || stayed_before.iter().filter(|stayed| stayed.here(target.host).is_some()).cloned().collect();
    let stayed = change.stayed.clone().unwrap_or_else(still);
    let after = change.in_effect.clone();
    Ok(Head {
        format: FORMAT,
        generation,
        kind: change.kind,
        by: meta.by.clone(),
        at: target.system.now(),
        what: meta.what.clone(),
        boot,
        hierarchies,
        confirm_within: meta.confirm_within,
        in_effect: after.unwrap_or_else(|| before.iter().copied().chain([generation]).collect()),
        in_effect_before: before,
        stayed,
        stayed_before,
        steps: change.entries.len(),
    })
}

fn act(action: &Action) -> Act {
    match action.clone() {
        Action::Mount { controllers, name, path } => {
            let words = controllers.iter().filter_map(|controller| controller.name(settings::Version::V1));
            Act::Mount { controllers: words.map(str::to_owned).collect(), name, path: path.into() }
        }
        Action::CreateGroup { place } => Act::CreateGroup { place },
        Action::EnableControllers { place, names } => Act::EnableControllers { place, names },
        Action::Write { place, file, text, .. } => Act::Write { place, file, text },
        Action::SetDevices { place, setting, rule } => Act::SetDevices { place, setting, rule },
        Action::SetOwnership { place, access } => Act::SetOwnership { place, access },
        Action::MoveTasksAway { place, cpus, to } => Act::MoveTasksAway { place, cpus, to },
    }
}
