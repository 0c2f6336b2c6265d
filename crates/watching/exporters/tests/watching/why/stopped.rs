//! Work that could not be done at all: frozen groups, groups without CPUs, limits of tasks.

use libtest_mimic::Trial;
use settings::{Controller, Version};
use why::{Effect, Kind};

use super::{
    stage::{Stage, number, version},
    trial, trial_where,
};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("why: a frozen group is the first cause", frozen),
        trial("why: a frozen group below is the first cause, not I/O", frozen_below),
        trial("why: a limit of tasks is the first cause", forks),
    ];
    // on v2 a group without CPUs of its own has those of the group above, and may have them to itself
    let is_v1 = version(Controller::Cpuset) == Some(Version::V1);
    let (on_v1, on_v2) = ((!is_v1).then_some("cpuset on v1"), is_v1.then_some("cpuset on v2"));
    trials.push(trial_where("why: a group without CPUs takes no tasks", on_v1, no_cpus));
    let invalid = "why: a partition that became invalid is named, and made valid by the command";
    trials.push(trial_where(invalid, on_v2, partition));
    trials
}

fn no_cpus() {
    let stage = Stage::new("none");
    stage.make("a");
    let seat = stage.host.seat(&stage.group("a"), Controller::Cpuset).unwrap();
    stage.host.kernel().write(seat.at, &seat.path, "cpuset.cpus", "\n").unwrap();
    let cause = stage.first("a", Kind::NoCpus);
    assert_eq!(cause.effect, Effect::Refused);
    assert_eq!(stage.value("a", "cpuset.cpus"), stage.cpus().to_string());
}

fn partition() {
    let (stage, beside) = (Stage::new("partition"), Stage::new("beside-partition"));
    let cpus: Vec<usize> = stage.cpus().iter().take(3).collect();
    let [own, shared, other] = cpus[..] else { return }; // too few to be shared
    stage.set("", &format!("cpuset.cpus={own},{shared}"));
    stage.set("", "cpuset.cpus.partition=root");
    assert_eq!(stage.answer("").notes, []);
    beside.set("", &format!("cpuset.cpus={shared},{other}"));
    let note = stage.answer("").notes.first().cloned().expect("a note of the invalid partition");
    assert!(note.sentence.contains("'root invalid (Cpu list in cpuset.cpus not exclusive)'"), "{note:?}");
    assert!(note.sentence.contains(&beside.name("")), "{note:?}");
    stage.obey(note.hint.as_ref().unwrap());
    assert_eq!(stage.value("", "cpuset.cpus.partition"), "root");
    assert_eq!(stage.answer("").notes, []);
}

fn frozen() {
    let stage = Stage::new("frozen");
    stage.make("a");
    let _load = stage.start("a", &["spin"]);
    stage.freeze("", true);
    let cause = stage.first("a", Kind::Frozen);
    assert_eq!((cause.at, cause.effect), (stage.name(""), Effect::Stopped));
    assert!(cause.share > Some(0.95), "tasks that stand still wait for nothing else: {:?}", cause.share);
    // it runs again
    stage.facts_when("a", "the thawed task runs", |facts| !facts.cpu.used.is_zero());
}

/// Issue R: v2 said nothing of it, and on v1 its tasks looked as if they waited for a disk.
fn frozen_below() {
    let stage = Stage::new("frozen-below");
    stage.make("a");
    stage.make("a/$(b)");
    // on v2 a group with groups that have controllers has no processes of its own
    stage.make("a/c");
    let _beside = stage.start("a/c", &["spin"]);
    let _load = stage.start("a/$(b)", &["spin"]);
    stage.freeze("a/$(b)", true);
    let answer = stage.answer("a");
    assert!(
        !answer.causes.iter().any(|cause| matches!(cause.kind, Kind::Device | Kind::IoNeighbours)),
        "{answer}"
    );
    let cause = stage.first("a", Kind::Frozen);
    assert_eq!((cause.at, cause.effect), (stage.name("a/$(b)"), Effect::Stopped));
    assert_eq!(cause.hint.unwrap(), format!("ringfence thaw '{}'", stage.name("a/$(b)")));
    stage.facts_when("a", "nothing is frozen", |facts| facts.frozen_parts.is_empty());
}

fn forks() {
    let stage = Stage::new("pids");
    let mut load = stage.start("", &["fork"]);
    assert!(load.is_done()); // its own thread is there
    stage.set("", "pids.max=1");
    let facts = stage.facts_when("", "a fork failed", |facts| facts.levels[0].failed_forks > 0);
    let cause = stage.first_in(&facts, Kind::PidsLimit);
    assert!(number(&cause, "pids.events.max") > 0.0);
    assert_eq!(stage.value("", "pids.max"), "8");
}
