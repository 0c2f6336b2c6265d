//! Time without a CPU: quotas, neighbours, too few CPUs, real-time budgets.

use std::{process::Command, time::Duration};

use libtest_mimic::Trial;
use settings::{Controller, Version};
use units::CpuSet;
use why::{CpuFacts, Facts, Kind, why};

use super::{
    stage::{Stage, number, version},
    trial, trial_where,
};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("why: a quota is the first cause", quota),
        trial("why: the quota of a group above is named with its group", quota_above),
        trial("why: a quota that is used up goes before those who run meanwhile", quota_among_others),
        trial(
            "why: a quota that many own tasks use up goes before too few CPUs, quiet and contended",
            crowded,
        ),
        trial("why: another group on the same CPU is the first cause, and is named", neighbours),
        trial("why: a weight is advised where the branches of two groups meet, and for one of them", nested),
        trial("why: more busy tasks than CPUs are the first cause", few_cpus),
        trial("why: a task that waited before the look loses no more than the look", starved),
    ];
    let is_v1 = version(Controller::Cpu) == Some(Version::V1) && super::lacks().is_none();
    let has_budgets = is_v1 && Stage::new("rt").has("cpu.rt_runtime_us");
    let lacking = (!has_budgets).then_some("cpu.rt_runtime_us on v1");
    trials.push(trial_where("why: a real-time budget is the first cause", lacking, realtime));
    trials
}

/// On an emulated CPU a task may get so little that its quota hardly matters: that is another situation.
fn is_mostly_stopped(facts: &Facts) -> bool {
    facts.levels.iter().any(|level| level.throttled * 2 > facts.span)
}

fn quota() {
    let stage = Stage::new("quota");
    stage.set("", "cpu.max=5%");
    let _load = stage.start("", &["spin"]);
    let facts = stage.facts_when("", "the quota stops it most of the time", is_mostly_stopped);
    let cause = stage.first_in(&facts, Kind::Quota);
    assert!(number(&cause, "cpu.throttled.periods") > 0.0);
    assert!(cause.lost.unwrap().seconds > 0.5, "{cause:?}");
    assert_ne!(stage.value("", "cpu.max"), "5%");
}

fn quota_above() {
    let stage = Stage::new("above");
    stage.make("a");
    stage.set("", "cpu.max=5%");
    let _load = stage.start("a", &["spin"]);
    let facts = stage.facts_when("a", "the quota stops it most of the time", is_mostly_stopped);
    let cause = stage.first_in(&facts, Kind::Quota);
    assert_eq!(cause.at, stage.name(""));
    assert!(cause.sentence.contains(&format!("the quota of {} (0.05 CPUs", stage.name(""))), "{cause:?}");
}

/// Its weight gives it a fifth of the CPU, so it waits for 60 of the 75 ms in which it uses its quota up, and is stopped for
/// the other 25: no greater weight would give it more.
fn quota_among_others() {
    let stage = Stage::new("contended");
    let cpu = stage.cpus().first().unwrap();
    for group in ["a", "hog"] {
        stage.make(group);
        stage.set(group, &format!("cpuset.cpus={cpu}"));
    }
    stage.set("a", "cpu.weight=2500");
    stage.set("a", "cpu.max=15%");
    let _own = stage.start("a", &["spin"]);
    let _hog = stage.start("hog", &["spin", "2"]);
    let facts = stage.facts_when("a", "the quota is met in nearly every period", |facts| {
        let level = &facts.levels[0];
        level.throttled_periods * 10 >= level.periods * 9 && facts.cpu.foreign * 2 > facts.span
    });
    let cause = stage.first_in(&facts, Kind::Quota);
    assert_eq!(cause.at, stage.name("a"));
    assert_ne!(stage.value("a", "cpu.max"), "15%");
}

/// Fault F4 of a database's day: eight tasks under a quota wait for each other too, and more CPUs gain them nothing. What is
/// advised gains as much as the figures say: the share of time that they run, and the periods that are stopped.
fn crowded() {
    for is_contended in [false, true] {
        let stage = Stage::new(if is_contended { "crowded-contended" } else { "crowded" });
        let cpu = stage.cpus().first().unwrap();
        for group in ["a", "hog"] {
            stage.make(group);
            stage.set(group, &format!("cpuset.cpus={cpu}"));
        }
        stage.set("hog", "cpu.weight=100");
        stage.set("a", "cpu.max=15%");
        let _own = stage.start("a", &["spin", "8"]);
        let _hog = is_contended.then(|| stage.start("hog", &["spin", "2"]));
        let met = |facts: &Facts| {
            let level = &facts.levels[0];
            level.periods > 0 && level.throttled_periods * 10 >= level.periods * 9
        };
        let is_met = |facts: &Facts| met(facts) && (!is_contended || !facts.cpu.foreign.is_zero());
        let share = |facts: &Facts| facts.cpu.used.as_secs_f64() / facts.span.as_secs_f64();
        let before = stage.facts_when("a", "the quota is met in nearly every period", is_met);
        // with all CPUs it has no more: that is what is never advised
        stage.set("a", &format!("cpuset.cpus={}", stage.cpus()));
        let wide = stage.facts_when("a", "the quota is met on all CPUs", is_met);
        assert!(share(&wide) < 0.2, "{wide:#?}");
        stage.set("a", &format!("cpuset.cpus={cpu}"));
        // in a period that the quota did not end, its tasks may have waited for each other
        let answer = why(&before);
        let lost = |kind: Kind| {
            let of_kind = answer.causes.iter().filter(|cause| cause.kind == kind);
            of_kind.filter_map(|cause| Some(cause.lost?.seconds)).sum::<f64>()
        };
        assert!(lost(Kind::FewCpus) * 5.0 < lost(Kind::Quota), "{answer}");
        stage.first_in(&before, Kind::Quota);
        let gained = |facts: &Facts| !met(facts) && share(facts) > 2.0 * share(&before);
        stage.facts_when("a", "it runs twice as much, and is stopped less often", gained);
    }
}

