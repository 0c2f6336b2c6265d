//! Bad input: one clear error that names what is wrong and what would be right, the documented status, and nothing
//! changed.

use std::sync::Arc;

use fake::suite;
use libtest_mimic::Trial;

use crate::world::{Need, Scene, World};

/// Command line, exit status, parts of standard error.
const BAD: &[(&str, i32, &[&str])] = &[
    ("set {g} memory.maxx=1G", 2, &["unknown setting 'memory.maxx'", "hint: did you mean memory.max"]),
    ("set {g} nosuch.x=1", 2, &["unknown setting 'nosuch.x'", "hint:"]),
    ("get {g} cpu.wieght", 2, &["unknown setting 'cpu.wieght'", "cpu.weight"]),
    ("set {g} memory.max", 2, &["'memory.max' is not SETTING=VALUE", "hint: for example memory.max="]),
    ("set {g} memory.max=8Q", 2, &["memory.max", "8Q", "hint:"]),
    ("set {g} memory.max=-5", 2, &["memory.max", "-5", "hint:"]),
    ("set {g} cpu.max=banana", 2, &["cpu.max", "banana", "hint:"]),
    ("set {g} cpu.max=10us", 2, &["cpu.max", "hint:"]),
    ("set {g} cpu.weight=0", 2, &["cpu.weight", "hint:"]),
    ("set {g} cpu.weight=99999", 2, &["cpu.weight", "10000", "hint:"]),
    ("set {g} pids.max=-7", 2, &["pids.max", "hint:"]),
    ("set {g} pids.max=1.5", 2, &["pids.max", "hint:"]),
    ("set {g} pids.max=99999999999999999999999", 2, &["pids.max", "hint:"]),
    ("set {g} cpuset.cpus=3-1", 2, &["the end of the range is below its start", "position 1"]),
    ("set {g} cpuset.cpus=0,x,2", 2, &["expected a number", "position 3"]),
    ("set {g} 'io.max=/no/such/device riops=10'", 2, &["/no/such/device"]),
    ("set {g} 'io.max=8:16 speed=10'", 2, &["speed", "hint:"]),
    ("set {g} memory.current=1", 2, &["memory.current can't be set"]),
    (
        "set {g} pids.max=5 pids.max=6",
        1,
        &["both set pids.max", "'5' and '6'", "hint: ask for one of the two"],
    ),
    ("create ../../etc", 2, &["is not a group name", "'.' and '..' are not allowed"]),
    ("create a//b", 2, &["doubled slash", "hint: use 'a/b'"]),
    ("create cgroup.procs", 2, &["is the name of a kernel file"]),
    ("create {g}/memory.max", 2, &["is the name of a kernel file", "hint: use '{g}/memory_max'"]),
    ("create {g} --controllers cpuu", 2, &["unknown controller 'cpuu'", "did you mean cpu"]),
    ("create {g} --tasks nosuchuser:", 2, &["there is no user 'nosuchuser'", "hint: getent passwd"]),
    ("create {g} --directory-mode 99", 2, &["octal"]),
    ("create /", 2, &["the root group is always there"]),
    ("delete /", 1, &["the root group cannot be deleted"]),
    ("move {g} abc", 2, &["abc"]),
    ("move {g}", 2, &["PID"]),
    ("run {g}", 2, &["COMMAND"]),
    ("freez {g}", 2, &["freeze"]),
    ("settings memory.mx", 2, &["unknown setting 'memory.mx'", "memory.max"]),
    ("topology --machine /no/such/file", 1, &["cannot read /no/such/file"]),
    ("topology --machine /proc/self/status", 1, &["/proc/self/status"]),
    ("topology --format pdf", 2, &["pdf", "svg"]),
    ("mount nosuch", 2, &["'nosuch' is not a v1 controller"]),
    (
        "watch {g} --fields memory.curent",
        2,
        &["unknown field 'memory.curent'", "hint: did you mean memory.current"],
    ),
    (
        "watch {g} --fields io.rbytes/rf-none",
        2,
        &["there is no block device 'rf-none'", "hint: lsblk lists them"],
    ),
    ("watch {g} --fields zzz", 2, &["unknown field 'zzz'", "hint: ringfence fields lists them"]),
    ("watch {g} --sort cpu.usagee", 2, &["unknown field 'cpu.usagee'", "did you mean cpu.usage"]),
    ("watch {g} --sort memory.*", 2, &["'memory.*' is ", " fields", "hint: name one of them"]),
    ("watch {g} --sort machine.load", 2, &["groups can't be sorted by 'machine.load'", "such as cpu.usage"]),
    ("watch {g} --interval 1ms", 2, &["1ms", "expected 10ms to 1d"]),
    ("watch {g} --csv --json --once", 2, &["use --csv or --json, not both"]),
    ("watch {g} --count 0", 2, &["0"]),
    ("watch {g}-none --once", 1, &["group '{g}-none' does not exist"]),
    ("watch --tasks", 2, &["GROUP"]),
    ("watch --tasks {g}-none --once", 1, &["group '{g}-none' does not exist"]),
    ("watch --at yesterday", 2, &["yesterday", "expected RFC 3339", "'10 min ago'"]),
    (
        "watch --at now --directory /no/such",
        1,
        &["cannot list /no/such", "hint: ringfence record begins a log"],
    ),
    ("record --size 1K", 2, &["expected at least 1M"]),
    (
        "record --directory /no/such/log",
        1,
        &["cannot make /no/such/log", "hint: make the directory above it first"],
    ),
    ("record {g}-none --directory /no/such/log", 1, &["group '{g}-none' does not exist"]),
    ("dump --directory /no/such", 1, &["cannot list /no/such", "hint: ringfence record begins a log"]),
    ("dump --since 'an hour ago'", 2, &["an hour ago", "expected RFC 3339"]),
    (
        "dump --since '1min ago' --until '2min ago' --directory /",
        2,
        &["is before", "hint: --since names the earlier moment"],
    ),
    (
        "dump --directory / --fields cpu.allotment --raw",
        2,
        &["cpu.allotment is worked out of several fields"],
    ),
    // newcomers' findings A14 and A12
    ("--json metrics", 2, &["a format of its own, and no JSON form", "hint: ringfence watch --once --json"]),
    ("watch {g} --fields cpu", 2, &["did you mean cpu.user or cpu.usage", "cpu.* is all of them"]),
    ("metrics --textfile /no/such/file", 1, &["cannot write /no/such/file"]),
    ("fields memory.curent", 2, &["unknown field 'memory.curent'", "did you mean memory.current"]),
    ("where 4194000", 1, &["there is no process 4194000"]),
];

