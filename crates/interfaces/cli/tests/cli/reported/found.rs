//! A layout decides about what was there before it, or was so already: it is watched as what was written is.

use std::fs;

use serde_json::{Value, json};

use crate::{
    desk::says,
    reported::{Row, Stage, applied, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("a value that was so before the layout is watched", so_before),
    row("a value that was so before the layout stays once the layout drops it", dropped),
    row("what was there before the layout is as it was after an undo", undone),
    row("a layout that is applied again without its records is watched", records_lost),
    row("a newest record that is lost is missed", newest_lost),
    row("a generation's record is gone, of three in effect, and each is undone", middle_lost),
    row("a rule is checked without naming its layout", rule_in_effect),
    row("rules of a layout that changed since it was applied are not vouched for", rule_changed),
    row("CPUs that a group above lacks are not in effect", cpus_taken)
        .needs(&[Need::V2("cpuset"), Need::Cpus(2)]),
];

const LAYOUT: &str = "[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n";

/// A group of somebody else's making with a process in it.
fn by_somebody(stage: &mut Stage<'_>) -> u32 {
    stage.desk.scene.ok("create {g} -c pids,memory");
    stage.by_hand("{g}", "pids.max", "100");
    stage.by_hand("{g}", "memory.max", "67108864");
    stage.sleeper("{one}", "{g}")
}

fn away(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("kill {g}");
    let procs = stage.directory("{g}", "pids").join("cgroup.procs");
    stage.desk.scene.until("an empty group", || fs::read_to_string(&procs).unwrap().is_empty());
    stage.desk.scene.ok("delete {g}");
    // nobody waits for it yet
    stage.pids.clear();
}

fn is_watched(stage: &Stage<'_>) {
    stage.truth();
    let status = stage.status_of("{g}").unwrap();
    assert_eq!(status["settings"].as_array().unwrap().len(), 2, "{status:#}");
    stage.by_hand("{g}", "pids.max", "77");
    let drift = &stage.drifts("{g}")[0];
    assert_eq!((&drift["requested"], &drift["actual"]), (&json!("100"), &json!("77")));
    stage.truth();
    assert_eq!(stage.planned().len(), 1);
    stage.apply(LAYOUT);
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    stage.truth();
}

fn so_before(stage: &mut Stage<'_>) {
    by_somebody(stage);
    stage.apply(LAYOUT);
    is_watched(stage);
    // all of that is known: a layout that is applied again says nothing new
    let generations = stage.desk.generations();
    stage.apply(LAYOUT);
    assert_eq!(stage.desk.generations(), generations);
    away(stage);
    assert_eq!(stage.drifts("{g}")[0]["drift"], "gone");
    stage.truth();
}

fn dropped(stage: &mut Stage<'_>) {
    let pid = by_somebody(stage);
    stage.apply(LAYOUT);
    stage.layout("[groups.\"{g}\"]\npids.max = 100\n");
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 0, "{out}{error}");
    says(
        &error,
        &["of group '", "is no longer in the layout and stays 67108864: it was so before a layout set it"],
    );
    assert_eq!(stage.holds("{g}", "memory.max"), "67108864");
    stage.by_hand("{g}", "memory.max", "33554432");
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
    stage.layout("");
    let (code, out, error) = stage.desk.run("apply --yes {d}/l.toml {s}");
    assert_eq!(code, 0, "{out}{error}");
    says(&error, &["is no longer in the layout and stays as it is (pids.max = 100): it existed before"]);
    assert!(stage.status_of("{g}").is_none());
    assert!(stage.is_in(pid, "{g}", "pids"));
    stage.truth();
    away(stage);
}

fn undone(stage: &mut Stage<'_>) {
    let pid = by_somebody(stage);
    stage.apply(LAYOUT);
    stage.apply("[groups.\"{g}\"]\npids.max = 50\nmemory.max = \"64M\"\n");
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    stage.desk.ends("status {s}", 0);
    stage.truth();
    stage.desk.ends("undo 0 {s}", 0);
    assert_eq!(
        (stage.holds("{g}", "pids.max").as_str(), stage.holds("{g}", "memory.max").as_str()),
        ("100", "67108864")
    );
    assert!(stage.is_in(pid, "{g}", "pids") && stage.status_of("{g}").is_none());
    stage.truth();
    away(stage);
}

fn records_lost(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    stage.sleeper("{one}", "{g}");
    fs::remove_dir_all(stage.desk.path("state")).unwrap();
    stage.apply(LAYOUT);
    is_watched(stage);
    stage.desk.ends("undo 0 {s}", 0);
    assert_eq!(stage.holds("{g}", "memory.max"), "67108864");
    away(stage);
}

