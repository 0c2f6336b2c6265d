//! Somebody renamed the directory of a group, as v1 allows: it is still the generation's, and its limits hold on.

use std::fs;

use crate::{
    desk::says,
    reported::{Row, Stage, row},
    world::Need,
};

const V1: &[Need] = &[Need::V1("pids")];

pub const ROWS: &[Row] = &[
    row("an undo lifts the limits of a renamed group, and removes it", undone).needs(V1),
    row("an undo leaves a group that has a renamed one's name to its maker", undone_beside_other).needs(V1),
    row("a renamed group that is removed from the file is without its limits", removed).needs(V1),
    row("a renamed group that is in the file is made again", applied).needs(V1),
    row("a group is renamed with those in it", family).needs(V1),
];

const LIMIT: &str = "[groups.\"{g}/a\"]\npids.max = 100\n";

/// `{g}/a` with a process, renamed to `{g}/z`.
fn rename(stage: &mut Stage<'_>) {
    stage.apply(LIMIT);
    stage.sleeper("{one}", "{g}/a");
    for controller in stage.hierarchies_of("{g}/a") {
        fs::rename(stage.directory("{g}/a", &controller), stage.directory("{g}/z", &controller)).unwrap();
    }
    is_named(stage);
}

fn is_named(stage: &Stage<'_>) {
    let (from, to) = (stage.directory("{g}/a", "pids"), stage.directory("{g}/z", "pids"));
    let words = format!("{} was renamed to {}", from.display(), to.display());
    says(&stage.desk.ends("status {s}", 3), &[&words]);
    stage.truth();
}

fn empty(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("kill {g}/z");
    stage.pids.clear();
    let tasks = stage.directory("{g}/z", "pids").join("cgroup.procs");
    stage.desk.scene.until("its end", || fs::read_to_string(&tasks).unwrap_or_default().is_empty());
}

fn undone(stage: &mut Stage<'_>) {
    rename(stage);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}/z", "pids.max").as_str()), (3, "max"), "{out}{error}");
    says(&error, &["/z' stays: 1 process"]);
    says(&stage.desk.ends("status {s}", 3), &["/z is left over from generation 1"]);
    stage.truth();
    empty(stage);
    stage.desk.ends("undo {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
    assert!(stage.status_of("{g}/z").is_none());
}

fn undone_beside_other(stage: &mut Stage<'_>) {
    rename(stage);
    fs::create_dir(stage.directory("{g}/a", "pids")).unwrap();
    stage.by_hand("{g}/a", "pids.max", "33");
    is_named(stage);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!(code, 3, "{out}{error}");
    assert_eq!(
        (stage.holds("{g}/a", "pids.max").as_str(), stage.holds("{g}/z", "pids.max").as_str()),
        ("33", "max")
    );
    empty(stage);
    stage.desk.run("undo {s}");
    assert!(!stage.directory("{g}/z", "pids").exists());
    assert_eq!(stage.holds("{g}/a", "pids.max"), "33");
}

fn removed(stage: &mut Stage<'_>) {
    rename(stage);
    stage.layout("[groups.\"{g}/b\"]\npids.max = 50\n");
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!((code, stage.holds("{g}/z", "pids.max").as_str()), (3, "max"), "{out}{error}");
    says(&error, &["/z' is no longer in the layout and stays, without its limits: 1 process"]);
    says(&stage.desk.ends("status {s}", 3), &["/z is left over from generation "]);
    assert!(stage.status_of("{g}/a").is_none());
    stage.truth();
    empty(stage);
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    assert!(!stage.directory("{g}/z", "pids").exists());
    stage.desk.ends("status {s}", 0);
    stage.desk.ends("undo 0 {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
}

fn applied(stage: &mut Stage<'_>) {
    rename(stage);
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!((code, stage.holds("{g}/z", "pids.max").as_str()), (3, "max"), "{out}{error}");
    assert_eq!(stage.holds("{g}/a", "pids.max"), "100");
    says(&error, &["/z' is no longer in the layout and stays, without its limits: 1 process"]);
    is_named_again(stage);
    empty(stage);
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    assert!(!stage.directory("{g}/z", "pids").exists());
    stage.desk.ends("status {s}", 0);
    stage.truth();
    stage.desk.ends("undo 0 {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
}

fn is_named_again(stage: &Stage<'_>) {
    says(&stage.desk.ends("status {s}", 3), &[" was renamed to ", "/z, and another was made"]);
    stage.truth();
}

fn family(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n[groups.\"{g}/a/in\"]\npids.max = 50\n");
    stage.sleeper("{one}", "{g}/a/in");
    fs::rename(stage.directory("{g}/a", "pids"), stage.directory("{g}/z", "pids")).unwrap();
    is_named(stage);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!(code, 3, "{out}{error}");
    for group in ["{g}/z", "{g}/z/in"] {
        assert_eq!(stage.holds(group, "pids.max"), "max", "{group}");
    }
    stage.truth();
    stage.desk.scene.ok("kill {g}/z/in");
    stage.pids.clear();
    let tasks = stage.directory("{g}/z/in", "pids").join("cgroup.procs");
    stage.desk.scene.until("its end", || fs::read_to_string(&tasks).unwrap_or_default().is_empty());
    stage.desk.ends("undo {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists());
}
