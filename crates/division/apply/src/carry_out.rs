//! Carries steps out wholly or not at all: looks at the current state, writes the journal, does the steps, and on a
//! failure rolls back what was done. Decides nothing: the steps and their order come in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use facts::UNIT_SLICE;
use kernel::Hierarchy;
use layout::Latency;
use plan::{Dropped, is_reserve};
use units::group_path;

use crate::{
    Error, Failure, Lock, Meta, Outcome, Target,
    act::{Act, Before, Entry, gives_back},
    before::Looking,
    directories,
    journal::Journal,
    knob,
    lasting::{self, Known},
    outcome::Done,
    partitions,
    performer::{Performer, Unread, name, unwritable},
    prune::{prune, settle},
    record::{Ending, FORMAT, Head, Kind, Result as End, Summary},
    remainder::Remainder,
    rollback::{Remains, roll_back},
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
    /// Groups whose CPUs change with their load.
    pub elastic: Vec<policy::Scope>,
    /// Isolated CPUs, and what is kept off them.
    pub isolation: Option<knobs::Isolation>,
    /// Settings that follow the load.
    pub ranges: Vec<plan::Range>,
    /// By the names of elastic groups: the latency that decides about their CPUs.
    pub latencies: BTreeMap<String, Latency>,
    /// Partitions that are there and have to be so in the end.
    pub partitions: Vec<Entry>,
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
    let drop_ins = known_drop_ins(lock, target, &change)?;
    let is_new = |entry: &Entry| matches!(&entry.act, Act::WriteDropIn { path, .. } if !drop_ins.names(path));
    // one of which no record is left is this generation's from now on, to be removed by its undo
    let (adopted, decided) = std::mem::take(&mut change.decided).into_iter().partition(is_new);
    change.decided = decided;
    change.entries.extend::<Vec<Entry>>(adopted);
    performer.drop_ins = drop_ins;
    let mut looking = Looking::new(&performer);
    for (entry, planned) in
        change.entries.iter_mut().zip(change.planned.iter().chain(std::iter::repeat(&None)))
    {
        looking.look(entry, *planned)?;
    }
    for entry in change.decided.iter_mut().filter(|entry| matches!(entry.act, Act::Write { .. })) {
        // of a unit that does not run systemd will do it
        if entry.act.place().is_some_and(|place| performer.exists(place)) {
            looking.look(entry, None)?;
        }
    }
    // a roll-back takes back what this change writes
    change.entries.iter().for_each(|entry| performer.drop_ins.add_text(entry));
    performer.heirs = heirs(&change.entries);
    let head = head(lock, target, &change, meta, spots)?;
    let mut journal =
        Journal::start(lock, &head, &change.entries, &change.decided, meta.confirm_within.is_some())?;
    let (generation, steps) = (head.generation, change.entries.len());
    let mut outcome = Outcome {
        generation: Some(generation),
        steps,
        differences: Vec::new(),
        unmoved: Vec::new(),
        left: change.left,
        foreign: Vec::new(),
        replaced: change.replaced,
    };
    let mut refused = Vec::new();
    let sources = matches!(change.kind, Kind::Undo { .. }).then_some(change.sources.as_slice());
    let sources = sources.map(|sources| Refusals { sources, refused: &mut refused });
    let standing = &change.partitions;
    let done = do_all(&mut performer, &mut change.entries, standing, &mut journal, &mut outcome, sources);
    let end = |ending: Ending, error: Option<String>, step: Option<usize>, left: &[String]| End {
        ending,
        at: target.system.now(),
        error,
        step,
        uptime: Some(target.system.uptime()),
        left: left.to_vec(),
        replaced: Vec::new(),
        refused: Vec::new(),
        lines: 0,
    };
    let stop = match done {
        Ok(()) => {
            // without it they are taken as the daemon finds them
            let _ = directories::note(lock, target.host, &head, true);
            let replaced = outcome.replaced.clone();
            let end = End { refused, replaced, ..end(Ending::Done, None, None, &outcome.left) };
            match journal.finish(end) {
                Ok(()) => {
                    if matches!(change.kind, Kind::Undo { .. }) {
                        lock.release();
                    }
                    // an old generation that stays does no harm: the next change tries again
                    let _ = prune(lock, target);
                    return Ok(outcome);
                }
                Err(failure) => Stop::behind(steps, Error::Unrecorded { reason: failure.to_string() }),
            }
        }
        Err(stop) => stop,
    };
    let remains = put_back(&mut performer, &mut journal, &change.entries, &stop);
    let Stop { step, error, .. } = stop;
    let refused = refused_steps(&performer, &change.entries, &remains, generation);
    let mut left = remains.left;
    let lost = partitions::verify(&performer, &[], &change.partitions);
    left.extend(lost.iter().map(Error::in_words));
    let ending = if left.is_empty() { Ending::RolledBack } else { Ending::Partly };
    let end = End { refused, ..end(ending, Some(error.to_string()), Some(step), &left) };
    let _ = directories::note(lock, target.host, &head, false);
    let recorded = journal.finish(end);
    // of an undo that failed it is needed still
    if meta.confirm_within.is_some() {
        lock.release();
    }
    // what could not be recorded is recorded by the next command, which finds it as it was before
    if !matches!(error, Error::Unrecorded { .. }) {
        recorded?;
    }
    Err(Failure::RolledBack { generation, step, steps, error: Box::new(error), left })
}

