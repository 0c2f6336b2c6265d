//! The commands about layouts, and what they share: a layout is read, compared with this machine, and
//! everything that is wrong with it is reported at once.

mod blocks;
mod change;
mod check;
mod elastic;
mod generations;
mod history;
mod isolation;
mod killed;
mod lines;
mod machines_layout;
mod picture;
mod plan;
mod rules;
mod schedule;
mod shield;
mod status;
mod words;

pub use change::{apply, confirm, revert, set, unchanged, undo};
pub use check::{check, export, import, schema};
pub use elastic::{elastic, measured, pause};
pub use generations::time;
pub use history::history;
pub use isolation::{finding, rows_of};
pub use plan::plan;
pub use schedule::schedule;
pub use shield::{shield, unshield};
pub use status::status;

use std::path::{Path, PathBuf};

use ::plan::{Lint, LintKind, Plan, Problem};
use apply::{Earlier, RulesFile, Running, State, Target};
use kernel::Host;
use layout::{Desired, Diagnostic, Severity, Source, schedule::InForce};
use system::{
    Accounts,
    files::{self, Trust},
};
use topology::Machine;

use crate::{
    args,
    failure::{FAILED, Failure, USAGE},
    output,
};

/// A layout as it was read, with its texts, to show places in.
struct Layout<'p> {
    path: &'p Path,
    desired: Desired,
    sources: Vec<Source>,
}

impl Layout<'_> {
    /// Its file for the record, if it has rules or patterns of units.
    fn rules(&self) -> Option<RulesFile> {
        let texts = self.sources.iter().map(|source| &*source.text);
        self.desired.is_about_later().then(|| RulesFile::new(self.path, texts))
    }
}

/// The layout at a path; its warnings are printed, and an error of its own ends here.
fn read(path: &Path) -> Result<Layout<'_>, Failure> {
    let (reading, sources) = files::read_layout(path, Trust::of_this_process());
    let Some(desired) = reading.desired else {
        return Err(refused(&reading.diagnostics, &sources, path));
    };
    let foreign: Vec<Diagnostic> = apply::foreign(&desired).map(|problem| problem.diagnostic()).collect();
    if !foreign.is_empty() {
        return Err(refused(&foreign, &sources, path));
    }
    output::error(&layout::render(&reading.diagnostics, &sources));
    Ok(Layout { path, desired, sources })
}

/// What a layout requests, for commands that do not compare it with this machine.
pub fn desired(path: &Path) -> Result<Desired, Failure> {
    Ok(read(path)?.desired)
}

fn refused(diagnostics: &[Diagnostic], sources: &[Source], path: &Path) -> Failure {
    output::error(&layout::render(diagnostics, sources));
    let failure = Failure::usage(format!("{} has {}", path.display(), layout::errors(diagnostics)));
    Failure { diagnostics: diagnostics.to_vec(), ..failure }
}

/// What has to be done on this machine as it is now, after what the history says is in effect.
fn planned(layout: &Layout<'_>, host: &Host, state: &State) -> Result<Plan, Failure> {
    let running = Running::new();
    let target = Target { host, system: &running };
    let earlier = match Earlier::read(state, target) {
        Err(failure) if !rustix::process::geteuid().is_root() => {
            output::warning(&format!("{failure}: what earlier layouts left is not in this plan"));
            Earlier::none()
        }
        earlier => earlier?,
    };
    let in_force = apply::in_force(state, layout.path).unwrap_or_default();
    let names: Vec<&str> = in_force.iter().map(|one| one.name.as_str()).collect();
    on(layout, target, &earlier, (&layout.desired.with(&names), &in_force))
}

