//! libcgroup's commands: the faults of the reference that ours must not have, and the command lines of published
//! studies, each on a real kernel.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    libcgroup_files as files,
    world::{Need, Scene, Ways, World},
};

type Case = fn(&mut Scene);

/// A case needs one of the lists whole: on v1 and on v2 the same is done.
const CASES: &[(&str, &[&[Need]], Case)] = &[
    ("fault 1: a configuration that fails half way leaves live groups as they were", CPU_IO, half_way),
    ("fault 2: cgdelete removes a group from all hierarchies that are named", CPU_MEMORY, all_hierarchies),
    ("fault 7: cgset changes all or nothing", CPU_IO, all_or_nothing),
    (
        "fault 7: cgexec tells a missing group from a cpuset without memory nodes",
        &[&[Need::V1("cpuset")]],
        names_of_two_hierarchies,
    ),
    (
        "fault 8: cgxset takes a name that both versions have, and gives legal weights",
        CPU_PIDS,
        both_versions,
    ),
    ("fault 9: a value of more than a hundred characters is taken whole", CPUSET, long_value),
    ("fault 9: whom a group was given to may set it", &[&[Need::V1("pids")], &[Need::V2("pids")]], given),
    ("a task of a deleted v1 group moves to the group above", &[&[Need::V1("cpu")]], tasks_move_up),
    (
        "a task of a deleted v2 group moves to a group above that may hold it",
        &[&[Need::V2("cpu"), Need::Plain]],
        files::tasks_move_up_on_v2,
    ),
    (
        "cgset hands controllers of v2 down, and takes tasks in",
        &[&[Need::V2("cpu"), Need::V2("pids")]],
        files::core_files,
    ),
    (
        "cgxget leaves out what the other version counts, and prints no limit as v1 does",
        CPU_MEMORY,
        files::converted,
    ),
    ("cgsnapshot writes the controllers that are named", CPUSET, files::one_controller),
    ("lists and groups are taken and refused as libcgroup does", CPUSET, files::taken),
    ("cgcreate makes all groups or none, with owners and modes", CPU, created),
    ("cgexec becomes the program, which keeps its status and its dashes", CPU, becomes),
    ("cgclassify goes on after a process that is gone", CPU, goes_on),
    ("cgset copies, and goes down a tree", CPU, copies),
    ("cgconfigparser and cgclear make and remove what a file names", CPU, made_and_cleared),
    ("cgclear without a file leaves what others made", PLAIN_CPU, leaves_others),
    ("cgexec and cgclassify follow the rules without a group", RULES, rules),
    ("the groups of a snapshot are made again as they were", CPU, snapshot),
    ("where nothing is mounted, that is said with its own status", &[&[Need::NoHierarchy]], not_mounted),
    ("links answer by name, and no other program is replaced", &[&[Need::Groups]], links),
    (
        "study 1's commands run",
        &[&[Need::V1("cpuset"), Need::V1("memory")], &[Need::V2("cpuset"), Need::V2("memory")]],
        study_1,
    ),
    ("study 2's commands run", &[&[Need::V1("blkio")], &[Need::V2("io")]], study_2),
    (
        "study 4's settings are taken",
        &[&[Need::V1("cpuset"), Need::V1("memory"), Need::V1("freezer")]],
        study_4,
    ),
    ("bad arguments, help and missing groups have libcgroup's words", &[&[Need::Groups]], words_of_old),
    ("lists that never end or never begin are refused", &[&[Need::Groups]], endless_lists),
    ("study 5's trap is explained", &[&[Need::V1("cpuset")]], study_5),
];

const CPU: &[&[Need]] = &[&[Need::V1("cpu")], &[Need::V2("cpu")]];
// with systemd everything below our unit is ours
const PLAIN_CPU: &[&[Need]] = &[&[Need::V1("cpu"), Need::Plain], &[Need::V2("cpu"), Need::Plain]];
const CPU_IO: &[&[Need]] = &[&[Need::V1("cpu"), Need::V1("blkio")], &[Need::V2("cpu"), Need::V2("io")]];
const CPU_MEMORY: &[&[Need]] =
    &[&[Need::V1("cpu"), Need::V1("memory")], &[Need::V2("cpu"), Need::V2("memory")]];
