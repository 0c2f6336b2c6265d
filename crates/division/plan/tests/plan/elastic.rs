//! Elastic groups: what the daemon gave them, and lends them, is no difference to the layout; what the layout takes goes.

use kernel::GroupName;
use settings::Controller;

use crate::world::{KINDS, Kind, World, desired, machine};

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
