//! Device rules of v1, which are written to two files and read from a third, and v2's program: what was applied, what
//! holds, what goes back.

use std::fs;

use kernel::{Kernel, Real};
use rustix::fs::XattrFlags;
use settings::Version;

use crate::{
    desk::says,
    reported::{Row, Stage, row},
    world::Need,
};

const V1: &[Need] = &[Need::V1("devices")];
const V2: &[Need] = &[Need::AnyV2, Need::NotMounted("devices")];

pub const ROWS: &[Row] = &[
    row("device rules changed by hand are drift, and apply puts them right", by_hand).needs(V1),
    row("device rules of a group of others are compared in what the layout names", in_part).needs(V1),
    row("device rules that a group below refuses change nothing", refused).needs(V1),
    row("an undo of a device rule gives groups below back what they lost", below).needs(V1),
    row("an undo of a device rule names groups below that stay without a device", unknown_below).needs(V1),
    row("a program of device rules that somebody took off is drift, and apply puts it back", off).needs(V2),
];

const RULES: &str =
    "[groups.\"{g}\"]\ndevices.deny = [\"a\"]\ndevices.allow = [\"c 1:3 rwm\", \"c 1:5 r\"]\n";

fn list(stage: &Stage<'_>, group: &str) -> Vec<String> {
    let text = fs::read_to_string(stage.directory(group, "devices").join("devices.list")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn write(stage: &Stage<'_>, group: &str, file: &str, text: &str) {
    fs::write(stage.directory(group, "devices").join(file), text).unwrap();
}

fn by_hand(stage: &mut Stage<'_>) {
    stage.apply(RULES);
    assert!(stage.drifts("{g}").is_empty(), "{:?}", stage.drifts("{g}"));
    stage.truth();
    for (file, rule) in [("devices.allow", "c 1:9 r"), ("devices.deny", "c 1:3 w"), ("devices.allow", "a")] {
        write(stage, "{g}", file, rule);
        let drifts = stage.drifts("{g}");
        assert_eq!(drifts.len(), 1, "{rule}: {drifts:?}");
        let (code, out, error) = stage.desk.run("status {s}");
        assert_eq!(code, 3, "{rule}: {out}{error}");
        says(&out, &["devices.list: applied ", "c 1:3 rwm", ", now "]);
        stage.truth();
        stage.apply(RULES);
        assert_eq!(list(stage, "{g}"), ["c 1:3 rwm", "c 1:5 r"], "{rule}");
        stage.desk.ends("status {s}", 0);
        stage.truth();
    }
    stage.desk.ends("undo 0 {s}", 0);
    assert!(!stage.directory("{g}", "devices").exists());
}

fn in_part(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c devices");
    write(stage, "{g}", "devices.deny", "a");
    for rule in ["c 1:3 rwm", "c 1:5 rwm"] {
        write(stage, "{g}", "devices.allow", rule);
    }
    stage.apply("[groups.\"{g}\"]\ndevices.deny = [\"c 1:5 w\"]\n");
    assert_eq!(list(stage, "{g}"), ["c 1:3 rwm", "c 1:5 rm"]);
    write(stage, "{g}", "devices.allow", "c 1:8 r");
    assert!(stage.drifts("{g}").is_empty(), "the layout says nothing of 1:8: {:?}", stage.drifts("{g}"));
    write(stage, "{g}", "devices.allow", "c 1:5 w");
    assert_eq!(stage.drifts("{g}").len(), 1);
    stage.truth();
    stage.desk.ends("undo {s}", 0);
    assert_eq!(list(stage, "{g}"), ["c 1:3 rwm", "c 1:5 rwm", "c 1:8 r"]);
}

fn refused(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c devices");
    fs::create_dir(stage.directory("{g}/o", "devices")).unwrap();
    stage.layout(RULES);
    for command in ["plan", "apply"] {
        let (code, out, error) = stage.desk.run(&format!("{command} {{d}}/l.toml {{s}}"));
        assert_eq!(code, 1, "{out}{error}");
        says(&error, &["is not possible while groups are below it", "delete the groups below"]);
    }
    assert_eq!(list(stage, "{g}"), ["a *:* rwm"]);
    // a group that is being freed counts as one below for a while
    fs::remove_dir(stage.directory("{g}/o", "devices")).unwrap();
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(list(stage, "{g}"), ["c 1:3 rwm", "c 1:5 r"]);
}

fn below(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c devices");
    write(stage, "{g}", "devices.deny", "a");
    for rule in ["c 1:3 rwm", "c 1:5 rwm", "c 1:7 r"] {
        write(stage, "{g}", "devices.allow", rule);
    }
    for group in ["{g}/o", "{g}/o/p"] {
        fs::create_dir(stage.directory(group, "devices")).unwrap();
        write(stage, group, "devices.deny", "c 1:5 m");
    }
    stage.apply("[groups.\"{g}\"]\ndevices.deny = [\"c 1:3 w\", \"c 1:5 w\"]\n");
    for group in ["{g}/o", "{g}/o/p"] {
        assert_eq!(list(stage, group), ["c 1:3 rm", "c 1:5 r", "c 1:7 r"], "{group}");
    }
    stage.desk.ends("undo {s}", 0);
    assert_eq!(list(stage, "{g}"), ["c 1:3 rwm", "c 1:5 rwm", "c 1:7 r"]);
    for group in ["{g}/o", "{g}/o/p"] {
        assert_eq!(list(stage, group), ["c 1:3 rwm", "c 1:5 rw", "c 1:7 r"], "{group}");
    }
    // what is gone by then gets nothing back
    stage.apply("[groups.\"{g}\"]\ndevices.deny = [\"c 1:3 w\"]\n");
    fs::remove_dir(stage.directory("{g}/o/p", "devices")).unwrap();
    stage.desk.ends("undo {s}", 0);
    assert_eq!(list(stage, "{g}/o"), ["c 1:3 rwm", "c 1:5 rw", "c 1:7 r"]);
    fs::remove_dir(stage.directory("{g}/o", "devices")).unwrap();
}

fn unknown_below(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c devices");
    fs::create_dir(stage.directory("{g}/o", "devices")).unwrap();
    stage.apply("[groups.\"{g}\"]\ndevices.deny = [\"c 1:7 w\"]\n");
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!(code, 3, "{out}{error}");
    says(&format!("{out}{error}"), &["/o stays without c 1:7 w"]);
    fs::remove_dir(stage.directory("{g}/o", "devices")).unwrap();
}

fn off(stage: &mut Stage<'_>) {
    const RECORD: &str = "trusted.ringfence.devices";
    stage.apply(RULES);
    let directory = stage.directory("{g}", "devices");
    let kernel = Real::new();
    let at = kernel.hierarchies().unwrap().into_iter().find(|at| at.version == Version::V2).unwrap();
    let group = directory.strip_prefix(&at.mount).unwrap().to_str().unwrap();
    let as_applied = |stage: &mut Stage<'_>| {
        assert!(stage.drifts("{g}").is_empty(), "{:?}", stage.drifts("{g}"));
        stage.desk.ends("status {s}", 0);
        assert!(kernel.device_filter(&at, group).unwrap().unwrap().attached);
    };
    as_applied(stage);
    for below in [false, true] {
        if below {
            fs::create_dir(directory.join("o")).unwrap();
        }
        let mut record = [0; 200];
        let length = rustix::fs::getxattr(&directory, RECORD, &mut record).unwrap();
        kernel.set_device_filter(&at, group, None).unwrap();
        rustix::fs::setxattr(&directory, RECORD, &record[..length], XattrFlags::empty()).unwrap();
        let (code, out, error) = stage.desk.run("status {s}");
        assert_eq!(code, 3, "{out}{error}");
        says(&out, &["devices.list: applied deny a; allow c 1:3 rwm; allow c 1:5 r, now not in force"]);
        stage.apply(RULES);
        as_applied(stage);
    }
    fs::remove_dir(directory.join("o")).unwrap();
    stage.desk.scene.ok("set {g} devices.allow='c 1:9 r'");
    let (code, out, error) = stage.desk.run("status {s}");
    assert_eq!(code, 3, "{out}{error}");
    says(
        &out,
        &["applied deny a; allow c 1:3 rwm; allow c 1:5 r, now deny a; allow c 1:3 rwm; allow c 1:5 r; "],
    );
    stage.apply(RULES);
    as_applied(stage);
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    assert_eq!(kernel.device_filter(&at, group), Ok(None));
    stage.desk.ends("status {s}", 0);
    stage.desk.ends("undo 0 {s}", 0);
    assert!(!directory.exists());
}
