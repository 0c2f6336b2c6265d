//! `simulate`: what resizing would do for a layout's elastic groups, beside other rules.

use std::{fmt::Write as _, fs, path::Path};

use layout::{CpuAmount, CpuDemand, CpuSpec, Desired, Pool};
use monitor::{Log, Sample, rates};
use policy::{Elastic, Sizes, Units, static_sizes};
use serde_json::json;
use simulator::{Kind, Load, Outcome, Rule};
use topology::Machine;
use units::CpuSet;

use super::layouts::desired;
use crate::{args, failure::Failure, output};

/// The field that a trace is read from.
const FIELD: &str = "cpu.usage";
/// The weight of a group that names none.
const WEIGHT: u32 = 100;

pub fn simulate(args: &args::Simulate, as_json: bool) -> Result<(), Failure> {
    let desired = desired(&args.layout)?;
    let machine =
        if args.machine.is_empty() { Machine::live()? } else { super::machine::listings(&args.machine)? };
    let groups = elastic(&desired, &machine, &args.layout)?;
    let wrong = |error: policy::Error| Failure::usage(format!("{}: {error}", args.layout.display()));
    let units =
        Units::of(&machine, &machine.online().difference(&taken(&desired, &machine))).map_err(wrong)?;
    let shares = shares(&groups, &units).map_err(wrong)?;
    let mut loads: Vec<Load> = Vec::new();
    if let Some(log) = &args.trace {
        loads.push(recorded(log, &groups)?);
    }
    let cpus = (units.len() * units.width()) as f64;
    let kinds = kinds(args);
    loads.extend(kinds.into_iter().map(|kind| kind.load(&shares, cpus, args.seed)));
    let outcomes = simulator::simulate(&groups, &units, &loads, &rules(&args.against)).map_err(wrong)?;
    if let Some(path) = &args.html {
        let page = page(args, &groups, &loads, &outcomes);
        fs::write(path, page)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    if as_json {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        return output::json(&json!({ "groups": names, "outcomes": outcomes }));
    }
    output::text(&table(&outcomes))
}

/// The layout's groups with `min` and `max`, in its order.
fn elastic(desired: &Desired, machine: &Machine, path: &Path) -> Result<Vec<Elastic>, Failure> {
    let online = machine.online().len();
    let groups = desired.groups.iter().filter_map(|group| match spec(group)? {
        CpuSpec { amount: CpuAmount::Between { min, max }, weight, .. } => Some(Elastic {
            name: group.name.to_string(),
            min: *min,
            max: max.at().unwrap_or(online).min(online).max(*min),
            weight: weight.unwrap_or(WEIGHT),
            borrows: group.demands.is_idle(),
        }),
        _ => None,
    });
    let groups: Vec<Elastic> = groups.collect();
    if groups.is_empty() {
        return Err(Failure::usage(format!("{} has no elastic groups", path.display()))
            .hint("give groups cpus = { min = 2, max = 8, weight = 100 }"));
    }
    let inside = |one: &&Elastic| {
        let below = |other: &Elastic| units::group_path::is_below(&one.name, &other.name);
        groups.iter().any(below)
    };
    if let Some(inner) = groups.iter().find(inside) {
        return Err(Failure::usage(format!("group '{}' is elastic inside an elastic group", inner.name))
            .hint("give only one of them min and max: the simulation divides the machine once"));
    }
    Ok(groups)
}

fn spec(group: &layout::Group) -> Option<&CpuSpec> {
    match group.demands.cpus.as_ref().map(|cpus| &cpus.value) {
        Some(CpuDemand::Some(spec)) => Some(spec),
        _ => None,
    }
}

/// CPUs that other groups have for themselves: those that are named, and of numbers the last ones.
fn taken(desired: &Desired, machine: &Machine) -> CpuSet {
    let mut taken = CpuSet::new();
    let mut count = 0;
    for group in &desired.groups {
        let apart =
            group.demands.exclusive || spec(group).is_some_and(|spec| spec.pool == Some(Pool::Exclusive));
        match group.demands.cpus.as_ref().map(|cpus| &cpus.value) {
            Some(CpuDemand::These(cpus)) if apart => taken = taken.union(cpus),
            Some(CpuDemand::OfNodes(nodes)) if apart => taken = taken.union(&machine.cpus_of_nodes(nodes)),
            Some(CpuDemand::Some(CpuSpec { amount: CpuAmount::Count(number), .. })) if apart => {
                count += number
            }
            _ => {}
        }
    }
    let free: Vec<usize> = machine.online().difference(&taken).iter().collect();
    let last: CpuSet = free.into_iter().rev().take(count).collect();
    taken.union(&last)
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

/// What a log says that the groups used. A group that is not in it requests nothing, which is said.
fn recorded(directory: &Path, groups: &[Elastic]) -> Result<Load, Failure> {
    let log = Log::open(directory)?;
    let mut samples = log.since(std::time::SystemTime::UNIX_EPOCH);
    let mut uses: Vec<Vec<(f64, f64)>> = vec![Vec::new(); groups.len()];
    let (mut before, mut began): (Option<Sample>, _) = (None, None);
    while let Some(sample) = samples.next_sample()? {
        let began = *began.get_or_insert(sample.at);
        let since = sample.at.zip(began).and_then(|(at, began)| at.duration_since(began).ok());
        if let (Some(before), Some(since)) = (&before, since) {
            for (group, uses) in groups.iter().zip(&mut uses) {
                uses.extend(used(before, &sample, &group.name).map(|used| (since.as_secs_f64(), used)));
            }
        }
        before = Some(sample);
    }
    super::watching::warn_of(samples.torn());
    if uses.iter().all(Vec::is_empty) {
        return Err(Failure::usage(format!(
            "{} has no CPU use of the layout's elastic groups",
            directory.display()
        ))
        .hint("record it: ringfence record; names are those of the layout"));
    }
    for (group, _) in groups.iter().zip(&uses).filter(|(_, uses)| uses.is_empty()) {
        output::warning(&format!("group '{}' is not in the log: it requests nothing", group.name));
    }
    Ok(Load::recorded("recorded", &uses))
}

fn used(before: &Sample, after: &Sample, group: &str) -> Option<f64> {
    let row = after.groups.row(group)?;
    let column = after.groups.columns().first_named(FIELD)?;
    rates::between(&before.groups, &after.groups, row, column)?.value
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

fn page(args: &args::Simulate, groups: &[Elastic], loads: &[Load], outcomes: &[Outcome]) -> String {
    let panel = |one: &Outcome| {
        let demands = loads.iter().find(|load| load.name == one.load);
        let lines = groups.iter().enumerate().map(|(group, elastic)| report::Line {
            name: elastic.name.clone(),
            steps: one.points.iter().map(|point| (point.at, point.cpus[group] as f64)).collect(),
            beside: demands.map_or_else(Vec::new, |load| {
                let points = load.demands[group].iter().enumerate();
                points.map(|(step, demand)| (step as f64 * simulator::STEP, *demand)).collect()
            }),
        });
        let heading = format!("{} · {}", one.load, one.rule);
        report::Panel { heading, seconds: one.seconds, lines: lines.collect() }
    };
    report::panels_page(&report::Panels {
        title: format!("Simulation of {}", args.layout.display()),
        about: "CPUs of each group over time, and dotted what it requests.".to_owned(),
        unit: "CPUs".to_owned(),
        table: table(outcomes),
        panels: outcomes.iter().map(panel).collect(),
    })
}