/// What works without any right or hierarchy.
const ALWAYS: &[(&str, &str)] = &[
    ("--help", "Exit status: 0 done"),
    ("set --help", "Examples:"),
    ("create --help", "Examples:\n  ringfence create"),
    ("run --help", "Example: ringfence run"),
    ("--version", "ringfence "),
    ("settings", "memory.max"),
    ("settings memory.limit_in_bytes", "memory.limit_in_bytes"),
    ("settings --json cpu.max", "\"cpu.cfs_quota_us\""),
    ("completions bash", "_ringfence"),
    ("completions zsh", "#compdef ringfence"),
    ("topology", "CPU"),
    ("watch --help", "Examples:"),
    ("record --help", "Examples:"),
    ("dump --help", "Examples:"),
    ("metrics --help", "Examples:"),
    ("fields", "memory.current"),
    ("fields cpuacct.usage", "v2: cpu.stat"),
    ("fields --json io.rbytes", "\"bytes_per_second\""),
    ("topology --json", "\"cpus\""),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let mut trials: Vec<Trial> = ALWAYS
        .iter()
        .map(|&(line, part)| {
            let world = world.clone();
            suite::fallible(format!("works without any right: {line}"), None, move || {
                let scene = Scene::new(&world, "always");
                let output = scene.ringfence(line, Some(65534));
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                assert!(text.contains(part), "'{part}' is not in:\n{text}");
                Ok(())
            })
        })
        .collect();
    trials.extend(BAD.iter().map(|row| {
        let (lacks, world) = (world.lacks(&[Need::Groups]), world.clone());
        suite::fallible(format!("bad input: {}", row.0), lacks, move || bad(&world, row))
    }));
    trials
}

fn bad(world: &Arc<World>, (line, code, says): &(&str, i32, &[&str])) -> Result<(), libtest_mimic::Failed> {
    let scene = Scene::new(world, "input");
    scene.ok("create {g}");
    let before = scene.ok("get {g}");
    let listed = groups(&scene);
    let output = scene.ringfence(line, None);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(*code) {
        return Err(format!("exit status {:?} instead of {code}: {error}", output.status.code()).into());
    }
    for part in *says {
        let part = scene.fill(part);
        if !error.contains(&part) {
            return Err(format!("'{part}' is not in:\n{error}").into());
        }
    }
    assert!(!error.contains("panicked"), "{error}");
    assert_eq!(scene.ok("get {g}"), before, "something was changed");
    assert_eq!(groups(&scene), listed, "a group was made or deleted");
    Ok(())
}

/// The groups at the top, without those of other tests that may run beside this one.
fn groups(scene: &Scene) -> Vec<String> {
    let other =
        |name: &&str| name.contains('/') || (name.starts_with("rf-") && !name.starts_with(&scene.group));
    scene.ok("list").lines().filter(|name| !other(name)).map(str::to_owned).collect()
}
