//! `check`, `import`, `export`, `plan`, `apply`, `confirm`, `undo`, `history`, `status`: layouts, and what became of
//! them.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use apply::{Failure as ApplyFailure, Meta, Outcome, Running, State, Target};
use kernel::Host;
use layout::{Desired, Diagnostic, Severity, Source, Trust};
use plan::{MachineFacts, Observed, Plan};
use serde_json::json;
use settings::Version;
use system::Accounts;
use topology::Machine;

use super::host;
use crate::{
    args,
    failure::{ATTENTION, Failure},
    output,
};

/// How long another change is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

impl From<ApplyFailure> for Failure {
    fn from(failure: ApplyFailure) -> Failure {
        let hint = failure.hint();
        let partial = matches!(&failure, ApplyFailure::RolledBack { left, .. } if !left.is_empty());
        let told = Failure::new(&failure);
        let told = if partial { told.code(ATTENTION) } else { told };
        hint.into_iter().fold(told, Failure::hint)
    }
}

/// The layout at a path, with what is to be said of it; an error of its own ends here.
fn read(path: &Path) -> Result<(Desired, Vec<Source>), Failure> {
    let (reading, sources) = layout::read_path(path, Trust::of_this_process());
    if let Some(desired) = reading.desired {
        output::error(&layout::render(&reading.diagnostics, &sources));
        return Ok((desired, sources));
    }
    Err(refused(&reading.diagnostics, &sources, path))
}

fn refused(diagnostics: &[Diagnostic], sources: &[Source], path: &Path) -> Failure {
    output::error(&layout::render(diagnostics, sources));
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let noun = if errors == 1 { "error" } else { "errors" };
    Failure::new(format!("{} has {errors} {noun}; nothing was touched", path.display()))
}

pub fn check(args: &args::LayoutFile, as_json: bool) -> Result<(), Failure> {
    let (reading, sources) = layout::read_path(&args.layout, Trust::of_this_process());
    let failed = reading.desired.is_none();
    if as_json {
        output::json(&json!({ "diagnostics": reading.diagnostics }))?;
        return if failed {
            Err(Failure::new(format!("{} has errors", args.layout.display())))
        } else {
            Ok(())
        };
    }
    match reading.desired {
        Some(desired) => {
            output::error(&layout::render(&reading.diagnostics, &sources));
            output::text(&format!(
                "{} groups, {} rules: no error\n",
                desired.groups.len(),
                desired.all_rules().len()
            ))
        }
        None => Err(refused(&reading.diagnostics, &sources, &args.layout)),
    }
}

pub fn import(args: &args::LayoutFile) -> Result<(), Failure> {
    let (desired, _) = read(&args.layout)?;
    output::text(&layout::to_toml(&desired))
}

pub fn export(args: &args::Export) -> Result<(), Failure> {
    let (desired, sources) = read(&args.layout)?;
    let version = if args.v2 { Version::V2 } else { Version::V1 };
    let export = match args.to {
        args::ExportTo::Toml => return output::text(&layout::to_toml(&desired)),
        args::ExportTo::Cgconfig => layout::to_cgconfig(&desired, version, &system::Live),
        args::ExportTo::Cgrules => layout::to_cgrules(&desired),
        args::ExportTo::Cgset => layout::to_cgset(&desired, version, &system::Live),
    };
    output::error(&layout::render(&export.lost, &sources));
    output::text(&export.text)
}

pub fn plan(args: &args::PlanArgs, as_json: bool) -> Result<(), Failure> {
    let (desired, sources) = read(&args.layout)?;
    let plan = if args.machine.is_empty() {
        let host = host()?;
        made(&desired, &sources, &args.layout, &host)?
    } else {
        let machine = super::machine::listings(&args.machine)?;
        let observed = Observed::empty(if args.v1 { Version::V1 } else { Version::V2 });
        let planned = plan::plan(&desired, &machine, &observed, &MachineFacts(&machine), &plan::Anybody);
        planned.map_err(|problems| unplanned(&problems, &sources, &args.layout))?
    };
    if as_json {
        return output::json(&plan);
    }
    warn(&plan, &sources);
    output::text(&if args.form == args::PlanForm::Cgset { plan::as_cgset(&plan) } else { shown(&plan) })
}

