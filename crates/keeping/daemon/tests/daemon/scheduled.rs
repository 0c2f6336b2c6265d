//! Changes by schedule: what the kernel has before, between and after, also if the daemon is killed meanwhile.

use std::{
    os::unix::fs::MetadataExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use apply::{By, Meta, Running as System, State, Target};
use kernel::GroupName;
use rustix::process::Signal;
use settings::Controller;

use crate::{
    Case,
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_change_by_delay_is_made_and_taken_back_in_turns", turns),
        ("a_daemon_killed_between_two_changes_goes_on_with_what_is_in_force", killed),
        ("a_change_lasts_as_long_as_a_process_of_its_program", program),
        ("the_end_of_a_change_that_came_with_the_layout_leaves_its_groups", with_layout),
        ("a_change_that_was_undone_is_not_repaired", undone),
        ("the_cpus_of_two_groups_change_hands_by_schedule", swap),
        ("a_change_that_this_machine_cannot_have_leaves_the_layout_as_it_is", refused),
    ]
}

pub const OF_THE_CLOCK: &[Case] = &[("a_clock_that_is_set_makes_what_is_due_then", clock)];

pub const OF_UNITS: &[Case] = &[("a_change_lasts_as_long_as_a_unit_is_active", unit)];

fn layout(world: &mut World, schedules: &str) -> String {
    let group = world.group_name("db");
    let text = format!("[groups.{group}]\npids.max = 500\n{}", schedules.replace("GROUP", &group));
    world.write("layout.toml", &text);
    group
}

/// A delay that ends after a daemon's start, also on a slow machine: what is due at the start comes with the layout.
fn delay(least: Duration) -> Duration {
    let mut world = World::new();
    layout(&mut world, "");
    let start = Instant::now();
    world.daemon(&[]).end();
    least.max(start.elapsed() * 4)
}

/// The CPUs of both groups in study S1 (3b), where 600 s are between the changes; on smaller machines the same with two.
fn study() -> ([&'static str; 2], [&'static str; 2]) {
    match std::thread::available_parallelism().unwrap().get() {
        36.. => (["0-3", "4-35"], ["0-31", "32-35"]),
        _ => (["0", "1"], ["1", "0"]),
    }
}

/// Instance 1 has 4 CPUs and instance 2 has 32, then the other way round, and so on.
fn swap() {
    let (old, new) = study();
    let mut world = World::new();
    let groups = ["test1", "test2"].map(|name| world.group_name(name));
    let program = world.copy("sleep", "instance");
    let before: String = [0, 1]
        .map(|index| format!("[groups.{}]\ncpus = \"{}\"\nmems = \"all\"\n", groups[index], old[index]))
        .concat();
    world.write("layout.toml", &before);
    let daemon = world.daemon(&[]);
    let instances = [0, 0, 1, 1].map(|index| {
        let process = Running::start(&program, &["600"]);
        let group = GroupName::new(&groups[index]).unwrap();
        world.host.move_tasks(&group, &[process.pid()], kernel::What::Process).unwrap();
        (index, process)
    });
    let allowed = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    let have = |cpus: [&str; 2]| instances.iter().all(|(index, one)| allowed(one.pid()) == cpus[*index]);
    let seen = |what: &str| {
        let lists: Vec<String> = instances.iter().map(|(_, one)| allowed(one.pid())).collect();
        eprintln!("{what}: {}", lists.join(" "));
    };
    assert!(have(old), "{}", daemon.log());
    seen("before");
    daemon.end();

    let [one, two] = [0, 1].map(|index| format!("groups.{}.cpus = \"{}\"\n", groups[index], new[index]));
    let delay = delay(Duration::from_secs(2)).as_millis();
    let schedule =
        format!("[[schedule]]\nname = \"swap\"\nafter = \"{delay}ms\"\nevery = \"{delay}ms\"\n{one}{two}");
    world.write("layout.toml", &(before + &schedule));
    let daemon = world.daemon(&[]);
    eventually("the groups have each other's number of CPUs", || have(new));
    seen("between");
    eventually("the groups have their own CPUs again", || have(old));
    seen("after");
    daemon.end();
    let records = history(&world).join("\n");
    assert!(records.contains("schedule swap begins") && records.contains("schedule swap ends"), "{records}");
}

