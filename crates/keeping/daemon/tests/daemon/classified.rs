//! Processes that run already and processes to come are put where the rules say, whatever else happens on the machine.

use std::{process::Command, time::Duration};

use rustix::process::Signal;

use crate::{
    Case, is_vm,
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_running_and_every_new_process_of_a_program_is_in_its_group", running_and_new),
        ("a_process_that_becomes_another_user_is_followed", another_user),
        ("a_servers_children_are_where_it_is_also_those_forked_while_it_was_moved", children),
        ("a_child_whose_parent_has_ended_is_found", orphans),
        ("children_born_before_their_server_came_from_another_group_follow_it", born_before),
        ("a_rule_may_name_a_link", link),
        ("nobody_who_lives_is_left_out_of_a_burst_of_forks", burst),
        ("nobody_who_lives_is_left_out_when_the_kernel_drops_events", overrun),
        ("a_child_stays_where_its_parent_was_put_by_hand", by_hand),
        ("a_group_is_made_on_demand_and_removed_when_empty", on_demand),
        ("a_group_that_somebody_else_made_is_never_removed", others_groups),
        ("a_group_made_before_a_crash_is_removed_after_it", made_before),
    ]
}

fn rule(world: &World, program: &std::path::Path, group: &str) {
    world.write("cgrules.conf", &format!("*:{} pids {group}\n", program.display()));
}

fn running_and_new() {
    let mut world = World::new();
    let (group, program) = (world.group("db"), world.copy("sleep", "sleep"));
    rule(&world, &program, &group);
    let before = Running::start(&program, &["600"]);
    let daemon = world.daemon(&[]);
    assert_eq!(world.place(before.pid()).as_deref(), Some(group.as_str()), "at once: it is ready");
    for _ in 0..20 {
        let new = Running::start(&program, &["600"]);
        eventually("the new one in its group", || world.place(new.pid()).as_deref() == Some(&group));
    }
    let other = world.copy("sleep", "other");
    let other = Running::start(&other, &["600"]);
    std::thread::sleep(Duration::from_millis(100));
    assert_ne!(world.place(other.pid()).as_deref(), Some(group.as_str()));
    daemon.end();
    assert_eq!(world.place(before.pid()).as_deref(), Some(group.as_str()), "its end changes nothing");
}

