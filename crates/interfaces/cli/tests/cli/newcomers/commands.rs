//! What holds for every command alike, found by going through the help of all of them.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use super::{Case, command_names};
use crate::desk::{Desk, says};

pub const ANYWHERE: &[Case] = &[
    ("B14: every option that takes a time takes it in the same way", times),
    ("B18: every command answers a wrong option with the same JSON and exit status 2", wrong_options),
    ("what is to be imported and is not there is no layout to be written", imports_nothing),
    ("B13: every command that speaks to the daemon has --socket", sockets),
];

pub const ON_GROUPS: &[Case] = &[
    ("B18: times in JSON are RFC 3339, and numbers of seconds or bytes say so", moments_and_units),
    ("faults F13: where shows a line for each process of a group", members),
];

fn members(desk: &mut Desk) {
    // on cgroup v2 processes are in groups without others below alone
    desk.scene.ok("create {g}/a/b");
    desk.scene.ok("create {g}/c");
    let above = desk.scene.start("{one}", &["sleep", "60"]);
    let below = desk.scene.start("{below}", &["sleep", "61"]);
    says(&desk.scene.ok("where {g}"), &["\n  no processes\n"]);
    desk.scene.ok("move {g}/c {one}");
    desk.scene.ok("move {g}/a/b {below}");
    let text = desk.scene.ok("where {g}");
    let line = |pid: u32| text.lines().find(|line| line.contains(&pid.to_string())).unwrap().to_owned();
    says(&line(above), &["  sleep  CPUs ", "  last on ", &desk.scene.fill("  {g}/c")]);
    assert!(line(below).ends_with(&desk.scene.fill("  {g}/a/b")), "{text}");
    let answer = desk.json("where --json {g} {g}/a", 0);
    let pids = |group: usize| {
        let all = answer[group]["processes"].as_array().unwrap();
        all.iter().map(|one| one["process"]["pid"].as_u64().unwrap()).collect::<BTreeSet<u64>>()
    };
    assert_eq!(pids(0), BTreeSet::from([above.into(), below.into()]));
    assert_eq!(pids(1), BTreeSet::from([below.into()]));
    assert_eq!(answer[1]["processes"][0]["group"], desk.scene.fill("{g}/a/b"));
    let (code, _, error) = desk.run("where {g}-none");
    assert_eq!(code, 1, "{error}");
    says(&error, &["{g}-none"].map(|name| desk.scene.fill(name)).each_ref().map(String::as_str));
}

/// All commands with those below them.
fn tree(desk: &Desk) -> Vec<String> {
    let mut all: Vec<String> = command_names(&desk.scene).into_iter().filter(|name| name != "help").collect();
    for command in all.clone() {
        let help = desk.ends(&format!("{command} --help"), 0);
        let Some((_, below)) = help.split_once("\nCommands:\n") else { continue };
        let names = below.lines().take_while(|line| line.starts_with("  "));
        let names =
            names.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        all.extend(names.filter(|name| *name != "help").map(|name| format!("{command} {name}")));
    }
    all
}

fn imports_nothing(desk: &mut Desk) {
    let (code, out, error) = desk.run("import {d}/none");
    assert_eq!((code, out.as_str()), (2, ""), "{error}");
    says(&error, &[&desk.scene.fill("there is no {d}/none\nhint: ")]);
    let libcgroups =
        error.contains("hint: name a file of libcgroup") || error.contains("hint: ringfence import /etc/cg");
    assert!(libcgroups && !error.contains("layout.toml"), "{error}");
}

fn times(desk: &mut Desk) {
    let mut found = BTreeSet::new();
    for command in tree(desk) {
        let help = desk.ends(&format!("{command} --help"), 0);
        assert!(!help.contains("in seconds"), "{command} has an option of its own way:\n{help}");
        let options = help.split_whitespace().zip(help.split_whitespace().skip(1));
        for (option, _) in options.filter(|(option, value)| option.starts_with("--") && *value == "<TIME>") {
            let (code, _, error) = desk.run(&format!("{command} {option} soon"));
            assert_eq!(code, 2, "{command} {option}: {error}");
            says(&error, &["expected a time from ", "such as 5, 5s"]);
            for time in ["90", "90s", "1500ms", "1m", "'1m 30s'"] {
                // the option after it is what is wrong
                let (code, _, error) = desk.run(&format!("{command} {option} {time} --nosuch"));
                assert!(code == 2 && error.contains("'--nosuch'"), "{command} {option} {time}: {error}");
            }
            found.insert(format!("{command} {option}"));
        }
    }
    for known in ["apply --confirm", "watch --interval", "freeze --timeout", "daemon --check", "why --for"] {
        assert!(found.contains(known), "{known} is not among {found:?}");
    }
}

