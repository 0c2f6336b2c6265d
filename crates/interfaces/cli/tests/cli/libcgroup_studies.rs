//! The published studies' command lines and configurations, with their own names of groups, users and paths: only in a
//! VM, whose suite names the program, as elsewhere no group is made but `rf-test-*`. The suite must have the machine to
//! itself: accounts and `/etc/cgrules.conf` are the studies', and hierarchies are mounted where nothing is.

use std::{fs, path::Path, process::Command, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    libcgroup::{is_in, quiet, refused, stderr_of, value},
    world::{Need, Scene, Ways, World},
};

/// Of the layout crate's tests, which read the same text.
const STUDY_1: &str = include_str!("../../../../division/layout/tests/layout/s1.cgconfig.conf");

const INSTANCES: [(&str, &str, &str); 4] = [
    ("test1", "oracle", "0,4,8,12,16,20,24,28"),
    ("test2", "oracle2", "1,5,9,13,17,21,25,29"),
    ("test3", "oracle3", "2,6,10,14,18,22,26,30"),
    ("test4", "oracle4", "3,7,11,15,19,23,27,31"),
];
const FIRST_ORACLE: u32 = 7001;
const DBA: u32 = 7000;
const OTHER: u32 = 65534;

type Case = fn(&mut Scene);

const CPUSET: Ways = &[&[Need::V1("cpuset")], &[Need::V2("cpuset")]];
const LARGE: Ways = &[
    &[Need::V1("cpuset"), Need::Cpus(32)],
    &[Need::V2("cpuset"), Need::Cpus(32)],
    &[Need::NoHierarchy, Need::Cpus(32)],
];
const BLKIO: Ways = &[&[Need::V1("blkio")], &[Need::V2("io")]];

const CASES: &[(&str, Ways, Case)] = &[
    ("study 1: groups of four instances, with their owners", CPUSET, owners),
    ("study 1: CPUs are added to an instance, and its memory is limited", EIGHT, dynamic),
    ("study 1: who administers a group sets it", CPUSET, administered),
    ("study 1: its configuration, hierarchies and all", LARGE, configuration),
    ("study 1: instances on nodes of their own", &[LARGE[0], LARGE[1]], nodes),
    ("study 2: throttled reads", BLKIO, throttled),
    ("study 2: throttled reads where nothing is mounted", &[&[Need::NoHierarchy]], throttled_unmounted),
    ("study 2: its rule, followed by cgexec and cgclassify", BLKIO, ruled),
    ("study 5: a running server is confined, and set free", EIGHT, confined),
];

const EIGHT: Ways = &[&[Need::V1("cpuset"), Need::Cpus(8)], &[Need::V2("cpuset"), Need::Cpus(8)]];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, ways, case): &(&'static str, Ways, Case)| {
        let alone = world.lacks(&[Need::OwnMachine, Need::Plain]);
        let (lacks, world) = (world.lacks_ways(ways).or(alone), world.clone());
        suite::trial(format!("verbatim: {name}"), lacks, move || {
            let _accounts = Accounts::add();
            case(&mut Scene::new(&world, name));
        })
    };
    CASES.iter().map(trial).collect()
}

