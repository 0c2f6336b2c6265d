//! The whole way of a layout on the kernel that this runs on: plan, apply, drift, status, history, confirm, undo.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use rustix::{fs::FlockOperation, process::Signal};
use serde_json::Value;

use crate::{
    desk::{Desk, answer, says},
    world::{Need, World},
};

type Case = (&'static str, &'static [Need], fn(&mut Desk));

const CASES: &[Case] = &[
    ("a plan tells each step with its reason, and changes nothing", &[], planned),
    ("what is applied is there, and applying it again does nothing", &[], applied),
    ("the history says who did what when, and how it ended", &[], remembered),
    ("a value changed by hand is drift, and apply repairs it", &[], changed),
    ("a group that is gone is drift", &[], gone),
    (
        "a partition that the kernel made invalid is drift, with the kernel's reason",
        &[Need::V2("cpuset"), Need::Cpus(4), Need::Plain],
        invalid,
    ),
    ("undo brings back what was there before, and takes new groups away", &[], undone),
    ("undo goes to any generation, and leaves a group with tasks alone", &[], undone_far),
    ("what is not confirmed is undone", &[], unconfirmed),
    ("history marks no generation whose groups are gone", &[], in_effect_no_more),
    ("what is not confirmed is undone when the shell is dead", &[], unconfirmed_without_shell),
    ("what is confirmed stays", &[], confirmed),
    ("a second apply waits for the first and says for whom", &[], two_at_once),
    ("a waiter whose lock has no number in it waits for another process", &[], waited_for_another),
    ("an apply that is interrupted puts everything back", &[], interrupted),
    ("what was broken off is told until the next change puts it back", &[], broken_off),
    ("status names the generation in effect, not one that failed after it", &[], failed_after),
    ("another owner or mode than the layout asks for is drift, and apply repairs it", &[], owned),
    ("a damaged generation hides no other, and is told with its file", &[], damaged),
    ("failures are JSON too, and texts are strings", &[], failed_as_json),
    ("the answers for programs are JSON", &[], json),
    ("the drawing names the groups", &[], drawn),
    ("libcgroup's configuration goes the same way", &[], cgconfig),
];

const LAYOUT: &str = "
[groups.{g}]
pids.max = 100

[groups.{g}.groups.a]
cpus = 1
mems = \"local\"
memory.max = \"64M\"

[groups.\"{g}/b\"]
cpus = 1
mems = \"local\"
cpu.weight = 200
";

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(&[&[Need::Usual], needs].concat()), world.clone());
        suite::trial(format!("layout: {name}"), lacks, move || {
            let mut desk = Desk::new(&world, name);
            desk.write("l.toml", LAYOUT);
            case(&mut desk);
        })
    };
    CASES.iter().map(trial).collect()
}

/// newcomers' finding B16: the steps with their reasons are behind `-v`.
fn planned(desk: &mut Desk) {
    let told = desk.ends("plan -v {d}/l.toml", 0);
    let (_, steps) = told.split_once("\nSteps, in this order:\n").unwrap();
    let (steps, _) = steps.split_once("\n\nPlan: ").unwrap();
    let lines: Vec<&str> = steps.lines().collect();
    assert!(lines.len() >= 10 && lines.len().is_multiple_of(2), "{told}");
    for (number, step) in (1..).zip(lines.chunks(2)) {
        assert!(step[0].starts_with(&format!("{number:4}. ")), "{step:?}");
        assert!(step[1].starts_with("      ") && step[1].len() > 8, "{step:?}");
    }
    let file = |group: &str, file: &str| {
        lines.iter().any(|line| line.contains(&desk.scene.fill(group)) && line.contains(file))
    };
    assert!(file("{g}/a/", "cpuset.cpus <- ") && file("{g}/b/", "cpuset.mems <- "), "{told}");
    assert!(file("{g}/", "pids.max <- 100"), "{told}");
    assert_eq!(desk.groups(), [""; 0]);
    assert_eq!(desk.generations(), 0);
}

