//! Settings under v1's names, of which v2 keeps several in one file, and v1's flag for exclusive CPUs: as libcgroup's files
//! and old layouts have them.

use crate::{
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("quota and period under v1's names stay in force when they are applied again", quota_and_period),
    row("quota and period are set at once in either order", at_once),
    row("a cgconfig.conf with cpu_exclusive moves no task of the root", flag_alone).needs(&[
        Need::V1("cpuset"),
        Need::Cpus(2),
        Need::OwnMachine,
    ]),
];

const BOTH: [[&str; 2]; 2] = [
    ["cpu.cfs_period_us = 50000", "cpu.cfs_quota_us = 15000"],
    ["cpu.cfs_quota_us = 15000", "cpu.cfs_period_us = 50000"],
];

fn quota_and_period(stage: &mut Stage<'_>) {
    for order in BOTH {
        let layout = format!("[groups.\"{{g}}\"]\n{}\nmemory.limit_in_bytes = \"64M\"\n", order.join("\n"));
        for _ in 0..2 {
            stage.apply(&layout);
            assert_eq!(stage.desk.ends("get --values {g} cpu.max", 0).trim(), "15000 50000");
            assert!(stage.planned().is_empty(), "{:?}", stage.planned());
            assert!(stage.drifts("{g}").is_empty());
            stage.truth();
        }
        let exported = stage.desk.ends("export {d}/l.toml --to cgset --v2", 0);
        assert!(exported.contains("cpu.max=\"15000 50000\""), "{exported}");
        let text = format!("group {{g}} {{ cpu {{ {}; }} }}\n", order.join("; "));
        stage.desk.write("cgconfig.conf", &text);
        stage.desk.ends("apply {d}/cgconfig.conf {s}", 0);
        assert_eq!(stage.desk.ends("get --values {g} cpu.max", 0).trim(), "15000 50000");
        stage.by_hand("{g}", "cpu.max", if stage.is_v1("cpu") { "30000" } else { "30000 100000" });
        stage.desk.ends("apply {d}/cgconfig.conf {s}", 0);
        assert_eq!(stage.desk.ends("get --values {g} cpu.max", 0).trim(), "15000 50000");
    }
}

fn at_once(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpu.weight = 50\n");
    for order in BOTH {
        stage.desk.ends("set {g} cpu.max=max", 0);
        let settings = order.map(|line| line.replace(' ', "")).join(" ");
        stage.desk.ends(&format!("set {{g}} {settings}"), 0);
        assert_eq!(stage.desk.ends("get --values {g} cpu.max", 0).trim(), "15000 50000");
    }
}

fn flag_alone(stage: &mut Stage<'_>) {
    let other = stage.sleeper("{one}", "");
    let before = stage.cpus(other);
    let text = "group {g} { cpuset { cpuset.cpus = 1; cpuset.mems = 0; cpuset.cpu_exclusive = 1; } }\n";
    stage.desk.write("cgconfig.conf", text);
    stage.desk.ends("apply {d}/cgconfig.conf {s}", 0);
    assert_eq!(stage.desk.ends("get --values {g} cpuset.cpu_exclusive", 0).trim(), "1");
    assert_eq!(stage.cpus(other), before);
    let plan = stage.desk.json("plan --json {d}/cgconfig.conf {s}", 0);
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(0), "{plan:#}");
}
