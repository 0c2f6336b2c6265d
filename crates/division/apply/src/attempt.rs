//! Does the steps of a change one after the other, and rolls them back where one is refused. An undo continues after a refused
//! step: what can be given back is given back, and the rest is named.

use plan::Action;
use std::collections::BTreeSet;

use crate::{
    Error, Outcome,
    entry::{Before, Entry, covers, gives_back},
    journal::Journal,
    outcome::Done,
    partitions,
    performer::{Performer, Unread, unwritable},
    remainder::Remainder,
    rollback::{Remains, roll_back},
};

/// Steps that are being done, and what came of them so far.
pub(crate) struct Attempt<'a> {
    pub performer: Performer<'a>,
    pub journal: Journal<'a>,
    pub entries: Vec<Entry>,
    /// Partitions that no step writes.
    pub standing: Vec<Entry>,
    pub outcome: Outcome,
    /// Of an undo, the step that each entry takes back.
    pub sources: Option<Vec<Option<Remainder>>>,
    /// Those that the kernel refuses.
    pub refused: Vec<Remainder>,
    /// Steps that an undo could not do, in words.
    failed: Vec<(usize, String)>,
    /// Units whose files systemd did not read in an undo.
    unread: Vec<Unread>,
}

/// Where a change stopped, and why.
pub(crate) struct Stop {
    pub step: usize,
    pub error: Error,
    /// All steps were done, this one too.
    is_behind: bool,
}

impl Stop {
    fn at(step: usize, error: Error) -> Stop {
        Stop { step, error, is_behind: false }
    }

    pub fn behind(steps: usize, error: Error) -> Stop {
        Stop { step: steps.saturating_sub(1), error, is_behind: true }
    }
}