fn applied(desk: &mut Desk) {
    says(&desk.ends("apply {d}/l.toml {s}", 0), &["generation 1: ", " steps done"]);
    let actual = |line: &str| desk.scene.ok(line).trim().to_owned();
    assert_eq!(actual("get --values {g} pids.max"), "100");
    assert_eq!(actual("get --values {g}/a memory.max"), "64M");
    assert_eq!(actual("get --values {g}/b cpu.weight"), "200");
    let cpus = actual("get --values {g}/a cpuset.cpus");
    assert!(cpus.parse::<usize>().is_ok() && !actual("get --values {g}/a cpuset.mems").is_empty(), "{cpus}");
    assert_eq!(desk.ends("apply {d}/l.toml {s}", 0), "nothing to do: the machine is as the layout says\n");
    assert_eq!(desk.ends("plan {d}/l.toml", 0), "nothing to do: the machine is as the layout says\n");
    assert_eq!(desk.generations(), 1);
    let status = desk.ends("status {s}", 0);
    says(
        &status,
        &["ok     ", "pids.max=100", "memory.max=64M", " 0 processes", " memory ", "all as applied"],
    );
    says(&desk.ends("status {s} {d}/l.toml", 0), &["the machine is as ", "l.toml says"]);
    let pid = desk.scene.start("{pid}", &["sleep", "60"]);
    desk.scene.ok("move {g}/a {pid}");
    says(&desk.ends("status -v {s}", 0), &[&format!("1 process: {pid} sleep")]);
    says(&desk.ends("status {s}", 0), &["3 groups with 1 process: all as applied"]);
}

fn remembered(desk: &mut Desk) {
    // with a group somebody may have lost records
    desk.scene.ok("create {g}");
    for line in ["history {s}", "status {s}"] {
        says(
            &desk.ends(line, 0),
            &["no generation is recorded in ", "it is not known what they put in force"],
        );
    }
    desk.scene.ok("delete {g}");
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.ends("undo {s}", 0);
    let told = desk.ends("history {s}", 0);
    let lines: Vec<&str> = told.lines().collect();
    let what = desk.scene.fill("layout {d}/l.toml");
    assert!(lines[0].starts_with("   1  ") && lines[0].ends_with(&what), "{told}");
    assert!(lines[1].starts_with("   2  ") && lines[1].ends_with("undo to generation 0"), "{told}");
    assert_eq!(lines.len(), 2);
    for line in lines {
        // `2026-01-31 08:05:09 UTC`
        let fields: Vec<&str> = line.split_whitespace().collect();
        let digits =
            |text: &str| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
        assert_eq!(digits(fields[1]) + " " + &digits(fields[2]) + " " + fields[3], "0000-00-00 00:00:00 UTC");
        assert!(!fields[4].is_empty() && fields[5] == "done", "{line}");
    }
}

fn changed(desk: &mut Desk) {
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.scene.ok("set {g} pids.max=77");
    let status = desk.ends("status {s}", 3);
    says(
        &status,
        &["       pids.max: applied 100, now 77\n", &desk.scene.fill("drift  {g} "), ": 1 drifted\n"],
    );
    assert_eq!(status.matches("drift  ").count(), 1, "{status}");
    let with = desk.ends("status {s} {d}/l.toml", 3);
    says(
        &with,
        &["still to do for ", "  ~ pids.max  77 → 100\n", "Plan: 0 to add, 1 to change, 0 to remove"],
    );
    says(&desk.ends("apply {d}/l.toml {s}", 0), &["generation 2: 1 step done"]);
    desk.ends("status {s}", 0);
    // what another layout asks for on top is no drift, but not as that layout asks
    desk.write("more.toml", "[groups.{g}]\npids.max = 101\n");
    says(&desk.ends("status {s} {d}/more.toml", 3), &["~ pids.max ", " 100 → 101\n"]);
}

fn gone(desk: &mut Desk) {
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.scene.ok("delete {g}/b");
    let status = desk.ends("status {s}", 3);
    says(&status, &[&desk.scene.fill("drift  {g}/b "), &desk.scene.fill("/{g}/b is gone")]);
    says(&status, &[&desk.scene.fill("ok     {g}/a ")]);
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.ends("status {s}", 0);
}

