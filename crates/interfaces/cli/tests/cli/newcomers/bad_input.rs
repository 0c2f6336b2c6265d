//! Input that is wrong in ways that could do harm: layouts that lost their groups, histories that are gone or old,
//! processes that never stop forking, limits without a unit.

use std::{fs, process::Command};

use super::Case;
use crate::desk::{Desk, answer, says, sleep_program};

pub const ON_GROUPS: &[Case] = &[
    ("a layout emptied by mistake undoes nothing without --yes", emptied),
    ("a state directory that was lost is named wherever the history would be shown", state_lost),
    ("a tree that forks all the time is moved", forking),
    ("generations of an older version are read, those of a later one are named", generations),
    ("A14: a limit of memory without its unit is warned of before and when it is set", no_unit),
    ("A4: a plan knows that this kernel lacks CFQ's weight, also where no group shows it", no_cfq),
    ("plan does not say that nothing is to be done while processes are outside", outside),
    ("a damaged record between others can be left out, as its hint says", damaged_between),
    ("a history that another user may not read is not called damaged", unreadable),
    ("A14: the daemon says a hint once", hints_of_the_daemon),
    ("R2: plan shows that a change waits for its confirmation", pending),
];

fn emptied(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    for (name, text) in [
        ("empty.toml", ""),
        ("comment.toml", "# [groups.{g}]\n# pids.max = 100\n"),
        ("rules.toml", "[[rules]]\nuser = \"root\"\nprocess = \"/nosuch\"\nto = \"/\"\n"),
    ] {
        desk.write(name, text);
        let plan = desk.run(&format!("plan {{d}}/{name} {{s}}"));
        assert_eq!(plan.0, 0);
        says(&plan.1, &[&desk.scene.fill("{g}\n  - group"), "Plan: 0 to add, 0 to change, 1 to remove"]);
        says(
            &plan.2,
            &["has no groups: it undoes everything that earlier layouts applied", "ringfence apply --yes "],
        );
        let (code, out, error) = desk.run(&format!("apply {{d}}/{name} {{s}}"));
        assert_eq!((code, out.as_str()), (1, ""), "{error}");
        says(&error, &["  - group", "nothing was changed", "hint: to do it: ringfence apply --yes "]);
        let answer = desk.json(&format!("apply --json {{d}}/{name} {{s}}"), 1);
        says(answer["error"]["message"].as_str().unwrap(), &["has no groups"]);
        assert_eq!(desk.scene.ok("get {g} pids.max -v"), "100\n");
        assert_eq!(desk.generations(), 1);
    }
    desk.ends("apply --yes {d}/empty.toml {s}", 0);
    desk.ends("get {g} pids.max", 1);
    // where there is nothing to undo, there is nothing to be sure of
    desk.ends("apply {d}/empty.toml {s}", 0);
}

fn state_lost(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(desk.json("status --json {s}", 0)["recorded"], true);
    fs::remove_dir_all(desk.path("state")).unwrap();
    for line in ["status {s}", "history {s}"] {
        let text = desk.ends(line, 0);
        says(
            &text,
            &["no generation is recorded in ", "it is not known what they put in force", "`ringfence list`"],
        );
    }
    let status = desk.json("status --json {s}", 0);
    assert_eq!((&status["recorded"], status["groups"].as_array().unwrap().len()), (&false.into(), 0));
    let (code, _, error) = desk.run("undo {s}");
    assert_eq!(code, 1, "{error}");
    // the limit holds, and a new record begins from what is there
    assert_eq!(desk.scene.ok("get {g} pids.max -v"), "100\n");
    desk.write("m.toml", "[groups.{g}]\npids.max = 90\n");
    desk.ends("apply {d}/m.toml {s}", 0);
    desk.ends("undo {s}", 0);
    assert_eq!(desk.scene.ok("get {g} pids.max -v"), "100\n");
}

