//! Units that are not as a layout's author thought: another name, another slice, settings of their own, another group's.

use std::{fs, process::Command, sync::Arc};

use libtest_mimic::Trial;

use crate::{
    desk::says,
    units::{Case, NEEDS, Unit, of_cases, systemctl},
    world::World,
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let cases: &[Case] = &[
        ("CPUs that the unit's own file names are not added to a layout's", own_list),
        ("a unit that another group is from now on has that group's settings alone", renamed_group),
        ("a unit that is in another slice than at the apply is drift", moved),
        ("an alias of a unit is that unit", alias),
        ("a file of somebody's under the name of our drop-in file is refused and stays", others_file),
        ("what is no regular file in the place of our drop-in file is refused", no_file),
    ];
    of_cases(world, NEEDS, cases)
}

fn allowed_cpus(unit: &Unit) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", unit.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().to_owned()
}

fn own_list(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-own-list", "AllowedCPUs=0");
    assert_eq!(allowed_cpus(&unit), "0");
    unit.apply("[groups.{g}]\nunit = \"{u}\"\ncpus = \"1\"\n");
    for after in ["apply", "restart"] {
        assert_eq!(allowed_cpus(&unit), "1", "after {after}");
        assert_eq!(unit.show("AllowedCPUs"), "1", "after {after}");
        unit.desk.ends("status {s}", 0);
        unit.control("restart");
    }
    unit.desk.ends("undo {s}", 0);
    assert_eq!(allowed_cpus(&unit), "0");
}

fn renamed_group(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-renamed", "");
    unit.apply("[groups.\"{g}-one\"]\nunit = \"{u}\"\npids.max = 77\n");
    unit.apply("[groups.\"{g}-two\"]\nunit = \"{u}\"\npids.max = 66\n");
    let status = unit.desk.ends("status {s}", 0);
    says(&status, &["pids.max=66", "1 group with 1 process: all as applied"]);
    unit.desk.ends("undo {s}", 0);
    says(&unit.desk.ends("status {s}", 0), &["pids.max=77"]);
}

fn moved(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-moved", "");
    unit.apply("[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    let text = fs::read_to_string(unit.file()).unwrap();
    fs::write(unit.file(), format!("{text}Slice=rftest.slice\n")).unwrap();
    systemctl(&["daemon-reload"]);
    unit.control("restart");
    let status = unit.desk.ends("status {s}", 3);
    says(&status, &["is in /sys/fs/cgroup/rftest.slice/"]);
    assert!(!status.contains("does not run"), "{status}");
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    says(&unit.desk.ends("status {s}", 0), &["all as applied"]);
    unit.desk.ends("undo 0 {s}", 0);
}

fn alias(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-alias", "");
    unit.control("stop");
    let other = unit.file().with_file_name("rf-test-other-name.service");
    std::os::unix::fs::symlink(unit.file(), &other).unwrap();
    systemctl(&["daemon-reload"]);
    unit.apply("[groups.{g}]\nunit = \"rf-test-other-name.service\"\npids.max = 77\n");
    unit.control("start");
    assert_eq!(unit.holds("pids.max").as_deref(), Some("77"));
    says(&unit.desk.ends("status {s}", 0), &["1 process", "pids.max=77"]);
    unit.desk.ends("undo {s}", 0);
    fs::remove_file(other).unwrap();
    assert_ne!(unit.holds("pids.max").as_deref(), Some("77"));
}

fn others_file(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-others-file", "");
    let theirs = "[Service]\nMemoryMax=1G\n";
    fs::create_dir_all(unit.drop_in().parent().unwrap()).unwrap();
    fs::write(unit.drop_in(), theirs).unwrap();
    unit.desk.write("l.toml", "[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    for command in ["plan {d}/l.toml", "apply {d}/l.toml {s}"] {
        let (code, _, error) = unit.desk.run(command);
        assert!(code == 1 || code == 2, "{command}: {code}: {error}");
        says(&error, &["Ringfence did not write it", "hint: mv -n /etc/systemd/system/"]);
    }
    // a layout without the unit has nothing to do with it
    unit.desk.write("other.toml", "[groups.\"{g}-rt\"]\npids.max = 9\n");
    unit.desk.ends("apply {d}/other.toml {s}", 0);
    unit.desk.ends("undo 0 {s}", 0);
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), theirs);
    fs::rename(unit.drop_in(), unit.drop_in().with_file_name("50-local.conf")).unwrap();
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    unit.desk.ends("undo {s}", 0);
    let kept = unit.drop_in().with_file_name("50-local.conf");
    assert_eq!(fs::read_to_string(&kept).unwrap(), theirs);
    fs::remove_file(kept).unwrap();
}

fn no_file(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-no-file", "");
    let before = unit.holds("pids.max");
    unit.desk.write("l.toml", "[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    let precious = unit.file().with_file_name("rf-test-precious");
    fs::write(&precious, "precious").unwrap();
    fs::create_dir_all(unit.drop_in().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&precious, unit.drop_in()).unwrap();
    let (code, _, error) = unit.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 1, "{error}");
    says(&error, &["is no regular file", "hint: mv /etc/systemd/system/"]);
    assert_eq!(fs::read_link(unit.drop_in()).unwrap(), precious);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    fs::remove_file(precious).unwrap();
    // systemd waits for who writes into a FIFO, with all that it does
    let answers = || {
        let asked = Command::new("timeout").args(["60", "systemctl", "show", "--property=Version"]).status();
        assert!(asked.unwrap().success(), "systemd does not answer");
    };
    let fifo = || {
        let _ = fs::remove_file(unit.drop_in());
        fs::create_dir_all(unit.drop_in().parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(unit.drop_in()).status().unwrap().success());
    };
    fifo();
    let (code, _, error) = unit.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 1, "{error}");
    says(&error, &["is no regular file", "hint: mv /etc/systemd/system/"]);
    answers();
    fs::remove_file(unit.drop_in()).unwrap();
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    fifo();
    let (code, _, error) = unit.desk.run("undo {s}");
    assert_eq!(code, 3, "{error}");
    says(&error, &["cannot let systemd read", "is no regular file"]);
    answers();
    fs::remove_file(unit.drop_in()).unwrap();
    unit.desk.run("undo {s}");
    assert_eq!(unit.holds("pids.max"), before);
}