fn invalid(desk: &mut Desk) {
    desk.write("rt.toml", "[groups.{g}-rt]\ncpus = 1\nexclusive = true\n");
    desk.ends("apply {d}/rt.toml {s}", 0);
    desk.ends("status {s}", 0);
    let cpu = desk.scene.ok("get --values {g}-rt cpuset.cpus").trim().to_owned();
    // a sibling that names the same CPU
    desk.scene.ok("create {g} --controllers cpuset");
    desk.scene.ringfence(&format!("set {{g}} cpuset.cpus={cpu}"), None);
    let state = desk.scene.ok("get --values {g}-rt cpuset.cpus.partition").trim().to_owned();
    let (code, report, error) = desk.run("status {s}");
    desk.scene.ok("delete {g}");
    desk.ends("undo {s}", 0);
    if state == "root" {
        // newer kernels leave a valid partition its CPUs
        assert_eq!(code, 0, "{report}{error}");
        says(&report, &["all as applied"]);
    } else {
        assert_eq!(code, 3, "{report}{error}");
        says(&report, &[&format!("the kernel keeps the partition invalid: {state}")]);
    }
}

fn undone(desk: &mut Desk) {
    desk.scene.ok("create {g} --controllers cpu,cpuset,memory,pids");
    desk.scene.ok("create {g}/a --controllers cpu,cpuset,memory,pids");
    desk.scene.ok("set {g} cpuset.mems=0 cpuset.cpus=0 pids.max=50");
    desk.scene.ok("set {g}/a cpu.weight=150 memory.max=128M pids.max=20");
    let actual = |desk: &Desk| (desk.scene.ok("get {g}"), desk.scene.ok("get {g}/a"));
    let before = actual(desk);
    desk.write(
        "both.toml",
        "
[groups.{g}]
pids.max = 100
[groups.{g}.groups.a]
cpus = \"0\"
mems = \"0\"
cpu.weight = 200
memory.max = \"64M\"
[groups.{g}.groups.b]
pids.max = 10
",
    );
    desk.ends("apply {d}/both.toml {s}", 0);
    assert_ne!(actual(desk), before);
    assert_eq!(desk.groups().len(), 2);
    desk.ends("undo {s}", 0);
    assert_eq!(actual(desk), before);
    assert_eq!(desk.groups(), [desk.scene.fill("{g}/a")]);
    says(&desk.ends("status {s}", 0), &["nothing that was applied is in effect"]);
    let (code, _, error) = desk.run("undo {s}");
    assert_eq!(code, 1);
    says(&error, &["there is nothing to undo", "hint: ringfence history"]);
}

fn undone_far(desk: &mut Desk) {
    for (file, max) in [("1.toml", 10), ("2.toml", 20), ("3.toml", 30)] {
        desk.write(file, &format!("[groups.{{g}}]\npids.max = {max}\n"));
        desk.ends(&format!("apply {{d}}/{file} {{s}}"), 0);
    }
    let actual = |desk: &Desk| desk.scene.ok("get --values {g} pids.max").trim().to_owned();
    desk.ends("undo 1 {s}", 0);
    assert_eq!(actual(desk), "10");
    desk.ends("undo 3 {s}", 0);
    assert_eq!(actual(desk), "30");
    let (code, _, error) = desk.run("undo 9 {s}");
    assert_eq!(code, 1);
    says(&error, &["there is no generation 9: the last is 5", "hint: ringfence history"]);
    let pid = desk.scene.start("{pid}", &["sleep", "60"]);
    desk.scene.ok("move {g} {pid}");
    let (code, _, error) = desk.run("undo 0 {s}");
    assert_eq!(code, 3);
    says(&error, &[&desk.scene.fill("group '{g}' stays: 1 process in "), &pid.to_string()]);
    // a line for each group, in however many hierarchies it is
    assert_eq!(error.matches(" stays: ").count(), 1, "{error}");
    says(&error, &["its limits are lifted", &format!("once it is empty: ringfence move / {pid}")]);
    assert!(desk.scene.ok("where {pid}").contains(&desk.scene.group));
    says(
        &desk.ends("history {s}", 0),
        &["  done in part  ", &desk.scene.fill("      group '{g}' stays: 1 process in ")],
    );
}

fn unconfirmed(desk: &mut Desk) {
    let told = desk.ends("apply --confirm 2s {d}/l.toml {s}", 0);
    says(&told, &["generation 1: ", "undone in 2 s unless you run: ringfence confirm 1"]);
    desk.scene.until("the end of the time", || desk.groups().is_empty());
    desk.scene.until("the record", || desk.run("history {s}").1.contains("not confirmed within 2 s"));
    let (code, _, error) = desk.run("confirm {s}");
    assert_eq!(code, 1);
    says(
        &error,
        &["is not waiting to be confirmed", "not confirmed in time", "ringfence apply with the same"],
    );
    let (_, _, error) = desk.run("confirm 1 {s}");
    says(&error, &["generation 1 is not waiting", "is undone", "ringfence apply with the same"]);
}