/// The plan for this machine as it is now.
fn made(desired: &Desired, sources: &[Source], path: &Path, host: &Host) -> Result<Plan, Failure> {
    let running = Running::new();
    let target = Target { host, system: &running };
    let machine = Machine::live()?;
    let needs = plan::needs(desired, &apply::hierarchies(target));
    let devices = plan::devices(desired);
    let observed = apply::observe(target, &needs, devices.iter().map(String::as_str));
    plan::plan(desired, &machine, &observed, &system::Live, &Accounts::new())
        .map_err(|problems| unplanned(&problems, sources, path))
}

fn unplanned(problems: &[plan::Problem], sources: &[Source], path: &Path) -> Failure {
    let diagnostics: Vec<Diagnostic> = problems.iter().map(plan::Problem::diagnostic).collect();
    output::error(&layout::render(&diagnostics, sources));
    Failure::new(format!("{} can't be had on this machine; nothing was touched", path.display()))
}

fn warn(plan: &Plan, sources: &[Source]) {
    let diagnostics: Vec<Diagnostic> = plan.lints.iter().map(plan::Lint::diagnostic).collect();
    output::error(&layout::render(&diagnostics, sources));
}

fn shown(plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let _ = writeln!(text, "{}\n    {}", step.action, step.why);
    }
    if plan.steps.is_empty() {
        text.push_str("nothing to do: the machine is as the layout asks\n");
    }
    text
}

fn state(args: &args::StateArgs) -> Result<State, Failure> {
    Ok(State::open(args.state.clone().unwrap_or_else(|| PathBuf::from(apply::STATE)))?)
}

pub fn apply(args: &args::Apply, as_json: bool) -> Result<(), Failure> {
    let (desired, sources) = read(&args.layout)?;
    let host = host()?;
    if host.needs_unit() {
        kernel::ensure_unit(&host)?;
    }
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    let state = state(&args.state)?;
    let lock = state.lock(PATIENCE)?;
    recovered(&lock, target)?;
    let plan = made(&desired, &sources, &args.layout, &host)?;
    warn(&plan, &sources);
    let meta = Meta {
        by: apply::By::caller(),
        what: format!("layout {}", args.layout.display()),
        confirm_within: None,
    };
    let outcome = match args.confirm {
        None => apply::execute(&lock, target, &plan, &meta)?,
        Some(within) => {
            let seconds = within.as_secs();
            let directory = args.state.state.clone().unwrap_or_else(|| PathBuf::from(apply::STATE));
            let reverter = move |generation: u32| {
                let mut command = Command::new("/proc/self/exe");
                command.arg("revert-unless-confirmed").arg(generation.to_string()).arg(seconds.to_string());
                command.arg("--state").arg(&directory);
                command
            };
            apply::execute_unless_reverted(&lock, target, &plan, &meta, seconds, &reverter)?
        }
    };
    told(&outcome, as_json)?;
    if let (Some(within), Some(generation), false) = (args.confirm, outcome.generation, as_json) {
        output::text(&format!(
            "undone in {} s unless you say: ringfence confirm {generation}\n",
            within.as_secs()
        ))?;
    }
    Ok(())
}

/// What an earlier change left is told before anything else.
fn recovered(lock: &apply::Lock, target: Target<'_>) -> Result<(), Failure> {
    for recovered in apply::recover(lock, target)? {
        let left = if recovered.left.is_empty() {
            String::new()
        } else {
            format!(": {}", recovered.left.join("; "))
        };
        output::warning(&format!(
            "generation {} was broken off, and was put back{left}",
            recovered.generation
        ));
    }
    Ok(())
}

