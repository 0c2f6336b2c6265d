//! Units of systemd with CPUs of their own: nobody else's task may run there, over all that systemd does, and an undo
//! gives the CPUs back.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::Arc,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    desk::{Desk, says},
    units::{Case, NEEDS, Unit, may_use, of_cases, systemctl},
    world::World,
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let cases: &[Case] = &[
        ("exclusive CPUs of a service are nobody else's, over reloads and restarts", service),
        ("exclusive CPUs of a slice are nobody else's, over reloads and restarts", slice),
        ("exclusive CPUs of a service that does not run are its own from its start on", stopped),
        ("exclusive CPUs of two services come and go by themselves", two),
        ("exclusive CPUs that somebody took are drift, and apply gives them back", by_hand),
        ("exclusive CPUs are isolated where the layout says so", isolated),
        ("exclusive CPUs beside a service are there for the next layout, and change hands", beside),
        ("exclusive CPUs of shield are nobody else's until unshield", shield),
    ];
    of_cases(world, NEEDS, cases)
}

const ROOT: &str = "/sys/fs/cgroup";
const LAYOUT: &str = "[groups.{g}]\nunit = \"{u}\"\ncpus = \"1\"\nexclusive = true\n";

fn holds(group: &str, file: &str) -> Option<String> {
    Some(fs::read_to_string(Path::new(ROOT).join(group).join(file)).ok()?.trim_end().to_owned())
}

/// The group of a service that is directly in a slice.
fn group(slice: &str, unit: &Unit) -> String {
    format!("{slice}/{}", unit.name)
}

/// Can a group be a partition whose parent is none (Linux 6.7)?
fn has_remote() -> bool {
    Path::new(ROOT).join("cpuset.cpus.isolated").exists()
}

/// The CPU that a process is on, by its `stat`; with its flags.
fn stat(pid: u32) -> Option<(u32, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(36)?.parse().ok()?, fields.get(6)?.parse().ok()?))
}

