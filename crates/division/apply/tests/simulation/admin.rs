//! What the `admin` of a group can do to everybody else: he writes all that he may to each file of his group and of a
//! group that he makes in it, on each kind of kernel, and nothing changes outside of his group.

use std::{collections::BTreeMap, time::Duration};

use apply::{State, Target, execute};
use fake::Fake;
use kernel::Kernel;
use rustix::io::Errno;
use settings::{Reach, Version};
use units::group_path;

use crate::{
    machine::{Affinities, Clocks, Faults, Sim},
    run::{LAYOUT, machine, meta, planned_text},
    world::CPUS,
};

const ADMIN: u32 = 1000;
/// His group's lines, beside groups of others: each kind of group that a layout makes.
const GROUPS: [&str; 9] = [
    "cpus = \"0-1\"",
    "cpus = \"0-1\"\nexclusive = true",
    "memory.max = \"64M\"",
    "memory.low = \"16M\"",
    "cpu.max = \"50%\"",
    "cpu.weight = 50",
    "cpu.idle = true",
    "cpu.rt_runtime_us = 100000",
    "pids.max = 20",
];
const OTHERS: &str = "[groups.other]\ncpus = \"3\"\nexclusive = true\nmemory.max = \"128M\"\n\
    [groups.plain]\ncpus = \"0-1\"\ncpu.weight = 100\n";
const TEXTS: [&str; 20] = [
    "0",
    "1",
    "2",
    "3",
    "0-2",
    "0-3",
    "2-3",
    "100",
    "10000",
    "500000",
    "950000",
    "1073741824",
    "max",
    "root",
    "isolated",
    "member",
    "threaded",
    "+cpuset",
    "+cpu +memory",
    "8:0 10000",
];

fn kernels() -> [(&'static str, Fake); 5] {
    [
        ("v1", Fake::v1(CPUS, 1)),
        ("v2", Fake::v2(CPUS, 1)),
        ("v2 with exclusive CPUs", Fake::v2_with_exclusive_cpus(CPUS, 1)),
        ("v2 with firm partitions", Fake::v2_with_firm_partitions(CPUS, 1)),
        ("hybrid", Fake::hybrid(CPUS, 1)),
    ]
}

/// Applies as root; why not, where this kind of machine lacks a setting.
fn apply(fake: &Fake, text: &str) -> Result<usize, String> {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let clocks = Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 };
    let (host, sim) = Sim::new(fake, &Faults::at(Vec::new()), clocks, &Affinities::default(), CPUS);
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let target = Target { host: &host, system: &sim };
    let plan = planned_text(lock.state(), target, &machine(), text)?;
    execute(&lock, target, &plan, &meta(LAYOUT, None)).unwrap();
    Ok(planned_text(lock.state(), target, &machine(), text)?.steps.len())
}

/// Every file of every group that is not `his` or in it, by hierarchy.
fn others(fake: &Fake, his: &str) -> BTreeMap<(usize, String, String), Result<String, Errno>> {
    let mut all = BTreeMap::new();
    for at in fake.hierarchies().unwrap() {
        let groups = std::iter::once(String::new()).chain(fake.descendants(&at, "").unwrap());
        for group in groups.filter(|group| !group_path::is_at_or_below(group, his)) {
            for file in fake.files(&at, &group).unwrap() {
                // how many groups there are is no resource
                if file != "cgroup.stat" {
                    let text = fake.read(&at, &group, &file);
                    all.insert((at.id, group.clone(), file), text);
                }
            }
        }
    }
    all
}

fn attack(fake: &Fake, his: &str, what: &str) -> usize {
    let before = others(fake, his);
    let mut written = 0;
    for at in fake.hierarchies().unwrap().iter().filter(|at| fake.exists(at, his)) {
        let child = format!("{his}/mine");
        fake.set_uid(ADMIN);
        fake.mkdir(at, &child).unwrap();
        let _ = fake.write(at, his, "cgroup.subtree_control", "+cpuset +cpu +memory +io +pids");
        fake.set_uid(0);
        for group in [his, &child] {
            for file in fake.files(at, group).unwrap() {
                for text in TEXTS {
                    fake.set_uid(ADMIN);
                    let done = fake.write(at, group, &file, text);
                    fake.set_uid(0);
                    let reach = settings::reach(at.version, &file);
                    if group == his && reach != Some(Reach::Own) {
                        assert_eq!(done, Err(Errno::ACCESS), "{what}: {group} {file} {text}");
                    }
                    if done.is_ok() {
                        written += 1;
                        assert_eq!(others(fake, his), before, "{what}: {group} {file} {text}");
                    }
                }
            }
        }
        fake.rmdir(at, &child).unwrap();
    }
    written
}

