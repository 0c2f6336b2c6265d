//! What only v2, only systemd, or only a machine that nobody else uses can show.

use std::{fs, path::Path, process::Command};

use crate::{
    desk::sleep_program,
    reported::{Row, Stage, row, truth::ids},
    world::Need,
};

pub const ROWS: &[Row] =
    &[
        row("a partition that became invalid is drift, and its tasks run elsewhere", invalid_partition)
            .needs(&[Need::V2("cpuset"), Need::Cpus(4), Need::Plain]),
        row("a partition that is valid has its CPUs alone", valid_partition).needs(&[
            Need::V2("cpuset"),
            Need::Cpus(4),
            Need::Plain,
        ]),
        row("a controller taken from the children by hand is drift", controller_off)
            .needs(&[Need::V2("pids"), Need::Plain]),
        row("a v2 group with a task that has to get a controller is as reported", controller_on_with_task)
            .needs(&[Need::V2("pids"), Need::V2("memory")]),
        row("a process of a unit that a rule fits is reported", unit).needs(&[Need::Systemd]),
        row("groups below the unit are as reported", below_unit).needs(&[Need::Systemd]),
        row("an exclusive group below the unit stays one when its layout changes", exclusive_below_unit)
            .needs(&[Need::Systemd, Need::V2("cpuset"), Need::Cpus(2)]),
        row("a group in v1 and v2 at once has its tasks in both", both)
            .needs(&[Need::V1("cpu"), Need::V2("memory")]),
        row("a hierarchy that was mounted elsewhere is reported where it is", unmounted)
            .needs(&[Need::V1("pids"), Need::OwnMachine]),
        row("a CPU that was switched off is reported", cpu_off).needs(&[
            Need::Cpus(2),
            Need::OwnMachine,
            Need::Plain,
        ]),
    ];

fn partition(stage: &mut Stage<'_>) -> u32 {
    stage.apply("[groups.\"{g}\"]\ncpus = \"3\"\nexclusive = true\n");
    let pid = stage.sleeper("{one}", "{g}");
    assert_eq!(stage.cpus(pid), "3");
    pid
}

fn valid_partition(stage: &mut Stage<'_>) {
    partition(stage);
    let other = stage.sleeper("{two}", "");
    assert!(!ids(&stage.cpus(other)).contains(&3), "{}", stage.cpus(other));
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}

fn invalid_partition(stage: &mut Stage<'_>) {
    partition(stage);
    // a sibling that names the same CPU
    let sibling = stage.fill("{g}-rt");
    let at = stage.directory("{g}", "cpuset").with_file_name(sibling);
    fs::create_dir(&at).unwrap();
    let _ = fs::write(at.join("cpuset.cpus"), "3");
    let state = fs::read_to_string(stage.directory("{g}", "cpuset").join("cpuset.cpus.partition")).unwrap();
    assert_eq!(state.contains("invalid"), !stage.drifts("{g}").is_empty(), "{state}");
    stage.truth();
    fs::remove_dir(at).unwrap();
}

fn controller_off(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n");
    let control = stage.directory("{g}", "pids").join("cgroup.subtree_control");
    fs::write(control, "-pids").unwrap();
    assert!(!stage.file("{g}/a", "pids.max").exists());
    assert!(!stage.drifts("{g}/a").is_empty() && !stage.planned().is_empty());
    stage.truth();
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(stage.holds("{g}/a", "pids.max"), "100");
    stage.truth();
}

fn controller_on_with_task(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let pid = stage.sleeper("{one}", "{g}");
    stage.layout("[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n");
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code == 0, stage.holds("{g}", "memory.max") == "67108864", "{out}{error}");
    assert!(stage.is_in(pid, "{g}", "memory"));
    stage.truth();
}