fn pids(group: &str) -> BTreeSet<u32> {
    let text = holds(group, "cgroup.procs").unwrap_or_default();
    text.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// All processes of users but those in the group.
fn others(of: &str) -> Vec<u32> {
    const KERNEL_THREAD: u32 = 0x0020_0000;
    let own = pids(of);
    let all = fs::read_dir("/proc").unwrap();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_user = |pid: &u32| stat(*pid).is_some_and(|(_, flags)| flags & KERNEL_THREAD == 0);
    all.filter(|pid| !own.contains(pid)).filter(is_user).collect()
}

/// The group in `of` has the CPU for itself: `members` is where its processes are.
fn is_exclusive(of: &str, members: &str, (cpu, kind): (u32, &str), when: &str) {
    assert_eq!(holds(of, "cpuset.cpus.partition").as_deref(), Some(kind), "{when}");
    let own = pids(members);
    assert!(!own.is_empty(), "{when}");
    for pid in own {
        assert_eq!(may_use(pid).unwrap().to_string(), cpu.to_string(), "{pid} {when}");
    }
    for pid in others(members) {
        // it may have ended
        if let Some(allowed) = may_use(pid) {
            assert!(!allowed.contains(cpu as usize), "{pid} may use {allowed} {when}");
        }
    }
}

/// As many processes as there are CPUs want one: none of them is ever seen on this one.
fn stays_free(cpu: u32) {
    let count = std::thread::available_parallelism().unwrap().get() + 1;
    let one = |_| Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut busy: Vec<Child> = (0..count).map(one).collect();
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        seen.extend(busy.iter().filter_map(|child| Some(stat(child.id())?.0)));
        std::thread::sleep(Duration::from_millis(10));
    }
    for child in &mut busy {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(!seen.is_empty() && !seen.contains(&cpu), "{seen:?}");
}

/// What systemd does, and what then has to be so still.
fn outlives(unit: &Unit, of: &str, members: &str, (cpu, kind): (u32, &str)) {
    is_exclusive(of, members, (cpu, kind), "after apply");
    stays_free(cpu);
    unit.desk.ends("status {s}", 0);
    says(&unit.desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    for verb in ["daemon-reload", "daemon-reexec"].repeat(3) {
        systemctl(&[verb]);
        is_exclusive(of, members, (cpu, kind), verb);
    }
    unit.desk.ends("status {s}", 0);
    for _ in 0..2 {
        let first = unit.pid();
        unit.control("restart");
        assert_ne!(unit.pid(), first);
        is_exclusive(of, members, (cpu, kind), "after a restart");
        unit.desk.ends("status {s}", 0);
    }
    stays_free(cpu);
}

/// The files of a unit, of the slice above it and of the machine that exclusive CPUs change.
fn picture(of: &str, slice: &str, unit: &Unit) -> Vec<Option<String>> {
    let mut all: Vec<Option<String>> = unit.shows(["AllowedCPUs", "ExecStartPre"]).map(Some).into();
    // a group without the controller is as one that has the kernel's defaults
    let is_default = |text: &String| !text.is_empty() && text != "member";
    for (group, file) in [
        (of, "cpuset.cpus.partition"),
        (of, "cpuset.cpus.exclusive"),
        (slice, "cpuset.cpus.exclusive"),
        ("", "cpuset.cpus.effective"),
    ] {
        all.push(holds(group, file).filter(is_default));
    }
    all
}

/// The kernel gives a removed partition's CPUs back once the group's last reference is gone, and systemd takes
/// controllers away after it has answered.
fn comes_back<T: PartialEq + std::fmt::Debug>(now: impl Fn() -> T, before: &T) {
    let started = Instant::now();
    while now() != *before && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(now(), *before);
}

fn refused_without_remote(unit: &Unit) {
    unit.desk.write("l.toml", LAYOUT);
    for command in ["plan {d}/l.toml", "apply {d}/l.toml {s}"] {
        let (code, _, error) = unit.desk.run(command);
        assert_eq!(code, 1, "{error}");
        says(&error, &["/system.slice", "[Service] Slice=", "unit = \"", "Linux 6.7"]);
    }
    assert!(!unit.drop_in().exists());
    assert_eq!(unit.show("AllowedCPUs"), "");
}

fn service(world: &Arc<World>) {
    let unit = Unit::new(world, "exclusive-service", "");
    if !has_remote() {
        return refused_without_remote(&unit);
    }
    let of = group("system.slice", &unit);
    let before = picture(&of, "system.slice", &unit);
    unit.apply(LAYOUT);
    outlives(&unit, &of, &of, (1, "root"));
    unit.desk.ends("undo {s}", 0);
    comes_back(|| picture(&of, "system.slice", &unit), &before);
    assert!(!unit.drop_in().parent().unwrap().exists());
    unit.desk.scene.until("all CPUs for the unit", || may_use(unit.pid()).unwrap().contains(0));
    systemctl(&["daemon-reload"]);
    unit.control("restart");
    assert_eq!(picture(&of, "system.slice", &unit), before);
    says(&unit.desk.ends("status {s}", 0), &["nothing that was applied is in effect"]);
}

/// A slice at the top for the service of a trial.
struct Slice(PathBuf, &'static str);

impl Slice {
    fn new(name: &'static str) -> Slice {
        let file = Path::new("/run/systemd/system").join(name);
        fs::write(&file, "[Slice]\n").unwrap();
        Slice(file, name)
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        let _ = Command::new("systemctl").args(["stop", self.1]).status();
        let _ = fs::remove_file(&self.0);
    }
}

fn slice(world: &Arc<World>) {
    let slice = Slice::new("rftestexclusive.slice");
    let unit = Unit::new(world, "exclusive-slice", &format!("Slice={}", slice.1));
    let before = picture(slice.1, slice.1, &unit);
    unit.apply(&LAYOUT.replace("{u}", slice.1));
    outlives(&unit, slice.1, &group(slice.1, &unit), (1, "root"));
    let (code, _, error) = unit.desk.run("undo {s}");
    let list = holds(slice.1, "cpuset.cpus").unwrap_or_default();
    match code {
        0 => assert!(list.is_empty(), "{list}"),
        // before Linux 7.0 a list can't become empty again while processes are in the group: it is all CPUs then
        3 => says(&error, &["cpuset.cpus", "takes no empty list"]),
        _ => panic!("{code}: {error}"),
    }
    comes_back(|| picture(slice.1, slice.1, &unit), &before);
    unit.desk.scene.until("all CPUs for the unit", || may_use(unit.pid()).unwrap().contains(0));
    assert!(!Path::new("/etc/systemd/system").join(format!("{}.d", slice.1)).exists());
}

fn stopped(world: &Arc<World>) {
    let unit = Unit::new(world, "exclusive-stopped", "");
    if !has_remote() {
        return refused_without_remote(&unit);
    }
    let of = group("system.slice", &unit);
    let before = picture(&of, "system.slice", &unit);
    unit.control("stop");
    unit.apply(LAYOUT);
    says(&unit.desk.ends("status {s}", 0), &["does not run: its settings come into force when it starts"]);
    unit.control("start");
    outlives(&unit, &of, &of, (1, "root"));
    unit.control("stop");
    unit.desk.ends("status {s}", 0);
    unit.control("start");
    unit.desk.ends("undo {s}", 0);
    comes_back(|| picture(&of, "system.slice", &unit), &before);
    // of one that does not run the slice may be left, with the CPUs that its start reserved
    unit.control("stop");
    unit.apply(LAYOUT);
    unit.control("start");
    unit.control("stop");
    // somebody else needs the controller meanwhile
    for above in ["", "system.slice"] {
        fs::write(Path::new(ROOT).join(above).join("cgroup.subtree_control"), "+cpuset").unwrap();
    }
    fs::write(Path::new(ROOT).join("system.slice/cpuset.cpus.exclusive"), "1").unwrap();
    unit.desk.ends("undo {s}", 0);
    assert!(holds("system.slice", "cpuset.cpus.exclusive").is_none_or(|list| list.is_empty()));
}

fn two(world: &Arc<World>) {
    let one = Unit::new(world, "exclusive-one", "");
    if !has_remote() {
        return refused_without_remote(&one);
    }
    let other = Unit::new(world, "exclusive-other", "");
    let (of_one, of_other) = (group("system.slice", &one), group("system.slice", &other));
    let before = (picture(&of_one, "system.slice", &one), picture(&of_other, "system.slice", &other));
    let both = format!(
        "{LAYOUT}[groups.\"{{g}}-rt\"]\nunit = \"{}\"\ncpus = \"2-3\"\nexclusive = true\n",
        other.name
    );
    one.apply(&both);
    let are_partitions = |when: &str| {
        for of in [&of_one, &of_other] {
            assert_eq!(holds(of, "cpuset.cpus.partition").as_deref(), Some("root"), "{of} {when}");
        }
        one.desk.ends("status {s}", 0);
    };
    are_partitions("after apply");
    for unit in [&one, &other] {
        unit.control("restart");
        are_partitions("after a restart");
    }
    // systemd takes the slice's list away with the last of them
    one.control("stop");
    other.control("stop");
    one.desk.ends("status {s}", 0);
    other.control("start");
    one.control("start");
    are_partitions("after both were stopped");
    one.apply(LAYOUT);
    assert_eq!(holds(&of_one, "cpuset.cpus.partition").as_deref(), Some("root"));
    comes_back(|| picture(&of_other, "system.slice", &other)[..4].to_vec(), &before.1[..4].to_vec());
    assert_eq!(holds("system.slice", "cpuset.cpus.exclusive").as_deref(), Some("1"));
    one.desk.ends("status {s}", 0);
    // the undo brings the other's again
    one.desk.ends("undo {s}", 0);
    are_partitions("after the first undo");
    one.desk.ends("undo {s}", 0);
    let now = || (picture(&of_one, "system.slice", &one), picture(&of_other, "system.slice", &other));
    comes_back(now, &before);
}

fn by_hand(world: &Arc<World>) {
    let unit = Unit::new(world, "exclusive-by-hand", "");
    if !has_remote() {
        return refused_without_remote(&unit);
    }
    let of = group("system.slice", &unit);
    let before = picture(&of, "system.slice", &unit);
    unit.apply(LAYOUT);
    fs::write(Path::new(ROOT).join(&of).join("cpuset.cpus.partition"), "member").unwrap();
    says(&unit.desk.ends("status {s}", 3), &["cpuset.cpus.partition: applied root, now member"]);
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(holds(&of, "cpuset.cpus.partition").as_deref(), Some("root"));
    unit.desk.ends("status {s}", 0);
    // a line that fails does not keep the service from starting
    let drop_in = fs::read_to_string(unit.drop_in()).unwrap();
    fs::write(unit.drop_in(), drop_in.replace("/bin/sh", "/bin/false")).unwrap();
    systemctl(&["daemon-reload"]);
    unit.control("restart");
    says(&unit.desk.ends("status {s}", 3), &["was changed since it was applied", "applied root, now member"]);
    // lines of somebody else's are not lost
    let (code, _, error) = unit.desk.run("apply {d}/l.toml {s}");
    assert!(code == 1 && error.contains("its lines would be lost"), "{code}: {error}");
    fs::write(unit.drop_in(), drop_in).unwrap();
    systemctl(&["daemon-reload"]);
    unit.desk.ends("apply {d}/l.toml {s}", 0);
    unit.desk.ends("status {s}", 0);
    unit.desk.ends("undo 0 {s}", 0);
    comes_back(|| picture(&of, "system.slice", &unit), &before);
}

fn isolated(world: &Arc<World>) {
    let slice = Slice::new("rftestisolated.slice");
    let unit = Unit::new(world, "exclusive-isolated", &format!("Slice={}", slice.1));
    let (of, named) = match has_remote() {
        true => (group(slice.1, &unit), unit.name.clone()),
        false => (slice.1.to_owned(), slice.1.to_owned()),
    };
    let before = picture(&of, slice.1, &unit);
    let layout =
        LAYOUT.replace("exclusive = true", "cpuset.cpus.partition = \"isolated\"").replace("{u}", &named);
    unit.apply(&layout);
    outlives(&unit, &of, &group(slice.1, &unit), (1, "isolated"));
    let (code, _, error) = unit.desk.run("undo {s}");
    assert!(code == 0 || code == 3 && error.contains("takes no empty list"), "{code}: {error}");
    comes_back(|| picture(&of, slice.1, &unit), &before);
}

/// What the service had for itself, and what a group had that a new layout leaves out, counted as missing on the machine:
/// the next apply was refused, and the daemon repaired nothing.
fn beside(world: &Arc<World>) {
    let unit = Unit::new(world, "exclusive-beside", "");
    if !has_remote() {
        return refused_without_remote(&unit);
    }
    let before = holds("", "cpuset.cpus.effective");
    let group = |name: &str, cpu: u32| format!("[groups.\"{name}\"]\ncpus = \"{cpu}\"\nexclusive = true\n");
    for name in ["{g}-rt", "{g}-new"] {
        unit.apply(&format!("{LAYOUT}{}", group(name, 0)));
        says(&unit.desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
        let of = unit.desk.scene.fill(&format!("ringfence.slice/ringfence.service/{name}"));
        assert_eq!(holds(&of, "cpuset.cpus.partition").as_deref(), Some("root"), "{name}");
        assert_eq!(holds(&of, "cpuset.cpus").as_deref(), Some("0"), "{name}");
        unit.desk.ends("status {s}", 0);
    }
    unit.desk.ends("undo 0 {s}", 0);
    comes_back(|| holds("", "cpuset.cpus.effective"), &before);
}

/// Before Linux 6.7 no group below the unit can be a partition: `shield` was refused there.
fn shield(world: &Arc<World>) {
    let desk = Desk::new(world, "exclusive-shield");
    let of = if has_remote() { "ringfence.slice/ringfence.service/shield" } else { "shield" };
    let effective = || holds("", "cpuset.cpus.effective");
    let before = effective();
    let mut program = desk.spawn("shield 1 {s} -- sleep 1000");
    // the kernel lists a process that comes in a moment before it gives it the group's CPUs
    let has_cpu = |pid: u32| may_use(pid).is_some_and(|cpus| cpus.to_string() == "1");
    desk.scene
        .until("the program in the shield", || !pids(of).is_empty() && pids(of).into_iter().all(has_cpu));
    is_exclusive(of, of, (1, "root"), "after shield");
    stays_free(1);
    for verb in ["daemon-reload", "daemon-reexec"] {
        systemctl(&[verb]);
        is_exclusive(of, of, (1, "root"), verb);
    }
    for pid in pids(of) {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
    program.wait().unwrap();
    desk.ends("unshield {s}", 0);
    comes_back(effective, &before);
    assert!(!Path::new(ROOT).join(of).exists());
}
