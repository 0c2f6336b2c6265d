//! Settings under v1's names, of which v2 keeps several in one file, and v1's flag for exclusive CPUs: as libcgroup's files
//! and old layouts have them.

use std::fs;

use crate::{
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("quota and period under v1's names stay in force when they are applied again", quota_and_period),
    row("quota and period are set at once in either order", at_once),
    row("two limits of one disk under v1's names stay in force when they are applied again", read_and_write)
        .needs(&[Need::V2("io")]),
    row("memory that is in use does not escape to a swap that a layout takes away", no_escape)
        .needs(&[Need::V2("memory")]),
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

/// The number of a block device.
fn disk() -> String {
    let disks = fs::read_dir("/sys/block").unwrap().map(|disk| disk.unwrap().path());
    let is_one = |disk: &std::path::PathBuf| disk.file_name().unwrap().to_str().unwrap().starts_with("vd");
    let disk = disks.filter(is_one).min().expect("a disk of a virtual machine");
    fs::read_to_string(disk.join("dev")).unwrap().trim().to_owned()
}

/// The limits of the group's devices; what has none is left out.
fn io_limits(stage: &Stage<'_>) -> String {
    let text = stage.desk.ends("get --values {g} io.max", 0);
    text.split_whitespace().filter(|word| !word.ends_with("=max")).collect::<Vec<_>>().join(" ")
}

fn read_and_write(stage: &mut Stage<'_>) {
    let disk = disk();
    let (read, write) = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device");
    let limits = [format!("{read} = \"{disk} 20971520\""), format!("{write} = \"{disk} 10485760\"")];
    let both = format!("{disk} rbps=20971520 wbps=10485760");
    let file = stage.directory("{g}", "io").join("io.max");
    for order in [[0, 1], [1, 0]] {
        let lines = order.map(|index| limits[index].as_str()).join("\n");
        let layout = format!("[groups.\"{{g}}\"]\n{lines}\n");
        for _ in 0..3 {
            stage.apply(&layout);
            assert_eq!(io_limits(stage), both);
            assert!(stage.planned().is_empty(), "{:?}", stage.planned());
            assert!(stage.drifts("{g}").is_empty());
        }
        // one of the two drifts, and the next apply gives that one back
        fs::write(&file, format!("{disk} rbps=max")).unwrap();
        assert_eq!(stage.drifts("{g}").len(), 1, "{:?}", stage.drifts("{g}"));
        for _ in 0..2 {
            stage.apply(&layout);
            assert_eq!(io_limits(stage), both);
        }
        stage.truth();
    }
    // a layout with one of them gives the other back
    stage.apply(&format!("[groups.\"{{g}}\"]\n{}\n", limits[1]));
    assert_eq!(io_limits(stage), format!("{disk} wbps=10485760"));
}

fn no_escape(stage: &mut Stage<'_>) {
    const USED: u64 = 40_000_000;
    let layout = |memory: &str, swap: &str| {
        format!("[groups.\"{{g}}\"]\nmemory.max = \"{memory}\"\nmemory.swap.max = \"{swap}\"\n")
    };
    stage.apply(&layout("200M", "200M"));
    let directory = stage.directory("{g}", "memory");
    let script = format!(
        "echo $$ > {}; (head -c {USED} /dev/zero; exec sleep 300) | tail -c {USED}",
        directory.join("cgroup.procs").display()
    );
    let shell = stage.desk.scene.start("{one}", &["sh", "-c", &script]);
    stage.pids.push(shell);
    let number =
        |file: &str| fs::read_to_string(directory.join(file)).unwrap().trim().parse::<u64>().unwrap();
    // by their names: one sleeps once it has written all
    let programs = || {
        let pids = fs::read_to_string(directory.join("cgroup.procs")).unwrap();
        let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        pids.lines().map(name).collect::<Vec<String>>()
    };
    stage.desk.scene.until("40 MB that nobody adds to", || {
        number("memory.current") > USED && programs().iter().any(|name| name.trim() == "sleep")
    });
    let before = programs();
    // neither in memory nor in swap is there room for it: refused, and nothing was moved or killed on the way
    stage.layout(&layout("16M", "0"));
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_ne!(code, 0, "{out}{error}");
    assert_eq!(number("memory.swap.current"), 0, "{out}{error}");
    assert_eq!(programs(), before, "{out}{error}");
    // files' pages may go
    assert!(number("memory.current") > USED / 10 * 9, "{out}{error}");
    assert_eq!(stage.holds("{g}", "memory.max"), "209715200", "{out}{error}");
    assert_eq!(number("memory.swap.max"), 209_715_200, "{out}{error}");
    // in swap there is
    stage.apply(&layout("16M", "48M"));
    assert!(number("memory.swap.current") > USED / 2);
    assert_eq!(programs(), before);
    assert_eq!(stage.holds("{g}", "memory.max"), "16777216");
    assert_eq!(number("memory.swap.max"), 50_331_648);
    stage.truth();
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