fn in_effect_no_more(desk: &mut Desk) {
    desk.scene.ok("create {g} -c pids,memory");
    desk.ends("set {g} pids.max=9 memory.max=64M {s}", 0);
    assert!(desk.ends("history {s}", 0).starts_with('*'));
    desk.scene.ok("delete {g}");
    assert!(desk.ends("history {s}", 0).starts_with(' '));
    assert_eq!(desk.json("history --json {s}", 0)[0]["in_effect"], false);
}

/// The shell that ran it is killed before the time is over.
fn unconfirmed_without_shell(desk: &mut Desk) {
    for seconds in [2, 6, 15] {
        let line = format!("\"$0\" apply --confirm {seconds}s {{d}}/l.toml {{s}}; sleep 60");
        let (line, program) = (desk.scene.fill(&line), desk.scene.program());
        let shell = desk.scene.start("{sh}", &["sh", "-c", &line, &program]);
        let ended = |what: &str| desk.run("history {s}").1.contains(what);
        desk.scene.until("the change", || ended("  done  "));
        let pid = rustix::process::Pid::from_raw(shell.cast_signed()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        // on a slow machine the time may have been over before
        if desk.groups().is_empty() {
            fs::remove_dir_all(desk.path("state")).unwrap();
            continue;
        }
        desk.scene.until("the end of the time", || desk.groups().is_empty());
        desk.scene.until("the record", || ended("not confirmed within"));
        return;
    }
    panic!("the time was over each time before the shell was killed");
}

fn confirmed(desk: &mut Desk) {
    desk.ends("apply --confirm 600s {d}/l.toml {s}", 0);
    // nothing is built upon what may go
    desk.write("more.toml", "[groups.{g}]\npids.max = 101\n");
    let (code, _, error) = desk.run("apply {d}/more.toml {s}");
    assert_eq!(code, 1);
    says(&error, &["generation 1 waits to be confirmed", "ringfence confirm 1 --state ", "undo --state "]);
    assert!(is_waited_for(desk));
    assert_eq!(desk.ends("confirm {s}", 0), "generation 1 is confirmed\n");
    desk.scene.until("the end of the process that undoes", || !is_waited_for(desk));
    assert_eq!(desk.groups().len(), 2);
    desk.ends("status {s}", 0);
    desk.ends("apply {d}/more.toml {s}", 0);
}

/// Is there a process that would undo this trial's change?
fn is_waited_for(desk: &Desk) -> bool {
    let state = desk.path("state").to_str().unwrap().to_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.contains("revert-unless-confirmed") && line.contains(&state))
}

fn two_at_once(desk: &mut Desk) {
    fs::create_dir(desk.path("state")).unwrap();
    let mut lock = fs::File::create(desk.path("state/lock")).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    lock.write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
    let mut second = desk.spawn("apply {d}/l.toml {s}");
    let mut error = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    error.read_line(&mut line).unwrap();
    says(&line, &[&format!("waiting for process {} (", std::process::id()), "cli"]);
    assert_eq!(desk.groups(), [""; 0]);
    drop(lock);
    let (code, out, _) = answer(second.wait_with_output().unwrap());
    assert_eq!(code, 0);
    says(&out, &["generation 1: "]);
    let mut rest = String::new();
    error.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("error"), "{rest}");
    assert_eq!(desk.groups().len(), 2);
}

fn waited_for_another(desk: &mut Desk) {
    fs::create_dir(desk.path("state")).unwrap();
    let lock = fs::File::create(desk.path("state/lock")).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut second = desk.spawn("undo {s}");
    let mut line = String::new();
    BufReader::new(second.stderr.take().unwrap()).read_line(&mut line).unwrap();
    drop(lock);
    second.wait().unwrap();
    assert_eq!(line, "ringfence: waiting for another process to end its change\n");
}

