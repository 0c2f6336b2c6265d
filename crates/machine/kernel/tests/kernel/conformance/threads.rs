//! Threaded subtrees of v2.

use kernel::{GroupName, What};
use rustix::io::Errno;
use settings::Controller::{Core, Cpu, Memory};

use super::{
    Case, case,
    world::{Done, World, refused, soon},
};

pub fn cases() -> Vec<Case> {
    let v2 = |world: &World| world.on_v2(Core) && world.hierarchies_of(&GroupName::root()).len() == 1;
    vec![
        case("threads_are_spread_over_a_threaded_subtree", v2, spread),
        case("a_process_is_listed_at_the_root_of_its_threaded_subtree", v2, listed),
        case("a_group_beside_a_threaded_one_becomes_invalid", v2, invalid),
        case("only_threaded_can_be_written_as_type", v2, types),
        case(
            "a_group_with_processes_that_divides_cpus_is_a_threaded_domain",
            |world| world.on_v2(Cpu) && world.on_v2(Memory),
            implicit,
        ),
        case("a_group_that_hands_out_memory_is_no_threaded_domain", |world| world.on_v2(Memory), no_memory),
    ]
}

fn kind(world: &World, group: &GroupName) -> String {
    world.read(group, Core, "cgroup.type")
}

fn move_thread(world: &World, group: &GroupName, pid: u32) -> Result<kernel::Moved, kernel::Error> {
    world.host.move_tasks(group, &[pid], What::Thread)
}

fn spread(world: &World) {
    let (top, group) = (world.create("", &[Core]), world.create("a", &[Core]));
    let pid = world.start();
    let thread = world.add_thread(pid)[1];
    world.host.move_tasks(&top, &[pid], What::Process).done();
    let refusal = refused(move_thread(world, &group, thread), Errno::OPNOTSUPP, "one threaded subtree");
    assert!(refusal.hint.unwrap_or_default().contains("cgroup.type=threaded"));
    world.write(&group, Core, "cgroup.type", "threaded");
    assert_eq!(kind(world, &top), "domain threaded");
    move_thread(world, &group, thread).done();
    assert!(world.is_in(thread, &group) && world.is_in(pid, &top));
    assert_eq!(world.read(&group, Core, "cgroup.threads"), thread.to_string());
    let root = world.seat(&group, Core).at;
    assert_eq!(world.kernel().write(root, "", "cgroup.threads", &thread.to_string()), Err(Errno::OPNOTSUPP));
    world.kernel().write(root, "", "cgroup.procs", &thread.to_string()).expect("the whole process can leave");
    assert_eq!(world.read(&group, Core, "cgroup.threads"), "");
}

fn listed(world: &World) {
    let (top, group) = (world.create("", &[Core]), world.create("a", &[Core]));
    world.write(&group, Core, "cgroup.type", "threaded");
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], What::Process).done();
    assert_eq!(world.read(&top, Core, "cgroup.procs"), pid.to_string());
    let seat = world.seat(&group, Core);
    assert_eq!(world.kernel().read(seat.at, &seat.path, "cgroup.procs"), Err(Errno::OPNOTSUPP));
    assert_eq!(world.host.tasks_in(&seat), [pid], "its threads are its tasks");
    assert_eq!(world.kernel().write(seat.at, &seat.path, "cgroup.kill", "1"), Err(Errno::OPNOTSUPP));
}

fn invalid(world: &World) {
    let (top, group, other) =
        (world.create("", &[Core]), world.create("a", &[Core]), world.create("b", &[Core]));
    world.write(&group, Core, "cgroup.type", "threaded");
    assert_eq!(
        (kind(world, &other).as_str(), kind(world, &top).as_str()),
        ("domain invalid", "domain threaded")
    );
    let pid = world.start();
    let result = world.host.move_tasks(&other, &[pid], What::Process);
    refused(result, Errno::OPNOTSUPP, "its type is 'domain invalid'");
    let below = world.create("b/c", &[Core]);
    refused(world.try_write(&below, Core, "cgroup.type", "threaded"), Errno::OPNOTSUPP, "");
    world.write(&other, Core, "cgroup.type", "threaded");
    world.write(&below, Core, "cgroup.type", "threaded");
    world.host.delete(&other, true).done();
    world.host.delete(&group, true).done();
    assert_eq!(kind(world, &top), "domain", "without threaded groups it is an ordinary one again");
}

fn types(world: &World) {
    world.create("", &[Core]);
    let group = world.create("a", &[Core]);
    refused(world.try_write(&group, Core, "cgroup.type", "domain"), Errno::INVAL, "only 'threaded'");
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], What::Process).done();
    refused(world.try_write(&group, Core, "cgroup.type", "threaded"), Errno::OPNOTSUPP, "holds processes");
    world.end(pid);
    // Linux 7.0 and later count an ended process until its CPU has left it
    soon(true, || world.try_write(&group, Core, "cgroup.type", "threaded").is_ok());
    refused(world.try_write(&group, Core, "cgroup.type", "domain"), Errno::INVAL, "there is no way back");
}

fn implicit(world: &World) {
    let group = world.create("a", &[Cpu, Memory]);
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], What::Process).done();
    let below = world.create("a/b", &[Cpu]);
    assert_eq!(
        (kind(world, &group).as_str(), kind(world, &below).as_str()),
        ("domain threaded", "domain invalid")
    );
    let result = world.host.move_tasks(&below, &[pid], What::Process);
    refused(result, Errno::OPNOTSUPP, "its type is 'domain invalid'");
    let control = |text| world.try_write(&group, Core, "cgroup.subtree_control", text);
    refused(control("+memory"), Errno::OPNOTSUPP, "works only on whole processes");
    world.write(&below, Cpu, "cpu.max", "5000");
    world.end(pid);
    assert_eq!((kind(world, &group).as_str(), kind(world, &below).as_str()), ("domain", "domain"));
}

fn no_memory(world: &World) {
    world.create("a/b", &[Memory]);
    let below = world.group("a/b");
    refused(world.try_write(&below, Core, "cgroup.type", "threaded"), Errno::OPNOTSUPP, "hands out memory");
    assert_eq!(kind(world, &below), "domain");
}
