//! `plan`: what a layout would change, on this machine or on a described one.

use ::plan::{Anybody, LintKind, MachineFacts, Observed, Plan, Problem};
use answers::layouts::Planned;
use apply::{Running, Target};
use layout::Diagnostic;
use settings::Version;
use units::hint::Command;

use super::{
    Layout,
    blocks::{Scene, nothing_to_do, on_this_machine, shown},
    history_of, impossible, planned, read, rules, warn,
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
        return output::json_by_name(&Planned { plan, pending, misplaced });
    }
    warn(&plan, layout);
    if let Some(reason) = to_be_confirmed(layout, &plan) {
        output::warning(&format!("{reason}\nhint: apply does it only with --yes: {}", yes(layout)));
    }
    rules::warn(&misplaced, layout);
    if args.form == args::PlanForm::Cgset {
        return output::text(&::plan::as_cgset(&plan));
    }
    let pending = pending.map(|pending| format!("{}\n", pending)).unwrap_or_default();
    let outside = plan.lints.iter().any(|lint| lint.kind == LintKind::Outside) || !misplaced.is_empty();
    let shown = match plan.steps.is_empty() {
        true => nothing_to_do(outside).to_owned(),
        false => on_this_machine(&plan, &host, args.verbose),
    };
    output::text(&format!("{pending}{shown}"))
}

/// What is a mistake more often than a wish, in words.
pub fn to_be_confirmed(layout: &Layout<'_>, plan: &Plan) -> Option<String> {
    let path = layout.path.display();
    if plan.empties(&layout.desired) {
        return Some(format!("{path} has no groups: it undoes everything that earlier layouts applied"));
    }
    layout.desired.groups.iter().find_map(|group| {
        let unit = &group.demands.unit.as_ref().filter(|unit| unit.value.is_of_all())?.value;
        let all = format!("{unit} is all of the machine, also what the system and your login need");
        Some(format!("{path}: group '{}': {all}", group.name))
    })
}

/// The command that applies such a layout.
pub fn yes(layout: &Layout<'_>) -> Command {
    Command::ringfence("apply --yes").arg(layout.path.display().to_string())
}

fn elsewhere(args: &args::PlanArgs, layout: &Layout<'_>, as_json: bool) -> Result<(), Failure> {
    let observed = Observed::empty(if args.v1 { Version::V1 } else { Version::V2 });
    let machine = commands::listings::merged(&args.machine)?;
    let facts = MachineFacts(&machine);
    let plan = ::plan::plan(&layout.desired, &machine, &observed, &facts, &Anybody);
    let plan = plan.map_err(|problems| {
        impossible(layout, &problems.iter().map(Problem::diagnostic).collect::<Vec<Diagnostic>>())
    })?;
    super::schedule::possible(layout, &[], |of| {
        ::plan::unschedulable(of, &machine, &observed, &facts, &Anybody)
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