/// Writes a generation's record again, with its head changed and `end` in its last line's place.
fn rewrite(desk: &Desk, from: &str, to: &str, change: impl FnOnce(&mut Value), end: Option<&str>) {
    let text = fs::read_to_string(desk.path("state/generations").join(from)).unwrap();
    // each line has its checksum behind a tab, and a journal ends in unused room
    let lines = text.trim_end_matches('\0').lines();
    let mut lines: Vec<String> =
        lines.map(|line| line.split_once('\t').map_or(line, |(text, _)| text).to_owned()).collect();
    let mut head = serde_json::from_str(&lines[0]).unwrap();
    change(&mut head);
    lines[0] = head.to_string();
    if lines.last().is_some_and(|last| last.contains("\"result\"")) {
        lines.pop();
    }
    let count = lines.len();
    lines.extend(end.map(|end| end.replace("LINES", &count.to_string())));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&(number as u64).to_le_bytes());
        sum.update(line.as_bytes());
        text += &format!("{line}\t{:08x}\n", sum.finalize());
    }
    if to.ends_with(".journal") {
        let room = text.len().next_multiple_of(64 << 10);
        text += &"\0".repeat(room - text.len());
    }
    fs::write(desk.path("state/generations").join(to), text).unwrap();
}

/// What SIGKILL leaves behind after the last step.
fn broken_off(desk: &mut Desk) {
    desk.ends("apply {d}/l.toml {s}", 0);
    let mut process = 0;
    rewrite(desk, "0001.jsonl", "0001.journal", |head| process = head["by"]["pid"].as_u64().unwrap(), None);
    fs::remove_file(desk.path("state/generations/0001.jsonl")).unwrap();
    let broken =
        format!("generation 1 was interrupted (process {process}); the next apply or undo rolls it back\n");
    assert_eq!(desk.ends("status {s}", 3), broken);
    assert_eq!(desk.json("status --json {s}", 3)["unfinished"]["lives"], false);
    says(&desk.ends("history {s}", 0), &["   1  ", "  broken off  "]);
    // the same, while its process is there
    let here = |head: &mut Value| {
        head["by"]["pid"] = std::process::id().into();
        head["by"]["command"] = std::env::args().collect::<Vec<_>>().join(" ").into();
    };
    let journal = desk.path("state/generations/0001.journal");
    let whole = fs::read(&journal).unwrap();
    rewrite(desk, "0001.journal", "0001.journal", here, None);
    says(&desk.ends("status {s}", 0), &["generation 1 is under way (process "]);
    says(&desk.ends("history {s}", 0), &["  under way  "]);
    fs::write(&journal, whole).unwrap();
    let (code, _, error) = desk.run("confirm {s}");
    assert_eq!(code, 1);
    says(&error, &["generation 1 is not waiting to be confirmed: it was interrupted"]);
    // what was interrupted is the last change: nothing else is undone
    says(&desk.ends("undo {s}", 0), &["the last change is undone"]);
    assert_eq!(desk.groups(), [""; 0]);
    says(&desk.ends("status {s}", 0), &["nothing was applied: no change succeeded"]);
    says(&desk.ends("history {s}", 0), &["  rolled back  "]);
}

