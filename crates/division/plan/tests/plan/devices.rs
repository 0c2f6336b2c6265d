//! The rules of devices in a tree of groups, on v1: everything at once is changed only while no group is below, and no
//! group may use what the one above it may not. Every plan is carried out on the in-memory kernel, which refuses what
//! real ones refuse.

use kernel::{GroupName, Hierarchy};
use plan::{Action, Plan, Problem};
use settings::Controller::Devices;

use crate::world::{Kind, World, machine};

const PARENT: &str = "[groups.db]\ndevices.deny = \"a\"\ndevices.allow = [\"c 1:3 rwm\", \"c 1:5 r\"]\n";
const CHILD: &str = "[groups.\"db/oltp\"]\ndevices.deny = \"a\"\ndevices.allow = \"c 1:3 rw\"\n";

fn world() -> World {
    World::new(Kind::V1, machine(1, 1, 2, 1))
}

/// What is made and written in the hierarchy of devices.
fn steps(plan: &Plan, at: &Hierarchy) -> Vec<String> {
    let told = plan.steps.iter().filter_map(|step| match &step.action {
        Action::CreateGroup { place } if place.hierarchy == at.id => Some(format!("make {}", place.path)),
        Action::Write { place, file, text, .. } => Some(format!("{} {file}={text}", place.path)),
        _ => None,
    });
    told.collect()
}

fn list(world: &World, group: &str) -> Vec<String> {
    world.file(group, Devices, "devices.list").lines().map(str::to_owned).collect()
}

/// A group that no layout made.
fn make(world: &World, group: &str) {
    let at = world.host.hierarchy_of(Devices).unwrap();
    let seat = world.host.seat_in(at, &GroupName::new(group).unwrap());
    world.host.kernel().mkdir(at, &seat.path).unwrap();
}

fn write(world: &World, group: &str, file: &str, text: &str) {
    let group = GroupName::new(group).unwrap();
    let seat = world.host.seat(&group, Devices).unwrap();
    world.host.write(&seat, &group, file, text).unwrap();
}

fn refusal(world: &World, layout: &str) -> String {
    let problems = world.plan(layout).unwrap_err();
    let [problem @ Problem::Refused { .. }] = &problems[..] else { panic!("{problems:#?}") };
    assert!(problem.hint().is_some());
    problem.to_string()
}

#[test]
fn a_parents_devices_are_settled_before_its_children_are_made() {
    // in whichever order the layout names them
    for layout in [format!("{PARENT}{CHILD}"), format!("{CHILD}{PARENT}")] {
        let world = world();
        let plan = world.apply(&layout);
        let expected = [
            "make db",
            "db devices.deny=a",
            "db devices.allow=c 1:3 rwm",
            "db devices.allow=c 1:5 r",
            "make db/oltp",
            "db/oltp devices.deny=a",
            "db/oltp devices.allow=c 1:3 rw",
        ];
        assert_eq!(steps(&plan, world.host.hierarchy_of(Devices).unwrap()), expected);
        assert_eq!(list(&world, "db"), ["c 1:3 rwm", "c 1:5 r"]);
        assert_eq!(list(&world, "db/oltp"), ["c 1:3 rw"]);
        world.is_done(&layout);
    }
}

#[test]
fn a_group_that_is_there_is_settled_before_the_first_group_below_it_is_made() {
    let world = world();
    make(&world, "db");
    let layout = format!("{PARENT}{CHILD}[groups.\"db/oltp/one\"]\ndevices.deny = \"a\"\n");
    world.apply(&layout);
    assert_eq!(list(&world, "db"), ["c 1:3 rwm", "c 1:5 r"]);
    assert_eq!(list(&world, "db/oltp/one"), [""; 0]);
    world.is_done(&layout);
}

#[test]
fn what_children_stand_in_the_way_of_is_told_and_nothing_is_planned() {
    let world = world();
    make(&world, "db");
    make(&world, "db/oltp");
    let told = refusal(&world, &format!("{PARENT}{CHILD}"));
    assert!(
        told.contains("devices.deny = a of group 'db'") && told.contains("groups are below it"),
        "{told}"
    );
}

#[test]
fn with_children_only_what_differs_is_changed_and_they_keep_the_rest() {
    let world = world();
    world.apply(&format!("{PARENT}{CHILD}"));
    let (from, to) = ("\"c 1:3 rwm\", \"c 1:5 r\"", "\"c 1:3 rw\", \"c 1:7 w\"");
    let layout = format!("{}{CHILD}", PARENT.replace(from, to));
    let plan = world.apply(&layout);
    let expected = ["db devices.deny=c 1:3 m", "db devices.deny=c 1:5 r", "db devices.allow=c 1:7 w"];
    assert_eq!(steps(&plan, world.host.hierarchy_of(Devices).unwrap()), expected);
    assert_eq!(list(&world, "db/oltp"), ["c 1:3 rw"]);
    world.is_done(&layout);
}

#[test]
fn a_child_gets_what_its_parent_gets_in_the_same_plan() {
    let world = world();
    world.apply(&format!("{PARENT}{CHILD}"));
    let parent = PARENT.replace("\"c 1:5 r\"", "\"c 1:5 r\", \"c 1:7 w\"");
    let child = CHILD.replace("\"c 1:3 rw\"", "[\"c 1:3 rw\", \"c 1:7 w\"]");
    world.apply(&format!("{child}{parent}"));
    assert_eq!(list(&world, "db/oltp"), ["c 1:3 rw", "c 1:7 w"]);
}

#[test]
fn what_the_parents_rules_take_from_a_child_is_given_back_where_the_child_asks_for_it() {
    let world = world();
    make(&world, "db");
    make(&world, "db/oltp");
    write(&world, "db/oltp", "devices.deny", "a");
    write(&world, "db/oltp", "devices.allow", "c 1:3 rw");
    // the parent loses everything but reading; the child, which had more, is to keep that
    let layout = "[groups.db]\ndevices.deny = \"c 1:3 wm\"\n\
                  [groups.\"db/oltp\"]\ndevices.deny = \"a\"\ndevices.allow = \"c 1:3 r\"\n";
    world.apply(layout);
    assert_eq!(list(&world, "db/oltp"), ["c 1:3 r"]);
}

#[test]
fn a_child_is_not_allowed_what_its_parent_is_not() {
    let child = CHILD.replace("c 1:3 rw", "c 1:7 r");
    let told = refusal(&world(), &format!("{PARENT}{child}"));
    assert!(told.contains("devices.allow = c 1:7 r of group 'db/oltp'"), "{told}");
    // nor is it where the parent is there already
    let world = world();
    world.apply(PARENT);
    refusal(&world, &format!("{PARENT}{child}"));
}
