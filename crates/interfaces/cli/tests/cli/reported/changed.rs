//! Somebody changed what a layout made: a value, a group, where a process is. Does `status` see it, and does `apply` put it
//! right?

use crate::{
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("a value changed by hand is drift, and apply puts it right", value),
    row("a value written by hand that means the same is none", same_value),
    row("a limit lifted by hand is drift", lifted),
    row("CPUs changed by hand are drift, and those of the tasks", cpus).needs(&[Need::Cpus(2)]),
    row("a value that nobody asked for is no drift", not_asked),
    row("a group deleted by hand is gone", group_deleted),
    row("a group deleted by hand in one hierarchy is gone there", deleted_in_one).needs(&[Need::V1("pids")]),
    row("a process that left the group is not counted", left),
    row("a process that left one hierarchy of the group is drift", left_one).needs(&[Need::V1("pids")]),
    row("a process that came into one hierarchy only is drift", came_into_one).needs(&[Need::V1("pids")]),
    row("a process that was moved in by hand is counted", came),
    row("a process that was moved to a group below is counted there", went_below),
    row("apply puts a group back that was deleted by hand", put_back),
];

const LAYOUT: &str =
    "[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\ncpus = \"0\"\nmems = \"local\"\n";

fn is_drift_of(stage: &Stage<'_>, setting: &str) -> bool {
    let file = stage.file("{g}", setting);
    stage.drifts("{g}").iter().any(|drift| drift["file"] == file.to_str().unwrap())
}

fn value(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    stage.sleeper("{one}", "{g}");
    stage.by_hand("{g}", "pids.max", "33");
    assert!(is_drift_of(stage, "pids.max"));
    assert_eq!(stage.planned().len(), 1);
    stage.truth();
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}

fn same_value(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    stage.by_hand("{g}", "memory.max", "65536K");
    assert!(stage.drifts("{g}").is_empty());
    assert!(stage.planned().is_empty());
    stage.truth();
}

fn lifted(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    stage.sleeper("{one}", "{g}");
    stage.by_hand("{g}", "pids.max", "max");
    assert!(stage.is_unlimited("{g}", "pids.max") && is_drift_of(stage, "pids.max"));
    stage.truth();
}

fn cpus(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    let pid = stage.sleeper("{one}", "{g}");
    stage.by_hand("{g}", "cpuset.cpus", "1");
    assert_eq!(stage.cpus(pid), "1");
    assert!(is_drift_of(stage, "cpuset.cpus"));
    assert_eq!(stage.status_of("{g}").unwrap()["cpus"], "1");
    stage.truth();
}

fn not_asked(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n");
    let swap = stage.directory("{g}", "memory").join("memory.swappiness");
    if swap.exists() {
        std::fs::write(swap, "33").unwrap();
    }
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}

fn group_deleted(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    for controller in ["pids", "memory", "cpuset"] {
        let _ = std::fs::remove_dir(stage.directory("{g}", controller)); // one of v2 is in all of them
    }
    assert!(stage.drifts("{g}").iter().all(|drift| drift["drift"] == "gone"));
    assert!(!stage.drifts("{g}").is_empty() && !stage.planned().is_empty());
    stage.truth();
}

fn deleted_in_one(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    std::fs::remove_dir(stage.directory("{g}", "pids")).unwrap();
    assert_eq!(stage.drifts("{g}").len(), 1);
    stage.truth();
}

fn left(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    let pid = stage.sleeper("{one}", "{g}");
    for controller in stage.hierarchies_of("{g}") {
        stage.move_by_hand(pid, "", &controller);
    }
    assert_eq!(stage.status_of("{g}").unwrap()["tasks"].as_array().unwrap().len(), 0);
    stage.truth();
}

fn left_one(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    let pid = stage.sleeper("{one}", "{g}");
    stage.move_by_hand(pid, "", "pids");
    assert!(!stage.drifts("{g}").is_empty(), "{pid} is not under pids.max, and status says nothing");
    stage.truth();
}

fn came_into_one(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    let pid = stage.sleeper("{one}", "");
    stage.move_by_hand(pid, "{g}", "memory");
    assert!(!stage.drifts("{g}").is_empty(), "{pid} is under memory.max only, and status says nothing");
    stage.truth();
}

fn came(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    let pid = stage.sleeper("{one}", "");
    for controller in stage.hierarchies_of("{g}") {
        stage.move_by_hand(pid, "{g}", &controller);
    }
    assert_eq!(stage.status_of("{g}").unwrap()["tasks"][0]["pid"], pid);
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}

fn went_below(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n[groups.\"{g}/a/b\"]\npids.max = 50\n");
    if stage.is_v1("pids") {
        let pid = stage.sleeper("{one}", "{g}/a");
        for controller in stage.hierarchies_of("{g}/a/b") {
            stage.move_by_hand(pid, "{g}/a/b", &controller);
        }
    } else {
        stage.sleeper("{one}", "{g}/a/b"); // no v2 group has tasks and groups with limits
    }
    assert_eq!(stage.status_of("{g}/a").unwrap()["tasks"].as_array().unwrap().len(), 0);
    assert_eq!(stage.status_of("{g}/a/b").unwrap()["tasks"].as_array().unwrap().len(), 1);
    stage.truth();
}

fn put_back(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    for controller in ["pids", "memory", "cpuset"] {
        let _ = std::fs::remove_dir(stage.directory("{g}", controller));
    }
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let pid = stage.sleeper("{one}", "{g}");
    assert_eq!((stage.holds("{g}", "pids.max").as_str(), stage.cpus(pid).as_str()), ("100", "0"));
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}