/// Children that live shorter than a look at /proc takes: each look found one that it had not seen.
fn forking(desk: &mut Desk) {
    desk.scene.ok("create {g} -c pids");
    let pid = desk.scene.start("{pid}", &["sh", "-c", "while :; do /bin/true; done"]);
    let json = desk.json("move --json --tree {g} {pid}", 0);
    assert!(json["tasks"].as_array().unwrap().iter().any(|task| task == pid), "{json}");
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(groups.contains(&desk.scene.group), "{groups}");
}

/// The lines of a generation's file without their checksums.
fn plain(text: &str) -> String {
    let line = |line: &str| format!("{}\n", line.rsplit_once('\t').map_or(line, |(text, _)| text));
    text.lines().map(line).collect()
}

fn generations(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    let path = desk.path("state/generations/0001.jsonl");
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.contains("\"format\":5"), "{now}");
    // format 3 had another name for the kind of a step, format 1 no checksums
    let of = |format: &str| plain(&now).replacen("\"format\":5", format, 1).replace("\"action\":", "\"do\":");
    fs::write(&path, of("\"format\":1")).unwrap();
    says(&desk.ends("history {s}", 0), &["*  1  ", "done"]);
    says(&desk.ends("status {s}", 0), &["pids.max=100", "all as applied"]);
    // one of a later version, whatever else it has, is named as such, and nothing is done in its stead
    let later = plain(&now).replacen("\"format\":5", "\"format\":99,\"kind\":\"merge\",\"was\":5", 1);
    fs::write(&path, later.replacen("\"kind\":\"apply\",", "", 1)).unwrap();
    for command in ["undo {s}", "status {s}", "apply {d}/l.toml {s}"] {
        let (code, _, error) = desk.run(command);
        assert_eq!(code, 1, "{error}");
        says(
            &error,
            &[
                path.to_str().unwrap(),
                "format 99 is of a later version of this program",
                "hint: use that version",
            ],
        );
        assert!(!error.contains("damaged"), "{error}");
    }
    let history = desk.ends("history {s}", 0);
    says(&history, &["  1  of a later version\n", "hint: use that version, or a later one"]);
    // with a wrong digit the checksum is another
    fs::write(&path, now.replacen("\"format\":5", "\"format\":9", 1)).unwrap();
    says(&desk.run("undo {s}").2, &["it is damaged: line 1 is damaged: its checksum is another"]);
    assert_eq!(desk.scene.ok("get {g} pids.max -v"), "100\n");
    fs::write(&path, of("\"format\":1")).unwrap();
    desk.ends("undo {s}", 0);
    desk.ends("get {g} pids.max", 1);
}

fn no_unit(desk: &mut Desk) {
    desk.scene.ok("create {g} -c memory");
    let (code, _, error) = desk.run("set {g} memory.max=8");
    assert_eq!(code, 0, "{error}");
    says(&error, &["is 8 bytes: no program can run with that", "hint: did you mean 8G or 8M?"]);
    desk.write("l.toml", "[groups.{g}]\nmemory.max = \"8\"\n");
    for command in ["check", "plan"] {
        let (code, _, error) = desk.run(&format!("{command} {{d}}/l.toml"));
        assert_eq!(code, 0, "{error}");
        says(
            &error,
            &["is 8 bytes: no program can run with that", "hint: did you mean 8G or 8M?", "l.toml:2:"],
        );
    }
}

fn no_cfq(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\nio.weight = 200\n");
    let (code, out, error) = desk.run("plan {d}/l.toml");
    assert_eq!((code, out.as_str()), (1, ""), "{error}");
    says(&error, &["this kernel has no blkio.weight", "l.toml:2:"]);
}