/// What drop-in files contain by the records; not looked for unless the change has some.
fn known_drop_ins(lock: &Lock, target: Target<'_>, change: &Change<'_>) -> Result<Known, Failure> {
    let writes = |entry: &Entry| matches!(entry.act, Act::WriteDropIn { .. });
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

/// Where a change stopped, and why.
struct Stop {
    step: usize,
    error: Error,
    /// All steps were done, this one too.
    is_behind: bool,
}

impl Stop {
    fn at(step: usize, error: Error) -> Stop {
        Stop { step, error, is_behind: false }
    }

    fn behind(steps: usize, error: Error) -> Stop {
        Stop { step: steps.saturating_sub(1), error, is_behind: true }
    }
}

/// Rolls back a change that stopped.
fn put_back(
    performer: &mut Performer<'_>,
    journal: &mut Journal<'_>,
    entries: &[Entry],
    &Stop { step, ref error, is_behind }: &Stop,
) -> Remains {
    // a step that was refused as a whole did nothing; all others may have done a part
    let whole = match entries.get(step).map(|entry| &entry.act) {
        _ if is_behind => false,
        _ if *error == Error::Interrupted => true,
        Some(Act::CreateGroup { .. } | Act::RemoveGroup { .. } | Act::Mount { .. }) => {
            !matches!(error, Error::Unrecorded { .. })
        }
        Some(Act::Write { .. }) => matches!(error, Error::Kernel(_) | Error::WouldKill { .. }),
        _ => false,
    };
    let last = if whole { step.checked_sub(1) } else { Some(step).filter(|_| !entries.is_empty()) };
    roll_back(performer, journal, entries, last)
}

/// The same without a record: for a change that can't be half done, or by a user who has no state directory.
pub(crate) fn carry_out_unrecorded(target: Target<'_>, mut entries: Vec<Entry>) -> Result<(), Error> {
    refuse_to_freeze_itself(target, &entries)?;
    let hierarchies = target.host.hierarchies().iter().cloned().map(Some).collect();
    let mut performer = Performer::new(target, hierarchies);
    let mut looking = Looking::new(&performer);
    for entry in &mut entries {
        match looking.look(entry, None) {
            // the write says what is wrong with a group that went meanwhile
            Ok(()) | Err(Failure::Stale { .. }) => {}
            Err(Failure::Refused(error)) => return Err(error),
            Err(other) => return Err(Error::Unrecorded { reason: other.to_string() }),
        }
    }
    let (mut journal, mut outcome) = (Journal::none(), Outcome::nothing());
    let done = do_all(&mut performer, &mut entries, &[], &mut journal, &mut outcome, None);
    done.map_err(|stop| {
        let left = put_back(&mut performer, &mut journal, &entries, &stop).left;
        Error::Undone { error: Box::new(stop.error), left }
    })
}

/// What a roll-back had to leave, groups that the generation made among it: the next undo or apply tries again.
pub(crate) fn refused_steps(
    performer: &Performer<'_>,
    entries: &[Entry],
    remains: &Remains,
    generation: u32,
) -> Vec<Remainder> {
    let refused = entries.iter().enumerate().filter_map(|(step, entry)| {
        if let Act::SetKnob { .. } = &entry.act {
            let is_left = remains.steps.contains(&step) && knob::is_left(performer, step, entry);
            return Remainder::of(generation, step, entry, &performer.hierarchies).filter(|_| is_left);
        }
        let place = entry.act.place()?;
        let stays = match (&entry.act, &entry.before) {
            (Act::WriteDropIn { .. }, _) => remains.steps.contains(&step),
            (Act::CreateGroup { .. }, _) | (_, Before::New) if performer.is_remade(place) => false,
            (Act::CreateGroup { .. }, _) => performer.exists(place),
            // a group that has to stay has lost its limits, but for those that could not be lifted
            (_, Before::New) => performer.exists(place) && remains.steps.contains(&step),
            (_, Before::Absent) => false,
            _ => remains.steps.contains(&step),
        };
        Remainder::of(generation, step, entry, &performer.hierarchies).filter(|_| stays)
    });
    refused.collect()
}

/// Where an undo collects what the kernel refuses.
struct Refusals<'r> {
    sources: &'r [Option<Remainder>],
    refused: &'r mut Vec<Remainder>,
}

