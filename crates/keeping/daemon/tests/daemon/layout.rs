//! The layout is applied at the start, kept while the daemon runs, and left as it is when it ends.

use rustix::process::Signal;

use crate::{
    Case,
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_layout_is_applied_and_its_groups_outlive_a_crash", crash),
        ("drift_is_reported_once", reported),
        ("drift_is_repaired_where_that_is_asked", repaired),
        ("a_reload_without_a_setting_or_a_group_takes_it_back", taken_back),
        ("a_repair_removes_the_group_of_an_earlier_layout_once_it_is_empty", emptied),
        ("a_repair_does_not_bring_back_what_a_reload_dropped", dropped),
        ("a_layout_that_was_emptied_is_refused_and_the_one_before_stays", cut_off),
        ("a_second_daemon_on_the_same_state_is_refused", second),
    ]
}

fn layout(world: &mut World, max: u32) -> (String, std::path::PathBuf) {
    let (group, program) = (world.group_name("db"), world.copy("sleep", "sleep"));
    let text =
        format!("[groups.{group}]\npids.max = {max}\nmatch = [{{ process = \"{}\" }}]\n", program.display());
    world.write("layout.toml", &text);
    (group, program)
}

fn crash() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, 500);
    let daemon = world.daemon(&[]);
    assert_eq!(world.limit(&group), "500");
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    daemon.kill();
    assert_eq!((world.limit(&group).as_str(), world.place(process.pid())), ("500", Some(group.clone())));
    let meanwhile = Running::start(&program, &["600"]);
    let daemon = world.daemon(&[]);
    for pid in [process.pid(), meanwhile.pid()] {
        assert_eq!(world.place(pid).as_deref(), Some(group.as_str()));
    }
    assert_eq!(world.limit(&group), "500");
    daemon.end();
    assert_eq!(world.limit(&group), "500");
}

fn reported() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, 500);
    let daemon = world.daemon(&["every=50"]);
    world.set_limit(&group, "77");
    daemon.wait_for_log("drift: group", 1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(daemon.log().matches("drift: group").count(), 1, "{}", daemon.log());
    assert_eq!(world.limit(&group), "77");
    daemon.end();
}

fn repaired() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, 500);
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    for (times, value) in ["77", "78"].into_iter().enumerate() {
        world.set_limit(&group, value);
        daemon.wait_for_log("repaired: the machine matches the layout again", times + 1);
        assert_eq!(world.limit(&group), "500");
    }
    daemon.end();
}

fn reload(world: &World, daemon: &Daemon, layout: &str, times: usize) {
    world.write("layout.toml", layout);
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("INFO reloaded", times);
}

/// What limits the processes counts, wherever they are then.
fn taken_back() {
    for words in [&[][..], &["every=50", "keep=repair"]] {
        let mut world = World::new();
        let (one, other) = (world.group_name("one"), world.group_name("other"));
        let program = world.copy("sleep", "sleep");
        let group = |group: &str, demands: &str| format!("[groups.{group}]\n{demands}\n");
        let both = group(&one, "pids.max = 500\ncpu.weight = 200") + &group(&other, "pids.max = 400");
        world.write("layout.toml", &both);
        let daemon = world.daemon(words);
        let processes = [&one, &other].map(|group| {
            let process = Running::start(&program, &["600"]);
            world.put(group, process.pid());
            process
        });
        let limits = || [0, 1].map(|index| world.limit_of(processes[index].pid()));
        assert_eq!(limits(), ["500", "400"]);

        let without = group(&one, "cpu.weight = 200") + &group(&other, "pids.max = 400");
        reload(&world, &daemon, &without, 1);
        assert_eq!(limits(), ["max", "400"], "{}", daemon.log());
        reload(&world, &daemon, &group(&one, "cpu.weight = 200"), 2);
        assert_eq!(limits(), ["max", "max"], "{}", daemon.log());
        reload(&world, &daemon, &both, 3);
        assert_eq!(world.limit(&other), "400");
        daemon.end();
    }
}

fn emptied() {
    let mut world = World::new();
    let (gone, stays) = (world.group_name("gone"), world.group_name("stays"));
    let program = world.copy("sleep", "sleep");
    let layout = format!("[groups.{stays}]\npids.max = 400\n");
    world.write("layout.toml", &format!("{layout}[groups.{gone}]\npids.max = 500\n"));
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    let process = Running::start(&program, &["600"]);
    world.put(&gone, process.pid());
    reload(&world, &daemon, &layout, 1);
    assert_eq!(world.limit(&gone), "max", "it has to stay, but not its limit");
    drop(process);
    eventually("the empty group is removed", || !world.exists(&gone));
    assert_eq!(world.limit(&stays), "400");
    daemon.end();
}

fn dropped() {
    let mut world = World::new();
    let (gone, stays) = (world.group_name("gone"), world.group_name("stays"));
    let program = world.copy("sleep", "sleep");
    let layout = format!("[groups.{stays}]\npids.max = 400\n");
    world.write("layout.toml", &format!("{layout}[groups.{gone}]\npids.max = 500\nkeep = \"off\"\n"));
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    let process = Running::start(&program, &["600"]);
    world.put(&gone, process.pid());
    // already as it was before the first layout: the reload has no step for it
    world.set_limit(&gone, "max");
    reload(&world, &daemon, &layout, 1);
    // each repair is a generation, and the second one follows a look at the first
    for (times, value) in ["77", "78"].into_iter().enumerate() {
        world.set_limit(&stays, value);
        daemon.wait_for_log("repaired: the machine matches the layout again", times + 1);
    }
    assert!(!daemon.log().contains("asked for 500"), "{}", daemon.log());
    assert_eq!(world.limit(&gone), "max");
    daemon.end();
}

fn cut_off() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, 500);
    let daemon = world.daemon(&[]);
    world.write("layout.toml", "# [groups.db]\n");
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("has no groups: it would undo everything that earlier layouts applied", 1);
    assert_eq!(world.limit(&group), "500");
    daemon.end();
}

fn second() {
    let mut world = World::new();
    layout(&mut world, 500);
    let daemon = world.daemon(&[]);
    let mut other = std::process::Command::new("/proc/self/exe");
    other.arg(crate::daemon_process::DAEMON).arg(&world.directory).stderr(std::process::Stdio::piped());
    let ended = other.output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("another daemon is running"), "{ended:?}");
    daemon.end();
}
