//! Time waited for block devices: limits and neighbours.

use std::{io::ErrorKind, process::Command};

use fake::suite;
use libtest_mimic::{Completion, Failed, Trial};
use settings::{Controller, Version};
use why::{Cause, Certainty, Facts, Kind, why};

use super::{
    disk::Disk,
    stage::{Stage, number, version},
    trial, trial_where,
};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("why: a limit of I/O is the first cause", throttled),
        trial("why: others on the same device are named", io_neighbours),
        trial("why: a device that nobody else uses is the first cause", alone),
    ];
    trials.extend(ENGINES.map(|engine| {
        let name = format!("why: a limit of I/O is the first cause of a program that reads with {engine}");
        suite::ignorable(name, move || match super::lacks() {
            Some(lacking) => Ok(Completion::ignored_with(format!("needs {lacking}"))),
            None => asynchronous(engine),
        })
    }));
    let name = "why: a limit of I/O is seen by the tasks' states where no pressure is counted";
    let on_v1 = (version(Controller::Io) != Some(Version::V1)).then_some("I/O on v1");
    trials.push(trial_where(name, on_v1, throttled_v1));
    trials
}

/// A busy machine makes the rate fall below the limit, as each operation waits for the kernel's workers too: the cause is
/// known by the time that is not waited at the device, and by a rate above a fifth, which is waited for.
fn limited(stage: &Stage) -> (Cause, Facts) {
    let device = Disk::new("limited");
    stage.set("", &format!("io.max={} riops=20", device.number));
    let _load = stage.start("", &["direct", &device.path]);
    let is_near = |facts: &Facts| {
        let allowed = 20.0 * facts.span.as_secs_f64();
        facts.levels[0].io_max.iter().any(|of| of.done as f64 >= 0.25 * allowed)
    };
    let facts = stage.facts_when("", "the device is read", is_near);
    let cause = stage.first_but_cpus(&facts, Kind::IoLimit);
    assert_eq!(number(&cause, "riops"), 20.0);
    let limit = stage.value("", "io.max");
    assert!(limit.contains(&device.number) && limit.contains("riops=40"), "{limit}");
    (cause, facts)
}

fn throttled() {
    let stage = Stage::new("io").with_pressure();
    let (cause, facts) = limited(&stage);
    let has_v2 = stage.host.hierarchies().iter().any(|at| at.version == Version::V2);
    let known = if has_v2 { Certainty::Measured } else { Certainty::Sampled };
    assert_eq!(cause.lost.unwrap().known, known, "{cause:#?}\n{facts:#?}");
}

/// How databases read (newcomers' finding A6): with the first two no task sleeps for the disk.
const ENGINES: [&str; 3] = ["libaio", "io_uring", "psync"];

fn asynchronous(engine: &'static str) -> Result<Completion, Failed> {
    let device = Disk::new(engine);
    let words = [
        "--name=rf-test",
        &format!("--filename={}", device.path),
        &format!("--ioengine={engine}"),
        "--direct=1",
        "--rw=randread",
        "--bs=4k",
        "--iodepth=4",
        "--thread",
        "--time_based",
        "--runtime=120",
    ];
    let once = Command::new("fio").args(&words[..9]).args(["--runtime=1", "--minimal"]).output();
    match once {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Completion::ignored_with("needs fio"));
        }
        Ok(output) if output.status.success() => {}
        other => {
            return Ok(Completion::ignored_with(format!("fio cannot read with {engine} here: {other:?}")));
        }
    }
    let stage = Stage::new(engine);
    // so few that what an emulated device takes for each is a small part of the time
    stage.set("", &format!("io.max={} riops=10", device.number));
    let _load = stage.start("", &[&["exec", "fio"][..], &words].concat());
    // on an emulated CPU fio may be too slow for the limit in one look
    let is_met = |facts: &Facts| {
        let allowed = 10.0 * facts.span.as_secs_f64();
        // fio itself may have been dropped from memory, and is read once
        facts.memory.refaults_file == 0
            && facts.levels[0].io_max.iter().any(|of| of.done as f64 >= 0.85 * allowed)
    };
    let facts = stage.facts_when("", "the limit is met", is_met);
    let cause = stage.first_but_cpus(&facts, Kind::IoLimit);
    assert_eq!((number(&cause, "riops"), cause.at), (10.0, stage.name("")));
    let limit = stage.value("", "io.max");
    assert!(limit.contains("riops=20"), "{limit}");
    Ok(Completion::Completed)
}

fn throttled_v1() {
    let (cause, _) = limited(&Stage::new("iov1"));
    assert_eq!(cause.lost.unwrap().known, Certainty::Sampled);
}

/// How long an operation takes depends on the machine: that the others are named, does not.
fn io_neighbours() {
    let stage = Stage::new("disk");
    let device = Disk::new("shared");
    for group in ["a", "hog"] {
        stage.make(group);
        // far above what can be: v1 of Linux 6.1 counts operations only where there is a limit
        stage.set(group, &format!("io.max={} riops=1000000000", device.number));
    }
    let _own = stage.start("a", &["direct", &device.path]);
    // enough that on two CPUs they do more than it does
    let _others = [(); 5].map(|()| stage.start("hog", &["direct", &device.path]));
    let others = |facts: &Facts| {
        let shared = facts.io.devices.iter().find(|known| known.device.to_string() == device.number)?;
        Some((shared.others.first().cloned()?, shared.rios))
    };
    // a single reader may have a CPU to itself for a while; who does the most operations is advised nothing
    let more = |facts: &Facts| others(facts).is_some_and(|((_, theirs), own)| theirs > own);
    let facts = stage.facts_when("a", "others read the device, and more", more);
    let first_other = |facts: &Facts| others(facts).map(|((group, _), _)| group);
    assert_eq!(first_other(&facts), Some(stage.name("hog")), "{facts:#?}");
    let answer = why(&facts);
    let cause = answer.causes.iter().find(|cause| cause.kind == Kind::IoNeighbours);
    let cause = cause.unwrap_or_else(|| panic!("{answer}\n{facts:#?}"));
    assert_eq!(cause.at, stage.name("hog"));
    // as many operations as its own, or more: a choice between equals, or a hint
    let choices = cause.choices.first().map(|choice| &choice.command);
    let command = cause.hint.as_ref().or(choices);
    stage.obey(command.unwrap_or_else(|| panic!("no command: {answer}\n{cause:#?}")));
}

/// Without any limit: also where the kernel does not count then whose operations they are.
fn alone() {
    let stage = Stage::new("alone").with_pressure();
    let device = Disk::new("alone");
    let _load = stage.start("", &["direct", &device.path]);
    let cause = stage.first_but_cpus(&stage.facts(""), Kind::Device);
    let name = device.path.trim_start_matches("/dev/");
    assert!(cause.sentence.contains(&format!("/dev/{name}")), "{}", cause.sentence);
}
