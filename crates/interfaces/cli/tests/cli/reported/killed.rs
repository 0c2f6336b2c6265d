//! Processes that the kernel killed for want of memory: named by `why` after they are gone, and only these.

use std::{
    fs,
    process::Command,
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    desk::says,
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("each process that was killed for want of memory is named with its group and limit", by_name),
    row("those that go with their whole group are named, too", whole_group).needs(&[Need::V2("memory")]),
    row("a kill that ringfenced recorded is shown after the kernel's log has lost it", written),
    row("kills by systemd-oomd are counted separately", by_oomd).needs(&[Need::V2("memory")]),
];

/// The kernel says ten times in this time why it kills.
const RATE_LIMITED: Duration = Duration::from_secs(6);

fn limited(stage: &Stage<'_>, group: &str, at: &str) {
    stage.desk.scene.ok(&format!("create {group}"));
    let _ = stage.desk.run("set {g} cpuset.cpus=0 cpuset.mems=0");
    let _ = stage.desk.run("set --recursive {g} cpuset.cpus=0 cpuset.mems=0");
    stage.desk.scene.ok(&format!("set {at} memory.max=32M"));
    let no_swap = if stage.is_v1("memory") { "memory.memsw.limit_in_bytes=32M" } else { "memory.swap.max=0" };
    let _ = stage.desk.run(&format!("set {at} {no_swap}")); // a kernel without swap has neither
}

/// Starts a process in the group that takes memory until it is killed: its number.
fn outgrow(stage: &Stage<'_>, group: &str) -> u64 {
    let (code, out, error) = stage.desk.run(&format!("run {group} -- sh -c 'echo $$; exec tail /dev/zero'"));
    // where the program took our place there is nobody to translate the signal
    assert!([137, -1].contains(&code), "{out}{error}");
    out.trim().parse().unwrap()
}

