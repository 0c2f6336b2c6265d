//! On v1 a group is a directory in each of several hierarchies: what groups above it limit, and what a group limits from
//! which a process was moved, must hold or be named.

use std::{fs, process::Command};

use crate::{
    desk::says,
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("what a group limits holds for the processes of groups in it", limits_of_parent),
    row("a group three levels below a limit is under it", limits_of_grandparent),
    row("a layout exported as libcgroup's makes the same groups", exported).needs(&[Need::V1("memory")]),
    row("libcgroup's group that escapes a limit above it is reported", escapes).needs(&[Need::V1("memory")]),
    row("watch shows no limit of a hierarchy where the tasks are not", watched)
        .needs(&[Need::V1("memory"), Need::V1("cpu")]),
    row("a process that is moved and stays under the old limit is named", moved)
        .needs(&[Need::V1("memory"), Need::V1("cpuset")]),
    row("a program that is started and stays under the old limit is named", started)
        .needs(&[Need::V1("memory"), Need::V1("cpuset")]),
    row("the processes of a group are one set in all hierarchies of v1", one_set).needs(&[
        Need::V1("memory"),
        Need::V1("cpu"),
        Need::V1("cpuset"),
    ]),
    row("what was in a group before goes back to the groups that it was in", back_again).needs(&[
        Need::V1("memory"),
        Need::V1("pids"),
        Need::V1("freezer"),
    ]),
    row("a group that is made in one more hierarchy has all of its processes there", brought_along)
        .needs(&[Need::V1("memory"), Need::V1("cpu")]),
    row("a process of the root is no process of the layout's root group", of_root).needs(&[Need::V1("cpu")]),
    row("a freeze that takes a process into another hierarchy says so", frozen)
        .needs(&[Need::V1("freezer"), Need::V1("cpu")]),
    row("after a move nothing advises to take it back", not_back)
        .needs(&[Need::V1("memory"), Need::V1("cpuset")]),
];

const PARENT: &str = "[groups.\"{g}\"]\ncpu.max = \"50%\"\nmemory.max = \"64M\"\npids.max = 50\n";

fn limits_of_parent(stage: &mut Stage<'_>) {
    stage.apply(&format!("{PARENT}[groups.\"{{g}}/in\"]\ncpus = \"0\"\n"));
    let pid = stage.sleeper("{one}", "{g}/in");
    for controller in ["cpu", "memory", "pids", "cpuset"] {
        let group = stage.group_of(pid, controller);
        assert!(group.contains(&stage.fill("{g}")), "{controller} of {pid} is {group}");
    }
    assert_eq!(stage.cpus(pid), "0");
    assert!(stage.planned().is_empty());
    stage.truth();
    // the other way round: the group above has the CPUs
    stage.apply("[groups.\"{g}\"]\ncpus = \"0\"\n[groups.\"{g}/in\"]\npids.max = 50\n");
    assert_eq!(stage.cpus(pid), "0");
    let other = stage.sleeper("{two}", "{g}/in");
    assert_eq!(stage.cpus(other), "0");
    stage.truth();
}

fn limits_of_grandparent(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\nmemory.max = \"64M\"\n[groups.\"{g}/a/b/c\"]\npids.max = 5\n");
    let pid = stage.sleeper("{one}", "{g}/a/b/c");
    assert!(stage.group_of(pid, "memory").contains(&stage.fill("{g}")), "{}", stage.group_of(pid, "memory"));
    stage.truth();
}

fn exported(stage: &mut Stage<'_>) {
    stage.layout("[groups.\"{g}\"]\nmemory.max = \"64M\"\ncpus = \"0\"\nmems = \"0\"\n[groups.\"{g}/in\"]\npids.max = 50\n");
    let text = stage.desk.ends("export {d}/l.toml --to cgconfig", 0);
    stage.desk.write("cgconfig.conf", &text);
    stage.desk.ends("apply {d}/cgconfig.conf {s}", 0);
    for controller in ["memory", "cpuset", "pids"] {
        assert!(stage.directory("{g}/in", controller).is_dir(), "{controller}: {text}");
    }
    assert_eq!(stage.holds("{g}/in", "cpuset.cpus"), "0");
    // a group of libcgroup's file is only where it is named
    let plan = stage.desk.json("plan --json {d}/l.toml {s}", 0);
    let others = plan["steps"].as_array().unwrap().iter().any(|step| step["action"] != "create-group");
    assert!(!others, "{plan:#}");
}

