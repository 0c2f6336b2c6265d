//! What is not blamed: a group that sleeps, whatever its limits are and whatever others do; and limits that are not met.

use libtest_mimic::Trial;
use why::Kind;

use super::{
    disk::{Data, Disk},
    stage::Stage,
    trial,
};
use crate::load::Load;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("why: a group whose tasks sleep was slowed by nothing", nothing),
        trial("why: a group that sleeps below its limits is not slowed by its busy neighbours", idle_beside),
        trial("why: limits that are not met are not named for a group that works", below_limits),
    ]
}

fn assert_nothing(stage: &Stage, below: &str) {
    let answer = stage.answer(below);
    assert_eq!(answer.causes, [], "{answer}");
    let text = answer.to_string();
    assert!(text.contains("nothing slowed it down") && text.contains("used: cpu.usage "), "{text}");
}

fn nothing() {
    let stage = Stage::new("nothing").with_pressure();
    let _sleeping = stage.waiting("", &["spin"]);
    assert_nothing(&stage, "");
}

/// The neighbours use the same CPU and the same device, and are slowed by their own memory limit.
fn idle_beside() {
    let stage = Stage::new("idle");
    let cpu = stage.cpus().first().unwrap();
    let (data, device) = (Data::new(), Disk::new("idle"));
    for group in ["a", "hog"] {
        stage.make(group);
        stage.set(group, &format!("cpuset.cpus={cpu}"));
    }
    stage.set("a", "cpu.max=5%");
    stage.set("a", "memory.max=64M");
    stage.set("a", "pids.max=4");
    stage.set("a", &format!("io.max={} riops=20", device.number));
    let _sleeping = stage.waiting("a", &["spin"]);
    stage.set("hog", "memory.max=16M");
    let reread = ["reread", data.path(), &Data::MIB.to_string()];
    let _hogs: Vec<Load> = [&["spin", "2"][..], &["direct", &device.path], &reread]
        .iter()
        .map(|words| stage.start("hog", words))
        .collect();
    assert_nothing(&stage, "a");
}

/// It runs; what a busy machine makes it wait for is others' work.
fn below_limits() {
    let stage = Stage::new("below").with_pressure();
    stage.set("", "memory.max=256M");
    stage.set("", "pids.max=100");
    stage.set("", "cpu.max=400%");
    let mut load = stage.start("", &["touch", "16"]);
    assert!(load.is_done());
    let answer = stage.answer("");
    assert!(answer.causes.iter().all(|cause| cause.kind == Kind::Neighbours), "{answer}");
    assert!(answer.used[0].value > 0.0, "{answer}");
}