/// An undo continues behind a refusal: what can be given back is given back, and the rest is named. `standing`:
/// partitions that no step writes.
fn do_all(
    performer: &mut Performer<'_>,
    entries: &mut [Entry],
    standing: &[Entry],
    journal: &mut Journal<'_>,
    outcome: &mut Outcome,
    mut refusals: Option<Refusals<'_>>,
) -> Result<(), Stop> {
    let mut failed: Vec<(usize, String)> = Vec::new();
    let mut unread_units: Vec<Unread> = Vec::new();
    for (step, entry) in entries.iter_mut().enumerate() {
        if performer.system().is_interrupted() {
            return Err(Stop::at(step, Error::Interrupted));
        }
        journal.begin(step).map_err(|error| Stop::at(step, unwritable(error)))?;
        if let Act::Write { place, file, .. } = &entry.act {
            let noted = match &entry.before {
                // systemd brought it about, and takes it back
                Before::Absent if performer.is_of_unit(place) => match plan::no_partition(file) {
                    // the controller may be on for others, too
                    Some(none) => {
                        entry.was(none.to_owned());
                        journal.was(step, none)
                    }
                    None => Ok(()),
                },
                Before::Absent => performer.content(place, file).map_or(Ok(()), |was| {
                    let noted = journal.was(step, &was);
                    entry.was(was);
                    noted
                }),
                Before::New => performer.note_default(place, file, journal),
                _ => Ok(()),
            };
            noted.map_err(|error| Stop::at(step, unwritable(error)))?;
        }
        if !matches!(entry.act, Act::WriteDropIn { .. } | Act::SetKnob { .. })
            && let Err(unread) = performer.reload_units()
        {
            match &refusals {
                Some(_) => unread_units.push(unread),
                None => return Err(Stop::at(step, unread.error.into())),
            }
        }
        match (performer.perform(step, entry, journal), &mut refusals) {
            // an older generation's step may set the same knob
            (Ok(Done { note: Some(note), .. }), Some(_)) if matches!(entry.act, Act::SetKnob { .. }) => {
                failed.push((step, note));
            }
            (Ok(done), refusals) => {
                outcome.differences.extend(done.difference);
                outcome.unmoved.extend(done.unmoved);
                if let (Some(_), Some(refusals)) = (&done.note, refusals) {
                    refusals.refused.extend(refusals.sources.get(step).cloned().flatten());
                }
                outcome.left.extend(done.note);
            }
            (Err(error), Some(_)) => failed.push((step, error.in_words())),
            (Err(error), None) => return Err(Stop::at(step, error)),
        }
    }
    if let Err(unread) = performer.reload_units() {
        match &refusals {
            Some(_) => unread_units.push(unread),
            None => return Err(Stop::behind(entries.len(), unread.error.into())),
        }
    }
    for unread in unread_units {
        failed.extend(unread.steps(entries));
    }
    let steps: BTreeSet<usize> = failed.iter().map(|(step, _)| *step).collect();
    for (step, words) in failed {
        // what an older generation's step brought back since then is no longer as this one's would be
        let later = entries.iter().enumerate().skip(step + 1).filter(|(index, _)| !steps.contains(index));
        let later: Vec<&Act> = later.map(|(_, later)| &later.act).collect();
        if later.iter().any(|later| later.covers(&entries[step].act)) {
            continue;
        }
        outcome.left.push(words);
        let Some(refusals) = &mut refusals else { continue };
        let mut source = refusals.sources.get(step).cloned().flatten();
        if let Some(Remainder { entry, .. }) = &mut source {
            narrow_to(entry, &entries[step].act, &later);
        }
        refusals.refused.extend(source);
    }
    for error in partitions::verify(performer, entries, standing) {
        match refusals {
            Some(_) => outcome.left.push(error.in_words()),
            None => return Err(Stop::behind(entries.len(), error)),
        }
    }
    Ok(())
}