/// The studies' users and groups, until the end of a case.
struct Accounts([(&'static str, String); 2]);

impl Accounts {
    fn add() -> Accounts {
        let held = ["/etc/passwd", "/etc/group"].map(|file| (file, fs::read_to_string(file).unwrap()));
        let user = |(number, (_, user, _)): (u32, &(&str, &str, &str))| {
            format!("{user}:x:{}:{DBA}::/:/bin/sh\n", FIRST_ORACLE + number)
        };
        let users: String = (0..).zip(&INSTANCES).map(user).collect();
        fs::write(held[0].0, format!("{}{users}", held[0].1)).unwrap();
        fs::write(held[1].0, format!("{}dba:x:{DBA}:\n", held[1].1)).unwrap();
        Accounts(held)
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        for (file, text) in &self.0 {
            let _ = fs::write(file, text);
        }
    }
}

/// The directory of a group where that controller is.
fn directory(scene: &Scene, group: &str, controller: &str) -> String {
    let text = scene.ok(&format!("create {group} --json -c {controller}"));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["directories"][0].as_str().unwrap().to_owned()
}

fn owner(path: &str) -> (u32, u32) {
    use std::os::unix::fs::MetadataExt;
    let about = fs::metadata(path).unwrap();
    (about.uid(), about.gid())
}

fn owners(scene: &mut Scene) {
    for (number, (group, user, _)) in (0..).zip(INSTANCES) {
        quiet(scene, &format!("cgcreate -t {user}:dba -g cpuset:{group}"));
        let at = directory(scene, group, "cpuset");
        assert_eq!(owner(&format!("{at}/cgroup.procs")), (FIRST_ORACLE + number, DBA));
        assert_eq!(owner(&format!("{at}/cpuset.cpus")), (0, 0));
        quiet(scene, &format!("cgset -r cpuset.cpus='0' {group}"));
        quiet(scene, &format!("cgset -r cpuset.mems='0' {group}"));
        quiet(scene, &format!("cgexec -g cpuset:{group} true"));
    }
    quiet(scene, "cgdelete cpuset:test1 cpuset:test2 cpuset:test3 cpuset:test4");
}

fn dynamic(scene: &mut Scene) {
    quiet(scene, "cgcreate -t oracle:dba -g cpuset:test1");
    quiet(scene, "cgset -r cpuset.mems='0' test1");
    for cpus in ["0-1", "0-3", "0-5", "0-7"] {
        quiet(scene, &format!("cgset -r cpuset.cpus='{cpus}' test1"));
        assert_eq!(scene.ok("cgget -n -v -r cpuset.cpus test1"), format!("{cpus}\n"));
    }
    quiet(scene, "cgcreate -t oracle:dba -g memory:test1");
    quiet(scene, "cgset -r memory.limit_in_bytes=8589934592 test1");
    assert_eq!(value(scene, "test1", "memory.limit_in_bytes"), "8589934592");
    quiet(scene, "cgdelete cpuset,memory:test1");
}

/// As `admin { uid = oracle; gid = dba; }` has it.
fn administered(scene: &mut Scene) {
    quiet(scene, "cgcreate -t oracle:dba -a oracle:dba -g cpuset:test1");
    for line in ["cgset -r cpuset.cpus='0' test1", "cgset -r cpuset.mems='0' test1"] {
        let output = scene.ringfence(line, Some(FIRST_ORACLE));
        assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""), "{line}");
        let output = scene.ringfence(line, Some(OTHER));
        assert_eq!(output.status.code(), Some(96), "{line}: {}", stderr_of(&output));
        assert!(stderr_of(&output).contains("hint:"), "{}", stderr_of(&output));
    }
    quiet(scene, "cgdelete cpuset:test1");
}

fn configuration(scene: &mut Scene) {
    fs::write("/etc/cgconfig.conf", STUDY_1).unwrap();
    let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
    let before = mounts();
    let bare = !before.contains(" cgroup");
    quiet(scene, "cgconfigparser -l /etc/cgconfig.conf --state /tmp/study-1");
    quiet(scene, "cgconfigparser -l /etc/cgconfig.conf --state /tmp/study-1");
    if bare {
        let held = mounts();
        for controller in ["cpuset", "cpu", "cpuacct", "memory", "devices", "freezer", "net_cls", "blkio"] {
            assert!(held.contains(&format!(" /cgroup/{controller} cgroup ")), "{controller}: {held}");
        }
    }
    for (number, (group, ..)) in (0..).zip(INSTANCES) {
        assert_eq!(value(scene, group, "cpuset.cpus"), "0-31");
        assert_eq!(value(scene, group, "cpuset.mems"), "0-3");
        let at = directory(scene, group, "cpuset");
        assert_eq!(owner(&format!("{at}/cgroup.procs")), (FIRST_ORACLE + number, DBA));
        assert_eq!(owner(&at), (0, 0));
    }
    quiet(scene, "cgclear -l /etc/cgconfig.conf");
    assert_eq!(mounts(), before, "what was there before stays, and nothing else");
    assert!(!scene.ringfence("list test1", None).status.success());
    fs::remove_file("/etc/cgconfig.conf").unwrap();
}

fn nodes(scene: &mut Scene) {
    for (node, (group, user, cpus)) in INSTANCES.iter().enumerate() {
        quiet(scene, &format!("cgcreate -t {user}:dba -g cpuset:{group}"));
        quiet(scene, &format!("cgset -r cpuset.cpus='{cpus}' {group}"));
        quiet(scene, &format!("cgset -r cpuset.mems='{node}' {group}"));
        assert_eq!(scene.ok(&format!("cgget -n -v -r cpuset.cpus {group}")), format!("{cpus}\n"));
    }
    quiet(scene, "cgdelete cpuset:test1 cpuset:test2 cpuset:test3 cpuset:test4");
}

const THROTTLE: &str = "blkio.throttle.read_iops_device";

/// The first disk's number, by which the study's `8:16` goes here.
fn disk() -> String {
    fs::read_to_string("/sys/class/block/vda/dev").unwrap().trim().to_owned()
}

fn throttled(scene: &mut Scene) {
    let disk = disk();
    quiet(scene, "cgcreate -g blkio:/iothrottle");
    quiet(scene, &format!("cgset -r {THROTTLE}='{disk} 10' iothrottle"));
    let held = scene.ok(&format!("cgget -n -v -r {THROTTLE} iothrottle"));
    assert!(held.contains(&format!("{disk} ")) && held.contains("10"), "{held}");
    quiet(scene, &format!("cgset -r {THROTTLE}='/dev/vda 20' iothrottle"));
    assert!(value(scene, "iothrottle", THROTTLE).contains("20"));
    // echo $$ > …/tasks; cat /proc/self/cgroup
    let at = directory(scene, "iothrottle", "blkio");
    let script = format!("echo $$ > {at}/cgroup.procs; cat /proc/self/cgroup");
    let shown = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains(":/iothrottle"), "{shown:?}");
    quiet(scene, "cgdelete blkio:/iothrottle");
    persistent(scene);
}

