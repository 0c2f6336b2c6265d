//! `freeze` and `thaw`: when they say that processes have stopped, have they?

use std::fs;

use crate::{
    desk::says,
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("freeze stops all processes of a group", all_stop).needs(&[Need::AnyFreezer]),
    row("freeze stops those in groups below", those_below).needs(&[Need::AnyFreezer]),
    row("thaw lets them go on", thawed).needs(&[Need::AnyFreezer]),
    row("freeze fails or stops a process that is not under the freezer", outside)
        .needs(&[Need::V1("freezer")]),
    row("freeze fails or stops the one process that is not under the freezer", one_outside)
        .needs(&[Need::V1("freezer")]),
    row("a group that is frozen is reported as frozen", shown_as_frozen).needs(&[Need::AnyFreezer]),
    row("a group below a frozen one is reported with that one", frozen_above).needs(&[Need::AnyFreezer]),
    row("a process outside of a frozen group's freezer is reported as running", outside_frozen)
        .needs(&[Need::V1("freezer"), Need::V1("pids")]),
    row("a process that is moved into a frozen group, or gets a signal there, is named", moved_into_frozen)
        .needs(&[Need::AnyFreezer]),
    row("run into a frozen group refuses", run_into_frozen).needs(&[Need::AnyFreezer]),
    row("a process that was frozen is where it was", frozen_in_place).needs(&[Need::AnyFreezer]),
];

/// Is the process in a group that the kernel reports as frozen?
fn is_frozen(stage: &Stage<'_>, pid: u32) -> bool {
    let group = stage.group_of(pid, "freezer");
    let at = stage.mount("freezer").join(group.trim_start_matches('/'));
    let read = |file: &str| fs::read_to_string(at.join(file)).unwrap_or_default();
    read("freezer.state").trim() == "FROZEN" || read("cgroup.events").lines().any(|line| line == "frozen 1")
}

fn freeze(stage: &Stage<'_>, group: &str) -> (i32, String) {
    let (code, out, error) = stage.desk.run(&format!("freeze {group} --timeout 5s"));
    if code == 2 {
        let (code, out, error) = stage.desk.run(&format!("freeze {group} --timeout 5"));
        return (code, out + &error);
    }
    (code, out + &error)
}

/// It ends well if and only if all of them have stopped.
fn says_so(stage: &Stage<'_>, group: &str, pids: &[u32]) {
    let (code, text) = freeze(stage, group);
    let running: Vec<u32> = pids.iter().copied().filter(|pid| !is_frozen(stage, *pid)).collect();
    assert_eq!(code == 0, running.is_empty(), "freeze ended with {code}: {text}; {running:?} go on");
}

fn all_stop(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g}");
    let _ = stage.desk.run("set {g} cpuset.cpus=0 cpuset.mems=0");
    let pids = [stage.sleeper("{one}", "{g}"), stage.sleeper("{two}", "{g}")];
    says_so(stage, "{g}", &pids);
    assert!(pids.iter().all(|pid| is_frozen(stage, *pid)));
    stage.truth();
}

fn moved_into_frozen(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer");
    freeze(stage, "{g}");
    let pid = stage.desk.scene.start("{late}", &["sleep", "600"]);
    stage.free(pid);
    let thaw = stage.desk.scene.fill("hint: ringfence thaw {g}");
    let (code, _, error) = stage.desk.run("move {g} {late}");
    assert_eq!(code, 0, "{error}");
    says(&error, &["is frozen: what was moved there stands still", &thaw]);
    let (code, _, error) = stage.desk.run("kill {g} --signal TERM");
    assert_eq!(code, 0, "{error}");
    says(&error, &["is frozen: its processes get the signal once it is thawed", &thaw]);
    stage.desk.scene.ok("thaw {g}");
}

fn those_below(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g}/a -c freezer");
    let pid = stage.sleeper("{one}", "");
    stage.move_by_hand(pid, "{g}/a", "freezer");
    says_so(stage, "{g}", &[pid]);
    assert!(is_frozen(stage, pid));
    stage.truth();
}

fn thawed(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer");
    let pid = stage.sleeper("{one}", "{g}");
    says_so(stage, "{g}", &[pid]);
    stage.desk.ends("thaw {g}", 0);
    assert!(!is_frozen(stage, pid));
    stage.truth();
}

