//! Limits that meet use: memory, tasks, and what a new group takes over.

use kernel::What;
use rustix::io::Errno;
use settings::Controller::{self, Io, Memory, Pids};

use super::{
    Case,
    behaviour::limits_to_one,
    case,
    world::{Done, World, refused},
};

const MIB: u64 = 1 << 20;

pub fn cases() -> Vec<Case> {
    vec![
        case(
            "a_v1_memory_limit_below_the_use_is_refused",
            |world| world.on_v1(Memory) && no_swap(world),
            below_use_v1,
        ),
        case(
            "a_v2_memory_limit_below_the_use_kills",
            |world| world.on_v2(Memory) && no_swap(world),
            below_use_v2,
        ),
        case("memory_stays_charged_where_it_was_taken", |world| world.has(Memory), stays_charged),
        case("a_v1_group_below_one_without_memory_is_not_made", |world| world.on_v1(Memory), starved),
        case("a_new_v1_group_takes_over_the_swappiness", |world| world.on_v1(Memory), swappiness),
        case("a_new_group_has_what_the_table_says", |_| true, initial),
        case("the_root_groups_memory_is_not_limited", |world| world.has(Memory), root),
        case("tasks_are_counted_below_a_group_too", |world| world.has(Pids), counted),
        case("an_io_limit_of_one_is_refused", |world| io_max(world) && !limits_to_one(world), one_refused),
        case("an_io_limit_of_one_holds", |world| io_max(world) && limits_to_one(world), one_holds),
        case("a_throttle_is_not_inherited", |world| world.on_v1(Io) && world.disk().is_some(), not_inherited),
    ]
}

/// Swap would take what a limit leaves no room for.
fn no_swap(world: &World) -> bool {
    let swaps = world.kernel().outside("/proc/swaps".as_ref()).unwrap_or_default();
    swaps.lines().count() < 2
}

fn initial(world: &World) {
    let all = Controller::ALL.into_iter().filter(|controller| world.has(*controller));
    let group = world.create("a", &all.collect::<Vec<_>>());
    let mut seen = 0;
    for setting in settings::all() {
        let Some(version) = world.version(setting.controller) else { continue };
        let Some(binding) = setting.side(version).binding() else { continue };
        if binding.initial.is_empty() || !world.has(setting.controller) {
            continue;
        }
        let seat = world.seat(&group, setting.controller);
        let files = world.kernel().files(seat.at, &seat.path).expect("the files of a group");
        for (file, text) in binding.files.iter().zip(binding.initial) {
            // a kernel may be older, or lack a part
            if files.iter().any(|known| known == file) {
                assert_eq!(world.read(&group, setting.controller, file), *text, "{file}");
                seen += 1;
            }
        }
    }
    assert!(seen > 0);
}

fn usage_file(world: &World) -> &'static str {
    if world.on_v1(Memory) { "memory.usage_in_bytes" } else { "memory.current" }
}

fn usage(world: &World, group: &kernel::GroupName) -> u64 {
    world.read(group, Memory, usage_file(world)).parse().expect("a number of bytes")
}

/// A process in the group with so much memory in use there.
fn user(world: &World, group: &kernel::GroupName, bytes: u64) -> u32 {
    let pid = world.start();
    world.host.move_tasks(group, &[pid], What::Process).done();
    world.allocate(pid, bytes);
    pid
}

fn below_use_v1(world: &World) {
    let group = world.create("a", &[Memory]);
    let pid = user(world, &group, 20 * MIB);
    assert!(usage(world, &group) >= 20 * MIB);
    let limit = |text| world.try_write(&group, Memory, "memory.limit_in_bytes", text);
    refused(limit("4M"), Errno::BUSY, "not enough of it could be reclaimed");
    limit("64M").done();
    refused(limit("4M"), Errno::BUSY, "the group uses");
    world.end(pid);
    limit("4M").done();
}

fn below_use_v2(world: &World) {
    let group = world.create("a", &[Memory]);
    let pid = user(world, &group, 20 * MIB);
    assert!(usage(world, &group) >= 20 * MIB);
    world.write(&group, Memory, "memory.high", "1M");
    assert!(world.kernel().process(pid).is_ok(), "high does not kill");
    world.write(&group, Memory, "memory.max", "1M");
    assert!(world.has_ended(pid), "max kills");
    let events = world.read(&group, Memory, "memory.events");
    assert!(events.lines().any(|line| line == "oom_kill 1"), "{events}");
    assert!(usage(world, &group) <= MIB);
}

