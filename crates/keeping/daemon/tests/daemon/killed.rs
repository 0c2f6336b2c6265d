//! The daemon killed while it writes: when it undoes a change that nobody confirmed, and when it repairs. The next daemon
//! finds it interrupted, and afterwards all is as before the change, or as the layout says.

use std::time::{Duration, Instant};

use apply::{By, Earlier, Meta, Running as System, State, Target};
use kernel::GroupName;
use rustix::process::{Signal, getpriority_process, setpriority_process};
use settings::{Controller, Version};

use crate::{
    Case,
    world::{Daemon, World, end, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_daemon_killed_while_it_undoes_an_unconfirmed_change_leaves_that_to_the_next_one", undoing),
        ("a_daemon_killed_while_it_repairs_leaves_that_to_the_next_one", repairing),
    ]
}

/// How many groups: a change of all of them takes a while, on an emulated machine soon a long one.
fn groups() -> usize {
    if crate::is_vm() { 24 } else { 120 }
}

/// How often it has to be killed in the midst of it, in how many rounds at most: where the machine is busy, a kill comes
/// late.
fn wanted() -> (usize, usize) {
    if crate::is_vm() { (1, 8) } else { (3, 24) }
}

fn limits(world: &World, groups: &[String]) -> Vec<String> {
    groups.iter().map(|group| world.limit(group)).collect()
}

fn layout_of(groups: &[String], max: u32) -> String {
    groups.iter().map(|group| format!("[groups.{group}]\npids.max = {max}\n")).collect()
}

/// A daemon with so little CPU time that it comes to a halt in the midst of what it does, however busy the machine is.
fn slow(world: &mut World, words: &[&str], number: usize) -> Daemon {
    let group = world.group_of(Controller::Cpu, &format!("slow-{number}"));
    let name = GroupName::new(&group).unwrap();
    let daemon = world.daemon(words);
    let seat = world.host.seat(&name, Controller::Cpu).unwrap();
    // an emulated machine is slow by itself
    let quota = if crate::is_vm() { 10_000 } else { 1_000 };
    let files = match seat.at.version {
        Version::V1 => {
            vec![("cpu.cfs_period_us", "20000".to_owned()), ("cpu.cfs_quota_us", quota.to_string())]
        }
        Version::V2 => vec![("cpu.max", format!("{quota} 20000"))],
    };
    for (file, text) in files.into_iter().chain([("cgroup.procs", daemon.pid().to_string())]) {
        world.host.kernel().write(seat.at, &seat.path, file, &text).unwrap();
    }
    daemon
}

/// Kills it once so many groups have the limit. How many had it then.
fn kill_after(world: &World, groups: &[String], (limit, after): (&str, usize), daemon: Daemon) -> usize {
    let count = || groups.iter().filter(|group| world.limit(group) == limit).count();
    let deadline = Instant::now() + Duration::from_secs(300);
    // who looks must not wait for a CPU while the daemon goes on
    let nice = getpriority_process(None).unwrap();
    setpriority_process(None, -20).unwrap();
    while count() < after && Instant::now() < deadline {}
    let pid = daemon.pid();
    end(pid, Signal::KILL);
    setpriority_process(None, nice).unwrap();
    assert!(Instant::now() < deadline, "{} of {after}\n{}", count(), daemon.log());
    daemon.kill();
    count()
}

/// Rounds, each of which kills a daemon and says how many groups were back then.
fn rounds(mut round: impl FnMut(usize, usize) -> usize) {
    let (mut at, mut midst) = (Vec::new(), 0);
    let (groups, (wanted, most)) = (groups(), wanted());
    while midst < wanted && at.len() < most {
        // round after round after the first, a quarter, half, three quarters of them
        let back = round(at.len(), (at.len() % 4 * groups / 4).max(1));
        midst += usize::from((1..groups).contains(&back));
        at.push(back);
    }
    eprintln!("killed when {at:?} of {groups} groups were back");
    assert_eq!(midst, wanted, "{at:?}");
}

/// As `ringfence apply --confirm 0` whose reverting process was killed.
fn unconfirmed(world: &World, groups: &[String]) {
    let read = layout::read_toml(&[layout::Source::new("layout.toml", &layout_of(groups, 222))]);
    let (desired, live) = (read.desired.unwrap(), topology::Machine::live().unwrap());
    let system = System::new();
    let (target, accounts) = (Target { host: &world.host, system: &system }, system::Accounts::new());
    let plan = apply::planned(target, &Earlier::none(), &desired, &live, &system::Live, &accounts).unwrap();
    let meta = Meta {
        by: By::caller(),
        what: "a test".to_owned(),
        confirm_within: Some(0),
        layout: false,
        rules: None,
        file: None,
    };
    let lock = State::open(world.directory.join("state")).unwrap().lock(Duration::from_secs(60)).unwrap();
    apply::execute(&lock, target, &plan, &meta).unwrap();
}

fn undoing() {
    let mut world = World::new();
    let own = world.group_name("own");
    world.write("layout.toml", &layout_of(std::slice::from_ref(&own), 500));
    let groups: Vec<String> = (0..groups()).map(|number| world.group(&format!("{number:03}"))).collect();
    groups.iter().for_each(|group| world.set_limit(group, "111"));
    world.daemon(&[]).end();
    rounds(|number, after| {
        let daemon = slow(&mut world, &[], number);
        unconfirmed(&world, &groups);
        let back = kill_after(&world, &groups, ("111", after), daemon);
        let left = limits(&world, &groups);
        assert!(left.iter().all(|limit| ["111", "222"].contains(&limit.as_str())), "{left:?}");

        let daemon = world.daemon(&[]);
        eventually("as before the change", || limits(&world, &groups) == vec!["111"; groups.len()]);
        assert_eq!(world.limit(&own), "500");
        daemon.end();
        let system = System::new();
        let target = Target { host: &world.host, system: &system };
        let state = State::open(world.directory.join("state")).unwrap();
        assert!(
            apply::unfinished(&state, target).unwrap().is_none()
                && apply::pending(&state, target).unwrap().is_none()
        );
        back
    });
}

fn repairing() {
    let mut world = World::new();
    let groups: Vec<String> = (0..groups()).map(|number| world.group_name(&format!("{number:03}"))).collect();
    world.write("layout.toml", &layout_of(&groups, 500));
    let words = ["every=20", "keep=repair"];
    world.daemon(&words).end();
    rounds(|number, after| {
        let daemon = slow(&mut world, &words, number);
        // it sees all of it at once
        daemon.signal(Signal::STOP);
        groups.iter().for_each(|group| world.set_limit(group, "77"));
        daemon.signal(Signal::CONT);
        let back = kill_after(&world, &groups, ("500", after), daemon);
        let left = limits(&world, &groups);
        assert!(left.iter().all(|limit| ["77", "500"].contains(&limit.as_str())), "{left:?}");

        let daemon = world.daemon(&words);
        eventually("as the layout says", || limits(&world, &groups) == vec!["500"; groups.len()]);
        daemon.end();
        back
    });
}