const CPU_PIDS: &[&[Need]] = &[&[Need::V1("cpu"), Need::V1("pids")], &[Need::V2("cpu"), Need::V2("pids")]];
const CPUSET: &[&[Need]] = &[&[Need::V1("cpuset"), Need::Cpus(2)], &[Need::V2("cpuset"), Need::Cpus(2)]];

const RULES: &[&[Need]] =
    &[&[Need::V1("cpu"), Need::Program("unshare")], &[Need::V2("cpu"), Need::Program("unshare")]];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, ways, case): &(&'static str, Ways, Case)| {
        // on a machine that somebody uses nothing is cleared
        let alone: &[Need] = if name.contains("cgclear") { &[Need::OwnMachine] } else { &[] };
        let lacks = world.lacks_ways(ways).or_else(|| world.lacks(alone));
        let world = world.clone();
        suite::trial(format!("libcgroup: {name}"), lacks, move || case(&mut Scene::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// Succeeds, and prints nothing.
pub(super) fn quiet(scene: &Scene, line: &str) {
    let output = scene.ringfence(line, None);
    assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""), "{}", scene.fill(line));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{line}");
}

/// Fails with that status; what it says.
pub(super) fn refused(scene: &Scene, line: &str, status: i32) -> String {
    let output = scene.ringfence(line, None);
    let error = stderr_of(&output);
    assert_eq!(output.status.code(), Some(status), "{}: {error}", scene.fill(line));
    assert!(!error.is_empty(), "{line} fails without a word");
    error
}

pub(super) fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) fn value(scene: &Scene, group: &str, setting: &str) -> String {
    scene.ok(&format!("get {group} {setting} --values")).trim_end().to_owned()
}

fn is_there(scene: &Scene, group: &str) -> bool {
    scene.ringfence(&format!("list {group}"), None).status.success()
}

/// A process of the scene is in that group of the controller.
pub(super) fn is_in(pid: u32, controller: &str, group: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    text.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next().unwrap();
        let here = controllers.is_empty() || controllers.split(',').any(|one| one == controller);
        here && fields.next().unwrap().ends_with(group)
    })
}

/// A directory for files of the scene, gone when it ends.
struct Directory(PathBuf);

impl Directory {
    fn new(scene: &mut Scene) -> Directory {
        let path = std::env::temp_dir().join(&scene.group);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        scene.name("{d}", path.to_str().unwrap());
        Directory(path)
    }

    fn write(&self, scene: &Scene, file: &str, text: &str) {
        fs::write(self.0.join(file), scene.fill(text)).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn half_way(scene: &mut Scene) {
    let directory = Directory::new(scene);
    quiet(scene, "cgcreate -g cpu:{g}/live");
    quiet(scene, "cgset -r cpu.shares=700 {g}/live");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    quiet(scene, "cgclassify -g cpu:{g}/live {pid}");
    // no such device: only the kernel can tell, after everything before it is done
    let text = "group {g}/live { cpu { cpu.shares = 300; } }\n\
                group {g}/new { cpu { cpu.shares = 400; } blkio { blkio.throttle.read_iops_device = \"250:250 10\"; } }\n";
    directory.write(scene, "cgconfig.conf", text);
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let held = value(scene, "{g}/live", "cpu.shares");
    refused(scene, "cgconfigparser -l {d}/cgconfig.conf --state {d}/state", 96);
    assert_eq!(value(scene, "{g}/live", "cpu.shares"), held);
    assert!(is_in(pid, "cpu", &scene.fill("{g}/live")), "its task fell out");
    assert!(!is_there(scene, "{g}/new"));
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), before);

    directory.write(scene, "wrong.conf", "group {g}/new {\n  cpu { cpu.shares = 300; }\n");
    let error = refused(scene, "cgconfigparser -l {d}/wrong.conf --state {d}/state", 104);
    assert!(error.contains("wrong.conf:"), "{error}");
    refused(scene, "cgconfigparser -l {d}/missing.conf --state {d}/state", 96);
    assert!(!is_there(scene, "{g}/new"));
}

