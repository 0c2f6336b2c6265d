//! A group was removed, and made again by hand or by a later layout: what does an undo give back, and to whom?

use std::fs;

use crate::{
    desk::says,
    reported::{Row, Stage, row},
};

pub const ROWS: &[Row] = &[
    row("an undo meets a group that was removed and that somebody made by hand", made_by_hand),
    row("an undo meets a group that was removed and that a later layout made", made_by_later),
    row("an undo meets such a group with a process in it", made_by_later_with_process),
    row("an undo makes a group again whose controllers went along with it", with_controllers),
];

const FIRST: &str = "[groups.\"{g}/a\"]\npids.max = 100\n";
const OTHER: &str = "[groups.\"{g}/b\"]\npids.max = 50\n";
const AGAIN: &str = "[groups.\"{g}/a\"]\npids.max = 60\n";

fn with_controllers(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\nmemory.max = \"200M\"\n[groups.\"{g}/b\"]\nmemory.max = \"100M\"\n");
    stage.apply("[groups.\"{g}/b\"]\nmemory.max = \"100M\"\n");
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}/a", "pids.max").as_str()), (0, "100"), "{out}{error}");
    assert!(!error.contains("gone already"), "{error}");
    stage.truth();
}

fn made_by_hand(stage: &mut Stage<'_>) {
    stage.apply(FIRST);
    stage.apply(OTHER);
    fs::create_dir(stage.directory("{g}/a", "pids")).unwrap();
    stage.by_hand("{g}/a", "pids.max", "33");
    let stays = |line: &str| {
        let (code, out, error) = stage.desk.run(line);
        assert_eq!((code, stage.holds("{g}/a", "pids.max").as_str()), (3, "33"), "{line}: {out}{error}");
        says(&error, &["a' stays as it is: it was made since"]);
        stage.truth();
    };
    stays("undo 1 {s}");
    stage.desk.run("undo 0 {s}");
    // forward, too
    stays("undo 1 {s}");
    stays("undo 2 {s}");
    stage.desk.run("undo 0 {s}");
    assert_eq!(stage.holds("{g}/a", "pids.max"), "33");
}

fn made_by_later(stage: &mut Stage<'_>) {
    stage.apply(FIRST);
    stage.apply(OTHER);
    stage.apply(AGAIN);
    for (generation, value) in [("1", "100"), ("3", "60"), ("2", ""), ("3", "60"), ("1", "100")] {
        stage.desk.ends(&format!("undo {generation} {{s}}"), 0);
        assert_eq!(stage.holds("{g}/a", "pids.max"), value, "of generation {generation}");
        stage.truth();
    }
    stage.desk.ends("undo 0 {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
}

fn made_by_later_with_process(stage: &mut Stage<'_>) {
    stage.apply(FIRST);
    stage.apply(OTHER);
    stage.apply(AGAIN);
    stage.sleeper("{one}", "{g}/a");
    let (code, out, error) = stage.desk.run("undo 1 {s}");
    assert_eq!((code, stage.holds("{g}/a", "pids.max").as_str()), (0, "100"), "{out}{error}");
    stage.desk.ends("status {s}", 0);
    stage.truth();
    let (_, out, error) = stage.desk.run("undo 3 {s}");
    assert_eq!(stage.holds("{g}/a", "pids.max"), "60", "{out}{error}");
    stage.truth();
    let (code, out, error) = stage.desk.run("undo 0 {s}");
    let limit = stage.holds("{g}/a", "pids.max");
    // on v2 the file goes with its controller, and no limit is left either
    assert!(code == 3 && matches!(limit.as_str(), "max" | ""), "{code} {limit}: {out}{error}");
    says(&error, &["a' stays: 1 process"]);
    stage.truth();
    stage.desk.scene.ok("kill {g}");
    stage.pids.clear();
    let tasks = stage.directory("{g}/a", "pids").join("cgroup.procs");
    stage.desk.scene.until("its end", || fs::read_to_string(&tasks).unwrap_or_default().is_empty());
    stage.desk.ends("undo {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
}
