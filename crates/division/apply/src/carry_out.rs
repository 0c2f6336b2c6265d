//! Carries steps out wholly or not at all: looks at the current state, writes the journal, has the steps done, and on a
//! failure rolled back. Decides nothing: the steps and their order come in.

use std::collections::{BTreeSet, HashMap};

use kernel::{GroupName, Hierarchy};
use plan::{Action, Dropped, Upkeep, is_reserve};
use topology::facts::UNIT_SLICE;
use units::group_path;

use crate::{
    Error, Failure, Lock, Meta, Outcome, Target,
    attempt::{Attempt, Stop, narrowed},
    before::Looking,
    directories,
    entry::{Before, Entry},
    journal::Journal,
    knob,
    lasting::{self, Known},
    partitions,
    pending::settle_files,
    performer::Performer,
    prune::{prune, settle},
    record::{Ending, FORMAT, Head, Kind, Result as End, Summary},
    remainder::Remainder,
    rollback::Remains,
    spot::Spot,
};

/// A list of steps on its way to become a generation.
pub(crate) struct Change<'p> {
    pub kind: Kind,
    pub entries: Vec<Entry>,
    /// What the layout decides and no step does.
    pub decided: Vec<Entry>,
    /// For each step the content of its file at planning time, if known.
    pub planned: Vec<Option<&'p str>>,
    pub hierarchies: Vec<Option<Hierarchy>>,
    /// The generations in effect afterwards; `None`: this one is added.
    pub in_effect: Option<Vec<u32>>,
    /// What is left alone.
    pub left: Vec<String>,
    /// Values of others that it writes over.
    pub replaced: Vec<String>,
    /// What undos have left afterwards; `None`: what they had left before, as far as it still exists.
    pub stayed: Option<Vec<Remainder>>,
    /// Of an undo, the step that each entry takes back: what the kernel refuses is left for the next undo.
    pub sources: Vec<Option<Remainder>>,
    /// What earlier layouts decided about and this one does not.
    pub dropped: Dropped,
    /// What a layout asks for after its steps.
    pub upkeep: Upkeep,
    /// Partitions that are there and have to be so in the end.
    pub partitions: Vec<Entry>,
}

impl Change<'_> {
    /// Steps of which nothing else is known.
    pub fn new(kind: Kind, target: Target<'_>, entries: Vec<Entry>) -> Change<'static> {
        Change {
            kind,
            entries,
            decided: Vec::new(),
            planned: Vec::new(),
            hierarchies: target.host.hierarchies().iter().cloned().map(Some).collect(),
            in_effect: None,
            left: Vec::new(),
            replaced: Vec::new(),
            stayed: None,
            sources: Vec::new(),
            dropped: Dropped::default(),
            upkeep: Upkeep::default(),
            partitions: Vec::new(),
        }
    }
}

pub(crate) fn carry_out(
    lock: &Lock,
    target: Target<'_>,
    mut change: Change<'_>,
    meta: &Meta,
) -> Result<Outcome, Failure> {
    refuse_foreign(&change.entries)?;
    refuse_to_freeze_itself(target, &change.entries)?;
    let spots = Spot::of(&change.hierarchies.iter().flatten().cloned().collect::<Vec<_>>());
    let mut performer = Performer::new(target, std::mem::take(&mut change.hierarchies));
    look(lock, &mut performer, &mut change)?;
    let head = head(lock, target, &change, meta, spots)?;
    let journal =
        Journal::start(lock, &head, &change.entries, &change.decided, meta.confirm_within.is_some())?;
    let outcome = Outcome {
        generation: Some(head.generation),
        steps: change.entries.len(),
        left: change.left,
        replaced: change.replaced,
        ..Outcome::nothing()
    };
    let mut attempt = Attempt::new(performer, journal, change.entries, outcome);
    attempt.standing = change.partitions;
    let is_undo = matches!(change.kind, Kind::Undo { .. });
    attempt.sources = is_undo.then_some(change.sources);
    match attempt.do_all().and_then(|()| record_done(&mut attempt, lock, &head)) {
        Ok(()) => {
            if is_undo {
                lock.release();
            }
            attempt.outcome.left.extend(settle_files(lock.state(), target));
            // an old generation that stays does no harm: the next change tries again
            let _ = prune(lock, target);
            Ok(attempt.outcome)
        }
        Err(stop) => Err(give_up(attempt, lock, &head, stop)),
    }
}