fn all_hierarchies(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu,memory:{g}");
    quiet(scene, "cgdelete -g cpu,memory:{g}");
    assert!(!is_there(scene, "{g}"));
    // children first, in whichever order they are named
    quiet(scene, "cgcreate -g cpu:{g}/a/b");
    quiet(scene, "cgdelete cpu:{g}/a cpu:{g}/a/b");
    assert!(!is_there(scene, "{g}/a"));
    quiet(scene, "cgcreate -g cpu,memory:{g}/a");
    let error = refused(scene, "cgdelete -g cpu,memory:{g}", 96);
    assert!(error.contains("below it"), "{error}");
    quiet(scene, "cgdelete -r -g cpu,memory:{g}");
    assert!(!is_there(scene, "{g}"));
}

fn all_or_nothing(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu,blkio:{g}");
    quiet(scene, "cgset -r cpu.shares=700 {g}");
    let held = value(scene, "{g}", "cpu.shares");
    refused(scene, "cgset -r cpu.shares=300 -r nosuch.x=1 {g}", 84);
    refused(scene, "cgset -r cpu.shares=300 -r cpu.nosuch=1 {g}", 95);
    refused(scene, "cgset -r cpu.shares=300 -r cpu.shares=abc {g}", 96);
    refused(scene, "cgset -r cpu.shares=300 {g} {g}-missing", 95);
    refused(scene, "cgset -r cpu.shares {g}", 129);
    let error =
        refused(scene, "cgset -r cpu.shares=300 -r 'blkio.throttle.read_iops_device=250:250 10' {g}", 96);
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(value(scene, "{g}", "cpu.shares"), held);
}

fn names_of_two_hierarchies(scene: &mut Scene) {
    let missing = refused(scene, "cgexec -g cpuset:{g} true", 82);
    assert!(missing.contains("does not exist"), "{missing}");
    quiet(scene, "cgcreate -g cpuset:{g}");
    let empty = refused(scene, "cgexec -g cpuset:{g} true", 96);
    assert!(empty.contains("cpuset.mems"), "{empty}");
}

fn both_versions(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu,pids:{g}");
    quiet(scene, "cgxset -2 -r pids.max=50 {g}");
    assert_eq!(value(scene, "{g}", "pids.max"), "50");
    quiet(scene, "cgxset -1 -r pids.max=60 {g}");
    assert_eq!(value(scene, "{g}", "pids.max"), "60");
    quiet(scene, "cgxset -1 -r cpu.shares=2 {g}");
    let held = scene.ok("get {g} cpu.shares cpu.weight --json");
    let held: serde_json::Value = serde_json::from_str(&held).unwrap();
    let held = &held["settings"][if held["settings"][0]["version"] == "v2" { 1 } else { 0 }]["text"];
    // on v2 the least weight is 1, on v1 the least share 2
    assert!(held.as_str().unwrap().parse::<u32>().unwrap() >= 1, "{held}");
    quiet(scene, "cgxset -2 -r cpu.weight=50 {g}");
    assert_eq!(value(scene, "{g}", "cpu.weight"), "50");
    refused(scene, "cgxset -2 -r cpu.shares=512 {g}", 95);
    refused(scene, "cgxset -1 -r cpu.weight=50 {g}", 95);
}