fn wrong_options(desk: &mut Desk) {
    for command in tree(desk) {
        let answer = desk.json(&format!("--json {command} --nosuch"), 2);
        let error = answer["error"].as_object().unwrap();
        assert_eq!(error.keys().collect::<Vec<_>>(), ["hint", "message", "place"], "{command}");
        assert!(error["message"].as_str().unwrap().contains("--nosuch"), "{command}: {error:?}");
    }
}

fn sockets(desk: &mut Desk) {
    for command in ["set", "move", "top", "reload", "status"] {
        says(&desk.ends(&format!("{command} --help"), 0), &["--socket <PATH>", "RINGFENCE_SOCKET"]);
    }
    // and no other one speaks to it: all requests leave through one file
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut open = vec![sources];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let speaks = text.replace("client::ClientError", "").contains("client::")
                || text.contains("Socket::default()");
            assert!(!speaks || path.ends_with("commands/requests.rs"), "{}", path.display());
        }
    }
}

/// Names of moments, and names that lack their unit.
const MOMENTS: [&str; 5] = ["at", "time", "since", "until", "deadline"];
const UNITLESS: [&str; 10] = [
    "memory",
    "timeout",
    "interval",
    "late",
    "remaining",
    "elapsed",
    "duration",
    "span",
    "confirm_within",
    "undone_unless_confirmed_within",
];

fn moments_and_units(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\nmemory.max = \"64M\"\n");
    let mut moments = 0;
    for line in [
        "plan --json {d}/l.toml {s}",
        "apply --json {d}/l.toml --confirm 60 {s}",
        "status --json {s}",
        "history --json {s}",
        "confirm --json {s}",
        "watch --json --once -i 10ms {g}",
        "top --json --once -i 10ms {g}",
        "watch --json --once -i 10ms --tasks {g}",
        "record --json -n 2 -i 10ms --directory {d}/log {g}",
        "dump --json --directory {d}/log",
        "why --json --for 100ms {g}",
        "list --json {g}",
        "get --json {g}",
        "stat --json {g}",
        "where --json",
        "freeze --json {g}",
        "thaw --json {g}",
        "undo --json {s}",
        "history --json {s}",
        "topology --json",
        "doctor --json",
        "lab list --json",
    ] {
        let (_, out, error) = desk.run(line);
        // a line of some is a document of its own
        let documents = serde_json::Deserializer::from_str(&out).into_iter::<Value>();
        let documents: Vec<Value> =
            documents.collect::<Result<_, _>>().unwrap_or_else(|wrong| panic!("{line}: {wrong}: {out}"));
        assert!(!documents.is_empty(), "{line}: {error}");
        for document in &documents {
            moments += checked(line, document);
        }
    }
    assert!(moments >= 8, "only {moments} moments were seen");
}

/// How many moments there are in it.
fn checked(line: &str, value: &Value) -> usize {
    match value {
        Value::Array(all) => all.iter().map(|one| checked(line, one)).sum(),
        Value::Object(all) => {
            let mut moments = 0;
            // a limit is {"at": number}, or "max"
            let is_limit = all.len() == 1 && all.contains_key("at");
            for (name, one) in all {
                if MOMENTS.contains(&name.as_str()) && !is_limit && !one.is_null() && !one.is_object() {
                    let text = one.as_str().unwrap_or_else(|| panic!("{line}: {name} is {one}"));
                    assert!(humantime::parse_rfc3339(text).is_ok(), "{line}: {name} is {text}");
                    moments += 1;
                }
                assert!(
                    !(one.is_number() && UNITLESS.contains(&name.as_str())),
                    "{line}: {name} has no unit: {one}"
                );
                moments += checked(line, one);
            }
            moments
        }
        _ => 0,
    }
}
