//! `plan`: what a layout would change, on this machine or on a described one.

use std::fmt::Write;

use ::plan::{Anybody, MachineFacts, Observed, Plan, Problem, SeenHierarchy, Step};
use apply::{Running, Target};
use kernel::Host;
use layout::Diagnostic;
use settings::Version;

use super::{Layout, answered, impossible, planned, read, warn};
use crate::{args, commands, failure::Failure, output};

pub fn plan(args: &args::PlanArgs, as_json: bool) -> Result<(), Failure> {
    answered(as_json, made(args, as_json))
}

fn made(args: &args::PlanArgs, as_json: bool) -> Result<(), Failure> {
    let layout = read(&args.layout)?;
    let (plan, hierarchies) = if args.machine.is_empty() {
        let host = commands::host_even_unmounted()?;
        (planned(&layout, &host)?, seen(&host))
    } else {
        let observed = Observed::empty(if args.v1 { Version::V1 } else { Version::V2 });
        (elsewhere(args, &layout, &observed)?, observed.hierarchies)
    };
    if as_json {
        return output::json(&plan);
    }
    warn(&plan, &layout);
    output::text(&match args.form {
        args::PlanForm::Cgset => ::plan::as_cgset(&plan),
        args::PlanForm::Steps => shown(&plan, &hierarchies),
    })
}

/// The hierarchies that a plan for this machine counts.
pub fn seen(host: &Host) -> Vec<SeenHierarchy> {
    apply::hierarchies(Target { host, system: &Running::new() }).hierarchies
}

/// The plan for a machine that is only described, on which there are no groups yet.
fn elsewhere(args: &args::PlanArgs, layout: &Layout<'_>, observed: &Observed) -> Result<Plan, Failure> {
    let machine = commands::machine::listings(&args.machine)?;
    let plan = ::plan::plan(&layout.desired, &machine, observed, &MachineFacts(&machine), &Anybody);
    plan.map_err(|problems| {
        impossible(layout, &problems.iter().map(Problem::diagnostic).collect::<Vec<Diagnostic>>())
    })
}

/// Every step with its reason, and with its hierarchy where there is more than one.
pub fn shown(plan: &Plan, hierarchies: &[SeenHierarchy]) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let place = if hierarchies.len() > 1 { label(step, hierarchies) } else { String::new() };
        // writing to a String never fails
        let _ = writeln!(text, "{}{place}\n    {}", step.action, step.why);
    }
    if plan.steps.is_empty() {
        text.push_str("nothing to do: the machine is as the layout asks\n");
    }
    text
}

/// ` [memory]` of a step that is the same in each hierarchy; a file's name tells by itself.
fn label(step: &Step, hierarchies: &[SeenHierarchy]) -> String {
    let file = matches!(step.action, ::plan::Action::Write { .. } | ::plan::Action::SetDevices { .. });
    let at = step.action.place().filter(|_| !file).and_then(|place| hierarchies.get(place.hierarchy));
    let words = at.map(|at| match (&at.name, at.version) {
        (Some(name), _) => format!("name={name}"),
        (None, Version::V2) => "v2".to_owned(),
        (None, version) => {
            let names = at.controllers.iter().filter_map(|controller| controller.name(version));
            names.collect::<Vec<_>>().join(",")
        }
    });
    words.map_or_else(String::new, |words| format!(" [{words}]"))
}