fn newest_lost(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 60\n");
    fs::remove_file(stage.desk.path("state/generations/0002.jsonl")).unwrap();
    let (code, out, error) = stage.desk.run("status {s}");
    assert_eq!(code, 3, "{out}{error}");
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}", "pids.max").as_str()), (3, "60"), "{out}{error}");
    says(&error, &["what generation 2 changed is not known"]);
    stage.apply("[groups.\"{g}\"]\npids.max = 50\n");
    assert!(stage.desk.path("state/generations/0004.jsonl").exists(), "no number is used twice");
}

/// One generation can be undone after the other all the same, and the history has the one that was lost.
fn middle_lost(stage: &mut Stage<'_>) {
    for limit in [100, 60, 40] {
        stage.apply(&format!("[groups.\"{{g}}\"]\npids.max = {limit}\n"));
    }
    fs::remove_file(stage.desk.path("state/generations/0002.jsonl")).unwrap();
    let history = stage.desk.ends("history {s}", 0);
    says(&history, &["*  2  lost", "generation 2 is in effect and has no record"]);
    let history = stage.desk.json("history 2 --json {s}", 0);
    assert_eq!((&history[0]["state"], &history[0]["in_effect"]), (&json!("lost"), &json!(true)));
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}", "pids.max").as_str()), (0, "60"), "{out}{error}");
    let (code, out, error) = stage.desk.run("undo 2 {s}");
    assert_eq!(code, 1, "{out}{error}");
    says(&error, &["generation 2 has no record"]);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}", "pids.max").as_str()), (3, "60"), "{out}{error}");
    says(&error, &["what generation 2 changed is not known"]);
    stage.desk.ends("undo {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
}

fn rule_in_effect(stage: &mut Stage<'_>) {
    let pid = applied::named_process(stage);
    applied::rule_layout(stage);
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let (code, status) = stage.status();
    let is_it = |one: &Value| one["pid"] == pid;
    assert!(status["misplaced"].as_array().unwrap().iter().any(is_it), "{status:#}");
    assert_eq!(code, 3);
    let (code, out, error) = stage.desk.run("status {s}");
    assert_eq!(code, 3, "{out}");
    says(&out, &["all as applied, but ", "outside the group that a rule names"]);
    says(&error, &[&pid.to_string(), "classify --rules"]);
    // whose rules, where none are read by themselves
    let mut command = std::process::Command::new(stage.desk.scene.program());
    command.args(["classify", "--dry-run", &pid.to_string()]);
    let output = command.env("RINGFENCE_STATE", stage.desk.path("state")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let classify = format!("classify --rules {} --dry-run {pid}", stage.desk.path("l.toml").display());
    assert!(error.ends_with(&format!("there are no rules\nhint: ringfence {classify}\n")), "{error}");
    says(&stage.desk.ends(&classify, 0), &["would be moved"]);
    stage.truth();
}

fn rule_changed(stage: &mut Stage<'_>) {
    applied::rule_layout(stage);
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    stage.desk.ends("status {s}", 0);
    let text = fs::read_to_string(stage.desk.path("l.toml")).unwrap();
    fs::write(stage.desk.path("l.toml"), text + "# later\n").unwrap();
    let (code, status) = stage.status();
    assert_eq!((code, &status["misplaced"]), (0, &Value::Null));
    let (_, _, error) = stage.desk.run("status {s}");
    let path = stage.desk.path("l.toml");
    let hint = format!("rules and unit patterns were not checked: ringfence plan {}\n", path.display());
    says(&error, &["changed since it was applied", &hint]);
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(stage.status().1["misplaced"], json!([]));
    stage.truth();
}

fn cpus_taken(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpus = \"0-1\"\n[groups.\"{g}/in\"]\ncpus = \"0-1\"\n");
    let pid = stage.sleeper("{one}", "{g}/in");
    assert_eq!(stage.cpus(pid), "0-1");
    stage.truth();
    stage.by_hand("{g}", "cpuset.cpus", "0");
    assert_eq!(stage.cpus(pid), "0");
    let drift = &stage.drifts("{g}/in")[0];
    assert_eq!((&drift["drift"], &drift["effective"]), (&json!("unavailable"), &json!("0")));
    says(drift["reason"].as_str().unwrap(), &["above it does not have CPU 1"]);
    stage.truth();
    stage.apply("[groups.\"{g}\"]\ncpus = \"0-1\"\n[groups.\"{g}/in\"]\ncpus = \"0-1\"\n");
    assert!(stage.drifts("{g}/in").is_empty());
    stage.truth();
}
