//! An experiment whose groups' CPUs follow their load: they are resized in its runs, and neither its end nor kill -9 in one
//! leaves a group or a process.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{Lab, groups_of, text};
use crate::undoable::below;

/// In both conditions the batch, which wants all CPUs, borrows those of the server.
const EXPERIMENT: &str = r#"
name = "elastic"
title = "CPUs that follow the load"
repetitions = 1
duration = "DURATION"
warm-up = "200ms"
steady-within = "200ms"
sample = "100ms"
[gates]
foreign-cpu = 1.0
steal = 1.0
retries = 20
[machine]
cpus = 2
needs-cpus = 2
[cpus.one]
count = 1
from = "first"
[cpus.all]
[group.server]
"cpuset.mems" = "{all.mems}"
[group.batch]
"cpuset.mems" = "{all.mems}"
"cpu.idle" = 1
[workload.wakes]
driver = "cyclic"
priority = 0
group = "server"
[workload.work]
driver = "cpu"
threads = "{all}"
group = "batch"
[[condition]]
name = "light"
elastic.server = { min = "{one}", max = "{all}", weight = 100 }
elastic.batch = { min = "{one}", max = "{all}", weight = 100 }
[[condition]]
name = "heavy"
elastic.server = { min = "{one}", max = "{all}", weight = 200 }
elastic.batch = { min = "{one}", max = "{all}", weight = 100 }
[[measure]]
name = "rate"
is = "work.rate"
"#;

fn write(lab: &Lab, duration: &str) {
    fs::write(lab.path("elastic.toml"), EXPERIMENT.replace("DURATION", duration)).unwrap();
}

pub fn resized(lab: &Lab) {
    write(lab, "1500ms");
    let mut running = lab.spawn("run elastic.toml --directory out");
    let pid = running.child.id();
    let (code, said) = running.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
    let results = lab.json("report out");
    let runs = results["runs"].as_array().unwrap();
    assert!(runs.len() >= 2, "{results}");
    for run in runs {
        let series = |name: &str| -> Vec<f64> {
            let series = run["series"].as_array().unwrap().iter().find(|one| one["name"] == name);
            series.unwrap()["points"].as_array().unwrap().iter().map(|at| at[1].as_f64().unwrap()).collect()
        };
        let (server, batch) = (series("server.cpus"), series("batch.cpus"));
        assert!(server.iter().chain(&batch).all(|cpus| *cpus >= 1.0), "{server:?} {batch:?}");
        assert!(batch.iter().any(|cpus| *cpus > batch[0]), "it borrows: {batch:?}");
        assert!(run["readings"]["batch.cpus"].as_f64() >= Some(1.0), "{run}");
    }
}

pub fn killed(lab: &Lab) {
    write(lab, "300s");
    let mut running = lab.spawn("run elastic.toml --directory out");
    running.until("run 1 of 2");
    let pid = running.child.id();
    let mut processes = BTreeSet::new();
    let begun = Instant::now();
    while processes.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no process is in its groups");
        processes = groups_of(pid).iter().flat_map(|group| processes_of(group)).collect();
        std::thread::sleep(Duration::from_millis(20));
    }
    // it resizes by now
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::KILL);
    running.child.wait().unwrap();
    let output = lab.run("clean");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains(&format!("removed group rf-lab-{pid}\n")), "{said}");
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
    let left: Vec<u32> = processes.into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, [0; 0], "processes of the experiment");
    assert_eq!(lab.ok("clean"), "", "there is nothing left to remove");
}

/// The processes of a group and those below it.
fn processes_of(group: &Path) -> BTreeSet<u32> {
    let lists = below(group).into_iter().filter_map(|at| fs::read_to_string(at.join("cgroup.procs")).ok());
    lists.flat_map(|list| list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()).collect()
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // one that nobody waited for yet has ended
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}
