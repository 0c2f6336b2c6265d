//! v1 cpusets along the tree, and what v2 makes of a wish.

use rustix::io::Errno;
use settings::Controller::Cpuset;

use super::{
    Case,
    behaviour::empties,
    case,
    world::{Done, World, refused},
};

pub fn cases() -> Vec<Case> {
    let v1 = |world: &World| world.on_v1(Cpuset) && world.cpus() > 1;
    vec![
        case("a_v1_cpuset_is_part_of_its_parents", v1, part_of_parent),
        case("a_v1_cpuset_keeps_what_its_children_have", v1, keeps_childrens),
        case("exclusive_v1_cpusets_do_not_overlap", v1, exclusive).unless(others),
        case("an_exclusive_v1_cpuset_needs_an_exclusive_parent", v1, exclusive_parent).unless(others),
        case("exclusive_memory_nodes_do_not_overlap", v1, exclusive_nodes).unless(others),
        case("a_cloned_v1_cpuset_starts_with_its_parents_lists", v1, cloned).unless(others),
        case("the_root_cpuset_stays_as_it_is", v1, root),
        case(
            "a_v2_cpuset_gets_what_the_parent_has_of_its_wish",
            |world| world.on_v2(Cpuset) && world.cpus() >= 8,
            wish,
        ),
        case(
            "a_v2_cpuset_with_tasks_keeps_its_list",
            |world| world.on_v2(Cpuset) && !empties(world),
            keeps_list,
        ),
        case("a_v2_cpuset_with_tasks_can_be_emptied", |world| world.on_v2(Cpuset) && empties(world), emptied),
    ]
}

/// An exclusive group needs CPUs and nodes that no other top-level group has.
fn others(world: &World) -> Option<String> {
    world.others(Cpuset, "cpuset.cpus").or_else(|| world.others(Cpuset, "cpuset.mems"))
}

fn lists(world: &World, name: &str, cpus: &str) -> kernel::GroupName {
    let group = world.create(name, &[Cpuset]);
    world.write(&group, Cpuset, "cpuset.cpus", cpus);
    world.write(&group, Cpuset, "cpuset.mems", "0");
    group
}

fn part_of_parent(world: &World) {
    lists(world, "", "0");
    let group = world.create("a", &[Cpuset]);
    let refusal =
        refused(world.try_write(&group, Cpuset, "cpuset.cpus", "0-1"), Errno::ACCESS, "which lacks 1");
    assert!(refusal.hint.unwrap_or_default().contains(world.group("").path()));
    world.write(&group, Cpuset, "cpuset.cpus", "0");
    assert_eq!(world.read(&group, Cpuset, "cpuset.effective_cpus"), "0");
}

fn keeps_childrens(world: &World) {
    let top = lists(world, "", "0-1");
    let group = lists(world, "a", "1");
    let refusal =
        refused(world.try_write(&top, Cpuset, "cpuset.cpus", "0"), Errno::BUSY, "below it uses '1'");
    assert!(refusal.cause.unwrap_or_default().contains(group.path()));
    refused(world.try_write(&top, Cpuset, "cpuset.mems", "\n"), Errno::BUSY, "below it uses '0'");
    world.write(&group, Cpuset, "cpuset.cpus", "0");
    world.write(&top, Cpuset, "cpuset.cpus", "0");
}

fn exclusive(world: &World) {
    let top = lists(world, "", "0-1");
    world.write(&top, Cpuset, "cpuset.cpus", "0-1");
    let (group, other) = (lists(world, "a", "0"), lists(world, "b", "0-1"));
    let flag = |group, text| world.try_write(group, Cpuset, "cpuset.cpu_exclusive", text);
    flag(&top, "1").done();
    let refusal = refused(flag(&group, "1"), Errno::INVAL, "which overlaps with '0'");
    assert!(refusal.cause.unwrap_or_default().contains(other.path()));
    world.write(&other, Cpuset, "cpuset.cpus", "1");
    flag(&group, "1").done();
    refused(
        world.try_write(&other, Cpuset, "cpuset.cpus", "0-1"),
        Errno::INVAL,
        "one of the two is exclusive",
    );
    refused(flag(&top, "0"), Errno::BUSY, "below it is exclusive");
    world.write(&other, Cpuset, "cpuset.cpus", "\n");
    flag(&other, "1").done();
    refused(world.try_write(&other, Cpuset, "cpuset.cpus", "0"), Errno::INVAL, "one of the two is exclusive");
}

fn exclusive_parent(world: &World) {
    let top = lists(world, "", "0-1");
    let group = lists(world, "a", "0");
    for (flag, list) in [("cpuset.cpu_exclusive", "its parent"), ("cpuset.mem_exclusive", "its parent")] {
        refused(world.try_write(&group, Cpuset, flag, "1"), Errno::ACCESS, list);
        world.write(&top, Cpuset, flag, "1");
        world.write(&group, Cpuset, flag, "1");
    }
}

