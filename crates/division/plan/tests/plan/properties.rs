//! Layouts made up at random, on machines made up at random: what must hold of every plan.

use std::{collections::BTreeMap, fmt::Write as _};

use layout::{CpuAmount, CpuDemand};
use plan::Plan;
use proptest::prelude::*;
use settings::Controller;
use topology::Machine;
use units::CpuSet;

use crate::world::{KINDS, Kind, World, cpus, desired, machine, with_small_cores};

/// How a group asks for CPUs.
#[derive(Debug, Clone)]
enum SettingRequest {
    Nothing,
    All,
    Node(usize),
    Count(usize),
    Near(usize, usize),
    Spread(usize),
    Cores(usize),
    Whole(usize),
    NumberOfCores(usize),
    Threads(usize),
    Between(usize, usize),
    Percent(usize),
    These(usize, usize),
    Like(usize),
}

#[derive(Debug, Clone)]
struct Group {
    request: SettingRequest,
    exclusive: bool,
    pool: bool,
    /// A group of the layout's beginning that it is in.
    inside: Option<usize>,
    mems: usize,
}

fn request() -> impl Strategy<Value = SettingRequest> {
    prop_oneof![
        1 => Just(SettingRequest::Nothing),
        2 => Just(SettingRequest::All),
        2 => (0..4_usize).prop_map(SettingRequest::Node),
        5 => (1..9_usize).prop_map(SettingRequest::Count),
        1 => (1..5_usize, 0..4_usize).prop_map(|(count, node)| SettingRequest::Near(count, node)),
        1 => (1..9_usize).prop_map(SettingRequest::Spread),
        1 => (1..4_usize).prop_map(SettingRequest::Cores),
        1 => (1..6_usize).prop_map(SettingRequest::Whole),
        2 => (1..4_usize).prop_map(SettingRequest::NumberOfCores),
        1 => (1..5_usize).prop_map(SettingRequest::Threads),
        2 => (1..4_usize, 0..6_usize).prop_map(|(min, more)| SettingRequest::Between(min, min + more)),
        1 => (1..60_usize).prop_map(SettingRequest::Percent),
        3 => (0..16_usize, 0..6_usize).prop_map(|(first, more)| SettingRequest::These(first, first + more)),
        1 => (0..6_usize).prop_map(SettingRequest::Like),
    ]
}

fn group() -> impl Strategy<Value = Group> {
    let exclusive = prop::bool::weighted(0.3);
    (request(), exclusive, prop::bool::weighted(0.15), prop::option::weighted(0.3, 0..4_usize), 0..4_usize)
        .prop_map(|(request, exclusive, pool, inside, mems)| Group { request, exclusive, pool, inside, mems })
}

/// The names of groups: those inside another one have its name before theirs.
fn names(groups: &[Group]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let above = group.inside.filter(|above| *above < index).map(|above| format!("{}/", names[above]));
        names.push(format!("{}g{index}", above.unwrap_or_default()));
    }
    names
}

