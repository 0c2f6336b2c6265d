//! Time without memory: limits, swap, remote nodes; and kills.

use libtest_mimic::Trial;
use settings::{Controller, Version};
use why::{Certainty, Facts, Kind, why};

use super::{
    disk::{Data, Swap},
    stage::{Stage, is_not_of_cpus, number, version},
    trial, trial_where,
};
use crate::load::Load;

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("why: killed processes are the first cause", killed),
        trial("why: pages that a limit makes come again are the first cause", reclaim),
        trial("why: memory that comes back from swap is the first cause", swapped),
    ];
    let is_v1 = version(Controller::Memory) == Some(Version::V1);
    let (on_v1, on_v2) = ((!is_v1).then_some("memory on v1"), is_v1.then_some("memory on v2"));
    let bound = "why: pages that come again are the first cause where no pressure is counted too";
    trials.push(trial_where(bound, on_v1, reclaim_bound));
    let waits = "why: tasks that wait for memory as nobody may be killed are no wait for a disk";
    trials.push(trial_where(waits, on_v1, stopped));
    trials.push(trial_where("why: memory.high is the first cause, by its own name", on_v2, high));
    let nodes = (nodes().len() < 2).then_some("2 nodes with CPUs");
    trials.push(trial_where("why: memory on another node is the first cause", nodes, remote));
    trials
}

/// The nodes that have CPUs, each with them.
fn nodes() -> Vec<(usize, units::CpuSet)> {
    let list = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let all: units::NodeSet = list("/sys/devices/system/node/online").parse().unwrap_or_default();
    let cpus = |node: usize| -> Option<units::CpuSet> {
        list(&format!("/sys/devices/system/node/node{node}/cpulist")).parse().ok()
    };
    all.iter().filter_map(|node| Some((node, cpus(node)?))).filter(|(_, cpus)| !cpus.is_empty()).collect()
}

fn killed() {
    let stage = Stage::new("killed");
    stage.set("", "memory.max=24M");
    stage.limit_swap("", "24M");
    let _load = stage.start("", &["outgrow", "64"]);
    let facts = stage.facts_when("", "a process was killed", |facts| facts.levels[0].oom_kills > 0);
    let cause = stage.first_in(&facts, Kind::OutOfMemory);
    assert!(number(&cause, "memory.events.oom_kill") > 0.0);
    assert_eq!(stage.value("", "memory.max"), "36M");
}

/// Fault G4: `memory.oom_control` stops a task in place of killing it. What is advised lets it go on.
fn stopped() {
    let stage = Stage::new("stopped");
    stage.make("a");
    stage.make("a/b");
    stage.set("a", "memory.max=24M");
    stage.limit_swap("a", "24M");
    stage.set("a", "memory.oom_control=1");
    let mut load = stage.start("a/b", &["take", "32"]);
    for group in ["a/b", "a", ""] {
        let is_seen = |facts: &Facts| facts.memory_stops.iter().any(|stop| stop.stopped == (true, true));
        let facts = stage.facts_when(group, "a task waits for memory", is_seen);
        let answer = why(&facts);
        assert_eq!(answer.causes[0].kind, Kind::MemoryStop, "{answer}");
        assert_eq!(answer.causes[0].at, stage.name("a"));
        assert!(!answer.causes.iter().any(|cause| cause.kind == Kind::Device), "{answer}");
    }
    stage.first("a/b", Kind::MemoryStop);
    assert_eq!(stage.value("a", "memory.max"), "36M");
    assert!(load.is_done());
}

/// Reads more than the limit lets stay, and looks until pages have come again.
fn reread(stage: &Stage, limit: &str, also: fn(&Stage)) -> (Facts, Data, Load) {
    let data = Data::new();
    stage.set("", limit);
    also(stage);
    let load = stage.start("", &["reread", data.path(), &Data::MIB.to_string()]);
    let facts = stage.facts_when("", "as much came again as may stay", |facts| {
        facts.memory.refaults_file >= (16 << 20) / 4096
    });
    (facts, data, load)
}

fn reclaim() {
    let stage = Stage::new("reclaim").with_pressure();
    let (facts, ..) = reread(&stage, "memory.max=16M", |_| ());
    let cause = stage.first_but_cpus(&facts, Kind::MemoryLimit);
    assert!(number(&cause, "memory.events.max") > 0.0);
    assert!(number(&cause, "memory.refaults.file") > 0.0);
    assert_eq!(stage.value("", "memory.max"), "24M");
}

/// What is waited for the pages is seen by the tasks' states, and the machine's pressure bounds it.
fn reclaim_bound() {
    let stage = Stage::new("bound");
    let (facts, ..) = reread(&stage, "memory.max=16M", |stage| stage.limit_swap("", "16M"));
    assert_eq!(facts.memory.pressure, None);
    let answer = why(&facts);
    let cause = answer.causes.iter().find(|cause| is_not_of_cpus(cause));
    let cause = cause.unwrap_or_else(|| panic!("no cause: {facts:#?}"));
    assert_eq!(cause.kind, Kind::MemoryLimit, "{answer}\n{facts:#?}");
    assert_ne!(cause.lost.unwrap().known, Certainty::Measured);
}

fn high() {
    let stage = Stage::new("high");
    let (facts, ..) = reread(&stage, "memory.high=16M", |_| ());
    let cause = stage.first_but_cpus(&facts, Kind::MemoryLimit);
    assert!(cause.sentence.starts_with("its memory.high (16 MiB) was met"), "{}", cause.sentence);
    assert_eq!(stage.value("", "memory.high"), "24M");
}

fn swapped() {
    let Some(_swap) = Swap::new() else { return };
    let stage = Stage::new("swap").with_pressure();
    stage.set("", "memory.max=16M");
    let _load = stage.start("", &["touch", "32"]);
    let facts = stage.facts_when("", "pages came back from swap", |facts| facts.memory.refaults_anon > 1000);
    let cause = stage.first_but_cpus(&facts, Kind::Swap);
    assert!(number(&cause, "memory.refaults.anon") > 0.0);
    assert!(number(&cause, "memory.swap") > 0.0);
}

/// CPUs of one node, memory of another; the command brings the memory that is there already.
fn remote() {
    let stage = Stage::new("remote");
    let (near, far) = (&nodes()[0], nodes()[1].0);
    stage.set("", &format!("cpuset.cpus={}", near.1));
    stage.set("", &format!("cpuset.mems={far}"));
    let _load = stage.start("", &["touch", "32"]);
    stage.facts_when("", "the memory is taken", |facts| facts.memory.current >= 32 << 20);
    let cause = stage.first_but_cpus(&stage.facts(""), Kind::RemoteMemory);
    assert!(cause.sentence.contains(&format!("on node {far} (distance ")), "{}", cause.sentence);
    assert!(number(&cause, "remote") >= f64::from(30 << 20), "{cause:?}");
    assert_eq!(stage.value("", "cpuset.mems"), near.0.to_string());
    let is_remote = |facts: &Facts| why(facts).causes.iter().any(|cause| cause.kind == Kind::RemoteMemory);
    stage.facts_when("", "the memory is near", |facts| !is_remote(facts));
}
