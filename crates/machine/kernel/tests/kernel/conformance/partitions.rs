//! v2 partitions as Linux 6.1 has them: before `cpuset.cpus.exclusive`, which changed when a partition is valid.

use kernel::{GroupName, What};
use rustix::io::Errno;
use settings::Controller::Cpuset;

use super::{
    Case, case,
    world::{Done, World, refused, soon},
};

pub fn cases() -> Vec<Case> {
    vec![
        case("a_partition_takes_its_cpus_from_the_root", fits, takes),
        case("a_sibling_that_overlaps_silently_invalidates_a_partition", fits, overlapped),
        case("a_partition_that_overlaps_does_not_become_one", fits, overlaps),
        case("a_partition_with_an_empty_list_is_invalid_until_it_has_one", fits, empty),
        case("a_partition_below_a_member_is_invalid", fits, below_member),
        case("a_partition_that_leaves_its_parents_tasks_no_cpu_is_invalid", fits, leaves_none),
        case("a_group_left_without_cpus_takes_no_task", fits, no_cpu_left),
        case("a_partitions_type_can_change_while_it_is_valid", fits, changes),
    ]
    .into_iter()
    .map(|case| case.unless(|world| world.others(Cpuset, "cpuset.cpus")))
    .collect()
}

fn fits(world: &World) -> bool {
    world.on_v2(Cpuset)
        && world.cpus() >= 8
        && world.has_file(Cpuset, "cpuset.cpus.partition")
        && !world.has_file(Cpuset, "cpuset.cpus.exclusive")
}

const NOT_EXCLUSIVE: &str = "root invalid (Cpu list in cpuset.cpus not exclusive)";

fn top(world: &World, name: &str, cpus: &str) -> GroupName {
    let group = if name.is_empty() { world.group("") } else { world.beside(name) };
    world.make(&group, &[Cpuset]);
    world.write(&group, Cpuset, "cpuset.cpus", cpus);
    group
}

fn partition(world: &World, group: &GroupName, kind: &str) {
    world.write(group, Cpuset, "cpuset.cpus.partition", kind);
}

fn state(world: &World, group: &GroupName) -> String {
    world.read(group, Cpuset, "cpuset.cpus.partition")
}

fn effective(world: &World, group: &GroupName) -> String {
    world.read(group, Cpuset, "cpuset.cpus.effective")
}

fn takes(world: &World) {
    let (group, root) = (top(world, "", "0-3"), GroupName::root());
    let whole = effective(world, &root);
    partition(world, &group, "root");
    assert_eq!(state(world, &group), "root");
    assert_eq!((effective(world, &group).as_str(), effective(world, &root).as_str()), ("0-3", "4-7"));
    let other = top(world, "2", "\n");
    assert_eq!(effective(world, &other), "4-7");
    refused(world.try_write(&group, Cpuset, "cpuset.cpus.partition", "ROOT"), Errno::INVAL, "");
    world.host.delete(&group, false).done();
    soon(whole, || effective(world, &root)); // a partition that is removed gives back its CPUs
}

fn overlapped(world: &World) {
    let (group, other) = (top(world, "", "0-3"), top(world, "2", "4"));
    partition(world, &group, "root");
    world.write(&other, Cpuset, "cpuset.cpus", "3-4");
    assert_eq!(state(world, &group), NOT_EXCLUSIVE, "the write itself succeeded");
    assert_eq!(effective(world, &GroupName::root()), "0-7");
    world.write(&other, Cpuset, "cpuset.cpus", "4-5");
    partition(world, &group, "root");
    assert_eq!(state(world, &group), NOT_EXCLUSIVE, "writing the same type repairs nothing");
    partition(world, &group, "member");
    partition(world, &group, "root");
    assert_eq!(state(world, &group), "root");
}

fn overlaps(world: &World) {
    let (group, other) = (top(world, "", "0-3"), top(world, "2", "2-3"));
    partition(world, &group, "root");
    assert_eq!(state(world, &group), NOT_EXCLUSIVE);
    partition(world, &group, "member");
    world.write(&group, Cpuset, "cpuset.cpus", "0-1");
    partition(world, &group, "root");
    partition(world, &other, "isolated");
    assert_eq!((state(world, &group).as_str(), state(world, &other).as_str()), ("root", "isolated"));
    world.write(&group, Cpuset, "cpuset.cpus", "0-2");
    assert_eq!(state(world, &group), NOT_EXCLUSIVE);
    assert_eq!(state(world, &other), "isolated invalid (Cpu list in cpuset.cpus not exclusive)", "both lose");
    world.write(&group, Cpuset, "cpuset.cpus", "0-1");
    assert_eq!(state(world, &group), NOT_EXCLUSIVE, "the list it had is looked at, not the new one");
}

fn empty(world: &World) {
    let group = top(world, "", "\n");
    partition(world, &group, "root");
    assert_eq!(state(world, &group), "root invalid (cpuset.cpus is empty)");
    world.write(&group, Cpuset, "cpuset.cpus", "1");
    assert_eq!(state(world, &group), "root");
}

fn below_member(world: &World) {
    let group = top(world, "", "0-3");
    let below = world.create("a", &[Cpuset]);
    world.write(&below, Cpuset, "cpuset.cpus", "0-1");
    partition(world, &below, "root");
    assert_eq!(state(world, &below), "root invalid (Parent is not a partition root)");
    partition(world, &group, "root");
    assert_eq!(state(world, &below), "root", "valid as soon as it can be");
    assert_eq!((effective(world, &group).as_str(), effective(world, &below).as_str()), ("2-3", "0-1"));
    world.write(&group, Cpuset, "cpuset.cpus", "0-7");
    assert_eq!(state(world, &below), "root invalid (Parent is an invalid partition root)");
}

fn leaves_none(world: &World) {
    let group = top(world, "", "0-7");
    partition(world, &group, "root");
    assert_eq!(state(world, &group), "root invalid (Parent unable to distribute cpu downstream)");
    world.write(&group, Cpuset, "cpuset.cpus", "0-3");
    assert_eq!(state(world, &group), "root");
    let (below, tasks) = (world.create("a", &[Cpuset]), world.create("b", &[Cpuset]));
    let pid = world.start();
    world.host.move_tasks(&tasks, &[pid], What::Process).done();
    world.write(&below, Cpuset, "cpuset.cpus", "0-3");
    partition(world, &below, "root");
    assert_eq!(state(world, &below), "root invalid (Parent unable to distribute cpu downstream)");
}

fn no_cpu_left(world: &World) {
    let group = top(world, "", "0-3");
    partition(world, &group, "root");
    let (below, other) = (world.create("a", &[Cpuset]), world.create("b", &[Cpuset]));
    world.write(&below, Cpuset, "cpuset.cpus", "0-3");
    partition(world, &below, "root");
    assert_eq!(state(world, &below), "root");
    assert_eq!((effective(world, &group).as_str(), effective(world, &other).as_str()), ("", ""));
    let pid = world.start();
    refused(world.host.move_tasks(&other, &[pid], What::Process), Errno::NOSPC, "");
}

fn changes(world: &World) {
    let group = top(world, "", "0-3");
    for kind in ["root", "isolated", "root", "member"] {
        partition(world, &group, kind);
        assert_eq!(state(world, &group), kind);
    }
}
