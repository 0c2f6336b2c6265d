//! The rules of the unified hierarchy: which controllers reach a group, where processes may be, how many groups.

use std::time::{Duration, Instant};

use kernel::{GroupName, Ownership, What};
use rustix::io::Errno;
use settings::{
    Controller::{Core, Cpu, Memory, Pids},
    Version,
};

use super::{
    Case, case,
    world::{Done, NOBODY, World, refused},
};

pub fn cases() -> Vec<Case> {
    let memory = |world: &World| world.on_v2(Memory) && world.on_v2(Pids);
    vec![
        case("controllers_are_enabled_from_the_top_down", memory, top_down),
        case("controllers_are_disabled_from_the_bottom_up", memory, bottom_up),
        case("a_disabled_controller_forgets_its_settings", memory, forgets),
        case("a_disabled_controller_forgets_who_owned_its_files", memory, forgets_owners),
        case("a_group_with_processes_hands_out_no_memory", memory, no_internal_processes),
        case("a_group_that_hands_out_memory_takes_no_processes", memory, takes_no_processes),
        case("a_group_without_the_controller_is_told_how_to_get_it", memory, not_enabled),
        case("a_controller_that_is_elsewhere_is_said_to_be", |world| world.on_v2(Memory), unknown),
        case("groups_are_limited_in_depth_and_number", |world| world.on_v2(Core), limited),
        case("the_last_word_of_a_list_counts", memory, last_word),
        case("populated_tells_of_tasks_below", |world| world.on_v2(Core), populated),
    ]
}

fn control(world: &World, group: &GroupName, text: &str) -> Result<(), kernel::Error> {
    world.try_write(group, Core, "cgroup.subtree_control", text)
}

fn enabled(world: &World, group: &GroupName) -> String {
    world.read(group, Core, "cgroup.subtree_control")
}

fn top_down(world: &World) {
    let (top, group) = (world.create("", &[Pids]), world.create("a", &[Core]));
    refused(control(world, &group, "+memory"), Errno::NOENT, "not available");
    assert_eq!(enabled(world, &top), "");
    world.make(&world.group("a/b"), &[Memory]);
    assert_eq!((enabled(world, &top).as_str(), enabled(world, &group).as_str()), ("memory", "memory"));
    assert_eq!(world.read(&world.group("a/b"), Core, "cgroup.controllers"), "memory");
    control(world, &top, "+pids +memory").done();
    assert_eq!(enabled(world, &top), "memory pids");
    assert_eq!(world.read(&group, Core, "cgroup.controllers"), "memory pids");
}

fn bottom_up(world: &World) {
    world.create("a/b", &[Memory]);
    let (top, group) = (world.group(""), world.group("a"));
    refused(control(world, &top, "-memory"), Errno::BUSY, "enables memory for its own children");
    control(world, &group, "-memory").done();
    control(world, &top, "-memory").done();
    control(world, &top, "-memory").unwrap_or_else(|error| panic!("again: {error}"));
    assert_eq!(enabled(world, &top), "");
}

fn forgets(world: &World) {
    let group = world.create("a", &[Memory]);
    world.write(&group, Memory, "memory.max", "8M");
    let top = world.group("");
    control(world, &top, "-memory").done();
    let seat = world.seat(&group, Core);
    assert_eq!(world.kernel().read(seat.at, &seat.path, "memory.max"), Err(Errno::NOENT));
    control(world, &top, "+memory").done();
    assert_eq!(world.read(&group, Memory, "memory.max"), "max");
}

fn forgets_owners(world: &World) {
    let group = world.create("a", &[Memory]);
    let (top, seat) = (world.group(""), world.seat(&group, Core));
    let to = Ownership { uid: Some(NOBODY), ..Ownership::default() };
    for file in ["memory.max", "cgroup.procs"] {
        world.kernel().set_ownership(seat.at, &seat.path, Some(file), to).expect("root gives files away");
    }
    control(world, &top, "-memory").done();
    control(world, &top, "+memory").done();
    world.as_user(NOBODY, || {
        let write = |file, text| world.kernel().write(seat.at, &seat.path, file, text);
        assert_eq!(write("memory.max", "8M"), Err(Errno::ACCESS), "the file was made anew");
        assert_eq!(write("cgroup.procs", "x"), Err(Errno::INVAL), "that of the core stayed his");
    });
}