fn kills(stage: &Stage<'_>, group: &str) -> Vec<Value> {
    let answer = stage.desk.json(&format!("why {group} --for 100ms --json"), 0);
    answer["kills"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

fn by_name(stage: &mut Stage<'_>) {
    // of the last one the group above has the limit
    let groups = [("{g}/a", "{g}/a"), ("{g}/b", "{g}/b"), ("{g}/c", "{g}/c"), ("{g}/p/d", "{g}/p")];
    for (group, at) in groups {
        limited(stage, group, at);
    }
    let mut killed: Vec<(usize, u64)> = Vec::new();
    while killed.len() < 10 {
        let number = killed.len() % groups.len();
        let pid = outgrow(stage, groups[number].0);
        // it may be one too many at once, of which the kernel logs no group
        match kills(stage, groups[number].0).iter().any(|kill| kill["pid"] == pid) {
            true => killed.push((number, pid)),
            false => sleep(RATE_LIMITED),
        }
    }
    // what ends otherwise is none of them
    let (code, other, _) = stage.desk.run("run {g}/a -- sh -c 'echo $$; kill -9 $$'");
    assert!([137, -1].contains(&code));
    for (number, (group, at)) in groups.into_iter().enumerate() {
        let all = kills(stage, group);
        let own = killed.iter().filter(|(of, _)| *of == number).map(|(_, pid)| *pid);
        assert_eq!(
            all.iter().map(|kill| kill["pid"].as_u64().unwrap()).collect::<Vec<_>>(),
            own.collect::<Vec<_>>()
        );
        for kill in &all {
            let ends = |of: &str, with: &str| {
                kill[of].as_str().is_some_and(|path| path.ends_with(&stage.fill(with)))
            };
            assert!(ends("group", group) && ends("limited", at), "{kill}");
            assert_eq!(
                (&kill["comm"], &kill["uid"], &kill["with_group"]),
                (&"tail".into(), &0.into(), &false.into())
            );
            assert_eq!(kill["limit_bytes"], 32 << 20, "{kill}");
            assert!(kill["resident_bytes"].as_u64().unwrap() > 8 << 20, "{kill}");
        }
        let said = stage.desk.ends(&format!("why {group} --for 100ms"), 0);
        let pid = killed.iter().rfind(|(of, _)| *of == number).unwrap().1;
        says(&said, &[&format!("process {pid} (tail, user root) with ")]);
        says(&said, &[&stage.fill(&format!("was killed, as group '{at}' met its limit of memory (32M)"))]);
        assert!(!said.contains(&format!("process {} ", other.trim())), "{said}");
    }
    // the group above has them all
    assert_eq!(kills(stage, "{g}").len(), 10);
}

fn whole_group(stage: &mut Stage<'_>) {
    limited(stage, "{g}/all", "{g}/all");
    stage.desk.scene.ok("set {g}/all memory.oom.group=1");
    // all that are in it go at once
    let (beside, named) = loop {
        let beside = stage.sleeper("{beside}", "{g}/all");
        let pid = outgrow(stage, "{g}/all");
        let named = kills(stage, "{g}/all");
        if named.iter().any(|kill| kill["pid"] == pid) {
            break (beside, named);
        }
        sleep(RATE_LIMITED);
    };
    let of = |pid: u32| named.iter().find(|kill| kill["pid"] == pid);
    assert_eq!(of(beside).unwrap_or_else(|| panic!("{named:?}"))["with_group"], true);
    says(
        &stage.desk.ends("why {g}/all --for 100ms", 0),
        &[&format!("process {beside} ("), "was killed, with its group (memory.oom.group), as group"],
    );
}

/// As ringfenced would have done it before the last boot.
fn written(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\nmemory.max = \"64M\"\n");
    // as the kernel names it: from the hierarchy's root
    let path = format!(
        "/{}",
        stage.directory("{g}", "memory").strip_prefix(stage.mount("memory")).unwrap().display()
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() * 1000;
    let kill = |at: u64, pid: u32, group: &str| {
        json!({
            "boot": "an earlier one", "number": pid, "at": at, "pid": pid, "comm": "python3", "uid": 0,
            "resident": 60 << 20, "group": group, "limited": path, "limit": 64 << 20, "with_group": false,
        })
    };
    let below = format!("{path}/etl");
    let lines = [kill(1000, 4711, &path), kill(now, 4712, &path), kill(now + 1000, 4713, &below)];
    let lines = lines.map(|kill| kill.to_string()).join("\n") + "\nno kill\n";
    fs::create_dir_all(stage.desk.path("state/kills")).unwrap();
    fs::write(stage.desk.path("state/kills/kills.jsonl"), lines).unwrap();
    let why = |more: &str| {
        let mut command = Command::new(stage.desk.scene.program());
        let line = stage.fill(&format!("why {{g}} --for 100ms {more}"));
        command.args(line.split_whitespace()).env("RINGFENCE_STATE", stage.desk.path("state"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    says(
        &why(""),
        &[
            "1970-01-01",
            "process 4713 (python3, user root) with 60M in memory was killed, as group '",
            "(64M)",
        ],
    );
    let answer: Value = serde_json::from_str(&why("--json")).unwrap();
    let pids: Vec<&Value> = answer["kills"].as_array().unwrap().iter().map(|kill| &kill["pid"]).collect();
    assert_eq!(pids, [4711, 4712, 4713]);
    // the first one was before the apply
    let status = stage.desk.ends("status {s}", 0);
    says(
        &status,
        &[
            "2 processes killed for want of memory since then, the last at ",
            &stage.fill("(4713 python3): ringfence why {g}\n"),
        ],
    );
    let killed = &stage.desk.json("status {s} --json", 0)["killed"];
    assert_eq!(
        (&killed[0]["processes"], &killed[0]["last"]["pid"], &killed[1]),
        (&2.into(), &4713.into(), &Value::Null)
    );
    assert_eq!(killed[0]["group"], stage.fill("{g}").as_str());
}

/// As systemd-oomd leaves it behind: none runs here.
fn by_oomd(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g}");
    assert_eq!(stage.desk.json("why {g} --for 100ms --json", 0)["killed_by_oomd"], 0);
    let directory = stage.directory("{g}", "memory");
    let set = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&directory, "user.oomd_kill", b"3", set).unwrap();
    says(&stage.desk.ends("why {g} --for 100ms", 0), &["systemd-oomd ended 3 processes of it"]);
    assert_eq!(stage.desk.json("why {g} --for 100ms --json", 0)["killed_by_oomd"], 3);
}
