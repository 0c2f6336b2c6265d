//! Completion, as bash does it for real (newcomers' finding B8); zsh and fish by what their scripts ask for.

use std::{fs, process::Command, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, says},
    world::{Need, World},
};

type Case = (&'static str, &'static [Need], fn(&mut Desk));

const CASES: &[Case] = &[
    ("bash completes commands, options and their values", &[Need::Program("bash")], definitions),
    ("bash completes settings, fields, controllers and studies", &[Need::Program("bash")], names),
    ("bash completes generations", &[Need::Program("bash")], generations),
    ("what zsh and fish ask for has the same names, with descriptions", &[], others),
    ("every shell's script calls this program", &[], scripts),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("completion: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    };
    let on_this_machine: [Case; 2] = [
        ("bash completes the groups of this machine", &[Need::Program("bash"), Need::Usual], groups),
        ("bash completes units in the place of groups", &[Need::Program("bash"), Need::Systemd], units),
    ];
    CASES.iter().chain(&on_this_machine).map(trial).collect()
}

/// What bash offers after `line`, of which the last word is being typed.
fn offered(desk: &Desk, line: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let bin = desk.path("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(desk.scene.program(), bin.join("ringfence")).unwrap();
    }
    // as bash's own completion calls a function: the words, the index, and the word itself as $2
    let script = r#"
source <(ringfence completions bash)
function=$(complete -p ringfence | sed 's/.*-F \([^ ]*\) .*/\1/')
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_TYPE=9
"$function" ringfence "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let words: Vec<String> = desk.scene.fill(line).split(' ').map(str::to_owned).collect();
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"])
        .args(words)
        .env("PATH", path)
        .envs(environment.iter().copied());
    let output = bash.current_dir(desk.path("")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn has(offered: &[String], wanted: &[&str]) {
    for name in wanted {
        assert!(offered.iter().any(|one| one == name), "no {name} in {offered:?}");
    }
}

fn definitions(desk: &mut Desk) {
    let commands = offered(desk, "ringfence ", &[]);
    has(&commands, &["create", "run", "plan", "status", "lab"]);
    assert!(!commands.iter().any(|name| name == "worker" || name.starts_with("revert")), "{commands:?}");
    assert_eq!(offered(desk, "ringfence pl", &[]), ["plan"]);
    has(&offered(desk, "ringfence apply --", &[]), &["--confirm", "--dry-run", "--file"]);
    assert_eq!(offered(desk, "ringfence export --to cgc", &[]), ["cgconfig"]);
    fs::write(desk.path("mine.toml"), "").unwrap();
    has(&offered(desk, "ringfence plan ", &[]), &["mine.toml"]);
}

fn names(desk: &mut Desk) {
    has(&offered(desk, "ringfence get db memory.m", &[]), &["memory.max", "memory.min"]);
    // v1's names where they are begun
    has(&offered(desk, "ringfence get db memory.limit", &[]), &["memory.limit_in_bytes"]);
    let settable = offered(desk, "ringfence set db memory.", &[]);
    has(&settable, &["memory.max="]);
    assert!(!settable.iter().any(|name| name.starts_with("memory.current")), "{settable:?}");
    // bash has `=` as a word of its own: a value follows, which has no list
    assert_eq!(offered(desk, "ringfence set db memory.max = ", &[]), [""; 0]);
    has(&offered(desk, "ringfence watch --fields cpu.u", &[]), &["cpu.usage"]);
    has(&offered(desk, "ringfence settings cpu.w", &[]), &["cpu.weight"]);
    has(&offered(desk, "ringfence create db -c cpu", &[]), &["cpu", "cpuset"]);
    has(&offered(desk, "ringfence lab show s", &[]), &["s2", "s1-numa"]);
    fs::write(desk.path("tower.toml"), "").unwrap();
    let both = offered(desk, "ringfence lab run to", &[]);
    has(&both, &["tour", "tower.toml"]);
}

fn groups(desk: &mut Desk) {
    desk.scene.ok("create {g}/one");
    desk.scene.ok("create {g}/two");
    desk.scene.ok("create '{g}/$(touch x)'");
    let found = offered(desk, "ringfence get {g}", &[]);
    // a shell would run what is in the third's name
    let fill = |name: &str| desk.scene.fill(name);
    assert_eq!(found, [fill("{g}"), fill("{g}/one"), fill("{g}/two")]);
    has(&offered(desk, "ringfence why {g}/o", &[]), &[&fill("{g}/one")]);
    has(&offered(desk, "ringfence rm {g}/o", &[]), &[&fill("{g}/one")]);
    has(&offered(desk, "ringfence set {g}/two --from {g}/o", &[]), &[&fill("{g}/one")]);
    has(&offered(desk, "ringfence status {g}/t", &[]), &[&fill("{g}/two")]);
    assert!(!desk.path("x").exists());
}

fn units(desk: &mut Desk) {
    for command in ["get", "why", "watch", "status", "move", "top"] {
        has(
            &offered(desk, &format!("ringfence {command} system"), &[]),
            &["system.slice", "systemd-journald.service"],
        );
    }
    assert!(!offered(desk, "ringfence create system", &[]).contains(&"system.slice".to_owned()));
}

fn generations(desk: &mut Desk) {
    let state = desk.path("state");
    let state = state.to_str().unwrap();
    let found = offered(desk, "ringfence undo ", &[("RINGFENCE_STATE", state)]);
    assert!(found.iter().all(|name| name.starts_with('-')), "{found:?}");
    // one that no reader understands has a number all the same
    fs::create_dir_all(desk.path("state/generations")).unwrap();
    fs::write(desk.path("state/generations/0007.jsonl"), "x\n").unwrap();
    has(&offered(desk, "ringfence undo ", &[("RINGFENCE_STATE", state)]), &["7"]);
    assert_eq!(offered(desk, "ringfence confirm 7", &[("RINGFENCE_STATE", state)]), ["7"]);
}

fn others(desk: &mut Desk) {
    for (shell, index) in [("zsh", Some("3")), ("fish", None)] {
        let mut command = Command::new(desk.scene.program());
        command.args(["--", "ringfence", "get", "db", "memory.ma"]).env("_RINGFENCE_COMPLETE", shell);
        if let Some(index) = index {
            command.env("_CLAP_COMPLETE_INDEX", index);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{shell}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("memory.max") && text.trim().len() > "memory.max".len() + 5,
            "{shell}: {text}"
        );
    }
}

fn scripts(desk: &mut Desk) {
    for (shell, part) in [("bash", "complete "), ("zsh", "#compdef ringfence"), ("fish", "complete ")] {
        says(&desk.ends(&format!("completions {shell}"), 0), &[part, "_RINGFENCE_COMPLETE", "ringfence"]);
    }
}
