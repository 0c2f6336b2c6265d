//! From what is desired and what the kernel holds to a plan: the parts of this crate in the order of the data's way.

use std::collections::{HashMap, HashSet};

use layout::{Desired, HostFacts};
use policy::Scope;
use settings::Facts;
use topology::Machine;
use units::{CpuSet, group_path};

use crate::{
    Action, Assignment, Lint, Observed, People, Place, Plan, Problem, Step, Upkeep, absent, budgets, cpusets,
    decided::{Decisions, decided, wanted},
    devices,
    drop_ins::DropIns,
    elastic, expand, homes, isolate,
    lints::{self, Looked},
    mounts, owners, power,
    resolve::{self, Landscape, Resolved},
    tree::{Exclusive, Tree},
    unit_partition, values,
};

/// Which CPUs the elastic groups share, and the general ones, on a machine as it is at first: as [`plan`] divides it.
///
/// # Errors
/// Every [`Problem`] with the division.
pub fn scopes(desired: &Desired, machine: &Machine, observed: &Observed) -> Result<Vec<Scope>, Vec<Problem>> {
    let desired = &*power::with_general(desired);
    let (mut problems, mut lints) = (Vec::new(), Vec::new());
    let land = Landscape::new(machine);
    let homes = homes::homes(desired, observed, &mut problems);
    let tree = Tree::new(&homes, observed, &mut problems);
    let mut resolved =
        resolve::resolve(desired, (machine, &land), observed, &tree, &mut problems, &mut lints);
    let scopes = divided(desired, machine, (&land, &tree), &mut resolved, &mut problems);
    if problems.is_empty() { Ok(scopes) } else { Err(problems) }
}