fn words_of_old(scene: &mut Scene) {
    for line in ["cgset -Z x", "cgset", "cgget -r", "cgdelete -x", "lscgroup -x"] {
        let output = scene.ringfence(line, None);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let name = line.split(' ').next().unwrap();
        assert!(error.starts_with(&format!("Wrong input parameters, try {name} -h")), "{line}: {error}");
        assert!(error.lines().count() > 1, "what is wrong is said as well: {error}");
    }
    for (name, usage) in [
        ("cgset", "Usage: cgset [-r <name=value>] <cgroup_path> ...\n   or: cgset --copy-from"),
        ("cgdelete", "Usage: cgdelete [-h] [-r] [[-g] <controllers>:<path>] ...\n"),
        ("cgexec", "Usage: cgexec [-h] [-g <controllers>:<path>] [--sticky] command [arguments] ...\n"),
        ("lscgroup", "Usage: lscgroup [-h] [[-g] <controllers>:<path>] [...]\n"),
    ] {
        let help = scene.ok(&format!("{name} -h"));
        assert!(help.starts_with(usage), "{help}");
    }
    let output = scene.ringfence("cgdelete -g *:{g}-absent -g pids:{g}-absent", None);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let group = scene.fill("{g}-absent");
    assert!(
        error.contains(&format!("cgdelete: cannot remove group '{group}': No such file or directory")),
        "{error}"
    );
}

/// Attack finding 21.
fn endless_lists(scene: &mut Scene) {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for path in [fifo.display().to_string(), "/dev/zero".to_owned()] {
        let output = scene.ringfence(&format!("cgsnapshot -s -b {path} pids"), None);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("no regular file"), "{error}");
    }
}

fn long_value(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpuset:{g}");
    let list = format!("{}1", "0,".repeat(100));
    quiet(scene, &format!("cgset -r cpuset.cpus={list} {{g}}"));
    assert_eq!(value(scene, "{g}", "cpuset.cpus"), "0-1");
}

fn given(scene: &mut Scene) {
    const NOBODY: u32 = 65534;
    quiet(scene, "cgcreate -a 65534:65534 -t 65534:65534 -g pids:{g}");
    let output = scene.ringfence("cgset -r pids.max=7 {g}", Some(NOBODY));
    assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""));
    assert_eq!(value(scene, "{g}", "pids.max"), "7");
    let output = scene.ringfence("cgcreate -g pids:{g}/below", Some(NOBODY));
    assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""));
    let output = scene.ringfence("cgdelete -g pids:{g}/below", Some(NOBODY));
    assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""));
}

fn tasks_move_up(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu:{g}/a/b");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    quiet(scene, "cgclassify -g cpu:{g}/a/b {pid}");
    quiet(scene, "cgdelete -r -g cpu:{g}/a");
    assert!(is_in(pid, "cpu", &scene.group), "it is not in the nearest group that stays");
}

fn created(scene: &mut Scene) {
    refused(scene, "cgcreate -g cpu:{g}/a -g nosuch:{g}/b", 84);
    refused(scene, "cgcreate -t rf-test-nobody:root -g cpu:{g}/a", 129);
    refused(scene, "cgcreate -g cpu", 129);
    refused(scene, "cgcreate -g cpu:{g}/../x", 91);
    refused(scene, "cgcreate --nosuch -g cpu:{g}", 129);
    assert!(!is_there(scene, "{g}"));
    quiet(scene, "cgcreate -g cpu:/{g}/a -d 750 --fperm=0777 -s 664");
    let created = scene.ok("create {g}/a --json -c cpu");
    let directory = serde_json::from_str::<serde_json::Value>(&created).unwrap()["directories"][0].clone();
    let directory = Path::new(directory.as_str().unwrap());
    let mode = |file: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(directory.join(file)).unwrap().mode() & 0o7777
    };
    assert_eq!((mode("."), mode("cgroup.procs"), mode("cpu.stat")), (0o750, 0o664, 0o444));
    let files = Directory::new(scene);
    let text =
        "group {g}/a { perm { admin { uid = root; gid = root; dperm = 711; fperm = 660; } } cpu { } }\n";
    files.write(scene, "cgconfig.conf", text);
    for steps in ["1 steps", "0 steps"] {
        let output = scene.ringfence("cgconfigparser -v -l {d}/cgconfig.conf --state {d}/state", None);
        assert!(output.status.success() && stderr_of(&output).contains(steps), "{}", stderr_of(&output));
    }
    assert_eq!((mode("."), mode("cgroup.procs"), mode("cpu.stat")), (0o711, 0o664, 0o440));
}

