//! Isolated CPUs while the daemon runs: what somebody sets again is named and brought back.
//! Only on a machine that is nobody's, as interrupts are the whole machine's: `RF_HOTPLUG` says so.

use std::fs;

use units::CpuSet;

use crate::{
    Case,
    restored::undo,
    world::{Running, World},
};

const DEFAULT: &str = "/proc/irq/default_smp_affinity";

pub const TRIALS: &[Case] = &[("what_irqbalance_sets_again_is_named_with_it_and_repaired", set_again)];

fn isolated(rows: &str) -> (World, String, usize) {
    let mut world = World::new();
    let group = world.group_name("rt");
    let last = topology::Machine::live().unwrap().online().last().unwrap();
    world.write(
        "layout.toml",
        &format!(
            "[groups.{group}]\ncpus = \"{last}\"\nmems = \"all\"\nexclusive = true\nisolate = {{ {rows} }}\n"
        ),
    );
    (world, group, last)
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn set_again() {
    let (world, group, last) = isolated("interrupt-default = true");
    let before = text(DEFAULT);
    let daemon = world.daemon(&["every=50", "keep=repair"]);
    let applied = text(DEFAULT);
    assert!(!CpuSet::from_mask(&applied).unwrap().contains(last), "{applied}");
    // a program is known by its name
    let program = world.directory.join("irqbalance");
    fs::rename(world.copy("sleep", "sleep"), &program).unwrap();
    let balancer = Running::start(&program, &["600"]);
    for times in 1..3 {
        fs::write(DEFAULT, &before).unwrap();
        daemon.wait_for_log("repaired: the machine matches the layout again", times);
        assert_eq!(text(DEFAULT), applied);
    }
    let begin = format!("drift: group {group}: {DEFAULT}: applied ");
    let end = format!("now {before}; irqbalance (process {}) sets it too", balancer.pid());
    let log = daemon.log();
    assert!(log.lines().any(|line| line.contains(&begin) && line.contains(&end)), "{begin}…{end}: {log}");
    daemon.end();
    undo(&world);
    assert_eq!(text(DEFAULT), before);
}