fn outside(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer,pids");
    let pid = stage.sleeper("{one}", "");
    stage.move_by_hand(pid, "{g}", "pids");
    says_so(stage, "{g}", &[pid]);
    stage.truth();
}

fn one_outside(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer,pids");
    let inside = stage.sleeper("{one}", "{g}");
    let outside = stage.sleeper("{two}", "");
    stage.move_by_hand(outside, "{g}", "pids");
    says_so(stage, "{g}", &[inside, outside]);
    stage.truth();
}

fn shown_as_frozen(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let pid = stage.sleeper("{one}", "{g}");
    let shown = |stage: &Stage<'_>| stage.status_of("{g}").unwrap()["frozen"].clone();
    for (command, is_stopped) in [("freeze {g}", true), ("thaw {g}", false)] {
        stage.desk.ends(command, 0);
        assert_eq!(is_frozen(stage, pid), is_stopped);
        assert_eq!(shown(stage), is_stopped, "{command}");
        let (_, text, _) = stage.desk.run("status {s}");
        assert_eq!(text.contains("frozen: nothing in it runs"), is_stopped, "{text}");
    }
    stage.truth();
}

fn frozen_above(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g}/in -c freezer");
    stage.apply("[groups.\"{g}/in\"]\npids.max = 100\n");
    let pid = stage.sleeper("{one}", "{g}/in");
    stage.desk.ends("freeze {g}", 0);
    assert!(is_frozen(stage, pid));
    let status = stage.status_of("{g}/in").unwrap();
    assert_eq!((&status["frozen"], &status["frozen_by"]), (&true.into(), &stage.fill("{g}").into()));
    let (_, text, _) = stage.desk.run("status {s}");
    let words = stage.fill("frozen with group '{g}': nothing in it runs until `ringfence thaw {g}`");
    assert!(text.contains(&words), "{text}");
    stage.truth();
    stage.desk.ends("thaw {g}", 0);
    assert!(!is_frozen(stage, pid));
    stage.truth();
}

/// It came into the group after the freeze, in one hierarchy only.
fn outside_frozen(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer,pids");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let inside = stage.sleeper("{one}", "{g}");
    stage.desk.ends("freeze {g}", 0);
    let outside = stage.sleeper("{two}", "");
    stage.move_by_hand(outside, "{g}", "pids");
    assert!(is_frozen(stage, inside) && !is_frozen(stage, outside));
    assert_eq!(stage.status_of("{g}").unwrap()["running"], serde_json::json!([outside]));
    let (_, text, _) = stage.desk.run("status {s}");
    let words = format!("in the freezer hierarchy and running: {outside} (`ringfence freeze {{g}}`)");
    assert!(text.contains(&stage.fill(&words)) && !text.contains("nothing in it runs"), "{text}");
    // the command that it names
    stage.desk.ends("freeze {g}", 0);
    assert!(is_frozen(stage, outside));
    assert_eq!(stage.status_of("{g}").unwrap()["running"], serde_json::json!([]));
    let (_, text, _) = stage.desk.run("status {s}");
    assert!(text.contains("frozen: nothing in it runs"), "{text}");
    stage.desk.ends("thaw {g}", 0);
    stage.truth();
}

fn run_into_frozen(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer,pids");
    stage.sleeper("{one}", "{g}");
    assert_eq!(freeze(stage, "{g}").0, 0);
    let mut child = stage.desk.spawn("run {g} -- true");
    let mut ended = None;
    for _ in 0..200 {
        ended = child.try_wait().unwrap();
        if ended.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    stage.desk.ends("thaw {g}", 0);
    let status = ended.unwrap_or_else(|| {
        let _ = child.wait();
        panic!("run waits for somebody to thaw the group, without a word")
    });
    assert!(!status.success());
    stage.truth();
}

fn frozen_in_place(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c freezer,pids");
    let pid = stage.sleeper("{one}", "{g}");
    assert_eq!(freeze(stage, "{g}").0, 0);
    assert!(stage.is_in(pid, "{g}", "pids") && stage.is_in(pid, "{g}", "freezer"));
    stage.truth();
}