fn becomes(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu:{g}");
    let status = scene.ringfence("cgexec -g cpu:{g} sh -c 'exit 7'", None).status;
    assert_eq!(status.code(), Some(7));
    let groups = scene.ok("cgexec --sticky -g cpu:{g} cat -- /proc/self/cgroup");
    assert!(groups.contains(&scene.group), "{groups}");
    assert_eq!(scene.ok("cgexec -g cpu:{g} echo -g x --sticky"), "-g x --sticky\n");
    refused(scene, "cgexec -g cpu:{g} /nosuchprogram", 255);
    refused(scene, "cgexec -g cpu:{g}", 129);
    refused(scene, "cgexec -g nosuch:{g} true", 84);
    refused(scene, "cgexec -g cpu:{g}/missing true", 82);
}

fn goes_on(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu:{g}");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    refused(scene, "cgclassify -g cpu:{g} 4194303 {pid}", 1);
    assert!(is_in(pid, "cpu", &scene.group));
    refused(scene, "cgclassify -g cpu:{g}/missing {pid}", 1);
    refused(scene, "cgclassify -g cpu:{g} abc", 129);
    refused(scene, "cgclassify", 129);
}

fn copies(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu:{g}/a/b -g cpu:{g}/c");
    quiet(scene, "cgset -r cpu.shares=2048 -R {g}/a/");
    let held = value(scene, "{g}/a", "cpu.shares");
    assert_eq!(value(scene, "{g}/a/b", "cpu.shares"), held);
    assert_ne!(value(scene, "{g}/c", "cpu.shares"), held);
    quiet(scene, "cgset --copy-from {g}/a/ {g}/c");
    assert_eq!(value(scene, "{g}/c", "cpu.shares"), held);
    assert_eq!(value(scene, "{g}/c", "cpu.weight"), value(scene, "{g}/a", "cpu.weight"));
    refused(scene, "cgset --copy-from {g}/missing {g}/c", 82);
    refused(scene, "cgset --copy-from {g}/a -r cpu.shares=1 {g}/c", 129);
    // reported with -v, on the version that has another name for it
    let output = scene.ringfence("cgset -v -r cpu.weight=50 {g}/c", None);
    assert!(output.status.success());
    let other = scene.ringfence("cgset -v -r cpu.shares=512 {g}/c", None);
    assert!(
        format!("{}{}", stderr_of(&output), stderr_of(&other)).contains("<-"),
        "no conversion is reported"
    );
}

fn made_and_cleared(scene: &mut Scene) {
    let directory = Directory::new(scene);
    directory.write(scene, "10.conf", "group {g}/a { cpu { cpu.shares = \"2048\"; } } # the first\n");
    directory.write(scene, "20.conf", "group {g}/b { perm { task { uid = root; gid = root; } } cpu { } }\n");
    quiet(scene, "cgconfigparser -L {d} --state {d}/state -s 660");
    assert!(is_there(scene, "{g}/b"));
    quiet(scene, "cgconfigparser -L {d} --state {d}/state");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    quiet(scene, "cgclassify -g cpu:{g}/a {pid}");
    quiet(scene, "cgclear -e -L {d}");
    assert!(is_there(scene, "{g}/a") && !is_there(scene, "{g}/b"), "an empty one goes, another stays");
    scene.ok("move / {pid}");
    assert!(!is_in(pid, "cpu", "/a"));
    quiet(scene, "cgclear -l {d}/20.conf -l {d}/10.conf");
    assert!(!is_there(scene, "{g}/a"));
    refused(scene, "cgclear -l {d}/missing.conf", 3);
    refused(scene, "cgconfigparser", 129);
}

fn leaves_others(scene: &mut Scene) {
    let directory = Directory::new(scene);
    // without -l the reference takes -e for nothing, and clears the whole machine
    refused(scene, "cgclear -e", 129);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    quiet(scene, "cgcreate -g cpu:{g}/others");
    directory.write(scene, "cgconfig.conf", "group {g}/ours { cpu { cpu.shares = 512; } }\n");
    quiet(scene, "cgconfigparser -l {d}/cgconfig.conf --state {d}/state");
    let said = scene.ok("cgclear --state {d}/state");
    assert!(said.contains("others' groups"), "{said}");
    assert!(is_there(scene, "{g}/others") && !is_there(scene, "{g}/ours"));
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
}

