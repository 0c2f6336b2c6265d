//! Facts in, ranked causes out; every hint is a command that the settings table takes. Here the facts that the tests by
//! cause begin with; that real kernels lead to such facts is tested in `tests/watch/why/`.

use std::time::Duration;

use apply::Bound;
use settings::{DeviceNumber, Version};
use units::{CpuSet, Limit, NodeSet};

use super::*;

mod answer;
mod by_load;
mod cpu;
mod gathering;
mod io;
mod memory;
mod of_units;
mod stopped;

const LOOP: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// A group `db/oltp` on CPUs 0-1 of 8, with a group above that has 0-3, that was looked at for ten seconds, used one CPU
/// and waited for nothing.
fn facts() -> Facts {
    let level = |group: &str, list: &str| Level {
        group: group.to_owned(),
        weight: Some(100),
        cpus: Some(cpus(list)),
        mems: Some("0".parse().unwrap()),
        memory_max: Some(Limit::Max),
        pids_max: Some(Limit::Max),
        ..Level::default()
    };
    Facts {
        group: "db/oltp".to_owned(),
        span: Duration::from_secs(10),
        tasks: 3,
        frozen_parts: Vec::new(),
        memory_stops: Vec::new(),
        levels: vec![level("db/oltp", "0-1"), level("db", "0-3")],
        cpu: CpuFacts {
            used: Duration::from_secs(10),
            waited: Some(Duration::ZERO),
            cpus: cpus("0-1"),
            online: cpus("0-7"),
            ..CpuFacts::default()
        },
        memory: MemoryFacts {
            version: Some(Version::V2),
            is_counted: true,
            current: 1 << 30,
            pressure: Some(Duration::ZERO),
            machine_pressure: Some(Duration::ZERO),
            ..MemoryFacts::default()
        },
        io: IoFacts { pressure: Some(Duration::ZERO), ..IoFacts::default() },
        realtime: None,
        interrupted: None,
        by_load: ByLoad::default(),
        bound: Bound::default(),
    }
}

fn kinds(facts: &Facts) -> Vec<Kind> {
    let answer = why(facts);
    answer.causes.iter().filter_map(|cause| cause.hint.as_deref()).for_each(is_a_command);
    answer.causes.iter().map(|cause| cause.kind).collect()
}

fn only(facts: &Facts) -> Cause {
    let answer = why(facts);
    assert_eq!(answer.causes.len(), 1, "{answer}");
    answer.causes[0].hint.iter().for_each(|hint| is_a_command(hint));
    answer.causes[0].choices.iter().for_each(|choice| is_a_command(&choice.command));
    answer.causes[0].clone()
}

/// `ringfence set GROUP SETTING=VALUE…` that the settings table reads, or `ringfence thaw GROUP`; or several of them.
fn is_a_command(hint: &str) {
    hint.split(" && ").for_each(is_one_command);
}

fn is_one_command(hint: &str) {
    let words = shlex::split(hint).unwrap_or_else(|| panic!("{hint}"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ringfence", "thaw", group] => assert!(!group.is_empty()),
        ["ringfence", "set", group, values @ ..] => {
            assert!(!group.is_empty() && !values.is_empty(), "{hint}");
            for value in values {
                let (name, value) = value.split_once('=').unwrap_or_else(|| panic!("{hint}"));
                let found = settings::find(name).unwrap_or_else(|error| panic!("{hint}: {error}"));
                found.parse(value, &settings::NoMachine).unwrap_or_else(|error| panic!("{hint}: {error}"));
            }
        }
        _ => panic!("{hint}"),
    }
}

fn set_quota(level: &mut Level, throttled: Duration) {
    level.quota = Some(Quota { quota: Limit::At(millis(20)), period: millis(100) });
    (level.periods, level.throttled_periods, level.throttled) = (100, 98, throttled);
}

fn others() -> Vec<Other> {
    let other = |group: &str, seconds, task: &str, rival: Option<&str>| Other {
        group: group.to_owned(),
        ran: Duration::from_secs(seconds),
        task: task.to_owned(),
        meets: 1,
        rival: rival.map(|rival| (rival.to_owned(), 100)),
    };
    vec![other("batch", 4, "cc1 4711", Some("batch")), other("/", 1, "sshd 12", None)]
}

fn device(rios: u64, others: u64) -> DeviceFacts {
    DeviceFacts {
        device: LOOP,
        name: Some("loop0".to_owned()),
        rbytes: rios * 4096,
        wbytes: 0,
        rios,
        wios: 0,
        service: Some(millis(1)),
        others: if others > 0 { vec![("batch".to_owned(), others)] } else { Vec::new() },
    }
}
