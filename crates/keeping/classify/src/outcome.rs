//! One process from its facts to its group, with everything worth reporting on the way: for commands that look
//! at certain processes, or at all of them.

use layout::Controllers;
use system::NoProcess;

use crate::{
    Decision, Error, Explained, Facts, Goal, Membership, Placer, Rules, goals::seats, place::Presence, settle,
};

/// What classifying a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassifyOptions {
    /// Only report what would be done.
    pub dry_run: bool,
    /// Leave processes that are in one of our groups that no rule leads them to: somebody put them there. Not for a
    /// process that the user names: he means it.
    pub respect_manual_moves: bool,
}

/// What became of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number.
    pub pid: u32,
    /// Its effective user.
    pub user: u32,
    /// Its program, as rules mean it.
    pub program: String,
    /// The rule that fits, and why those before did not.
    pub explained: Explained,
    /// Where the rule leads it; empty if none does.
    pub goals: Vec<Goal>,
    /// What was done.
    pub done: Done,
}

/// What was done with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Nothing: no rule, an ignored or kernel's own process, or one that was put where it is by hand.
    Left,
    /// It is there already.
    There,
    /// It would be moved.
    WouldMove,
    /// It was moved.
    Moved,
    /// It could not be moved, or not if that were tried, and is where it was.
    Failed(Error),
}

impl Placer<'_> {
    /// Classifies one process.
    ///
    /// # Errors
    /// [`NoProcess`]; other failures are in the outcome.
    pub fn classify(
        &self,
        rules: &Rules,
        process: &mut dyn Facts,
        options: ClassifyOptions,
    ) -> Result<Outcome, NoProcess> {
        let mut explained = rules.explain(process)?;
        let mut outcome = Outcome {
            pid: process.pid(),
            user: process.status()?.uid,
            program: String::from_utf8_lossy(process.program()?.path()).into_owned(),
            explained: explained.clone(),
            goals: Vec::new(),
            done: Done::Left,
        };
        let Decision::To { rule } = explained.decision else { return Ok(outcome) };
        match rules.goals(rule, process, self.names()) {
            Ok(goals) => outcome.goals = goals,
            Err(error) => {
                outcome.done = self.failed(error.into())?;
                return Ok(outcome);
            }
        }
        let presence = self.presence(rules, &outcome.goals, process)?;
        let there = presence == Presence::There;
        if options.respect_manual_moves {
            let now = Membership::of(self.host(), process.control_groups()?);
            let now = now.ours().only(&self.hierarchies(&outcome.goals));
            explained.decision =
                settle(explained.decision, &now, None, None, presence != Presence::Elsewhere).0;
            outcome.explained = explained;
        }
        outcome.done = match outcome.explained.decision {
            Decision::To { .. } if options.dry_run => match self.movable(&outcome) {
                Ok(()) if there => Done::There,
                Ok(()) => Done::WouldMove,
                Err(error) => {
                    let into = seats(self.host(), &outcome.goals).unwrap_or_default();
                    self.failed(self.host().with_properties(error, &into).into())?
                }
            },
            // moved also if it is there: on v1 its threads may be elsewhere
            Decision::To { .. } => match self.place_at(rules, &outcome.goals, outcome.pid) {
                Ok(_) if there => Done::There,
                Ok(_) => Done::Moved,
                Err(error) => self.failed(error)?,
            },
            _ => Done::Left,
        };
        Ok(outcome)
    }

    fn movable(&self, outcome: &Outcome) -> Result<(), kernel::Error> {
        self.host().movable_into(outcome.goals.iter().map(|goal| &goal.group), outcome.pid)
    }

    fn failed(&self, error: Error) -> Result<Done, NoProcess> {
        match error.gone() {
            Some(gone) => Err(gone),
            None => Ok(Done::Failed(error)),
        }
    }
}

impl Outcome {
    /// Where the rule leads, as cgrules.conf writes it: `cpu,memory → db/oltp1`.
    pub fn way(&self) -> String {
        let one = |goal: &Goal| format!("{} → {}", controllers(&goal.controllers), goal.group);
        self.goals.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Controllers as cgrules.conf writes them.
fn controllers(controllers: &Controllers) -> String {
    match controllers {
        Controllers::All => "*".to_owned(),
        Controllers::These(these) => these.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}