fn escapes(stage: &mut Stage<'_>) {
    let text =
        "group {g} { memory { memory.limit_in_bytes = 64M; } }\ngroup {g}/in { pids { pids.max = 5; } }\n";
    stage.desk.write("cgconfig.conf", text);
    let (code, out, error) = stage.desk.run("plan {d}/cgconfig.conf {s}");
    assert_eq!(code, 0, "{out}{error}");
    says(&error, &["is not in memory, so its processes escape what group '", "add memory {} to group "]);
    stage.desk.ends("apply {d}/cgconfig.conf {s}", 0);
    assert!(!stage.directory("{g}/in", "memory").exists());
    let pid = stage.sleeper("{one}", "{g}/in");
    assert_eq!(stage.group_of(pid, "memory"), "/");
}

fn watched(stage: &mut Stage<'_>) {
    let text = "group {g} { memory { memory.limit_in_bytes = 64M; } cpu { cpu.cfs_quota_us = 50000; } }\n\
        group {g}/in { pids { pids.max = 5; } }\n";
    stage.desk.write("cgconfig.conf", text);
    stage.desk.ends("apply {d}/cgconfig.conf {s}", 0);
    stage.sleeper("{one}", "{g}/in");
    let out = stage.desk.ends("watch {g} --once --fields cpu.allotment,memory.limit", 0);
    let row =
        out.lines().find(|line| line.trim_start().starts_with("in ")).unwrap_or_else(|| panic!("{out}"));
    assert!(!row.contains("64") && !row.contains("0.5"), "{out}");
    let above = stage.fill("{g}");
    let row = out.lines().find(|line| line.contains(&above)).unwrap_or_else(|| panic!("{out}"));
    assert!(row.contains("64") && row.contains("0.5"), "{out}");
}

/// The second is not in cpuset.
const PAIR: &str = "[groups.\"{g}/a\"]\ncpus = \"0\"\n[groups.\"{g}/b\"]\nmemory.max = \"32M\"\n";

fn moved(stage: &mut Stage<'_>) {
    stage.apply(PAIR);
    let pid = stage.sleeper("{one}", "{g}/a");
    let (code, out, error) = stage.desk.run("move {g}/b {one}");
    assert_eq!(code, 0, "{out}{error}");
    assert!(stage.is_in(pid, "{g}/a", "cpuset") && stage.is_in(pid, "{g}/b", "memory"));
    says(&error, &[&pid.to_string(), "stays in group", "limits still apply", "--controllers cpuset"]);
    // faults F11: status said that all was as applied
    let status = stage.desk.ends("status {s}", 3);
    let (a, b) = (stage.fill("{g}/a"), stage.fill("{g}/b"));
    says(
        &status,
        &["with 1 process", &format!("is in group '{b}' of "), &format!("is in group '{a}' of cpu")],
    );
    // what the hint says frees it
    let hint = error.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    for command in hint.split(" && ") {
        stage.desk.ends(command.strip_prefix("ringfence ").unwrap(), 0);
    }
    assert!(stage.is_in(pid, "{g}/b", "cpuset"), "{}", stage.group_of(pid, "cpuset"));
    stage.desk.ends("status {s}", 0);
    let (_, _, error) = stage.desk.run("move {g}/b {one}");
    assert_eq!(error, "");
}

