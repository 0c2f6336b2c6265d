//! What libcgroup's own functional tests and users' scripts showed: files that are no settings, names and values as libcgroup
//! takes them.

use crate::libcgroup::{is_in, quiet, refused, stderr_of, value};
use crate::world::Scene;

pub fn tasks_move_up_on_v2(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu:{g}/a");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    quiet(scene, "cgclassify -g cpu:{g}/a {pid}");
    // the group above gives its controllers to groups, and may hold no task
    let error = refused(scene, "cgdelete -g cpu:{g}/a", 96);
    assert!(error.contains("Device or resource busy"), "{error}");
    assert!(is_in(pid, "cpu", &format!("{}/a", scene.group)), "it was moved all the same");
    quiet(scene, "cgdelete -r -g cpu:{g}");
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(text.lines().any(|line| line == "0::/"), "{text}");
}

pub fn core_files(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu,pids:{g}/a/b");
    let has = |group: &str, controller: &str| {
        let text = scene.ok(&format!("cgget -n -v -r cgroup.controllers {group}"));
        text.split_whitespace().any(|one| one == controller)
    };
    quiet(scene, "cgset -R -r cgroup.subtree_control=-pids {g}");
    assert!(has("{g}", "pids") && !has("{g}/a", "pids") && has("{g}/a/b", "cpu"));
    quiet(scene, "cgxset -2 -R -r cgroup.subtree_control=+pids {g}/a/..");
    assert!(has("{g}/a/b", "pids"));
    assert_eq!(
        scene.ok("cgget -n -v -r cgroup.subtree_control {g}/a/b").trim(),
        "",
        "groups below have none"
    );
    // all or nothing
    refused(scene, "cgset -r cgroup.subtree_control=-pids -r cgroup.subtree_control=+nosuch {g}/a", 96);
    assert!(has("{g}/a/b", "pids"), "what was done before the refusal is taken back");
    let error = refused(scene, "cgset -r cgroup.subtree_control=+nosuch {g}", 96);
    assert!(error.contains("Invalid argument"), "{error}");
    let pid = scene.start("{pid}", &["sleep", "60"]);
    quiet(scene, "cgset -r cgroup.procs={pid} {g}/a/b");
    assert!(is_in(pid, "pids", &format!("{}/a/b", scene.group)));
    refused(scene, "cgset -r cgroup.procs=x {g}/a/b", 129);
    refused(scene, "cgxset -1 -r cgroup.subtree_control=+pids {g}", 95);
}

pub fn converted(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpu,memory:{g}");
    let limit = scene.ok("cgxget -1 -n -v -r memory.limit_in_bytes {g}");
    assert_eq!(limit.trim(), "9223372036854771712");
    assert_eq!(scene.ok("cgxget -2 -n -v -r memory.max {g}").trim(), "max");
    for large in ["9223372036854775807", "9223372036860000000", "-1"] {
        quiet(scene, &format!("cgxset -1 -r memory.limit_in_bytes={large} {{g}}"));
        assert_eq!(scene.ok("cgxget -2 -n -v -r memory.max {g}").trim(), "max", "{large}");
    }
    let is_v1 = scene.ok("cgget -n -v -r cpu.stat {g}").contains("throttled_time");
    let (other, own) = if is_v1 { ("-2", "-1") } else { ("-1", "-2") };
    refused(scene, &format!("cgxget {other} -r cpu.stat {{g}}"), 111);
    assert_eq!(scene.ok(&format!("cgxget {other} -n -i -r cpu.stat {{g}}")), "");
    assert!(scene.ok(&format!("cgxget {own} -n -r cpu.stat {{g}}")).starts_with("cpu.stat: "));
}

pub fn one_controller(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpuset:{g}");
    let output = scene.ringfence("cgsnapshot cpuset", None);
    assert!(stderr_of(&output).contains("cpuset.cpus is neither deny nor allow list"), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let group = format!("group {} {{", scene.group);
    let own = text.split("\n\n").find(|part| part.contains(&group)).unwrap();
    assert!(own.contains("\tcpuset {\n") && own.contains("\t\tcpuset.cpus=\""), "{own}");
    assert!(!own.contains("memory {") && !own.contains("cpu {"), "{own}");
    assert!(!text.contains("mount {\n}"), "{text}");
}

pub fn taken(scene: &mut Scene) {
    quiet(scene, "cgcreate -g cpuset:{g}");
    let output = scene.ringfence("cgset -r 'cpuset.cpus=0, 1' {g}", None);
    assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""));
    assert_eq!(value(scene, "{g}", "cpuset.cpus"), "0-1");
    quiet(scene, "cgset -r cpuset.cpus=0-N {g}");
    let error = refused(scene, "cgset -r cpuset.cpus=0-9999 {g}", 96);
    assert!(error.contains("Invalid argument") || error.contains("9999"), "{error}");
    for (line, words) in [
        ("cgset", "Usage is"),
        ("cgset -r cpuset.cpus=0", "cgset: no cgroup specified"),
        ("cgset {g}", "cgset: no name-value pair was set"),
        ("cgset -r cpuset.cpus= {g}", "wrong parameter of option -r"),
        ("cgset -r cpuset.cpus {g}", "wrong parameter of option -r"),
    ] {
        let error = refused(scene, line, 129);
        assert!(error.contains(words) && error.starts_with("Wrong input parameters,"), "{line}: {error}");
    }
    refused(scene, "cgset --copy-from {g} {g}-absent", 95);
    let error = refused(scene, "cgdelete -g *:{g}-absent", 96);
    assert!(error.contains("No such file or directory"), "{error}");
    let directory = scene.ok("create {g} --json -c cpuset");
    let directory = serde_json::from_str::<serde_json::Value>(&directory).unwrap()["directories"][0].clone();
    let error = refused(scene, &format!("cgset -r cpuset.cpus=0 {}", directory.as_str().unwrap()), 95);
    assert!(error.contains("is a directory and no group's name"), "{error}");
}
