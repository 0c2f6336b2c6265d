//! Groups of a layout that are units of systemd: what the layout says holds for their processes over everything that
//! systemd does, `systemctl show` says the same, and an undo leaves nothing.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Instant,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, says},
    world::{Need, World},
};

pub const NEEDS: &[Need] =
    &[Need::Systemd, Need::V2("memory"), Need::V2("pids"), Need::Cpus(2), Need::OwnMachine];

pub type Case = (&'static str, fn(&Arc<World>));

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let cases: &[Case] = &[
        ("the kernel's default for pinned processes is named before it comes", pinned),
        ("what is set holds over reloads, a reexec and restarts, and an undo leaves nothing", holds),
        ("a limit below the use is refused before systemd sets it", below_the_use),
        ("a unit that does not run has its limits from its start on", not_running),
        ("a changed drop-in file is drift and stays, and one that is gone is written again", by_hand),
        ("what a layout no longer names goes back", dropped),
        ("a failure rolls the drop-in file back", rolled_back),
        ("kill -9 of an apply at any moment leaves nothing once it is undone", killed),
        ("a unit that can't be given settings is refused with the reason", refused),
        ("exclusive groups are nobody else's, over reloads too", exclusive),
    ];
    of_cases(world, NEEDS, cases)
}

/// Trials with these needs, each `units: NAME`.
pub fn of_cases(world: &Arc<World>, needs: &[Need], cases: &[Case]) -> Vec<Trial> {
    let trial = |&(name, run): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("units: {name}"), lacks, move || run(&world))
    };
    cases.iter().map(trial).collect()
}

/// A trial with a service of its own.
pub struct Unit {
    pub desk: Desk,
    pub name: String,
}

impl Unit {
    pub fn new(world: &Arc<World>, test: &str, lines: &str) -> Unit {
        let mut desk = Desk::new(world, test);
        let name = format!("{}.service", desk.scene.group);
        desk.scene.name("{u}", &name);
        let unit = Unit { desk, name };
        // systemd looks into its directories for what it has not loaded yet; a reload takes seconds on an emulated CPU
        fs::write(unit.file(), format!("[Service]\nExecStart=/bin/sleep 1000\n{lines}\n")).unwrap();
        unit.control("start");
        unit
    }

    pub fn file(&self) -> PathBuf {
        Path::new("/run/systemd/system").join(&self.name)
    }

    pub fn drop_in(&self) -> PathBuf {
        Path::new("/etc/systemd/system").join(format!("{}.d/90-ringfence.conf", self.name))
    }

    pub fn control(&self, verb: &str) {
        systemctl(&[verb, &self.name]);
    }

    pub fn apply(&self, layout: &str) {
        self.desk.write("l.toml", layout);
        self.desk.ends("apply {d}/l.toml {s}", 0);
    }

    /// A file of the unit's group; `None` if it is not there.
    pub fn holds(&self, file: &str) -> Option<String> {
        let path = Path::new("/sys/fs/cgroup/system.slice").join(&self.name).join(file);
        Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
    }

    pub fn show(&self, property: &str) -> String {
        let [value] = self.shows([property]);
        value
    }

    pub fn shows<const COUNT: usize>(&self, properties: [&str; COUNT]) -> [String; COUNT] {
        shows(&self.name, properties)
    }

    pub fn pid(&self) -> u32 {
        self.show("MainPID").parse().unwrap()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        let _ = Command::new("systemctl").args(["stop", &self.name]).status();
        let _ = fs::remove_file(self.file());
        let _ = fs::remove_file(self.drop_in());
        let _ = fs::remove_dir(self.drop_in().parent().unwrap());
    }
}