fn no_internal_processes(world: &World) {
    let group = world.create("a", &[Memory]);
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], What::Process).done();
    refused(control(world, &group, "+memory"), Errno::BUSY, &format!("holds {pid}"));
    world.make(&world.group("a/b"), &[Core]);
    let result = world.host.create(&world.group("a/c"), Some(&[Memory]), &Default::default());
    refused(result, Errno::BUSY, "cannot give controllers");
    assert!(world.host.seats(&world.group("a/c")).is_empty(), "the half made group is gone again");
}

fn takes_no_processes(world: &World) {
    let group = world.create("a", &[Memory]);
    let below = world.create("a/b", &[Memory]);
    let pid = world.start();
    let refusal = refused(
        world.host.move_tasks(&group, &[pid], What::Process),
        Errno::BUSY,
        "hands the controllers memory",
    );
    assert!(refusal.hint.unwrap_or_default().contains(below.path()), "the group below is offered");
    let seat = world.seat(&group, Core);
    let write = |file| world.kernel().write(seat.at, &seat.path, file, &pid.to_string());
    assert_eq!((write("cgroup.procs"), write("cgroup.threads")), (Err(Errno::BUSY), Err(Errno::BUSY)));
    world.host.move_tasks(&below, &[pid], What::Process).done();
}

fn not_enabled(world: &World) {
    let group = world.create("a", &[Core]);
    let refusal =
        refused(world.try_write(&group, Core, "memory.max", "8M"), Errno::NOENT, "memory is not enabled");
    assert!(refusal.hint.unwrap_or_default().contains("--controllers memory"));
}

fn unknown(world: &World) {
    let top = world.create("", &[Memory]);
    refused(control(world, &top, "+nope"), Errno::INVAL, "no controller 'nope'");
    refused(control(world, &top, "memory"), Errno::INVAL, "");
    refused(control(world, &top, "+freezer"), Errno::INVAL, "freezer");
    if world.version(Cpu) == Some(Version::V1) {
        refused(control(world, &top, "+cpu"), Errno::NOENT, "cpu");
    }
    refused(control(world, &top, "+memory +nope"), Errno::INVAL, "");
    assert_eq!(enabled(world, &top), "", "all words or none");
}

fn limited(world: &World) {
    let top = world.create("", &[Core]);
    let make = |name: &str| world.host.create(&world.group(name), Some(&[Core]), &Default::default());
    world.write(&top, Core, "cgroup.max.depth", "1");
    make("a").done();
    refused(make("a/b"), Errno::AGAIN, "cgroup.max.depth");
    world.write(&top, Core, "cgroup.max.depth", "max");
    make("a/b").done();
    world.write(&top, Core, "cgroup.max.descendants", "2");
    refused(make("c"), Errno::AGAIN, "cgroup.max.descendants");
    refused(make("a/b/c"), Errno::AGAIN, "cgroup.max.descendants");
    world.write(&top, Core, "cgroup.max.descendants", "1");
    assert!(
        world.read(&top, Core, "cgroup.stat").starts_with("nr_descendants 2\n"),
        "those that are there stay"
    );
}

fn last_word(world: &World) {
    let top = world.create("", &[Memory, Pids]);
    for (text, result) in [
        ("+memory -memory", ""),
        ("-memory +memory", "memory"),
        (" +pids  -memory\n", "pids"),
        ("\n", "pids"),
    ] {
        control(world, &top, text).done();
        assert_eq!(enabled(world, &top), result, "after {text:?}");
    }
}

fn populated(world: &World) {
    let (group, below) = (world.create("a", &[Core]), world.create("a/b", &[Core]));
    let events = |group| world.read(group, Core, "cgroup.events");
    assert_eq!(events(&group), "populated 0\nfrozen 0");
    let pid = world.start();
    world.host.move_tasks(&below, &[pid], What::Process).done();
    assert_eq!(
        (events(&group).as_str(), events(&below).as_str()),
        ("populated 1\nfrozen 0", "populated 1\nfrozen 0")
    );
    world.end(pid);
    // Linux 7 takes a task out of its group only after the last switch away from it, which its parent need not wait for
    let deadline = Instant::now() + Duration::from_secs(60);
    while events(&group) != "populated 0\nfrozen 0" {
        assert!(Instant::now() < deadline, "{}", events(&group));
        std::thread::sleep(Duration::from_millis(1));
    }
}