fn text(groups: &[Group], names: &[String], machine: &Machine, reserve: Option<usize>) -> String {
    let mut text = String::new();
    if let Some(reserve) = reserve {
        writeln!(text, "[reserve]\ncpus = {reserve}").unwrap();
    }
    let nodes = machine.nodes.len();
    let threads = machine.threads_per_core().unwrap();
    let last = machine.cpus.len() - 1;
    let mut asking: Vec<bool> = Vec::new();
    for (index, (group, name)) in groups.iter().zip(names).enumerate() {
        writeln!(text, "[groups.\"{name}\"]").unwrap();
        let pool = if group.pool { ", pool = \"exclusive\"" } else { "" };
        let cpus = match &group.request {
            SettingRequest::Nothing => None,
            SettingRequest::All => Some("\"all\"".to_owned()),
            SettingRequest::Node(node) => Some(format!("{{ node = {} }}", node % nodes)),
            SettingRequest::Count(count) => Some(format!("{{ count = {count}{pool} }}")),
            SettingRequest::Near(count, node) => {
                Some(format!("{{ count = {count}, near = \"node:{}\"{pool} }}", node % nodes))
            }
            SettingRequest::Spread(count) => {
                Some(format!("{{ count = {count}, placement = \"spread\"{pool} }}"))
            }
            SettingRequest::Cores(count) => {
                Some(format!("{{ count = {}, smt = \"whole-cores\"{pool} }}", count * threads))
            }
            SettingRequest::Whole(count) => {
                Some(format!("{{ count = {count}, smt = \"whole-cores\"{pool} }}"))
            }
            SettingRequest::NumberOfCores(count) => Some(format!("{{ cores = {count}{pool} }}")),
            SettingRequest::Threads(count) => Some(format!("{{ count = {count}, smt = \"threads\"{pool} }}")),
            SettingRequest::Between(min, max) => Some(format!("{{ min = {min}, max = {max}{pool} }}")),
            SettingRequest::Percent(percent) => Some(format!("\"{percent}%\"")),
            SettingRequest::These(first, to) => Some(format!("\"{}-{}\"", first.min(&last), to.min(&last))),
            SettingRequest::Like(other) => {
                let other = other.checked_rem(index).filter(|other| asking[*other]);
                other.map(|other| format!("{{ like = \"{}\" }}", names[other]))
            }
        };
        asking.push(cpus.is_some());
        let Some(cpus) = cpus else { continue };
        writeln!(text, "cpus = {cpus}").unwrap();
        if group.exclusive {
            writeln!(text, "exclusive = true").unwrap();
        }
        match group.mems {
            0 => {}
            1 => writeln!(text, "mems = \"all\"").unwrap(),
            _ => writeln!(text, "mems = \"local\"").unwrap(),
        }
    }
    text
}

#[derive(Debug, Clone)]
struct Case {
    machine: Machine,
    kind: Kind,
    before: Vec<Group>,
    after: Vec<Group>,
    reserve: Option<usize>,
}

fn case() -> impl Strategy<Value = Case> {
    let shape = (1..5_usize, 1..3_usize, 1..5_usize, 1..3_usize, prop::bool::weighted(0.4));
    let groups = prop::collection::vec(group(), 1..6);
    let kind = prop::sample::select(KINDS.to_vec());
    (
        shape,
        kind,
        groups,
        prop::option::weighted(0.3, 1..3_usize),
        prop::collection::vec(group(), 6),
        0..64_u32,
    )
        .prop_map(|((nodes, l3, cores, threads, mixed), kind, before, reserve, others, changed)| {
            // the same groups with the same names, some of them asking for something else
            let after = before.iter().zip(others).enumerate().map(|(index, (group, other))| {
                match changed & 1 << index {
                    0 => group.clone(),
                    _ => Group { inside: group.inside, ..other },
                }
            });
            Case {
                machine: match mixed {
                    true => with_small_cores(machine(nodes, l3, cores, threads)),
                    false => machine(nodes, l3, cores, threads),
                },
                kind,
                after: after.collect(),
                before,
                reserve,
            }
        })
}

/// A task in every group that can hold one; on v2 those without groups in them.
fn populate(world: &World, names: &[String]) {
    for name in names {
        let has_groups = names.iter().any(|other| other.starts_with(&format!("{name}/")));
        let there = world.host.seat(&kernel::GroupName::new(name).unwrap(), Controller::Cpuset).is_ok();
        if there && !has_groups {
            world.put_task_in(name, Controller::Cpuset);
        }
    }
}