fn divided(
    desired: &Desired,
    machine: &Machine,
    (land, tree): (&Landscape, &Tree<'_>),
    resolved: &mut Resolved,
    problems: &mut Vec<Problem>,
) -> Vec<Scope> {
    elastic::check(tree, problems);
    let mut scopes = resolved.pools(tree, land);
    if problems.is_empty() {
        elastic::check_cores(tree, machine, &scopes, problems);
    }
    let general = power::settle(land, tree, resolved);
    power::check(desired, &general, tree, resolved, problems);
    scopes.extend(power::scope(desired, tree, resolved, general));
    scopes
}

/// What has to be done so that the machine is as desired.
///
/// # Errors
/// Every [`Problem`] at once; then nothing should be done.
pub fn plan(
    desired: &Desired,
    machine: &Machine,
    observed: &Observed,
    facts: &dyn Facts,
    people: &dyn People,
) -> Result<Plan, Vec<Problem>> {
    let desired = &*power::with_general(desired);
    let refusals = desired.assertions.refusals(&host(machine, observed));
    let mut problems: Vec<Problem> = refusals.into_iter().map(Problem::OtherMachine).collect();
    refuse(&mut problems)?;
    let mut lints = Vec::new();
    let (observed, mut steps) = mounts::mounted(desired, observed, &mut problems, &mut lints);

    let land = Landscape::new(machine);
    let mut homeless = Vec::new();
    let homes = homes::homes(desired, &observed, &mut homeless);
    let tree = Tree::new(&homes, &observed, &mut problems);
    let mut resolved =
        resolve::resolve(desired, (machine, &land), &observed, &tree, &mut problems, &mut lints);
    problems.extend(homeless);
    let scopes = divided(desired, machine, (&land, &tree), &mut resolved, &mut problems);
    homes::lints(&homes, &observed, &mut lints);
    lints::from_outside(&homes, &mut lints);
    expand::lints(desired, &observed, &mut lints);
    let values = values::read(&homes, machine, &observed, facts, &mut problems, &mut lints);
    budgets::check(&values, &observed, &mut problems);
    absent::check(&values, machine, &observed, &mut problems);

    let decisions = Decisions {
        homes: &homes,
        values: &values,
        tree: &tree,
        resolved: &resolved,
        observed: &observed,
        people,
    };
    steps.extend(group_steps(&decisions, &land, &mut problems, &mut lints));
    refuse(&mut problems)?;
    let looked = Looked {
        desired,
        machine,
        memory: facts.memory().or_else(|| machine.memory_total()),
        land: &land,
        observed: &observed,
        tree: &tree,
        resolved: &resolved,
        values: &values,
    };
    lints::find(&looked, &mut problems, &mut lints);
    refuse(&mut problems)?;
    let (mut steps, so) = with_drop_ins(&decisions, desired, steps, &mut lints)?;
    settle_before(&mut steps);
    let isolation = isolate::isolation(desired, &tree, &resolved, machine, &mut problems);
    if let Some(isolation) = &isolation {
        let of_knobs = isolate::steps(isolation, desired, (&observed, machine), &mut problems, &mut lints);
        steps.splice(0..0, of_knobs.before);
        steps.extend(of_knobs.behind);
    }
    refuse(&mut problems)?;
    let is_partition =
        |step: &&Step| matches!(&step.action, Action::Write { file, .. } if file == cpusets::PARTITION);
    Ok(Plan {
        partitions: so.iter().filter(is_partition).cloned().collect(),
        decided: so,
        steps,
        assignments: assignments(&tree, &resolved),
        upkeep: Upkeep {
            elastic: scopes,
            isolation,
            latencies: elastic::latencies(&tree),
            ranges: values.iter().filter_map(|valued| valued.own_range().cloned()).collect(),
        },
        reserved: resolved.reserved,
        lints,
        dropped: crate::Dropped::default(),
    })
}

fn refuse(problems: &mut Vec<Problem>) -> Result<(), Vec<Problem>> {
    if problems.is_empty() { Ok(()) } else { Err(std::mem::take(problems)) }
}

/// What groups need: their directories, device rules, CPUs, values and owners.
fn group_steps(
    of: &Decisions<'_>,
    land: &Landscape,
    problems: &mut Vec<Problem>,
    lints: &mut Vec<Lint>,
) -> Vec<Step> {
    let rules = devices::steps(of.values, of.observed, problems);
    let mut steps = devices::between(homes::steps(of.homes, of.observed, problems), rules);
    let renewed = renewed(&steps);
    if problems.is_empty() {
        steps.extend(cpusets::steps(land, of.tree, of.resolved, of.observed, problems));
    }
    steps.extend(values::steps(of.values, of.observed, problems, lints));
    steps.extend(owners::steps(of.homes, of.observed, of.people, &renewed, problems));
    steps
}

/// The steps with those for drop-in files of units, and what is so already.
fn with_drop_ins(
    of: &Decisions<'_>,
    desired: &Desired,
    steps: Vec<Step>,
    lints: &mut Vec<Lint>,
) -> Result<(Vec<Step>, Vec<Step>), Vec<Problem>> {
    let wanted = wanted(of);
    let mut problems = Vec::new();
    let drop_ins = DropIns::new(of.homes, &wanted, of.observed, &mut problems);
    refuse(&mut problems)?;
    let so = decided(of, &wanted, &steps);
    if drop_ins.are_none(of.observed) {
        return Ok((steps, so));
    }
    drop_ins.lints(desired, of.observed, lints);
    let (steps, partitions) = unit_partition::split(steps, of.homes, of.observed);
    let (mut steps, so) = drop_ins.put(steps, so, &wanted, of.observed);
    steps.extend(partitions);
    Ok((steps, so))
}

fn host(machine: &Machine, observed: &Observed) -> HostFacts {
    HostFacts {
        hostname: observed.hostname.clone(),
        model: machine.model_name.clone(),
        nodes: (!machine.nodes.is_empty()).then_some(machine.nodes.len()),
        cpus: Some(machine.online().len()),
        memory: machine.memory_total(),
    }
}

/// Groups whose files are made by these steps.
fn renewed(steps: &[Step]) -> impl Fn(&Place) -> bool + use<> {
    let mut made: HashSet<Place> = HashSet::new();
    let mut handing: HashSet<(usize, String)> = HashSet::new();
    for step in steps {
        match &step.action {
            Action::CreateGroup { place } => {
                made.insert(place.clone());
            }
            Action::EnableControllers { place, .. } => {
                handing.insert((place.hierarchy, place.path.clone()));
            }
            _ => {}
        }
    }
    move |place: &Place| {
        let above = group_path::parent(&place.path).unwrap_or_default().to_owned();
        made.contains(place) || handing.contains(&(place.hierarchy, above))
    }
}

/// What a file holds before a step, where an earlier step writes it.
fn settle_before(steps: &mut [Step]) {
    let mut written: HashMap<(Place, String), String> = HashMap::new();
    for step in steps {
        let Action::Write { place, file, text } = &step.action else { continue };
        // of a file of lines each write changes its own line only
        let lines = step.before.as_ref().is_some_and(|before| before.contains('\n'));
        let earlier = written.insert((place.clone(), file.clone()), text.trim().to_owned());
        if let Some(earlier) = earlier.filter(|_| !lines && !file.starts_with("devices.")) {
            step.before = Some(earlier);
        }
    }
}

fn assignments(tree: &Tree<'_>, resolved: &Resolved) -> Vec<Assignment> {
    let with_sets = tree.branches.iter().zip(&resolved.sets);
    let with_sets = with_sets.filter(|(_, sets)| sets.cpus.is_some() || sets.mems.is_some());
    let assignment = |(branch, sets): (&crate::tree::Branch<'_>, &resolve::Sets)| Assignment {
        group: branch.name.clone(),
        cpus: sets.cpus.clone().filter(|cpus: &CpuSet| !cpus.is_empty()),
        mems: sets.mems.clone(),
        exclusive: branch.exclusive > Exclusive::No,
        why: sets.why.clone(),
    };
    with_sets.map(assignment).collect()
}
