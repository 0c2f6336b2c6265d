//! Quotas and real-time budgets along the tree.

use rustix::io::Errno;
use settings::Controller::Cpu;

use super::{
    Case, case,
    world::{Done, World, refused},
};

pub fn cases() -> Vec<Case> {
    vec![
        case("a_v1_quota_fits_into_the_parents", |world| world.on_v1(Cpu), quota_below_parent),
        case("a_v1_parent_keeps_what_its_children_may_use", |world| world.on_v1(Cpu), quota_above_children),
        case("a_v2_quota_may_be_larger_than_the_parents", |world| world.on_v2(Cpu), quota_v2),
        case(
            "real_time_budgets_of_siblings_add_up_to_the_parents",
            |world| world.has_file(Cpu, "cpu.rt_runtime_us"),
            budgets,
        ),
        case("an_idle_group_has_no_weight_of_its_own", |world| world.on_v2(Cpu), idle),
        case("the_root_groups_cpu_is_not_limited", |world| world.has(Cpu), root),
    ]
}

fn quota_below_parent(world: &World) {
    let (group, below) = (world.create("a", &[Cpu]), world.create("a/b", &[Cpu]));
    world.write(&group, Cpu, "cpu.cfs_quota_us", "50000");
    let refusal =
        refused(world.try_write(&below, Cpu, "cpu.cfs_quota_us", "50001"), Errno::INVAL, "may run 0.50 CPUs");
    assert!(refusal.cause.unwrap_or_default().contains(group.path()));
    world.write(&below, Cpu, "cpu.cfs_quota_us", "25000");
    refused(world.try_write(&below, Cpu, "cpu.cfs_period_us", "10000"), Errno::INVAL, "may run 0.50 CPUs");
    world.write(&below, Cpu, "cpu.cfs_period_us", "50000");
    let deep = world.create("a/b/c", &[Cpu]);
    refused(world.try_write(&deep, Cpu, "cpu.cfs_quota_us", "60000"), Errno::INVAL, "may run 0.50 CPUs");
    world.write(&below, Cpu, "cpu.cfs_quota_us", "-1");
    refused(
        world.try_write(&deep, Cpu, "cpu.cfs_quota_us", "60000"),
        Errno::INVAL,
        "less than the 0.60 requested",
    );
    world.write(&group, Cpu, "cpu.cfs_quota_us", "-1");
    world.write(&deep, Cpu, "cpu.cfs_quota_us", "60000");
}

fn quota_above_children(world: &World) {
    let (group, below) = (world.create("a", &[Cpu]), world.create("a/b", &[Cpu]));
    world.write(&group, Cpu, "cpu.cfs_quota_us", "50000");
    world.write(&below, Cpu, "cpu.cfs_quota_us", "25000");
    let refusal = refused(
        world.try_write(&group, Cpu, "cpu.cfs_quota_us", "24999"),
        Errno::INVAL,
        "below it may run 0.25 CPUs",
    );
    assert!(refusal.cause.unwrap_or_default().contains(below.path()));
    refused(world.try_write(&group, Cpu, "cpu.cfs_period_us", "200001"), Errno::INVAL, "");
    assert_eq!(world.read(&group, Cpu, "cpu.cfs_quota_us"), "50000");
    assert_eq!(world.read(&group, Cpu, "cpu.cfs_period_us"), "100000");
}

fn quota_v2(world: &World) {
    let (group, below) = (world.create("a", &[Cpu]), world.create("a/b", &[Cpu]));
    world.write(&group, Cpu, "cpu.max", "50000 100000");
    world.write(&below, Cpu, "cpu.max", "90000 100000");
    assert_eq!(world.read(&below, Cpu, "cpu.max"), "90000 100000");
    world.write(&group, Cpu, "cpu.max", "10000");
}

fn budgets(world: &World) {
    let (group, other) = (world.create("a", &[Cpu]), world.create("b", &[Cpu]));
    let write = |group, text| world.try_write(group, Cpu, "cpu.rt_runtime_us", text);
    refused(write(&group, "1000"), Errno::INVAL, "of which groups beside this one hold 0 us: 0 us are free");
    let top = world.group("");
    world.write(&top, Cpu, "cpu.rt_runtime_us", "500000");
    write(&group, "400000").done();
    refused(write(&other, "100100"), Errno::INVAL, "hold 400000 us: 100000 us are free");
    write(&other, "100000").done();
    refused(write(&top, "499999"), Errno::INVAL, "");
    refused(write(&top, "950001"), Errno::INVAL, "");
    let below = world.create("a/c", &[Cpu]);
    refused(write(&below, "400001"), Errno::INVAL, "a real-time budget of 400000 us");
    write(&below, "400000").done();
}

fn idle(world: &World) {
    let group = world.create("a", &[Cpu]);
    let weight = || world.read(&group, Cpu, "cpu.weight");
    world.write(&group, Cpu, "cpu.weight", "80");
    world.write(&group, Cpu, "cpu.idle", "0");
    assert_eq!(weight(), "80", "it was not idle");
    world.write(&group, Cpu, "cpu.idle", "1");
    assert!(["0", "1"].contains(&weight().as_str()), "Linux 6.1 shows 0, 6.12 shows 1");
    refused(world.try_write(&group, Cpu, "cpu.weight", "100"), Errno::INVAL, "");
    refused(world.try_write(&group, Cpu, "cpu.weight.nice", "0"), Errno::INVAL, "");
    for nonsense in ["2", "-1", "x", "\n"] {
        refused(world.try_write(&group, Cpu, "cpu.idle", nonsense), Errno::INVAL, "");
    }
    world.write(&group, Cpu, "cpu.idle", "0");
    assert_eq!(weight(), "100", "what it was before is forgotten");
}

fn root(world: &World) {
    let at = world.host.hierarchy_of(Cpu).expect("the controller's hierarchy");
    let write = |file, text| world.kernel().write(at, "", file, text);
    if world.on_v1(Cpu) {
        assert_eq!(write("cpu.shares", "512"), Err(Errno::INVAL));
        assert_eq!(write("cpu.cfs_quota_us", "50000"), Err(Errno::INVAL));
        assert_eq!(write("cpu.cfs_quota_us", "-1"), Err(Errno::INVAL));
        assert_eq!(write("cpu.idle", "1"), Err(Errno::INVAL));
    } else {
        assert_eq!(write("cpu.max", "50000"), Err(Errno::NOENT));
        assert_eq!(write("cpu.weight", "50"), Err(Errno::NOENT));
    }
}
