//! What `plan`, `apply` and `status` advise, run where it was printed: the processes are where the words say after it.

use crate::{
    desk::answer,
    hints,
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("a layout in a directory is followed by the command that plan, apply and status print", directory),
    row("a group that does not exist leads to a new one only where that helps", missing),
    row("a quota below another one is raised as far as that one, then both", quotas)
        .needs(&[Need::On("cpu")]),
];

const LAYOUT: &str = "[groups.\"{g}\"]\npids.max = 500\nmatch = [{ command = \"^sleep 300[.]11\" }]\n";

/// The command of the hint that has these words, in what a command line prints.
fn advice(stage: &Stage<'_>, line: &str, words: &str) -> String {
    let (_, out, error) = stage.desk.run(line);
    let text = format!("{out}\n{error}");
    let hint = hints::hints(&text).into_iter().find(|hint| hint.contains(words));
    let hint = hint.unwrap_or_else(|| panic!("{line} prints no hint with {words}: {text}"));
    hints::command(hint).unwrap_or_else(|| panic!("no command in {hint}")).to_owned()
}

fn obey(stage: &Stage<'_>, command: &str) {
    let state = stage.desk.path("state");
    let (code, out, error) = answer(hints::obey(&stage.desk.scene.program(), command, Some(&state)));
    assert_eq!(code, 0, "{command}: {out}{error}");
}

/// A database's day, fault F9: "DIR is no regular file". Also of more processes than a hint names.
fn directory(stage: &mut Stage<'_>) {
    stage.desk.write("dir/layout.toml", LAYOUT);
    stage.desk.ends("apply {d}/dir {s}", 0);
    for more in [2, 10] {
        let new = |_| stage.desk.scene.start("{one}", &["sleep", "300.11"]);
        let pids: Vec<u32> = (0..more).map(new).collect();
        for line in ["plan {d}/dir {s}", "apply {d}/dir {s}", "status {s}"] {
            pids.iter().for_each(|pid| stage.free(*pid));
            let command = advice(stage, line, "classify --rules");
            obey(stage, &command);
            for pid in &pids {
                assert!(stage.is_in(*pid, "{g}", "pids"), "{pid} after {line}: {command}");
            }
        }
        pids.iter().for_each(|pid| stage.free(*pid));
        for pid in pids {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        }
    }
}

/// v1 refuses a quota above the parent's, and on v2 it gains nothing.
fn quotas(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g}/q");
    stage.desk.scene.ok("set {g} cpu.max=30%");
    stage.desk.scene.ok("set {g}/q cpu.max=20%");
    stage.desk.scene.start("{one}", &["sh", "-c", "while :; do :; done"]);
    stage.desk.scene.ok("move {g}/q {one}");
    let is_limited = |stage: &Stage<'_>, group: &str| {
        stage.desk.scene.ok(&format!("get --values {group} cpu.max")).starts_with("30000 ")
    };
    obey(stage, &advice(stage, "why {g}/q --for 1s", "cpu.max="));
    assert!(is_limited(stage, "{g}") && is_limited(stage, "{g}/q"));
    // the cause is the quota of either, and the advice is about the group above first
    for round in 0.. {
        assert!(round < 3, "{}", stage.desk.scene.ok("why {g}/q --for 1s"));
        obey(stage, &advice(stage, "why {g}/q --for 1s", "cpu.max="));
        assert!(!is_limited(stage, "{g}"));
        if !is_limited(stage, "{g}/q") {
            break;
        }
    }
}

/// Fault C9: who deletes, reads, freezes or asks about a group that is not there wants no new one.
fn missing(stage: &mut Stage<'_>) {
    for line in ["delete {g}", "get {g} pids.max", "stat {g}", "freeze {g}", "kill {g}", "why {g}"] {
        let (code, _, error) = stage.desk.run(line);
        assert_eq!(code, 1, "{line}: {error}");
        let hint = hints::hints(&error).last().copied().unwrap_or_default().to_owned();
        assert!(hint.contains("ringfence list") && !hint.contains("create"), "{line}: {error}");
    }
    // a directory in the place of a name
    stage.desk.scene.ok("create {g}-rt -c pids");
    let directory = stage.directory("{g}-rt", "pids");
    let (_, _, error) = stage.desk.run(&format!("cgset -r pids.max=8 {}", directory.display()));
    let group = stage.fill("{g}-rt");
    assert!(error.contains(&format!("directory: {group}")) && !error.contains("create"), "{error}");
    stage.desk.ends("delete {g}-rt", 0);
    for line in ["set {g} pids.max=7", "run {g} -- true"] {
        let (_, _, error) = stage.desk.run(line);
        let hint = hints::hints(&error).last().copied().unwrap_or_default().to_owned();
        obey(stage, hints::command(&hint).unwrap_or_else(|| panic!("{line}: {error}")));
        let (code, _, error) = stage.desk.run(line);
        assert_eq!(code, 0, "{line}: {error}");
        stage.desk.ends("delete {g}", 0);
    }
}