fn outside(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\nmatch = [{ process = \"{d}/sleeper\" }]\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    says(&desk.ends("plan {d}/l.toml {s}", 0), &["nothing to do: the machine is as the layout says\n"]);
    fs::copy(sleep_program(), desk.path("sleeper")).unwrap();
    let sleeper = desk.path("sleeper");
    let pid = desk.scene.start("{pid}", &[sleeper.to_str().unwrap(), "600"]);
    let (code, out, error) = desk.run("plan {d}/l.toml {s}");
    assert_eq!(code, 0);
    assert!(!out.contains("nothing to do: the machine is"), "{out}");
    says(&out, &["nothing to do for the groups, but not all processes"]);
    says(&error, &[&pid.to_string(), "hint: ringfence classify --rules "]);
    let (_, out, _) = desk.run("apply {d}/l.toml {s}");
    assert!(!out.contains("nothing to do: the machine is"), "{out}");
    let json = desk.json("plan --json {d}/l.toml {s}", 0);
    assert_eq!(json["misplaced"][0]["pid"], pid);
}

fn pending(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply {d}/l.toml --confirm 5m {s}", 0);
    says(
        &desk.ends("plan {d}/l.toml {s}", 0),
        &["generation 1 will be undone in ", "ringfence confirm 1", "nothing to do"],
    );
    assert_eq!(desk.json("plan --json {d}/l.toml {s}", 0)["pending"]["generation"], 1);
    desk.ends("confirm {s}", 0);
    assert!(!desk.ends("plan {d}/l.toml {s}", 0).contains("undone"));
}

/// Does what the hint about a damaged record says.
fn obey_mv(error: &str) {
    let (_, hint) =
        error.split_once("to continue without what it recorded: ").unwrap_or_else(|| panic!("{error}"));
    let command = hint.split_once("; then compare: ringfence status LAYOUT").unwrap().0;
    assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
}

/// Finding 17 of the second newcomers' review: later generations refer to the one whose record is damaged.
fn damaged_between(desk: &mut Desk) {
    for (group, limit) in [("a", 5), ("b", 6), ("c", 7)] {
        let layout = desk.scene.fill(&format!("[groups.\"{{g}}/{group}\"]\npids.max = {limit}\n"));
        let before = fs::read_to_string(desk.path("more.toml")).unwrap_or_default();
        desk.write("more.toml", &format!("{before}{layout}"));
        desk.ends("apply {d}/more.toml {s}", 0);
    }
    let file = desk.path("state/generations/0002.jsonl");
    fs::write(&file, "x\n").unwrap();
    for line in ["status {s}", "plan {d}/more.toml {s}", "undo 1 {s}"] {
        let (code, _, error) = desk.run(line);
        assert_eq!(code, 1, "{line}: {error}");
        says(&error, &[file.to_str().unwrap(), "it is damaged"]);
    }
    obey_mv(&desk.run("status {s}").2);
    let unknown = "generation 2 is in effect and has no record: what it changed is not known";
    says(&desk.ends("status {s} {d}/more.toml", 3), &[unknown, "pids.max=5", "pids.max=7"]);
    assert_eq!(desk.json("status --json {s}", 3)["unknown"], serde_json::json!([2]));
    desk.ends("plan {d}/more.toml {s}", 0);
    let (code, out, error) = desk.run("undo 1 {s}");
    assert_eq!(code, 3, "{out}{error}");
    says(&format!("{out}{error}"), &["what generation 2 changed is not known: its record was moved away"]);
    assert_eq!(desk.groups().iter().filter(|group| group.ends_with("/c")).count(), 0);
    desk.ends("status {s}", 0);
}

/// Finding 17 of the second newcomers' review.
fn unreadable(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    for line in ["history {s}", "status {s}"] {
        let (code, out, error) = answer(desk.scene.ringfence(line, Some(65534)));
        assert_eq!((code, out.as_str()), (1, ""), "{error}");
        says(&error, &["generations: permission denied", "hint: that takes root"]);
        assert!(!error.contains("damaged"), "{error}");
    }
}

/// A14: "hint: did you mean match?" came twice.
fn hints_of_the_daemon(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\nmtch = [{ user = \"root\" }]\npids.max = 5\n");
    let (code, out, error) = desk.run("daemon --layout {d}/l.toml --no-socket {s}");
    assert_eq!((code, out.as_str()), (1, ""), "{error}");
    says(&error, &["unknown key 'mtch'", "hint: did you mean match?"]);
    assert_eq!(error.matches("hint: ").count(), 1, "{error}");
}
