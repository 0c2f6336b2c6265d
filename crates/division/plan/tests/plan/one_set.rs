//! In which hierarchies of v1 a group is: where its settings are, and wherever nothing changes for its processes.

use std::collections::BTreeSet;

use layout::{Desired, Source};
use plan::{Action, Observed, places};
use settings::{Controller, Version};

use crate::world::{Kind, World, machine};

fn read(file: &str, text: &str) -> Desired {
    let sources = [Source::new(file, text)];
    let reading = layout::read(&sources);
    reading.desired.unwrap_or_else(|| panic!("{}", layout::render(&reading.diagnostics, &sources)))
}

/// The first controller of each hierarchy that a group is in.
fn of(desired: &Desired, group: &str, observed: &Observed) -> BTreeSet<&'static str> {
    let placed = places(desired, observed).into_iter().find(|placed| placed.group.to_string() == group);
    let first = |at: usize| observed.hierarchies[at].controllers[0].name(Version::V1).unwrap();
    placed.unwrap().places.iter().map(|place| first(place.hierarchy)).collect()
}

const EVERYWHERE: [&str; 8] =
    ["blkio", "freezer", "hugetlb", "memory", "net_cls", "net_prio", "perf_event", "pids"];

fn everywhere(and: &[&'static str]) -> BTreeSet<&'static str> {
    EVERYWHERE.into_iter().chain(and.iter().copied()).collect()
}

#[test]
fn a_group_of_a_layout_is_in_every_hierarchy_that_changes_nothing_for_its_processes() {
    let text = "[groups.a]\npids.max = 9\n[groups.\"a/in\"]\n[groups.b]\ncpus = 1\n[groups.\"b/in\"]\nmemory.max = \"1G\"\n\
        [groups.c]\ncpu.weight = 200\ndevices.deny = [\"a\"]\n";
    let desired = read("layout.toml", text);
    let mut observed = Observed::empty(Version::V1);
    assert_eq!(of(&desired, "a", &observed), everywhere(&[]));
    assert_eq!(of(&desired, "a/in", &observed), everywhere(&[]));
    assert_eq!(of(&desired, "b", &observed), everywhere(&["cpuset"]));
    assert_eq!(of(&desired, "b/in", &observed), everywhere(&["cpuset"]));
    assert_eq!(of(&desired, "c", &observed), everywhere(&["cpu", "devices"]));
    // a kernel in which a group of cpu takes real-time tasks
    observed.no_realtime_budgets = true;
    assert_eq!(of(&desired, "a", &observed), everywhere(&["cpu"]));
}

#[test]
fn a_group_is_not_where_the_caller_can_make_none_or_where_it_shares_its_processes() {
    let text = "[groups.a]\npids.max = 9\n[groups.nothing]\n[groups.\"50%\"]\nmemory.max = \"1G\"\n[groups.\"u/ann\"]\npids.max = 5\n\
        [[rules]]\nuser = \"ann\"\nto = [{ group = '50\\%', controllers = [\"memory\"] }, { group = \"u/%u\", controllers = [\"pids\"] }]\n\
        [templates.\"u/%u\"]\npids.max = 5\n";
    let desired = read("layout.toml", text);
    let mut observed = Observed::empty(Version::V1);
    assert_eq!(of(&desired, "50%", &observed), BTreeSet::from(["memory"]));
    assert_eq!(of(&desired, "u/ann", &observed), BTreeSet::from(["pids"]));
    for at in &mut observed.hierarchies {
        at.is_closed = !at.controllers.contains(&Controller::Freezer);
    }
    assert_eq!(of(&desired, "a", &observed), BTreeSet::from(["freezer", "pids"]));
    assert_eq!(of(&desired, "nothing", &observed), BTreeSet::from(["freezer"]));
    let libcgroups = read("cgconfig.conf", "group a { pids { pids.max = 9; } }\n");
    assert_eq!(of(&libcgroups, "a", &Observed::empty(Version::V1)), BTreeSet::from(["pids"]));
}

/// It is in each hierarchy, and does something in that of cpusets only.
#[test]
fn the_flag_of_cpusets_is_written_where_the_cpuset_is() {
    let world = World::new(Kind::V1, machine(1, 1, 2, 1));
    let plan = world.plan("[groups.a]\ncpus = \"0\"\ncgroup.clone_children = 1\n").unwrap();
    let flag = plan.steps.iter().find_map(|step| match &step.action {
        Action::Write { place, file, .. } if file == "cgroup.clone_children" => Some(place.hierarchy),
        _ => None,
    });
    assert_eq!(flag, world.host.hierarchy_of(Controller::Cpuset).map(|at| at.id));
}
