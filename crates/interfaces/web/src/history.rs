//! The history as JSON, and who owned which CPU in it.

use std::ffi::OsString;

use answers::Problem;
use apply::{Generation, Kind, Running, State, Target};
use kernel::{Host, Real};

use crate::{
    api::layouts::{self as api, GenerationKind, History},
    program::Program,
};

/// The state directory that the program's commands use.
pub fn state(program: &Program) -> State {
    State::peek(program.state.clone().unwrap_or_else(apply::state_directory))
}

/// The number of the newest generation, 0 if there is none; `None` for who may not read the history.
pub fn newest(program: &Program) -> Option<u32> {
    apply::newest(&state(program)).ok()
}

/// Refuses what was decided on after another generation than the newest. The command that follows looks again, under the lock
/// for changes.
///
/// # Errors
/// 409, with the newest.
pub fn expect(program: &Program, expected: u32) -> Result<(), Problem> {
    let newest = newest(program).unwrap_or(0);
    if newest == expected {
        return Ok(());
    }
    let problem = Problem::conflict(format!(
        "another change came meanwhile (generation {newest}, the page shows {expected}); nothing was changed"
    ));
    let current = [("generation".to_owned(), newest.to_string())].into();
    Err(Problem { current, ..problem.hint("look at the history, and plan again") })
}

/// The generation that was seen, as an option for the commands that change something.
pub fn expectation(expected: u32) -> [OsString; 2] {
    ["--expect-generation".into(), expected.to_string().into()]
}

/// Who changed what when.
///
/// # Errors
/// There are no hierarchies to look at.
pub fn history(program: &Program) -> Result<History, Problem> {
    let state = state(program);
    let host = Host::even_without_hierarchies(Box::new(Real::new()))?;
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    let all = match apply::generations_or_lost(&state, target) {
        Ok(all) => all,
        Err(failure) => {
            let problem =
                failure.hint().map_or_else(|| failure.to_string(), |hint| format!("{failure} ({hint})"));
            return Ok(History { generations: Vec::new(), pending: None, newest: 0, problem: Some(problem) });
        }
    };
    let mut in_effect = apply::in_effect_now(&state, target, &all);
    in_effect.retain(|generation| !apply::is_gone(&state, target, *generation));
    Ok(History {
        newest: all.iter().map(Generation::generation).max().unwrap_or(0),
        generations: all.iter().map(|one| generation(one, in_effect.contains(&one.generation()))).collect(),
        pending: apply::pending(&state, target).ok().flatten().map(|pending| waiting(&pending)),
        problem: None,
    })
}

/// The change that waits for its confirmation.
pub fn waiting(pending: &apply::Pending) -> api::Pending {
    api::Pending {
        generation: pending.generation,
        remaining_ms: u64::try_from(pending.remaining.as_millis()).unwrap_or(u64::MAX),
        overdue: pending.overdue,
        unwatched: pending.unwatched,
        sentence: pending.to_string(),
    }
}

fn generation(one: &Generation, in_effect: bool) -> api::Generation {
    let head = one.head();
    let kind = match head.map(|head| head.kind) {
        Some(Kind::Apply) => GenerationKind::Apply,
        Some(Kind::Set) => GenerationKind::Set,
        Some(Kind::Undo { .. }) => GenerationKind::Undo,
        None => GenerationKind::Unknown,
    };
    let problems = match one {
        Generation::Finished(summary) => {
            let result = &summary.result;
            result.error.iter().chain(&result.left).chain(&result.replaced).cloned().collect()
        }
        Generation::Damaged { failure, .. } => vec![failure.to_string()],
        Generation::Unfinished { .. } | Generation::Lost { .. } => Vec::new(),
    };
    api::Generation {
        generation: one.generation(),
        at_ms: head.map(|head| head.at.saturating_mul(1000)),
        by: head.map(|head| head.by.person()).unwrap_or_default(),
        what: head.map(apply::Head::words).unwrap_or_default(),
        state: one.state().to_owned(),
        kind,
        steps: head.map_or(0, |head| head.steps),
        in_effect,
        problems,
    }
}