fn throttled_unmounted(scene: &mut Scene) {
    refused(scene, "cgcreate -g blkio:/iothrottle", 81);
    persistent(scene);
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains("/cgroup/blkio"));
    // by hand, as the study does first
    let script = "mkdir -p /cgroup/blkio && mount -t cgroup -o blkio none /cgroup/blkio";
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    throttled(scene);
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains("/cgroup/blkio"));
}

/// `cgconfig.conf` of the study, made and cleared as a service does at boot and at the end.
fn persistent(scene: &Scene) {
    let disk = disk();
    let text = format!(
        "mount {{\n  blkio = /cgroup/blkio;\n}}\ngroup iothrottle {{\n  blkio {{\n    {THROTTLE}=\"{disk} 10\";\n  }}\n}}\n"
    );
    fs::write("/etc/cgconfig.conf", text).unwrap();
    quiet(scene, "cgconfigparser -l /etc/cgconfig.conf --state /tmp/study-2");
    assert!(value(scene, "iothrottle", THROTTLE).contains("10"));
    quiet(scene, "cgclear -l /etc/cgconfig.conf");
    fs::remove_file("/etc/cgconfig.conf").unwrap();
}

fn ruled(scene: &mut Scene) {
    quiet(scene, "cgcreate -t oracle:dba -g blkio:/iothrottle");
    fs::write("/etc/cgrules.conf", "oracle blkio /iothrottle\n").unwrap();
    let oracle = scene.start_as(FIRST_ORACLE, &["sleep", "60"]);
    let other = scene.start_as(OTHER, &["sleep", "60"]);
    quiet(scene, &format!("cgclassify {oracle}"));
    assert!(is_in(oracle, "blkio", "/iothrottle"));
    let _ = scene.ringfence(&format!("cgclassify {other}"), None);
    assert!(!is_in(other, "blkio", "/iothrottle"));
    let shown = scene.ringfence("cgexec cat /proc/self/cgroup", Some(0));
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("iothrottle"), "{shown:?}");
    // on v2 who moves must be allowed to change the group above both, too (kernel document, "Delegation Containment")
    if Path::new("/sys/fs/cgroup/blkio").exists() {
        let shown = scene.ringfence("cgexec cat /proc/self/cgroup", Some(FIRST_ORACLE));
        assert!(String::from_utf8_lossy(&shown.stdout).contains(":/iothrottle"), "{shown:?}");
    }
    scene.ok(&format!("move / {oracle}"));
    quiet(scene, "cgdelete blkio:/iothrottle");
    fs::remove_file("/etc/cgrules.conf").unwrap();
}

fn confined(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpuset:postgres");
    let server = scene.start("{server}", &["sh", "-c", "while sleep 1; do :; done"]);
    quiet(scene, "cgset -r cpuset.mems=0 postgres");
    quiet(scene, "cgset -r cpuset.cpus=7 postgres");
    quiet(scene, "cgclassify -g cpuset:postgres {server}");
    assert!(is_in(server, "cpuset", "/postgres"));
    let allowed = || {
        let text = fs::read_to_string(format!("/proc/{server}/status")).unwrap();
        text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).unwrap().to_owned()
    };
    assert_eq!(allowed(), "7");
    // what it forks later inherits it
    let inside = scene.ok("cgexec -g cpuset:postgres grep Cpus_allowed_list /proc/self/status");
    assert!(inside.ends_with("\t7\n"), "{inside}");
    quiet(scene, "cgset -r cpuset.cpus=0-7 postgres");
    assert_eq!(allowed(), "0-7");
    scene.ok("kill postgres");
    quiet(scene, "cgdelete cpuset:postgres");
}
