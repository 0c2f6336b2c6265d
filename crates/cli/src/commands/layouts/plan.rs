//! `plan`: what a layout would change, on this machine or on a described one.

use std::fmt::Write;

use ::plan::{Anybody, LintKind, MachineFacts, Observed, Place, Plan, Problem, SeenHierarchy, Step};
use apply::{Running, Target};
use kernel::Host;
use layout::Diagnostic;
use serde_json::json;
use settings::Version;
use units::hint::Command;

use super::{
    Layout,
    blocks::{Blocks, Scene},
    history_of, impossible, planned, read, rules,
    status::waiting,
    warn,
};
use crate::{
    args, commands,
    failure::Failure,
    output::{self, Paint},
};

pub fn plan(args: &args::PlanArgs, as_json: bool) -> Result<(), Failure> {
    let layout = read(&args.layout)?;
    if args.machine.is_empty() { here(args, &layout, as_json) } else { elsewhere(args, &layout, as_json) }
}

fn here(args: &args::PlanArgs, layout: &Layout<'_>, as_json: bool) -> Result<(), Failure> {
    let (host, state, running) = (commands::host_even_unmounted()?, history_of(&args.state), Running::new());
    let plan = planned(layout, &host, &state)?;
    // who may not read the history was warned of that by `planned`
    let pending = apply::pending(&state, Target { host: &host, system: &running }).ok().flatten();
    let misplaced = rules::misplaced(&layout.desired, &host);
    if as_json {
        let mut answer = json!(plan);
        answer["pending"] = json!(pending);
        answer["misplaced"] = json!(misplaced);
        return output::json(&answer);
    }
    warn(&plan, layout);
    if plan.empties(&layout.desired) {
        output::warning(&format!(
            "{}\nhint: apply does it only with --yes: {}",
            undoes_all(layout),
            yes(layout)
        ));
    }
    rules::warn(&misplaced, layout);
    if args.form == args::PlanForm::Cgset {
        return output::text(&::plan::as_cgset(&plan));
    }
    let pending = pending.map(|pending| format!("{}\n", waiting(&pending))).unwrap_or_default();
    let outside = plan.lints.iter().any(|lint| lint.kind == LintKind::Outside) || !misplaced.is_empty();
    let shown = match plan.steps.is_empty() {
        true => nothing_to_do(outside).to_owned(),
        false => on_this_machine(&plan, &host, args.verbose),
    };
    output::text(&format!("{pending}{shown}"))
}

/// What a layout comes to that changes nothing; `outside`: processes that are not in their groups were warned of.
pub fn nothing_to_do(outside: bool) -> &'static str {
    match outside {
        true => {
            "nothing to do for the groups, but not all processes are where the layout wants them: see the warnings\n"
        }
        false => "nothing to do: the machine is as the layout says\n",
    }
}

/// [`shown`], on this machine.
pub fn on_this_machine(plan: &Plan, host: &Host, verbose: bool) -> String {
    let current = |place: &Place, file: &str| now(host, place, file);
    let scene = Scene { hierarchies: &seen(host), current: &current, facts: &system::Live };
    shown(plan, scene, verbose, Paint::stdout())
}

/// What [`Plan::empties`] means, in words.
pub fn undoes_all(layout: &Layout<'_>) -> String {
    format!("{} has no groups: it undoes everything that earlier layouts applied", layout.path.display())
}

/// The command that applies a layout without groups.
pub fn yes(layout: &Layout<'_>) -> Command {
    Command::ringfence("apply --yes").arg(layout.path.display().to_string())
}

fn elsewhere(args: &args::PlanArgs, layout: &Layout<'_>, as_json: bool) -> Result<(), Failure> {
    let observed = Observed::empty(if args.v1 { Version::V1 } else { Version::V2 });
    let machine = commands::machine::listings(&args.machine)?;
    let facts = MachineFacts(&machine);
    let plan = ::plan::plan(&layout.desired, &machine, &observed, &facts, &Anybody);
    let plan = plan.map_err(|problems| {
        impossible(layout, &problems.iter().map(Problem::diagnostic).collect::<Vec<Diagnostic>>())
    })?;
    if as_json {
        return output::json(&plan);
    }
    warn(&plan, layout);
    let scene = Scene { hierarchies: &observed.hierarchies, current: &|_, _| None, facts: &facts };
    output::text(&match args.form {
        args::PlanForm::Cgset => ::plan::as_cgset(&plan),
        args::PlanForm::Steps => shown(&plan, scene, args.verbose, Paint::stdout()),
    })
}

/// What a file contains now; `None` in a group that is yet to be made.
pub fn now(host: &Host, place: &Place, file: &str) -> Option<String> {
    let at = host.hierarchies().get(place.hierarchy)?;
    host.kernel().read(at, &place.path, file).ok()
}

/// The hierarchies that a plan for this machine counts.
pub fn seen(host: &Host) -> Vec<SeenHierarchy> {
    apply::hierarchies(Target { host, system: &Running::new() }).hierarchies
}

/// A block per group and a count; with `verbose` also every step in its order, with its reason.
pub fn shown(plan: &Plan, scene: Scene<'_>, verbose: bool, paint: Paint) -> String {
    if plan.steps.is_empty() {
        return nothing_to_do(false).to_owned();
    }
    let blocks = Blocks::of(&plan.steps, scene);
    let mut text = blocks.shown(paint);
    if verbose {
        text.push_str("\nSteps, in this order:\n");
        for (number, step) in (1..).zip(&plan.steps) {
            let place =
                if scene.hierarchies.len() > 1 { label(step, scene.hierarchies) } else { String::new() };
            // writing to a String never fails
            let _ = writeln!(text, "{number:4}. {}{place}\n      {}", step.action, step.why);
        }
    }
    let (add, change, remove) = blocks.counts();
    let _ = writeln!(text, "\nPlan: {add} to add, {change} to change, {remove} to remove");
    text
}

/// ` [memory]` of a step that is the same in each hierarchy; a file's name says it by itself.
fn label(step: &Step, hierarchies: &[SeenHierarchy]) -> String {
    let file = matches!(step.action, ::plan::Action::Write { .. } | ::plan::Action::SetDevices { .. });
    let at = step.action.place().filter(|_| !file).and_then(|place| hierarchies.get(place.hierarchy));
    at.map_or_else(String::new, |at| format!(" [{}]", name_of(at)))
}

/// A hierarchy by its controllers, its name, or `v2`.
pub fn name_of(at: &SeenHierarchy) -> String {
    match (&at.name, at.version) {
        (Some(name), _) => format!("name={name}"),
        (None, Version::V2) => "v2".to_owned(),
        (None, version) => {
            let names = at.controllers.iter().filter_map(|controller| controller.name(version));
            names.collect::<Vec<_>>().join(",")
        }
    }
}