fn another_user() {
    use std::os::unix::process::CommandExt;
    let mut world = World::new();
    let (group, program) = (world.group("user"), world.copy("sh", "sh"));
    let uid = 4_000_000 + std::process::id() % 100_000;
    world.write("cgrules.conf", &format!("{uid}:{} pids {group}\n", program.display()));
    let daemon = world.daemon(&[]);
    let own = Running::start(&program, &["-c", "sleep 60; true"]);
    let mut command = Command::new(&program);
    let theirs =
        Running(command.args(["-c", "read x"]).uid(uid).stdin(std::process::Stdio::piped()).spawn().unwrap());
    eventually("the user's in its group", || world.place(theirs.pid()).as_deref() == Some(&group));
    assert_ne!(world.place(own.pid()).as_deref(), Some(group.as_str()));
    for pid in children_of(own.pid()) {
        crate::world::end(pid, Signal::KILL);
    }
    daemon.end();
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// A shell whose children, forked at once, run on without an exec.
fn children() {
    let mut world = World::new();
    let (group, program) = (world.group("server"), world.copy("sh", "postmaster"));
    rule(&world, &program, &group);
    let fifo = world.directory.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    let quiet = format!("for i in 1 2 3 4 5 6 7 8; do (read x < {}) & done; wait", fifo.display());
    let before = Running::start(&program, &["-c", &quiet]);
    let daemon = world.daemon(&[]);
    for _ in 0..10 {
        let server = Running::start(&program, &["-c", &quiet]);
        eventually("eight backends", || children_of(server.pid()).len() >= 8);
        eventually("all of them in the group", || {
            let all = children_of(server.pid()).into_iter().chain([server.pid()]);
            all.into_iter().all(|pid| world.place(pid).as_deref() == Some(&group))
        });
    }
    let before = children_of(before.pid()).into_iter().chain([before.pid()]);
    for pid in before {
        assert_eq!(world.place(pid).as_deref(), Some(group.as_str()));
    }
    daemon.end();
}

/// As servers go to the background: the child runs on without an exec, its parent is gone before anybody has seen it.
fn orphans() {
    let orphans = if is_vm() { 20 } else { 150 };
    let mut world = World::new();
    let (group, program) = (world.group("orphans"), world.copy("sh", "forking"));
    rule(&world, &program, &group);
    let daemon = world.daemon(&[]);
    let fifo = world.directory.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    let text = format!("(read x < {}; true) & exit", fifo.display());
    for _ in 0..orphans {
        Running::start(&program, &["-c", &text]).0.wait().unwrap();
    }
    eventually("all of them are there", || world.running(&program).len() == orphans);
    eventually("all of them in the group", || left_out(&world, &program, &group) == 0);
    daemon.end();
}

/// From one group of ours to another, which must not be taken for a hand that placed the children.
fn born_before() {
    let mut world = World::new();
    let (shells, servers) = (world.group("shells"), world.group("servers"));
    let (shell, server) = (world.copy("sh", "shell"), world.copy("sh", "server"));
    let text = format!("*:{} pids {shells}\n*:{} pids {servers}\n", shell.display(), server.display());
    world.write("cgrules.conf", &text);
    let daemon = world.daemon(&[]);
    let [go, never] = ["go", "never"].map(|name| {
        let fifo = world.directory.join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        fifo
    });
    let children = format!("for i in 1 2 3 4; do (read x < {}; true) & done; wait", never.display());
    let text = format!("read x < {}; exec {} -c '{children}'", go.display(), server.display());
    let one = Running::start(&shell, &["-c", &text]);
    eventually("the shell in its group", || world.place(one.pid()).as_deref() == Some(&shells));
    // what happens now is seen by the daemon at once, and late
    daemon.signal(Signal::STOP);
    std::fs::write(&go, "\n").unwrap();
    eventually("four children", || children_of(one.pid()).len() == 4);
    daemon.signal(Signal::CONT);
    eventually("the server in its group", || world.place(one.pid()).as_deref() == Some(&servers));
    eventually("its children too", || left_out(&world, &server, &servers) == 0);
    daemon.end();
}

fn link() {
    let mut world = World::new();
    let (group, program) = (world.group("linked"), world.copy("sleep", "sleep-1.2"));
    let name = world.directory.join("sleep");
    std::os::unix::fs::symlink(&program, &name).unwrap();
    rule(&world, &name, &group);
    let daemon = world.daemon(&[]);
    let one = Running::start(&program, &["60"]);
    eventually("it is in its group", || world.place(one.pid()).as_deref() == Some(&group));
    daemon.end();
}

/// Many short ones of one program, and long ones of another among them.
fn storm(world: &World, short: usize, every: usize) -> (Running, std::path::PathBuf) {
    let (short_one, long_one) = (world.copy("true", "short"), world.copy("sleep", "long"));
    let text = format!(
        "i=0; while [ $i -lt {short} ]; do {} & i=$((i+1)); if [ $((i % {every})) = 0 ]; then {} 600 & fi; done; wait",
        short_one.display(),
        long_one.display(),
    );
    (Running::start("/bin/sh".as_ref(), &["-c", &text]), long_one)
}

/// Emulated CPUs take a hundred times as long for a start.
fn few_if_emulated(many: usize) -> usize {
    if is_vm() { many / 5 } else { many }
}

fn left_out(world: &World, program: &std::path::Path, group: &str) -> usize {
    let out = |pid: &u32| world.place(*pid).is_some_and(|place| place != group);
    world.running(program).into_iter().filter(out).count()
}

fn burst() {
    let mut world = World::new();
    let (group, both) = (world.group("burst"), world.directory.join("rf-test-"));
    world.write("cgrules.conf", &format!("*:{}* pids {group}\n", both.display()));
    let daemon = world.daemon(&[]);
    let many = few_if_emulated(300) / if is_vm() { 3 } else { 1 };
    let (_storm, long) = storm(&world, many * 7, 7);
    eventually("all long ones", || world.running(&long).len() == many);
    eventually("none left out", || left_out(&world, &long, &group) == 0);
    daemon.end();
}

fn overrun() {
    let mut world = World::new();
    let group = world.group("overrun");
    let both = world.directory.join("rf-test-");
    world.write("cgrules.conf", &format!("*:{}* pids {group}\n", both.display()));
    let daemon = world.daemon(&["buffer=8192"]);
    daemon.signal(Signal::STOP);
    let many = few_if_emulated(100);
    let (_storm, long) = storm(&world, many * 3, 3);
    eventually("all long ones", || world.running(&long).len() == many);
    assert_eq!(left_out(&world, &long, &group), many);
    daemon.signal(Signal::CONT);
    daemon.wait_for_log("scanned all processes after events were lost", 1);
    eventually("none left out", || left_out(&world, &long, &group) == 0);
    daemon.end();
}

fn by_hand() {
    let mut world = World::new();
    let (db, batch) = (world.group("db"), world.group("batch"));
    let program = world.copy("sh", "sh");
    rule(&world, &program, &db);
    let daemon = world.daemon(&[]);
    let mut command = Command::new(&program);
    // forks and execs the same program whenever it is told to
    let text =
        format!("while read x; do {} -c 'read y < /dev/null; sleep 61; true' & done", program.display());
    let mut shell = command.args(["-c", &text]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = shell.stdin.take().unwrap();
    let shell = Running(shell);
    eventually("the shell by its rule", || world.place(shell.pid()).as_deref() == Some(&db));
    world.put(&batch, shell.pid());
    std::io::Write::write_all(&mut line, b"go\n").unwrap();
    eventually("a child that runs the program", || {
        children_of(shell.pid()).iter().any(|child| !children_of(*child).is_empty())
    });
    std::thread::sleep(Duration::from_millis(200));
    let child = children_of(shell.pid())[0];
    assert_eq!(world.place(child).as_deref(), Some(batch.as_str()), "{}", daemon.log());
    assert_eq!(world.place(shell.pid()).as_deref(), Some(batch.as_str()));
    daemon.wait_for_log(&format!("in group '{batch}', where somebody put it"), 1);
    children_of(child).into_iter().for_each(|pid| crate::world::end(pid, Signal::KILL));
    daemon.end();
}

fn on_demand() {
    let mut world = World::new();
    let program = world.copy("sleep", "sleep");
    let base = world.group_name("t");
    world.write("cgrules.conf", &format!("*:{} pids {base}-%U\n", program.display()));
    world.write("cgconfig.conf", &format!("template {base}-%U {{ pids {{ pids.max = 77; }} }}\n"));
    let daemon = world.daemon(&[]);
    let process = Running::start(&program, &["600"]);
    let group = format!("{base}-0");
    eventually("in the group that was made", || world.place(process.pid()).as_deref() == Some(&group));
    let name = kernel::GroupName::new(&group).unwrap();
    let seat = world.host.seat(&name, settings::Controller::Pids).unwrap();
    assert_eq!(world.host.read(&seat, &name, "pids.max").unwrap().trim(), "77");
    drop(process);
    eventually("the group removed", || world.host.seats(&name).is_empty());
    daemon.end();
}

/// Attack finding 5: the rule could have made the name.
fn others_groups() {
    let mut world = World::new();
    let program = world.copy("sleep", "sleep");
    let base = world.group_name("t");
    let by_hand = world.group("t-4711");
    assert_eq!(by_hand, format!("{base}-4711"));
    world.set_limit(&by_hand, "321");
    world.write("cgrules.conf", &format!("*:{} pids {base}-%U\n", program.display()));
    let daemon = world.daemon(&[]);
    let process = Running::start(&program, &["600"]);
    let group = format!("{base}-0");
    eventually("in the group that was made", || world.place(process.pid()).as_deref() == Some(&group));
    drop(process);
    let name = kernel::GroupName::new(&group).unwrap();
    eventually("the group removed", || world.host.seats(&name).is_empty());
    daemon.wait_for_log("removed empty group", 1);
    assert_eq!(world.limit(&by_hand), "321");
    assert!(daemon.log().lines().any(|line| line.contains("INFO") && line.contains(&format!("/{group},"))));
    daemon.end();
}

/// Attack finding 5: what was made is known after a restart, and a damaged line of it is reported.
fn made_before() {
    let mut world = World::new();
    let program = world.copy("sleep", "sleep");
    let base = world.group_name("t");
    world.write("cgrules.conf", &format!("*:{} pids {base}-%U\n", program.display()));
    let daemon = world.daemon(&[]);
    let process = Running::start(&program, &["600"]);
    let group = format!("{base}-0");
    eventually("in the group that was made", || world.place(process.pid()).as_deref() == Some(&group));
    // a daemon that dies before it has noted a group leaves it
    let record = world.directory.join("state/made-groups");
    eventually("the group is noted", || std::fs::metadata(&record).is_ok_and(|about| about.len() > 0));
    daemon.kill();
    drop(process);
    let good = std::fs::read(&record).unwrap();
    let mut damaged = good.clone();
    damaged[20] ^= 1;
    std::fs::write(&record, &damaged).unwrap();
    let name = kernel::GroupName::new(&group).unwrap();
    let daemon = world.daemon(&[]);
    daemon.wait_for_log("made-groups:1: damaged line", 1);
    std::thread::sleep(Duration::from_secs(3));
    assert!(!world.host.seats(&name).is_empty(), "nobody knows who made it");
    daemon.end();
    std::fs::write(&record, &good).unwrap();
    let daemon = world.daemon(&[]);
    eventually("the group removed", || world.host.seats(&name).is_empty());
    daemon.end();
}
