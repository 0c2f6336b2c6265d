//! What the gate of strict rules did is counted where the daemon's counters are read.

use std::process::Command;

use daemon::socket::client::Client;

use crate::{Case, world::World};

pub fn trials() -> Vec<Case> {
    vec![("a_gates_answers_are_counted_over_reloads", answers)]
}

const MOVED: u64 = 7;
const LEFT: u64 = 5;

fn answers() {
    let mut world = World::new();
    let group = world.group_name("strict");
    let [moved, left] = ["moved", "left"].map(|last| world.copy("true", last));
    let rules = |max: u32| {
        format!(
            "[[rules]]\nprocess = \"{0}\"\nuser = \"nobody\"\nto = \"{group}\"\nstrict = true\n\
             [groups.{group}]\npids.max = {max}\nmatch = [{{ process = \"{1}\", strict = true }}]\n",
            left.display(),
            moved.display()
        )
    };
    world.write("layout.toml", &rules(500));
    let socket = world.directory.join("socket");
    let daemon = world.daemon(&["patience=120", &format!("socket={}", socket.display())]);
    let client = Client::at(&socket);
    let counted = |name: &str| client.counters().unwrap()[name];
    for round in 1..4 {
        daemon.wait_for_log("strict rules are in force", round);
        for (program, times) in [(&moved, MOVED), (&left, LEFT)] {
            for _ in 0..times {
                assert!(Command::new(program).status().unwrap().success());
            }
        }
        let round = round as u64;
        assert_eq!(
            [counted("gate_moved"), counted("gate_left"), counted("gate_let_go"), counted("gates_late")],
            [round * MOVED, round * LEFT, 0, 0],
            "{}",
            daemon.log()
        );
        assert!(counted("gate_usec") > 0);
        // the next gate goes on where this one stood
        world.write("layout.toml", &rules(500 + u32::try_from(round).unwrap()));
        client.reload().unwrap();
    }
    daemon.end();
}
