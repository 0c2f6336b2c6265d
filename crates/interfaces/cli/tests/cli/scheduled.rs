//! `schedule`: what comes next, and what a layout's schedules have in force while the daemon follows them.

use std::{path::Path, process::Child, sync::Arc, time::SystemTime};

use fake::suite;
use libtest_mimic::Trial;
use serde_json::Value;

use crate::{
    desk::{Desk, says},
    world::{Need, World},
};

/// So that the layout needs nothing of the machine that the test runs on.
const MACHINE: &str = include_str!("../../../../machine/topology/tests/machines/synthetic-2x8.hwloc.xml");

const LAYOUT: &str = "\
[groups.'{g}']
pids.max = 500
[[schedule]]
name = \"night\"
at = \"22:00 UTC\"
until = \"06:00\"
groups.'{g}'.pids.max = 77
[[schedule]]
name = \"weekly\"
at = \"Mon 12:00 Asia/Tokyo\"
groups.'{g}'.pids.max = 78
";

type Case = (&'static str, &'static [Need], fn(&Desk));

const CASES: &[Case] = &[
    ("what comes next", &[Need::TimeZones], next),
    ("what cannot be followed", &[Need::TimeZones], refused),
    ("what is in force", &[Need::Groups], in_force),
    ("the layout in effect", &[Need::Groups, Need::TimeZones], in_effect),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("schedule: {name}"), lacks, move || case(&Desk::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

fn next(desk: &Desk) {
    desk.write("l.toml", LAYOUT);
    let answer = desk.json("schedule {d}/l.toml --next 50 --json {s}", 0);
    let all = answer["next"].as_array().unwrap();
    assert_eq!(all.len(), 50);
    let moments: Vec<&str> = all.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert!(moments.is_sorted(), "{moments:?}");
    for one in all {
        let at = one["at"].as_str().unwrap();
        assert!(one["in_sec"].as_i64().unwrap() >= 0);
        let time = match (one["schedule"].as_str().unwrap(), one["begins"].as_bool().unwrap()) {
            ("night", true) => "T22:00:00Z",
            ("night", false) => "T06:00:00Z",
            ("weekly", true) => "T03:00:00Z",
            other => panic!("{other:?}"),
        };
        assert!(at.ends_with(time), "{one}");
    }
    let (code, text, warnings) = desk.run("schedule {d}/l.toml -n 2 {s}");
    assert_eq!(code, 0, "{warnings}");
    says(
        &text,
        &["night: at 22:00 UTC until 06:00", "pids.max = 77", " UTC  in ", "weekly: at Mon 12:00 Asia/Tokyo"],
    );
    says(&warnings, &["ringfenced does not run", "systemctl enable --now ringfenced"]);
    desk.write("none.toml", "[groups.'{g}']\npids.max = 500\n");
    says(&desk.ends("schedule {d}/none.toml {s}", 0), &["has no schedules"]);
}

fn refused(desk: &Desk) {
    desk.write("m.xml", MACHINE);
    let with = |from: &str, to: &str| desk.write("l.toml", &LAYOUT.replace(from, to));
    for (from, to, line, status, parts) in [
        (
            "Asia/Tokyo",
            "Asia/Tokio",
            "schedule",
            2,
            &["there is no time zone 'Asia/Tokio'", "did you mean Asia/Tokyo?"][..],
        ),
        ("Asia/Tokyo", "berlin", "check", 2, &["l.toml:10:6", "did you mean Europe/Berlin?"]),
        (
            "Mon 12:00",
            "2020-01-06 12:00",
            "check",
            2,
            &["error: schedule 'weekly' never comes again", "l.toml:10:6", "-01-06 12:00:00 JST"],
        ),
        ("Mon 12:00", "2020-01-06", "plan --machine {d}/m.xml", 2, &["schedule 'weekly' never comes again"]),
        ("06:00", "2020-01-01 06:00", "check", 2, &["schedule 'night' ends before it begins", "l.toml:6:9"]),
        (
            "06:00",
            "*:0",
            "check",
            2,
            &["schedule 'night' ends at the moment at which it begins", "l.toml:5:6"],
        ),
        ("Mon 12:00", "Mon 2020-01-07", "check", 2, &["there is no such day"]),
        (
            "Mon 12:00 Asia/Tokyo",
            "Mon 22:00 UTC",
            "check",
            2,
            &["'night' and 'weekly' both change pids.max", "l.toml:10:6", "l.toml:5:6"],
        ),
        (
            "pids.max = 78",
            "cpus = 60000",
            "plan --machine {d}/m.xml",
            1,
            &["schedule 'weekly' can't be followed", "l.toml:9:8"],
        ),
    ] {
        with(from, to);
        let state = if line == "schedule" { "{s}" } else { "" };
        let (code, out, error) = desk.run(&format!("{line} {{d}}/l.toml {state}"));
        assert_eq!(code, status, "{to}: {out}{error}");
        says(&error, parts);
    }
}

/// Ends it by its number.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn in_force(desk: &Desk) {
    let schedule = "[[schedule]]\nname = \"later\"\nafter = \"1s\"\ngroups.'{g}'.pids.max = 77\n";
    // it ended before this layout was there
    let hour = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 3600;
    let (begins, ends) = ((hour + 2) % 24, (hour + 3) % 24);
    let over = format!(
        "[[schedule]]\nname = \"over\"\nat = \"{begins}:00 UTC\"\nuntil = \"{ends}:00\"\ngroups.'{{g}}'.pids.max = 78\n"
    );
    desk.write("l.toml", &format!("[groups.'{{g}}']\npids.max = 500\n{schedule}{over}"));
    let line = "daemon --layout {d}/l.toml --no-socket --no-strict --check 0 {s}";
    let daemon = Daemon(desk.spawn(line));
    let state = || desk.json("schedule {d}/l.toml --json {s}", 0);
    let later = |answer: &Value| answer["schedules"][0].clone();
    desk.scene.until("the change is in force", || later(&state())["last"]["generation"].is_u64());
    drop(daemon);
    let pids_max = || desk.json("get {g} pids.max --json", 0).to_string();
    assert!(pids_max().contains("77"), "{}", pids_max());
    says(&desk.ends("history {s}", 0), &["schedule later begins: layout "]);
    // by hand, the layout is applied as it is scheduled now
    says(&desk.ends("plan {d}/l.toml {s}", 0), &["othing to do"]);
    desk.ends("apply {d}/l.toml {s}", 0);
    assert!(pids_max().contains("77"), "{}", pids_max());
    let text = desk.ends("schedule {d}/l.toml {s}", 0);
    says(&text, &["in force since", ", generation 2", "last began"]);
    assert!(!text.contains("last ended") && state()["schedules"][1]["last"].is_null(), "{text}");
    desk.ends("undo {s}", 0);
    assert!(pids_max().contains("500"), "{}", pids_max());
    assert!(later(&state())["in_force"].is_null(), "{}", state());
    desk.ends("undo 0 {s}", 0);
}

/// Wherever its file is; what a machine's own directory has is shown where nothing is in effect.
fn in_effect(desk: &Desk) {
    desk.write("l.toml", LAYOUT);
    if !Path::new("/etc/ringfence").exists() {
        let (code, _, error) = desk.run("schedule {s}");
        assert_eq!(code, 1, "{error}");
        says(
            &error,
            &["no layout is in effect, and there is none in /etc/ringfence", "ringfence schedule LAYOUT"],
        );
    }
    desk.ends("apply {d}/l.toml {s}", 0);
    let path = desk.path("l.toml");
    let shown = desk.ends("schedule {s}", 0);
    says(&shown, &[&format!("layout {}\n", path.display()), "night: at 22:00 UTC until 06:00"]);
    assert_eq!(desk.json("schedule --json {s}", 0)["layout"], path.display().to_string());
    desk.ends("undo 0 {s}", 0);
}
