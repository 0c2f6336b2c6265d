//! New rules, good and bad ones, by signal; and none of libcgroup's faults with them.

use answers::socket::Verdict;
use daemon::socket::client::Client;
use rustix::process::Signal;

use crate::{
    Case,
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("bad_rules_leave_the_old_ones_in_force", bad_rules),
        ("a_layout_that_was_given_to_another_user_is_refused", others),
        ("good_rules_move_who_runs_already", good_rules),
        ("a_reload_over_the_socket_tells_its_caller_what_is_wrong", over_the_socket),
        ("the_socket_knows_what_the_rules_make_of_a_process", requested),
        ("templates_are_read_anew_on_usr1_which_kills_nobody", templates),
    ]
}

fn is_in(world: &World, process: &Running, group: &str) {
    eventually(group, || world.place(process.pid()).as_deref() == Some(group));
}

fn bad_rules() {
    let mut world = World::new();
    let (group, program) = (world.group("old"), world.copy("sleep", "sleep"));
    let good = format!("*:{} pids {group}\n", program.display());
    world.write("cgrules.conf", &good);
    let mut daemon = world.daemon(&[]);
    let signals = [Signal::HUP, Signal::USR2, Signal::USR2];
    // an unbalanced quote crashed libcgroup's daemon
    let texts =
        [format!("*:\"{} pids {group}\n", program.display()), "* pids\n".to_owned(), "%\n".to_owned()];
    for (index, (signal, text)) in signals.into_iter().zip(&texts).enumerate() {
        world.write("cgrules.conf", text);
        daemon.signal(signal);
        daemon.wait_for_log("reload failed, still using the old configuration", index + 1);
        assert!(daemon.is_alive());
        let process = Running::start(&program, &["600"]);
        is_in(&world, &process, &group);
    }
    assert!(daemon.log().contains("cgrules.conf:1:"), "{}", daemon.log());
    daemon.end();
}

/// Attack finding 17: the daemon followed a layout that a user could write.
fn others() {
    let mut world = World::new();
    let group = world.group_name("db");
    world.write("layout.toml", &format!("[groups.{group}]\npids.max = 500\n"));
    let daemon = world.daemon(&[]);
    world.write("layout.toml", &format!("[groups.{group}]\npids.max = 77\n"));
    let layout = world.directory.join("layout.toml");
    std::os::unix::fs::chown(&layout, Some(4_000_009), None).unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("reload failed, still using the old configuration", 1);
    assert_eq!(world.limit(&group), "500");
    std::os::unix::fs::chown(&layout, Some(0), None).unwrap();
    reload(&daemon, Signal::HUP, 1);
    assert_eq!(world.limit(&group), "77");
    daemon.end();
}

fn good_rules() {
    let mut world = World::new();
    let (old, new) = (world.group("old"), world.group("new"));
    let program = world.copy("sleep", "sleep");
    world.write("cgrules.conf", &format!("*:{} pids {old}\n", program.display()));
    let daemon = world.daemon(&[]);
    let process = Running::start(&program, &["600"]);
    is_in(&world, &process, &old);
    world.write("cgrules.conf", &format!("*:{} pids {new}\n", program.display()));
    reload(&daemon, Signal::HUP, 1);
    assert_eq!(world.place(process.pid()).as_deref(), Some(new.as_str()), "{}", daemon.log());
    daemon.end();
}

fn reload(daemon: &Daemon, signal: Signal, times: usize) {
    daemon.signal(signal);
    daemon.wait_for_log(" reloaded", times);
}

fn templates() {
    let mut world = World::new();
    let program = world.copy("sleep", "sleep");
    let base = world.group_name("t");
    let template = |max: u32| format!("template {base}-%P {{ pids {{ pids.max = {max}; }} }}\n");
    world.write("cgrules.conf", &format!("*:{} pids {base}-%P\n", program.display()));
    world.write("cgconfig.conf", &template(70));
    let daemon = world.daemon(&[]);
    for max in [70, 71, 72] {
        if max > 70 {
            world.write("cgconfig.conf", &template(max));
            reload(&daemon, Signal::USR1, (max - 70) as usize);
        }
        let process = Running::start(&program, &["600"]);
        let group = format!("{base}-{}", process.pid());
        is_in(&world, &process, &group);
        let name = kernel::GroupName::new(&group).unwrap();
        let seat = world.host.seat(&name, settings::Controller::Pids).unwrap();
        assert_eq!(world.host.read(&seat, &name, "pids.max").unwrap().trim(), max.to_string());
    }
    daemon.end();
}

fn over_the_socket() {
    let mut world = World::new();
    let (group, program) = (world.group("db"), world.copy("sleep", "sleep"));
    world.write("cgrules.conf", &format!("*:{} pids {group}\n", program.display()));
    let socket = world.directory.join("socket");
    let daemon = world.daemon(&[&format!("socket={}", socket.display())]);
    let client = Client::at(&socket);
    assert_eq!(client.reload().unwrap().rules, 1);
    world.write("cgrules.conf", "* pids\n");
    let error = client.reload().unwrap_err().to_string();
    assert!(error.contains("cgrules.conf:1:"), "{error}");
    let process = Running::start(&program, &["600"]);
    is_in(&world, &process, &group);
    let status = client.status().unwrap();
    assert!(status.troubles[0].contains("the layout has 1 error"), "{status:?}");
    assert_eq!(status.not_in_effect, status.troubles);
    daemon.end();
    assert!(client.reload().is_err());
}

fn requested() {
    let mut world = World::new();
    let (group, program) = (world.group("db"), world.copy("sleep", "sleep"));
    world.write("cgrules.conf", &format!("*:{} pids {group}\n", program.display()));
    let socket = world.directory.join("socket");
    let daemon = world.daemon(&[&format!("socket={}", socket.display())]);
    let process = Running::start(&program, &["600"]);
    is_in(&world, &process, &group);
    let client = Client::at(&socket);
    let classified = client.classification(process.pid()).unwrap();
    let rule = classified.rule.as_ref().map(|rule| rule.rule);
    assert_eq!((classified.would, rule), (Verdict::There, Some(1)), "{classified:?}");
    let counters = client.counters().unwrap();
    assert!(counters["moved"] >= 1, "{counters:?}");
    daemon.end();
}