/// What the history says of each change, the oldest first.
fn history(world: &World) -> Vec<String> {
    let records = apply::history(&State::peek(world.directory.join("state"))).unwrap();
    records.into_iter().map(|record| record.head.what).collect()
}

fn is(world: &World, group: &str, limit: &str) {
    eventually(&format!("pids.max is {limit}"), || world.limit(group) == limit);
}

fn turns() {
    let mut world = World::new();
    let delay = delay(Duration::from_secs(1)).as_millis();
    let schedule = format!(
        "[[schedule]]\nname = \"swap\"\nafter = \"{delay}ms\"\nevery = \"{delay}ms\"\ngroups.GROUP.pids.max = 77\n"
    );
    let group = layout(&mut world, &schedule);
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    for limit in ["77", "500", "77"] {
        is(&world, &group, limit);
    }
    daemon.end();
    let whats: Vec<String> =
        history(&world).iter().map(|what| what.split(':').next().unwrap_or_default().to_owned()).collect();
    let changes = ["schedule swap begins", "schedule swap ends", "schedule swap begins"];
    assert_eq!(whats.get(1..4).unwrap_or_default(), changes, "{whats:?}");
}

fn killed() {
    let mut world = World::new();
    let delay = delay(Duration::from_secs(2));
    let after = format!("after = \"{}ms\"", delay.as_millis());
    let schedule = format!("[[schedule]]\nname = \"later\"\n{after}\ngroups.GROUP.pids.max = 77\n");
    let group = layout(&mut world, &schedule);
    world.daemon(&[]).kill();
    assert_eq!(world.limit(&group), "500");
    std::thread::sleep(delay + Duration::from_millis(100));
    assert_eq!(world.limit(&group), "500", "nobody was there to change it");
    // the delay counts from the first apply
    let daemon = world.daemon(&["every=50"]);
    assert_eq!(world.limit(&group), "77", "{}", daemon.log());
    daemon.kill();
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    assert_eq!(world.limit(&group), "77", "{}", daemon.log());
    // what is repaired is the layout as it is scheduled now
    world.set_limit(&group, "99");
    daemon.wait_for_log("repaired: the machine matches the layout again", 1);
    assert_eq!(world.limit(&group), "77", "{}", daemon.log());
    // another text is another layout: the delay begins again
    let text = std::fs::read_to_string(world.directory.join("layout.toml")).unwrap();
    world.write("layout.toml", &format!("{}# changed\n", text.replace(&after, "after = \"1h\"")));
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("INFO reloaded", 1);
    assert_eq!(world.limit(&group), "500", "{}", daemon.log());
    daemon.end();
}

/// A change that lasts as long as a process of this program; the group.
fn while_a_program_runs(world: &mut World) -> (PathBuf, String) {
    let program = world.copy("sleep", "dump");
    let schedule =
        "[[schedule]]\nname = \"dump\"\non = { process = \"PROGRAM\" }\ngroups.GROUP.pids.max = 77\n";
    let group = layout(world, &schedule.replace("PROGRAM", &program.display().to_string()));
    (program, group)
}

fn program() {
    let mut world = World::new();
    let (program, group) = while_a_program_runs(&mut world);
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "500");
    let first = Running::start(&program, &["600"]);
    is(&world, &group, "77");
    let second = Running::start(&program, &["600"]);
    drop(first);
    // the daemon has seen the end of the first once it has seen the rest of what happened until now
    let marked = Running::start(&program, &["0"]);
    drop(marked);
    assert_eq!(world.limit(&group), "77", "{}", daemon.log());
    // it ends while nobody looks
    daemon.kill();
    drop(second);
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "500", "{}", daemon.log());
    daemon.end();
}

fn with_layout() {
    let mut world = World::new();
    let (program, group) = while_a_program_runs(&mut world);
    let dump = Running::start(&program, &["600"]);
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "77", "{}", daemon.log());
    let inode = || {
        let seat = world.host.seat(&GroupName::new(&group).unwrap(), Controller::Pids).unwrap();
        std::fs::metadata(seat.directory()).unwrap().ino()
    };
    let before = inode();
    drop(dump);
    daemon.wait_for_log("schedule dump ends", 1);
    assert_eq!((world.limit(&group).as_str(), inode()), ("500", before), "{}", daemon.log());
    daemon.end();
}