fn failed_after(desk: &mut Desk) {
    desk.ends("apply {d}/l.toml {s}", 0);
    let second = |head: &mut Value| {
        head["generation"] = 2.into();
        head["in_effect_before"] = Value::Array(vec![1.into()]);
    };
    rewrite(
        desk,
        "0001.jsonl",
        "0002.jsonl",
        second,
        Some(r#"{"result":{"ending":"rolled-back","at":1,"lines":LINES}}"#),
    );
    says(&desk.ends("history {s}", 0), &["   2  ", "  rolled back  "]);
    let status = desk.ends("status {s}", 0);
    assert!(status.starts_with("generation 1, "), "{status}");
}

fn owned(desk: &mut Desk) {
    desk.write("own.toml", "[groups.{g}]\npids.max = 7\ntasks = {user = 65534}\n");
    desk.ends("apply {d}/own.toml {s}", 0);
    says(&desk.ends("status -v {s}", 0), &["cgroup.procs", "user 65534"]);
    let status = desk.json("status --json {s}", 0);
    let file = status["groups"][0]["owners"][0]["file"].as_str().unwrap().to_owned();
    std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    let told = desk.ends("status {s}", 3);
    says(&told, &[&format!("{file}: applied user 65534, now user 0")]);
    assert_eq!(desk.json("status --json {s}", 3)["groups"][0]["drift"][0]["drift"], "owner");
    desk.ends("apply {d}/own.toml {s}", 0);
    desk.ends("status {s}", 0);
}

fn damaged(desk: &mut Desk) {
    desk.ends("apply {d}/l.toml {s}", 0);
    fs::write(desk.path("state/generations/0002.jsonl"), "x\n").unwrap();
    rewrite(desk, "0001.jsonl", "0003.jsonl", |head| head["generation"] = 3.into(), None);
    let told = desk.ends("history {s}", 0);
    let file = |name: &str| desk.path("state/generations").join(name).to_str().unwrap().to_owned();
    says(&told, &["*  1  ", "  done  ", "   2  damaged\n", "   3  damaged\n", "its end is missing"]);
    says(
        &told,
        &[&format!("to continue without what it recorded: mv {0} {0}.damaged; ", file("0002.jsonl"))],
    );
    assert_eq!(desk.json("history --json {s}", 0)[1]["state"], "damaged");
    fs::remove_file(file("0003.jsonl")).unwrap();
    let (code, _, error) = desk.run("status {s}");
    assert_eq!(code, 1);
    says(&error, &[&file("0002.jsonl"), "it is damaged", "then compare: ringfence status LAYOUT"]);
    fs::rename(file("0002.jsonl"), file("0002.jsonl") + ".damaged").unwrap();
    desk.ends("status {s} {d}/l.toml", 0);
}

fn failed_as_json(desk: &mut Desk) {
    desk.write("bad.toml", "[groups.{g}]\npids.max = \"many\"\n");
    for line in ["plan --json {d}/bad.toml", "apply --json {d}/bad.toml {s}"] {
        let answer = desk.json(line, 2);
        let error = &answer["error"];
        says(error["message"].as_str().unwrap(), &["bad.toml has 1 error"]);
        says(error["place"]["file"].as_str().unwrap(), &["bad.toml"]);
        assert_eq!((&error["place"]["line"], &error["place"]["column"]), (&2.into(), &12.into()));
        assert_eq!(answer["diagnostics"].as_array().unwrap().len(), 1, "{answer}");
    }
    let answer = desk.json("undo --json {s}", 1);
    says(answer["error"]["hint"].as_str().unwrap(), &["if there were records before", "ringfence list"]);
    for line in ["import {d}/l.toml", "export --to cgset {d}/l.toml"] {
        let answer = desk.json(&format!("{line} --json"), 0);
        assert_eq!((&answer["text"], answer["diagnostics"].is_array()), (&desk.ends(line, 0).into(), true));
    }
}

fn interrupted(desk: &mut Desk) {
    // one that is done before the signal comes is no trial: then more is requested
    for (round, count) in [400, 1600, 6400].into_iter().enumerate() {
        let group = |index: usize| format!("[groups.\"{{g}}/{index}\"]\npids.max = 10\n");
        desk.write("many.toml", &(0..count).map(group).collect::<String>());
        let child = desk.spawn("apply {d}/many.toml {s}");
        let [journal, done] = ["journal", "jsonl"]
            .map(|suffix| desk.path(&format!("state/generations/{:04}.{suffix}", 2 * round + 1)));
        desk.scene.until("the journal", || journal.exists() || done.exists());
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, Signal::INT).unwrap();
        let (code, _, error) = answer(child.wait_with_output().unwrap());
        if code == 0 {
            desk.ends("undo {s}", 0);
            continue;
        }
        assert_eq!(code, 130, "{error}");
        says(&error, &["rolled back because interrupted, ", " steps done: all is as before"]);
        assert_eq!(desk.groups(), [""; 0]);
        let told = desk.ends("history {s}", 0);
        says(&told, &["  rolled back  ", "      interrupted\n"]);
        desk.ends("apply {d}/l.toml {s}", 0);
        return;
    }
    panic!("every apply ended before it was interrupted");
}