/// What every plan keeps to, whatever is there before.
fn look_at(plan: &Plan, layout: &str, machine: &Machine) {
    let desired = desired(layout);
    let of: BTreeMap<String, CpuSet> =
        plan.assignments.iter().filter_map(|a| Some((a.group.to_string(), a.cpus.clone()?))).collect();
    for (name, set) in &of {
        assert!(!set.is_empty(), "{name} has no CPU\n{layout}");
        assert!(set.is_subset(&machine.online()), "{name}\n{layout}");
        assert!(set.is_disjoint(&plan.reserved), "{name} has reserved CPUs\n{layout}");
        if let Some((above, _)) = name.rsplit_once('/')
            && let Some(above) = of.get(above)
        {
            assert!(set.is_subset(above), "{name} is not within its parent\n{layout}");
        }
    }
    for group in &desired.groups {
        let name = group.name.to_string();
        let Some(cpus) = &group.demands.cpus else { continue };
        let set = &of[&name];
        match &cpus.value {
            CpuDemand::These(these) => assert_eq!(set, these, "{layout}"),
            CpuDemand::Like(other) => assert_eq!(set, &of[&other.to_string()], "{layout}"),
            CpuDemand::OfNodes(nodes) => assert!(set.is_subset(&machine.cpus_of_nodes(nodes)), "{layout}"),
            CpuDemand::All | CpuDemand::General => {}
            CpuDemand::Some(spec) => {
                match spec.amount {
                    CpuAmount::Count(count) => assert_eq!(set.len(), count, "{name}\n{layout}"),
                    CpuAmount::Between { min, max } => {
                        assert!(
                            set.len() >= min && units::Limit::At(set.len()) <= max,
                            "{name}: {set}\n{layout}"
                        );
                    }
                    CpuAmount::Cores(count) => {
                        let cores = machine.cores().unwrap();
                        let whole = cores.iter().filter(|core| core.cpus.is_subset(set)).count();
                        assert_eq!(whole, count, "{name}: {set}\n{layout}");
                    }
                    CpuAmount::Percent(_) => {}
                }
                if spec.smt == Some(layout::Smt::WholeCores) {
                    assert_eq!(machine.with_siblings(set).as_ref(), Some(set), "{name}\n{layout}");
                }
            }
        }
        let related = |other: &str| {
            other == name || other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"))
        };
        if group.demands.exclusive {
            for (other, theirs) in of.iter().filter(|(other, _)| !related(other)) {
                assert!(set.is_disjoint(theirs), "{name} ({set}) and {other} ({theirs}) overlap\n{layout}");
            }
        }
    }
    for assignment in &plan.assignments {
        assert!(assignment.mems.as_ref().is_none_or(|mems| !mems.is_empty()), "{layout}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_taken_step_by_step_and_leaves_nothing_to_be_done(case in case()) {
        let names = names(&case.before);
        let world = World::new(case.kind, case.machine.clone());
        let first = text(&case.before, &names, &case.machine, case.reserve);
        let Ok(plan) = world.plan(&first) else { return Ok(()) };
        look_at(&plan, &first, &case.machine);
        world.carry_out(&plan);
        world.is_done(&first);
        populate(&world, &names);
        world.is_done(&first);
        let second = text(&case.after, &names, &case.machine, case.reserve);
        let Ok(plan) = world.plan(&second) else { return Ok(()) };
        look_at(&plan, &second, &case.machine);
        world.carry_out(&plan);
        world.is_done(&second);
    }

    #[test]
    fn the_same_question_has_the_same_answer(case in case()) {
        let names = names(&case.before);
        let world = World::new(case.kind, case.machine.clone());
        let layout = text(&case.before, &names, &case.machine, case.reserve);
        prop_assert_eq!(world.plan(&layout), world.plan(&layout));
    }

    #[test]
    fn one_more_group_moves_nobody(case in case(), extra in group()) {
        let names = names(&case.before);
        let world = World::new(case.kind, case.machine.clone());
        let layout = text(&case.before, &names, &case.machine, case.reserve);
        let Ok(first) = world.plan(&layout) else { return Ok(()) };
        world.carry_out(&first);
        // it shares, so that nobody has to yield
        let extra = Group { request: SettingRequest::Count(1), exclusive: false, pool: false, inside: None, ..extra };
        let more = format!("{layout}{}", text(&[extra], &["extra".to_owned()], &case.machine, None));
        let Ok(second) = world.plan(&more) else { return Ok(()) };
        // who takes what is left, or as many as can be had, may have to take fewer, and so may groups inside
        let varies = |group: &Group| {
            matches!(group.request, SettingRequest::Nothing | SettingRequest::All | SettingRequest::Node(_) | SettingRequest::Between(..) | SettingRequest::Like(_))
        };
        let varying: Vec<&String> =
            case.before.iter().zip(&names).filter(|(group, _)| varies(group)).map(|(_, name)| name).collect();
        let is_counted = |name: &&String| {
            !varying.iter().any(|other| name == other || name.starts_with(&format!("{other}/")))
        };
        let (before, after) = (cpus(&first), cpus(&second));
        for name in names.iter().filter(is_counted) {
            prop_assert_eq!(&before[name], &after[name], "{}", more);
        }
    }
}