fn exclusive_below_unit(stage: &mut Stage<'_>) {
    let layout = |more: &str| format!("[groups.\"{{g}}\"]\ncpus = \"1\"\nexclusive = true\n{more}");
    stage.layout(&layout(""));
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    // Linux 6.7 makes partitions below groups that are none
    let can_be = Path::new("/sys/fs/cgroup/cpuset.cpus.isolated").exists();
    assert_eq!(code == 0, can_be, "{out}{error}");
    if !can_be {
        return;
    }
    stage.apply(&layout("pids.max = 100\n"));
    let partition = stage.directory("{g}", "cpuset").join("cpuset.cpus.partition");
    assert_eq!(fs::read_to_string(partition).unwrap().trim_end(), "root");
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
    // the groups above reserve the CPU until then, also from tests behind this one
    stage.desk.ends("undo 0 {s}", 0);
}

fn unit(stage: &mut Stage<'_>) {
    let program = stage.desk.path("rf-test-unit");
    fs::copy(sleep_program(), &program).unwrap();
    let unit = format!("{}.service", stage.fill("{g}"));
    let started = Command::new("systemd-run").arg(format!("--unit={unit}")).arg(&program).arg("300").status();
    assert!(started.unwrap().success());
    let pid = Command::new("systemctl").args(["show", "-p", "MainPID", "--value", &unit]).output().unwrap();
    let pid: u32 = String::from_utf8(pid.stdout).unwrap().trim().parse().unwrap();
    stage.pids.push(pid);
    stage.layout(&format!(
        "[groups.\"{{g}}\"]\npids.max = 100\nmatch = [{{ process = \"{}\" }}]\n",
        program.display()
    ));
    let (_, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    let (code, status, _) = stage.desk.run("status {s} {d}/l.toml");
    let is_reported = format!("{out}{error}{status}").contains(&pid.to_string()) || code == 3;
    let is_in = stage.is_in(pid, "{g}", "pids");
    let tried = stage.desk.run(&format!("classify --dry-run --rules {{d}}/l.toml {pid}"));
    let done = stage.desk.run(&format!("classify --rules {{d}}/l.toml {pid}"));
    let stopped = Command::new("systemctl").args(["stop", &unit]).status();
    assert!(is_in || is_reported, "{pid} is of a unit, and nothing says so: {out}{error}{status}");
    assert_eq!((tried.0, &tried.2), (done.0, &done.2), "a dry run answers as the other");
    assert!(tried.1.contains("would not be moved"), "{}", tried.1);
    assert!(stopped.unwrap().success());
    stage.pids.clear();
}

fn below_unit(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let pid = stage.sleeper("{one}", "{g}");
    assert!(stage.group_of(pid, "pids").contains("ringfence.service"));
    stage.truth();
}

fn both(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpu.weight = 200\n");
    let pid = stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\ncpu.weight = 200\nmemory.max = \"64M\"\n");
    let all = stage.is_in(pid, "{g}", "cpu") && stage.is_in(pid, "{g}", "memory");
    assert!(all || !stage.drifts("{g}").is_empty());
    stage.truth();
}

fn unmounted(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let at = stage.mount("pids").to_owned();
    let moved = stage.desk.path("pids");
    fs::create_dir(&moved).unwrap();
    rustix::mount::mount_move(&at, &moved).unwrap();
    let (code, out, error) = stage.desk.run("status --json {s}");
    rustix::mount::mount_move(&moved, &at).unwrap();
    fs::remove_dir(&moved).unwrap();
    // the limit is in force wherever the hierarchy is mounted, and its file is there
    let there = moved.to_str().unwrap();
    assert!(code != 0 || out.contains(there) && !out.contains(at.to_str().unwrap()), "{out}{error}");
    stage.truth();
}

fn cpu_off(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpus = \"0-1\"\nmems = \"local\"\n");
    let pid = stage.sleeper("{one}", "{g}");
    let switch = "/sys/devices/system/cpu/cpu1/online";
    fs::write(switch, "0").unwrap();
    let (status, cpus) = (stage.status_of("{g}").unwrap(), stage.cpus(pid));
    fs::write(switch, "1").unwrap();
    assert_eq!(status["cpus"], cpus.as_str(), "{status:#}");
    stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!(stage.holds("{g}", "cpuset.cpus"), "0-1");
    stage.truth();
}