fn unit() {
    let mut world = World::new();
    let program = world.copy("sleep", "job");
    let unit = format!("{}.service", world.group_name("job"));
    let schedule = "[[schedule]]\nname = \"job\"\non = { unit = \"UNIT\" }\ngroups.GROUP.pids.max = 77\n";
    let group = layout(&mut world, &schedule.replace("UNIT", &unit));
    let run = |program: &str, words: &[&str]| {
        let status = std::process::Command::new(program).args(words).status().unwrap();
        assert!(status.success(), "{program} {words:?}");
    };
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "500");
    run("systemd-run", &["--quiet", "--unit", &unit, program.to_str().unwrap(), "600"]);
    is(&world, &group, "77");
    run("systemctl", &["stop", &unit]);
    is(&world, &group, "500");
    // a oneshot service is never active, but starts as long as its program runs
    let words = ["--quiet", "--no-block", "--property", "Type=oneshot", "--unit", &unit];
    run("systemd-run", &[&words[..], &[program.to_str().unwrap(), "600"]].concat());
    is(&world, &group, "77");
    run("systemctl", &["stop", &unit]);
    is(&world, &group, "500");
    daemon.end();
}

fn undone() {
    let mut world = World::new();
    let delay = delay(Duration::from_millis(500)).as_millis();
    let schedule =
        format!("[[schedule]]\nname = \"later\"\nafter = \"{delay}ms\"\ngroups.GROUP.pids.max = 77\n");
    let group = layout(&mut world, &schedule);
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    is(&world, &group, "77");
    daemon.wait_for_log("schedule later begins", 1);
    let (state, system) = (State::open(world.directory.join("state")).unwrap(), System::new());
    let meta = Meta { by: By::caller(), what: "a test".to_owned(), ..Meta::default() };
    let lock = state.lock(Duration::from_secs(60)).unwrap();
    apply::undo(&lock, Target { host: &world.host, system: &system }, None, &meta).unwrap();
    drop(lock);
    daemon.wait_for_log("schedule later is not in force: its change was undone", 1);
    assert_eq!(world.limit(&group), "500");
    world.set_limit(&group, "99");
    daemon.wait_for_log("repaired: the machine matches the layout again", 1);
    assert_eq!(world.limit(&group), "500", "{}", daemon.log());
    daemon.end();
}

fn refused() {
    let mut world = World::new();
    let delay = delay(Duration::from_millis(500)).as_millis();
    let schedule =
        format!("[[schedule]]\nname = \"huge\"\nafter = \"{delay}ms\"\ngroups.GROUP = {{ cpus = 60000 }}\n");
    let group = layout(&mut world, &schedule);
    let daemon = world.daemon(&[]);
    daemon.wait_for_log("schedule 'huge' can't be followed", 1);
    daemon.wait_for_log("schedule huge begins, but is refused", 1);
    assert_eq!((world.limit(&group).as_str(), history(&world).len()), ("500", 1));
    daemon.end();
}

fn clock() {
    let set = |seconds: i64| {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let time = rustix::time::Timespec { tv_sec: now.tv_sec + seconds, tv_nsec: now.tv_nsec };
        rustix::time::clock_settime(rustix::time::ClockId::Realtime, time).unwrap();
    };
    let mut world = World::new();
    let now = jiff::Timestamp::now();
    let begins = now + jiff::SignedDuration::from_hours(2);
    let ends = now + jiff::SignedDuration::from_hours(4);
    let calendar =
        |at: jiff::Timestamp| jiff::tz::TimeZone::UTC.to_datetime(at).strftime("%H:%M:%S UTC").to_string();
    let schedule = format!(
        "[[schedule]]\nname = \"shift\"\nat = \"{}\"\nuntil = \"{}\"\ngroups.GROUP.pids.max = 77\n",
        calendar(begins),
        calendar(ends)
    );
    let group = layout(&mut world, &schedule);
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "500");
    set(3 * 3600);
    is(&world, &group, "77");
    set(2 * 3600);
    is(&world, &group, "500");
    set(-5 * 3600);
    daemon.end();
    assert_eq!(world.limit(&group), "500");
}