/// A database's group had memory and CPUs, and a catch-all rule put the database into a group with a quota as well.
fn one_set(stage: &mut Stage<'_>) {
    let layout = "[groups.\"{g}/one\"]\nmemory.max = \"64M\"\ncpus = \"0\"\n[groups.\"{g}/other\"]\ncpu.max = \"20%\"\n";
    stage.apply(layout);
    let all = stage.hierarchies_of("{g}/one");
    let budgets = stage.mount("cpu").join("cpu.rt_runtime_us").exists();
    for controller in ["cpuacct", "memory", "pids", "freezer", "blkio"] {
        let is_with_cpu = stage.mount(controller) == stage.mount("cpu");
        let is_there = stage.directory("{g}/one", controller).exists();
        assert_eq!(is_there, !is_with_cpu || !budgets, "{controller}: {all:?}");
    }
    // where the kernel has real-time budgets a group without one would refuse real-time tasks
    assert_eq!(stage.directory("{g}/one", "cpu").exists(), !budgets);
    for controller in ["cpuset", "devices"] {
        assert!(!stage.directory("{g}/other", controller).exists());
    }
    let pid = stage.sleeper("{one}", "{g}/one");
    assert!(all.iter().all(|controller| stage.is_in(pid, "{g}/one", controller)), "{all:?}");
    stage.desk.ends("status {s}", 0);
    assert!(
        stage.status_of("{g}/one").unwrap()["cpu_usec"].is_number(),
        "{:#}",
        stage.status_of("{g}/one").unwrap()
    );
    // a move takes it out of the first group wherever both are, and says where not
    stage.move_by_hand(pid, "{g}/other", "cpu");
    let status = stage.desk.ends("status {s}", 3);
    says(&status, &[&format!("1 of 1 process is in group '{}' of cpu", stage.fill("{g}/other"))]);
    let drift = &stage.drifts("{g}/one")[0];
    assert_eq!((&drift["drift"], &drift["group"]), (&"in-other".into(), &stage.fill("{g}/other").into()));
    stage.truth();
    let (_, _, error) = stage.desk.run("move {g}/one {one}");
    assert_eq!(error.is_empty(), !budgets, "{error}");
    for command in
        error.lines().filter_map(|line| line.strip_prefix("hint: ")).flat_map(|hint| hint.split(" && "))
    {
        stage.desk.ends(command.strip_prefix("ringfence ").unwrap(), 0);
    }
    assert!(stage.is_in(pid, "{g}/one", "cpu"));
    stage.desk.ends("status {s}", 0);
    // what another group has in the hierarchy that this one is not in
    stage.move_by_hand(pid, "{g}/other", "pids");
    says(&stage.desk.ends("plan {d}/l.toml {s}", 0), &["not all processes"]);
    stage.desk.ends("undo {s}", 3);
}

/// The group was there before in one hierarchy, and the layout made it in the others.
fn back_again(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c pids");
    let pid = stage.sleeper("{one}", "{g}");
    let everywhere = |stage: &Stage<'_>| ["pids", "memory", "freezer"].map(|at| stage.is_in(pid, "{g}", at));
    for text in ["[groups.\"{g}\"]\npids.max = 50\n", "[groups.\"{g}\"]\nmemory.max = \"64M\"\n"] {
        stage.apply(text);
        assert_eq!(everywhere(stage), [true; 3]);
    }
    stage.desk.ends("undo 0 {s}", 0);
    assert_eq!(everywhere(stage), [true, false, false]);
    assert_eq!(stage.hierarchies_of("{g}"), ["pids"]);
    // what is frozen stays so
    stage.desk.scene.ok("move / {one}");
    stage.apply("[groups.\"{g}\"]\npids.max = 50\n");
    let frozen = stage.sleeper("{three}", "{g}");
    stage.desk.ends("freeze {g}", 0);
    stage.desk.ends("undo {s}", 3);
    assert!(stage.is_in(frozen, "{g}", "freezer") && !stage.is_in(frozen, "{g}", "memory"));
    stage.desk.ends("thaw {g}", 0);
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.hierarchies_of("{g}"), ["pids"]);
    // of several generations none took the group for one that was there before
    stage.desk.scene.ok("create {g}-rt -c pids");
    stage.apply("[groups.\"{g}/new\"]\npids.max = 50\n");
    stage.apply("[groups.\"{g}/new\"]\npids.max = 50\ncpu.weight = 200\n");
    let other = stage.sleeper("{two}", "{g}/new");
    stage.desk.ends("undo 0 {s}", 3);
    let still = stage.hierarchies_of("{g}/new");
    assert!(still.len() > 3 && still.iter().all(|at| stage.is_in(other, "{g}/new", at)), "{still:?}");
}