fn stays_charged(world: &World) {
    let (group, other) = (world.create("a", &[Memory]), world.create("b", &[Memory]));
    let pid = user(world, &group, 8 * MIB);
    world.host.move_tasks(&other, &[pid], What::Process).done();
    assert!(usage(world, &group) >= 8 * MIB, "a move does not take the charge along");
    assert!(usage(world, &other) < 8 * MIB);
    assert!(usage(world, &world.group("")) >= 8 * MIB, "it counts above, too");
    world.end(pid);
}

fn starved(world: &World) {
    let group = world.create("a", &[Memory]);
    world.write(&group, Memory, "memory.limit_in_bytes", "0");
    let seat = world.seat(&group, Memory);
    assert_eq!(world.kernel().mkdir(seat.at, &format!("{}/b", seat.path)), Err(Errno::NOMEM));
}

fn swappiness(world: &World) {
    let group = world.create("a", &[Memory]);
    world.write(&group, Memory, "memory.swappiness", "7");
    let below = world.create("a/b", &[Memory]);
    assert_eq!(world.read(&below, Memory, "memory.swappiness"), "7");
}

fn root(world: &World) {
    let at = world.host.hierarchy_of(Memory).expect("the controller's hierarchy");
    let write = |file, text| world.kernel().write(at, "", file, text);
    if world.on_v1(Memory) {
        assert_eq!(write("memory.limit_in_bytes", "5G"), Err(Errno::INVAL));
        assert_eq!(write("memory.limit_in_bytes", "-1"), Err(Errno::INVAL));
        assert_eq!(write("memory.force_empty", "0"), Err(Errno::INVAL));
    } else {
        assert_eq!(write("memory.max", "5G"), Err(Errno::NOENT));
    }
}

fn counted(world: &World) {
    let (group, below) = (world.create("a", &[Pids]), world.create("a/b", &[Pids]));
    let pid = world.start();
    world.add_thread(pid);
    world.host.move_tasks(&below, &[pid], What::Process).done();
    assert_eq!(world.read(&group, Pids, "pids.current"), "2");
    assert_eq!(world.read(&below, Pids, "pids.current"), "2");
    assert_eq!(world.read(&below, Pids, "pids.events"), "max 0");
    world.end(pid);
    assert_eq!(world.read(&group, Pids, "pids.current"), "0");
}

fn io_max(world: &World) -> bool {
    world.on_v2(Io) && world.disk().is_some() && world.has_file(Io, "io.max")
}

fn one_refused(world: &World) {
    let (group, disk) = (world.create("", &[Io]), world.disk().expect("a disk"));
    for limit in ["riops=1", "rbps=1"] {
        refused(world.try_write(&group, Io, "io.max", &format!("{disk} {limit}")), Errno::INVAL, "");
    }
    world.write(&group, Io, "io.max", &format!("{disk} riops=2"));
    assert_eq!(world.read(&group, Io, "io.max"), format!("{disk} rbps=max wbps=max riops=2 wiops=max"));
}

fn one_holds(world: &World) {
    let (group, disk) = (world.create("", &[Io]), world.disk().expect("a disk"));
    for (limit, reads) in
        [("riops=1", "rbps=max wbps=max riops=1 wiops=max"), ("rbps=1", "rbps=1 wbps=max riops=1 wiops=max")]
    {
        world.write(&group, Io, "io.max", &format!("{disk} {limit}"));
        assert_eq!(world.read(&group, Io, "io.max"), format!("{disk} {reads}"));
    }
}

fn not_inherited(world: &World) {
    let group = world.create("a", &[Io]);
    let disk = world.disk().expect("a disk");
    world.write(&group, Io, "blkio.throttle.read_bps_device", &format!("{disk} 1048576"));
    let below = world.create("a/b", &[Io]);
    assert_eq!(world.read(&below, Io, "blkio.throttle.read_bps_device"), "");
}