impl<'a> Attempt<'a> {
    pub fn new(
        performer: Performer<'a>,
        journal: Journal<'a>,
        entries: Vec<Entry>,
        outcome: Outcome,
    ) -> Attempt<'a> {
        let (standing, refused, failed, unread) = Default::default();
        Attempt { performer, journal, entries, standing, outcome, sources: None, refused, failed, unread }
    }

    fn is_undo(&self) -> bool {
        self.sources.is_some()
    }

    pub fn do_all(&mut self) -> Result<(), Stop> {
        let steps = self.entries.len();
        for step in 0..steps {
            self.do_step(step).map_err(|error| Stop::at(step, error))?;
        }
        self.reload_units().map_err(|error| Stop::behind(steps, error))?;
        self.name_failed();
        for error in partitions::verify(&self.performer, &self.entries, &self.standing) {
            if !self.is_undo() {
                return Err(Stop::behind(steps, error));
            }
            self.outcome.left.push(error.in_words());
        }
        Ok(())
    }

    fn do_step(&mut self, step: usize) -> Result<(), Error> {
        if self.performer.system().is_interrupted() {
            return Err(Error::Interrupted);
        }
        self.journal.begin(step).map_err(unwritable)?;
        self.note_before(step).map_err(unwritable)?;
        if !matches!(self.entries[step].action, Action::WriteDropIn { .. } | Action::SetKnob { .. }) {
            self.reload_units()?;
        }
        let entry = &self.entries[step];
        match self.performer.perform(step, entry, &mut self.journal) {
            // an older generation's step may set the same knob
            Ok(Done { note: Some(note), .. })
                if self.is_undo() && matches!(entry.action, Action::SetKnob { .. }) =>
            {
                self.failed.push((step, note));
            }
            Ok(done) => {
                self.outcome.differences.extend(done.difference);
                self.outcome.unmoved.extend(done.unmoved);
                if let (Some(_), Some(sources)) = (&done.note, &self.sources) {
                    self.refused.extend(sources.get(step).cloned().flatten());
                }
                self.outcome.left.extend(done.note);
            }
            Err(error) if self.is_undo() => self.failed.push((step, error.in_words())),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Notes what a file contains that could not be read before the change began: it was not there yet.
    fn note_before(&mut self, step: usize) -> std::io::Result<()> {
        let Attempt { performer, journal, entries, .. } = self;
        let entry = &mut entries[step];
        let Action::Write { place, file, .. } = &entry.action else { return Ok(()) };
        let was = match &entry.before {
            Before::New => return performer.note_default(place, file, journal),
            // systemd brought it about, and takes it back; the controller may be on for others, too
            Before::Absent if performer.is_of_unit(place) => plan::no_partition(file).map(str::to_owned),
            Before::Absent => performer.content(place, file),
            _ => None,
        };
        let Some(was) = was else { return Ok(()) };
        let noted = journal.was(step, &was);
        crate::entry::was(entry, was);
        noted
    }

    /// Lets systemd read the files that were written. What it does not read an undo names in the end.
    fn reload_units(&mut self) -> Result<(), Error> {
        match self.performer.reload_units() {
            Err(unread) if self.is_undo() => self.unread.push(unread),
            reloaded => reloaded.map_err(|unread| unread.error)?,
        }
        Ok(())
    }

    /// Names what failed, and leaves it to the next undo, as far as no later step did the same.
    fn name_failed(&mut self) {
        let Attempt { performer, entries, outcome, sources, refused, failed, unread, .. } = self;
        failed.extend(unread.iter().flat_map(|unread| unread.steps(entries)));
        let steps: BTreeSet<usize> = failed.iter().map(|(step, _)| *step).collect();
        for (step, words) in failed.drain(..) {
            // what an older generation's step brought back since then is no longer as this one's would be
            let later = entries.iter().enumerate().skip(step + 1).filter(|(index, _)| !steps.contains(index));
            let later: Vec<&Action> = later.map(|(_, later)| &later.action).collect();
            if later.iter().any(|later| covers(later, &entries[step].action)) {
                continue;
            }
            outcome.left.push(words);
            let mut source = sources.as_ref().and_then(|sources| sources.get(step)?.clone());
            if let Some(Remainder { entry, .. }) = &mut source {
                narrow_to(entry, &entries[step].action, &later);
            }
            refused.extend(source.map(|source| narrowed(performer, source)));
        }
    }

    /// Rolls back what was done.
    pub fn put_back(&mut self, &Stop { step, ref error, is_behind }: &Stop) -> Remains {
        let entries = &self.entries;
        // a step that was refused as a whole did nothing; all others may have done a part
        let whole = match entries.get(step).map(|entry| &entry.action) {
            _ if is_behind => false,
            _ if *error == Error::Interrupted => true,
            Some(Action::CreateGroup { .. } | Action::RemoveGroup { .. } | Action::Mount { .. }) => {
                !matches!(error, Error::Unrecorded { .. })
            }
            Some(Action::Write { .. }) => matches!(error, Error::Kernel(_) | Error::WouldKill { .. }),
            _ => false,
        };
        let last = if whole { step.checked_sub(1) } else { Some(step).filter(|_| !entries.is_empty()) };
        roll_back(&mut self.performer, &mut self.journal, entries, last)
    }
}

/// Of a file and those that its write changed along, which one is left to bring back, if the file itself is as before.
pub(crate) fn narrowed(performer: &Performer<'_>, mut left: Remainder) -> Remainder {
    let (Action::Write { place, .. }, Before::Files(files)) = (&left.entry.action, &left.entry.before) else {
        return left;
    };
    let now = |file: &str| performer.content(place, file);
    let is_open =
        |(file, before): &&(String, String)| now(file).is_some_and(|now| now.trim() != before.trim());
    let (own, along) = (files.first(), files.get(1..).unwrap_or_default());
    if own.is_some_and(|own| !is_open(&own))
        && let Some((file, before)) = along.iter().find(is_open).cloned()
    {
        let (place, text) = (place.clone(), now(&file).unwrap_or_default());
        left.entry.before = Before::Files(vec![(file.clone(), before)]);
        left.entry.action = Action::Write { place, file, text };
    }
    left
}

/// Leaves of a step what is to be tried again, as one action of its inverse was refused and the `later` ones were done.
fn narrow_to(source: &mut Entry, refused: &Action, later: &[&Action]) {
    let Some(place) = refused.place() else { return };
    match (&source.action, &mut source.before) {
        (_, Before::Owners(then)) => {
            let has = |later: &&Action, file: Option<&str>| match later {
                Action::RestoreOwners { place: of, owners } => of == place && gives_back(owners, file),
                _ => false,
            };
            then.retain(|(file, _)| !later.iter().any(|later| has(later, file.as_deref())));
        }
        // what came with the controllers: they are not switched on again, as an older step may have switched them off
        (Action::DisableControllers { names, .. }, Before::Controllers { off, owners, lists, .. }) => {
            match refused {
                Action::RestoreOwners { .. } => {
                    owners.retain(|(path, _)| *path == place.path);
                    lists.clear();
                }
                Action::Refill { .. } => {
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
