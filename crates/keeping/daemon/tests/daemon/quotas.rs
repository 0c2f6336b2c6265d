//! Quotas between bounds: their groups get more CPU time as they run out of it, less when they are quiet; what a kill of
//! the daemon, an undo and somebody else's write leave.

use std::{collections::BTreeSet, time::Duration};

use apply::{By, Meta, Resizes, Running as System, State, Target};
use kernel::GroupName;
use settings::{Controller, Version};

use crate::{
    Case,
    elastic::{allowed, busy, drifts, state},
    world::{World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_quota_grows_with_its_load_and_shrinks_when_its_group_is_quiet", moved),
        ("a_daemon_killed_while_it_moves_quotas_leaves_legal_ones_and_the_next_one_goes_on", killed),
        ("a_quota_that_somebody_else_sets_out_of_its_bounds_returns_to_them", foreign),
        ("a_quota_that_the_kernel_refuses_is_given_up_after_some_tries", refused),
        ("a_quota_above_the_max_of_the_next_layout_becomes_that", lowered),
        ("an_undo_gives_back_the_quota_and_burst_of_before", undone),
    ]
}

const MIN: u64 = 10_000;
const MAX: u64 = 60_000;

fn layout(group: &str) -> String {
    format!("[groups.{group}]\ncpu.max = {{ min = \"10ms/100ms\", max = \"60ms/100ms\" }}\n")
}

/// A layout with one such group, which is there from the start of the daemon on.
fn world() -> (World, String) {
    let mut world = World::new();
    // so that the plan sees which files this kernel gives a group
    world.group_of(Controller::Cpu, "other");
    let group = world.group_name("quota");
    world.write("layout.toml", &layout(&group));
    (world, group)
}

/// A group's quota in microseconds and its burst, as the kernel has them; without a quota `None`.
fn quota(world: &World, group: &str) -> (Option<u64>, u64) {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, Controller::Cpu).unwrap();
    let (quota, burst) = match seat.at.version {
        Version::V1 => ("cpu.cfs_quota_us", "cpu.cfs_burst_us"),
        Version::V2 => ("cpu.max", "cpu.max.burst"),
    };
    let number = |file: &str| {
        let text = world.host.read(&seat, &name, file).unwrap();
        text.split_whitespace().next().and_then(|first| first.parse().ok())
    };
    (number(quota), number(burst).unwrap_or(0))
}

/// Writes a quota and period, as somebody else would.
fn set_quota(world: &World, group: &str, micros: u64) {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, Controller::Cpu).unwrap();
    match seat.at.version {
        Version::V1 => world.host.write(&seat, &name, "cpu.cfs_quota_us", &micros.to_string()),
        Version::V2 => world.host.write(&seat, &name, "cpu.max", &format!("{micros} 100000")),
    }
    .unwrap();
}

fn moved() {
    let (world, group) = world();
    let daemon = world.daemon(&[]);
    assert_eq!(quota(&world, &group), (Some(MIN), 0), "{}", daemon.log());
    let load = busy(&world, &group);
    eventually("the whole quota under load", || quota(&world, &group).0 == Some(MAX));
    assert!(quota(&world, &group).1 > 0, "it may burst");
    assert_eq!(drifts(&world), [""; 0], "a larger quota is no drift");
    drop(load);
    eventually("the least without load", || quota(&world, &group) == (Some(MIN), 0));
    assert_eq!(drifts(&world), [""; 0]);
    let changes = Resizes::of(&state(&world)).last(100).unwrap();
    assert!(changes.iter().all(|change| change.group == group && change.refused.is_none()), "{changes:?}");
    let settings: BTreeSet<&str> = changes.iter().map(|change| change.setting.as_str()).collect();
    assert_eq!(settings, BTreeSet::from(["cpu.max", "cpu.max.burst"]));
    let last = changes.last().unwrap();
    assert_eq!(last.to, "10%", "{last}");
    daemon.end();
}

fn killed() {
    let (world, group) = world();
    let mut seen = BTreeSet::new();
    for round in 0..8 {
        let daemon = world.daemon(&[]);
        let load = busy(&world, &group);
        if round % 4 == 3 {
            eventually("a larger quota", || quota(&world, &group).0 > Some(MIN));
        }
        std::thread::sleep(Duration::from_millis(37 * round));
        daemon.kill();
        let (now, burst) = quota(&world, &group);
        let now = now.unwrap();
        assert!((MIN..=MAX).contains(&now) && burst <= now, "{now} {burst}");
        assert_eq!(drifts(&world), [""; 0], "{now} {burst}");
        seen.insert(now);
        drop(load);
    }
    eprintln!("killed with {seen:?} us");
    assert!(seen.iter().any(|now| *now > MIN));
}

