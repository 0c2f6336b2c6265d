//! Memory between bounds: on v2 a quiet group gives some back, and what is protected follows; v1 is refused.

use std::{path::Path, time::Duration};

use apply::{By, Meta, Resizes, Running as System, State, Target};
use kernel::GroupName;
use settings::{Controller, Version};

use crate::{
    Case,
    elastic::{drifts, state},
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![("protected_memory_follows_a_quiet_group_on_v2_and_is_refused_on_v1", followed)]
}

const MIB: u64 = 1 << 20;

fn followed() {
    let mut world = World::new();
    let group = world.group_name("memory");
    let text = format!("[groups.{group}]\nmemory.low = {{ min = \"4M\", max = \"64M\" }}\n");
    world.write("layout.toml", &text);
    match world.host.hierarchy_of(Controller::Memory).map(|at| at.version) {
        Some(Version::V2) => on_v2(&world, &group),
        _ => refused(&world),
    }
}

fn refused(world: &World) {
    let daemon = world.daemon(&[]);
    daemon.wait_for_log("can't reclaim on request", 1);
    daemon.end();
}

fn low(world: &World, group: &str) -> u64 {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, Controller::Memory).unwrap();
    world.host.read(&seat, &name, "memory.low").unwrap().trim().parse().unwrap()
}

fn on_v2(world: &World, group: &str) {
    let daemon = world.daemon(&[]);
    assert_eq!(low(world, group), 4 * MIB, "{}", daemon.log());
    let file = world.directory.join("pages");
    // the pages are the group's only if the writer is in it
    let script = format!(
        "while ! grep -q {group} /proc/self/cgroup; do sleep 0.1; done; \
         dd if=/dev/zero of={} bs=1M count=160 2>/dev/null; exec sleep 600",
        file.display()
    );
    let load = Running::start(Path::new("/bin/sh"), &["-c", &script]);
    world.put(group, load.pid());
    eventually("its working set protected up to max", || low(world, group) == 64 * MIB);
    assert_eq!(drifts(world), [""; 0]);
    let changes = || Resizes::of(&state(world)).last(100).unwrap();
    eventually("a step of reclaim", || {
        changes().iter().any(|change| change.setting == "memory.current" && change.refused.is_none())
    });
    daemon.kill();
    assert_eq!(low(world, group), 64 * MIB, "a legal value stays");
    let daemon = world.daemon(&[]);
    daemon.wait_for_log("resizing", 1);
    assert_eq!(low(world, group), 64 * MIB, "the next start goes on from there");
    assert_eq!(drifts(world), [""; 0]);
    let state = State::open(world.directory.join("state")).unwrap();
    let system = System::new();
    let target = Target { host: &world.host, system: &system };
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    drop(load);
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let outcome = apply::undo(&lock, target, Some(0), &meta).unwrap();
    drop(lock);
    assert_eq!(outcome.replaced, [""; 0], "what the daemon wrote is nobody else's");
    assert!(!world.exists(group));
    daemon.end();
}