/// Reads what is there before the change.
fn look(lock: &Lock, performer: &mut Performer<'_>, change: &mut Change<'_>) -> Result<(), Failure> {
    let drop_ins = known_drop_ins(lock, performer.target, change)?;
    let is_new =
        |entry: &Entry| matches!(&entry.action, Action::WriteDropIn { path, .. } if !drop_ins.names(path));
    // one of which no record is left is this generation's from now on, to be removed by its undo
    let (adopted, decided) = std::mem::take(&mut change.decided).into_iter().partition(is_new);
    change.decided = decided;
    change.entries.extend::<Vec<Entry>>(adopted);
    performer.drop_ins = drop_ins;
    let mut looking = Looking::new(performer);
    for (entry, planned) in
        change.entries.iter_mut().zip(change.planned.iter().chain(std::iter::repeat(&None)))
    {
        looking.look(entry, *planned)?;
    }
    for entry in change.decided.iter_mut().filter(|entry| matches!(entry.action, Action::Write { .. })) {
        // of a unit that does not run systemd will do it
        if entry.action.place().is_some_and(|place| performer.exists(place)) {
            looking.look(entry, None)?;
        }
    }
    // a roll-back takes back what this change writes
    change.entries.iter().for_each(|entry| performer.drop_ins.add_text(entry));
    performer.heirs = heirs(&change.entries);
    Ok(())
}

/// Makes what was done a generation.
fn record_done(attempt: &mut Attempt<'_>, lock: &Lock, head: &Head) -> Result<(), Stop> {
    let target = attempt.performer.target;
    // without it they are taken as the daemon finds them
    let _ = directories::note(lock, target.host, head, true);
    let end = End {
        refused: std::mem::take(&mut attempt.refused),
        replaced: attempt.outcome.replaced.clone(),
        ..end(target, Ending::Done, attempt.outcome.left.clone())
    };
    let unrecorded = |failure: Failure| Error::Unrecorded { reason: failure.to_string() };
    attempt.journal.finish(end).map_err(|failure| Stop::behind(head.steps, unrecorded(failure)))
}

/// Rolls back what was done, and records that.
fn give_up(mut attempt: Attempt<'_>, lock: &Lock, head: &Head, stop: Stop) -> Failure {
    let remains = attempt.put_back(&stop);
    let Attempt { performer, entries, standing, mut journal, .. } = attempt;
    let (Stop { step, error, .. }, target) = (stop, performer.target);
    let &Head { generation, steps, .. } = head;
    let refused = refused_steps(&performer, &entries, &remains, generation);
    let mut left = remains.left;
    left.extend(partitions::verify(&performer, &[], &standing).iter().map(Error::in_words));
    let ending = if left.is_empty() { Ending::RolledBack } else { Ending::Partly };
    let end = End {
        error: Some(error.to_string()),
        step: Some(step),
        refused,
        ..end(target, ending, left.clone())
    };
    let _ = directories::note(lock, target.host, head, false);
    let recorded = journal.finish(end);
    // of an undo that failed it is needed still
    if head.confirm_within.is_some() {
        lock.release();
    }
    left.extend(settle_files(lock.state(), target));
    match recorded {
        // what could not be recorded is recorded by the next command, which finds it as it was before
        Err(failure) if !matches!(error, Error::Unrecorded { .. }) => failure,
        _ => Failure::RolledBack { generation, step, steps, error: Box::new(error), left },
    }
}

fn end(target: Target<'_>, ending: Ending, left: Vec<String>) -> End {
    End {
        ending,
        at: target.system.now(),
        error: None,
        step: None,
        uptime: Some(target.system.uptime()),
        left,
        replaced: Vec::new(),
        refused: Vec::new(),
        lines: 0,
    }
}

/// The same without a record: for a change that can't be half done, or by a user who has no state directory.
pub(crate) fn carry_out_unrecorded(target: Target<'_>, mut entries: Vec<Entry>) -> Result<(), Error> {
    refuse_to_freeze_itself(target, &entries)?;
    let hierarchies = target.host.hierarchies().iter().cloned().map(Some).collect();
    let performer = Performer::new(target, hierarchies);
    let mut looking = Looking::new(&performer);
    for entry in &mut entries {
        match looking.look(entry, None) {
            // the write says what is wrong with a group that went meanwhile
            Ok(()) | Err(Failure::Stale { .. }) => {}
            Err(Failure::Refused(error)) => return Err(error),
            Err(other) => return Err(Error::Unrecorded { reason: other.to_string() }),
        }
    }
    let mut attempt = Attempt::new(performer, Journal::none(), entries, Outcome::nothing());
    attempt.do_all().map_err(|stop| {
        let left = attempt.put_back(&stop).left;
        Error::Undone { error: Box::new(stop.error), left }
    })
}

/// What drop-in files contain by the records; not looked for unless the change has some.
fn known_drop_ins(lock: &Lock, target: Target<'_>, change: &Change<'_>) -> Result<Known, Failure> {
    let writes = |entry: &Entry| matches!(entry.action, Action::WriteDropIn { .. });
    let mut known = Known::default();
    if change.entries.iter().chain(&change.decided).any(writes) {
        let last = lasting::last(lock.state(), target)?;
        for &generation in last.iter().flat_map(Summary::in_effect) {
            if let Some(record) = lasting::record(lock.state(), target, generation)? {
                record.entries.iter().chain(&record.decided).for_each(|entry| known.add(entry));
            }
        }
        last.iter().flat_map(Summary::stayed).for_each(|stayed| known.add(&stayed.entry));
    }
    Ok(known)
}

