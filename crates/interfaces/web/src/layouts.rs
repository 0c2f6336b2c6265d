//! Layouts: checked, planned and applied by the program's own commands, on a file of the browser's text.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use answers::{
    Diagnostic, Problem, Severity,
    layouts::{Confirmed, Done},
};
use apply::{Running, Target};
use kernel::{Host, Real};
use plan::Action;
use units::{CpuSet, hint::Command};

use crate::{
    api::{
        layouts::{self as api, Apply, Checked, Confirm, LayoutFile, Outcome, Planned, Step, Undo},
        machine::{Owners, OwnersSource},
    },
    history,
    program::{Printed, Program},
    sample::millis,
};

/// Where the machine's layout is.
pub const DIRECTORY: &str = "/etc/ringfence";
const FILE: &str = "layout.toml";
/// Bytes of a layout.
const LARGEST: usize = 4 << 20;
/// Files of applied layouts that stay: a record names the file of a layout with rules.
const KEPT: usize = 50;

/// A layout's text in a file of its own, which is gone with this.
pub struct TextFile {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl TextFile {
    /// Writes it, readable by this user alone.
    ///
    /// # Errors
    /// It is too large, or there is no room.
    pub fn new(text: &str) -> Result<TextFile, Problem> {
        if text.len() > LARGEST {
            return Err(Problem::new(413, "a layout has at most 4 MiB"));
        }
        let failed = |error: io::Error| Problem::unavailable(format!("no temporary file: {error}"));
        let directory = tempfile::Builder::new().prefix("ringfence-web").tempdir().map_err(failed)?;
        let path = directory.path().join(FILE);
        write(&path, text).map_err(failed)?;
        Ok(TextFile { directory, path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file is has no meaning for who typed its text.
    pub fn without_directory(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.directory.path().display()), "")
    }

    fn of_text(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        for one in &mut diagnostics {
            one.message = self.without_directory(&one.message);
            one.hint = one.hint.as_ref().map(|hint| self.without_directory(hint));
            let also = one.also.iter_mut().map(|also| &mut also.origin);
            for origin in one.origin.iter_mut().chain(also) {
                origin.file = self.without_directory(&origin.file);
            }
        }
        diagnostics
    }

    /// A refusal in words of the text.
    pub fn refusal(&self, problem: Problem) -> Problem {
        Problem {
            message: self.without_directory(&problem.message),
            hint: problem.hint.as_ref().map(|hint| self.without_directory(hint)),
            diagnostics: self.of_text(problem.diagnostics),
            ..problem
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The layout to begin with: the one in effect, where its file is still there, else the machine's.
pub fn file(program: &Program) -> LayoutFile {
    let path = in_effect(program).unwrap_or_else(|| Path::new(DIRECTORY).join(FILE));
    let shown = path.display().to_string();
    let size = fs::metadata(&path).map_or(0, |file| file.len());
    if size > LARGEST as u64 {
        let problem = Some(format!("{shown} is larger than 4 MiB"));
        return LayoutFile { path: shown, text: String::new(), exists: true, problem };
    }
    match fs::read_to_string(&path) {
        Ok(text) => LayoutFile { path: shown, text, exists: true, problem: None },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            LayoutFile { path: shown, text: String::new(), exists: false, problem: None }
        }
        Err(error) => LayoutFile {
            path: shown,
            text: String::new(),
            exists: true,
            problem: Some(format!("cannot read it: {error}")),
        },
    }
}

/// The file of the layout in effect, as the history has it.
fn in_effect(program: &Program) -> Option<PathBuf> {
    let host = Host::even_without_hierarchies(Box::new(Real::new())).ok()?;
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    let path = apply::layout_in_effect(&history::state(program), target).ok()??.file?;
    let path = if path.is_dir() { path.join(FILE) } else { path };
    path.is_file().then_some(path)
}

/// What the checker says.
///
/// # Errors
/// The command has no answer.
pub fn check(text: &str, program: &Program) -> Result<Checked, Problem> {
    let file = TextFile::new(text)?;
    let printed = program.run::<OsString>(["check".into(), "--json".into(), file.path().into()])?;
    let (diagnostics, groups, rules) = match printed.json::<answers::layouts::Checked>() {
        Ok(found) => {
            (found.diagnostics.into_iter().map(Diagnostic::from).collect(), found.groups, found.rules)
        }
        // a refusal with diagnostics is an answer for who edits a layout
        Err(problem) if !problem.diagnostics.is_empty() => (problem.diagnostics, 0, 0),
        Err(problem) => return Err(problem),
    };
    let diagnostics = file.of_text(diagnostics);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    Ok(Checked { diagnostics, errors, groups, rules })
}

/// What applying a layout would do. `now`: who owns which CPU before.
///
/// # Errors
/// The command has no answer.
pub fn plan(
    text: &str,
    program: &Program,
    now: &Owners,
    machine: &topology::Machine,
) -> Result<Planned, Problem> {
    let file = TextFile::new(text)?;
    let command = Command::ringfence("plan").arg(FILE).to_string();
    let mut args: Vec<OsString> = vec!["plan".into(), "--json".into(), file.path().into()];
    args.extend(program.state_option());
    let generation = history::newest(program).unwrap_or(0);
    let printed = program.run(args.clone())?;
    let answers::layouts::Planned { plan: found, pending, .. } = match printed.json() {
        Ok(found) => found,
        Err(problem) if !problem.diagnostics.is_empty() => {
            let diagnostics = file.of_text(problem.diagnostics);
            return Ok(Planned { diagnostics, plan: None, pending: None, command });
        }
        Err(problem) => return Err(file.refusal(problem)),
    };
    args.retain(|word| word != "--json");
    let shown = program.run(args)?;
    let checked = check(text, program)?;
    let mut diagnostics = checked.diagnostics;
    diagnostics.extend(file.of_text(found.lints.iter().map(|lint| lint.diagnostic().into()).collect()));
    let text = file.without_directory(&String::from_utf8_lossy(&shown.out));
    let steps: Vec<Step> =
        found.steps.iter().enumerate().map(|(place, step)| self::step(place + 1, step)).collect();
    let restores = steps.iter().any(|step| step.restores);
    let assignments: Vec<api::Assignment> = found.assignments.into_iter().map(assignment).collect();
    let after = after(now, &steps, &assignments, machine);
    Ok(Planned {
        diagnostics,
        pending: pending.and_then(|_| history::history(program).ok().and_then(|history| history.pending)),
        plan: Some(api::Plan {
            empties: checked.groups == 0 && restores,
            steps,
            assignments,
            reserved: found.reserved.to_string(),
            before: now.clone(),
            after,
            text,
            generation,
        }),
        command,
    })
}

fn assignment(one: plan::Assignment) -> api::Assignment {
    api::Assignment {
        group: one.group.to_string(),
        cpus: one.cpus.map(|cpus| cpus.to_string()),
        mems: one.mems.map(|mems| mems.to_string()),
        exclusive: one.exclusive,
        why: one.why,
    }
}

fn step(number: usize, step: &plan::Step) -> Step {
    let action = step.action.word();
    let (file, text, names) = match &step.action {
        Action::Write { file, text, .. } => (Some(file.clone()), Some(text.clone()), None),
        Action::WriteDropIn { path, text, .. } => (Some(path.display().to_string()), text.clone(), None),
        Action::SetKnob { knob, text, .. } => (Some(knob.clone()), Some(text.clone()), None),
        Action::SetDevices { rule, .. } => (None, Some(rule.clone()), None),
        Action::Mount { path, .. } => (Some(path.display().to_string()), None, None),
        Action::EnableControllers { names, .. } | Action::DisableControllers { names, .. } => {
            (None, None, Some(names.join(" ")))
        }
        _ => (None, None, None),
    };
    let words = action.replace('-', " ");
    let what = match (&file, &text, &names) {
        (Some(file), Some(text), _) => format!("{file} = {}", text.trim_end()),
        (Some(of), None, _) | (None, _, Some(of)) => format!("{words} {of}"),
        (None, _, None) => match step.action.place() {
            Some(place) => format!("{words} {}", place.path),
            None => words,
        },
    };
    Step {
        number,
        group: step.group.to_string(),
        what,
        why: step.why.clone(),
        file,
        before: step.before.clone(),
        text,
        restores: step.restores,
        action: action.to_owned(),
    }
}

/// Who would own which CPU: what the plan assigns, and what other groups that stay have now.
fn after(
    now: &Owners,
    steps: &[Step],
    assignments: &[api::Assignment],
    machine: &topology::Machine,
) -> Owners {
    let parsed = |cpus: &str| cpus.parse::<CpuSet>().unwrap_or_default();
    let is_removed =
        |group: &str| steps.iter().any(|step| step.action == "remove-group" && step.group == group);
    let assigned = |group: &str| assignments.iter().any(|one| one.group == group && one.cpus.is_some());
    let is_lifted = |group: &str| {
        steps
            .iter()
            .any(|step| step.restores && step.group == group && step.file.as_deref() == Some(plan::CPUS))
    };
    let stay = now
        .owners
        .iter()
        .filter(|owner| !is_removed(&owner.group) && !assigned(&owner.group) && !is_lifted(&owner.group));
    let mut allowed: Vec<(String, CpuSet, bool)> =
        stay.map(|owner| (owner.group.clone(), parsed(&owner.cpus), owner.exclusive)).collect();
    let new = assignments
        .iter()
        .filter_map(|one| Some((one.group.clone(), parsed(one.cpus.as_ref()?), one.exclusive)));
    allowed.extend(new);
    allowed.sort_by(|one, other| one.0.cmp(&other.0));
    crate::division::Division::default().owners(
        allowed,
        machine,
        (OwnersSource::Plan, millis(SystemTime::now()), now.version),
    )
}

/// Applies a layout.
///
/// # Errors
/// The history is another one; the command's refusal.
pub fn apply(call: &Apply, program: &Program) -> Result<Outcome, Problem> {
    if call.text.len() > LARGEST {
        return Err(Problem::new(413, "a layout has at most 4 MiB"));
    }
    if call.confirm_seconds == Some(0) || call.confirm_seconds.is_some_and(|seconds| seconds > 86400) {
        return Err(Problem::invalid("the time to confirm is 1 s to 1 day"));
    }
    history::expect(program, call.expected_generation)?;
    let path = kept(&call.text, program)?;
    let confirm = call.confirm_seconds.map(|seconds| format!("{seconds}s"));
    let mut args: Vec<OsString> = vec!["apply".into(), "--json".into()];
    args.extend(call.empties.then(|| "--yes".into()));
    args.extend(confirm.iter().flat_map(|within| ["--confirm".into(), within.into()]));
    args.extend(program.state_option());
    args.extend(history::expectation(call.expected_generation));
    args.push(path.clone().into());
    let shown = path.display().to_string();
    let options = confirm.iter().flat_map(|within| ["--confirm", within.as_str()]);
    let command = Command::ringfence("apply").args(options).arg(&shown).to_string();
    let printed = program.run(args)?;
    let done = outcome(&printed, command);
    if done.is_err() {
        let _ = fs::remove_file(&path); // nothing names it
    }
    done
}

/// The file of a layout that is applied: beside the history, as a record may name it, or where that is refused nowhere.
fn kept(text: &str, program: &Program) -> Result<PathBuf, Problem> {
    let directory = history::state(program).directory().join("web");
    let failed = |error: io::Error| {
        Problem::new(403, format!("cannot write to {}: {error}", directory.display()))
            .hint("sudo ringfence web --write")
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string().replace(':', "");
    let path = directory.join(format!("layout-{now}.toml"));
    write(&path, text).map_err(failed)?;
    prune(&directory);
    Ok(path)
}

/// The oldest files go.
fn prune(directory: &Path) {
    let mut all: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    for old in all.iter().take(all.len().saturating_sub(KEPT)) {
        let _ = fs::remove_file(old); // it is tried again with the next one
    }
}

fn outcome(printed: &Printed, command: String) -> Result<Outcome, Problem> {
    let Done { outcome, undone_unless_confirmed_within: within, .. } = printed.json()?;
    let mut warnings = printed.warnings();
    warnings.extend(outcome.left.into_iter().filter(|left| !printed.error.contains(left.as_str())));
    let undone = within.map(|seconds| millis(SystemTime::now() + Duration::from_secs(seconds)));
    Ok(Outcome {
        generation: outcome.generation,
        steps: outcome.steps,
        warnings,
        undone_at_ms: undone,
        command,
    })
}

/// Keeps a change that waits for it.
///
/// # Errors
/// The command's refusal.
pub fn confirm(call: &Confirm, program: &Program) -> Result<Outcome, Problem> {
    let number = call.generation.to_string();
    let mut args: Vec<OsString> = vec!["confirm".into(), "--json".into()];
    args.extend(program.state_option());
    args.push(number.clone().into());
    let printed = program.run(args)?;
    let Confirmed { confirmed } = printed.json()?;
    Ok(Outcome {
        generation: Some(confirmed),
        steps: 0,
        warnings: printed.warnings(),
        undone_at_ms: None,
        command: Command::ringfence("confirm").arg(number).to_string(),
    })
}

/// Undoes.
///
/// # Errors
/// The history is another one; the command's refusal.
pub fn undo(call: &Undo, program: &Program) -> Result<Outcome, Problem> {
    history::expect(program, call.expected_generation)?;
    let number = call.to.map(|to| to.to_string());
    let mut args: Vec<OsString> = vec!["undo".into(), "--json".into()];
    args.extend(program.state_option());
    args.extend(history::expectation(call.expected_generation));
    args.extend(number.iter().map(Into::into));
    let command = Command::ringfence("undo").args(number.iter().map(String::as_str)).to_string();
    outcome(&program.run(args)?, command)
}
