//! `simulate`: what resizing would do for a layout's elastic groups, beside other rules, and power saving for its general
//! ones.

mod power;

mod trace;

use std::{fmt::Write as _, fs};

use ::plan::{Observed, Problem};
use experiment::simulator::{self, Kind, Load, Outcome, Point, Rule, Saved};
use layout::{CpuAmount, CpuDemand, Desired};
use policy::{Elastic, Scope, Sizes, Units, static_sizes};
use serde_json::json;
use settings::Version;
use topology::Machine;
use units::hint::Command;

use super::layouts::desired;
use crate::{args, failure::Failure, output};

/// The weight of a group that names none.
const WEIGHT: u32 = 100;

/// What was simulated.
#[derive(Default)]
struct Simulated {
    pools: Vec<Resized>,
    /// Loads of general groups, and what power saving does with them.
    general: Vec<(Load, Saved)>,
}

/// Groups that share CPUs.
struct Resized {
    groups: Vec<Elastic>,
    loads: Vec<Load>,
    outcomes: Vec<Outcome>,
}

pub fn simulate(args: &args::Simulate, as_json: bool) -> Result<(), Failure> {
    let desired = with_weights(desired(&args.layout)?);
    let machine =
        if args.machine.is_empty() { Machine::live()? } else { super::listings::merged(&args.machine)? };
    let scopes = plan::scopes(&desired, &machine, &Observed::empty(Version::V2));
    let scopes = scopes.map_err(|problems| impossible(args, &problems))?;
    let (saving, elastic): (Vec<Scope>, Vec<Scope>) =
        scopes.into_iter().partition(|scope| scope.saving.is_some());
    if elastic.is_empty() && !desired.power.saving {
        return Err(Failure::usage(format!("{} has no elastic groups", args.layout.display())).hint(
            "give groups cpus = { min = 2, max = 8, weight = 100 }, or the layout [power] with saving = true",
        ));
    }
    let are_several = elastic.len() > 1;
    let mut simulated = Simulated::default();
    for scope in &elastic {
        simulated.pools.push(resizing(args, &machine, scope, are_several)?);
    }
    for scope in &saving {
        simulated.general.extend(general(args, &machine, scope)?);
    }
    if let Some(path) = &args.html {
        fs::write(path, page(args, &simulated))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    if as_json {
        let groups = simulated.pools.iter().flat_map(|pool| &pool.groups);
        let names: Vec<&str> = groups.map(|group| group.name.as_str()).collect();
        let power: Vec<&Saved> = simulated.general.iter().map(|(_, saved)| saved).collect();
        let outcomes: Vec<&Outcome> = simulated.pools.iter().flat_map(|pool| &pool.outcomes).collect();
        return output::json(&json!({ "groups": names, "outcomes": outcomes, "power": power }));
    }
    output::text(&tables(&simulated))
}

/// Groups between bounds take part without a weight, too.
fn with_weights(mut desired: Desired) -> Desired {
    for group in &mut desired.groups {
        let is_apart = group.demands.exclusive;
        if let Some(CpuDemand::Some(spec)) = group.demands.cpus.as_mut().map(|cpus| &mut cpus.value)
            && matches!(spec.amount, CpuAmount::Between { .. })
            && !is_apart
        {
            spec.weight.get_or_insert(WEIGHT);
        }
    }
    desired
}

/// The plan's own words: it divides the machine.
fn impossible(args: &args::Simulate, problems: &[Problem]) -> Failure {
    let layout = args.layout.display();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let plan = Command::ringfence("plan").arg(layout.to_string());
    let listings = args.machine.iter().map(|listing| listing.display().to_string());
    let plan = listings.fold(plan, |plan, listing| plan.arg("--machine").arg(listing));
    Failure::usage(format!("{layout}: {}", texts.join("; "))).hint(plan.to_string())
}

fn resizing(
    args: &args::Simulate,
    machine: &Machine,
    scope: &Scope,
    are_several: bool,
) -> Result<Resized, Failure> {
    let most = scope.pool.len();
    let limited = |group: &Elastic| Elastic { max: group.max.min(most).max(group.min), ..group.clone() };
    let groups: Vec<Elastic> = scope.groups.iter().map(limited).collect();
    let units = Units::of(machine, &scope.pool).map_err(|error| wrong(args, &error))?;
    let shares = shares(&groups, &units).map_err(|error| wrong(args, &error))?;
    let mut loads = Vec::new();
    if let Some(log) = &args.trace {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        loads.push(trace::recorded(log, &names, "elastic")?);
    }
    let cpus = (units.len() * units.width()) as f64;
    loads.extend(kinds(args).into_iter().map(|kind| kind.load(&shares, cpus, args.seed)));
    if are_several {
        let above = groups.first().and_then(|group| units::group_path::parent(&group.name));
        let above = above.filter(|above| !above.is_empty()).unwrap_or("/");
        loads.iter_mut().for_each(|load| load.name = format!("{} in {above}", load.name));
    }
    let outcomes = simulator::simulate(&groups, &units, &loads, &rules(&args.against))
        .map_err(|error| wrong(args, &error))?;
    Ok(Resized { groups, loads, outcomes })
}

fn general(args: &args::Simulate, machine: &Machine, scope: &Scope) -> Result<Vec<(Load, Saved)>, Failure> {
    let start = power::saving(machine, scope).map_err(|error| wrong(args, &error))?;
    let mut loads = Vec::new();
    if let Some(log) = &args.trace {
        let names: Vec<&str> = scope.groups.iter().map(|group| group.name.as_str()).collect();
        loads.push(trace::recorded(log, &names, "general")?);
    }
    loads.extend(power::loads(&start, &kinds(args), args.seed));
    let save = |load: Load| {
        let saved = simulator::save(start.clone(), &load);
        (load, saved)
    };
    Ok(loads.into_iter().map(save).collect())
}

fn wrong(args: &args::Simulate, error: &policy::Error) -> Failure {
    Failure::usage(format!("{}: {error}", args.layout.display()))
}

/// Each group's static share and limit, in CPUs.
fn shares(groups: &[Elastic], units: &Units) -> Result<Vec<(f64, f64)>, policy::Error> {
    let sizes = groups.iter().map(|group| group.sizes(units)).collect::<Result<Vec<Sizes>, _>>()?;
    let wanted = sizes.iter().map(|size| size.min).sum();
    if wanted > units.len() {
        return Err(policy::Error::TooMuch { wanted, unit: units.word(), there: units.len() });
    }
    let shares = static_sizes(&sizes, units.len()).into_iter().map(|share| (share * units.width()) as f64);
    Ok(shares.zip(groups).map(|(share, group)| (share, group.max as f64)).collect())
}

fn kinds(args: &args::Simulate) -> Vec<Kind> {
    if args.synthetic.is_empty() {
        return if args.trace.is_some() { Vec::new() } else { Kind::ALL.to_vec() };
    }
    let kinds = args.synthetic.iter().flat_map(|kind| match kind {
        args::Synthetic::Constant => vec![Kind::Constant],
        args::Synthetic::Ramp => vec![Kind::Ramp],
        args::Synthetic::Square => vec![Kind::SquareShort, Kind::SquareMiddle, Kind::SquareLong],
        args::Synthetic::Pareto => vec![Kind::Pareto],
        args::Synthetic::Diurnal => vec![Kind::Diurnal],
    });
    kinds.collect()
}

fn rules(against: &[args::Against]) -> Vec<Rule> {
    if against.is_empty() {
        return Rule::ALL.to_vec();
    }
    let rule = |one: &args::Against| match one {
        args::Against::Static => Rule::Static,
        args::Against::Koordinator => Rule::Koordinator,
        args::Against::ScxLayered => Rule::Layered,
        args::Against::Lpmd => Rule::Lpmd,
        args::Against::Clairvoyant => Rule::Clairvoyant,
    };
    [Rule::Policy].into_iter().chain(against.iter().map(rule)).collect()
}

fn table(outcomes: &[Outcome]) -> String {
    let mut out = format!(
        "{:<12} {:<12} {:>7} {:>9} {:>7} {:>8} {:>5}\n",
        "load", "rule", "lost %", "stranded", "unused", "changes", "walk"
    );
    for one in outcomes {
        // a String takes everything
        let _ = writeln!(
            out,
            "{:<12} {:<12} {:>7.2} {:>9.2} {:>7.2} {:>8} {:>5}",
            one.load,
            one.rule,
            one.lost_percent,
            one.stranded_percent,
            one.unused_percent,
            one.changes,
            one.walk
        );
    }
    out
}

fn tables(simulated: &Simulated) -> String {
    let mut tables = Vec::new();
    tables.extend(simulated.pools.iter().map(|pool| table(&pool.outcomes)));
    if !simulated.general.is_empty() {
        let saved: Vec<Saved> = simulated.general.iter().map(|(_, saved)| saved.clone()).collect();
        tables.push(power::table(&saved));
    }
    tables.join("\n")
}

fn page(args: &args::Simulate, simulated: &Simulated) -> String {
    let line = |name: &str, points: &[Point], group: usize, demands: Option<&[f64]>| report::Line {
        name: name.to_owned(),
        steps: points.iter().map(|point| (point.at, point.cpus[group] as f64)).collect(),
        beside: demands
            .unwrap_or_default()
            .iter()
            .enumerate()
            .map(|(step, demand)| (step as f64 * simulator::STEP, *demand))
            .collect(),
    };
    let panel = |pool: &Resized, one: &Outcome| {
        let load = pool.loads.iter().find(|load| load.name == one.load);
        let demands = |group: usize| load.map(|load| load.demands[group].as_slice());
        let lines = pool.groups.iter().enumerate();
        report::Panel {
            heading: format!("{} · {}", one.load, one.rule),
            seconds: one.seconds,
            lines: lines
                .map(|(group, elastic)| line(&elastic.name, &one.points, group, demands(group)))
                .collect(),
        }
    };
    let general = |(load, saved): &(Load, Saved)| {
        let sum = |step: usize| (0..load.demands.len()).map(|group| load.demand(group, step)).sum();
        let demands: Vec<f64> = (0..load.steps()).map(sum).collect();
        report::Panel {
            heading: format!("{} · power saving", saved.load),
            seconds: saved.seconds,
            lines: vec![line("general groups", &saved.points, 0, Some(&demands))],
        }
    };
    let panels =
        simulated.pools.iter().flat_map(|pool| pool.outcomes.iter().map(move |one| panel(pool, one)));
    report::panels_page(&report::Panels {
        title: format!("Simulation of {}", args.layout.display()),
        about: "CPUs of each group over time, and dotted what it requests.".to_owned(),
        unit: "CPUs".to_owned(),
        table: tables(simulated),
        panels: panels.chain(simulated.general.iter().map(general)).collect(),
    })
}