/// Properties of a unit as systemd has them, by one command: on an emulated CPU each takes a good part of a second.
pub fn shows<const COUNT: usize>(unit: &str, properties: [&str; COUNT]) -> [String; COUNT] {
    let shown = Command::new("systemctl").args(["show", "-p", &properties.join(","), unit]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    let of = |property| shown.lines().find_map(|line: &str| line.strip_prefix(property)?.strip_prefix('='));
    properties.map(|property| of(property).unwrap_or_default().to_owned())
}

pub fn systemctl(words: &[&str]) {
    let done = Command::new("systemctl").args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

const LAYOUT: &str = "[groups.{g}]\nunit = \"{u}\"\ncpus = \"1\"\nmems = \"all\"\nmemory.max = \"256M\"\n\
    memory.high = \"200M\"\ncpu.weight = 50\ncpu.max = \"1.5cpu\"\nio.max = \"/dev/vda rbps=1M\"\npids.max = 500\n";

/// What [`LAYOUT`] comes to in the kernel, and in systemd's own words.
fn is_in_force(unit: &Unit, when: &str) {
    for (file, expected) in [
        ("memory.max", "268435456"),
        ("memory.high", "209715200"),
        ("cpu.weight", "50"),
        ("cpu.max", "150000 100000"),
        ("cpuset.cpus", "1"),
        ("pids.max", "500"),
    ] {
        assert_eq!(unit.holds(file).as_deref(), Some(expected), "{file} {when}");
    }
    assert!(unit.holds("io.max").unwrap().contains("rbps=1048576"), "{when}");
    let properties =
        ["MemoryMax", "MemoryHigh", "CPUWeight", "CPUQuotaPerSecUSec", "AllowedCPUs", "TasksMax", "MainPID"];
    let [own @ .., pid] = unit.shows(properties);
    assert_eq!(own, ["268435456", "209715200", "50", "1.500000s", "1", "500"], "{properties:?} {when}");
    let allowed = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(allowed.lines().any(|line| line == "Cpus_allowed_list:\t1"), "{when}: {allowed}");
}

/// The CPUs of a process, if it is there.
pub fn may_use(pid: impl Display) -> Option<::units::CpuSet> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
}

fn holds(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-holds", "MemoryHigh=900M");
    let files = ["memory.max", "memory.high", "pids.max"];
    let properties = [
        "MemoryMax",
        "MemoryHigh",
        "CPUWeight",
        "CPUQuotaPerSecUSec",
        "AllowedCPUs",
        "TasksMax",
        "DropInPaths",
        "NeedDaemonReload",
    ];
    let picture = |unit: &Unit| (files.map(|file| unit.holds(file).unwrap()), unit.shows(properties));
    let before = picture(&unit);
    let allowed = || {
        let status = fs::read_to_string(format!("/proc/{}/status", unit.pid())).unwrap();
        status.lines().filter(|line| line.contains("allowed_list:")).collect::<Vec<_>>().join("\n")
    };
    let allowed_before = allowed();
    unit.apply(LAYOUT);
    is_in_force(&unit, "after apply");
    assert_ne!(allowed(), allowed_before);
    assert_eq!(unit.show("NeedDaemonReload"), "no");
    unit.desk.ends("status {s}", 0);
    says(&unit.desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    for verb in ["daemon-reload", "daemon-reexec"] {
        systemctl(&[verb]);
        is_in_force(&unit, verb);
        unit.desk.ends("status {s}", 0);
    }
    let first = unit.pid();
    unit.control("restart");
    assert_ne!(unit.pid(), first);
    is_in_force(&unit, "after a restart");
    unit.desk.ends("status {s}", 0);
    unit.desk.ends("undo {s}", 0);
    assert_eq!(picture(&unit), before);
    // a process keeps its CPUs where a controller goes on Linux 6.12
    assert_eq!(allowed(), allowed_before);
    assert!(!unit.drop_in().parent().unwrap().exists());
    let cpus = unit.holds("cpuset.cpus.effective");
    let all = fs::read_to_string("/sys/fs/cgroup/cpuset.cpus.effective").unwrap();
    assert!(cpus.is_none_or(|cpus| cpus == all.trim_end()));
    systemctl(&["daemon-reload"]);
    assert_eq!(picture(&unit), before);
    says(&unit.desk.ends("status {s}", 0), &["nothing that was applied is in effect"]);
}

fn below_the_use(world: &Arc<World>) {
    let unit = Unit::new(
        world,
        "unit-use",
        "MemorySwapMax=0\nExecStartPost=/bin/sh -c 'head -c 60M /dev/zero > /dev/shm/rf-test-use'",
    );
    let path = Path::new("/dev/shm/rf-test-use");
    let before = (unit.holds("memory.max"), unit.show("MemoryMax"), unit.pid());
    unit.desk.write("l.toml", "[groups.{g}]\nunit = \"{u}\"\nmemory.max = \"1M\"\n");
    let (code, out, error) = unit.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 1, "{out}{error}");
    says(&error, &["memory"]);
    assert_eq!((unit.holds("memory.max"), unit.show("MemoryMax"), unit.pid()), before);
    assert!(!unit.drop_in().exists());
    fs::remove_file(path).unwrap();
}

fn not_running(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-stopped", "");
    unit.control("stop");
    unit.apply("[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    says(&unit.desk.ends("status {s}", 0), &["does not run: its settings come into force when it starts"]);
    unit.control("start");
    assert_eq!(unit.holds("pids.max").as_deref(), Some("77"));
    says(&unit.desk.ends("status {s}", 0), &["pids.max=77"]);
    // what somebody changes then is seen
    systemctl(&["set-property", "--runtime", &unit.name, "TasksMax=66"]);
    says(&unit.desk.ends("status {s}", 3), &["pids.max: applied 77, now 66"]);
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    let both = || (unit.holds("pids.max").unwrap(), unit.show("TasksMax"));
    assert_eq!(both(), ("77".to_owned(), "77".to_owned()));
    unit.desk.ends("status {s}", 0);
    says(&unit.desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    // what was set by systemd meanwhile is systemd's own value
    unit.desk.ends("undo 0 {s}", 0);
    assert_eq!(both(), ("66".to_owned(), "66".to_owned()));
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    unit.control("stop");
    let (code, _, error) = unit.desk.run("undo {s}");
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(!unit.drop_in().exists());
    systemctl(&["revert", &unit.name]);
    // nothing of a unit that did not run stays
    unit.apply("[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    unit.desk.write("l.toml", "[groups.\"{g}-rt\"]\npids.max = 9\n");
    let (code, _, error) = unit.desk.run("apply {d}/l.toml {s}");
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(!unit.drop_in().exists());
    unit.desk.ends("undo 0 {s}", 0);
}

fn by_hand(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-by-hand", "");
    unit.apply("[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    let applied = fs::read_to_string(unit.drop_in()).unwrap();
    let edited = format!("{applied}MemoryMax=1G\n");
    fs::write(unit.drop_in(), &edited).unwrap();
    says(&unit.desk.ends("status {s}", 3), &["was changed since it was applied"]);
    let (code, _, error) = unit.desk.run("apply {d}/l.toml {s}");
    assert!(code == 1 || code == 2, "{code}: {error}");
    says(&error, &["was changed since it was applied", "hint: mv -n /etc/systemd/system/"]);
    let (code, _, error) = unit.desk.run("undo {s}");
    assert_eq!(code, 3, "{error}");
    says(&error, &["has lines that are not Ringfence's", "mv -n /etc/systemd/system/"]);
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), edited);
    says(&unit.desk.ends("status {s}", 3), &["of generation 1, which was undone, is in force"]);
    // as the hint says
    let kept = unit.drop_in().with_file_name("50-local.conf");
    fs::rename(unit.drop_in(), &kept).unwrap();
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), applied);
    assert_eq!(unit.show("MemoryMax"), "1073741824");
    fs::remove_file(kept).unwrap();
    fs::remove_file(unit.drop_in()).unwrap();
    says(&unit.desk.ends("status {s}", 3), &["was removed"]);
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), applied);
    unit.desk.ends("status {s}", 0);
    systemctl(&["mask", &unit.name]);
    says(&unit.desk.ends("status {s}", 3), &["is masked", "systemctl unmask"]);
    systemctl(&["unmask", &unit.name]);
    unit.desk.ends("status {s}", 0);
    // another history leaves it
    unit.desk.write("other.toml", "[groups.\"{g}-rt\"]\npids.max = 9\n");
    unit.desk.ends("apply {d}/other.toml --state {d}/other", 0);
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), applied);
    unit.desk.ends("undo --state {d}/other", 0);
    unit.desk.ends("undo 0 {s}", 0);
    assert!(!unit.drop_in().exists());
}