fn started(stage: &mut Stage<'_>) {
    stage.apply(PAIR);
    let program = stage.desk.scene.program();
    let shell = format!("{program} run {} -- true", stage.fill("{g}/b"));
    let mut command = Command::new(&program);
    command.args(["run", &stage.fill("{g}/a"), "--", "sh", "-c", &shell]);
    command.env("RINGFENCE_STATE", stage.desk.path("state"));
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    says(&error, &["the program stays in group", "--controllers cpuset"]);
}

/// A database's day, fault F5: `create G --controllers cpu`, as the hint said, and `set G cpu.max=10%` held for none of six
/// processes; above eight the hint left out how they get there.
fn brought_along(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g}/in -c memory");
    let mut pids: Vec<u32> = (0..10).map(|_| stage.sleeper("{one}", "{g}")).collect();
    pids.push(stage.sleeper("{two}", "{g}/in"));
    let (code, _, error) = stage.desk.run("set {g} cpu.max=10%");
    assert_eq!(code, 1, "{error}");
    let hint = error.lines().find_map(|line| line.strip_prefix("hint: ringfence ")).unwrap();
    stage.desk.ends(hint, 0);
    stage.desk.ends("set {g} cpu.max=10%", 0);
    for pid in pids {
        assert!(stage.is_in(pid, "{g}", "cpu"), "{pid}: {}", stage.group_of(pid, "cpu"));
    }
    // one that is in another branch there stays, and is named
    stage.desk.scene.ok("create {g}-rt -c cpu,pids");
    let pid = stage.sleeper("{three}", "{g}-rt");
    stage.move_by_hand(pid, "{g}", "cpu");
    let (code, _, error) = stage.desk.run("create {g}-rt -c memory");
    assert_eq!(code, 0, "{error}");
    assert!(stage.is_in(pid, "{g}-rt", "memory"));
    stage.desk.scene.ok("create {g}/in/deep -c pids");
    stage.move_by_hand(pid, "{g}/in/deep", "pids");
    let (code, _, error) = stage.desk.run("create {g}/in/deep -c memory");
    assert_eq!(code, 0, "{error}");
    says(&error, &["1 process of '", "stays in group", &stage.fill("{g}-rt"), "limits still apply"]);
    let hint = error.lines().find_map(|line| line.strip_prefix("hint: ringfence ")).unwrap();
    stage.desk.ends(hint, 0);
    assert!(stage.is_in(pid, "{g}/in/deep", "memory"));
}

fn of_root(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c cpu");
    let pid = stage.sleeper("{one}", "{g}");
    let shares = fs::read_to_string(stage.mount("cpu").join("cpu.shares")).unwrap_or("1024".to_owned());
    let text = format!("group . {{ cpu {{ cpu.shares = {}; }} }}\n", shares.trim());
    stage.desk.write("cgconfig.conf", &text);
    let (_, out, error) = stage.desk.run("plan {d}/cgconfig.conf {s}");
    assert!(!error.contains(&pid.to_string()) && !error.contains("ringfence move"), "{out}{error}");
}

fn not_back(stage: &mut Stage<'_>) {
    let text =
        "[groups.\"{g}/a\"]\ncpus = \"0\"\nmemory.max = \"64M\"\n[groups.\"{g}/b\"]\nmemory.max = \"32M\"\n";
    stage.apply(text);
    let pid = stage.sleeper("{one}", "{g}/a");
    stage.desk.scene.ok("move {g}/b {one}");
    let (_, out, error) = stage.desk.run("plan {d}/l.toml {s}");
    let back = stage.fill(&format!("ringfence move {{g}}/a {pid}"));
    assert!(!error.contains(&back), "{out}{error}");
    says(&error, &[&stage.fill(&format!("ringfence move {{g}}/b {pid}")), "--controllers cpuset"]);
}

fn frozen(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c cpu,freezer");
    let pid = stage.sleeper("{one}", "");
    stage.move_by_hand(pid, "{g}", "cpu");
    let (code, out, error) = stage.desk.run("freeze {g}");
    assert_eq!(code, 0, "{out}{error}");
    assert!(stage.is_in(pid, "{g}", "freezer"));
    says(&error, &[&pid.to_string(), "were moved there, and stay after thaw"]);
    let (_, _, error) = stage.desk.run("freeze {g}");
    assert_eq!(error, "");
    stage.desk.ends("thaw {g}", 0);
}