fn json(desk: &mut Desk) {
    assert_eq!(desk.json("check --json {d}/l.toml", 0)["diagnostics"], Value::Array(Vec::new()));
    let plan = desk.json("plan --json {d}/l.toml", 0);
    let steps = plan["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["why"].as_str().is_some_and(|why| !why.is_empty())), "{plan}");
    assert_eq!(desk.json("history --json {s}", 0), Value::Array(Vec::new()));
    let outcome = desk.json("apply --json --confirm 60 {d}/l.toml {s}", 0);
    assert_eq!((&outcome["generation"], &outcome["step_count"]), (&1.into(), &steps.len().into()));
    assert_eq!(outcome["undone_unless_confirmed_within_sec"], 60);
    assert_eq!(desk.json("confirm --json {s}", 0)["confirmed"], 1);
    desk.scene.ok("set {g} pids.max=77");
    let status = desk.json("status --json {s} {d}/l.toml", 3);
    assert_eq!(status["drift"], true);
    assert_eq!(status["plan"]["steps"].as_array().unwrap().len(), 1);
    let groups = status["groups"].as_array().unwrap();
    let top = groups.iter().find(|group| group["group"] == desk.scene.group.as_str()).unwrap();
    assert_eq!(top["drift"][0]["drift"], "changed");
    assert_eq!((&top["drift"][0]["requested"], &top["drift"][0]["actual"]), (&"100".into(), &"77".into()));
    let directories = top["directories"].as_array().unwrap();
    assert!(directories.iter().all(|path| path.as_str().unwrap().ends_with(&desk.scene.group)), "{top}");
    let undone = desk.json("undo --json {s}", 0);
    assert_eq!(undone["generation"], 2);
    let history = desk.json("history --json {s}", 0);
    assert_eq!(history[1]["head"]["kind"], "undo");
    assert_eq!(history[0]["result"]["ending"], "done");
    for at in [&history[0]["head"]["at"], &history[0]["result"]["at"]] {
        assert!(at.as_str().unwrap().ends_with('Z') && at.as_str().unwrap().len() == 20, "{at}");
    }
    assert_eq!(history[0]["head"]["confirm_within_sec"], 60);
    assert!(top["memory_bytes"].is_u64() && top.get("memory").is_none(), "{top}");
    let schema: Value = serde_json::from_str(&desk.ends("schema layout", 0)).unwrap();
    assert_eq!(schema["title"], "Ringfence layout");
}

fn drawn(desk: &mut Desk) {
    desk.ends("apply {d}/l.toml {s}", 0);
    let text = desk.ends("status --svg {s}", 0);
    let drawing = roxmltree::Document::parse(&text).unwrap();
    let texts: Vec<&str> = drawing.descendants().filter_map(|node| node.text()).collect();
    let named = |group: &str| texts.iter().any(|text| text.contains(&desk.scene.fill(group)));
    assert!(named("{g}/a") && named("{g}/b"), "{texts:?}");
    assert_eq!(drawing.root_element().tag_name().name(), "svg");
    assert!(text.contains(" g0") && text.contains(" g1"), "two groups have two colours");
    assert_eq!(desk.run("status --svg --json {s}").0, 2);
}

fn cgconfig(desk: &mut Desk) {
    desk.write(
        "cgconfig.conf",
        "
group {g} {
    perm {
        task { uid = 1000; gid = 1000; }
        admin { uid = 0; gid = 0; }
    }
    cpuset { cpuset.cpus = 0; cpuset.mems = 0; }
    memory { memory.limit_in_bytes = 64M; }
}
",
    );
    says(&desk.ends("check {d}/cgconfig.conf", 0), &["1 group, 0 rules: no error"]);
    desk.ends("apply {d}/cgconfig.conf {s}", 0);
    assert_eq!(desk.scene.ok("get --values {g} memory.max").trim(), "64M");
    desk.ends("status {s}", 0);
    desk.write("imported.toml", &desk.ends("import {d}/cgconfig.conf", 0));
    // the group of a layout is in every hierarchy of v1, that of libcgroup's file where it is named
    let plan = desk.json("plan --json {d}/imported.toml {s}", 0);
    let is_new = |step: &&Value| step["action"] == "create-group" || step["action"] == "set-ownership";
    assert!(plan["steps"].as_array().unwrap().iter().all(|step| is_new(&step)), "{plan:#}");
    desk.ends("apply {d}/imported.toml {s}", 0);
    let commands = desk.ends("export {d}/imported.toml --to cgset", 0);
    let set = desk.scene.fill("cgset -r memory.limit_in_bytes=67108864 {g}\n");
    says(&commands, &["cgcreate -g cpuset,memory:", &set]);
    let config = desk.ends("export {d}/imported.toml --to cgconfig", 0);
    says(&config, &[&desk.scene.fill("group {g} {"), "uid = 1000;"]);
    desk.ends("undo 0 {s}", 0);
    assert_eq!(desk.run("list {g}").0, 1);
}