fn told(outcome: &Outcome, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(outcome);
    }
    for difference in &outcome.differences {
        let (file, asked, held) = (&difference.file, &difference.asked, &difference.held);
        output::warning(&format!("{file}: asked for {asked}, the kernel holds {held}"));
    }
    for thread in &outcome.unmoved {
        output::warning(&format!(
            "kernel thread {} ({}) stays on CPUs {}",
            thread.thread, thread.comm, thread.cpus
        ));
    }
    match outcome.generation {
        Some(generation) => output::text(&format!("generation {generation}: {} steps done\n", outcome.steps)),
        None => output::text("nothing to do: the machine is as the layout asks\n"),
    }
}

pub fn confirm(args: &args::Generation, as_json: bool) -> Result<(), Failure> {
    let host = host()?;
    let running = Running::new();
    let lock = state(&args.state)?.lock(PATIENCE)?;
    let generation = apply::confirm(&lock, Target { host: &host, system: &running }, args.generation)?;
    if as_json {
        output::json(&json!({ "confirmed": generation }))
    } else {
        output::text(&format!("generation {generation} stays\n"))
    }
}

pub fn undo(args: &args::Generation, as_json: bool) -> Result<(), Failure> {
    let host = host()?;
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    let lock = state(&args.state)?.lock(PATIENCE)?;
    recovered(&lock, target)?;
    let meta = Meta { by: apply::By::caller(), what: "undo".to_owned(), confirm_within: None };
    told(&apply::undo(&lock, target, args.generation, &meta)?, as_json)
}

pub fn revert(args: &args::Revert) -> Result<(), Failure> {
    let host = host()?;
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    apply::revert_unless_confirmed(&state(&args.state)?, target, args.generation, args.seconds)?;
    Ok(())
}

pub fn history(args: &args::StateArgs, as_json: bool) -> Result<(), Failure> {
    let records = apply::history(&state(args)?)?;
    if as_json {
        let rows: Vec<_> =
            records.iter().map(|record| json!({ "head": record.head, "result": record.result })).collect();
        return output::json(&rows);
    }
    let mut text = String::new();
    for record in &records {
        let head = &record.head;
        let ended =
            record.result.as_ref().map_or("under way".to_owned(), |result| ending(result.ending).to_owned());
        let _ = writeln!(
            text,
            "{:4}  {}  {:10}  {} steps  {ended}  {}",
            head.generation,
            head.at,
            head.by.login.as_deref().unwrap_or("-"),
            head.steps,
            head.what
        );
    }
    output::text(&text)
}

fn ending(ending: apply::Ending) -> &'static str {
    match ending {
        apply::Ending::Done => "done",
        apply::Ending::RolledBack => "rolled back",
        apply::Ending::Partly => "partly rolled back",
        apply::Ending::NotBegun => "not begun",
        apply::Ending::LostAtBoot => "lost at boot",
    }
}

pub fn status(args: &args::StateArgs, as_json: bool) -> Result<u8, Failure> {
    let host = host()?;
    let running = Running::new();
    let groups = apply::status(&state(args)?, Target { host: &host, system: &running })?;
    let drift = groups.iter().any(|group| !group.drift.is_empty());
    if as_json {
        output::json(&groups)?;
    } else {
        let mut text = String::new();
        for group in &groups {
            let memory =
                group.memory.map(|bytes| format!(", {} of memory", units::Bytes(bytes))).unwrap_or_default();
            let _ = writeln!(
                text,
                "{}: generation {}, {} tasks{memory}",
                group.group,
                group.generation,
                group.tasks.len()
            );
            for drift in &group.drift {
                let _ = writeln!(text, "    drift: {drift}");
            }
        }
        output::text(&text)?;
    }
    Ok(if drift { ATTENTION } else { 0 })
}