/// Leaves of a step what is to be tried again, as one act of its inverse was refused and the `later` ones were done.
fn narrow_to(source: &mut Entry, refused: &Act, later: &[&Act]) {
    let Some(place) = refused.place() else { return };
    match (&source.act, &mut source.before) {
        (_, Before::Owners(then)) => {
            let has = |later: &&Act, file: Option<&str>| match later {
                Act::RestoreOwners { place: of, owners } => of == place && gives_back(owners, file),
                _ => false,
            };
            then.retain(|(file, _)| !later.iter().any(|later| has(later, file.as_deref())));
        }
        // what came with the controllers: they are not switched on again, as an older step may have switched them off
        (Act::DisableControllers { names, .. }, Before::Controllers { off, owners, lists, .. }) => {
            match refused {
                Act::RestoreOwners { .. } => {
                    owners.retain(|(path, _)| *path == place.path);
                    lists.clear();
                }
                Act::Refill { .. } => {
                    lists.retain(|(path, _)| *path == place.path);
                    owners.clear();
                }
                _ => return,
            }
            off.clone_from(names);
        }
        _ => {}
    }
}

/// A frozen process can't finish its change, and would keep the lock.
fn refuse_to_freeze_itself(target: Target<'_>, entries: &[Entry]) -> Result<(), Error> {
    let freezes = |entry: &Entry| match &entry.act {
        Act::Write { place, file, text } => match (file.as_str(), text.trim()) {
            ("freezer.state", "FROZEN") | ("cgroup.freeze", "1") => {
                Some((place.clone(), entry.group.clone()))
            }
            _ => None,
        },
        _ => None,
    };
    let frozen: Vec<(plan::Place, String)> = entries.iter().filter_map(freezes).collect();
    if frozen.is_empty() {
        return Ok(());
    }
    let own = target.host.kernel().groups_of(target.host.hierarchies(), std::process::id());
    let own = own.unwrap_or_default();
    for (place, group) in frozen {
        let at = target.host.hierarchies().get(place.hierarchy);
        let path = at.and_then(|at| at.below_mount(own.get(place.hierarchy)?.as_ref()?));
        if path.is_some_and(|path| group_path::is_at_or_below(&path, &place.path)) {
            return Err(Error::FreezesItself { group: name(&group) });
        }
    }
    Ok(())
}

fn refuse_foreign(entries: &[Entry]) -> Result<(), Failure> {
    let is_ours = |entry: &&Entry| match &entry.act {
        // our own file of a unit
        Act::WriteDropIn { .. } => true,
        // what the slices above a unit reserve for its partition
        Act::Write { place, file, .. } if is_reserve(place, file) => true,
        // CPUs are reserved for partitions on the whole way to them, also in the slice that our unit is in
        act => act.place().is_some_and(|place| place.path == UNIT_SLICE),
    };
    let entries = entries.iter().filter(|entry| !is_ours(entry));
    let groups: BTreeSet<&str> = entries.map(|entry| entry.group.as_str()).collect();
    for group in groups {
        kernel::refuse_foreign(&name(group), kernel::Change::Settings(&Vec::new)).map_err(Error::from)?;
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
        elastic: change.elastic.clone(),
        isolation: change.isolation.clone(),
        ranges: change.ranges.clone(),
        latencies: change.latencies.clone(),
        in_effect: after,
        settled: settled.saturating_add(settles),
        in_effect_before: before,
        stayed,
        stayed_before,
        steps: change.entries.len(),
        decided: change.decided.len(),
    })
}
