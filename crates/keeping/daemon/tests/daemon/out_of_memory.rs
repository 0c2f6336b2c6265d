//! Processes that the kernel kills for want of memory are written down, also those of a time without a daemon.

use std::{os::unix::fs::MetadataExt, path::Path, time::Duration};

use kernel::GroupName;
use monitor::Kill;
use rustix::process::Signal;
use settings::Controller;

use crate::{
    Case,
    elastic::state,
    world::{Running, World, end, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![("who_is_killed_for_want_of_memory_is_written_down_also_without_a_daemon", written)]
}

/// The kernel says ten times in this time why it kills, also for other groups of the machine.
const RATE_LIMITED: Duration = Duration::from_secs(6);

/// Starts a process in the group that takes memory until it is killed: its number.
fn outgrow(world: &World, group: &str) -> u32 {
    let script =
        format!("while ! grep -q {group} /proc/self/cgroup; do sleep 0.1; done; exec tail /dev/zero");
    let mut load = Running::start(Path::new("/bin/sh"), &["-c", &script]);
    put(world, group, load.pid());
    load.0.wait().unwrap();
    load.pid()
}

fn put(world: &World, group: &str, pid: u32) {
    world.host.move_tasks(&GroupName::new(group).unwrap(), &[pid], kernel::What::Process).unwrap();
}

fn kills(world: &World) -> Vec<Kill> {
    why::kill_log(&state(world)).all().unwrap()
}

fn of(world: &World, pid: u32) -> Vec<Kill> {
    kills(world).into_iter().filter(|kill| kill.pid == pid).collect()
}

fn written() {
    let mut world = World::new();
    let group = world.group_of(Controller::Memory, "small");
    world.write("layout.toml", &format!("[groups.{group}]\nmemory.max = \"16M\"\n"));
    let daemon = world.daemon(&[]);
    let name = GroupName::new(&group).unwrap();
    let seat = world.host.seat(&name, Controller::Memory).unwrap();
    for file in ["memory.swap.max", "memory.memsw.limit_in_bytes"] {
        // a kernel without swap has neither
        let _ = world.host.write(&seat, &name, file, if file.ends_with("max") { "0" } else { "16777216" });
    }
    let named = |pid: u32| {
        eventually("the kill is written down", || !of(&world, pid).is_empty());
        of(&world, pid)[0].group.is_some()
    };
    let first = loop {
        let pid = outgrow(&world, &group);
        if named(pid) {
            break pid;
        }
        std::thread::sleep(RATE_LIMITED);
    };
    let kill = &of(&world, first)[0];
    let ends = |path: &Option<String>| path.as_ref().is_some_and(|path| path.ends_with(&group));
    assert!(ends(&kill.group) && ends(&kill.limited) && kill.comm == "tail", "{kill:?}");
    assert_eq!((kill.limit.map(|limit| limit.0), kill.uid), (Some(16 << 20), 0), "{kill:?}");
    let file = std::fs::metadata(state(&world).directory().join("kills/kills.jsonl")).unwrap();
    assert_eq!(file.mode() & 0o077, 0, "what the kernel's log says is not everybody's to read");
    daemon.wait_for_log(&format!("process {first} (tail, user root) with "), 1);
    daemon.end();

    let second = outgrow(&world, &group);
    assert_eq!(of(&world, second), []);
    let other = Running::start(Path::new("/bin/sleep"), &["600"]);
    put(&world, &group, other.pid());
    end(other.pid(), Signal::KILL);
    let daemon = world.daemon(&[]);
    eventually("the kill while it was down is written down", || !of(&world, second).is_empty());
    let third = outgrow(&world, &group);
    eventually("another one", || !of(&world, third).is_empty());
    assert_eq!([first, second, third].map(|pid| of(&world, pid).len()), [1; 3], "{:?}", kills(&world));
    assert_eq!(of(&world, other.pid()), []);
    daemon.end();
}