fn rules(scene: &mut Scene) {
    let directory = Directory::new(scene);
    quiet(scene, "cgcreate -g cpu:{g}/ruled");
    fs::create_dir(directory.0.join("etc")).unwrap();
    directory.write(scene, "etc/cgrules.conf", "*:cat cpu {g}/ruled\n*:sleep cpu {g}/ruled\n");
    for file in ["passwd", "group", "nsswitch.conf"] {
        let _ = fs::copy(Path::new("/etc").join(file), directory.0.join("etc").join(file));
    }
    let pid = scene.start("{pid}", &["sleep", "60"]);
    let script = scene.fill(&format!(
        "mount --bind {{d}}/etc /etc && {0} cgexec cat /proc/self/cgroup && {0} cgexec head /proc/self/cgroup && {0} cgclassify {{pid}}",
        scene.program()
    ));
    let output = std::process::Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", stderr_of(&output));
    let groups = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(groups.matches(&scene.fill("/{g}/ruled")).count(), 1, "cat is ruled, head is not: {groups}");
    assert!(is_in(pid, "cpu", &scene.fill("{g}/ruled")));
}

fn links(scene: &mut Scene) {
    let directory = Directory::new(scene);
    scene.ok("links {d}/bin");
    scene.ok("links {d}/bin");
    for name in ["cgset", "cgexec", "cgget", "lscgroup", "cgconfigparser"] {
        let output =
            std::process::Command::new(directory.0.join("bin").join(name)).arg("--help").output().unwrap();
        assert!(output.status.success() && stderr_of(&output).is_empty());
        assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("Usage: {name}")));
    }
    fs::create_dir(directory.0.join("taken")).unwrap();
    directory.write(scene, "taken/cgset", "another's");
    assert_eq!(scene.ringfence("links {d}/taken", None).status.code(), Some(1));
    assert_eq!(fs::read_dir(directory.0.join("taken")).unwrap().count(), 1);
    scene.ok("man {d}/man");
    assert!(fs::read_to_string(directory.0.join("man/man1/cgset.1")).unwrap().contains("cgset"));
}

fn snapshot(scene: &mut Scene) {
    let directory = Directory::new(scene);
    quiet(scene, "cgcreate -g cpu:{g}/a");
    quiet(scene, "cgset -r cpu.shares=1500 -r cpu.cfs_quota_us=30000 {g}/a");
    let taken = || scene.ok("get {g}/a cpu.weight cpu.max");
    let before = taken();
    let text = scene.ok("cgsnapshot -s cpu");
    let is_own = |part: &&str| part.contains(&scene.group);
    let own: String = text.split_inclusive("}\n\n").filter(is_own).collect();
    directory.write(scene, "snapshot.conf", &own);
    quiet(scene, "cgdelete -r cpu:{g}");
    quiet(scene, "cgconfigparser -l {d}/snapshot.conf --state {d}/state");
    assert_eq!(taken(), before, "{own}");
}

fn not_mounted(scene: &mut Scene) {
    for line in [
        "cgcreate -g cpu:{g}",
        "cgdelete cpu:{g}",
        "cgset -r cpu.shares=1 {g}",
        "cgget -r cpu.shares {g}",
        "cgexec -g cpu:{g} true",
        "cgclassify -g cpu:{g} 1",
        "cgsnapshot -s",
        "lscgroup",
    ] {
        let error = refused(scene, line, 81);
        assert!(error.contains("no cgroup hierarchy is mounted"), "{line}: {error}");
    }
    refused(scene, "lssubsys", 82);
    let listed = scene.ok("lssubsys -a");
    assert!(
        listed.lines().any(|line| line == "memory") && listed.lines().any(|line| line == "blkio"),
        "{listed}"
    );
}