#[test]
fn an_admin_changes_nothing_that_any_other_group_may_use() {
    let (mut tried, mut written) = (0, 0);
    for (kind, kernel) in kernels() {
        for lines in GROUPS {
            let fake = kernel.copy();
            let text = format!("[groups.his]\n{lines}\nadmin = {{ user = {ADMIN} }}\n{OTHERS}");
            let Ok(again) = apply(&fake, &text) else { continue };
            assert_eq!(again, 0, "{kind}: {lines}: the same layout again has nothing to do");
            tried += 1;
            written += attack(&fake, "his", &format!("{kind}: {lines}"));
        }
    }
    // v1 lacks protected memory, v2 real-time budgets
    assert!(tried >= 35 && written > tried * 20, "{tried} groups, {written} writes");
}

#[test]
fn who_is_admin_of_the_group_above_too_divides_what_it_has() {
    for (kind, fake) in kernels() {
        let admin = format!("admin = {{ user = {ADMIN} }}\n");
        let text = format!(
            "[groups.his]\ncpus = \"0-1\"\nmemory.max = \"64M\"\n{admin}\
             [groups.\"his/part\"]\ncpus = \"0\"\ncpu.weight = 50\n{admin}\
             [groups.\"his/others\"]\ncpus = \"1\"\ncpu.weight = 50\nadmin = {{ user = 1001 }}\n{OTHERS}"
        );
        apply(&fake, &text).unwrap();
        let cpu = fake.hierarchies().unwrap();
        let cpu = cpu.iter().find(|at| at.controllers.contains(&settings::Controller::Cpu)).unwrap();
        let weight = if cpu.version == Version::V1 { "cpu.shares" } else { "cpu.weight" };
        for (group, uid) in [("his", 0), ("his/part", ADMIN), ("his/others", 0), ("other", 0)] {
            if fake.exists(cpu, group) {
                assert_eq!(fake.owner(cpu, group, Some(weight)).unwrap().0, uid, "{kind}: {group}");
            }
        }
        // all of it stays in his own group
        attack_below(&fake, "his", kind);
    }
}

fn attack_below(fake: &Fake, his: &str, kind: &str) {
    let before = others(fake, his);
    for at in &fake.hierarchies().unwrap() {
        let part = format!("{his}/part");
        for file in fake.files(at, &part).unwrap_or_default() {
            for text in TEXTS {
                fake.set_uid(ADMIN);
                let _ = fake.write(at, &part, &file, text);
                fake.set_uid(0);
                assert_eq!(others(fake, his), before, "{kind}: {part} {file} {text}");
            }
        }
    }
}

#[test]
fn libcgroups_admin_has_every_file_and_a_layout_takes_back_what_reaches_beyond() {
    for (kind, fake) in kernels() {
        let text =
            |all: &str| format!("[groups.his]\ncpus = \"0-1\"\nadmin = {{ user = {ADMIN}{all} }}\n{OTHERS}");
        let hierarchies = fake.hierarchies().unwrap();
        let cpuset =
            hierarchies.iter().find(|at| at.controllers.contains(&settings::Controller::Cpuset)).unwrap();
        let owner = || fake.owner(cpuset, "his", Some("cpuset.cpus")).unwrap();
        apply(&fake, &text(", all_files = true")).unwrap();
        assert_eq!(owner().0, ADMIN, "{kind}");
        // as a version before this one left it, with a mode that let others write
        let open = kernel::Ownership { mode: Some(0o666), ..Default::default() };
        fake.set_ownership(cpuset, "his", Some("cpuset.cpus"), open).unwrap();
        assert_eq!(apply(&fake, &text("")), Ok(0), "{kind}");
        assert_eq!((owner().0, owner().2), (0, 0o644), "{kind}");
        assert_eq!(
            fake.owner(cpuset, "his", Some("cpuset.mems")).unwrap().0,
            ADMIN * u32::from(cpuset.version == Version::V2)
        );
    }
}