fn exclusive_nodes(world: &World) {
    let top = lists(world, "", "0-1");
    world.write(&top, Cpuset, "cpuset.mem_exclusive", "1");
    let (group, other) = (lists(world, "a", "0"), lists(world, "b", "1"));
    refused(world.try_write(&group, Cpuset, "cpuset.mem_exclusive", "1"), Errno::INVAL, "cpuset.mems '0'");
    world.write(&other, Cpuset, "cpuset.mems", "\n");
    world.write(&group, Cpuset, "cpuset.mem_exclusive", "1");
    refused(world.try_write(&other, Cpuset, "cpuset.mems", "0"), Errno::INVAL, "one of the two is exclusive");
}

fn cloned(world: &World) {
    let top = lists(world, "", "0-1");
    world.write(&top, Cpuset, "cgroup.clone_children", "1");
    world.write(&top, Cpuset, "cpuset.memory_spread_page", "1");
    let group = world.create("a", &[Cpuset]);
    assert_eq!(world.read(&group, Cpuset, "cpuset.cpus"), "0-1");
    assert_eq!(world.read(&group, Cpuset, "cpuset.mems"), "0");
    assert_eq!(world.read(&group, Cpuset, "cgroup.clone_children"), "1");
    assert_eq!(world.read(&group, Cpuset, "cpuset.memory_spread_page"), "1");
    world.write(&top, Cpuset, "cpuset.cpu_exclusive", "1");
    world.write(&group, Cpuset, "cpuset.cpus", "0");
    world.write(&group, Cpuset, "cpuset.cpu_exclusive", "1");
    let empty = world.create("b", &[Cpuset]);
    assert_eq!(world.read(&empty, Cpuset, "cpuset.cpus"), "", "a sibling has some for itself");
}

fn root(world: &World) {
    let at = world.host.hierarchy_of(Cpuset).expect("the controller's hierarchy");
    let online = world.kernel().outside("/sys/devices/system/cpu/online".as_ref());
    assert_eq!(world.kernel().read(at, "", "cpuset.cpus"), online);
    for file in ["cpuset.cpus", "cpuset.mems"] {
        assert_eq!(world.kernel().write(at, "", file, "0"), Err(Errno::ACCESS));
    }
}

fn wish(world: &World) {
    let (top, group) = (world.create("", &[Cpuset]), world.create("a", &[Cpuset]));
    let effective = |group, kind: &str| world.read(group, Cpuset, &format!("cpuset.{kind}.effective"));
    assert_eq!(
        (effective(&group, "cpus").as_str(), world.read(&group, Cpuset, "cpuset.cpus").as_str()),
        ("0-7", "")
    );
    world.write(&top, Cpuset, "cpuset.cpus", "0-3");
    for (wish, has) in [("2-5", "2-3"), ("6-7", "0-3"), ("\n", "0-3"), ("1", "1")] {
        world.write(&group, Cpuset, "cpuset.cpus", wish);
        assert_eq!(effective(&group, "cpus"), has, "of {wish:?}");
    }
    world.write(&top, Cpuset, "cpuset.cpus", "6");
    assert_eq!(effective(&group, "cpus"), "6", "what the parent has, if nothing of the wish");
    world.write(&top, Cpuset, "cpuset.mems", "0");
    assert_eq!(effective(&group, "mems"), "0");
}

fn keeps_list(world: &World) {
    let (top, group) = (lists(world, "", "0"), lists(world, "a", "0"));
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], kernel::What::Process).done();
    for group in [&group, &top] {
        refused(world.try_write(group, Cpuset, "cpuset.cpus", "\n"), Errno::NOSPC, "left without a CPU");
        refused(
            world.try_write(group, Cpuset, "cpuset.mems", "\n"),
            Errno::NOSPC,
            "left without a memory node",
        );
    }
    world.end(pid);
    world.write(&group, Cpuset, "cpuset.cpus", "\n");
}

fn emptied(world: &World) {
    let (top, group) = (lists(world, "", "0"), lists(world, "a", "0"));
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], kernel::What::Process).done();
    for (emptied, above) in [(&group, &top), (&top, &kernel::GroupName::root())] {
        for file in ["cpuset.cpus", "cpuset.mems"] {
            world.write(emptied, Cpuset, file, "\n");
            assert_eq!(world.read(emptied, Cpuset, file), "");
            let effective = format!("{file}.effective");
            assert_eq!(world.read(&group, Cpuset, &effective), world.read(above, Cpuset, &effective));
        }
    }
    assert!(world.is_in(pid, &group));
}