/// What a roll-back had to leave, groups that the generation made among it: the next undo or apply tries again.
pub(crate) fn refused_steps(
    performer: &Performer<'_>,
    entries: &[Entry],
    remains: &Remains,
    generation: u32,
) -> Vec<Remainder> {
    let refused = entries.iter().enumerate().filter_map(|(step, entry)| {
        if let Action::SetKnob { .. } = &entry.action {
            let is_left = remains.steps.contains(&step) && knob::is_left(performer, step, entry);
            return Remainder::of(generation, step, entry, &performer.hierarchies).filter(|_| is_left);
        }
        if let Action::Mount { .. } = &entry.action {
            let is_left = remains.steps.contains(&step);
            return Remainder::of(generation, step, entry, &performer.hierarchies).filter(|_| is_left);
        }
        let place = entry.action.place()?;
        let stays = match (&entry.action, &entry.before) {
            (Action::WriteDropIn { .. }, _) => remains.steps.contains(&step),
            (Action::CreateGroup { .. }, _) | (_, Before::New) if performer.is_remade(place) => false,
            (Action::CreateGroup { .. }, _) => performer.exists(place),
            // a group that has to stay has lost its limits, but for those that could not be lifted
            (_, Before::New) => performer.exists(place) && remains.steps.contains(&step),
            (_, Before::Absent) => false,
            _ => remains.steps.contains(&step),
        };
        Remainder::of(generation, step, entry, &performer.hierarchies).filter(|_| stays)
    });
    refused.map(|left| narrowed(performer, left)).collect()
}

/// A frozen process can't finish its change, and would keep the lock.
fn refuse_to_freeze_itself(target: Target<'_>, entries: &[Entry]) -> Result<(), Error> {
    let freezes = |entry: &Entry| match &entry.action {
        Action::Write { place, file, text } => match (file.as_str(), text.trim()) {
            ("freezer.state", "FROZEN") | ("cgroup.freeze", "1") => {
                Some((place.clone(), entry.group.clone()))
            }
            _ => None,
        },
        _ => None,
    };
    let frozen: Vec<(plan::Place, GroupName)> = entries.iter().filter_map(freezes).collect();
    if frozen.is_empty() {
        return Ok(());
    }
    let own = target.host.kernel().groups_of(target.host.hierarchies(), std::process::id());
    let own = own.unwrap_or_default();
    for (place, group) in frozen {
        let at = target.host.hierarchies().get(place.hierarchy);
        let path = at.and_then(|at| at.below_mount(own.get(place.hierarchy)?.as_ref()?));
        if path.is_some_and(|path| group_path::is_at_or_below(&path, &place.path)) {
            return Err(Error::FreezesItself { group });
        }
    }
    Ok(())
}

fn refuse_foreign(entries: &[Entry]) -> Result<(), Failure> {
    let is_ours = |entry: &&Entry| match &entry.action {
        // our own file of a unit
        Action::WriteDropIn { .. } => true,
        // what the slices above a unit reserve for its partition
        Action::Write { place, file, .. } if is_reserve(place, file) => true,
        // CPUs are reserved for partitions on the whole way to them, also in the slice that our unit is in
        action => action.place().is_some_and(|place| place.path == UNIT_SLICE),
    };
    let entries = entries.iter().filter(|entry| !is_ours(entry));
    let groups: BTreeSet<&GroupName> = entries.map(|entry| &entry.group).collect();
    for group in groups {
        kernel::refuse_foreign(group, kernel::Change::Settings(&Vec::new)).map_err(Error::from)?;
    }
    Ok(())
}

/// To whom the groups that are made go at once.
fn heirs(entries: &[Entry]) -> HashMap<plan::Place, plan::Ownership> {
    let given = entries.iter().filter_map(|entry| match &entry.action {
        Action::SetOwnership { place, access } => Some((place.clone(), *access)),
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
    let generation = lock.state().next()?;
    let boot = target.system.boot();
    let here = lasting::last(lock.state(), target)?;
    let stayed_before = here.as_ref().map(Summary::stayed).unwrap_or_default();
    let settled = here.as_ref().map_or(0, |last| last.head.settled);
    let before = here.map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let still = || stayed_before.iter().filter(|stayed| stayed.here(target).is_some()).cloned().collect();
    let stayed = change.stayed.clone().unwrap_or_else(still);
    let mut after = before.iter().copied().chain([generation]).collect();
    let settles = match &change.in_effect {
        Some(wanted) => {
            after = wanted.clone();
            0
        }
        None => settle(lock.state(), &mut after)?,
    };
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
        layout: meta.layout,
        rules: meta.rules.clone(),
        file: meta.file.clone(),
        dropped: change.dropped.clone(),
        upkeep: change.upkeep.clone(),
        in_effect: after,
        settled: settled.saturating_add(settles),
        in_effect_before: before,
        stayed,
        stayed_before,
        joins: None,
        steps: change.entries.len(),
        decided: change.decided.len(),
    })
}