/// What has to be done on this machine after these earlier layouts. `desired`: the layout with what its schedules change now.
fn on(
    layout: &Layout<'_>,
    target: Target<'_>,
    earlier: &Earlier,
    (desired, in_force): (&Desired, &[InForce]),
) -> Result<Plan, Failure> {
    let machine = Machine::live()?;
    let accounts = Accounts::new();
    let plan = apply::planned(target, earlier, desired, &machine, &system::Live, &accounts);
    let problems = plan.as_ref().err().map(Vec::as_slice).unwrap_or_default();
    let elsewhere = problems.iter().any(|problem| matches!(problem, Problem::OtherMachine(_)));
    let unknown = if elsewhere { Vec::new() } else { desired.unknown_accounts(&accounts) };
    let (mut wrong, of_rules): (Vec<_>, Vec<_>) =
        unknown.into_iter().partition(|one| one.severity == Severity::Error);
    // what `check` finds too is wrong input, not a lack of this machine
    let code = if wrong.is_empty() { FAILED } else { USAGE };
    for problem in problems.iter().map(Problem::diagnostic) {
        // an unknown account was reported before, with near names
        if !wrong.iter().any(|known| known.message == problem.message && known.origin == problem.origin) {
            wrong.push(problem);
        }
    }
    if wrong.is_empty() {
        let mut plan = plan.map_err(|_| impossible(layout, &[]))?;
        plan.lints.extend(of_rules.into_iter().map(|Diagnostic { message, origin, hint, .. }| Lint {
            kind: LintKind::NoAccount,
            group: None,
            message,
            origin,
            hint,
        }));
        schedule::possible(layout, in_force, |of| {
            apply::unschedulable(target, earlier, of, &machine, &system::Live, &accounts)
        })?;
        Ok(plan)
    } else {
        Err(impossible(layout, &wrong).code(code))
    }
}

fn impossible(layout: &Layout<'_>, wrong: &[Diagnostic]) -> Failure {
    output::error(&layout::render(wrong, &layout.sources));
    let failure = Failure::new(format!("this machine cannot satisfy {}", layout.path.display()));
    Failure { diagnostics: wrong.to_vec(), ..failure }
}

fn warn(plan: &Plan, layout: &Layout<'_>) {
    let diagnostics = said_once(plan.lints.iter().map(Lint::diagnostic));
    output::error(&layout::render(&diagnostics, &layout.sources));
}

/// What is the same of several groups is one, with all names and places.
fn said_once(all: impl Iterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut once: Vec<(Diagnostic, Vec<String>)> = Vec::new();
    for one in all {
        let (before, name, after) = around_group(&one.message);
        let same = once.iter_mut().find(|(known, _)| {
            let (known_before, _, known_after) = around_group(&known.message);
            (known_before, known_after, &known.hint) == (before, after, &one.hint)
        });
        let name = name.map(str::to_owned);
        match same {
            Some((known, names)) => {
                known.also.extend(one.origin.map(|origin| (origin, String::new())));
                names.extend(name.filter(|name| !names.contains(name)));
            }
            None => once.push((one, name.into_iter().collect())),
        }
    }
    let named = once.into_iter().map(|(one, names)| match names.as_slice() {
        [] | [_] => one,
        names => {
            let (before, _, after) = around_group(&one.message);
            let after = if before.is_empty() { of_several(after) } else { after.to_owned() };
            let message = format!("{before}groups '{}'{after}", names.join("', '"));
            Diagnostic { message, ..one }
        }
    });
    named.collect()
}

/// What is said of one, of several.
fn of_several(text: &str) -> String {
    const VERBS: [(&str, &str); 5] = [
        (" is ", " are "),
        (" has ", " have "),
        (" gets ", " get "),
        (" uses ", " use "),
        (" asks ", " ask "),
    ];
    let verb = VERBS.iter().find_map(|(one, several)| Some(format!("{several}{}", text.strip_prefix(one)?)));
    verb.unwrap_or_else(|| text.to_owned()).replacen(": it ", ": each ", 1)
}

/// What stands before and after the first group that a message names, and the name.
fn around_group(message: &str) -> (&str, Option<&str>, &str) {
    let parts = message.split_once("group '").and_then(|(before, rest)| {
        let (name, after) = rest.split_once('\'')?;
        Some((before, Some(name), after))
    });
    parts.unwrap_or((message, None, ""))
}

fn directory(args: &args::StateArgs) -> PathBuf {
    args.state.clone().unwrap_or_else(apply::state_directory)
}

/// The history, to add to it.
fn state(args: &args::StateArgs) -> Result<State, Failure> {
    Ok(State::open(directory(args))?)
}

/// The history, to look at it, which needs no right to change it.
pub fn history_of(args: &args::StateArgs) -> State {
    State::peek(directory(args))
}
