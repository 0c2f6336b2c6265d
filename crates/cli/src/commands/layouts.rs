//! The commands about layouts, and what they share: a layout is read, held against this machine, and everything
//! that is wrong with it is told at once.

mod change;
mod check;
mod history;
mod picture;
mod plan;
mod status;

pub use change::{apply, confirm, revert, undo};
pub use check::{check, export, import, schema};
pub use history::history;
pub use plan::plan;
pub use status::status;

use std::path::{Path, PathBuf};

use ::plan::{Plan, Problem};
use apply::{Running, State, Target};
use kernel::Host;
use layout::{Desired, Diagnostic, Severity, Source, Trust};
use serde_json::json;
use system::Accounts;
use topology::Machine;

use crate::{args, failure::Failure, output};

/// A layout as it was read, with its texts, to show places in.
struct Layout<'p> {
    path: &'p Path,
    desired: Desired,
    sources: Vec<Source>,
}

/// The layout at a path, once what is to be said of it is said; an error of its own ends here.
fn read(path: &Path) -> Result<Layout<'_>, Failure> {
    let (reading, sources) = layout::read_path(path, Trust::of_this_process());
    let Some(desired) = reading.desired else {
        return Err(refused(&reading.diagnostics, &sources, path));
    };
    output::error(&layout::render(&reading.diagnostics, &sources));
    Ok(Layout { path, desired, sources })
}

fn refused(diagnostics: &[Diagnostic], sources: &[Source], path: &Path) -> Failure {
    output::error(&layout::render(diagnostics, sources));
    let failure =
        Failure::new(format!("{} has {}; nothing was touched", path.display(), errors(diagnostics)));
    Failure { diagnostics: diagnostics.to_vec(), ..failure }
}

fn errors(diagnostics: &[Diagnostic]) -> String {
    counted(diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count(), "error")
}

/// `1 group`, `2 groups`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What has to be done on this machine as it is now.
fn planned(layout: &Layout<'_>, host: &Host) -> Result<Plan, Failure> {
    let running = Running::new();
    let target = Target { host, system: &running };
    let machine = Machine::live()?;
    let desired = &layout.desired;
    let accounts = Accounts::new();
    let plan = apply::planned(target, desired, &machine, &system::Live, &accounts);
    let problems = plan.as_ref().err().map(Vec::as_slice).unwrap_or_default();
    let elsewhere = problems.iter().any(|problem| matches!(problem, Problem::OtherMachine(_)));
    let mut wrong = if elsewhere { Vec::new() } else { desired.unknown_accounts(&accounts) };
    for problem in problems.iter().map(Problem::diagnostic) {
        // an account was told before, with near names
        if !wrong.iter().any(|told| told.message == problem.message && told.origin == problem.origin) {
            wrong.push(problem);
        }
    }
    if wrong.is_empty() { plan.map_err(|_| impossible(layout, &[])) } else { Err(impossible(layout, &wrong)) }
}

fn impossible(layout: &Layout<'_>, wrong: &[Diagnostic]) -> Failure {
    output::error(&layout::render(wrong, &layout.sources));
    let failure =
        Failure::new(format!("{} can't be had on this machine; nothing was touched", layout.path.display()));
    Failure { diagnostics: wrong.to_vec(), ..failure }
}

fn warn(plan: &Plan, layout: &Layout<'_>) {
    let diagnostics: Vec<Diagnostic> = plan.lints.iter().map(::plan::Lint::diagnostic).collect();
    output::error(&layout::render(&diagnostics, &layout.sources));
}

/// The answer of a command that may fail: for those who read JSON, a failure is an answer too.
fn answered<T>(as_json: bool, answer: Result<T, Failure>) -> Result<T, Failure> {
    if let (true, Err(failure)) = (as_json, &answer) {
        let Failure { message, hint, diagnostics, .. } = failure;
        output::json(&json!({ "error": message, "hint": hint, "diagnostics": diagnostics }))?;
    }
    answer
}

fn directory(args: &args::StateArgs) -> PathBuf {
    args.state.clone().unwrap_or_else(apply::state_directory)
}

/// The history, to add to it.
fn state(args: &args::StateArgs) -> Result<State, Failure> {
    Ok(State::open(directory(args))?)
}

/// The history, to look at it, which needs no right to change it.
fn history_of(args: &args::StateArgs) -> State {
    State::peek(directory(args))
}