/// It gets its turn every few seconds, and the kernel counts the whole wait then.
fn starved() {
    let stage = Stage::new("starved");
    let cpu = stage.cpus().first().unwrap();
    for (group, weight) in [("a", 10), ("hog", 10_000)] {
        stage.make(group);
        stage.set(group, &format!("cpuset.cpus={cpu}"));
        stage.set(group, &format!("cpu.weight={weight}"));
    }
    let _hog = stage.start("hog", &["spin"]);
    let _own = stage.start("a", &["spin"]);
    for _ in 0..3 {
        let facts = stage.facts_when("a", "it has a turn", |facts| !facts.cpu.used.is_zero());
        let waited = facts.cpu.waited.unwrap();
        // the thread that started the other one may still wait for its turn to sleep
        assert!(waited <= facts.span * u32::try_from(facts.tasks).unwrap(), "{facts:#?}");
    }
}

fn neighbours() {
    let stage = Stage::new("beside");
    let cpu = stage.cpus().first().unwrap();
    for group in ["a", "hog"] {
        stage.make(group);
        stage.set(group, &format!("cpuset.cpus={cpu}"));
    }
    let _own = stage.start("a", &["spin"]);
    let _hog = stage.start("hog", &["spin", "2"]);
    let facts = stage.facts("a");
    let hog = facts.cpu.others.iter().find(|other| other.group == stage.name("hog"));
    assert!(hog.is_some_and(|hog| hog.ran > Duration::ZERO), "{facts:#?}");
    let cause = stage.first("a", Kind::Neighbours);
    // the greatest weight of all but each other's: nobody had more of that CPU
    assert_eq!(cause.at, stage.name("hog"));
    assert!(cause.sentence.contains("most of it"), "{}", cause.sentence);
}

/// Newcomers' finding A7 and issue R, point 5: `x/a` and `y` share a CPU. The weight of `x/a` counts for nothing there.
fn nested() {
    let stage = Stage::new("nested");
    let cpu = stage.cpus().first().unwrap();
    for group in ["x", "x/a", "y"] {
        stage.make(group);
        stage.set(group, &format!("cpuset.cpus={cpu}"));
        stage.set(group, "cpu.weight=100");
    }
    let _own = stage.start("x/a", &["spin", "2"]);
    let _other = stage.start("y", &["spin", "2"]);
    let (x, y) = (stage.name("x"), stage.name("y"));
    let beside = |below: &str, other: &str| {
        let is_first = |facts: &Facts| facts.cpu.others.first().is_some_and(|first| first.group == other);
        let facts = stage.facts_when(below, "the other runs", is_first);
        let answer = why(&Facts { cpu: CpuFacts { idle: CpuSet::new(), ..facts.cpu.clone() }, ..facts });
        answer.causes.into_iter().find(|cause| cause.kind == Kind::Neighbours).unwrap()
    };
    let cause = beside("x/a", &y);
    let commands: Vec<&str> = cause.choices.iter().map(|choice| choice.command.as_str()).collect();
    let raise = |group: &str| format!("ringfence set {group} cpu.weight=400");
    assert_eq!((cause.hint, commands), (None, vec![raise(&x).as_str(), &raise(&y)]));
    stage.obey(&raise(&x));
    let cause = beside("x/a", &y);
    assert_eq!(cause.hint, Some(format!("ringfence set {x} cpu.weight=1600")));
    let cause = beside("y", &stage.name("x/a"));
    assert_eq!((cause.hint, cause.choices), (None, vec![]));
}

fn few_cpus() {
    let stage = Stage::new("few");
    let cpu = stage.cpus().last().unwrap();
    stage.make("a");
    stage.set("a", &format!("cpuset.cpus={cpu}"));
    let _load = stage.start("a", &["spin", "3"]);
    let cause = stage.first("a", Kind::FewCpus);
    assert_eq!(number(&cause, "cpuset.cpus"), 1.0);
    if stage.cpus().len() > 1 {
        assert_ne!(stage.value("a", "cpuset.cpus"), cpu.to_string());
    }
}

/// A twentieth of one CPU is all that it ever takes from others.
fn realtime() {
    let stage = Stage::new("realtime");
    stage.set("", "cpu.rt_runtime_us=50ms");
    let mut load = stage.waiting("", &["spin"]);
    let arguments = ["--fifo", "--pid", "1", &load.pid().to_string()];
    let output = Command::new("chrt").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    load.go();
    let cause = stage.first("", Kind::RealtimeBudget);
    assert!(number(&cause, "waited") > 0.5, "{cause:?}");
    assert_eq!(stage.value("", "cpu.rt_runtime_us"), "95ms");
}