fn study_1(scene: &mut Scene) {
    let directory = Directory::new(scene);
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let nodes = fs::read_to_string("/sys/devices/system/node/online").unwrap_or_else(|_| "0".to_owned());
    scene.name("{cpus}", cpus.trim());
    scene.name("{nodes}", nodes.trim());
    let group = "group {g}/testN { perm { task { uid = root; gid = root; } admin { uid = root; gid = root; } } \
                 cpuset { cpuset.cpus={cpus}; cpuset.mems={nodes}; } }\n";
    directory.write(
        scene,
        "cgconfig.conf",
        &(1..=4).map(|n| group.replace('N', &n.to_string())).collect::<String>(),
    );
    quiet(scene, "cgconfigparser -l {d}/cgconfig.conf --state {d}/state");
    for n in 1..=4 {
        quiet(scene, &format!("cgcreate -t root:root -g cpuset,memory:{{g}}/test{n}"));
    }
    quiet(scene, "cgset -r cpuset.cpus='{cpus}' {g}/test1");
    quiet(scene, "cgset -r cpuset.mems='0' {g}/test1");
    quiet(scene, "cgset -r memory.limit_in_bytes=8589934592 {g}/test1");
    assert_eq!(value(scene, "{g}/test1", "memory.limit_in_bytes"), "8589934592");
    // on a smaller machine than the study's the kernel has no such CPUs, which is reported
    let line = "cgset -r cpuset.cpus='0,4,8,12,16,20,24,28' {g}/test1";
    let output = scene.ringfence(line, None);
    let large = cpus.trim().rsplit('-').next().unwrap().parse::<u32>().unwrap() >= 28;
    assert_eq!(output.status.code(), Some(if large { 0 } else { 96 }), "{}", stderr_of(&output));
    if !large {
        assert!(stderr_of(&output).contains("cpuset.cpus"), "{}", stderr_of(&output));
        assert_eq!(value(scene, "{g}/test1", "cpuset.cpus"), cpus.trim());
    }
}

fn study_2(scene: &mut Scene) {
    let directory = Directory::new(scene);
    let disk = |entry: fs::DirEntry| {
        let held = fs::read_to_string(entry.path().join("dev")).ok()?;
        entry.path().join("queue").exists().then(|| held.trim().to_owned())
    };
    let Some(device) = fs::read_dir("/sys/block").unwrap().filter_map(Result::ok).find_map(disk) else {
        return;
    };
    scene.name("{dev}", &device);
    quiet(scene, "cgcreate -g blkio:/{g}/iothrottle");
    quiet(scene, "cgset -r blkio.throttle.read_iops_device='{dev} 10' {g}/iothrottle");
    assert!(value(scene, "{g}/iothrottle", "blkio.throttle.read_iops_device").contains("10"));
    quiet(scene, "cgdelete blkio:/{g}/iothrottle");
    let text = "group {g}/iothrottle { blkio { blkio.throttle.read_iops_device=\"{dev} 10\"; } }\n";
    directory.write(scene, "cgconfig.conf", text);
    quiet(scene, "cgconfigparser -l {d}/cgconfig.conf --state {d}/state");
    assert!(value(scene, "{g}/iothrottle", "blkio.throttle.read_iops_device").contains("10"));
}

fn study_4(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpuset,memory,freezer:{g}");
    quiet(scene, "cgset -r cpuset.cpus=0 -r cpuset.mems=0 {g}");
    quiet(scene, "cgset -r memory.limit_in_bytes=104857600 -r memory.oom_control=1 {g}");
    assert_eq!(value(scene, "{g}", "memory.limit_in_bytes"), "104857600");
    quiet(scene, "cgset -r freezer.state=FROZEN {g}");
    quiet(scene, "cgset -r freezer.state=THAWED {g}");
}

fn study_5(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpuset:{g}");
    quiet(scene, "cgset -r cpuset.cpus=0 {g}");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    let error = refused(scene, "cgclassify -g cpuset:{g} {pid}", 1);
    assert!(error.contains("cpuset.mems") && error.contains("hint:"), "{error}");
    quiet(scene, "cgset -r cpuset.mems=0 {g}");
    quiet(scene, "cgclassify -g cpuset:{g} {pid}");
    assert!(is_in(pid, "cpuset", &scene.group));
}