fn dropped(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-dropped", "");
    let before = (unit.holds("pids.max"), unit.show("TasksMax"));
    unit.apply("[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    // what adds to the layout takes nothing away
    unit.desk.write("more.conf", "group {g}-rt {\n\tpids {\n\t\tpids.max = 8;\n\t}\n}\n");
    unit.desk.ends("cgconfigparser -l {d}/more.conf", 0);
    assert!(unit.drop_in().exists());
    unit.desk.scene.ok("delete {g}-rt");
    unit.apply("[groups.\"{g}-rt\"]\npids.max = 9\n");
    assert_eq!((unit.holds("pids.max"), unit.show("TasksMax")), before);
    assert!(!unit.drop_in().exists());
    unit.desk.ends("status {s}", 0);
    // the undo brings the unit's settings again
    unit.desk.ends("undo {s}", 0);
    assert_eq!((unit.holds("pids.max").as_deref(), unit.show("TasksMax").as_str()), (Some("77"), "77"));
    unit.desk.ends("status {s}", 0);
    unit.desk.ends("undo {s}", 0);
    assert_eq!((unit.holds("pids.max"), unit.show("TasksMax")), before);
}

fn rolled_back(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-rolled-back", "");
    let before = (unit.holds("pids.max"), unit.show("TasksMax"));
    unit.apply("[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n");
    let applied = fs::read_to_string(unit.drop_in()).unwrap();
    // the file can't be replaced, after the value was written to the group
    let directory = unit.drop_in().parent().unwrap().to_owned();
    set_immutable(&directory, true);
    unit.desk.write("l.toml", "[groups.{g}]\nunit = \"{u}\"\npids.max = 66\n");
    let (code, _, error) = unit.desk.run("apply {d}/l.toml {s}");
    set_immutable(&directory, false);
    assert_eq!(code, 1, "{error}");
    says(&error, &["90-ringfence.conf"]);
    assert_eq!(unit.holds("pids.max").as_deref(), Some("77"));
    assert_eq!(fs::read_to_string(unit.drop_in()).unwrap(), applied);
    unit.desk.ends("undo 0 {s}", 0);
    assert_eq!((unit.holds("pids.max"), unit.show("TasksMax")), before);
}

fn killed(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-killed", "");
    let picture = |unit: &Unit| {
        let shown = unit.shows(["MemoryMax", "TasksMax", "CPUWeight"]);
        // what systemd writes for the flag that a reload sets
        let flag = format!("/run/systemd/system.control/{}.d/50-TasksAccounting.conf", unit.name);
        let files = [unit.drop_in().exists(), Path::new(&flag).exists()];
        (unit.holds("pids.max"), unit.holds("memory.max"), shown, files)
    };
    let before = picture(&unit);
    let layout = "[groups.{g}]\nunit = \"{u}\"\npids.max = 77\nmemory.max = \"256M\"\ncpu.weight = 70\n";
    unit.desk.write("l.toml", layout);
    let whole = Instant::now();
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    let whole = whole.elapsed();
    unit.desk.ends("undo {s}", 0);
    assert_eq!(picture(&unit), before);
    let (mut broken, tries) = (0, 6);
    // once at each time, and on a busy machine until one of them came in between
    for (round, time) in (0..10).flat_map(|round| (1..=tries).map(move |time| (round, time))) {
        if round > 0 && broken > 0 {
            break;
        }
        let mut apply = unit.desk.spawn("apply {d}/l.toml {s}");
        std::thread::sleep(whole * time / tries);
        apply.kill().unwrap();
        let was_killed = !apply.wait().unwrap().success();
        broken += u32::from(was_killed && unit.drop_in().exists());
        // the next change takes back what was interrupted, and this one what was done
        unit.desk.run("undo 0 {s}");
        assert_eq!(picture(&unit), before, "killed at {time} of {tries}");
    }
    assert!(broken > 0, "no kill came between the file and the end");
}

/// Nothing can be made in the directory, or again.
fn set_immutable(directory: &Path, on: bool) {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let open = fs::File::open(directory).unwrap();
    let mut flags = ioctl_getflags(&open).unwrap();
    flags.set(IFlags::IMMUTABLE, on);
    ioctl_setflags(&open, flags).unwrap();
}

fn refused(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-refused", "");
    let bound = |name: &str, more: &str| format!("[groups.{{g}}]\nunit = \"{name}\"\npids.max = 7\n{more}");
    systemctl(&["mask", "--runtime", "rf-test-masked.service"]);
    let slice = Path::new("/run/systemd/system/rfteststopped.slice");
    fs::write(slice, "[Slice]\n").unwrap();
    let rooted = Path::new("/run/systemd/system/rf-test-rooted.service");
    fs::write(rooted, "[Service]\nExecStart=/bin/true\nRootDirectory=/var/empty\n").unwrap();
    systemctl(&["daemon-reload"]);
    for (layout, words) in [
        (bound("{g}.servicee", ""), "is not the name of a unit with a control group"),
        (bound("rf-test-none.service", ""), "systemd has no unit rf-test-none.service"),
        (bound("rf-test-masked.service", ""), "is masked: systemd never starts it"),
        (bound("getty@.service", ""), "is a template, which is not a unit itself"),
        (bound("{u}", "cpu.max.burst = \"10ms\"\n"), "systemd has no property for cpu.max.burst"),
        (bound("{u}", "devices.deny = \"a\"\n"), "of a unit is not written"),
        (bound("rfteststopped.slice", "cpus = 1\nexclusive = true\n"), "does not run"),
        (
            bound("rf-test-rooted.service", "cpus = 1\nexclusive = true\n"),
            "[Service] Slice=rf_test_rooted.slice",
        ),
        (bound("{u}", "tasks = { user = 0 }\n"), "which can't have owners"),
        (
            bound("{u}", "match = [{ user = 0, process = \"rf-none\" }]\n"),
            "which can't have processes by rules",
        ),
        (bound("{u}", "[groups.\"{g}-rt\"]\nunit = \"{u}\"\npids.max = 3\n"), "are both"),
    ] {
        unit.desk.write("l.toml", &layout);
        for command in ["plan", "apply"] {
            let (code, _, error) = unit
                .desk
                .run(&format!("{command} {{d}}/l.toml{}", if command == "apply" { " {s}" } else { "" }));
            assert!(code == 1 || code == 2, "{layout}: {code}");
            says(&error, &[words, "hint:"]);
        }
    }
    systemctl(&["unmask", "--runtime", "rf-test-masked.service"]);
    fs::remove_file(slice).unwrap();
    fs::remove_file(rooted).unwrap();
    assert!(!unit.drop_in().parent().unwrap().exists());
}

fn pinned(world: &Arc<World>) {
    let unit = Unit::new(world, "unit-pinned", "CPUAffinity=1");
    let is_on = fs::read_to_string("/sys/fs/cgroup/cgroup.subtree_control").unwrap().contains("cpuset");
    unit.desk.write("l.toml", "[groups.{g}]\nunit = \"{u}\"\ncpus = 1\n");
    let (code, _, error) = unit.desk.run("plan {d}/l.toml");
    assert_eq!(code, 0, "{error}");
    match is_on {
        false => says(&error, &["CPUAffinity=", &unit.name, "systemctl restart"]),
        true => assert_eq!(error, ""),
    }
}

fn exclusive(world: &Arc<World>) {
    let desk = Desk::new(world, "unit-exclusive");
    let names = Path::new("/sys/fs/cgroup/system.slice/cpuset.cpus.exclusive").exists();
    // before Linux 6.7 only groups directly below the root are partitions
    let group = if names { "{g}" } else { "/{g}" };
    desk.write("l.toml", &format!("[groups.\"{group}\"]\ncpus = \"1\"\nexclusive = true\n"));
    let effective = || {
        let list =
            fs::read_to_string("/sys/fs/cgroup/system.slice/cpuset.cpus.effective").unwrap_or_default();
        list.trim().parse::<units::CpuSet>().ok()
    };
    let others = || effective().is_some_and(|cpus| cpus.contains(1));
    // the file is there once the controller is on at the top
    desk.scene.ok("create {g} --controllers cpuset");
    let before = effective();
    desk.ends("apply {d}/l.toml {s}", 0);
    for verb in ["daemon-reload", "daemon-reexec", "daemon-reload"] {
        assert!(!others(), "before {verb}");
        let allowed = desk.ends(&format!("run {group} -- grep Cpus_allowed_list /proc/self/status"), 0);
        assert_eq!(allowed, "Cpus_allowed_list:\t1\n");
        systemctl(&[verb]);
        desk.ends("status {s}", 0);
    }
    assert!(!others());
    desk.ends("undo {s}", 0);
    // the kernel gives a removed partition's CPUs back once the group's last reference is gone
    desk.scene.until("the CPUs that others had before", || effective() == before);
}