fn foreign() {
    let (world, group) = world();
    let daemon = world.daemon(&[]);
    let resizes = Resizes::of(&state(&world));
    eventually("a controller", || resizes.controller().is_some_and(|one| one.generation.is_some()));
    resizes.pause().unwrap();
    daemon.wait_for_log("resizing is paused", 1);
    set_quota(&world, &group, 90_000);
    assert_eq!(drifts(&world).len(), 1, "out of its bounds");
    resizes.resume().unwrap();
    eventually("its min", || quota(&world, &group).0 == Some(MIN));
    let returned = |change: &apply::Resize| (change.from.as_str(), change.to.as_str()) == ("90%", "10%");
    // a change is recorded after it was written
    eventually("its record", || resizes.last(100).unwrap().iter().any(returned));
    let changes = resizes.last(100).unwrap();
    let line = changes.iter().find(|change| returned(change));
    assert!(line.is_some_and(|line| line.why.contains("out of its bounds")), "{changes:?}");
    set_quota(&world, &group, 30_000);
    assert_eq!(drifts(&world), [""; 0], "within its bounds");
    eventually("its min, as it is quiet", || quota(&world, &group).0 == Some(MIN));
    daemon.end();
}

/// Only v1 refuses a quota below that of a group below.
fn refused() {
    let (mut world, group) = world();
    let (other, cpus) = (world.group_name("other-quota"), world.group_name("elastic"));
    let elastic = format!("[groups.{cpus}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n");
    world.write("layout.toml", &format!("{}{}{elastic}", layout(&group), layout(&other)));
    let daemon = world.daemon(&[]);
    let load = busy(&world, &group);
    eventually("the whole quota under load", || quota(&world, &group).0 == Some(MAX));
    drop(load);
    let below = format!("{group}/below");
    let name = GroupName::new(&below).unwrap();
    world.host.create(&name, Some(&[Controller::Cpu]), &kernel::Access::default()).unwrap();
    set_quota(&world, &below, 35_000);
    if world.host.hierarchy_of(Controller::Cpu).unwrap().version == Version::V2 {
        eventually("the least without load", || quota(&world, &group) == (Some(MIN), 0));
        return daemon.end();
    }
    daemon.wait_for_log("the kernel refuses the static shares, too", 1);
    let resizes = Resizes::of(&state(&world));
    let refusals = || resizes.last(100).unwrap().iter().filter(|change| change.refused.is_some()).count();
    let (count, now) = (refusals(), quota(&world, &group).0.unwrap());
    assert_eq!(count, 6, "three end it, and three tries of the min follow");
    assert!((35_000..=MAX).contains(&now), "{now}");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(refusals(), count, "nothing is tried any more");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("resizing of the quota")).unwrap();
    let words = resizes.trouble(&apply::Again::default(), |at| at.to_string()).unwrap();
    for part in [
        &format!("the quota of {group}"),
        "[EINVAL]",
        "CPU sets and other quotas goes on",
        "ringfence resume",
    ] {
        assert!(line.contains(part) && words.contains(part), "{part}: {line} {words}");
    }
    let refused = log.lines().filter(|line| line.contains("refused: "));
    assert!(refused.clone().count() > 0 && refused.clone().all(|line| line.contains("WARN")), "{log}");
    assert!(
        log.lines().all(|line| line.contains("INFO") || line.contains("WARN") || line.contains("DEBUG")),
        "{log}"
    );
    // other groups' quotas go on, and CPU sets
    let load = [busy(&world, &other), busy(&world, &cpus)];
    eventually("the whole quota under load", || quota(&world, &other).0 == Some(MAX));
    for process in &load[1] {
        eventually("two CPUs under load", || allowed(process.pid()).len() == 2);
    }
    drop(load);
    // what refused it is gone, and it is resized again
    world.host.delete(&name, true).unwrap();
    resizes.resume().unwrap();
    eventually("no trouble", || resizes.trouble(&apply::Again::default(), |at| at.to_string()).is_none());
    eventually("a smaller quota without load", || quota(&world, &group).0 < Some(now));
    daemon.end();
}

fn lowered() {
    let (world, group) = world();
    let daemon = world.daemon(&[]);
    let load = busy(&world, &group);
    eventually("the whole quota under load", || quota(&world, &group).0 == Some(MAX));
    daemon.end();
    world.write("layout.toml", &layout(&group).replace("60ms", "40ms"));
    let daemon = world.daemon(&[]);
    let changes = Resizes::of(&state(&world)).last(100).unwrap().len();
    assert_eq!(quota(&world, &group).0, Some(40_000), "{}", daemon.log());
    let later = Resizes::of(&state(&world)).last(100).unwrap().split_off(changes);
    assert!(later.iter().all(|change| change.setting != "cpu.max"), "{later:?}");
    drop(load);
    daemon.end();
}

fn undone() {
    let mut world = World::new();
    let group = world.group_of(Controller::Cpu, "quota");
    set_quota(&world, &group, MIN);
    world.write("layout.toml", &layout(&group));
    let daemon = world.daemon(&[]);
    let load = busy(&world, &group);
    eventually("a larger quota", || quota(&world, &group).0 > Some(MIN));
    let state = State::open(world.directory.join("state")).unwrap();
    let system = System::new();
    let target = Target { host: &world.host, system: &system };
    let meta = Meta { by: By::caller(), what: "undo".to_owned(), ..Meta::default() };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    let outcome = apply::undo(&lock, target, Some(0), &meta).unwrap();
    drop(lock);
    assert_eq!(outcome.replaced, [""; 0], "what the daemon wrote is nobody else's");
    daemon.wait_for_log("no layout in effect has elastic groups", 1);
    assert_eq!(quota(&world, &group), (Some(MIN), 0));
    drop(load);
    assert_eq!(quota(&world, &group), (Some(MIN), 0), "nothing is written after it");
    daemon.end();
}
