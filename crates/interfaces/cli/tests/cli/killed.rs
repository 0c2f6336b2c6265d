//! `apply --confirm` with kill -9 at each system call that changes something: of the command, of the process that reverts
//! it, of both, and of the daemon that takes over. After the deadline, and the next command where nobody is left to
//! revert, every file of every group is as it was before, and until then `status` says what is still in effect.
//!
//! A sample of the calls; all of them with `RF_ALL=1`.

use std::{collections::BTreeMap, fs, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    tracer::{self, Fault, Rule, Seen, changes},
    undoable::{Stage, all_of_them},
    world::{Need, World},
};

type Case = (&'static str, fn(&Stage, usize) -> Seen);

const CASES: &[Case] = &[
    ("of apply", apply_killed),
    ("of apply and of the process that reverts", both_killed),
    ("of the process that reverts", reverter_killed),
    ("of the daemon that takes over", daemon_killed),
    ("of set", set_killed),
];

/// The deadline. It is over soon after whoever should have changed something was killed.
const WITHIN: &str = "1s";
/// How many calls of each case are tried here, and on an emulated machine; and how many of the last, which decide
/// whether it counts as done.
const SAMPLE: (usize, usize) = (7, 2);
const LAST: (usize, usize) = (4, 2);

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, case): &Case| {
        let (lacks, world) = (world.lacks(&[Need::Usual]), world.clone());
        let name = format!("kill -9 {name} at any change leaves all as before");
        suite::trial(name.clone(), lacks, move || at_each_change(&world, &name, case))
    };
    CASES.iter().map(trial).collect()
}

fn at_each_change(world: &Arc<World>, name: &str, case: fn(&Stage, usize) -> Seen) {
    let stage = Stage::new(world, name);
    let calls = checked(&stage, usize::MAX, case).calls.len();
    assert!(calls > 20, "{calls} changes are too few to tell anything");
    let (sample, last) = if world.has(Need::OwnMachine) { (SAMPLE.1, LAST.1) } else { (SAMPLE.0, LAST.0) };
    let all = all_of_them();
    let step = if all { 1 } else { calls.div_ceil(sample) };
    let last = calls.saturating_sub(if all { 0 } else { last });
    let points = (0..last).step_by(step).chain(last..calls);
    let mut killed = BTreeMap::<&str, usize>::new();
    for at in points {
        if let Some(call) = checked(&stage, at, case).hit {
            *killed.entry(call).or_default() += 1;
        }
    }
    let count: usize = killed.values().sum();
    eprintln!("{name}: {calls} calls, killed at {count} of them, all as before: {killed:?}");
    assert!(count + 2 >= calls.div_ceil(step), "killed {count} times only");
}

/// One run of a case, after which everything must be as before.
fn checked(stage: &Stage, at: usize, case: fn(&Stage, usize) -> Seen) -> Seen {
    let _ = fs::remove_dir_all(stage.desk.path("state"));
    let seen = case(stage, at);
    let what = format!("killed at call {at}, {:?}", seen.hit);
    if let Some(differing) = stage.differing() {
        // nobody is left to take it back: that shows until the next command does
        let mut said = String::new();
        stage.desk.scene.until(&format!("{what}: {differing}; status says exit 3 and not {said}"), || {
            let (code, out, error) = stage.desk.run("status {s}");
            said = format!("{code}: {out}{error}");
            let words = ["was interrupted", "not confirmed in time", "was done when process"];
            code == 3 && words.iter().any(|words| out.contains(words))
        });
    }
    // there is nothing else to undo: this only ends what others left behind, but for a change that was done and whose
    // time is not over
    let (code, out, error) = stage.desk.run("undo {s}");
    let is_ours = error.contains("generation 1 was done when its process ended, and is in effect")
        || out.contains("the last change is undone");
    assert!(
        code == 0 && is_ours || code == 1 && error.contains("nothing to undo"),
        "{what}: {code} {out}{error}"
    );
    assert_eq!(stage.differing(), None, "{what}: {error}");
    let history = stage.desk.ends("history {s}", 0);
    assert!(!history.contains("partly") && !history.contains("in part"), "{what}: {history}");
    let (code, out, error) = stage.desk.run("status {s}");
    assert_eq!(code, 0, "{what}: {out}{error}");
    seen
}

fn applied(stage: &Stage, rule: Rule) -> Seen {
    let words = stage.words(&format!("apply {{d}}/l.toml {{s}} --confirm {WITHIN}"));
    tracer::run(words, &stage.desk.path("out"), rule).1.join().unwrap()
}

fn apply_killed(stage: &Stage, at: usize) -> Seen {
    let seen = applied(stage, killed("apply", at));
    stage.desk.scene.until("the end of the process that reverts", || stage.desk.reverters().is_empty());
    // it needs no other command
    assert_eq!(stage.differing(), None, "{:?}", seen.hit);
    seen
}

fn both_killed(stage: &Stage, at: usize) -> Seen {
    let seen = applied(stage, killed("apply", at));
    stage.desk.kill_reverters();
    seen
}

fn reverter_killed(stage: &Stage, at: usize) -> Seen {
    applied(stage, Rule { is_child: true, ..killed("revert-unless-confirmed", at) })
}

/// Several values, which one write after the other sets.
fn set_killed(stage: &Stage, at: usize) -> Seen {
    let words = stage.words("set {g}/old pids.max=9 cpu.weight=70 memory.max=32M --quiet {s}");
    let seen = tracer::run(words, &stage.desk.path("out"), killed("set", at)).1.join().unwrap();
    // nobody waits for a confirmation: what is done is done
    let history = stage.desk.json("history --json {s}", 0);
    if history.as_array().unwrap().last().is_some_and(|last| last["state"] == "done") {
        stage.desk.ends("undo {s}", 0);
    }
    seen
}

fn daemon_killed(stage: &Stage, at: usize) -> Seen {
    stage.desk.ends(&format!("apply {{d}}/l.toml {{s}} --confirm {WITHIN}"), 0);
    stage.desk.kill_reverters();
    let line = "daemon --rules {d}/none.conf --no-socket --no-strict --check 0 {s}";
    let (started, daemon) = tracer::run(stage.words(line), &stage.desk.path("log"), killed("daemon", at));
    let pid = Pid::from_raw(i32::try_from(started.recv().unwrap()).unwrap()).unwrap();
    let is_under_way = || stage.desk.path("state/generations/0002.journal").exists();
    let is_done = || stage.desk.path("state/generations/0002.jsonl").exists() && !is_under_way();
    stage.desk.scene.until("the daemon's turn", || daemon.is_finished() || is_done());
    if !daemon.is_finished() {
        assert_eq!(stage.differing(), None);
        let _ = kill_process(pid, Signal::KILL); // it waits for the next change
    }
    daemon.join().unwrap()
}

fn killed(word: &'static str, at: usize) -> Rule {
    Rule { word, is_child: false, counts: changes, at, fault: Fault::Kill }
}
