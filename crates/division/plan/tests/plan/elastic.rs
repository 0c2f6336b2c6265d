//! Elastic groups: what the daemon gave them, and lends them, is no difference to the layout; what the layout takes goes.

use kernel::GroupName;
use settings::{Controller, Version};

use crate::world::{KINDS, Kind, World, cpus, desired, machine, plan_on};

const OWNER: &str = "[groups.owner]\ncpus = { min = 1, max = 4, weight = 100 }\n";
const BATCH: &str = "[groups.batch]\ncpus = { min = 1, max = 3, weight = 1 }\n\"cpu.idle\" = 1\n";

/// 8 CPUs in four nodes, where the daemon divided them so.
fn divided(kind: Kind, layout: &str, sets: &[(&str, &str)]) -> World {
    let world = World::new(kind, machine(4, 1, 2, 1));
    world.apply(layout);
    for (group, cpus) in sets {
        let name = GroupName::new(group).unwrap();
        let seat = world.host.seat(&name, Controller::Cpuset).unwrap();
        world.host.kernel().write(seat.at, &seat.path, "cpuset.cpus", cpus).unwrap();
    }
    world
}

/// What the next plan for this layout gives the groups, after the daemon resized them.
fn next(world: &World, layout: &str) -> [String; 2] {
    let desired = desired(layout);
    let mut observed = world.observed(&desired);
    observed.elastic.extend(["owner".to_owned(), "batch".to_owned()]);
    let plan = world.plan_observed(&desired, &observed).unwrap();
    world.carry_out(&plan);
    ["owner", "batch"].map(|group| world.cpus(group))
}

#[test]
fn what_the_daemon_gave_and_lends_stays() {
    let layout = format!("{OWNER}{BATCH}");
    for kind in KINDS {
        // grown over nodes; a loan of the owner's; a loan of what is free, on another node than its own
        for (owner, batch) in [("0,3-4", "7"), ("0-1", "0,2"), ("0", "1-2"), ("0,7", "1,5-6")] {
            let world = divided(kind, &layout, &[("owner", owner), ("batch", batch)]);
            assert_eq!(next(&world, &layout), [owner, batch], "{kind:?}");
        }
    }
}

#[test]
fn what_the_layout_gives_no_more_goes() {
    let smaller = format!("{}{BATCH}", OWNER.replace("max = 4", "max = 2"));
    let named = format!("{OWNER}{BATCH}[groups.named]\ncpus = \"3\"\n");
    for kind in KINDS {
        for layout in [&smaller, &named] {
            let world = divided(kind, &format!("{OWNER}{BATCH}"), &[("owner", "0,3-4"), ("batch", "7")]);
            let [owner, batch] = next(&world, layout);
            assert_ne!(owner, "0,3-4", "{kind:?} {layout}");
            let sets = [owner, batch].map(|set| set.parse::<units::CpuSet>().unwrap());
            assert!(sets[0].is_disjoint(&sets[1]), "{kind:?} {sets:?}");
        }
    }
}

#[test]
fn a_borrower_keeps_no_more_than_its_max_and_has_cpus_of_its_own() {
    let layout = format!("{OWNER}{BATCH}");
    for kind in KINDS {
        for batch in ["0-3", "0-1"] {
            let world = divided(kind, &layout, &[("owner", "0-1"), ("batch", batch)]);
            let [owner, after] = next(&world, &layout).map(|set| set.parse::<units::CpuSet>().unwrap());
            assert!(after.len() <= 3 && !after.is_subset(&owner), "{kind:?} {batch}: {after}");
        }
    }
}

#[test]
fn a_min_is_whole_cores_as_the_daemon_divides_them() {
    for (layout, machine, given) in [
        (elastic(&[("a", 3), ("b", 5)]), machine(1, 1, 8, 2), ["6-9", "0-5"]),
        // over two nodes
        (elastic(&[("a", 3), ("b", 5)]), machine(2, 1, 3, 2), ["6-9", "0-5"]),
        (elastic(&[("a", 1), ("b", 1)]), machine(1, 1, 2, 4), ["0-3", "4-7"]),
        // half a core is named by another group: the daemon gives single CPUs
        (
            format!("{}[groups.x]\ncpus = \"15\"\n", elastic(&[("a", 3), ("b", 5)])),
            machine(1, 1, 8, 2),
            ["6-8", "0-4"],
        ),
        (elastic(&[("a", 3), ("b", 5)]), machine(1, 1, 16, 1), ["5-7", "0-4"]),
    ] {
        let plan = plan_on(Version::V2, &machine, &layout).unwrap_or_else(|problems| panic!("{problems:#?}"));
        let sets = cpus(&plan);
        assert_eq!([&sets["a"], &sets["b"]], given, "{layout}");
        // and the daemon takes them as they are
        for scope in &plan.upkeep.elastic {
            let units = policy::Units::of(&machine, &scope.pool).unwrap();
            let sets: Vec<units::CpuSet> =
                scope.groups.iter().map(|group| sets[&group.name].parse().unwrap()).collect();
            policy::Policy::with_sets(&scope.groups, units, policy::Parameters::default(), &sets).unwrap();
        }
    }
}

#[test]
fn a_group_that_is_elastic_is_told_what_it_has_until_then() {
    let plan = plan_on(Version::V2, &machine(1, 1, 8, 2), &elastic(&[("a", 3)])).unwrap();
    let lint = plan.lints.iter().find(|lint| lint.kind == plan::LintKind::Elastic).unwrap();
    assert!(lint.message.contains("it has 4 CPUs until"), "{}", lint.message);
}

#[test]
fn too_few_cores_for_all_are_counted() {
    let problems = plan_on(Version::V2, &machine(1, 1, 4, 2), &elastic(&[("a", 3), ("b", 5)])).unwrap_err();
    assert!(problems[0].to_string().contains("need 5 for their min, but share 4"), "{problems:#?}");
}

fn elastic(groups: &[(&str, usize)]) -> String {
    let group = |(name, min): &(&str, usize)| {
        format!("[groups.{name}]\ncpus = {{ min = {min}, max = 8, weight = 1 }}\n")
    };
    groups.iter().map(group).collect()
}
